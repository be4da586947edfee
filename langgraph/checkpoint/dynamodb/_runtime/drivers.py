"""The drivers: run an operation's rounds, blocking or on an event loop. They do not depend on the operation.

Savers, the store and the cache own the transport that a driver sends through, and close it in the same ways.

`StopIteration` is caught around `send` only, so that no exception of a client can pass for a result.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import aclosing, closing, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from typing_extensions import Self

from .._format.limits import ENDING_SECONDS_MAX, THREADED_WORK_BYTES
from .events import Observer
from .failures import error_code
from .steps import Call, Emit, Op, Outcome, Step, Stream, Wait, Work, interrupted

logger = logging.getLogger(__name__)

T = TypeVar("T")

Asend: TypeAlias = Callable[[Call], Awaitable[Any]]
Sleep: TypeAlias = Callable[[float], Awaitable[None]]

# An event loop turns to other tasks once small pieces of work have held it for so long, and after so many steps of a
# round have begun: to sign a request takes up to a millisecond.
_TURN_SECONDS = 0.005
_STEPS_AT_ONCE = 16

# Every stream of a saver is a list.
_LIST = "list"


class Transport(Protocol):
    """Makes requests: to DynamoDB, or to a gateway."""

    def send(self, call: Call) -> Any:
        """Make a request and wait for its response."""

    async def asend(self, call: Call) -> Any:
        """Make a request on the running event loop."""

    def pool(self) -> Executor:
        """Return the pool for parallel requests."""

    def close(self) -> None:
        """Close the blocking client."""

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""


class Runner:
    """Runs operations, blocking or on an event loop, and measures them if there is an observer."""

    def __init__(
        self,
        transport: Transport,
        observer: Observer | None = None,
        asend: Asend | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Take the transport that makes their requests, and the observer that measures them.

        Args:
            transport: The transport.
            observer: The observer, if there is one.
            asend: Makes requests on event loops instead of the transport.
            sleep: Waits on event loops.
        """
        self._transport = transport
        self._observer = observer
        send, asend = transport.send, transport.asend if asend is None else asend
        if observer is not None:
            send, asend = partial(observer.send, send), partial(observer.asend, asend)
        self._blocking = BlockingDriver(send, transport.pool)
        self._async = AsyncDriver(asend, sleep)

    def asking(self, asend: Asend, sleep: Sleep) -> Runner:
        """Return a runner as this one, but with another way to make requests, and to wait, on event loops."""
        return Runner(self._transport, self._observer, asend, sleep)

    def run(self, operation: Op[T], name: str | None = None) -> T:
        """Run an operation to its end and return its result.

        Args:
            operation: The operation.
            name: The name in its event; by default that of the function that made it.
        """
        if self._observer is None:
            return self._blocking.run(operation)
        meter = self._observer.begin(name or _name_of(operation))
        with self._observer.ending(meter, "interrupted"), self._observer.running(meter):
            return self._blocking.run(operation)

    def stream(self, operation: Stream[T], name: str = _LIST) -> Iterator[T]:
        """Run a stream as far as its consumer reads. `name` is the one in its event."""
        values = self._blocking.stream(operation)
        return values if self._observer is None else _observed(values, self._observer, name)

    async def arun(self, operation: Op[T], name: str | None = None) -> T:
        """Run an operation to its end on the running event loop and return its result, as `run` does."""
        if self._observer is None:
            return await self._async.run(operation)
        meter = self._observer.begin(name or _name_of(operation))
        with self._observer.ending(meter, "interrupted"), self._observer.running(meter):
            return await self._async.run(operation)

    def astream(self, operation: Stream[T], name: str = _LIST) -> AsyncGenerator[T, None]:
        """Run a stream on the running event loop as far as its consumer reads. `name` is the one in its event."""
        values = self._async.stream(operation)
        return values if self._observer is None else _aobserved(values, self._observer, name)


_ENDED: Any = object()


def _name_of(operation: object) -> str:
    """Return the name of the function that made an operation: the saver's method, or a step of a thread's lock."""
    return str(getattr(operation, "__name__", type(operation).__name__))


def _observed(values: Generator[T, None, None], observer: Observer, name: str) -> Iterator[T]:
    """Measure a stream while it runs, and not while its consumer does."""
    meter = observer.begin(name)
    # A consumer that stops early has read enough.
    with observer.ending(meter, "ok"), closing(values):
        while True:
            with observer.running(meter):
                value = next(values, _ENDED)
            if value is _ENDED:
                return
            yield value


