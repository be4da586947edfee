"""The calls of the store, on LangGraph's own operations: the service runs them as `DynamoDBStore` does.

What one request can make the service read is bounded: a search by `search_bytes_max`, a response by its room. What it
has read counts as memory that it holds. A response leaves out what does not fit, and the client asks for the rest.
"""

from __future__ import annotations

import array
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from langgraph.store.base import Item as StoredItem
from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchOp
from pydantic import Field

from langgraph.store.dynamodb import batch as batch_
from langgraph.store.dynamodb import erase, json_values, reads, search, similarity
from langgraph.store.dynamodb.batch import check_list, new_memory, new_search, record_of, times_of
from langgraph.store.dynamodb.keys import Address, address_of
from langgraph.store.dynamodb.memory_items import Expected, StoredMemory
from langgraph.store.dynamodb.partitions import Namespace, matching_namespaces, narrower
from langgraph.store.dynamodb.put import NewMemory, put_all
from langgraph.store.dynamodb.reads import LoadedMemory
from langgraph.store.dynamodb.resources import StoreStorage

from .._format import codec, limits, moments, pricing
from .._format.items import Item, damaged, partition_key, sort_key
from .._runtime.failures import is_transient
from .._runtime.steps import Op, work
from ..errors import CheckpointerConfigurationError, CheckpointerInputError
from .call import MANY_MAX, Argument, Bytes, Number, Response, Text, check_json, named_by, serve
from .opaque import inert_serde
from .serving import Principal, Serving, check_right

if TYPE_CHECKING:
    from ..saver import DynamoDBSaver

# What a memory's document has beside its value.
_MEMORY_BYTES = 300
# What each label of a namespace takes beside its text.
_LABEL_BYTES = 60
_LISTED_MAX = 10_000


@dataclass
class ResponseRoom:
    """The room for results in one response, and the time for them. The last result may exceed it by its own size."""

    is_over: Callable[[int], bool]
    """Tells whether a response of so many bytes ends, since it is full or its time is over."""
    size_bytes: int = 0

    def is_full(self) -> bool:
        """Tell whether no more results fit."""
        return self.is_over(self.size_bytes)


class Recent(OrderedDict[str, float]):
    """When partitions were listed, of those that were listed last: clients name namespaces, so memory is bounded."""

    def __setitem__(self, pk: str, listed_at: float) -> None:
        """Remember a partition, and forget the oldest one if there are too many."""
        super().__setitem__(pk, listed_at)
        if len(self) > _LISTED_MAX:
            self.popitem(last=False)


def store_storage(saver: DynamoDBSaver, search_bytes_max: int) -> StoreStorage:
    """Return the storage of a store on a saver's table, with its cipher."""
    storage = saver.storage
    return StoreStorage(
        codec=saver.storage_with(codec.Codec, inert_serde(saver)).codec,
        table=storage.table,
        clock=storage.clock,
        rng=storage.rng,
        consistent_read=True,
        search_bytes_max=search_bytes_max,
        registered=Recent(),
    )


# Arguments and responses

TtlSeconds: TypeAlias = Annotated[int, Field(ge=1, le=limits.TTL_SECONDS_MAX)]
# Json, since a value may be nested more deeply than a request, and have larger numbers.
JsonText: TypeAlias = Annotated[str, Field(description="JSON, as text.")]
MemoryLabels: TypeAlias = Annotated[tuple[str, ...], named_by("memories")]
SearchedLabels: TypeAlias = Annotated[tuple[str, ...], named_by("searched")]


@dataclass(frozen=True)
class MemoryKey(Argument):
    """A memory's namespace and key."""

    namespace: MemoryLabels
    key: str


@dataclass(frozen=True)
class Seen(Argument):
    """A memory, as the page before ended with it. Its time is needed in the order of that time."""

    namespace: tuple[str, ...]
    key: str
    created_at: str | None = None
    updated_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class StoreGet(MemoryKey):
    """Read a memory."""

    op: Literal["get"]
    refresh_ttl: bool = True


