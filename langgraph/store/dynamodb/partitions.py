"""The partitions that hold memories: their register, reading what they have under a namespace, and their namespaces.

Prefixes of less than two labels are searched by the register, without a scan. Each partition has an entry beside those
with the same first label, and the index lists the entries of all. A put needs the entry before its memory, so that none
is there that no search finds, and after it: an erasure removes the entry of a partition in which it found nothing. It
first marks the entry, and only then looks for the last time. So a put that comes too late for that look finds the mark,
or no entry, and registers the partition again. What a put leaves that dies meanwhile may have no entry. So a sweep,
which may run at any time, removes only entries that are a day old.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraph.checkpoint.dynamodb._format import items, limits, pricing, schema
from langgraph.checkpoint.dynamodb._format.items import Item, is_expired
from langgraph.checkpoint.dynamodb._format.labels import REGISTER_MARK, partition_labels
from langgraph.checkpoint.dynamodb._operations.listed_partitions import ensure_listed, listed
from langgraph.checkpoint.dynamodb._runtime.requests import Query, grouped
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, SearchLimitError

from . import keys, memory_items
from .resources import StoreStorage

Namespace: TypeAlias = tuple[str, ...]
# How many partitions are read side by side.
_AT_ONCE = 100
# What an item takes in memory beside its bytes, and what a text does. Of small ones, a search reads very many.
_ITEM_BYTES = 4_000
_TEXT_BYTES = 60


def register(storage: StoreStorage, partitions: Iterable[str]) -> Op[None]:
    """Register partitions, unless this process has done so within the last hour."""
    now = storage.clock()

    def entry(pk: str) -> Item:
        return {**keys.entry_key(pk), memory_items.REGISTERED: {"N": str(int(now))}}

    yield from ensure_listed(storage.table, REGISTER_MARK, partitions, entry, storage.registered, now)


def partitions_under(storage: StoreStorage, namespace: Sequence[str]) -> Op[list[str]]:
    """Return the keys of the partitions that may have memories under a namespace, in order.

    The partitions of one first label are read strongly consistent. The index, which lists all, is not; but a process
    always finds those that it has registered itself.
    """
    if len(namespace) >= keys.PARTITION_LABELS:
        return [keys.partition_of(namespace)]
    if not namespace:
        registered = yield from listed(storage.table, REGISTER_MARK, keys.entry_partition)
        return sorted(registered | {*storage.registered})
    query = Query(
        keys.register_of(namespace[0]),
        prefix=keys.ENTRIES,
        consistent=storage.consistent_read,
        attributes=(schema.PARTITION_KEY, schema.SORT_KEY),
    )
    found = set[str]()
    while not query.done:
        page = yield from storage.table.query_page(query)
        new = {keys.entry_partition(each) for each in page}
        storage.on_read(sum(_TEXT_BYTES + len(each) for each in new))
        found |= new
    return sorted(found)


def stay_registered(storage: StoreStorage, pk: str) -> Op[None]:
    """Register a partition again, in which a memory was stored, if an erasure has removed its entry or is about to."""
    key = keys.entry_key(pk)
    entry = yield from storage.table.get(key[schema.PARTITION_KEY]["S"], key[schema.SORT_KEY]["S"])
    if entry is None or memory_items.LEAVING in entry:
        storage.registered.pop(pk, None)
        yield from register(storage, [pk])


def unregister(storage: StoreStorage, pk: str, until: float) -> Op[None]:
    """Remove the entry of a partition, if nothing is left there but what has expired.

    Args:
        storage: The storage.
        pk: The key of the partition.
        until: An entry that was written later stays, in epoch seconds.
    """
    if not (yield from _is_empty(storage, pk)):
        return
    mark = storage.rng.randbytes(8)
    key = keys.entry_key(pk)
    if (yield from storage.table.try_update(key, memory_items.leave(mark, int(until)))) is not None:
        return
    if (yield from _is_empty(storage, pk)):
        storage.registered.pop(pk, None)
        yield from storage.table.try_delete(key, memory_items.unregister(mark))


def _is_empty(storage: StoreStorage, pk: str) -> Op[bool]:
    query = Query(
        pk,
        first_page=limits.PAGE_ITEMS_FIRST,
        attributes=(schema.PARTITION_KEY, schema.SORT_KEY, *memory_items.LIVE_ATTRIBUTES),
    )
    while not query.done:
        page = yield from storage.table.query_page(query)
        if not all(items.is_expired(each, storage.clock()) for each in page):
            return False
    return True


class BoundedReader:
    """Reads for one search under a namespace: counts what is read, and raises before it is too much."""

    def __init__(self, storage: StoreStorage, namespace: tuple[str, ...]) -> None:
        """Start with nothing read."""
        self.storage = storage
        self.namespace = namespace
        self._left = storage.search_bytes_max

    def has(self, size_bytes: int) -> bool:
        """Tell whether so many bytes may still be read."""
        return size_bytes <= self._left

    def take(self, size_bytes: int) -> None:
        """Count bytes that were read.

        Raises:
            SearchLimitError: They are too many.
        """
        self.storage.on_read(size_bytes)
        self._left -= size_bytes
        if self._left < 0:
            raise SearchLimitError(
                f"a search of namespace {self.namespace} reads more than search_bytes_max,"
                f" {self.storage.search_bytes_max} bytes; search a longer namespace, read it in pages with"
                ' order="key" and after=, or give the store a larger search_bytes_max'
            )

    def take_items(self, read: Sequence[Item]) -> None:
        """Count items that were read.

        Raises:
            SearchLimitError: They have too many bytes.
        """
        self.storage.on_read(_ITEM_BYTES * len(read))
        self.take(sum(map(pricing.item_bytes, read)))

    def read_all(self, kind: str) -> Op[list[Item]]:
        """Read all items of one kind."""
        partitions = yield from partitions_under(self.storage, self.namespace)
        prefix, found = keys.path_prefix(kind, self.namespace), list[Item]()
        for group in grouped(partitions, count_max=_AT_ONCE):
            read = yield from gather([self._read(pk, prefix) for pk in group])
            found += [item for each in read for item in each]
        return found

    def _read(self, pk: str, prefix: str) -> Op[list[Item]]:
        query, found = Query(pk, prefix=prefix, consistent=self.storage.consistent_read), list[Item]()
        while not query.done:
            page = yield from self.storage.table.query_page(query)
            self.take_items(page)
            found += page
        return found


_ANY = "*"


def list_namespaces(storage: StoreStorage, wanted: ListNamespacesOp) -> Op[list[Namespace]]:
    """List namespaces that have memories: filtered, cut, without duplicates, sorted, and then limited."""
    found, _ = yield from matching_namespaces(storage, wanted)
    return limited(found, wanted)


def limited(found: Iterable[Namespace], wanted: ListNamespacesOp) -> list[Namespace]:
    """Return those of all matching namespaces that are wanted."""
    return sorted({*found})[wanted.offset : wanted.offset + wanted.limit]


def matching_namespaces(
    storage: StoreStorage,
    wanted: ListNamespacesOp,
    under: Namespace = (),
    after: Namespace | None = None,
    is_over: Callable[[Namespace], bool] = lambda _found: False,
) -> Op[tuple[set[Namespace], Namespace | None]]:
    """Find namespaces that have memories, filtered and cut, in the order of their keys.

    Args:
        storage: The storage.
        wanted: What to list.
        under: Labels that all of them begin with.
        after: The namespace behind which to go on; `None` for the beginning.
        is_over: Takes each namespace that is found, and between groups of partitions an empty one; tells whether to
            stop.

    Returns:
        The namespaces, and the one behind which to go on; `None` at the end.
    """
    conditions = wanted.match_conditions or ()
    prefix = max((_literal(each) for each in conditions if each.match_type == "prefix"), key=len, default=())
    narrowed = narrower(prefix, under)
    if narrowed is None:
        return set(), None
    found, end = yield from _namespaces_under(storage, narrowed, after, is_over)
    kept = {
        each[: wanted.max_depth] for each in found if all(_holds(condition, each) for condition in conditions)
    }
    return kept, end


def narrower(prefix: tuple[str, ...], under: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the longer one of two prefixes; `None` if no namespace has both."""
    length = min(len(prefix), len(under))
    return max(prefix, under, key=len) if prefix[:length] == under[:length] else None


