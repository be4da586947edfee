"""Limits of one request, and shares: what the tenants share of one process, and whose turn it is.

A tenant may have half of a resource, so the other half is there for whoever comes next. Within a tenant, a principal
may have three quarters of what its neighbours leave; whoever has nothing yet may also have more than that.

Whoever finds too little free waits. What becomes free goes to the tenant that has least, within it to the principal
that has least, and then to whoever has waited longest. Whoever waits for much is not overtaken by those who want less.

Limits that nobody needs to change are where they apply.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import Field

from ..config.fields import Options, Positive, Seconds
from .problems import ProblemError, overloaded
from .serving import Principal

# Well below the timeouts of clients and of API Gateway: the last checkpoint, or thread, that is begun takes longer.
PART_SECONDS = 8.0
_TIMES_A_BODY = 3
# Room for small ones beside the largest one of each of two tenants.
_BESIDE_BYTES = 32 << 20


class Limits(Options):
    """The limits of one request and of one principal. `GET /about` shows them to clients."""

    body_bytes_max: Positive = Field(
        default=64 << 20, description="The largest body, in bytes as it is sent."
    )
    decompressed_bytes_max: Positive = Field(
        default=64 << 20, description="The largest body, in bytes once it is decompressed."
    )
    search_bytes_max: Positive = Field(
        default=16 << 20, description="How many bytes one search of memories may read from the table."
    )
    request_seconds_max: Seconds = Field(
        default=50, description="How long a request may take until its response begins."
    )
    in_flight_max: Positive = Field(
        default=64, description="How many requests a process works on at a time; others wait for their turn."
    )

    @property
    def memory_bytes(self) -> int:
        """How much all requests at work may have in memory: three times the largest body, of two tenants."""
        return 2 * _TIMES_A_BODY * max(self.body_bytes_max, self.decompressed_bytes_max)

    def needed_bytes(self, size_bytes: int) -> int:
        """Return how much memory a body takes while it is served: its text, its values, and the items made of them."""
        return _TIMES_A_BODY * size_bytes

    @property
    def wire_bytes(self) -> int:
        """How much of bodies that arrive, or of responses that are read, may be in memory."""
        return 2 * (max(self.body_bytes_max, self.decompressed_bytes_max) + _BESIDE_BYTES)

    @property
    def read_bytes_max(self) -> int:
        """How many bytes of what is stored one request may have in memory: as segments, and as values."""
        return 4 * self.decompressed_bytes_max

    @property
    def response_bytes(self) -> int:
        """After how many bytes of values a response ends."""
        return self.body_bytes_max // 2

    @property
    def part_seconds(self) -> float:
        """After how long a page of a list, or a deletion of memories, ends and says where it goes on."""
        return min(PART_SECONDS, self.request_seconds_max / 4)


# A request that waits takes memory, and time to find out whose turn is next.
WAITING_MAX = 1000
# What a request needs beside its body and what it reads: its connection, its task, its headers and small items.
REQUEST_BYTES = 64 << 10
# What is opened and joined is in memory again as text, as text in JSON, and compressed.
_TIMES_WHAT_IS_READ = 3


@dataclass(eq=False)
class _Turn:
    amount: int
    given: asyncio.Future[None]


class Shares:
    """One resource, and how much of it each principal has.

    Args:
        total: How much there is.
        waiting_max: How many may wait for a part of it. With 0, whoever finds too little free is refused.
    """

    def __init__(self, total: int, waiting_max: int = WAITING_MAX) -> None:
        """Start with all of it free."""
        self.share = max(total // 2, 1)
        self._free = total
        self._held: Counter[tuple[str | None, ...]] = Counter()
        self._queue = Shares(waiting_max, 0) if waiting_max else None
        # In the order in which their tenants, and they themselves, had their last turn, or began to wait.
        self._waiting: dict[Principal, deque[_Turn]] = {}
        # Whether somebody whose turn it is waits for more than there is.
        self._is_short = False
        # What a request reads is counted where it is opened, which may be another OS thread.
        self._lock = threading.RLock()

    def waiting(self) -> Counter[str | None]:
        """Return how many requests of each tenant wait."""
        return Counter(who.tenant for who, turns in self._waiting.items() for _ in turns)

    @asynccontextmanager
    async def turn(self, who: Principal, amount: int = 1) -> AsyncIterator[None]:
        """Hold a part while the block runs."""
        taken = await self.enter(who, amount)
        try:
            yield
        finally:
            self.leave(who, taken)

    async def enter(self, who: Principal, amount: int = 1) -> int:
        """Wait for a part, a tenant's share at most, and take it; return how much that is."""
        amount = min(amount, self.share)
        turn = _Turn(amount, asyncio.get_running_loop().create_future())
        with self._lock:
            self._waiting.setdefault(who, deque()).append(turn)
            self._serve()
            if turn.given.done():
                return amount
            if self._queue is None or not self._queue.grow(who, 1):
                self._forget(who, turn)
                raise overloaded()
        try:
            await turn.given
        except asyncio.CancelledError:
            with self._lock:
                if turn.given.cancelled():
                    self._forget(who, turn)
                    self._serve()
                else:
                    # The turn came just as its request was cancelled.
                    self.leave(who, amount)
            raise
        finally:
            self._queue.leave(who)
        return amount

    def grow(self, who: Principal, amount: int) -> bool:
        """Take more at once, from any OS thread, if it is free and nobody is overtaken; tell whether it was."""
        with self._lock:
            is_free = (
                amount <= self._free and self._is_within(who, amount) and self._is_of_tenant(who, amount)
            )
            if self._is_short or not is_free or any(each.tenant == who.tenant for each in self._waiting):
                return False
            self._add(who, amount)
            return True

    def leave(self, who: Principal, amount: int = 1) -> None:
        """Give back a part, to whose turn it is."""
        with self._lock:
            self._add(who, -amount)
            self._serve()

    def _serve(self) -> None:
        while (next_ := self._next()) is not None:
            turn = self._waiting[next_][0]
            self._forget(next_, turn)
            # Tenants, and principals in them, go behind those who have had no turn since.
            waiting = sorted(
                self._waiting.items(), key=lambda each: (each[0].tenant == next_.tenant, each[0] is next_)
            )
            self._waiting = dict(waiting)
            # A turn that is already done was cancelled a moment ago.
            if not turn.given.done():
                self._add(next_, turn.amount)
                turn.given.set_result(None)

    def _next(self) -> Principal | None:
        """Return whose turn it is, if there is enough."""
        full: set[str | None] = set()
        self._is_short = False
        for who in sorted(self._waiting, key=lambda each: (self._of_tenant(each), self._of(each))):
            amount = self._waiting[who][0].amount
            if who.tenant in full or not self._is_within(who, amount):
                continue
            if not self._is_of_tenant(who, amount):
                full.add(who.tenant)
                continue
            self._is_short = amount > self._free
            return None if self._is_short else who
        return None

    def _is_of_tenant(self, who: Principal, amount: int) -> bool:
        return self._of_tenant(who) + amount <= self.share

    def _is_within(self, who: Principal, amount: int) -> bool:
        """Tell whether a principal would leave enough to the others of its tenant."""
        own = self._of(who)
        left_by_others = self.share - (self._of_tenant(who) - own)
        return not own or 4 * (own + amount) <= 3 * left_by_others

    def _of_tenant(self, who: Principal) -> int:
        return self._held[who.tenant,]

    def _of(self, who: Principal) -> int:
        return self._held[who.tenant, who.name]

    def _add(self, who: Principal, amount: int) -> None:
        self._free -= amount
        for key in ((who.tenant,), (who.tenant, who.name)):
            self._held[key] += amount
            if not self._held[key]:
                del self._held[key]

    def _forget(self, who: Principal, turn: _Turn) -> None:
        turns = self._waiting.get(who, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[who]


class MoreMemory(BaseException):
    """A request needs more memory than is free now. It waits for its turn without any, and begins anew.

    It is no `Exception`, so an operation that it ends counts as interrupted, not as failed.
    """

    def __init__(self, size_bytes: int) -> None:
        """Take how much it needs, as far as it is known."""
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


class Held:
    """The memory of one request."""

    def __init__(self, memory: Shares, who: Principal, read_bytes_max: int) -> None:
        """Start without any. A request may have `read_bytes_max` of what is stored in memory."""
        self._memory = memory
        self._who = who
        self._read_bytes_max = read_bytes_max
        self._own = self._taken = 0
        self.read_bytes = 0
        """How many bytes of what is stored the request has in memory."""

    async def take(self, own_bytes: int, size_bytes: int) -> None:
        """Wait for memory: for what the request itself needs, and for all, as far as it is known what it reads."""
        self._own, self.read_bytes = own_bytes, 0
        self._taken = await self._memory.enter(self._who, size_bytes)

    def add(self, count: int) -> None:
        """Count bytes that are read, before they are or as they are opened; negative ones correct an estimate.

        Raise `MoreMemory` if there is no room for them now.
        """
        self.read_bytes += count
        if self.read_bytes > self._read_bytes_max:
            raise ProblemError(
                422,
                f"this reads over {self._read_bytes_max:,} bytes at a time, and the gateway's memory is shared; keep"
                " less in the state, or raise decompressed_bytes_max in the gateway's limits",
            )
        needed = self._own + _TIMES_WHAT_IS_READ * self.read_bytes
        more = min(needed, self._memory.share) - self._taken
        if more <= 0:
            return
        if not self._memory.grow(self._who, more):
            # Of what is compressed well, only as much is known as was opened.
            raise MoreMemory(max(needed, 2 * self._taken))
        self._taken += more

    def give_back(self) -> None:
        """Give back all of it."""
        taken, self._taken = self._taken, 0
        self._memory.leave(self._who, taken)


class Slot:
    """The place of one request, which is given back while all that the request does is wait to ask the table again."""

    def __init__(self, places: Shares, who: Principal) -> None:
        """Begin with a place of a principal."""
        self._places = places
        self._who = who
        self._busy = 0
        self._resting = 0
        self._is_held = True
        self._is_over = False
        self._taking = asyncio.Lock()

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Hold the place while the block runs: another part of the request may have given it back."""
        self._busy += 1
        try:
            await self._take()
            yield
        finally:
            self._busy -= 1
            self._give_back()

    async def rest(self, seconds: float) -> None:
        """Wait without the place, if nothing else of the request needs it, and take it again."""
        self._resting += 1
        self._give_back()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._resting -= 1
        await self._take()

    async def _take(self) -> None:
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


@asynccontextmanager
async def slot(places: Shares, who: Principal) -> AsyncIterator[Slot]:
    """Hold a place for a principal while the block runs."""
    await places.enter(who)
    held = Slot(places, who)
    try:
        yield held
    finally:
        held.end()