@dataclass(frozen=True, kw_only=True)
class StoreSearch(Argument):
    """Search under a namespace."""

    op: Literal["search"]
    namespace_prefix: SearchedLabels
    filter: JsonText | None = None
    limit: Number = 10
    offset: Number = 0
    refresh_ttl: bool = True
    vector: Bytes | None = None
    distance: Literal["cosine", "l2", "inner_product"] = "cosine"
    order: Literal["updated_at", "created_at", "key"] = "updated_at"
    after: Seen | None = None


@dataclass(frozen=True, kw_only=True)
class StorePut(MemoryKey):
    """Store a memory, or delete it if the value is null. Without a ttl it never expires.

    With a token, 8 random bytes in hexadecimal by which a repeated request is known, it takes effect only if the memory
    has the revision that was read; null: if there is none. `times` are those of a memory to import, which replaces no
    newer one, whatever its revision.
    """

    op: Literal["put"]
    value: JsonText | None
    vectors: list[Bytes] | None = None
    ttl_seconds: TtlSeconds | None = None
    revision: Text | None = None
    token: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    times: dict[str, str | None] | None = None


@dataclass(frozen=True)
class Condition(Argument):
    """A condition on a namespace."""

    match_type: Literal["prefix", "suffix"]
    path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StoreListNamespaces(Argument):
    """List namespaces, as many as fit and there is time for. `after` is where the last response stopped."""

    op: Literal["list_namespaces"]
    match_conditions: list[Condition] | None = None
    max_depth: Number | None = None
    after: tuple[str, ...] | None = None


StoreOp: TypeAlias = Annotated[
    StoreGet | StoreSearch | StorePut | StoreListNamespaces, Field(discriminator="op")
]


@dataclass(frozen=True)
class Memory(Response):
    """A memory. Times are those of ISO 8601. Without a score it was not compared.

    One without a value was found, and did not fit. Get it, and compare it with the filter: it may be a new one.
    """

    namespace: tuple[str, ...]
    key: str
    value: JsonText | None
    created_at: str
    updated_at: str
    ttl_minutes: float | None
    expires_at: str | None
    revision: str
    score: float | None = None


@dataclass(frozen=True)
class PutRevision(Response):
    """The result of a put with a condition or times: the new revision; null: something else came first."""

    revision: str | None


@dataclass(frozen=True)
class Namespaces(Response):
    """Namespaces, cut to `max_depth`. With `after`, there are more, and one may come again; null: these were all."""

    namespaces: list[tuple[str, ...]]
    after: tuple[str, ...] | None


StoreResult: TypeAlias = Memory | list[Memory] | Namespaces | PutRevision | None


@dataclass(frozen=True)
class StoreResults(Response):
    """The results, in the order of the operations. `left` are the positions of those that were not run."""

    results: list[StoreResult]
    left: list[int]


@dataclass(frozen=True)
class Removed(Response):
    """How many memories were deleted. With `after`, send the request again; null: this was all."""

    deleted: int
    after: MemoryKey | None = None


# The calls


