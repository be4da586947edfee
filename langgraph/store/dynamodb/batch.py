"""`batch`: check all that a batch asks for, read it side by side, and then store what it brings."""

import asyncio
import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    PutOp,
    Result,
    SearchOp,
    validate_op_namespace,
)
from langgraph.store.base import Item as StoredItem
from langgraph.store.base import Op as StoreOp

from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.moments import moment_of
from langgraph.checkpoint.dynamodb._operations.arguments import shortened
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, gather, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

from . import json_values, partitions, reads
from .keys import MEMORIES, Address, address_of, path_prefix
from .memory_items import Expected
from .put import NewMemory, Times, put_all
from .reads import LoadedMemory, in_microseconds, load, moment, packed_bytes
from .resources import StoreStorage
from .search import ORDERS, Order, Search, search
from .similarity import Embedded, Embedder, Index

_TTL_MINUTES_MAX = TTL_SECONDS_MAX // 60
_LAST_YEAR_US = 365 * 24 * 3600 * 1_000_000


def new_memory(
    op: PutOp, index: Embedder | None, expected: Expected | None = None, times: Times | None = None
) -> NewMemory:
    """Check a put and take its value, which its caller may change later.

    Raises:
        InvalidNamespaceError: The namespace has no labels, or a label that LangGraph refuses.
        CheckpointerInputError: The value is no mapping, the ttl is out of range, or DynamoDB cannot store the key.
        CheckpointSerializationError: The value is no JSON data.
    """
    check_labels(op.namespace, "namespace")
    validate_op_namespace(op)
    if not op.namespace:
        raise InvalidNamespaceError("the namespace is empty; give it a label")
    address = address_of(op.namespace, str(op.key))
    given: object = op.value
    if given is None:
        return NewMemory(address, None, expected=expected)
    if not isinstance(given, Mapping):
        raise CheckpointerInputError(f"value of memory {op.key!r} is a {type(given).__name__}; give a dict")
    value = json_values.plain(given, f"value of memory {op.key!r}")
    texts = [] if index is None else index.texts(value, op.index)
    return NewMemory(address, value, texts, ttl_seconds(op.ttl), expected, times)


def check_labels(labels: object, name: str) -> None:
    """Raise if labels are a single text, whose letters would pass for labels, or no sequence.

    Raises:
        CheckpointerInputError: The message names the argument.
    """
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        raise CheckpointerInputError(f"{name} is {shortened(labels)}; give a tuple of labels")


