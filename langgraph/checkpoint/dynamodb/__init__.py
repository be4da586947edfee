"""A LangGraph checkpoint saver on one DynamoDB table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    CheckpointSerializationError,
    ThreadBusyError,
    ThreadLockLostError,
)
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

if TYPE_CHECKING:
    from langgraph.checkpoint.dynamodb.config import (
        CheckpointerConfig,
        acreate_checkpointer,
        create_checkpointer,
    )

__all__ = [
    "CheckpointCorruptionError",
    "CheckpointFormatError",
    "CheckpointNotFoundError",
    "CheckpointSerializationError",
    "CheckpointerConfig",
    "CheckpointerConfigurationError",
    "CheckpointerError",
    "CheckpointerInputError",
    "DynamoDBSaver",
    "ThreadBusyError",
    "ThreadLockLostError",
    "acreate_checkpointer",
    "create_checkpointer",
]

_FROM_CONFIG = ("CheckpointerConfig", "acreate_checkpointer", "create_checkpointer")


def _checkpointer_of_agent_server() -> Any:
    return import_module(f"{__name__}.server").checkpointer()


# LangGraph's Agent Server looks for a path at its last dot, whatever it has of colons: for
# `langgraph.checkpoint.dynamodb.server:checkpointer` it asks this module for a name with a colon (langgraph-api 0.16).
globals()["server:checkpointer"] = _checkpointer_of_agent_server


# Type checkers would take it as a promise that there is any name at all.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load the room `config` when it is first asked for: who makes a saver needs none of it."""
        if name in _FROM_CONFIG:
            return getattr(import_module(f"{__name__}.config"), name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
