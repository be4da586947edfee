"""Shares: how much of a limited resource each tenant, and each of its principals, may have; and so of memory.

A tenant may take more while it has less than three times what it leaves to the others, and so may a principal within
its tenant. So one tenant alone gets three quarters of everything, and a second one three quarters of the rest: those
who take all they can still leave something to whoever comes next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

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


class Held:
    """The bytes of bodies and answers that one request has in memory."""

    def __init__(self, shares: Shares, who: Principal) -> None:
        """Start with none."""
        self._shares = shares
        self._who = who
        self.bytes = 0

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
        self.bytes += count


class Holding:
    """The bytes of bodies and answers that one process has in memory."""

    def __init__(self, limits: Limits) -> None:
        """Derive the total from the limits."""
        largest = max(limits.body_bytes_max, limits.decompressed_bytes_max)
        self._shares = Shares(_BODIES_MAX * (largest + _REQUEST_BYTES))

    @contextmanager
    def request(self, who: Principal) -> Iterator[Held]:
        """Count the memory of a request while the block runs.

        Raises:
            ProblemError: The principal has its share already; a 503.
        """
        held = Held(self._shares, who)
        try:
            held.add(_REQUEST_BYTES)
            yield held
        finally:
            self._shares.give_back(who, held.bytes)
