"""Checkpointer, store and node cache for agents without AWS access: they speak HTTP to the gateway.

A layer above the saver. It loads neither boto3 nor any other AWS library.
"""

from .node_cache import HttpCache
from .saver import HttpCheckpointSaver
from .store import HttpStore

__all__ = ["HttpCache", "HttpCheckpointSaver", "HttpStore"]
