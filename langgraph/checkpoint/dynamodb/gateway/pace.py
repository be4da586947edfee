"""Pace: the minimum rate at which a body has to arrive, and an answer has to be read."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TypeVar

import anyio

from langgraph.checkpoint.dynamodb.gateway.limits import Limits

T = TypeVar("T")


class Pace:
    """How long one body, or one answer, may still keep the service waiting. Each byte that moves earns more time."""

    def __init__(self, limits: Limits) -> None:
        """Start with the whole allowance."""
        self._limits = limits
        self._seconds_left = limits.stall_seconds_max

    async def wait_for(self, step: Awaitable[T]) -> T:
        """Wait for the other side.

        Raises:
            TimeoutError: The other side has been too slow for too long.
        """
        began = time.monotonic()
        try:
            # Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that comes just as the step ends.
            with anyio.fail_after(self._seconds_left):
                return await step
        finally:
            self._seconds_left = max(0.0, self._seconds_left - (time.monotonic() - began))

    def moved(self, count: int) -> None:
        """Count bytes that were received or sent."""
        earned = self._seconds_left + count / self._limits.bytes_per_second_min
        self._seconds_left = min(self._limits.stall_seconds_max, earned)
