"""The third driver: several operations at once against the in-memory DynamoDB, one decision at a time.

An actor is one flow of a process: a generator of rounds, as the saver's operations are. The simulator takes the
actors' requests apart into effects, lets one effect or one actor move at a time, and lets requests, answers and
processes be lost, repeated and delayed as `Choices` say. It knows nothing of checkpoints.
"""

import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, Wait, Work
from langgraph.checkpoint.dynamodb._runtime.storage import Cache, Storage
from tests.simulation.history import SKEW_SECONDS_MAX, Moment, Violation
from tests.simulation.schedule import Choices
from tests.support.dynamodb_model import DynamoDBModel
from tests.support.harness import CODEC, TABLE, Run, Stage, result_of

START_SECONDS = 1_700_000_000.0
# Enough for all that a process reads.
MEMORY_BYTES = 1 << 20

# The first one makes a lease run out, the second one a put start again, the third one lets unnamed segments count as
# orphans. With a ttl, a checkpoint lives through some of the second and none of the third.
PAUSES_SECONDS = (130.0, 1300.0, 4000.0)
# For so long an actor stands still while the others go on: past a claim, past an upload, past what counts as an orphan.
STILLS_SECONDS = (200.0, 2000.0, 5000.0)

# By how much the clock of a process may be off.
SKEWS_SECONDS = (0.0, 0.0, 1.0, -SKEW_SECONDS_MAX, SKEW_SECONDS_MAX)

READS = frozenset({"get_item", "query", "scan", "batch_get_item"})

_T = TypeVar("_T")


@dataclass(frozen=True)
class Faults:
    """How likely each kind of bad luck is."""

    crash: float = 0.0
    """Per move: the actor's process dies, and its requests may arrive or not."""
    lost_request: float = 0.0
    """Per request: it fails before it has any effect."""
    lost_answer: float = 0.0
    """Per request: it takes effect, a batch perhaps in part, and then fails."""
    late: float = 0.0
    """Per request: it fails, and takes effect some time later."""
    repeated: float = 0.0
    """Per request: the client sends it again after it took effect, and sees the second answer only."""
    unprocessed: float = 0.0
    """Per batch: some of it comes back."""
    stale: float = 0.0
    """Per item of an eventual read, and per item of an index: its last writes are missed."""
    torn: float = 0.0
    """Per read: it takes time, and sees its items at different moments between its request and its answer."""
    pause: float = 0.0
    """Per move: long enough passes for leases to run out."""
    still: float = 0.0
    """Per move: the actor that would move stands still instead, for minutes, wherever it is."""
    removal: float = 0.0
    """Per move: DynamoDB removes one of the items that have expired."""
    patience: float = 0.0
    """Per move: the one that moved last moves again. The rarest races are those in which one actor stands still."""


FAIR = Faults()


@dataclass
class Process:
    """One process with the saver in it: what it remembers dies with it."""

    name: str
    storage: Storage
    alive: bool = True


@dataclass
class _Request:
    """A call on its way: which of its effects are still to come, and what its sender will be told."""

    call: Call
    began_at: int
    effects: list[Call]
    failure: Exception | None = None
    answers: list[Any] = field(default_factory=list)
    unprocessed: list[Any] = field(default_factory=list)
    given_up: bool = False

    @property
    def done(self) -> bool:
        return self.given_up or not self.effects

    def outcome(self) -> Any:
        if self.failure is not None:
            return self.failure
        if self.call.method == "batch_write_item":
            failed = [answer for answer in self.answers if isinstance(answer, Exception)]
            left = {TABLE: self.unprocessed} if self.unprocessed else {}
            return failed[0] if failed else {"UnprocessedItems": left}
        return self.answers[-1]


@dataclass
class _Pause:
    """A step that waits for another actor of the process, until some time at most."""

    wait: Wait
    until: float


@dataclass
class Actor:
    """One flow of a process: the generator it runs, and the round it waits for."""

    name: str
    process: Process
    steps: Generator[Any, Any, Any]
    requests: list[_Request | None] = field(default_factory=list)
    pauses: list[_Pause] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    effects: list[Call] = field(default_factory=list)
    """What it has written so far."""
    finished: bool = False
    failure: Exception | None = None
    wakes_at: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return any(request is not None and not request.done for request in self.requests)

    def awake_at(self) -> float:
        """Return from when on it can move: whoever waits for another actor can once that one has ended, or later."""
        pauses = [each.until for each in self.pauses if not each.wait.ended.done()]
        return max([self.wakes_at, *pauses])


