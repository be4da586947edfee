"""How a command ends: exit codes for scripts, and their meanings."""

from __future__ import annotations

import re
from enum import IntEnum
from errno import ENOSPC

from langgraph.store.base import InvalidNamespaceError
from typing_extensions import Self

from langgraph.checkpoint.dynamodb._format.codec import UnreadableError
from langgraph.checkpoint.dynamodb._runtime.failures import (
    account_remedy,
    is_transient,
    outage_remedy,
)
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    CheckpointSerializationError,
)
from langgraph.store.dynamodb import SearchLimitError


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
    UNREADABLE = (
        9,
        "`verify` found nothing wrong, but the configured key or serializer does not open everything",
    )
    INTERRUPTED = 130, "Ctrl-C"


class CommandError(Exception):
    """Ends a command with a message and an exit code."""

    def __init__(self, code: Exit, message: str) -> None:
        """Store the exit code and the message."""
        super().__init__(message)
        self.code = code


_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (CheckpointerInputError, Exit.USAGE),
    (InvalidNamespaceError, Exit.USAGE),
    (CheckpointSerializationError, Exit.USAGE),
    # A longer prefix reads less.
    (SearchLimitError, Exit.USAGE),
    (CheckpointNotFoundError, Exit.NOT_FOUND),
    (CheckpointerConfigurationError, Exit.CONFIGURATION),
    (CheckpointCorruptionError, Exit.DAMAGED),
    (CheckpointFormatError, Exit.DAMAGED),
    # Busy threads, and batches that DynamoDB did not accept.
    (CheckpointerError, Exit.TRY_AGAIN),
)


# Names in the library's remedies, and the options of the command line for them.
_IN_OPTIONS = {
    "region_name": "--region",
    "endpoint_url": "--endpoint-url",
    "table_name": "--table",
    "session=": "--profile",
    "call setup()": "run `langgraph-dynamodb setup`",
}
_NAMED = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, _IN_OPTIONS)) + r")=?(?!\w)")


def in_options(remedy: str) -> str:
    """Translate a remedy of the library into the options of the command line."""
    return _NAMED.sub(lambda match: _IN_OPTIONS[match[1]], remedy)


def explained(error: Exception, table_name: str) -> CommandError | None:
    """Return the error that the user sees, or None for an unforeseen one, whose traceback is needed."""
    if isinstance(error, CommandError):
        return error
    for kind, code in _CODES:
        if isinstance(error, kind):
            return CommandError(code, _says(error))
    if isinstance(error, OSError) and error.filename is not None:
        return CommandError(Exit.USAGE, f"{error.filename} cannot be used: {error.strerror}")
    if isinstance(error, OSError) and error.errno == ENOSPC:
        return CommandError(Exit.FAILED, f"the output could not be written: {error.strerror}")
    if isinstance(error, RecursionError):
        return CommandError(Exit.FAILED, "a value is nested more deeply than can be shown")
    remedy = account_remedy(table_name, error)
    if remedy is not None:
        return CommandError(Exit.CONFIGURATION, in_options(remedy))
    if is_transient(error):
        return CommandError(Exit.TRY_AGAIN, in_options(outage_remedy(table_name, error)))
    # An error of AWS without a remedy says what is wrong; a traceback of this program would not add to it.
    return CommandError(Exit.FAILED, str(error)) if hasattr(error, "response") else None


def _says(error: Exception) -> str:
    """Return the message of an error of this package. If AWS caused it, name the options of the command line."""
    if isinstance(error, UnreadableError):
        return f"{error}; here these are `encryption_key` and `serde` in the file that --config names"
    # Other errors name what is in a file, or quote stored values.
    is_of_aws = type(error.__cause__).__module__.startswith("botocore")
    return in_options(str(error)) if is_of_aws else str(error)
