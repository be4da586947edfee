"""Configuration of the checkpointer: its type and options, from a file, a dict or the environment.

A package above the saver. It makes savers, and nothing below it imports it, so importing the saver loads none of it. It
reads and checks everything before it opens anything. A message about a mistake has the file, the line, the key and what
may stand there, but never a value, since any value may be a secret.
"""

from langgraph.checkpoint.dynamodb.config.creation import (
    acreate_checkpointer,
    create_checkpointer,
    open_checkpointer,
)
from langgraph.checkpoint.dynamodb.config.model import CheckpointerConfig
from langgraph.checkpoint.dynamodb.config.types import CheckpointerType, OptionError, Options

__all__ = [
    "CheckpointerConfig",
    "CheckpointerType",
    "OptionError",
    "Options",
    "acreate_checkpointer",
    "create_checkpointer",
    "open_checkpointer",
]
