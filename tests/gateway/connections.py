"""Requests as an ASGI server hands them on, made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import HTTPConnection


def connection(
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), event: Any = None, **scope: Any
) -> HTTPConnection:
    """A request with these headers, and with the event of a Lambda function where one is given."""
    given = headers.items() if isinstance(headers, Mapping) else headers
    encoded = [(name.lower().encode(), value.encode()) for name, value in given]
    event_of_aws = {} if event is None else {"aws.event": event}
    whole = {
        "type": "http",
        "method": "GET",
        "path": "/about",
        "query_string": b"",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        **event_of_aws,
        **scope,
    }
    return HTTPConnection({**whole, "headers": encoded})


def signed_by(arn: Any) -> dict[str, Any]:
    """The event of a request whose signature a function URL has verified."""
    return {"version": "2.0", "requestContext": {"authorizer": {"iam": {"userArn": arn}}}}


def vouched_for(claims: Any) -> dict[str, Any]:
    """The event of a request whose token a JWT authorizer has verified."""
    return {"version": "2.0", "requestContext": {"authorizer": {"jwt": {"claims": claims}}}}