async def _aobserved(
    values: AsyncGenerator[T, None], observer: Observer, name: str
) -> AsyncGenerator[T, None]:
    meter = observer.begin(name)
    with observer.ending(meter, "ok"):
        async with aclosing(values):
            while True:
                with observer.running(meter):
                    value = await anext(values, _ENDED)
                if value is _ENDED:
                    return
                yield value


class BlockingDriver:
    """Runs operations in the calling OS thread, and rounds of several steps in parallel in a pool."""

    def __init__(self, send: Callable[[Call], Any], pool: Callable[[], Executor]) -> None:
        """Take functions that make a request, and that return the pool when it is first needed."""
        self._send = send
        self._pool = pool

    def run(self, operation: Op[T]) -> T:
        """Run an operation to its end and return its result."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration as stop:
                    value: T = stop.value
                    return value
                outcomes = self._round(operation, steps)
        finally:
            operation.close()

    def stream(self, operation: Stream[T]) -> Generator[T, None, None]:
        """Run a stream as far as its consumer reads."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration:
                    return
                if isinstance(steps, Emit):
                    yield steps.value
                    outcomes = None
                else:
                    outcomes = self._round(operation, steps)
        finally:
            operation.close()

    def _round(self, operation: Generator[Any, Any, Any], steps: Sequence[Step]) -> list[Outcome]:
        """Perform a round. On an interruption, let the operation end, and then raise the interruption."""
        futures: list[Future[Outcome]] = []
        try:
            return self._perform(steps, futures)
        except BaseException as interruption:
            for future in futures:
                future.cancel()
            rest = interrupted(operation, interruption)
            if rest is not None:
                # Requests under way must end before the operation releases anything.
                wait(futures)
                self.run(rest)
            raise

    def _perform(self, steps: Sequence[Step], futures: list[Future[Outcome]]) -> list[Outcome]:
        if len(steps) == 1:
            return [self._step(steps[0])]
        pool = self._pool()
        # Each step needs its own context: a context cannot be entered twice at the same time.
        futures += (pool.submit(copy_context().run, self._step, step) for step in steps)
        return [future.result() for future in futures]

    def _step(self, step: Step) -> Outcome:
        if isinstance(step, Work):
            return _work(step)
        if isinstance(step, Wait):
            return _wait(step)
        try:
            if step.delay_seconds:
                time.sleep(step.delay_seconds)
            return self._send(step)
        except Exception as error:  # noqa: BLE001 - an outcome: the operation decides what it means.
            return error


