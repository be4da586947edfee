"""The store's operations on messages from the wire: the service runs them as `DynamoDBStore` does.

What one request can make the service read is bounded: a search by `search_bytes_max`, an answer by its room. What it
has read counts as memory that it holds. An answer leaves out what does not fit, and the client asks for the rest.
"""

from __future__ import annotations

import array
import json
import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from langgraph.store.base import Item as StoredItem
from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchOp

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Item, damaged, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.limits import BATCH_GET_ITEMS_MAX
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime.failures import is_transient
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import label_wire as wire
from langgraph.checkpoint.dynamodb.gateway.opaque import inert_serde
from langgraph.checkpoint.dynamodb.gateway.principals import Scope
from langgraph.checkpoint.dynamodb.gateway.shares import Held
from langgraph.checkpoint.dynamodb.gateway.size_limits import check_json
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver
from langgraph.store.dynamodb import batch, erase, reads
from langgraph.store.dynamodb.batch import NewMemory, check_list, new_memory, new_search, put_all
from langgraph.store.dynamodb.index import checked_numbers, exact_vectors
from langgraph.store.dynamodb.keys import Address, address_of
from langgraph.store.dynamodb.memory_items import Expected, StoredMemory
from langgraph.store.dynamodb.namespaces import list_namespaces
from langgraph.store.dynamodb.reads import LoadedMemory
from langgraph.store.dynamodb.search import Search, search
from langgraph.store.dynamodb.similarity import NewVector, SimilarityQuery, Vectors
from langgraph.store.dynamodb.storage import StoreStorage
from langgraph.store.dynamodb.transfer import record_of, times_of
from langgraph.store.dynamodb.values import NESTING_MAX

Document: TypeAlias = dict[str, Any]
# What a memory's document has beside its value.
_MEMORY_BYTES = 300
_LISTED_MAX = 10_000


class Room:
    """The room for results in one answer."""

    def __init__(self, bytes_max: int) -> None:
        """Take the size of the answer, which the last result may exceed by its own."""
        self._bytes_max = bytes_max
        self._left = bytes_max

    @property
    def is_full(self) -> bool:
        """Whether no more results fit."""
        return self._left <= 0

    def take(self, size_bytes: int, name: str) -> None:
        """Count a result.

        Raises:
            CheckpointerInputError: No answer could hold it.
        """
        if size_bytes > 2 * self._bytes_max:
            msg = (
                f"{name} has {size_bytes} bytes as JSON, and an answer of this gateway at most {2 * self._bytes_max};"
                " raise body_bytes_max in its limits, or read it where the table can be reached"
            )
            raise CheckpointerInputError(msg)
        self._left -= size_bytes


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
        codec=saver.storage_with(Codec, inert_serde(saver)).codec,
        table=storage.table,
        clock=storage.clock,
        rng=storage.rng,
        consistent_read=True,
        search_bytes_max=search_bytes_max,
        registered=Recent(),
    )


