"""Requests to the table that one request of a client makes: their record and deadline, and who repeats them.

If the table throttles:

- Until something was stored, the client does: it sends its request again, and waits meanwhile without a connection, a
  place or a Lambda environment of the service. It waits as a saver on the table does.
- Later the service does. If the client began anew, it would repeat what was stored, and a large put might never end.

So each failed request is sent again by one of the two. See docs/decisions/0009.
"""

import asyncio
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from .._format.wire import DEADLINE_HEADER
from .._runtime import events, failures
from .._runtime.attempts import Attempts
from .._runtime.clients import Clients
from .._runtime.drivers import Asend
from .._runtime.steps import Call
from ..errors import CheckpointerError
from . import limits, problems
from .access_log import RequestRecord

# What is left of the client's time for the response.
_RESPONSE_SECONDS = 0.5
_ACCOUNTING = events.TableAccounting()


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
        raise problems.ProblemError(
            400, f"{DEADLINE_HEADER} is not a number; send epoch seconds by the clock of the service's Date"
        )
    left = deadline - time.time()
    if left < 0:
        msg = (
            f"the request arrived after its {DEADLINE_HEADER}, so nothing was done; send it again, by the clock of this"
            " response's Date. If sending it takes that long, give the client a longer timeout"
        )
        raise problems.ProblemError(503, msg, CheckpointerError, retry_seconds=0)
    return left


@dataclass
class _Asking:
    """The record of what one request of a client has done at the table."""

    place: limits.Slot
    until: float
    """When to give up, by the clock of the event loop."""
    record: RequestRecord
    has_read: bool = False
    """Whether a read of the table has succeeded."""
    has_stored: bool = False
    """Whether a write has."""

    async def send(self, asend: Asend, call: Call) -> Any:
        """Send a request to the table, and note it."""
        try:
            response = await asend(call)
        except Exception as error:
            self._note(call, getattr(error, "response", {}))
            raise
        self._note(call, response)
        self.has_read |= call.method in events.READS
        self.has_stored |= call.method not in events.READS
        self.record.stored_bytes += _ACCOUNTING.bytes_written(call)
        return response

    def _note(self, call: Call, response: Mapping[str, Any]) -> None:
        """Note which threads a request to the table reached, and what AWS calls the request."""
        self.record.threads.update(_ACCOUNTING.threads_of(call))
        metadata = response.get("ResponseMetadata", {})
        if "RequestId" in metadata:
            self.record.aws_request_ids.append(metadata["RequestId"])

    def goes_on(self, call: Call) -> bool:
        """Tell whether a request to the table is sent again here.

        Otherwise its client repeats all of it, with waits that grow, since only the client knows of all attempts. But
        what was stored is not stored twice, nor is a long list read again from its beginning.
        """
        return self.has_stored or (self.has_read and call.method in events.READS)


_asking: ContextVar[_Asking] = ContextVar("langgraph_dynamodb_asking")


@contextmanager
def asking(place: limits.Slot, until: float, record: RequestRecord) -> Iterator[None]:
    """Let the requests to the table in the block belong to one request of a client, which waits until then."""
    token = _asking.set(_Asking(place, until - _RESPONSE_SECONDS, record))
    try:
        yield
    except Exception as error:
        if failures.is_transient(error):
            raise problems.no_response(error) from error
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
                async with now.place.busy():
                    return await now.send(clients.asend_once, call)
            except Exception as error:
                wait = attempts.seconds_to_next(error) if now.goes_on(call) else None
                if wait is None:
                    raise
            await now.place.rest(wait)

    return asend


def _attempts(now: _Asking, call: Call, retry_seconds: float) -> Attempts:
    def remedy(error: Exception) -> str:
        return failures.outage_remedy(str(call.params.get("TableName", "of the gateway")), error)

    seconds = now.until - asyncio.get_running_loop().time()
    return Attempts(min(retry_seconds, seconds), failures.is_transient, remedy)


async def sleep(seconds: float) -> None:
    """Wait between requests to the table, without a place."""
    await _asking.get().place.rest(seconds)
