"""Shares: how many requests a process works on at a time, how many wait, and how many bytes they have in memory.

A tenant may take more of any of these while it has less than three times what it leaves to the others, and so may a
principal within its tenant. So one tenant alone gets three quarters of everything, and a second one three quarters of
the rest: those who take all they can still leave something to whoever comes next.

A request that finds no place waits. A free place goes to the tenant that has the fewest places, within it to the
principal that has the fewest, and then to its request that has waited longest. A request has a place only while the
service works for it, not while its body arrives or its answer is read.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import TypeAlias

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import overloaded

_TIMES_THE_REST = 3
# The memory of a request without its body: its connection, its task and its headers.
_REQUEST_BYTES = 64 << 10
# All requests together may have as many bytes as this many bodies of the largest size. While it is served, a body needs
# up to five times its size in memory.
_BODIES_MAX = 4


class Shares:
    """The resource, and how much of it each principal has."""

    def __init__(self, total: int) -> None:
        """Start with all of it free.

        Args:
            total: How much there is.
        """
        self._free = total
        self._held: Counter[tuple[str | None, ...]] = Counter()

    def may_take(self, who: Principal, amount: int = 1) -> bool:
        """Tell whether a principal may have more."""
        left_to_tenant = (_TIMES_THE_REST * self._free - self.of_tenant(who.tenant)) / (1 + _TIMES_THE_REST)
        return amount <= self._free and self.of(who) < _TIMES_THE_REST * left_to_tenant

    def take(self, who: Principal, amount: int = 1) -> None:
        """Assign an amount to a principal."""
        self._add(who, amount)

    def give_back(self, who: Principal, amount: int = 1) -> None:
        """Return an amount of a principal to the free part."""
        self._add(who, -amount)

    def of_tenant(self, tenant: str | None) -> int:
        """Return how much a tenant has."""
        return self._held[tenant,]

    def of(self, who: Principal) -> int:
        """Return how much a principal has."""
        return self._held[who.tenant, who.name]

    def _add(self, who: Principal, amount: int) -> None:
        self._free -= amount
        for key in ((who.tenant,), (who.tenant, who.name)):
            self._held[key] += amount
            if not self._held[key]:
                del self._held[key]


class Held(AbstractContextManager["Held"]):
    """The bytes of bodies and answers that one request has in memory, which are free again after the block."""

    def __init__(self, shares: Shares, who: Principal) -> None:
        """Start with those of a request without a body.

        Raises:
            ProblemError: The principal has its share already; a 503.
        """
        self._shares = shares
        self._who = who
        self._bytes = 0
        self.add(_REQUEST_BYTES)

    def add(self, count: int) -> None:
        """Count more bytes.

        Args:
            count: How many more.

        Raises:
            ProblemError: The principal would have more than its share; a 503.
        """
        if not self._shares.may_take(self._who, count):
            raise overloaded()
        self._shares.take(self._who, count)
        self._bytes += count

    def __exit__(self, *_error: object) -> None:
        """Give all of it back."""
        self._shares.give_back(self._who, self._bytes)


class Holding:
    """The bytes of bodies and answers that one process has in memory."""

    def __init__(self, limits: Limits) -> None:
        """Derive the total from the limits."""
        largest = max(limits.body_bytes_max, limits.decompressed_bytes_max)
        self._shares = Shares(_BODIES_MAX * (largest + _REQUEST_BYTES))

    def request(self, who: Principal) -> Held:
        """Count the memory of a request.

        Raises:
            ProblemError: The principal has its share already; a 503.
        """
        return Held(self._shares, who)


_Turn: TypeAlias = asyncio.Future[None]
# A request that waits takes memory, and time to find out whose turn is next.
_WAITING_MAX = 1000


class Concurrency:
    """The places of one process."""

    def __init__(self, limits: Limits) -> None:
        """Take from the limits how many requests are served at a time."""
        self._places = Shares(limits.in_flight_max)
        self._queue = Shares(_WAITING_MAX)
        # In the order in which their tenants, and they themselves, had their last turn, or began to wait.
        self._waiting: dict[Principal, deque[_Turn]] = {}

    def waiting(self) -> Counter[str | None]:
        """Return how many requests of each tenant wait for a place."""
        return Counter(who.tenant for who, turns in self._waiting.items() for _ in turns)

    @asynccontextmanager
    async def place(self, who: Principal) -> AsyncIterator[Slot]:
        """Hold a place for a principal while the block runs.

        Raises:
            ProblemError: Too many requests wait already; a 503.
        """
        await self.enter(who)
        place = Slot(self, who)
        try:
            yield place
        finally:
            place.end()

    async def enter(self, who: Principal) -> None:
        """Take a place for a principal, when it is its turn.

        Raises:
            ProblemError: Too many requests wait already; a 503.
        """
        # If a place is free, those who wait have their share already.
        if self._places.may_take(who):
            self._places.take(who)
            return
        if not self._queue.may_take(who):
            raise overloaded()
        self._queue.take(who)
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(who, turn)
            else:
                # The turn came just as its request was cancelled.
                self.leave(who)
            raise

    def leave(self, who: Principal) -> None:
        """Give back a place of a principal, to whose turn it is."""
        self._places.give_back(who)
        while (next_ := self._next()) is not None:
            turn = self._waiting[next_][0]
            self._forget(next_, turn)
            # Tenants, and principals in them, go behind those who have had no turn since.
            waiting = sorted(
                self._waiting.items(), key=lambda each: (each[0].tenant == next_.tenant, each[0] is next_)
            )
            self._waiting = dict(waiting)
            # A turn that is already done was cancelled a moment ago.
            if not turn.done():
                self._places.take(next_)
                turn.set_result(None)

    def _next(self) -> Principal | None:
        """Return whose turn it is: whoever has the fewest places; among equals, the first in the order of the dict."""
        return min(
            filter(self._places.may_take, self._waiting),
            key=lambda each: (self._places.of_tenant(each.tenant), self._places.of(each)),
            default=None,
        )

    def _forget(self, who: Principal, turn: _Turn) -> None:
        turns = self._waiting.get(who, deque())
        if turn in turns:
            turns.remove(turn)
            self._queue.give_back(who)
            if not turns:
                del self._waiting[who]


class Slot:
    """The place of one request, which is given back while all that the request does is wait to ask the table again."""

    def __init__(self, places: Concurrency, who: Principal) -> None:
        """Begin with a place of a principal."""
        self._places = places
        self._who = who
        self._busy = 0
        self._resting = 0
        self._is_held = True
        self._is_over = False
        self._taking = asyncio.Lock()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Need the place while the block runs."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._give_back()

    async def rest(self, seconds: float) -> None:
        """Wait without the place, if nothing else of the request needs it, and take it again.

        Raises:
            ProblemError: There is no place after the wait; a 503.
        """
        self._resting += 1
        self._give_back()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._resting -= 1
        async with self._taking:
            if not self._is_held and not self._is_over:
                await self._places.enter(self._who)
                self._is_held = True
                self._end_if_over()

    def end(self) -> None:
        """Give back the place for good."""
        self._is_over = True
        if self._is_held:
            self._is_held = False
            self._places.leave(self._who)

    def _end_if_over(self) -> None:
        # The request may have ended while it waited for the place.
        if self._is_over:
            self.end()

    def _give_back(self) -> None:
        if self._is_held and self._resting and not self._busy:
            self._is_held = False
            self._places.leave(self._who)
