"""Requests to the table that one request of a client makes: their trail and deadline, and who repeats them.

If the table throttles:

- Until something was stored, the client does: it sends its request again, and waits meanwhile without a connection, a
  place or a Lambda environment of the service. It waits as a saver on the table does.
- Later the service does. If the client began anew, it would repeat what was stored, and a large put might never end.

So each failed request is sent again by one of the two. See docs/decisions/0009.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers

from .._format.wire import DEADLINE_HEADER
from .._runtime.accounting import READS, TableAccounting
from .._runtime.attempts import Attempts
from .._runtime.clients import Clients
from .._runtime.drivers import Asend
from .._runtime.failures import is_transient, outage_remedy
from .._runtime.steps import Call
from ..errors import CheckpointerError
from .limits import Slot
from .problems import ProblemError, no_response

# What is left of the client's time for the response.
_RESPONSE_SECONDS = 0.5
_ACCOUNTING = TableAccounting()


@dataclass
class Trail:
    """The audit trail of one request of a client: which threads it reached, and which requests to AWS it made.

    The access log knows the principal, and CloudTrail knows the keys of items but only the gateway's role. The ids of
    AWS's requests join the two. A thread is named by a keyed digest, so that who reads the log learns no id from it,
    and who has the key can look for one. docs/gateway.md, "Who read a thread", has the commands.
    """

    key: bytes = field(repr=False)
    threads: set[str] = field(default_factory=set)
    request_ids: list[str] = field(default_factory=list)

    def add(self, call: Call, response: Mapping[str, Any]) -> None:
        """Note a request to the table, and what AWS calls it."""
        metadata = response.get("ResponseMetadata", {})
        self.add_threads(_ACCOUNTING.threads_of(call))
        if "RequestId" in metadata:
            self.request_ids.append(metadata["RequestId"])

    def add_threads(self, thread_ids: Iterable[str]) -> None:
        """Note threads that were reached. A request may share a read that another one has begun."""
        self.threads |= {hmac.new(self.key, each.encode(), hashlib.sha256).hexdigest() for each in thread_ids}

    def fields(self) -> dict[str, list[str]]:
        """Return what the access log has of it."""
        return {"threads": sorted(self.threads), "aws_request_ids": self.request_ids}


def seconds_left(headers: Headers) -> float:
    """Return how many seconds the client still waits for a request. Without a deadline, return infinity.

    A client that gets no response asks again. The request that it gave up may still arrive later: a deletion would then
    remove what was stored since. So a request says until when its client waits, by the clock of each `Date`.
    """
    given = headers.get(DEADLINE_HEADER)
    if given is None:
        return math.inf
    try:
        deadline = float(given)
    except ValueError:
        deadline = math.nan
    if math.isnan(deadline):
        raise ProblemError(
            400, f"{DEADLINE_HEADER} is not a number; send epoch seconds by the clock of the service's Date"
        )
    left = deadline - time.time()
    if left < 0:
        msg = (
            f"the request arrived after its {DEADLINE_HEADER}, so nothing was done; send it again, by the clock of this"
            " response's Date. If sending it takes that long, give the client a longer timeout"
        )
        raise ProblemError(503, msg, CheckpointerError, retry_seconds=0)
    return left


@dataclass
class _Asking:
    """The record of what one request of a client has done at the table."""

    place: Slot
    until: float
    """When to give up, by the clock of the event loop."""
    trail: Trail | None
    on_stored: Callable[[int], None]
    has_read: bool = False
    """Whether a read of the table has succeeded."""
    has_stored: bool = False
    """Whether a write has."""

    async def send(self, asend: Asend, call: Call) -> Any:
        """Send a request to the table, and note it."""
        try:
            response = await asend(call)
        except Exception as error:
            if self.trail is not None:
                self.trail.add(call, getattr(error, "response", {}))
            raise
        if self.trail is not None:
            self.trail.add(call, response)
        self.has_read |= call.method in READS
        self.has_stored |= call.method not in READS
        self.on_stored(_ACCOUNTING.bytes_written(call))
        return response

    def goes_on(self, call: Call) -> bool:
        """Tell whether a request to the table is sent again here.

        Otherwise its client repeats all of it, with waits that grow, since only the client knows of all attempts. But
        what was stored is not stored twice, nor is a long list read again from its beginning.
        """
        return self.has_stored or (self.has_read and call.method in READS)


_asking: ContextVar[_Asking] = ContextVar("langgraph_dynamodb_asking")


@contextmanager
def asking(
    place: Slot, until: float, trail: Trail | None, on_stored: Callable[[int], None]
) -> Iterator[None]:
    """Let the requests to the table in the block belong to one request of a client, which waits until then."""
    token = _asking.set(_Asking(place, until - _RESPONSE_SECONDS, trail, on_stored))
    try:
        yield
    except Exception as error:
        if is_transient(error):
            raise no_response(error) from error
        raise
    finally:
        _asking.reset(token)


def patient(clients: Clients, retry_seconds: float) -> Asend:
    """Return a function that makes a request to the table for whatever request of a client is running."""

    async def asend(call: Call) -> Any:
        now = _asking.get()
        attempts = _attempts(now, call, retry_seconds)
        while True:
            try:
                with now.place.busy():
                    return await now.send(clients.asend_once, call)
            except Exception as error:
                wait = attempts.seconds_to_next(error) if now.goes_on(call) else None
                if wait is None:
                    raise
            await now.place.rest(wait)

    return asend


def _attempts(now: _Asking, call: Call, retry_seconds: float) -> Attempts:
    def remedy(error: Exception) -> str:
        return outage_remedy(str(call.params.get("TableName", "of the gateway")), error)

    seconds = now.until - asyncio.get_running_loop().time()
    return Attempts(min(retry_seconds, seconds), is_transient, remedy)


async def sleep(seconds: float) -> None:
    """Wait between requests to the table, without a place."""
    await _asking.get().place.rest(seconds)