class AsyncDriver:
    """Runs operations on the running event loop, and larger pieces of CPU work in OS threads."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], sleep: Sleep = asyncio.sleep) -> None:
        """Take functions that make a request, and that wait."""
        self._send = send
        self._sleep = sleep
        # When it last let other tasks run.
        self._gave_way_at = 0.0

    async def run(self, operation: Op[T]) -> T:
        """Run an operation to its end and return its result."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration as stop:
                    value: T = stop.value
                    return value
                outcomes = await self._round(operation, steps)
        finally:
            operation.close()

    async def stream(self, operation: Stream[T]) -> AsyncGenerator[T, None]:
        """Run a stream as far as its consumer reads."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration:
                    return
                if isinstance(steps, Emit):
                    yield steps.value
                    outcomes = None
                else:
                    outcomes = await self._round(operation, steps)
        finally:
            operation.close()

    async def _round(self, operation: Generator[Any, Any, Any], steps: Sequence[Step]) -> list[Outcome]:
        """Perform a round. On an interruption, let the operation end, and then raise the interruption."""
        requests: list[asyncio.Future[Outcome]] = []
        try:
            return await self._perform(steps, requests)
        except GeneratorExit:
            # It was dropped with its event loop, so nothing can be awaited.
            raise
        except BaseException as interruption:
            rest = interrupted(operation, interruption)
            if rest is None:
                for request in requests:
                    request.cancel()
                await asyncio.gather(*requests, return_exceptions=True)
            else:
                await _until_done(asyncio.ensure_future(self._end(requests, rest)))
            raise

    async def _end(self, requests: Sequence[asyncio.Future[Outcome]], rest: Op[None]) -> None:
        # Requests under way must end before the operation releases anything.
        await asyncio.gather(*requests, return_exceptions=True)
        await self.run(rest)

    async def _perform(self, steps: Sequence[Step], requests: list[asyncio.Future[Outcome]]) -> list[Outcome]:
        if len(steps) == 1:
            return [await self._step(steps[0], requests)]
        tasks = list[asyncio.Future[Outcome]]()
        try:
            for start in range(0, len(steps), _STEPS_AT_ONCE):
                tasks += (
                    asyncio.ensure_future(self._step(step, requests))
                    for step in steps[start : start + _STEPS_AT_ONCE]
                )
                if len(tasks) < len(steps):
                    await asyncio.sleep(0)
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _step(self, step: Step, requests: list[asyncio.Future[Outcome]]) -> Outcome:
        if isinstance(step, Work):
            # `_work` returns exceptions as outcomes: a future cannot carry every kind of exception.
            if step.size_bytes > THREADED_WORK_BYTES:
                return await asyncio.to_thread(_work, step)
            outcome = _work(step)
            if time.monotonic() > self._gave_way_at + _TURN_SECONDS:
                await asyncio.sleep(0)
                self._gave_way_at = time.monotonic()
            return outcome
        if isinstance(step, Wait):
            return await _await(step)
        if step.delay_seconds:
            await self._sleep(step.delay_seconds)
        # A separate task: an interruption must not end the request before the operation has decided what to do.
        requests.append(asyncio.ensure_future(self._request(step)))
        return await asyncio.shield(requests[-1])

    async def _request(self, call: Call) -> Outcome:
        try:
            return await self._send(call)
        except Exception as error:  # noqa: BLE001 - an outcome: the operation decides what it means.
            return error


async def _until_done(ending: asyncio.Future[None]) -> None:
    """Wait for the end of an operation for a bounded time, even if the waiting task is cancelled repeatedly."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ENDING_SECONDS_MAX
    while not ending.done() and loop.time() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.wait([ending], timeout=until - loop.time())
    ending.cancel()


def _wait(step: Wait) -> None:
    with suppress(RuntimeError):
        # What is waited for may need the event loop that this call stops, so it is not waited for.
        asyncio.get_running_loop()
        return
    wait([step.ended], step.seconds_max)


async def _await(step: Wait) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Future[Any]) -> None:
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    step.ended.add_done_callback(tell)
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(ended.wait(), step.seconds_max)


def _work(step: Work) -> Outcome:
    try:
        return step.function()
    except Exception as error:  # noqa: BLE001 - an outcome: the operation decides what it means.
        return error


class TransportOwner:
    """Runs operations over one transport, and closes it. As a context manager it closes it at the end."""

    transport: Transport
    runner: Runner
    """The runner of the object's operations; public inside the package."""

    def _own(self, transport: Transport, observer: Observer | None = None) -> None:
        """Take the transport, and the observer of operations if there is one. Copies of the object share both."""
        self.transport = transport
        self.runner = Runner(transport, observer)

    def warm_up(self) -> None:
        """Load what the first blocking call needs, resolve credentials and connect, by one cheap request.

        Call it where nobody waits: at a service's start, or at module level in a Lambda function. Its request is sent
        once. A failure is only logged, since the first call raises what is wrong.
        """
        self.runner.run(warm_up(self._first_request()))

    async def awarm_up(self) -> None:
        """Load what the first async call needs, resolve credentials and connect, by one cheap request.

        Await it where nobody waits, on the event loop of the calls: connections belong to a loop. Its request is sent
        once. A failure is only logged, since the first call raises what is wrong.
        """
        await self.runner.arun(warm_up(self._first_request()))

    def _first_request(self) -> Call:
        """Return the request of `warm_up`. A gateway says what it is, which takes no request to its table."""
        return Call("about", {}, is_sent_once=True)

    def close(self) -> None:
        """Close the blocking client, unless it was given. A later call makes a new one."""
        self.transport.close()

    async def aclose(self) -> None:
        """Close the client of the running event loop, and the blocking client."""
        await self.transport.aclose()
        self.transport.close()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the clients."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the clients on this event loop."""
        await self.aclose()


def warm_up(request: Call) -> Op[None]:
    """Send a request, once. Any answer will do, and a failure is only logged: the first call raises what is wrong."""
    [outcome] = yield (request,)
    if isinstance(outcome, Exception) and not error_code(outcome):
        logger.warning("warm_up got no answer, so the first call takes longer: %s", outcome)
