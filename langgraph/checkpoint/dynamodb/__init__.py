"""A LangGraph checkpoint saver on one DynamoDB table."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointerUnavailableError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    CheckpointSerializationError,
    ThreadBusyError,
    ThreadLockLostError,
)
from .version import __version__

if TYPE_CHECKING:
    from ._operations.delete_owner import OwnerDeletion
    from ._operations.overview import RunSummary
    from ._operations.threads import ThreadPage, ThreadSummary
    from .config import (
        CacheConfig,
        CheckpointerConfig,
        StoreConfig,
        create_cache,
        create_checkpointer,
        create_store,
        open_cache,
        open_checkpointer,
        open_store,
    )
    from .saver import DynamoDBSaver

__all__ = [
    "CacheConfig",
    "CheckpointCorruptionError",
    "CheckpointFormatError",
    "CheckpointNotFoundError",
    "CheckpointSerializationError",
    "CheckpointerConfig",
    "CheckpointerConfigurationError",
    "CheckpointerError",
    "CheckpointerInputError",
    "CheckpointerUnavailableError",
    "DynamoDBSaver",
    "OwnerDeletion",
    "RunSummary",
    "StoreConfig",
    "ThreadBusyError",
    "ThreadLockLostError",
    "ThreadPage",
    "ThreadSummary",
    "__version__",
    "create_cache",
    "create_checkpointer",
    "create_store",
    "open_cache",
    "open_checkpointer",
    "open_store",
]

# Names are loaded when they are first asked for: the command line prints its version and its documents without a saver,
# and who makes a saver needs nothing of the configuration. Those that are not here are in `config`.
_LATER = {
    "DynamoDBSaver": "saver",
    "RunSummary": "_operations.overview",
    "OwnerDeletion": "_operations.delete_owner",
    "ThreadPage": "_operations.threads",
    "ThreadSummary": "_operations.threads",
}


def _open_for_agent_server(name: str) -> Any:
    return getattr(import_module(f"{__name__}.server"), name)()


# LangGraph's Agent Server looks for a path at its last dot, whatever it has of colons: for
# `langgraph.checkpoint.dynamodb.server:checkpointer` it asks this module for a name with a colon (langgraph-api 0.16).
for _component in ("checkpointer", "store"):
    globals()[f"server:{_component}"] = partial(_open_for_agent_server, _component)


# Type checkers would take it as a promise that there is any name at all.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load the saver, what it returns, or the package `config`."""
        if name in __all__:
            return getattr(import_module(f"{__name__}.{_LATER.get(name, 'config')}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
