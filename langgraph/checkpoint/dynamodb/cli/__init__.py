"""The command `langgraph-dynamodb`, which inspects and maintains a table. Needs the extra `cli`.

It calls the saver and the operations below it. It reads values without importing or running anything that a thread
names. Each command has a module, `app` puts them together, and `context` has what they share.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

_EXTRA = ("typer", "rich")
# `Exit.INTERRUPTED`, which cannot be loaded before everything else is.
_INTERRUPTED = 130
# These need neither the extra nor a saver, and are printed at once.
_PRINTED = ("--version", "docs", "schema", "template")


def main() -> None:
    """Run the command line, or say what to install for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or pipe that lacks a character gets its number instead.
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:2] and sys.argv[1] in _PRINTED:
        from langgraph.checkpoint.dynamodb.cli import printed  # noqa: PLC0415 - is not always needed.

        printed.main()
        return
    try:
        from langgraph.checkpoint.dynamodb.cli.app import app  # noqa: PLC0415 - may not be installed.
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.exit(f"langgraph-dynamodb: {error.name} is not installed; pip install 'langgraph-dynamodb[cli]'")
    except KeyboardInterrupt:
        # Loading takes a second, in which a person may find a mistake in the command.
        sys.stderr.write("interrupted\n")
        sys.exit(_INTERRUPTED)
    app()
