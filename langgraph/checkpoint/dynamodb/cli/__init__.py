"""The command `langgraph-dynamodb`, which inspects and maintains a table. Needs the extra `cli`.

`app` lists the commands, whose modules load when they run. Here is how a command starts and ends, for `--help` too. No
command imports or runs anything that a stored value names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from io import TextIOWrapper
from typing import TYPE_CHECKING

from ..version import requirement

if TYPE_CHECKING:
    from typing_extensions import Self

_EXTRA = ("typer", "rich")
# These need neither the extra nor a saver, and are printed at once.
_PRINTED = ("--version", "docs", "template")


class Exit(IntEnum):
    """The exit codes with their meanings. A code never changes its meaning."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make a member."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    DONE = 0, "done"
    FAILED = 1, "failed in a way that no other code describes"
    USAGE = 2, "an option, an argument or an id cannot be used"
    NOT_FOUND = 3, "there is no such thread, checkpoint or memory"
    CONFIGURATION = 4, "the table, the credentials, their rights, the region or the serializer does not fit"
    DAMAGED = 5, "what is stored is damaged, or of a newer release"
    TRY_AGAIN = 6, "throttled, busy, or without an answer: the same command may succeed later"
    NOT_CONFIRMED = 7, "nothing was changed: nobody confirmed it. Answer the question, or pass --yes"
    PROBLEMS = 8, "the command ran to its end and found problems, or could not serve every thread"
    INTERRUPTED = 130, "Ctrl-C"


class CommandError(Exception):
    """Ends a command with a message and an exit code."""

    def __init__(self, code: Exit, message: str) -> None:
        """Store the exit code and the message."""
        super().__init__(message)
        self.code = code


@contextmanager
def interruptible() -> Iterator[None]:
    """End the program on Ctrl-C. Loading takes a while, in which a person may find a mistake in the command."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(Exit.INTERRUPTED)


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
