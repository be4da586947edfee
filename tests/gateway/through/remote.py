"""Simulated processes whose saver reaches the table through the gateway; both run on the model of DynamoDB.

The client's operations ask endpoints. Between it and the services connections break before the effect and after it,
clients give up requests that go on, services die half-way, and the next request meets another service, which knows of
the thread what it met itself. As the transport does, a client sends again what got no answer.
"""

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import ReadTimeoutError
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.cache.dynamodb.entries import CacheStorage
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX
from langgraph.checkpoint.dynamodb._format.wire import WIRE_VERSION
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Emit, Op, Step, gather
from langgraph.checkpoint.dynamodb._runtime.storage import Cache, Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.opaque import OpaqueCodec
from langgraph.checkpoint.dynamodb.gateway.serving import Principal, Reach, Serving
from langgraph.checkpoint.dynamodb.http import operations
from langgraph.checkpoint.dynamodb.http.exchange import asked_in
from langgraph.checkpoint.dynamodb.http.operations import KnownCheckpoints
from langgraph.checkpoint.dynamodb.http.service import Service
from langgraph.store.dynamodb.resources import StoreStorage
from tests.simulation.history import Violation
from tests.simulation.savers import OPERATIONS, TableSaver
from tests.simulation.simulator import FAIR, MEMORY_BYTES, Process, Simulator
from tests.simulation.world import NETWORK_ERRORS

T = TypeVar("T")

# How often a request is sent that gets no answer.
ATTEMPTS = 3
# Per request, where there are faults: its connection breaks, or what serves it dies.
TROUBLE = 0.1
ROUNDS_MAX = 6
# Per request: it meets another service than the one before.
CHANGE = 0.2
SERVICES = 2
# Small, so that what is small in the simulation comes in several answers.
LIMITS = Limits(body_bytes_max=2000)
ANSWER_BYTES = 2000
ABOUT = {"wire_version": WIRE_VERSION, "limits": {"decompressed_bytes_max": 1 << 20}, "owner": None}

_SERDE = JsonPlusSerializer()


def client_of(storage: Storage) -> operations.Client:
    """A client, as a process that has just started has it."""
    return operations.Client(
        Service(),
        KnownCheckpoints(MEMORY_BYTES),
        Codec(_SERDE),
        owner_from=storage.owner_from,
        clock=storage.clock,
    )


class RemoteSaver(TableSaver):
    """A saver that reaches the table through the gateway."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        """Take the simulator, which runs what serves the requests, and the process."""
        super().__init__(simulator, process)
        # A process has one saver, of which the world makes several.
        made = (client_of(process.storage), Services(simulator, process))
        client, services = vars(process).setdefault("remote", made)
        self._services: Services = services
        self.operations = {name: partial(getattr(operations, name), client) for name in OPERATIONS}

    @property
    def was_hurt(self) -> bool:
        """Whether requests of it broke of which an operation was not told."""
        return self._services.was_hurt

    @property
    def left_behind(self) -> int:
        """How many requests it gave up, without its operation being told, that somebody may still be carrying out."""
        return self._services.left_behind

    def _run(self, operation: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        return asking(operation, self._services.ask)


class Services:
    """The services as the client in a process reaches them."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        """Take the simulator, which runs what serves the requests, and the process."""
        self._simulator = simulator
        self._storage = process.storage
        self._name = process.name
        self._served = 0
        self._caches = [Cache(MEMORY_BYTES) for _ in range(SERVICES)]
        self._now = 0
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
        if choices.chance(CHANGE):
            self._now = choices.pick(SERVICES)
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
            # The service ends a request when its client gives it up. A put of a memory has to end then: what it stored
            # later would be newer than what others have stored since.
            goes_on = not call.method.startswith("store/")
            if trouble == "given up" and left is not None and goes_on:
                self.left_behind += 1
                clock = self._storage.clock
                until = clock() + LIMITS.request_seconds_max
                going_on = _going_on(serving, left, lambda: clock() > until)
                self._simulator.start(name, Process(name, self._storage), going_on)
            else:
                serving.close()
            if trouble == "killed":
                self._caches[self._now] = Cache(MEMORY_BYTES)
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
        """Answer a request as the service does that it meets."""
        rng = random.Random(name)
        table = replace(self._storage.table, rng=rng)
        storage = replace(self._storage, cache=self._caches[self._now], table=table, rng=rng)
        try:
            return (yield from answered(storage, call))
        except CheckpointerInputError as error:
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


def answered(storage: Storage, call: Call, limits: Limits = LIMITS) -> Op[Any]:
    """Answer a request as the service of a table does, over the wire but for HTTP."""
    asked = asked_in(call)
    if asked is None:
        return ABOUT
    return asked.result((yield from content_of(storage, asked.endpoint, asked.body(), limits)))


def served_on(storage: Storage, limits: Limits = LIMITS) -> Serving:
    """What a service gives the function of a call."""
    memories = StoreStorage(
        codec=Codec(_SERDE), table=storage.table, clock=storage.clock, rng=storage.rng, consistent_read=True
    )
    cached = CacheStorage(codec=Codec(_SERDE), table=storage.table, consistent_read=True, prefix=())
    opaque = replace(storage, codec=OpaqueCodec(_SERDE, bytes_max=CHECKPOINT_BYTES_MAX))
    within = (limits.response_bytes, limits.part_seconds, limits.decompressed_bytes_max)
    return Serving(opaque, memories, cached, Principal("all"), *within)


def content_of(
    storage: Storage, endpoint: Endpoint[Any], content: bytes, limits: Limits = LIMITS
) -> Op[bytes]:
    """Return the body of the answer to one."""
    if "/" in endpoint.name or endpoint.name == "copy-thread":
        # An answer has little room, and a deletion or a copy stops after each part.
        limits = Limits(body_bytes_max=2 * ANSWER_BYTES, request_seconds_max=1e-9)
    arguments = endpoint.decoded(content, Reach(Principal("all")))
    answer = yield from endpoint.operation(served_on(storage, limits), arguments)
    return endpoint.encoded(answer)


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


def _going_on(
    operation: Op[Any], steps: Sequence[Step], is_over: Callable[[], bool]
) -> Generator[Any, Any, None]:
    """Run the rest of an operation, whose result nobody waits for, up to its deadline."""
    while True:
        outcomes = yield steps
        if is_over():
            operation.close()
            return
        try:
            steps = operation.send(outcomes)
        except StopIteration:
            return
