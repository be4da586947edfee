"""Holding: how many bytes of bodies and answers a process has in memory, shared by tenants and principals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import overloaded
from langgraph.checkpoint.dynamodb.gateway.shares import Shares

# The memory of a request without its body: its connection, its task and its headers.
_REQUEST_BYTES = 64 << 10
# All requests together may have as many bytes as this many bodies of the largest size. While it is served, a body needs
# up to five times its size in memory.
_BODIES_MAX = 4


class Held:
    """The bytes of one request."""

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
    """The bytes of one process."""

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
