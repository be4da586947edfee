"""The exceptions that the saver raises itself.

Each message names the thing that is wrong and what mends it. Other errors of AWS, throttling that outlasts the
retries among them, pass through as botocore raises them. Whatever reads the table may raise
`CheckpointCorruptionError`, `CheckpointFormatError` or `CheckpointerConfigurationError`.
"""

from __future__ import annotations


class CheckpointerError(Exception):
    """Base class of every error that this package raises; itself, DynamoDB left a batch unprocessed for 60 seconds."""


class CheckpointerInputError(CheckpointerError, ValueError):
    """An argument cannot be used: a missing id, a key over DynamoDB's limit, an unknown strategy."""


class CheckpointerConfigurationError(CheckpointerError):
    """The table, the credentials, the region, the cipher or the serializer is not what the saver or the data needs."""


class CheckpointSerializationError(CheckpointerError, TypeError):
    """The serializer cannot write a value; nothing of the call was stored."""


class CheckpointNotFoundError(CheckpointerError, LookupError):
    """A checkpoint that another one needs is not in the table any more."""


class CheckpointCorruptionError(CheckpointerError):
    """Stored data is damaged or incomplete; the message names the item."""


class CheckpointFormatError(CheckpointerError):
    """An item was written by a newer release of this package than the one that reads it."""


class ThreadBusyError(CheckpointerError):
    """Another deletion of the thread is going on; or calls for the same thread, checkpoint or task kept interfering."""