class Simulator(Stage):
    """One table, the processes that use it, and a clock that moves when they do."""

    def __init__(
        self,
        choices: Choices,
        faults: Faults = FAIR,
        *,
        ttls_seconds: Sequence[int | None] = (None,),
        memories_bytes: Sequence[int] = (MEMORY_BYTES,),
        switches_max: int | None = None,
    ) -> None:
        """Start with an empty table.

        Args:
            choices: What decides.
            faults: How likely each kind of bad luck is.
            ttls_seconds: The savers' option: each process has one of these.
            memories_bytes: How much processes remember: each has one of these.
            switches_max: How often another actor may come in while one could go on. With it, a round is one move:
                races are then few enough to be tried one and all.
        """
        self.choices = choices
        self._switches_left = switches_max
        self.faults = faults
        self.now = START_SECONDS
        self.moves = 0
        self.log: list[str] = []
        self.model = DynamoDBModel(table_schema(TABLE), self.clock)
        self.model.faults.missed_writes = self._missed
        self.model.faults.index_lag = self._missed
        self.model.faults.reading_moment = self._moment
        self.model.faults.unprocessed = self._unprocessed
        self._ttls_seconds = ttls_seconds
        self._memories_bytes = memories_bytes
        self._processes = 0
        self._last: Actor | None = None
        self.actors: list[Actor] = []
        self.in_flight: list[Call] = []
        """Requests that their senders have given up. The network delivers them before a pause, or never."""
        self.owner_from: str | None = None
        """The savers' option: which key of a config names its thread's owner."""
        self.nobody_waits: Callable[[Call], None] = _ignore
        """Is told of each effect that comes when its sender waits no more, and of all of one that dies or fails."""
        self.took_effect: Callable[[Call], None] = _ignore
        """Is told of each effect."""

    def clock(self) -> float:
        """Return the time."""
        return self.now

    @property
    def moment(self) -> Moment:
        """The point that the run has come to."""
        return Moment(self.moves, self.now)

    def process(self) -> Process:
        """Start a process that remembers nothing."""
        self._processes += 1
        name = f"process {self._processes}"
        rng = random.Random(name)
        storage = Storage(
            codec=CODEC,
            cache=Cache(self._memories_bytes[self.choices.pick(len(self._memories_bytes))]),
            table=Table(TABLE, rng=rng),
            ttl_seconds=self._ttls_seconds[self.choices.pick(len(self._ttls_seconds))],
            owner_from=self.owner_from,
            clock=self._clock_of_a_process(),
            rng=rng,
        )
        return Process(name, storage)

    def _clock_of_a_process(self) -> Callable[[], float]:
        """Return a clock that is right, or with a ttl perhaps ahead or behind by seconds."""
        if self._ttls_seconds == (None,):
            return self.clock
        skew = SKEWS_SECONDS[self.choices.pick(len(SKEWS_SECONDS))]
        return lambda: self.now + skew

    def start(self, name: str, process: Process, steps: Generator[Any, Any, Any]) -> Actor:
        """Let an actor take part."""
        actor = Actor(name, process, steps)
        self.actors.append(actor)
        return actor

    def forget_actors(self) -> None:
        """Let new ones take the place of those that have ended."""
        self.actors.clear()
        self._last = None

    def run(self) -> None:
        """Move until every actor has finished or died."""
        while self.move():
            pass

    def run_alone(self, steps: Op[_T]) -> _T:
        """Run one operation to its end without faults, with nobody else moving."""
        faults, self.faults = self.faults, FAIR
        try:
            return Run(self, steps).finish()
        finally:
            self.faults = faults

    def run_partly(self, steps: Op[Any], rounds: int, effects: Sequence[int]) -> int | None:
        """Run an operation for some rounds and for some effects of the next one, and let its process die there.

        Returns:
            How many effects on the table that last round can have; None where the operation ended before.
        """
        run = Run(self, steps)
        for _ in range(rounds):
            if not run.done:
                run.go_on()
        if run.done:
            return None
        last = [effect for call in run.calls if call.method not in READS for effect in effects_of(call)]
        for position in effects:
            self._answer(last[position], None)
        run.drop()
        return len(last)

    def answer(self, call: Call) -> Any:
        """Carry out a request of an operation that runs alone; what it fails with is its outcome."""
        return self._answer(call, None)

    def move(self) -> bool:
        """Let one thing happen; False when there is nothing left to happen."""
        living = [actor for actor in self.actors if not actor.finished and actor.process.alive]
        if not living:
            return False
        self.moves += 1
        self.now += 0.01
        if self.choices.chance(self.faults.pause):
            self._pause(PAUSES_SECONDS[self.choices.pick(len(PAUSES_SECONDS))])
        if self.faults.removal and self.choices.chance(self.faults.removal):
            self._remove_expired()
        awake = [actor for actor in living if actor.awake_at() <= self.now]
        if not awake:
            self._pause(min(actor.awake_at() for actor in living) - self.now)
        elif self._switches_left is not None:
            self._turn(awake)
        else:
            self._move_one(awake)
        return True

    def _move_one(self, awake: list[Actor]) -> None:
        """Let one of the actors move, or a request arrive whose sender has given it up."""
        if self._last in awake and not self.choices.chance(1 - self.faults.patience):
            chosen = awake.index(self._last)
        else:
            chosen = self.choices.pick(len(awake) + len(self.in_flight))
        if chosen >= len(awake):
            self._arrive(self.in_flight.pop(chosen - len(awake)))
            return
        actor = self._last = awake[chosen]
        if self.choices.chance(self.faults.crash):
            self.kill(actor.process)
        elif self.choices.chance(self.faults.still):
            seconds = STILLS_SECONDS[self.choices.pick(len(STILLS_SECONDS))]
            self.log.append(f"{actor.name} stands still for {seconds:.0f} s")
            actor.wakes_at = self.now + seconds
        elif actor.waits:
            self._take_effect(actor)
        else:
            self._resume(actor)

    def _turn(self, living: list[Actor]) -> None:
        """Let one actor's whole round take effect, and let it ask for the next one."""
        others = [actor for actor in living if actor is not self._last]
        if self._last in living:
            chosen = self.choices.pick(1 + len(others)) if self._switches_left else 0
            if chosen:
                self._last = others[chosen - 1]
                self._switches_left = (self._switches_left or 0) - 1
        else:
            self._last = others[self.choices.pick(len(others))]
        assert self._last is not None
        for request in self._last.requests:
            while request is not None and not request.done:
                self._effect(self._last, request, 0)
        self._resume(self._last)

    def kill(self, process: Process) -> None:
        """Let a process die; what it has sent may still arrive."""
        self.log.append(f"{process.name} dies")
        process.alive = False
        for actor in self.actors:
            if actor.process is process and not actor.finished:
                for request in actor.requests:
                    if request is not None:
                        self._give_up(request)
                actor.steps.close()
                self._leave(actor)

    def leave(self, process: Process) -> None:
        """Let a process give up what it has done so far, and go on with something else."""
        for actor in self.actors:
            if actor.process is process:
                self._leave(actor)

    def _leave(self, actor: Actor) -> None:
        for effect in actor.effects:
            self.nobody_waits(effect)

    def settle(self) -> None:
        """Let every request in flight arrive, or get lost."""
        while self.in_flight:
            call = self.in_flight.pop(self.choices.pick(len(self.in_flight)))
            if not self.choices.pick(2):
                self._arrive(call)

    def _pause(self, seconds: float) -> None:
        self.settle()
        self.log.append(f"{seconds:.0f} s pass")
        self.now += seconds

    def _remove_expired(self) -> None:
        expired = self.model.expired()
        if expired:
            key = expired[self.choices.pick(len(expired))]
            self.log.append(f"DynamoDB removes {key['PK']['S']}|{key['SK']['S']}")
            self.model.expire([key])

    def _resume(self, actor: Actor) -> None:
        """Give an actor its outcomes, and send the round it asks for next."""
        outcomes = [
            outcome if request is None else request.outcome()
            for request, outcome in zip(actor.requests, actor.outcomes, strict=True)
        ]
        try:
            round_ = actor.steps.send(outcomes if actor.requests else None)
        except StopIteration:
            actor.finished = True
            self.log.append(f"{actor.name} has finished")
            return
        except Exception as error:  # noqa: BLE001 - whatever an operation raises is a finding or a fact.
            actor.finished, actor.failure = True, error
            self.log.append(f"{actor.name} failed: {error!r}")
            self._leave(actor)
            return
        actor.requests, actor.outcomes, actor.pauses = [], [], []
        for step in round_:
            if isinstance(step, Wait):
                self.log.append(f"{actor.name} waits for another one")
                actor.pauses.append(_Pause(step, self.now + step.seconds_max))
                actor.requests.append(None)
                actor.outcomes.append(None)
            elif isinstance(step, Work):
                actor.requests.append(None)
                actor.outcomes.append(result_of(step))
            else:
                self.log.append(f"{actor.name} sends {described(step)}")
                self.now += step.delay_seconds
                actor.requests.append(self._send(step))
                actor.outcomes.append(None)

    def _send(self, call: Call) -> _Request:
        """Put a request on its way and decide its fate."""
        request = _Request(call, self.model.sequence, effects_of(call))
        faults = self.faults
        if self.choices.chance(faults.lost_request):
            request.failure, request.effects = _connection_error(self.choices), []
        elif self.choices.chance(faults.lost_answer):
            request.failure = _connection_error(self.choices)
            lost = self.choices.subset(len(request.effects)) if len(request.effects) > 1 else []
            request.effects = [call for position, call in enumerate(request.effects) if position not in lost]
        elif call.method not in READS and self.choices.chance(faults.late):
            request.failure = _connection_error(self.choices)
            self._give_up(request)
        elif call.method not in READS and self.choices.chance(faults.repeated):
            request.effects = request.effects * 2
        elif call.method == "batch_write_item" and self.choices.chance(faults.unprocessed):
            left = self.choices.subset(len(request.effects))
            request.unprocessed = [call.params["RequestItems"][TABLE][position] for position in left]
            request.effects = [call for position, call in enumerate(request.effects) if position not in left]
        if request.failure is not None or request.unprocessed:
            self.log.append(f"   which {'fails' if request.failure else 'stays partly unprocessed'}")
        return request

    def _take_effect(self, actor: Actor) -> None:
        """Let one of an actor's requests take one of its effects."""
        waiting = [request for request in actor.requests if request is not None and not request.done]
        request = waiting[self.choices.pick(len(waiting))]
        self._effect(actor, request, self.choices.pick(len(request.effects)))

    def _effect(self, actor: Actor, request: _Request, position: int) -> None:
        effect = request.effects.pop(position)
        request.answers.append(self._answer(effect, request.began_at))
        if effect.method not in READS:
            actor.effects.append(effect)
        self.log.append(f"{actor.name}: {described(effect)} -> {answered(request.answers[-1])}")

    def _give_up(self, request: _Request) -> None:
        """Leave a request's effects to the network."""
        request.given_up = True
        if request.call.method not in READS:
            self.in_flight += request.effects

    def _arrive(self, call: Call) -> None:
        """Let a request take effect whose sender does not wait for it any more."""
        self.log.append(f"late: {described(call)} -> {answered(self._answer(call, None))}")
        self.nobody_waits(call)

    def _answer(self, call: Call, began_at: int | None) -> Any:
        torn = call.method in READS and self.choices.chance(self.faults.torn)
        try:
            answer = self.model.handle(call.method, call.params, began_at if torn else None)
            self.took_effect(call)
            return answer
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationException":
                # An actor that met it would end as one whom the network failed.
                raise Violation(f"DynamoDB never accepts {described(call)}: {error}") from error
            return error

    def _missed(self, _key: object, written: int) -> int:
        if written and self.choices.chance(self.faults.stale):
            return 1 + self.choices.pick(min(written, 2))
        return 0

    def _moment(self, earliest: int, latest: int) -> int:
        return earliest + self.choices.pick(latest - earliest + 1)

    def _unprocessed(self, method: str, count: int) -> Sequence[int]:
        """Leave keys of a batch of reads; those of a batch of writes are left by `_send`."""
        if method == "batch_get_item" and self.choices.chance(self.faults.unprocessed):
            return self.choices.subset(count)
        return ()


