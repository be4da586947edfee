"""The exceptions that the saver raises itself; errors of AWS pass through as botocore raises them.

Each message names the thing that is wrong and what mends it.
"""

from __future__ import annotations


class CheckpointerError(Exception):
    """Base class of every error that this package raises."""


class CheckpointerInputError(CheckpointerError, ValueError):
    """An argument cannot be used: a missing id, a key over DynamoDB's limit, an unknown strategy."""


class CheckpointerConfigurationError(CheckpointerError):
    """The table, the credentials, the region or the cipher is not what the saver needs."""


class CheckpointSerializationError(CheckpointerError, TypeError):
    """The serializer cannot write a value; nothing was stored."""


class CheckpointNotFoundError(CheckpointerError, LookupError):
    """A checkpoint that another one needs is not in the table any more."""


class CheckpointCorruptionError(CheckpointerError):
    """Stored data is damaged or incomplete; the message names the item."""


class CheckpointFormatError(CheckpointerError):
    """An item was written by a newer release of this package than the one that reads it."""


class ThreadBusyError(CheckpointerError):
    """Another deletion or prune of the same thread is going on, or kept interfering with this call."""