class Memories:
    """One method for each of the store's endpoints: it takes the request, and returns an operation."""

    def __init__(self, storage: StoreStorage, *, response_bytes: int, part_seconds: float) -> None:
        """Store the storage that is served.

        Args:
            storage: The storage.
            response_bytes: After how many bytes an answer ends.
            part_seconds: After how long a deletion stops, and goes on with the next request.
        """
        self._storage = storage
        self._answer_bytes = response_bytes
        self._part_seconds = part_seconds

    def batch(self, request: wire.BatchRequest, scope: Scope, held: Held) -> Op[Document]:
        """Run operations: first the reads, and then the puts, if the results of all reads fit into the answer."""
        reading = _Reading(replace(self._storage, on_read=held.add), Room(self._answer_bytes), scope)
        gets: dict[int, tuple[Address, bool]] = {}
        searches: dict[int, tuple[Search, bool]] = {}
        lists: dict[int, ListNamespacesOp] = {}
        puts: dict[Any, tuple[int, NewMemory, Sequence[NewVector]]] = {}
        left: list[int] = []
        for position, op in enumerate(request.ops):
            if isinstance(op, wire.StoreGet):
                scope.check(op.namespace)
                gets[position] = address_of(_checked(op.namespace), op.key), op.refresh_ttl
            elif isinstance(op, wire.StoreSearch):
                searches[position] = self._search(op, scope), op.refresh_ttl
            elif isinstance(op, wire.StoreListNamespaces):
                lists[position] = _list(op)
            else:
                scope.check(op.namespace)
                new = yield from self._new(op)
                # Of several puts of a memory the last counts, unless they have something to answer.
                key = position if _has_result(new) else new.address
                puts[key] = position, new, self._vectors(op.vectors)
                left.append(position)
        left_of_reads = yield from reading.all(gets, searches, lists)
        # The puts come after the reads, also after those of what a search found.
        if not left_of_reads and not reading.has_rest:
            left = yield from self._put(list(puts.values()), reading.results)
        results = [reading.results.get(position) for position in range(len(request.ops))]
        return {"results": results, "left": sorted([*left_of_reads, *left])}

    def _put(
        self, puts: Sequence[tuple[int, NewMemory, Sequence[NewVector]]], results: dict[int, Any]
    ) -> Op[list[int]]:
        """Store memories; return the positions of those for which the table was too busy, unless it was for all."""
        new, vectors = [each for _, each, _ in puts], [each for _, _, each in puts]
        outcomes = yield from put_all(self._storage, new, vectors, _or_transient)
        failed: list[int] = []
        for (position, each, _), outcome in zip(puts, outcomes, strict=True):
            if isinstance(outcome, Exception):
                failed.append(position)
                if len(failed) == len(puts):
                    raise outcome
            elif _has_result(each):
                results[position] = {"revision": outcome}
        return failed

    def delete_namespace(
        self, request: wire.DeleteNamespaceRequest, scope: Scope, held: Held
    ) -> Op[Document]:
        """Delete the memories under a namespace, as many as there is time for."""
        return self._removing(erase.delete_part, request, scope, held)

    def sweep_ttl(self, request: wire.SweepTtlRequest, scope: Scope, held: Held) -> Op[Document]:
        """Delete expired memories under a namespace, as many as there is time for."""
        return self._removing(erase.sweep_part, request, scope, held)

    def _removing(
        self, remove: Any, request: wire.DeleteNamespaceRequest, scope: Scope, held: Held
    ) -> Op[Document]:
        del held
        scope.check(request.namespace_prefix)
        until = self._storage.clock() + self._part_seconds
        namespace = _checked(request.namespace_prefix)
        deleted, after = yield from remove(self._storage, namespace, _address(request.after), until)
        return {"deleted": deleted, "after": _place(after)}

    # What comes in

    def _search(self, op: wire.StoreSearch, scope: Scope) -> Search:
        wanted = new_search(
            SearchOp(_checked(op.namespace_prefix), self._filter(op.filter), op.limit, op.offset),
            order=op.order,
            after=None if op.after is None else _shown(op.after),
        )
        if op.vector is not None:
            vectors = self._compared(op.distance)
            wanted = replace(wanted, similar_to=SimilarityQuery(vectors, _numbers(op.vector)))
        namespace = scope.narrowed(wanted.namespace)
        # Nothing that the credentials do not reach is found.
        return replace(wanted, limit=0) if namespace is None else replace(wanted, namespace=namespace)

    def _filter(self, text: str | None) -> Any:
        if text is None:
            return None
        return _json(text, "filter")

    def _new(self, op: wire.StorePut) -> Op[NewMemory]:
        if op.value is None and (op.times or (op.condition and op.condition.revision is None)):
            msg = "value is null, which deletes; give a condition with the revision of the memory to delete, or none"
            raise CheckpointerInputError(msg)
        value, name = None, f"value of memory {op.key!r}"
        if op.value is not None:
            value = yield from work(partial(_json, op.value, name), len(op.value))
        new = new_memory(PutOp(_checked(op.namespace), op.key, value), None)
        new = replace(new, ttl_seconds=op.ttl_seconds)
        if op.condition is not None:
            expected = Expected(op.condition.revision)
            new = replace(new, expected=expected, token=op.condition.token)
        return new if op.times is None else replace(new, times=times_of(op.times.model_dump()))

    def _vectors(self, given: Sequence[bytes]) -> Sequence[NewVector]:
        if not given:
            return ()
        vectors = self._compared("cosine")
        return [vectors.pack(_numbers(each)) for each in given]

    def _compared(self, distance: Any) -> Vectors:
        try:
            return exact_vectors(distance)
        except CheckpointerConfigurationError as error:
            msg = "this gateway compares no vectors; ask its operator to install the extra `vectors`"
            raise CheckpointerInputError(msg) from error


