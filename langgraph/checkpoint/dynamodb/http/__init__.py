"""Checkpointer, store and node cache for agents without AWS access: they speak HTTP to the gateway.

A layer above the saver. It loads neither boto3 nor any other AWS library, and httpx only with the first request.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .saver import HttpCheckpointSaver

if TYPE_CHECKING:
    from .node_cache import HttpCache
    from .store import HttpStore

__all__ = ["HttpCache", "HttpCheckpointSaver", "HttpStore"]

# An agent that uses neither does not load them.
_LATER = {"HttpCache": "node_cache", "HttpStore": "store"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
