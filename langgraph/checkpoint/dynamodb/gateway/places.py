"""Places: how many requests are served at a time, and whose turn it is next.

Who finds no place waits. A place that is free goes to the principal that has the fewest, and of that one to whoever has
waited longest. No principal has more than three quarters of the places, so one whose requests take as long as they may
keeps nobody else waiting.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.problems import RETRY_AFTER_SECONDS, ProblemError


class Places:
    """The places of one process."""

    def __init__(self, in_flight_max: int, waiting_max: int, waiting_seconds_max: float) -> None:
        """Take how many are served, how many may wait, and for how long."""
        self._free = in_flight_max
        self._share_max = in_flight_max - in_flight_max // 4
        self._waiting_max = waiting_max
        self._waiting_seconds_max = waiting_seconds_max
        self._served: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[None]:
        """Have a place of a principal's while the block runs.

        Raises:
            ProblemError: Too many wait already, or it waited for too long; a 503.
        """
        await self._enter(name)
        try:
            yield
        finally:
            self._leave(name)

    async def _enter(self, name: str) -> None:
        # Where a place is free, those who wait have their share already.
        if self._free and self._served[name] < self._share_max:
            self._seat(name)
            return
        self._make_room_for(name)
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        timer = loop.call_later(self._waiting_seconds_max, self._send_away, name, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(name, turn)
            elif turn.exception() is None:
                # The turn came just when its request was given up.
                self._leave(name)
            raise
        finally:
            timer.cancel()

    def _make_room_for(self, name: str) -> None:
        """Where too many wait, send away the last one of who has most; that may be the one who comes."""
        if sum(map(len, self._waiting.values())) < self._waiting_max:
            return
        greediest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting[greediest]) <= len(self._waiting.get(name, ())) + 1:
            raise _overloaded()
        self._send_away(greediest, self._waiting[greediest][-1])

    def _send_away(self, name: str, turn: asyncio.Future[None]) -> None:
        self._forget(name, turn)
        if not turn.done():
            turn.set_exception(_overloaded())

    def _seat(self, name: str) -> None:
        self._free -= 1
        self._served[name] += 1

    def _leave(self, name: str) -> None:
        self._free += 1
        self._served[name] -= 1
        if not self._served[name]:
            del self._served[name]
        while self._free and (next_ := self._next()) is not None:
            turn = self._waiting[next_][0]
            self._forget(next_, turn)
            if next_ in self._waiting:
                # Behind those who have had no turn meanwhile.
                self._waiting[next_] = self._waiting.pop(next_)
            # One that is done already was given up a moment ago.
            if not turn.done():
                self._seat(next_)
                turn.set_result(None)

    def _next(self) -> str | None:
        """Whose turn it is: of those who have equally few, the one who began to wait first, as a dict keeps them."""
        entitled = [each for each in self._waiting if self._served[each] < self._share_max]
        return min(entitled, key=lambda each: self._served[each], default=None)

    def _forget(self, name: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(name, deque())
        if turn in turns:
            turns.remove(turn)
        if not turns:
            self._waiting.pop(name, None)


def _overloaded() -> ProblemError:
    msg = "the gateway has as many requests as it can take; send it again"
    return ProblemError(503, msg, CheckpointerError, retry_seconds=RETRY_AFTER_SECONDS)
