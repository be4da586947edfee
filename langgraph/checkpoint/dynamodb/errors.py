"""The exceptions that the saver raises itself.

Each message names the thing that is wrong and what mends it. What may pass by itself is tried again for
`retry_seconds`: throttling, failures on AWS's side, and endpoints without an answer. If it does not, it passes through
as botocore raises it, with a note that says what to do (from Python 3.11 on), as the log has said before. Whatever
reads the table may raise `CheckpointCorruptionError`, `CheckpointFormatError` or `CheckpointerConfigurationError`.
"""

from __future__ import annotations


class CheckpointerError(Exception):
    """Base class of every error that this package raises; itself, DynamoDB left a batch unprocessed for 60 seconds."""


class CheckpointerInputError(CheckpointerError, ValueError):
    """An argument cannot be used: a missing id, a key over DynamoDB's limit, an unknown strategy."""


class CheckpointerConfigurationError(CheckpointerError):
    """The table, the credentials, their rights, the region, the cipher or the serializer is not what is needed."""


class CheckpointSerializationError(CheckpointerError, TypeError):
    """The serializer cannot write a value; nothing of the call was stored."""


class CheckpointNotFoundError(CheckpointerError, LookupError):
    """A checkpoint that another one needs is not in the table any more."""


class CheckpointCorruptionError(CheckpointerError):
    """Stored data is damaged or incomplete; the message names the item."""


class CheckpointFormatError(CheckpointerError):
    """An item was written by a newer release of this package than the one that reads it."""


class ThreadBusyError(CheckpointerError):
    """Another deletion or another runner has the thread, or calls for one thread, checkpoint or task interfered."""


class ThreadLockLostError(CheckpointerError):
    """A thread's lock was not kept in time, so that another runner may have gone on with the thread."""
