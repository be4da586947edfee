"""What an operation asks of its driver: rounds of requests and work, and values to hand on.

An operation is a generator. It yields a round, a sequence of steps that may run together, and is sent
their outcomes in the same order; it returns its result. A stream yields `Emit` steps between rounds.
Operations know no client, no thread and no event loop; they are composed with `yield from` and `gather` only.

An operation that is interrupted (a cancelled task, Ctrl-C) is thrown the interruption at its `yield`, and may ask for a
few more rounds to let go of what it holds. One that is dropped is closed and asks for nothing more: what it leaves
behind is decided by the order of its writes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Call:
    """One DynamoDB request: a method of the low-level client and its keyword arguments."""

    method: str
    params: Mapping[str, Any]
    delay_seconds: float = 0.0


@dataclass(frozen=True)
class Work:
    """A piece of CPU work; the size is an estimate by which a driver may move it off its event loop."""

    function: Callable[[], Any]
    size_bytes: int = 0


@dataclass(frozen=True)
class Emit(Generic[T]):
    """A value that a stream hands to its consumer."""

    value: T


Step: TypeAlias = Call | Work
Outcome: TypeAlias = Any
"""What a step gave: the response or the result, or the exception it ended with."""

Op: TypeAlias = Generator[Sequence[Step], Sequence[Outcome], T]
Stream: TypeAlias = Generator[Sequence[Step] | Emit[T], Sequence[Outcome], None]


def result(outcome: Outcome) -> Any:
    """Return a step's outcome, or raise it where it is an exception."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def work(function: Callable[[], T], size_bytes: int = 0) -> Op[T]:
    """Run a piece of CPU work as a step of its own."""
    outcomes = yield (Work(function, size_bytes),)
    value: T = result(outcomes[0])
    return value


def collected(stream: Stream[T]) -> Op[list[T]]:
    """Run a stream to its end and return all that it hands on."""
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
        else:
            outcomes = yield step


def gather(operations: Sequence[Op[T]]) -> Op[list[T]]:
    """Run operations side by side, joining their rounds, and return their results in order.

    The first exception ends them all; it interrupts the others.
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


def both(one: Op[T], other: Op[U]) -> Op[tuple[T, U]]:
    """Run two operations of different kinds side by side."""
    operations: Sequence[Op[Any]] = (one, other)
    first, second = yield from gather(operations)
    return first, second


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
    """Throw an interruption into an operation, which the caller then goes on with.

    Returns:
        What the operation asks for until it ends, whatever it ends with; None where it has nothing to let go of.
    """
    traceback = error.__traceback__
    try:
        steps = operation.throw(error)
    except BaseException:  # noqa: BLE001 - it has ended, and what counts is the interruption.
        return None
    finally:
        # It passes through operations that have no part in it.
        error.__traceback__ = traceback
    return _rest(operation, steps)


def _rest(operation: Generator[Any, Any, Any], steps: Any) -> Op[None]:
    while True:
        outcomes = None if isinstance(steps, Emit) else (yield steps)
        try:
            steps = operation.send(outcomes)
        except BaseException:  # noqa: BLE001 - it has ended, and what counts is the interruption.
            return
