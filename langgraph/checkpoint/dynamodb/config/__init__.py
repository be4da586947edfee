"""Configuration of the checkpointer, the store and the node cache, from a file, a dict or the environment.

A package above the saver. It makes savers, stores and caches, and nothing below it imports it, so importing the saver
loads none of it. It reads and checks everything before it opens anything. A message about a mistake has the file, the
key and what may stand there, but never a value, since any value may be a secret.
"""

from .creation import (
    create_cache,
    create_checkpointer,
    create_store,
    open_cache,
    open_checkpointer,
    open_store,
)
from .model import CacheConfig, CheckpointerConfig, StoreConfig

__all__ = [
    "CacheConfig",
    "CheckpointerConfig",
    "StoreConfig",
    "create_cache",
    "create_checkpointer",
    "create_store",
    "open_cache",
    "open_checkpointer",
    "open_store",
]
