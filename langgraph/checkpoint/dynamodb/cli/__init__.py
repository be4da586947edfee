"""The command `langgraph-dynamodb`: looking into a table, and after it. Needs the extra `cli`.

It calls the saver and the operations below it. What it shows of a thread is read without importing or running anything
that the thread names. Each command has a module, `app` puts them together, and `desk` has what they share.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

_EXTRA = ("typer", "rich")
# What needs neither the extra nor a saver, and is printed at once.
_PRINTED = ("--version", "docs", "schema", "template")


def main() -> None:
    """Run the command line, or say what to install for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or pipe that has not all characters gets their numbers.
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
    app()