@serve(None, name="store/batch")
def batch(it: Serving, ops: Annotated[tuple[StoreOp, ...], Field(max_length=MANY_MAX)]) -> Op[StoreResults]:
    """Run operations: first the reads, and then the puts, if the results of all reads fit into the response."""
    for op in ops:
        check_right(it.who, "write" if isinstance(op, StorePut) else "read")
    held = _Counted(it.held)
    reading = _Reading(it.store.counting(held), held, ResponseRoom(it.fullness()), it.response_bytes)
    reads_: dict[int, Callable[[], Op[Any]]] = {}
    puts: dict[Any, tuple[int, NewMemory]] = {}
    for position, op in enumerate(ops):
        if isinstance(op, StoreGet):
            address = address_of(batch_.checked_prefix(op.namespace), op.key)
            reading.wanted.append(address)
            reads_[position] = partial(reading.get, address, op.refresh_ttl)
        elif isinstance(op, StoreSearch):
            reads_[position] = partial(reading.find, _search(op, it.who), op.refresh_ttl)
        elif isinstance(op, StoreListNamespaces):
            reads_[position] = partial(reading.namespaces, _list(op), it.who.memory_labels, op.after)
        else:
            new = replace((yield from _new(op)), vectors=_packed(op.vectors or ()))
            # Of several puts of a memory the last counts, unless they have something to answer.
            key = position if _has_result(new) else new.address
            puts[key] = position, new
    left = yield from reading.all(reads_)
    # The puts come after the reads, also after those of what a search found.
    if left or reading.has_rest:
        left += [position for position, op in enumerate(ops) if isinstance(op, StorePut)]
    else:
        left = yield from _put(it.store, list(puts.values()), reading.results)
    return StoreResults([reading.results.get(position) for position in range(len(ops))], sorted(left))


def _put(
    storage: StoreStorage, puts: Sequence[tuple[int, NewMemory]], results: dict[int, StoreResult]
) -> Op[list[int]]:
    """Store memories; return the positions of those for which the table was too busy, unless it was for all."""
    outcomes = yield from put_all(storage, [new for _, new in puts], _or_transient)
    failed: list[int] = []
    for (position, new), outcome in zip(puts, outcomes, strict=True):
        if isinstance(outcome, Exception):
            failed.append(position)
            if len(failed) == len(puts):
                raise outcome
        elif _has_result(new):
            results[position] = PutRevision(outcome)
    return failed


@serve("write", name="store/delete-namespace")
def delete_namespace(
    it: Serving, namespace_prefix: MemoryLabels, after: MemoryKey | None = None
) -> Op[Removed]:
    """Delete the memories under a namespace, as many as there is time for."""
    return _removing(it, namespace_prefix, after, is_erasure=True)


@serve("write", name="store/sweep-ttl")
def sweep_ttl(it: Serving, namespace_prefix: MemoryLabels, after: MemoryKey | None = None) -> Op[Removed]:
    """Delete expired memories under a namespace, as many as there is time for."""
    return _removing(it, namespace_prefix, after, is_erasure=False)


def _removing(
    it: Serving, namespace_prefix: MemoryLabels, after: MemoryKey | None, *, is_erasure: bool
) -> Op[Removed]:
    until = it.store.clock() + it.part_seconds
    start = None if after is None else address_of(after.namespace, after.key)
    deleted, end = yield from erase.remove_part(
        it.store, batch_.checked_prefix(namespace_prefix), start, until, is_erasure=is_erasure
    )
    return Removed(deleted, None if end is None else MemoryKey(end.namespace, end.key))


@dataclass
class _Counted:
    """Counts the bytes that a request holds in memory."""

    hold: Callable[[int], None]
    size_bytes: int = 0

    def __call__(self, count: int) -> None:
        """Count bytes; negative ones are let go."""
        self.size_bytes += count
        self.hold(count)


