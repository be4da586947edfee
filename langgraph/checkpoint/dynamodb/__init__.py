"""A LangGraph checkpoint saver on one DynamoDB table."""

from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    CheckpointSerializationError,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

__all__ = [
    "CheckpointCorruptionError",
    "CheckpointFormatError",
    "CheckpointNotFoundError",
    "CheckpointSerializationError",
    "CheckpointerConfigurationError",
    "CheckpointerError",
    "CheckpointerInputError",
    "DynamoDBSaver",
    "ThreadBusyError",
]
