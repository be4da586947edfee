"""Places: how many requests are worked on at a time, and whose turn it is next.

Who finds no place waits. A place that is free goes to the tenant that has the fewest, of that one to the principal that
has the fewest, and of that one to the request that has waited longest. How many each may have, `Shares` says. A request
has a place only while the service works for it, and not while a body comes or an answer is read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import overloaded
from langgraph.checkpoint.dynamodb.gateway.shares import Shares

K = TypeVar("K")
_Turn: TypeAlias = asyncio.Future[None]


class Places:
    """The places of one process."""

    def __init__(self, limits: Limits) -> None:
        """Take how many are served, how many may wait, and for how long."""
        self._shares = Shares(limits.in_flight_max)
        self._waiting_max = limits.waiting_max
        self._waiting_seconds_max = limits.request_seconds_max
        # Tenants and principals stand in the order in which they had their last turn, or began to wait.
        self._waiting: dict[str | None, dict[Principal, deque[_Turn]]] = {}

    @asynccontextmanager
    async def place(self, who: Principal) -> AsyncIterator[None]:
        """Have a place of a principal's while the block runs.

        Raises:
            ProblemError: Too many wait already, or it waited for too long; a 503.
        """
        await self._enter(who)
        try:
            yield
        finally:
            self._leave(who)

    async def _enter(self, who: Principal) -> None:
        # Where a place is free, those who wait have their share already.
        if self._shares.may_take(who):
            self._shares.take(who)
            return
        self._make_room_for(who)
        loop = asyncio.get_running_loop()
        turn: _Turn = loop.create_future()
        self._waiting.setdefault(who.tenant, {}).setdefault(who, deque()).append(turn)
        timer = loop.call_later(self._waiting_seconds_max, self._send_away, who, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(who, turn)
            elif turn.exception() is None:
                # The turn came just when its request was given up.
                self._leave(who)
            raise
        finally:
            timer.cancel()

    def _make_room_for(self, who: Principal) -> None:
        """Where too many wait, send away the last one of who has most; that may be the one who comes."""
        sizes = {tenant: sum(map(len, own.values())) for tenant, own in self._waiting.items()}
        if sum(sizes.values()) < self._waiting_max:
            return
        tenant = _greediest(sizes, who.tenant)
        own = {each: len(turns) for each, turns in self._waiting.get(tenant, {}).items()}
        greediest = _greediest(own, who) if tenant == who.tenant else max(own, key=lambda each: own[each])
        if greediest == who:
            raise overloaded()
        self._send_away(greediest, self._waiting[tenant][greediest][-1])

    def _send_away(self, who: Principal, turn: _Turn) -> None:
        self._forget(who, turn)
        if not turn.done():
            turn.set_exception(overloaded())

    def _leave(self, who: Principal) -> None:
        self._shares.give_back(who)
        while (next_ := self._next()) is not None:
            turn = self._waiting[next_.tenant][next_][0]
            self._forget(next_, turn)
            # Behind those who have had no turn meanwhile.
            own = self._waiting.pop(next_.tenant, None)
            if own is not None:
                if next_ in own:
                    own[next_] = own.pop(next_)
                self._waiting[next_.tenant] = own
            # One that is done already was given up a moment ago.
            if not turn.done():
                self._shares.take(next_)
                turn.set_result(None)

    def _next(self) -> Principal | None:
        """Whose turn it is: of those who have equally few, the one who has waited longest, as a dict keeps them."""
        entitled = (each for own in self._waiting.values() for each in own if self._shares.may_take(each))
        return min(
            entitled,
            key=lambda each: (self._shares.of_tenant(each.tenant), self._shares.of(each)),
            default=None,
        )

    def _forget(self, who: Principal, turn: _Turn) -> None:
        own = self._waiting.get(who.tenant, {})
        turns = own.get(who, deque())
        if turn in turns:
            turns.remove(turn)
        if not turns:
            own.pop(who, None)
        if not own:
            self._waiting.pop(who.tenant, None)


def _greediest(sizes: dict[K, int], who: K) -> K:
    """Who waits most often once the one who comes is counted; where several do, that one."""
    others: Iterable[K] = (each for each in sizes if each != who and sizes[each] > sizes.get(who, 0) + 1)
    return max(others, key=lambda each: sizes[each], default=who)