@dataclass
class _Reading:
    """The reads of one request, as far as their results fit into a response."""

    storage: StoreStorage
    held: _Counted
    room: ResponseRoom
    bytes_max: int
    results: dict[int, StoreResult] = field(default_factory=dict)
    has_rest: bool = False
    wanted: list[Address] = field(default_factory=list)
    _read: dict[tuple[str, str], Item | None] = field(default_factory=dict)
    _renewed: list[StoredMemory] = field(default_factory=list)

    def all(self, wanted: Mapping[int, Callable[[], Op[Any]]]) -> Op[list[int]]:
        """Read; return the positions of those for which there was no room or time. There is for the first one."""
        left: list[int] = []
        for position, read in wanted.items():
            if self.results and self.room.is_full():
                left.append(position)
            else:
                self.results[position] = yield from read()
        yield from reads.renew(self.storage, self._renewed)
        return left

    def get(self, address: Address, refresh_ttl: bool) -> Op[Memory | None]:
        """Read a memory. Its item is read with those of the gets after it; its segments are not: there may be many."""
        if (address.pk, address.sk) not in self._read:
            yield from self._read_ahead()
        item = self._read[address.pk, address.sk]
        loaded = None
        if item is not None:
            (loaded,) = yield from reads.load(self.storage, [item])
        if loaded is None:
            return None
        if refresh_ttl:
            self._renewed.append(loaded.memory)
        return (yield from self._memory(loaded, None))

    def _read_ahead(self) -> Op[None]:
        keys = {
            (each.pk, each.sk): each.item_key for each in self.wanted if (each.pk, each.sk) not in self._read
        }
        group = dict(islice(keys.items(), limits.BATCH_GET_ITEMS_MAX))
        found = yield from reads.read_items(self.storage, list(group.values()))
        self.storage.on_read(sum(map(pricing.item_bytes, found)))
        self._read |= dict.fromkeys(group) | {(partition_key(item), sort_key(item)): item for item in found}

    def find(self, wanted: search.Search, refresh_ttl: bool) -> Op[list[Memory]]:
        """Search. What was read is let go, but for the results."""
        others_bytes, before = self.held.size_bytes, self.room.size_bytes
        found = yield from search.search(self.storage, wanted)
        memories: list[Memory] = []
        renewed: list[StoredMemory] = []
        for loaded, score in found:
            if self.room.is_full():
                self.has_rest = True
                memories.append(_shown(loaded, None, score))
            else:
                memories.append((yield from self._memory(loaded, score)))
                renewed.append(loaded.memory)
        if refresh_ttl:
            yield from reads.renew(self.storage, renewed)
        self.held(others_bytes + self.room.size_bytes - before - self.held.size_bytes)
        return memories

    def namespaces(self, op: ListNamespacesOp, labels: Namespace, after: Namespace | None) -> Op[Namespaces]:
        """List namespaces."""

        def is_over(found: Namespace) -> bool:
            size = sum(_LABEL_BYTES + len(each) for each in found)
            self.storage.on_read(size)
            self.room.size_bytes += size
            return self.room.is_full()

        found, end = yield from matching_namespaces(self.storage, op, labels, after, is_over)
        self.has_rest = self.has_rest or end is not None
        return Namespaces(sorted(found), end)

    def _memory(self, loaded: LoadedMemory, score: float | None) -> Op[Memory]:
        text: str = yield from work(partial(_text, loaded), len(loaded.packed))
        self.room.size_bytes += _MEMORY_BYTES + len(text)
        bytes_max = 2 * self.bytes_max
        if _MEMORY_BYTES + len(text) > bytes_max:
            raise CheckpointerInputError(
                f"the value of memory {loaded.address.key!r} has {len(text)} bytes as JSON, and a response of this"
                f" gateway at most {bytes_max}; raise body_bytes_max in its limits, or read it where the table can be"
                " reached"
            )
        return _shown(loaded, text, score)


def _shown(loaded: LoadedMemory, text: str | None, score: float | None) -> Memory:
    given = {**record_of(loaded, text), "namespace": loaded.address.namespace, "score": score}
    return Memory(**given, revision=loaded.memory.revision)


def _has_result(new: NewMemory) -> bool:
    """Tell whether the client asks for the revision that a put gives."""
    return new.expected is not None or new.times is not None


def _or_transient(operation: Op[Any]) -> Op[Any]:
    """Run an operation; return the error, if it may succeed later."""
    try:
        return (yield from operation)
    except Exception as error:
        if not is_transient(error):
            raise
        return error


def _text(loaded: LoadedMemory) -> str:
    try:
        return json.dumps(loaded.value(), separators=(",", ":"))
    except (TypeError, ValueError) as error:
        # Not by this package: its stores hold JSON data only.
        raise damaged(loaded.memory.item, f"its value is no JSON data ({error})") from error


