"""The HTTP service for agents without AWS access. It owns the table and runs the saver's operations for its clients.

The functions of `thread_calls`, `memory_calls` and `node_calls` are the only description of what it serves, and `call`
makes the rest of them. The clients use the same functions, so importing them does not load the web framework. The other
modules authenticate callers, enforce limits and build responses. The service never opens the values that it stores.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import create_gateway
    from .authentication import Authenticate, anybody_on_this_machine
    from .limits import Limits
    from .serving import Principal
    from .settings import configured_gateway

__all__ = [
    "Authenticate",
    "Limits",
    "Principal",
    "anybody_on_this_machine",
    "configured_gateway",
    "create_gateway",
]

_MODULES = {
    "Authenticate": "authentication",
    "Limits": "limits",
    "Principal": "serving",
    "anybody_on_this_machine": "authentication",
    "configured_gateway": "settings",
    "create_gateway": "app",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
