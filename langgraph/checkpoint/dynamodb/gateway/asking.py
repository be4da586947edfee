"""Requests to the table that one request of a client makes: their units and trail, and who sends them again.

If the table throttles:

- As long as nothing has been done, the client does: it sends its request again, and waits meanwhile without a
  connection, a place or a Lambda environment of the service.
- Later the service does. If the client began anew, it would repeat what was done, and a large put might never end.

So each failed request is sent again by one of the two. Both wait as a saver on the table does: the client tells how
many attempts there were, and the service goes on counting, and tells it in its answer. See docs/decisions/0009.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb._runtime.accounting import asking_units
from langgraph.checkpoint.dynamodb._runtime.attempts import Attempts
from langgraph.checkpoint.dynamodb._runtime.clients import Clients
from langgraph.checkpoint.dynamodb._runtime.drivers import Asend
from langgraph.checkpoint.dynamodb._runtime.failures import is_transient, outage_remedy
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.gateway.audit import Trail
from langgraph.checkpoint.dynamodb.gateway.concurrency import Slot
from langgraph.checkpoint.dynamodb.gateway.problems import unanswered
from langgraph.checkpoint.dynamodb.gateway.units import Units

HEADER = "X-Attempts"
# A client with more attempts than this waits as long as it ever does.
_ATTEMPTS_MAX = 100
# What is left of the client's time for the answer.
_ANSWER_SECONDS = 0.5


@dataclass
class _Asking:
    """The record of what one request of a client has done at the table."""

    place: Slot
    until: float
    """When to give up, by the monotonic clock."""
    before: int
    """How many attempts have failed in the client's earlier requests."""
    attempts: int
    """How many have failed in all, of whatever request to the table was sent most often."""
    units: Units | None
    trail: Trail | None
    has_begun: bool = False
    """Whether a request to the table has succeeded."""

    async def send(self, asend: Asend, call: Call) -> Any:
        """Send a request to the table, and note it."""
        try:
            response = await asend(call if self.units is None else asking_units(call))
        except Exception as error:
            if self.trail is not None:
                self.trail.add(call, getattr(error, "response", {}))
            raise
        if self.trail is not None:
            self.trail.add(call, response)
        if self.units is not None:
            self.units.add(call, response)
        self.has_begun = True
        return response


_asking: ContextVar[_Asking] = ContextVar("langgraph_dynamodb_asking")


@contextmanager
def asking(
    place: Slot, seconds: float, headers: Headers, units: Units | None = None, trail: Trail | None = None
) -> Iterator[None]:
    """Let the requests to the table in the block belong to one request of a client.

    Args:
        place: The place of the request.
        seconds: How long its client waits.
        headers: Its headers, which tell how many attempts there were before.
        units: Where to count the units of the requests; `None` to count none.
        trail: The request's audit trail, if there is one.

    Raises:
        ProblemError: The table throttles, or does not answer.
    """
    given = headers.get(HEADER, "")
    attempts = min(int(given[:9]), _ATTEMPTS_MAX) if given.isdecimal() else 0
    until = time.monotonic() + seconds - _ANSWER_SECONDS
    now = _Asking(place, until, attempts, attempts, units, trail)
    token = _asking.set(now)
    try:
        yield
    except Exception as error:
        if is_transient(error):
            raise unanswered(error, now.attempts) from error
        raise
    finally:
        _asking.reset(token)


def patient(clients: Clients, retry_seconds: float) -> Asend:
    """Return a function that makes a request to the table for whatever request of a client is running.

    Args:
        clients: The clients of the service's saver.
        retry_seconds: For how many seconds at most to send a request again.
    """

    async def asend(call: Call) -> Any:
        now = _asking.get()
        if clients.has_own_retries:
            return await now.send(clients.asend, call)
        attempts = _attempts(now, call, retry_seconds)
        while True:
            try:
                with now.place.busy():
                    return await now.send(clients.asend_once, call)
            except Exception as error:
                if not is_transient(error):
                    raise
                now.attempts = max(now.attempts, attempts.number + 1)
                wait = attempts.seconds_to_next(error) if now.has_begun else None
                if wait is None:
                    raise
            await now.place.rest(wait)

    return asend


def _attempts(now: _Asking, call: Call, retry_seconds: float) -> Attempts:
    def remedy(error: Exception) -> str:
        return outage_remedy(str(call.params.get("TableName", "of the gateway")), error)

    return Attempts(min(retry_seconds, now.until - time.monotonic()), is_transient, remedy, now.before)


async def sleep(seconds: float) -> None:
    """Wait between requests to the table, without a place."""
    await _asking.get().place.rest(seconds)
