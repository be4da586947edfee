"""The checkpointer as a matter of configuration: which one, with which options, from a file, a dict or the environment.

A room above the saver: it makes savers, and nothing below it knows that it is there, so importing the saver loads none
of it. It reads and checks everything before it opens anything. What it says about a mistake has the file, the line,
the key and what may stand there, but never a value, since any of them may be a secret.
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
