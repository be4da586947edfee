"""The locks that `thread_lock` and `athread_lock` return, renewed in the background while a block runs.

This module decides when a hold is renewed, and what its loss means for the block. `_operations.thread_lock` defines
what a hold is, and `Holder` is how a lock reaches it: in the table, or through a gateway. Each block has its own hold,
which belongs to the process that acquired it: a forked child neither has nor changes it.
"""

import asyncio
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from types import TracebackType
from typing import Any

from typing_extensions import Self

from ._operations.thread_lock import TOKEN_BYTES, Hold, Holder, acquire, hold_on
from ._runtime.drivers import Runner
from ._runtime.steps import Op
from .errors import CheckpointerInputError, ThreadLockLostError

logger = logging.getLogger(__name__)

# A hold is renewed after this part of its ttl, so that a renewal can fail and be repeated before the hold ends.
_RENEWED_AFTER = 1 / 3


class _Lock:
    """The state of a lock and its hold, for blocking and async locks."""

    def __init__(
        self, run: Callable[[Op[Any]], Any], holder: Holder, hold: Hold, wait_seconds: float
    ) -> None:
        """Take the function that runs an operation, or returns a coroutine that does, and the hold to acquire."""
        self._run = run
        self._holder = holder
        self._hold = hold
        self._wait_seconds = wait_seconds
        self._held_until = 0.0
        self._lost: ThreadLockLostError | None = None
        self._process = os.getpid()
        # Locked while a block uses this lock, from before it acquires its hold until after it releases it.
        self._in_use = threading.Lock()

    @property
    def held(self) -> bool:
        """Whether the thread is held as far as this process knows, without a request."""
        return self._is_ours and self._lost is None and self._holder.clock() < self._held_until

    @contextmanager
    def _beginning(self) -> Iterator[Op[float]]:
        """Yield the operation that acquires a hold for one block. If it fails, the lock is free for another block."""
        if not self._in_use.acquire(blocking=False):
            raise CheckpointerInputError(
                f"this lock of thread {self._hold.root.thread_id!r} is used by a block that has not ended; use another"
                " lock for another block"
            )
        # Each block has a hold with a token of its own.
        self._hold = replace(self._hold, token=self._holder.rng.randbytes(TOKEN_BYTES))
        self._lost, self._process = None, os.getpid()
        try:
            yield acquire(self._holder, self._hold, self._wait_seconds)
        except BaseException:
            self._held_until = 0.0
            self._in_use.release()
            raise

    def _kept(self) -> Op[float]:
        """Return the operation that renews the hold and raises if it is lost."""
        if not self._is_ours:
            raise ThreadLockLostError(
                f"thread {self._hold.root.thread_id!r} is locked by process {self._process}, which forked this one, and"
                " not by this one; use another lock in this process"
            )
        return self._holder.renew(self._hold)

    @property
    def _is_ours(self) -> bool:
        return self._process == os.getpid()

    @property
    def _renewal_seconds(self) -> float:
        return self._hold.ttl_seconds * _RENEWED_AFTER

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Note that the lock was lost: the block may handle the error, and end without one."""
        try:
            yield
        except ThreadLockLostError as error:
            self._lost = error
            raise

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Log a failed renewal in the background. The next one may be in time, and the block's end raises a loss."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as it says.
            logger.warning("The lock of thread %r could not be renewed: %s", self._hold.root.thread_id, error)

    @contextmanager
    def _ending(self, block_error: BaseException | None) -> Iterator[None]:
        """Raise if the lock was lost, unless the block failed itself. Log a failed release: the hold runs out."""
        try:
            yield
        except ThreadLockLostError as error:
            if block_error is None:
                raise
            logger.warning("%s", error)
        except Exception as error:  # noqa: BLE001 - as it says.
            message = "The lock of thread %r could not be released. It expires by itself: %s"
            logger.warning(message, self._hold.root.thread_id, error)
        finally:
            self._held_until = 0.0
            self._in_use.release()


class ThreadLock(_Lock):
    """One runner's lock on a thread: a context manager that renews it in its own OS thread while the block runs."""

    def __enter__(self) -> Self:
        """Acquire the lock.

        Raises:
            ThreadBusyError: The lock was not free in time.
        """
        with self._beginning() as taking:
            self._held_until = self._run(taking)
            self._ended = threading.Event()
            # In a copy of the caller's context, which may say whose credentials sign requests.
            self._keeper = threading.Thread(
                target=copy_context().run, args=(self._renew,), name="langgraph-dynamodb-lock", daemon=True
            )
            try:
                self._keeper.start()
            except RuntimeError:
                # The process cannot start another OS thread.
                self._run(self._holder.release(self._hold))
                raise
        return self

    def check(self) -> None:
        """Make sure by a request that the lock is still held, and renew it. Call it before steps not to be done twice.

        Raises:
            ThreadLockLostError: The lock is not held any more.
        """
        with self._noticing():
            self._held_until = self._run(self._kept())

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock.

        Raises:
            ThreadLockLostError: The lock was lost while the block ran, and the block has ended without an error.
        """
        try:
            if self._is_ours:
                self._ended.set()
                self._keeper.join()
        finally:
            # Release the lock also if this call is interrupted.
            with self._ending(exc_value):
                if not self.held:
                    # The hold has run out, but perhaps nobody else has acquired it.
                    self.check()
                self._run(self._holder.release(self._hold))

    def _renew(self) -> None:
        while self._lost is None and not self._ended.wait(self._renewal_seconds):
            with self._trying():
                self.check()


class AsyncThreadLock(_Lock):
    """One runner's lock on a thread: an async context manager that renews it in its own task while the block runs.

    The lock is lost if the block keeps the event loop busy for longer than the ttl.
    """

    async def __aenter__(self) -> Self:
        """Acquire the lock.

        Raises:
            ThreadBusyError: The lock was not free in time.
        """
        with self._beginning() as taking:
            self._held_until = await self._run(taking)
            self._keeper = asyncio.create_task(self._renew())
        return self

    async def check(self) -> None:
        """Make sure by a request that the lock is still held, and renew it. Call it before steps not to be done twice.

        Raises:
            ThreadLockLostError: The lock is not held any more.
        """
        with self._noticing():
            self._held_until = await self._run(self._kept())

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock.

        Raises:
            ThreadLockLostError: The lock was lost while the block ran, and the block has ended without an error.
        """
        try:
            if self._is_ours:
                self._keeper.cancel()
                await asyncio.wait([self._keeper])
        finally:
            # Release the lock also if this call is cancelled.
            with self._ending(exc_value):
                if not self.held:
                    # The hold has run out, but perhaps nobody else has acquired it.
                    await self.check()
                await self._run(self._holder.release(self._hold))

    async def _renew(self) -> None:
        while self._lost is None:
            await asyncio.sleep(self._renewal_seconds)
            with self._trying():
                await self.check()


