"""Requests to the table that one request of a client makes: their units, trail and deadline, and who repeats them.

If the table throttles:

- As long as nothing has been done, the client does: it sends its request again, and waits meanwhile without a
  connection, a place or a Lambda environment of the service.
- Later the service does. If the client began anew, it would repeat what was done, and a large put might never end.

So each failed request is sent again by one of the two. Both wait as a saver on the table does: the client tells how
many attempts there were, and the service goes on counting, and tells it in its answer. See docs/decisions/0009.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb._runtime.accounting import READS, TableAccounting, asking_units, units_of
from langgraph.checkpoint.dynamodb._runtime.attempts import Attempts
from langgraph.checkpoint.dynamodb._runtime.clients import Clients
from langgraph.checkpoint.dynamodb._runtime.drivers import Asend
from langgraph.checkpoint.dynamodb._runtime.failures import is_transient, outage_remedy
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError, unanswered
from langgraph.checkpoint.dynamodb.gateway.shares import Slot

DEADLINE_HEADER = "X-Deadline"
ATTEMPTS_HEADER = "X-Attempts"
UNITS_HEADER = "X-Units"
# A client with more attempts than this waits as long as it ever does.
_ATTEMPTS_MAX = 100
# What is left of the client's time for the answer.
_ANSWER_SECONDS = 0.5
_ACCOUNTING = TableAccounting()


@dataclass
class Units:
    """The capacity that one request of a client consumed, for a client that asks for it. No other request is measured.

    A tenant's scan or query of an index also reads what belongs to others, and its units would tell how much. So a
    tenant gets no units for a request that makes one.
    """

    has_tenant: bool
    """Whether the client is one of several tenants of the table."""
    read: float | None = None
    write: float | None = None
    has_secret: bool = False
    """Whether a request read what may belong to others."""

    def add(self, call: Call, response: Any) -> None:
        """Count a request to the table."""
        if call.method in READS:
            self.read = (self.read or 0.0) + units_of(response)
        else:
            self.write = (self.write or 0.0) + units_of(response)
        self.has_secret |= call.method == "scan" or "IndexName" in call.params

    def added_to(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return an answer with the units, if its client may know them."""
        if self.has_secret and self.has_tenant:
            return document
        return document | {"units": {"read": self.read, "write": self.write}}


def asked_units(headers: Headers, principal: Principal) -> Units | None:
    """Return where to count the units of a request; `None` if its client does not ask for them, or may not know.

    A principal that is bound to an owner gets none: where it is told that there is no such thread, there may be one of
    somebody else.
    """
    if UNITS_HEADER not in headers or principal.owner_name is not None:
        return None
    return Units(has_tenant=principal.tenant is not None)


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
        """Note threads that were reached. A request may share a read, or a copy, that another one has begun."""
        self.threads |= {hmac.new(self.key, each.encode(), hashlib.sha256).hexdigest() for each in thread_ids}

    def fields(self) -> dict[str, list[str]]:
        """Return what the access log has of it."""
        return {"threads": sorted(self.threads), "aws_request_ids": self.request_ids}


def seconds_left(headers: Headers) -> float:
    """Return how many seconds the client still waits for a request. Without a deadline, return infinity.

    A client that gets no answer asks again. The request that it gave up may still arrive later: a deletion would then
    remove what was stored since. So a request says until when its client waits, by the clock of every answer's `Date`.

    Args:
        headers: The request's headers; the deadline is in epoch seconds.

    Raises:
        ProblemError: The deadline has passed (a 503, since a client that still waits may ask again), or it is no
            number.
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
            " answer's Date. If sending it takes that long, give the client a longer timeout"
        )
        raise ProblemError(503, msg, CheckpointerError, retry_seconds=0)
    return left


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
    given = headers.get(ATTEMPTS_HEADER, "")
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
