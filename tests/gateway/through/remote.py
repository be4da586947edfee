"""Simulated processes whose saver reaches the table through the gateway; both run on the model of DynamoDB.

The client's operations ask endpoints, and each request is answered by a service process of its own, which knows nothing
of any other request. Between the two, connections break before the effect and after it, clients give up requests that
go on, and services die half-way. As the transport does, a client sends again what got no answer.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import ormsgpack
from botocore.exceptions import ReadTimeoutError
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import ValidationError

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX
from langgraph.checkpoint.dynamodb._runtime.cache import Cache
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Emit, Op, Step, Stream, gather
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.operations import Operations
from langgraph.checkpoint.dynamodb.gateway.wire import VERSION
from langgraph.checkpoint.dynamodb.http.operations import Gateway, RemoteOperations
from langgraph.checkpoint.dynamodb.http.table import ask_table
from tests.simulation.history import Violation
from tests.simulation.savers import TableSaver
from tests.simulation.simulator import FAIR, MEMORY_BYTES, TABLE, Process, Simulator
from tests.simulation.world import NETWORK_ERRORS
from tests.support import harness

T = TypeVar("T")

# How often a request is sent that gets no answer.
ATTEMPTS = 3
# Per request, where there are faults: its connection breaks, or what serves it dies.
TROUBLE = 0.1
ROUNDS_MAX = 6
# Small, so that what is small in the simulation comes in several answers and goes in several requests.
ABOUT = {
    "wire_version": VERSION,
    "table_name": TABLE,
    "limits": {"body_bytes_max": 189_000, "items_max": 4},
    "owner": None,
}
ANSWER_BYTES = 1000
# So that copies and prunes go on with the next request as soon as they can.
PART_SECONDS = 0.0

_ENDPOINTS = {each.name: each for each in ENDPOINTS}
_SERDE = JsonPlusSerializer()
OPTIONS = {"allow_unencrypted": False, "bytes_max": CHECKPOINT_BYTES_MAX}


def gateway_of(process: Process | harness.Process) -> Gateway:
    """What the client of a process knows of the service."""
    storage = process.storage
    options = {"clock": storage.clock, "rng": storage.rng, "owner_from": storage.owner_from}
    return Gateway(storage.cache, OPTIONS, options)


class RemoteSaver(TableSaver):
    """A saver that reaches the table through the gateway."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        """Take the simulator, which runs what serves the requests, and the process, whose cache is used."""
        super().__init__(simulator, process)
        self._service = _Service(simulator, process)
        self.operations = RemoteOperations(gateway_of(process), _SERDE)

    @property
    def was_hurt(self) -> bool:
        """Whether requests of it broke of which an operation was not told."""
        return self._service.was_hurt

    @property
    def left_behind(self) -> int:
        """How many requests it gave up, without its operation being told, that somebody may still be carrying out."""
        return self._service.left_behind

    def _run(self, operation: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        return asking(operation, self._service.ask)


class RemoteTable:
    """Runs the operations of a store whose requests to the table go through the gateway."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        """Take the simulator, which runs what serves the requests, and the process."""
        self._service = _Service(simulator, process)

    def __call__(self, operation: Op[T]) -> Op[T]:
        """Run an operation."""
        return asking(operation, self._ask)

    def _ask(self, call: Call) -> Op[Any]:
        """Make a request to the table, as the transport does it; return its outcome."""
        try:
            return (yield from asking(ask_table(call), self._service.ask))
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 - it is the outcome.
            return error


class _Service:
    """The service as the client in a process reaches it."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        self._simulator = simulator
        self._storage = process.storage
        self._name = process.name
        self._served = 0
        self.was_hurt = False
        self.left_behind = 0

    # The client's side

    def ask(self, call: Call) -> Op[Any]:
        """Make a request, and again if it gets no answer."""
        for _ in range(ATTEMPTS):
            outcome = yield from self._attempt(call)
            if not isinstance(outcome, NETWORK_ERRORS):
                break
            # Also where it is the service's request that failed: it may take effect late, and claim for nobody.
            self.was_hurt = True
        return outcome

    def _attempt(self, call: Call) -> Op[Any]:
        choices, faults = self._simulator.choices, self._simulator.faults
        troubled = faults is not FAIR and choices.chance(TROUBLE)
        trouble = ("cut before", "cut after", "given up", "killed")[choices.pick(4)] if troubled else None
        self._simulator.log.append(f"{self._name} asks {call.method} ({trouble or 'in peace'})")
        lost = ReadTimeoutError(endpoint_url="simulated gateway")
        self.was_hurt = self.was_hurt or troubled
        if trouble == "cut before":
            return lost
        name = f"service {self._served} of {self._name}"
        self._served += 1
        serving = self._serve(name, call)
        if trouble in ("given up", "killed"):
            # What was not begun when its client gave it up never is: it comes after its deadline.
            left = yield from _for_rounds(serving, 1 + choices.pick(ROUNDS_MAX))
            if trouble == "given up" and left is not None:
                self.left_behind += 1
                self._simulator.start(name, Process(name, self._storage), _going_on(serving, left))
            else:
                serving.close()
            return lost
        try:
            answer = yield from serving
        except Exception as error:  # noqa: BLE001 - it is the answer.
            answer = error
            # A request of the service that failed may still take effect.
            self.left_behind += isinstance(error, NETWORK_ERRORS)
        return lost if trouble == "cut after" else answer

    # The service's side

    def _serve(self, name: str, call: Call) -> Op[Any]:
        """Answer a request as a service process does that has just started."""
        rng = random.Random(name)
        storage = replace(
            self._storage, cache=Cache(MEMORY_BYTES), table=replace(self._storage.table, rng=rng), rng=rng
        )
        try:
            return (yield from answered(storage, call))
        except (CheckpointerInputError, ValidationError) as error:
            raise Violation(f"{call.method} was refused: {error}") from error