def _literal(condition: MatchCondition) -> tuple[str, ...]:
    """Return the labels of a path before its first wildcard."""
    path = tuple(condition.path)
    return path[: path.index(_ANY)] if _ANY in path else path


def _holds(condition: MatchCondition, namespace: Sequence[str]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    labels = namespace[start : start + len(path)]
    return all(wanted in (_ANY, label) for label, wanted in zip(labels, path, strict=True))


def _namespaces_under(
    storage: StoreStorage, prefix: Namespace, after: Namespace | None, is_over: Callable[[Namespace], bool]
) -> Op[tuple[list[Namespace], Namespace | None]]:
    partitions = yield from partitions_under(storage, prefix)
    start = None if after is None else (keys.partition_of(after), _behind(after))
    ranges = keys.ranges_from(partitions, keys.path_prefix(keys.MEMORIES, prefix), start)
    found: list[Namespace] = []
    last: str | None = None
    for group in grouped(ranges, count_max=_AT_ONCE):
        if last is not None and is_over(()):
            return found, partition_labels(last)
        walks = [_in_partition(storage, pk, between, is_over) for pk, between in group]
        for part, is_whole in (yield from gather(walks)):
            found += part
            if not is_whole:
                return found, part[-1]
        last = group[-1][0] if group else None
    return found, None


def count_memories(storage: StoreStorage, namespace: Sequence[str]) -> Op[int]:
    """Count the memories under a namespace, damaged ones too. This needs no key: no value is opened."""
    prefix, count = keys.path_prefix(keys.MEMORIES, namespace), 0
    for pk in (yield from partitions_under(storage, namespace)):
        query = _keys(storage, pk, (prefix, keys.after(prefix)), first_page=None)
        while not query.done:
            page = yield from storage.table.query_page(query)
            count += sum(_may_live(each, storage.clock()) for each in page)
    return count


def _may_live(item: Item, now: float) -> bool:
    try:
        return not is_expired(item, now)
    except CheckpointCorruptionError:
        return True


def _in_partition(
    storage: StoreStorage, pk: str, between: tuple[str, str], is_over: Callable[[Namespace], bool]
) -> Op[tuple[list[Namespace], bool]]:
    """Find the namespaces of one partition: from a memory of one, go on behind all memories of that namespace.

    Returns:
        The namespaces, and whether these are all.
    """
    found: list[Namespace] = []
    query: Query | None = _keys(storage, pk, between)
    while query is not None and not query.done:
        page = yield from storage.table.query_page(query)
        live = [each for each in page if not is_expired(each, storage.clock())]
        if live:
            namespace = keys.parse_address(live[0]).namespace
            found.append(namespace)
            if is_over(namespace):
                return found, False
            query = _keys(storage, pk, (_behind(namespace), between[1]))
    return found, True


def _behind(namespace: Namespace) -> str:
    """Return the first sort key behind the memories of a namespace, and before those below it.

    A `#` follows a namespace's own labels, and sorts before every label of those below it.
    """
    return keys.after(f"{keys.path_prefix(keys.MEMORIES, namespace)}#")


def _keys(storage: StoreStorage, pk: str, between: tuple[str, str], first_page: int | None = 1) -> Query:
    return Query(
        pk,
        between=between,
        consistent=storage.consistent_read,
        first_page=first_page,
        attributes=(schema.PARTITION_KEY, schema.SORT_KEY, *memory_items.LIVE_ATTRIBUTES),
    )