def _ignore(_call: Call) -> None:
    pass


def effects_of(call: Call) -> list[Call]:
    """Take a request apart into what DynamoDB does one after the other: a batch of writes is no unit."""
    if call.method != "batch_write_item":
        return [call]
    return [
        replace(call, params={**call.params, "RequestItems": {TABLE: [write]}})
        for write in call.params["RequestItems"][TABLE]
    ]


def _connection_error(choices: Choices) -> Exception:
    errors: Sequence[Callable[[], Exception]] = (
        lambda: ReadTimeoutError(endpoint_url="simulated"),
        lambda: EndpointConnectionError(endpoint_url="simulated"),
        lambda: ClientError({"Error": {"Code": "InternalServerError", "Message": "simulated"}}, "Simulated"),
    )
    return errors[choices.pick(len(errors))]()


def described(call: Call) -> str:
    """Say in a line what a request is about."""
    return f"{call.method} {', '.join(_subjects(call.params))}"


def _subjects(params: Mapping[str, Any]) -> Iterator[str]:
    for key in keys_of(params):
        yield f"{key['PK']['S']}|{key['SK']['S']}"
    if "KeyConditionExpression" in params:
        yield " ".join(value.get("S", "?") for value in params["ExpressionAttributeValues"].values())
    if "UpdateExpression" in params:
        yield params["UpdateExpression"]


def keys_of(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the items, or their keys, that a request names."""
    for name in ("Key", "Item"):
        if name in params:
            yield params[name]
    for requests in params.get("RequestItems", {}).values():
        if isinstance(requests, Mapping):
            yield from requests["Keys"]
        else:
            for request in requests:
                yield (
                    request["PutRequest"]["Item"]
                    if "PutRequest" in request
                    else request["DeleteRequest"]["Key"]
                )


def answered(answer: Any) -> str:
    """Say in a line what came back."""
    if isinstance(answer, ClientError):
        return str(answer.response["Error"]["Code"])
    if "Items" in answer:
        return " ".join(item.get("SK", item["PK"])["S"] for item in answer["Items"]) or "nothing"
    if "Responses" in answer:
        return " ".join(item["SK"]["S"] for item in answer["Responses"][TABLE]) or "nothing"
    return "found" if "Item" in answer else "done"