def asking(operation: Generator[Any, Any, T], ask: Callable[[Call], Op[Any]]) -> Generator[Any, Any, T]:
    """Run a client's operation or stream, whose calls are requests of the gateway's endpoints."""
    outcomes: Any = None
    try:
        while True:
            try:
                steps = operation.send(outcomes)
            except StopIteration as stop:
                value: T = stop.value
                return value
            if isinstance(steps, Emit):
                outcomes = yield steps
            else:
                outcomes = yield from _round(steps, ask)
    finally:
        operation.close()


def _round(steps: Sequence[Step], ask: Callable[[Call], Op[Any]]) -> Op[Sequence[Any]]:
    return (yield from gather([ask(step) if isinstance(step, Call) else _one(step) for step in steps]))


def _one(step: Step) -> Op[Any]:
    outcomes = yield (step,)
    return outcomes[0]


def answered(storage: LocalStorage, call: Call) -> Op[Any]:
    """Answer a request as the service of a table does, with what travels and without the wire."""
    if call.method == "about":
        return ABOUT
    codec = Codec(_SERDE, bytes_max=CHECKPOINT_BYTES_MAX)
    driver: Any = _Driver()
    operations = Operations(
        replace(storage, codec=codec),
        driver,
        limits=Limits(),
        answer_bytes=ANSWER_BYTES,
        part_seconds=PART_SECONDS,
    )
    endpoint = _ENDPOINTS[call.method]
    served = getattr(operations, endpoint.attribute)
    request = endpoint.model.model_validate(_sent(call.params))
    if endpoint.name == "list":
        answer = yield from _collected(served(request)).__await__()
    else:
        answer = yield from served(request)
    sent = _sent(answer)
    # Whatever is answered in a test has the shape that the description says.
    for document in sent if endpoint.name == "list" else [sent]:
        endpoint.answer.model_validate(document)
    return sent


class _Driver:
    """Hands the rounds of the service's lists on to whoever steps the coroutine that awaits them."""

    async def astream(self, operation: Stream[T]) -> AsyncIterator[T]:
        """Run a stream."""
        outcomes: Any = None
        while True:
            try:
                steps = operation.send(outcomes)
            except StopIteration:
                return
            if isinstance(steps, Emit):
                yield steps.value
                outcomes = None
            else:
                outcomes = await _Rounds(_one_round(steps))


class _Rounds:
    """An operation as something to await."""

    def __init__(self, operation: Op[Any]) -> None:
        self._operation = operation

    def __await__(self) -> Op[Any]:
        return (yield from self._operation)


def _one_round(steps: Sequence[Step]) -> Op[Any]:
    return (yield steps)


async def _collected(documents: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in documents]


def _sent(document: Any) -> Any:
    """A document as it is on the other side."""
    return ormsgpack.unpackb(ormsgpack.packb(document))


def _for_rounds(operation: Op[Any], count: int) -> Op[Sequence[Step] | None]:
    """Run an operation for some rounds; return the next one, None where it ended before."""
    try:
        steps = next(operation)
        for _ in range(count):
            steps = operation.send((yield steps))
    except Violation:
        raise
    except (StopIteration, Exception):  # noqa: BLE001 - whatever came of it, nobody hears of it.
        return None
    return steps


def _going_on(operation: Op[Any], steps: Sequence[Step]) -> Generator[Any, Any, None]:
    """Run the rest of an operation, whose result nobody waits for."""
    while True:
        outcomes = yield steps
        try:
            steps = operation.send(outcomes)
        except StopIteration:
            return