class ThreadLocks(ABC):
    """The methods of a saver that lock a thread."""

    runner: Runner

    @property
    @abstractmethod
    def holder(self) -> Holder:
        """The access to the locks of threads."""

    def thread_lock(self, thread_id: str, *, ttl: float = 60.0, wait: float = 0.0) -> ThreadLock:
        """Return a lock for a thread, which is held while its `with` block runs.

        LangGraph does not keep two runs of a thread apart: the later checkpoint wins, and the other run's answer is
        lost. So take the lock around `get_state` and `invoke`. It costs two requests if it is free, and one more for
        each third of `ttl`. It keeps out only runners that use it too, and no deletions.

        If the process is frozen for longer than `ttl`, it may lose the lock, but the block continues. Call `check()`
        before any step that must not happen twice: it raises if the lock is lost, and so does the end of the block.

        Args:
            thread_id: The thread.
            ttl: Seconds for which the lock is held without being renewed, at least 1. A process that dies keeps others
                out for this long, and for 5 more seconds by which clocks may differ.
            wait: The maximum number of seconds to wait for the lock.

        Returns:
            A context manager, for one block at a time. The lock belongs to the process that entered the block. A
            forked child does not hold it: `check()` raises there, and so does leaving the block.

        Raises:
            CheckpointerInputError: `thread_id` is not an id, or `ttl` or `wait` is out of range.
            ThreadBusyError: On entering: another runner held the lock all the time.
            ThreadLockLostError: On leaving: another runner has acquired the lock meanwhile.
        """
        hold = hold_on(thread_id, ttl, wait)
        return ThreadLock(self.runner.run, self.holder, hold, wait)

    def athread_lock(self, thread_id: str, *, ttl: float = 60.0, wait: float = 0.0) -> AsyncThreadLock:
        """Return a lock for a thread, which is held while its `async with` block runs.

        LangGraph does not keep two runs of a thread apart: the later checkpoint wins, and the other run's answer is
        lost. So take the lock around `aget_state` and `ainvoke`. It costs two requests if it is free, and one more for
        each third of `ttl`. It keeps out only runners that use it too, and no deletions.

        If the process is frozen for longer than `ttl`, it may lose the lock, but the block continues. Call
        `await lock.check()` before any step that must not happen twice: it raises if the lock is lost, and so does the
        end of the block.

        Args:
            thread_id: The thread.
            ttl: Seconds for which the lock is held without being renewed, at least 1. A process that dies keeps others
                out for this long, and for 5 more seconds by which clocks may differ.
            wait: The maximum number of seconds to wait for the lock.

        Returns:
            A context manager, for one block at a time. The lock belongs to the process that entered the block. A
            forked child does not hold it: `lock.check()` raises there, and so does leaving the block.

        Raises:
            CheckpointerInputError: `thread_id` is not an id, or `ttl` or `wait` is out of range.
            ThreadBusyError: On entering: another runner held the lock all the time.
            ThreadLockLostError: On leaving: another runner has acquired the lock meanwhile.
        """
        hold = hold_on(thread_id, ttl, wait)
        return AsyncThreadLock(self.runner.arun, self.holder, hold, wait)