def checked_prefix(namespace_prefix: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a prefix.

    Raises:
        InvalidNamespaceError: A label is one that LangGraph refuses.
        CheckpointerInputError: It is no sequence of labels.
    """
    check_labels(namespace_prefix, "namespace_prefix")
    validate_op_namespace(SearchOp(tuple(namespace_prefix)))
    return tuple(namespace_prefix)


def check_root_label(namespace: Sequence[str]) -> None:
    """Check the first label of a namespace to store in, as LangGraph's `put` does: a batch may store under it.

    Raises:
        InvalidNamespaceError: LangGraph has reserved the label.
    """
    if namespace[0] == "langgraph":
        raise InvalidNamespaceError(
            f'namespace {tuple(namespace)} begins with "langgraph", which LangGraph has reserved; begin it with another'
            " label"
        )


def ttl_seconds(minutes: Any) -> int | None:
    """Return a ttl in whole seconds, rounded up; `None` for none."""
    if minutes is None:
        return None
    if (
        isinstance(minutes, bool)
        or not isinstance(minutes, (int, float))
        or not 0 < minutes <= _TTL_MINUTES_MAX
    ):
        raise CheckpointerInputError(
            f"ttl is {minutes!r}; give a number of minutes above 0, at most {_TTL_MINUTES_MAX:,}, or None to keep it"
            " for ever"
        )
    # Minutes that are seconds by 60 may be a little more than these, and each export would add one.
    return max(1, math.ceil(round(minutes * 60, 6)))


def new_search(op: SearchOp, *, order: Order, after: StoredItem | None) -> Search:
    """Check a search.

    Raises:
        InvalidNamespaceError: A label is one that LangGraph refuses.
        CheckpointerInputError: The filter, the limit, the offset or the order cannot be used.
    """
    check_labels(op.namespace_prefix, "namespace_prefix")
    validate_op_namespace(op)
    wanted_filter = json_values.checked_filter(op.filter)
    _check_counts(op)
    if order not in ORDERS:
        raise CheckpointerInputError(f"order is {order!r}; give one of {', '.join(ORDERS)}")
    given: object = after
    if given is not None and not isinstance(given, StoredItem):
        msg = f"after is {shortened(given)}; give the last memory of the page before, as search returned it"
        raise CheckpointerInputError(msg)
    query: object = op.query
    if query is not None and not isinstance(query, str):
        raise CheckpointerInputError(f"query is {shortened(query)}; give the text to compare memories with")
    if op.query and (order != "updated_at" or after is not None):
        msg = "a search with a query is in the order of scores; leave order and after out"
        raise CheckpointerInputError(msg)
    return Search(tuple(op.namespace_prefix), wanted_filter, op.limit, op.offset, None, order, after)


def _check_counts(op: SearchOp | ListNamespacesOp) -> None:
    for name, value in (("limit", op.limit), ("offset", op.offset)):
        if type(value) is not int or value < 0:
            raise CheckpointerInputError(f"{name} is {value!r}; give a whole number, 0 or more")


def check_list(op: ListNamespacesOp) -> None:
    """Check what a list of namespaces asks for.

    Raises:
        InvalidNamespaceError: A condition has a label that LangGraph refuses.
        CheckpointerInputError: A condition, the depth, the limit or the offset cannot be used.
    """
    for each in op.match_conditions or ():
        check_labels(each.path, "path of a match condition")
        if each.match_type not in ("prefix", "suffix"):
            raise CheckpointerInputError(f"match_type is {each.match_type!r}; give 'prefix' or 'suffix'")
    validate_op_namespace(op)
    _check_counts(op)
    if op.max_depth is not None and (type(op.max_depth) is not int or op.max_depth < 0):
        msg = f"max_depth is {op.max_depth!r}; give a whole number, 0 or more, or None"
        raise CheckpointerInputError(msg)


@dataclass(frozen=True)
class Get:
    """A read of one memory that has been checked."""

    address: Address
    refresh_ttl: bool


@dataclass(frozen=True)
class Asked:
    """A search that has been checked, and the text to compare memories with."""

    search: Search
    query: str | None
    refresh_ttl: bool

    @property
    def listing(self) -> Hashable:
        """The value that is equal for searches that ask for pages of one list."""
        return self.search.signature, self.query, bool(self.refresh_ttl)


class Outcome(NamedTuple):
    """The outcome of a batch."""

    results: list[Result]
    """Of all operations; `None` for a put."""
    revisions: list[str | None]
    """Of its puts, as far as they have a condition, or times; `None` if something else is there."""


class Batch:
    """The operations of one batch, all checked, by their positions in it. A put has no result, and no position."""

    def __init__(
        self,
        index: Embedder | None,
        ops: Iterable[StoreOp],
        *,
        order: Order = "updated_at",
        after: StoredItem | None = None,
    ) -> None:
        """Check the operations, and take their values. `order` and `after` are for its searches."""
        self._index = index
        self._order: Order = order
        self._after = after
        self.embedded: Embedded = {}
        """The embeddings of the texts of values."""
        self.embedded_queries: Embedded = {}
        self.count = 0
        """How many operations it has."""
        self.ignores_query = False
        """Whether a search has a query, and the store no index."""
        self.gets: dict[int, Get] = {}
        self.searches: dict[int, Asked] = {}
        self.lists: dict[int, ListNamespacesOp] = {}
        # Equal reads are made once: where the first of them is, and which others have its result.
        self._firsts: dict[Hashable, int] = {}
        self._repeated: dict[int, int] = {}
        self._methods: set[str] = set()
        self._puts: dict[Hashable, NewMemory] = {}
        for position, op in enumerate(ops):
            self._add(position, op)
            self.count = position + 1

    def _add(self, position: int, op: object) -> None:
        if isinstance(op, GetOp):
            self._methods.add("get")
            check_labels(op.namespace, "namespace")
            validate_op_namespace(op)
            wanted_memory = Get(address_of(op.namespace, str(op.key)), bool(op.refresh_ttl))
            if self._is_first(wanted_memory, position):
                self.gets[position] = wanted_memory
        elif isinstance(op, SearchOp):
            self._methods.add("search")
            wanted = new_search(op, order=self._order, after=self._after)
            query = op.query or None
            if query is not None and self._index is None:
                self.ignores_query, query = True, None
            asked = Asked(wanted, query, op.refresh_ttl)
            if self._is_first((asked.listing, wanted.offset), position):
                self.searches[position] = asked
        elif isinstance(op, ListNamespacesOp):
            self._methods.add("list_namespaces")
            check_list(op)
            self.lists[position] = op
        elif isinstance(op, PutOp):
            new = new_memory(op, self._index)
            self.add_put(new, "put" if new.value is not None else "delete")
        else:
            msg = f"unknown operation {type(op).__name__}; give GetOp, SearchOp, PutOp or ListNamespacesOp"
            raise CheckpointerInputError(msg)

    def _is_first(self, read: Hashable, position: int) -> bool:
        """Tell whether no read before is equal; note it as repeated if one is."""
        first = self._firsts.setdefault(read, position)
        if first != position:
            self._repeated[position] = first
        return first == position

    @property
    def name(self) -> str:
        """The method that its operations are for, if it is the same one."""
        return next(iter(self._methods)) if len(self._methods) == 1 else "batch"

    @property
    def puts(self) -> Sequence[NewMemory]:
        """The puts and deletions, one of each memory."""
        return list(self._puts.values())

    @property
    def namespaces(self) -> Sequence[Sequence[str]]:
        """The namespaces of the memories that it stores or deletes."""
        return [each.address.namespace for each in self.puts]

    def add_put(self, new: NewMemory, method: str) -> None:
        """Add a put or a deletion. The last one of a memory counts, but each of those with a result is made."""
        self._methods.add(method)
        has_result = new.expected is not None or new.times is not None
        self._puts[len(self._puts) if has_result else new.address] = new

    def embed(self) -> None:
        """Embed the texts of values and the queries, before the batch is run: an operation makes requests only."""
        if self._index is not None:
            self.embedded = self._index.embed(self._texts)
            self.embedded_queries = self._index.embed_queries(self._queries)

    async def aembed(self) -> None:
        """Embed the texts of values and the queries, before the batch is run: an operation makes requests only."""
        if self._index is not None:
            self.embedded, self.embedded_queries = await asyncio.gather(
                self._index.aembed(self._texts), self._index.aembed_queries(self._queries)
            )

    @property
    def _texts(self) -> list[str]:
        return list(dict.fromkeys(text for each in self.puts for text in each.texts))

    @property
    def _queries(self) -> list[str]:
        return list(dict.fromkeys(each.query for each in self.searches.values() if each.query is not None))

    def results(self, found: Iterable[tuple[int, Result]]) -> list[Result]:
        """Return the results of all operations, given those of the reads with their positions."""
        results: list[Result] = [None] * self.count
        for position, result in found:
            results[position] = result
        for position, first in self._repeated.items():
            results[position] = deepcopy(results[first])
        return results


def run_batch(storage: StoreStorage, index: Index | None, batch: Batch) -> Op[Outcome]:
    """Read the state before the batch, and then store."""
    searches = [_search(storage, index, each, batch) for each in batch.searches.values()]
    lists = [partitions.list_namespaces(storage, each) for each in batch.lists.values()]
    reading: list[Op[list[Any]]] = [
        _get(storage, list(batch.gets.values())),
        gather(searches),
        gather(lists),
    ]
    found = yield from gather(reading)
    positions = [*batch.gets, *batch.searches, *batch.lists]
    results = batch.results(zip(positions, itertools.chain(*found), strict=True))
    puts = batch.puts
    if index is not None:
        puts = [
            replace(each, vectors=[index.pack(batch.embedded[text]) for text in each.texts]) for each in puts
        ]
    return Outcome(results, (yield from put_all(storage, puts)))


def _get(storage: StoreStorage, wanted: Sequence[Get]) -> Op[list[Any]]:
    if not wanted:
        return []
    loaded = yield from reads.get(storage, [each.address for each in wanted])
    found = [each for each, get in zip(loaded, wanted, strict=True) if each and get.refresh_ttl]
    yield from reads.renew(storage, [each.memory for each in found])

    def shown() -> list[Any]:
        return [None if each is None else each.item() for each in loaded]

    return (yield from work(shown, packed_bytes(filter(None, loaded))))


def _search(storage: StoreStorage, index: Index | None, asked: Asked, batch: Batch) -> Op[list[Any]]:
    wanted = asked.search
    if index is not None and asked.query is not None:
        wanted = replace(wanted, similar_to=index.query(batch.embedded_queries[asked.query]))
    found = yield from search(storage, wanted)
    if asked.refresh_ttl:
        yield from reads.renew(storage, [loaded.memory for loaded, _ in found])

    def shown() -> list[Any]:
        return [loaded.found(score) for loaded, score in found]

    return (yield from work(shown, packed_bytes(loaded for loaded, _ in found)))


# How many memories are imported side by side, and embedded by one call.
IMPORTED_AT_ONCE = 100
_LOADED_AT_ONCE = 8


def export_items(storage: StoreStorage, namespace: Sequence[str]) -> Stream[dict[str, Any]]:
    """Read every memory under a namespace, in the order of keys, page by page."""
    for pk in (yield from partitions.partitions_under(storage, namespace)):
        query = Query(pk, prefix=path_prefix(MEMORIES, namespace), consistent=storage.consistent_read)
        while not query.done:
            page = yield from storage.table.query_page(query)
            for start in range(0, len(page), _LOADED_AT_ONCE):
                for each in (yield from load(storage, page[start : start + _LOADED_AT_ONCE])):
                    if each is not None:
                        yield Emit(record_of(each, (yield from work(each.value, len(each.packed)))))


def record_of(loaded: LoadedMemory, value: Any) -> dict[str, Any]:
    """Return the record of a memory with a value, in whatever form."""
    memory = loaded.memory
    return {
        "namespace": list(loaded.address.namespace),
        "key": loaded.address.key,
        "value": value,
        **times_record(Times(memory.created_us, memory.updated_us, memory.expires_at)),
        "ttl_minutes": None if memory.ttl_seconds is None else memory.ttl_seconds / 60,
    }


def times_record(times: Times) -> dict[str, str | None]:
    """Return the times of a memory as a record has them."""
    expires_at = times.expires_at
    return {
        "created_at": moment(times.created_us).isoformat(),
        "updated_at": moment(times.updated_us).isoformat(),
        "expires_at": None if expires_at is None else moment(expires_at * 1_000_000).isoformat(),
    }


def times_of(record: Mapping[str, Any]) -> Times:
    """Return the times of a record.

    Raises:
        CheckpointerInputError: It has no such times; the message names the field.
    """
    return Times(
        _time(record, "created_at"),
        _time(record, "updated_at"),
        _time(record, "expires_at") // 1_000_000 if record.get("expires_at") is not None else None,
    )


def imported(record: Mapping[str, Any], index: Embedder | None) -> NewMemory:
    """Check a record of an export.

    Raises:
        CheckpointerInputError: It is no such record; the message names the field.
    """
    # The root label `langgraph` is allowed here, as in a batch: an export may have such memories, and none may be lost.
    op = PutOp(
        _field(record, "namespace"),
        _field(record, "key"),
        _field(record, "value"),
        ttl=record.get("ttl_minutes"),
    )
    return new_memory(op, index, times=times_of(record))


def _field(record: object, name: str) -> Any:
    if not isinstance(record, Mapping) or record.get(name) is None:
        raise CheckpointerInputError(f"a record to import has no {name}; give the records of export_items")
    return record[name]


def _time(record: object, name: str) -> int:
    text = _field(record, name)
    try:
        time = in_microseconds(moment_of(text))
        # In UTC, a time may fall before the first year or after the last one. Then no reader could show it. Nor is the
        # last year one: each put over a memory is later than it.
        moment(time + _LAST_YEAR_US)
        moment(time)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"a record to import has {name}={text!r}; give a time before 9999, as isoformat() writes it"
        raise CheckpointerInputError(msg) from error
    return time