# What comes in


def _search(op: StoreSearch, who: Principal) -> search.Search:
    wanted_filter = None if op.filter is None else _json(op.filter, "filter")
    wanted = new_search(
        SearchOp(batch_.checked_prefix(op.namespace_prefix), wanted_filter, op.limit, op.offset),
        order=op.order,
        after=None if op.after is None else _seen(op.after),
    )
    if op.vector is not None:
        wanted = replace(
            wanted, similar_to=similarity.SimilarityQuery(_compared(op.distance), _numbers(op.vector))
        )
    namespace = narrower(wanted.namespace, who.memory_labels)
    # Nothing that the credentials do not reach is found.
    return replace(wanted, limit=0) if namespace is None else replace(wanted, namespace=namespace)


def _new(op: StorePut) -> Op[NewMemory]:
    if op.value is None and (op.times or (op.token and op.revision is None)):
        raise CheckpointerInputError(
            "value is null, which deletes; give the revision of the memory to delete with a token, or none of both"
        )
    if op.revision is not None and op.token is None:
        raise CheckpointerInputError("give a token with the revision, by which a repeated request is known")
    value = None
    if op.value is not None:
        value = yield from work(partial(_json, op.value, f"value of memory {op.key!r}"), len(op.value))
    new = new_memory(PutOp(batch_.checked_prefix(op.namespace), op.key, value), None)
    new = replace(new, ttl_seconds=op.ttl_seconds)
    if op.times is not None:
        return replace(new, times=times_of(op.times), token=op.token or "")
    return new if op.token is None else replace(new, expected=Expected(op.revision), token=op.token)


def _packed(given: Sequence[bytes]) -> Sequence[similarity.NewVector]:
    return [_compared("cosine").pack(_numbers(each)) for each in given]


def _compared(distance: Any) -> similarity.Vectors:
    try:
        return similarity.exact_vectors(distance)
    except CheckpointerConfigurationError as error:
        raise CheckpointerInputError(
            "this gateway compares no vectors; ask its operator to install the extra `vectors`"
        ) from error


def _json(text: str, name: str) -> Any:
    # It is a text in a request, and may be nested more deeply than that.
    check_json(text.encode("utf-8", "surrogatepass"), json_values.NESTING_MAX)
    try:
        return json.loads(text, parse_float=codec.finite)
    except (ValueError, RecursionError) as error:
        raise CheckpointerInputError(
            f"{name} is not JSON ({error}); send the text of a JSON object"
        ) from None


def _list(op: StoreListNamespaces) -> ListNamespacesOp:
    conditions = tuple(
        MatchCondition(each.match_type, tuple(each.path)) for each in op.match_conditions or ()
    )
    wanted = ListNamespacesOp(conditions or None, op.max_depth)
    check_list(wanted)
    return wanted


def _numbers(data: bytes) -> Sequence[float]:
    numbers = array.array("f")
    if not data or len(data) % numbers.itemsize:
        raise CheckpointerInputError(f"a vector has {len(data)} bytes; send 32-bit floats, four bytes each")
    numbers.frombytes(data)
    if sys.byteorder == "big":  # pragma: no cover - tests run on little-endian machines.
        numbers.byteswap()
    try:
        return similarity.checked_numbers(numbers)
    except CheckpointerConfigurationError as error:
        raise CheckpointerInputError(str(error)) from None


def _seen(at: Seen) -> StoredItem:
    """Return a memory that was read, as far as a search needs it."""
    never = "1970-01-01T00:00:00+00:00"
    try:
        created_at, updated_at = (moments.moment_of(each or never) for each in (at.created_at, at.updated_at))
    except ValueError:
        raise CheckpointerInputError(
            "after has a time that is none; send created_at and updated_at as a response has them"
        ) from None
    return StoredItem(
        namespace=tuple(at.namespace), key=at.key, value={}, created_at=created_at, updated_at=updated_at
    )
