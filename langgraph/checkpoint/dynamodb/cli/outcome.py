"""How a command ends: exit codes for scripts, and their meanings. Loads nothing else, since `--help` prints them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


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
