"""Requests as an ASGI server hands them on, made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import HTTPConnection


def connection(headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), **scope: Any) -> HTTPConnection:
    """A request with these headers."""
    given = headers.items() if isinstance(headers, Mapping) else headers
    encoded = [(name.lower().encode(), value.encode()) for name, value in given]
    whole = {
        "type": "http",
        "method": "GET",
        "path": "/about",
        "query_string": b"",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        **scope,
    }
    return HTTPConnection({**whole, "headers": encoded})
