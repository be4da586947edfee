"""The command `langgraph-dynamodb`, which inspects and maintains a table. Needs the extra `cli`.

It calls the saver and the operations below it. It reads values without importing or running anything that a thread
names. Each command has a module, which is loaded when the command runs. `app` lists them, and `context` has what
they share.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

from ..version import requirement
from .outcome import interruptible

_EXTRA = ("typer", "rich")
# These need neither the extra nor a saver, and are printed at once.
_PRINTED = ("--version", "docs", "template")


def main() -> None:
    """Run the command line, or say what to install for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or pipe that lacks a character gets its number instead.
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:2] and sys.argv[1] in _PRINTED:
        from . import printed  # noqa: PLC0415 - is not always needed.

        printed.main()
        return
    try:
        with interruptible():
            from .app import app  # noqa: PLC0415 - may not be installed.
        app()
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.exit(f"langgraph-dynamodb: {error.name} is not installed. Run pip install {requirement('cli')}.")
