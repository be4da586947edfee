"""An event loop whose clock stands still while there is something to do, and jumps to the next timer when there is not.

Nothing waits, so a test of minutes takes moments, and takes the same course on a busy machine.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

import anyio.to_thread
import pytest

from langgraph.checkpoint.dynamodb._runtime import attempts

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Lets time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and timeout:
            self.now += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    """Goes by the clock of its selector."""

    def __init__(self, selector: _Selector) -> None:
        super().__init__(selector)
        self._clock = selector

    def time(self) -> float:
        return self._clock.now


async def _at_once(func: Callable[..., T], /, *args: Any, **_: Any) -> T:
    """Do on the event loop what goes to an OS thread, which takes as long as the machine lets it."""
    return func(*args)


def run_in_virtual_time(main: Coroutine[Any, Any, T], monkeypatch: pytest.MonkeyPatch) -> T:
    """Run a coroutine on such a loop, by whose clock the package's own retries go, too."""
    selector = _Selector()
    loop = _Loop(selector)
    # Deadlines are by the clock of the day, which goes on as it does.
    clock = SimpleNamespace(monotonic=loop.time, time=time.time)
    with monkeypatch.context() as patch:
        patch.setattr(attempts, "time", clock)
        patch.setattr(asyncio, "to_thread", _at_once)
        patch.setattr(anyio.to_thread, "run_sync", _at_once)
        try:
            return loop.run_until_complete(main)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
