"""Operations and their steps: the interface between an operation and its driver.

An operation is a generator. It yields rounds: sequences of steps that may run in parallel. The driver sends the
outcomes in the same order, and the operation returns its result. A stream also yields `Emit` steps between rounds.
Operations know no client, no OS thread and no event loop. They are composed with `yield from` and `gather` only.

When an operation is interrupted (a cancelled task, Ctrl-C), the driver throws the interruption into it at its `yield`.
It may then yield a few more rounds to release its claim or its lock. An operation that is dropped is closed and yields
nothing more: the order of its writes decides what it leaves behind.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One DynamoDB request: a method of the low-level client and its keyword arguments."""

    method: str
    params: Mapping[str, Any]
    delay_seconds: float = 0.0
    is_sent_once: bool = False
    """Whether it is not sent again after a transient error."""


@dataclass(frozen=True)
class Work:
    """A piece of CPU work. A driver may move it off its event loop if the estimated size is large."""

    function: Callable[[], Any]
    size_bytes: int = 0


@dataclass(frozen=True)
class Wait:
    """A pause until something else in this process has ended, for a limited time. Its outcome has no meaning."""

    ended: Future[Any]
    seconds_max: float


@dataclass(frozen=True)
class Emit(Generic[T]):
    """A value that a stream yields to its consumer."""

    value: T


Step: TypeAlias = Call | Work | Wait
Outcome: TypeAlias = Any
"""The outcome of a step: its response or result, or the exception that it raised."""

Op: TypeAlias = Generator[Sequence[Step], Sequence[Outcome], T]
Stream: TypeAlias = Generator[Sequence[Step] | Emit[T], Sequence[Outcome], None]


def result(outcome: Outcome) -> Any:
    """Return a step's outcome, or raise it if it is an exception."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def work(function: Callable[[], T], size_bytes: int = 0) -> Op[T]:
    """Run a piece of CPU work as a step of its own."""
    outcomes = yield (Work(function, size_bytes),)
    value: T = result(outcomes[0])
    return value


def collected(stream: Stream[T], is_enough: Callable[[T], bool] = lambda _: False) -> Op[list[T]]:
    """Run a stream to its end, or to a value that is enough, and return the values that it emits."""
    values: list[T] = []
    outcomes: Any = None
    while True:
        try:
            step = stream.send(outcomes)
        except StopIteration:
            return values
        if isinstance(step, Emit):
            values.append(step.value)
            outcomes = None
            if is_enough(step.value):
                stream.close()
                return values
        else:
            outcomes = yield step


def gather(operations: Sequence[Op[T]]) -> Op[list[T]]:
    """Run operations in parallel by joining their rounds, and return their results in order.

    The first exception interrupts the other operations and is raised.
    """
    try:
        return (yield from _gathered(operations))
    except GeneratorExit:
        raise
    except BaseException as error:
        rests = [interrupted(each, error) for each in operations]
        yield from _gathered([rest for rest in rests if rest is not None])
        raise
    finally:
        for each in operations:
            each.close()


def _gathered(operations: Sequence[Op[T]]) -> Op[list[T]]:
    results: dict[int, T] = {}
    waiting: dict[int, Sequence[Step]] = {}

    def advance(position: int, outcomes: Sequence[Outcome] | None) -> None:
        try:
            waiting[position] = (
                next(operations[position]) if outcomes is None else operations[position].send(outcomes)
            )
        except StopIteration as stop:
            waiting.pop(position, None)
            results[position] = stop.value

    for position in range(len(operations)):
        advance(position, None)
    while waiting:
        rounds = list(waiting.items())
        outcomes = yield [step for _, round_ in rounds for step in round_]
        start = 0
        for position, round_ in rounds:
            advance(position, outcomes[start : start + len(round_)])
            start += len(round_)
    return [results[position] for position in range(len(operations))]


def interrupted(operation: Generator[Any, Any, Any], error: BaseException) -> Op[None] | None:
    """Throw an interruption into an operation.

    Returns:
        The rest of the operation for the caller to run, which swallows the exception at its end; `None` if the
        operation has ended already.
    """
    traceback = error.__traceback__
    try:
        steps = operation.throw(error)
    except BaseException:  # noqa: BLE001 - it has ended, and the interruption is what matters.
        return None
    finally:
        # Throwing it adds frames of operations that did not cause it.
        error.__traceback__ = traceback
    return _rest(operation, steps)


def _rest(operation: Generator[Any, Any, Any], steps: Any) -> Op[None]:
    while True:
        outcomes = None if isinstance(steps, Emit) else (yield steps)
        try:
            steps = operation.send(outcomes)
        except BaseException:  # noqa: BLE001 - it has ended, and the interruption is what matters.
            return