class _Reading:
    """The reads of one request, as far as their results fit into an answer."""

    def __init__(self, storage: StoreStorage, room: Room, scope: Scope) -> None:
        self.storage = storage
        self.room = room
        self.has_rest = False
        self._scope = scope
        self.results: dict[int, Any] = {}
        self._renewed: list[StoredMemory] = []

    def all(
        self,
        gets: dict[int, tuple[Address, bool]],
        searches: dict[int, tuple[Search, bool]],
        lists: dict[int, ListNamespacesOp],
    ) -> Op[list[int]]:
        """Read; return the positions of those for which there was no room."""
        left: list[int] = []
        positions = list(gets)
        for start in range(0, len(positions), BATCH_GET_ITEMS_MAX):
            group = positions[start : start + BATCH_GET_ITEMS_MAX]
            if self.room.is_full:
                left += group
            else:
                left += yield from self._get({each: gets[each] for each in group})
        for position, (wanted, refresh_ttl) in searches.items():
            if self.room.is_full:
                left.append(position)
            else:
                self.results[position] = yield from self._find(wanted, refresh_ttl)
        for position, op in lists.items():
            if self.room.is_full:
                left.append(position)
            else:
                self.results[position] = yield from self._list(op)
        yield from reads.renew(self.storage, self._renewed)
        return left

    def _get(self, wanted: dict[int, tuple[Address, bool]]) -> Op[list[int]]:
        keys = {(each.pk, each.sk): each.item_key for each, _ in wanted.values()}
        found = yield from reads.read_items(self.storage, list(keys.values()))
        self.storage.on_read(sum(map(item_bytes, found)))
        by_key = {(partition_key(item), sort_key(item)): item for item in found}
        left: list[int] = []
        for position, (address, refresh_ttl) in wanted.items():
            item = by_key.get((address.pk, address.sk))
            if item is not None and self.room.is_full:
                left.append(position)
            elif item is not None:
                # One after the other: each may have many segments.
                self.results[position] = yield from self._load(item, refresh_ttl)
        return left

    def _load(self, item: Item, refresh_ttl: bool) -> Op[Document | None]:
        (loaded,) = yield from reads.load(self.storage, [item])
        if loaded is None:
            return None
        self.storage.on_read(loaded.segment_bytes)
        return (yield from self._memory(loaded, None, refresh_ttl))

    def _find(self, wanted: Search, refresh_ttl: bool) -> Op[Document]:
        found = yield from search(self.storage, wanted)
        documents: list[Document] = []
        rest: list[Document] = []
        for loaded, score in found:
            if self.room.is_full:
                self.has_rest = True
                rest.append(
                    {"namespace": [*loaded.address.namespace], "key": loaded.address.key, "score": score}
                )
            else:
                documents.append((yield from self._memory(loaded, score, refresh_ttl)))
        return {"found": documents, "rest": rest}

    def _list(self, op: ListNamespacesOp) -> Op[Document]:
        found = yield from list_namespaces(self.storage, op, self._scope.labels)
        return {"found": [list(each) for each in found]}

    def _memory(self, loaded: LoadedMemory, score: float | None, refresh_ttl: bool) -> Op[Document]:
        text = yield from self._text(loaded)
        if refresh_ttl:
            self._renewed.append(loaded.memory)
        return record_of(loaded) | {"value": text, "revision": loaded.memory.revision, "score": score}

    def _text(self, loaded: LoadedMemory) -> Op[str]:
        """Return the JSON of a memory's value, which is in the answer."""
        made = partial(_text, loaded)
        text: str = yield from work(made, loaded.segment_bytes or item_bytes(loaded.memory.item))
        self.room.take(_MEMORY_BYTES + len(text), f"the value of memory {loaded.address.key!r}")
        return text


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
        return json.dumps(loaded.value, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        # Not by this package: its stores hold JSON data only.
        raise damaged(loaded.memory.item, f"its value is no JSON data ({error})") from error


def _json(text: str, name: str) -> Any:
    # It is a text in a request, and may be nested more deeply than that.
    check_json(text.encode("utf-8", "surrogatepass"), NESTING_MAX)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not JSON ({error}); send the text of a JSON object"
        raise CheckpointerInputError(msg) from None


def _checked(labels: Iterable[str]) -> tuple[str, ...]:
    return batch.checked_prefix(tuple(labels))


def _list(op: wire.StoreListNamespaces) -> ListNamespacesOp:
    conditions = tuple(MatchCondition(each.match_type, tuple(each.path)) for each in op.match_conditions)
    wanted = ListNamespacesOp(conditions or None, op.max_depth, op.limit, op.offset)
    check_list(wanted)
    return wanted


def _numbers(data: bytes) -> Sequence[float]:
    numbers = array.array("f")
    if not data or len(data) % numbers.itemsize:
        msg = f"a vector has {len(data)} bytes; send 32-bit floats, four bytes each"
        raise CheckpointerInputError(msg)
    numbers.frombytes(data)
    if sys.byteorder == "big":  # pragma: no cover - tests run on little-endian machines.
        numbers.byteswap()
    try:
        return checked_numbers(numbers)
    except CheckpointerConfigurationError as error:
        raise CheckpointerInputError(str(error)) from None


def _shown(at: wire.Shown) -> StoredItem:
    """Return a memory that was read, as far as a search needs it."""
    try:
        created_at, updated_at = (
            datetime.fromisoformat(each or _NEVER) for each in (at.created_at, at.updated_at)
        )
    except ValueError:
        msg = "after has a time that is none; send created_at and updated_at as an answer has them"
        raise CheckpointerInputError(msg) from None
    return StoredItem(
        namespace=tuple(at.namespace), key=at.key, value={}, created_at=created_at, updated_at=updated_at
    )


_NEVER = "1970-01-01T00:00:00+00:00"


def _address(at: wire.LabelledKey | None) -> Address | None:
    return None if at is None else address_of(tuple(at.namespace), at.key)


def _place(at: Address | None) -> Document | None:
    return None if at is None else {"namespace": list(at.namespace), "key": at.key}
