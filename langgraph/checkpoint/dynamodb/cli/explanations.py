"""Explains errors to the user of a command: by an exit code, and a message in the command line's own terms."""

from __future__ import annotations

from errno import ENOSPC

from langgraph.store.base import InvalidNamespaceError

from langgraph.store.dynamodb import SearchLimitError

from .._format.codec import UnreadableError
from .._runtime.failures import account_remedy, is_transient, outage_remedy
from ..errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    CheckpointSerializationError,
)
from .connection import in_options
from .outcome import CommandError, Exit

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
