"""The locks that `DynamoDBSaver.thread_lock` and `athread_lock` give: held in the background while their block runs.

They own when a hold is renewed and what its loss does to the block. What a hold is, is the operation's to say. Each
block has a hold of its own, which belongs to the process that took it: a forked child neither has nor touches it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from typing_extensions import Self

from langgraph.checkpoint.dynamodb._operations.thread_lock import Hold, another, keep, let_go, take
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadLockLostError

logger = logging.getLogger(__name__)

# A hold is renewed when so much of its ttl has passed: a renewal may fail and be made again before the end.
_RENEWED_AFTER = 1 / 3


class _Lock:
    """What both locks know of their hold."""

    def __init__(self, table: Table, hold: Hold, wait_seconds: float) -> None:
        self._table = table
        self._hold = hold
        self._wait_seconds = wait_seconds
        self._held_until = 0.0
        self._lost: ThreadLockLostError | None = None
        self._process = os.getpid()
        # Locked from before a block until after it.
        self._in_use = threading.Lock()

    @property
    def held(self) -> bool:
        """Whether the thread is held as far as this process knows, without asking."""
        return self._is_ours and self._lost is None and self._table.clock() < self._held_until

    @contextmanager
    def _beginning(self) -> Iterator[Op[float]]:
        """Give what takes a hold for one block; without the hold there is no block."""
        if not self._in_use.acquire(blocking=False):
            msg = (
                f"this lock of thread {self._hold.root.thread_id!r} is in a block that has not ended; for another block"
                " take another lock"
            )
            raise CheckpointerInputError(msg)
        self._hold, self._lost, self._process = another(self._table, self._hold), None, os.getpid()
        try:
            yield take(self._table, self._hold, self._wait_seconds)
        except BaseException:
            self._held_until = 0.0
            self._in_use.release()
            raise

    def _kept(self) -> Op[float]:
        """What makes sure that the hold is still had, and renews it."""
        if not self._is_ours:
            msg = (
                f"thread {self._hold.root.thread_id!r} is held by the process that forked this one, {self._process},"
                " and not by this one; take a lock here for what is done here"
            )
            raise ThreadLockLostError(msg)
        return keep(self._table, self._hold)

    @property
    def _is_ours(self) -> bool:
        return self._process == os.getpid()

    @property
    def _renewal_seconds(self) -> float:
        return self._hold.ttl_seconds * _RENEWED_AFTER

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Remember that the lock was lost: whoever handles the error may still leave the block without one."""
        try:
            yield
        except ThreadLockLostError as error:
            self._lost = error
            raise

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Let a renewal fail in the background: the next one may still be in time, and a loss is told at the end."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as it says.
            logger.warning("The lock of thread %r could not be renewed: %s", self._hold.root.thread_id, error)

    @contextmanager
    def _ending(self, block_error: BaseException | None) -> Iterator[None]:
        """Let no failure to let go hide what the block came to: the lock runs out. But say that it was lost."""
        try:
            yield
        except ThreadLockLostError as error:
            if block_error is None:
                raise
            logger.warning("%s", error)
        except Exception as error:  # noqa: BLE001 - as it says.
            message = "The lock of thread %r could not be let go, and runs out by itself: %s"
            logger.warning(message, self._hold.root.thread_id, error)
        finally:
            self._held_until = 0.0
            self._in_use.release()


class ThreadLock(_Lock):
    """One runner's lock on a thread: a context manager that renews it in a thread of its own while the block runs."""

    def __init__(self, run: Callable[[Op[Any]], Any], table: Table, hold: Hold, wait_seconds: float) -> None:
        """Take what runs an operation."""
        super().__init__(table, hold, wait_seconds)
        self._run = run

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            ThreadBusyError: It was not free in time.
        """
        with self._beginning() as taking:
            self._held_until = self._run(taking)
            self._ended = threading.Event()
            self._keeper = threading.Thread(target=self._renew, name="langgraph-dynamodb-lock", daemon=True)
            try:
                self._keeper.start()
            except RuntimeError:
                # The process may have no more threads.
                self._run(let_go(self._table, self._hold))
                raise
        return self

    def check(self) -> None:
        """Make sure, by a request that also renews it, that the lock is still held: before what must not be done twice.

        Raises:
            ThreadLockLostError: It is not.
        """
        with self._noticing():
            self._held_until = self._run(self._kept())

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of the lock.

        Raises:
            ThreadLockLostError: It was lost while the block ran, and the block has ended without an error.
        """
        try:
            if self._is_ours:
                self._ended.set()
                self._keeper.join()
        finally:
            # Whoever is interrupted lets go too.
            with self._ending(exc_value):
                if not self.held:
                    # It may be that nobody else wanted it.
                    self.check()
                self._run(let_go(self._table, self._hold))

    def _renew(self) -> None:
        while self._lost is None and not self._ended.wait(self._renewal_seconds):
            with self._trying():
                self.check()


class AsyncThreadLock(_Lock):
    """One runner's lock on a thread: an async context manager that renews it in a task of its own while the block runs.

    The block must leave the event loop free more often than every ttl, or the lock is lost.
    """

    def __init__(
        self,
        run: Callable[[Op[Any]], Coroutine[Any, Any, Any]],
        table: Table,
        hold: Hold,
        wait_seconds: float,
    ) -> None:
        """Take what runs an operation."""
        super().__init__(table, hold, wait_seconds)
        self._run = run

    async def __aenter__(self) -> Self:
        """Take the lock.

        Raises:
            ThreadBusyError: It was not free in time.
        """
        with self._beginning() as taking:
            self._held_until = await self._run(taking)
            self._keeper = asyncio.create_task(self._renew())
        return self

    async def check(self) -> None:
        """Make sure, by a request that also renews it, that the lock is still held: before what must not be done twice.

        Raises:
            ThreadLockLostError: It is not.
        """
        with self._noticing():
            self._held_until = await self._run(self._kept())

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of the lock.

        Raises:
            ThreadLockLostError: It was lost while the block ran, and the block has ended without an error.
        """
        try:
            if self._is_ours:
                self._keeper.cancel()
                await asyncio.wait([self._keeper])
        finally:
            # Whoever is cancelled lets go too.
            with self._ending(exc_value):
                if not self.held:
                    # It may be that nobody else wanted it.
                    await self.check()
                await self._run(let_go(self._table, self._hold))

    async def _renew(self) -> None:
        while self._lost is None:
            await asyncio.sleep(self._renewal_seconds)
            with self._trying():
                await self.check()
