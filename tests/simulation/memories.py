"""The store in the simulator: actors that put, delete, read, renew, sweep and erase, and a checker of what they see.

Every value is unique, so a reader's answer names the put that it saw. A read may return a value if its put had begun,
and nothing that was acknowledged came between the put and the read. A value that was acknowledged may be missing only
if something that deletes it, or its expiry, can have come since.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraph.checkpoint.dynamodb._format.items import is_expired, key_of, partition_key, sort_key
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.store.dynamodb import VectorEngine, keys, partitions, reads, search, similarity
from langgraph.store.dynamodb.erase import remove_under
from langgraph.store.dynamodb.memory_items import VALUE, Expected, parse_memory
from langgraph.store.dynamodb.put import NewMemory, put, put_all
from langgraph.store.dynamodb.resources import LEFTOVER_SECONDS, StoreStorage
from tests.simulation.history import Moment
from tests.simulation.schedule import Choices
from tests.simulation.simulator import FAIR, Faults, Process, Simulator

Place: TypeAlias = tuple[tuple[str, ...], str]
Flow: TypeAlias = Generator[Any, Any, None]

PLACES: Sequence[Place] = ((("a", "b"), "k"), (("a", "b", "c"), "k"), (("a", "b", "c"), "l"), (("a",), "k"))
PREFIXES: Sequence[tuple[str, ...]] = (("a",), ("a", "b"), ("a", "b", "c"))
TTLS_SECONDS: Sequence[int | None] = (None, None, 600, 5000)
# Whole seconds, and the time until the answer.
_ROUNDING_SECONDS = 2.0
_INFINITY = float("inf")
# What the documents promise of an erasure.
ERASED_WITHIN_SECONDS = 24 * 3600
FAILED = "a request failed"
_NETWORK_ERRORS = (ReadTimeoutError, EndpointConnectionError, ClientError)

FAULTS = (
    FAIR,
    Faults(crash=0.02),
    Faults(lost_request=0.03, lost_answer=0.05),
    Faults(late=0.08),
    Faults(repeated=0.2),
    Faults(unprocessed=0.3),
    Faults(stale=0.3, torn=0.5),
    Faults(pause=0.03, removal=0.1),
    Faults(still=0.02, pause=0.01, removal=0.05),
    Faults(
        crash=0.01, lost_request=0.01, lost_answer=0.02, late=0.03, repeated=0.08, unprocessed=0.1, stale=0.1,
        torn=0.2, removal=0.05, pause=0.01, still=0.005,
    ),
)  # fmt: skip


@dataclass
class Write:
    """A put, or a deletion, of one place: when it was under way, and whether it was acknowledged."""

    place: Place
    number: int | None
    """The value; `None` deletes."""
    began: int
    began_at: float
    ttl_seconds: int | None = None
    expected: str | None = None
    ended: float = _INFINITY
    ended_at: float = _INFINITY
    acknowledged: bool = False
    is_erasure: bool = False
    """Whether it deletes what is under a prefix. It cannot know of a put whose process died and that arrives later."""


@dataclass
class History:
    """What was promised to callers, and when memories may have been renewed."""

    writes: list[Write] = field(default_factory=list)
    renewals: list[tuple[Place, float]] = field(default_factory=list)
    """Until when a read that renews was under way."""

    def check_read(self, place: Place, number: int | None, start: Moment, end: Moment) -> None:
        """Raise if a reader that was under way between these moments must not see this."""
        writes = [each for each in self.writes if each.place == place]
        if number is None:
            self._check_missing(place, writes, start.move, end)
            return
        (own,) = [each for each in writes if each.number == number]
        assert own.began <= end.move, f"{place}: {number} was read before it was put"
        later = [
            each
            for each in writes
            if each.acknowledged
            and own.ended < each.began
            and each.ended < start.move
            and (own.acknowledged or not each.is_erasure)
        ]
        assert not later, (
            f"{place}: {number} was read after {[each.number for each in later]} had replaced it"
        )
        if own.ttl_seconds is not None:
            renewed = [until for at, until in self.renewals if at == place]
            expiry = max([min(own.ended_at, start.seconds), *renewed]) + own.ttl_seconds + _ROUNDING_SECONDS
            assert start.seconds <= expiry, f"{place}: {number} was read after it had expired"

    def _check_missing(self, place: Place, writes: Sequence[Write], began: int, end: Moment) -> None:
        for own in writes:
            if own.number is None or not own.acknowledged or own.ended >= began:
                continue
            causes = [
                each
                for each in writes
                if each.ended >= own.began and each.began <= end.move
                and (each.number is None or (each.ttl_seconds or _INFINITY) + each.began_at <= end.seconds)
            ]  # fmt: skip
            assert causes, f"{place}: {own.number} was acknowledged, and is missing"

    def check_conditions(self) -> None:
        """Raise if two puts were acknowledged that expected the same revision."""
        expected = [each.expected for each in self.writes if each.acknowledged and each.expected is not None]
        assert len(expected) == len({*expected}), "two puts have replaced the same revision"


class MemoryWorld:
    """A table, stores in processes, and the history of what they promised."""

    def __init__(self, choices: Choices, faults: Faults, switches_max: int | None = None) -> None:
        """Start with an empty table."""
        self.simulator = Simulator(choices, faults, switches_max=switches_max)
        self.choices = choices
        self.history = History()
        self._leaves_anything = any(
            (faults.crash, faults.late, faults.lost_request, faults.lost_answer, faults.repeated)
        )
        self._numbers = 0
        self._storages: dict[str, StoreStorage] = {}
        self.engine: VectorEngine | None = None
        """Compares vectors beside the table."""

    def storage(self, process: Process) -> StoreStorage:
        """Return the storage of the store in a process."""
        if process.name not in self._storages:
            base = process.storage
            self._storages[process.name] = StoreStorage(
                codec=base.codec, table=base.table, clock=base.clock, rng=base.rng, engine=self.engine
            )
        return self._storages[process.name]

    # The operations of a store in a process

    def delete(self, process: Process, place: Place) -> Op[Any]:
        """Delete a memory; return nothing if something else came first."""
        return put(self.storage(process), NewMemory(keys.address_of(*place), None))

    def erase(self, process: Process, prefix: tuple[str, ...]) -> Op[Any]:
        """Delete all memories under a prefix."""
        return remove_under(self.storage(process), prefix, is_erasure=True)

    def sweep(self, process: Process, prefix: tuple[str, ...]) -> Op[Any]:
        """Delete the expired memories under a prefix."""
        return remove_under(self.storage(process), prefix, is_erasure=False)

    def store(
        self,
        process: Process,
        place: Place,
        value: dict[str, Any],
        vectors: Sequence[similarity.NewVector],
        ttl_seconds: int | None,
        expected: Expected | None,
    ) -> Op[Any]:
        """Store a memory; return nothing if something else came first."""
        storage = self.storage(process)
        address = keys.address_of(*place)
        new = NewMemory(address, value, ttl_seconds=ttl_seconds, expected=expected, vectors=vectors)
        [stored] = yield from put_all(storage, [new])
        return stored

    def read(self, process: Process, place: Place) -> Op[Any]:
        """Read a memory, without renewing it."""
        return reads.get(self.storage(process), [keys.address_of(*place)])

    def renew(self, process: Process, place: Place, found: Any) -> Op[Any]:
        """Renew a memory that was read."""
        del place
        return reads.renew(self.storage(process), [found.memory])

    def search(self, process: Process, prefix: tuple[str, ...], order: Any) -> Op[Any]:
        """Search under a prefix."""
        return search.search(self.storage(process), search.Search(prefix, limit=99, order=order))

    def list(self, process: Process, prefix: tuple[str, ...]) -> Op[Any]:
        """List the namespaces under a prefix."""
        wanted = ListNamespacesOp((MatchCondition("prefix", prefix),))
        return partitions.list_namespaces(self.storage(process), wanted)

    # Actors

    def writer(self, process: Process, places: Sequence[Place]) -> Flow:
        """Put some values, large and small, with and without vectors."""
        for place in places:
            yield from self._put(process, place, None)

    def updater(self, process: Process, place: Place, times: int) -> Flow:
        """Read a memory, and replace it if it is still the same."""
        for _ in range(times):
            found = yield from self._get(process, place, renew=False)
            yield from self._put(process, place, Expected(None if found is None else found.memory.revision))

    def deleter(self, process: Process, place: Place) -> Flow:
        """Delete a memory."""
        write = self._begin(place, None, None, None)
        yield from self._finish(process, write, self.delete(process, place))

    def eraser(self, process: Process, prefix: tuple[str, ...]) -> Flow:
        """Delete everything under a prefix."""
        writes = [self._begin(each, None, None, None) for each in PLACES if each[0][: len(prefix)] == prefix]
        for write in writes:
            write.is_erasure = True
        yield from self._finish_all(process, writes, self.erase(process, prefix))

    def sweeper(self, process: Process, prefix: tuple[str, ...]) -> Flow:
        """Sweep."""
        yield from self._tolerant(self.sweep(process, prefix))

    def reader(self, process: Process, place: Place, prefix: tuple[str, ...]) -> Flow:
        """Read a memory and renew it, search, and list namespaces."""
        yield from self._get(process, place, renew=True)
        yield from self._search(process, prefix)
        yield from self._list(process, prefix)

    def _put(self, process: Process, place: Place, expected: Expected | None) -> Op[None]:
        ttl_seconds = TTLS_SECONDS[self.choices.pick(len(TTLS_SECONDS))]
        size = (0, 0, 3000)[self.choices.pick(3)]
        vectors = [similarity.NewVector(data=b"v" * 8)] * self.choices.pick(3)
        yield from self.put_value(process, place, lambda _: vectors, size, ttl_seconds, expected)

    def put_value(
        self,
        process: Process,
        place: Place,
        vectors: Callable[[int], Sequence[similarity.NewVector]],
        size: int = 0,
        ttl_seconds: int | None = None,
        expected: Expected | None = None,
    ) -> Op[None]:
        """Put the next value, of about so many bytes, with the vectors of its number."""
        number = self._next()
        write = self._begin(place, number, ttl_seconds, None if expected is None else expected.revision)
        value = {"n": write.number, "large": "".join(f"{write.number}-{each} " for each in range(size // 8))}
        stored = self.store(process, place, value, vectors(number), ttl_seconds, expected)
        yield from self._finish(process, write, stored)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _begin(
        self, place: Place, number: int | None, ttl_seconds: int | None, expected: str | None
    ) -> Write:
        now = self.simulator.moment
        write = Write(place, number, now.move, now.seconds, ttl_seconds, expected)
        self.history.writes.append(write)
        return write

    def _finish(self, process: Process, write: Write, operation: Op[str | None]) -> Op[None]:
        try:
            revision = yield from self._tolerant(operation)
            write.acknowledged = revision not in (None, FAILED)
        finally:
            write.ended, write.ended_at = self.simulator.moves, self.simulator.now

    def _finish_all(self, process: Process, writes: Sequence[Write], operation: Op[Any]) -> Op[None]:
        try:
            done = yield from self._tolerant(operation)
            for write in writes:
                write.acknowledged = done != FAILED
        finally:
            for write in writes:
                write.ended, write.ended_at = self.simulator.moves, self.simulator.now

    def _tolerant(self, operation: Op[Any]) -> Op[Any]:
        """Run an operation; return `FAILED` if a request failed, as they do here."""
        try:
            return (yield from operation)
        except _NETWORK_ERRORS:
            return FAILED
        except CheckpointerError as error:
            if "unprocessed" in str(error) or "being written" in str(error):
                return FAILED
            message = f"{type(error).__name__}: {error}"
            raise AssertionError(message) from error

    def _get(self, process: Process, place: Place, *, renew: bool) -> Op[reads.LoadedMemory | None]:
        began = self.simulator.moment
        found = yield from self._tolerant(self.read(process, place))
        if found == FAILED:
            return None
        self._check(place, found[0], began)
        if renew and found[0] is not None:
            renewal = len(self.history.renewals)
            self.history.renewals.append((place, _INFINITY))
            try:
                yield from self._tolerant(self.renew(process, place, found[0]))
            finally:
                self.history.renewals[renewal] = (place, self.simulator.now)
        loaded: reads.LoadedMemory | None = found[0]
        return loaded

    def _check(self, place: Place, found: reads.LoadedMemory | None, began: Moment) -> None:
        number = None if found is None else found.value()["n"]
        self.history.check_read(place, number, began, self.simulator.moment)

    def _search(self, process: Process, prefix: tuple[str, ...]) -> Op[None]:
        began = self.simulator.moment
        orders = ("updated_at", "created_at", "key")
        order: Any = orders[self.choices.pick(len(orders))]
        found = yield from self._tolerant(self.search(process, prefix, order))
        if found == FAILED:
            return
        by_place = {(each.address.namespace, each.address.key): each for each, _ in found}
        assert len(by_place) == len(found), "a search found a memory twice"
        for place in PLACES:
            if place[0][: len(prefix)] == prefix:
                self._check(place, by_place.get(place), began)

    def _list(self, process: Process, prefix: tuple[str, ...]) -> Op[None]:
        began = self.simulator.moment
        found = yield from self._tolerant(self.list(process, prefix))
        if found == FAILED:
            return
        for place in PLACES:
            if place[0][: len(prefix)] == prefix and place[0] not in found:
                self._check(place, None, began)

    # Checks at the end

    def check_end(self) -> None:
        """Let everything arrive, look at all of it from a new process, and erase it, or sweep a day later."""
        self.simulator.settle()
        self.simulator.faults = FAIR
        process = self.simulator.process()
        self.simulator.run_alone(self.look(process))
        if not self.choices.pick(2):
            self.check_swept(process)
        self.simulator.now += (0, 1, 2 * LEFTOVER_SECONDS)[self.choices.pick(3)]
        self.check_erased(process)

    def check_erased(self, process: Process) -> None:
        """Erase everything, wait for a day in which nobody calls anything, and look what the table has left."""
        self.simulator.moves += 1
        self.simulator.run_alone(self.eraser(process, ("a",)))
        if self._leaves_anything:
            # What came after an erasure, of a put that had registered its partition before, may have no entry.
            self.simulator.run_alone(self.eraser(process, ("a", "b")))
        self.simulator.moves += 1
        self.simulator.run_alone(self.look(process))
        self.simulator.now += ERASED_WITHIN_SECONDS
        left = [each for each in self.simulator.model.items() if not is_expired(each, self.simulator.now)]
        assert not left, f"a day after the erasure, the table has {[*map(key_of, left)]}"

    def check_swept(self, process: Process) -> None:
        """Look a day later, sweep, and look again."""
        storage = self.storage(process)
        self.simulator.now += 2 * LEFTOVER_SECONDS
        self.simulator.moves += 1
        self.simulator.run_alone(self.look(process))
        for prefix in (("a",), ("a", "b")):
            self.simulator.run_alone(self.sweep(process, prefix))
        self.simulator.run_alone(self.look(process))
        self._check_leftovers(storage)
        self.history.check_conditions()

    def look(self, process: Process) -> Op[None]:
        """Read, search and list everything."""
        self.simulator.moves += 1
        for place in PLACES:
            yield from self._get(process, place, renew=False)
        for prefix in PREFIXES:
            yield from self._search(process, prefix)
            yield from self._list(process, prefix)
        self.simulator.moves += 1

    def _check_leftovers(self, storage: StoreStorage) -> None:
        """Raise if a memory lacks what belongs to it, or if anything belongs to none."""
        stored = [each for each in self.simulator.model.items() if partition_key(each).endswith("%M#")]
        belonging: set[tuple[str, str]] = set()
        for item in stored:
            # Tombstones need no entry in the register: DynamoDB removes them.
            if sort_key(item).startswith(keys.MEMORIES) and VALUE in item:
                assert parse_memory(item, self.simulator.now) is not None, "a sweep left what had expired"
                for each in self.simulator.run_alone(reads.belongings(storage, item)):
                    belonging.add((partition_key(each), sort_key(each)))
        beside = {
            (partition_key(each), sort_key(each))
            for each in stored
            if not sort_key(each).startswith(keys.MEMORIES)
        }
        assert beside == belonging, f"left over: {beside - belonging}; missing: {belonging - beside}"


def random_memories(choices: Choices, make_world: Callable[..., MemoryWorld] = MemoryWorld) -> MemoryWorld:
    """Let two to six actors use a store, and check everything."""
    faults = FAULTS[choices.pick(len(FAULTS))]
    world = make_world(choices, replace(faults, patience=(0.0, 0.7, 0.9)[choices.pick(3)]))
    simulator = world.simulator
    shared = simulator.process()
    for number in range(2 + choices.pick(5)):
        process = shared if choices.pick(3) == 0 and shared.alive else simulator.process()
        simulator.start(f"actor {number}", process, _random_flow(world, choices)(process))
    simulator.run()
    # Nobody waits for a request to a service that its client gave up.
    for failure in (each.failure for each in simulator.actors):
        if failure is not None and not isinstance(failure, (*_NETWORK_ERRORS, CheckpointerError)):
            raise failure
    world.check_end()
    return world


def _random_flow(world: MemoryWorld, choices: Choices) -> Callable[[Process], Flow]:
    place, other = (PLACES[choices.pick(len(PLACES))] for _ in range(2))
    prefix = PREFIXES[choices.pick(len(PREFIXES))]
    flows: Sequence[Callable[[Process], Flow]] = (
        lambda process: world.writer(process, [place, other, place]),
        lambda process: world.writer(process, [place, place]),
        lambda process: world.updater(process, place, 2),
        lambda process: world.deleter(process, place),
        lambda process: world.reader(process, place, prefix),
        lambda process: world.reader(process, place, prefix),
        lambda process: world.sweeper(process, prefix),
        lambda process: world.eraser(process, prefix),
    )
    return flows[choices.pick(len(flows))]
