"""The audit trail of one request: which threads it reached, and which requests to AWS it made.

The access log knows the principal, and CloudTrail knows the keys of items but only the gateway's role. The ids of AWS's
requests join the two. A thread is named by a keyed digest, so that who reads the log learns no id from it, and who has
the key can look for one. docs/gateway.md, "Who read a thread", has the commands.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb._runtime.accounting import TableAccounting
from langgraph.checkpoint.dynamodb._runtime.drivers import Asend
from langgraph.checkpoint.dynamodb._runtime.steps import Call

_ACCOUNTING = TableAccounting(asks_units=False)


@dataclass
class Trail:
    """The threads and the requests to the table that one request of a client led to."""

    key: bytes
    threads: set[str] = field(default_factory=set)
    request_ids: list[str] = field(default_factory=list)

    def add(self, call: Call, metadata: dict[str, Any]) -> None:
        """Note a request to the table, and what AWS calls it."""
        self.add_threads(_ACCOUNTING.threads_of(call))
        if "RequestId" in metadata:
            self.request_ids.append(metadata["RequestId"])

    def add_threads(self, thread_ids: Iterable[str]) -> None:
        """Note threads that were reached."""
        self.threads |= {hmac.new(self.key, each.encode(), hashlib.sha256).hexdigest() for each in thread_ids}

    def fields(self) -> dict[str, list[str]]:
        """Return what the access log has of it."""
        return {"threads": sorted(self.threads), "aws_request_ids": self.request_ids}


_trail: ContextVar[Trail | None] = ContextVar("langgraph_dynamodb_trail", default=None)


@contextmanager
def following(trail: Trail | None) -> Iterator[None]:
    """Note the requests to the table that begin in the block."""
    token = _trail.set(trail)
    try:
        yield
    finally:
        _trail.reset(token)


def note_threads(thread_ids: Iterable[str | None]) -> None:
    """Note the threads that a request names. It may share a read, or a copy, that another request has begun."""
    trail = _trail.get()
    if trail is not None:
        trail.add_threads(each for each in thread_ids if each is not None)


def followed(asend: Asend) -> Asend:
    """Return a function that makes a request and notes it, where there is a trail."""

    async def send(call: Call) -> Any:
        trail = _trail.get()
        if trail is None:
            return await asend(call)
        try:
            response = await asend(call)
        except Exception as error:
            trail.add(call, getattr(error, "response", {}).get("ResponseMetadata", {}))
            raise
        trail.add(call, response.get("ResponseMetadata", {}))
        return response

    return send
