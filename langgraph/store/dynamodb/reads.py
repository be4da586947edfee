"""Reading memories: find their items, load the segments that hold large values, and renew expiries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, SupportsIndex, TypeVar, cast, overload

from langgraph.store.base import Item as StoredItem
from langgraph.store.base import SearchItem

from langgraph.checkpoint.dynamodb._format import content, items, limits, schema
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments
from langgraph.checkpoint.dynamodb._operations.thread_item import extend
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work

from . import memory_items
from .keys import Address, parse_address, part_of, vector_sk, vectors_prefix
from .memory_items import StoredMemory
from .resources import StoreStorage

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# A read renews a ttl once this share of it has gone: each renewal is a write of the item's size.
_RENEWED_SHARE = 0.1


M = TypeVar("M", "MemoryItem", "FoundItem")


class MemoryItem(StoredItem):
    """A memory that was read, with its revision for `put_if`.

    In a checkpoint it is LangGraph's `Item`, which has no revision.
    """

    __slots__ = ("revision",)
    revision: str
    # LangGraph's serializer stores this class's name. A reader in strict mode allows `Item`, and no class of ours.
    __class__: Any = property(lambda _: StoredItem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it with its revision."""
        return with_revision, (MemoryItem, self.dict(), self.revision)


class FoundItem(SearchItem):
    """A memory that was found, with its revision for `put_if`.

    In a checkpoint it is LangGraph's `SearchItem`, which has no revision.
    """

    __slots__ = ("revision",)
    revision: str
    __class__: Any = property(lambda _: SearchItem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it with its revision."""
        return with_revision, (FoundItem, self.dict(), self.revision)


class FoundItems(list[SearchItem]):
    """The result of a search: a list of `FoundItem`. LangGraph's stores return a list of `SearchItem`."""

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> FoundItem: ...
    @overload
    def __getitem__(self, at: slice, /) -> list[SearchItem]: ...
    def __getitem__(self, at: SupportsIndex | slice, /) -> FoundItem | list[SearchItem]:
        """Return one of them, or several."""
        return cast("FoundItem | list[SearchItem]", super().__getitem__(at))

    def __iter__(self) -> Iterator[FoundItem]:
        """Go through them."""
        return cast("Iterator[FoundItem]", super().__iter__())


def with_revision(kind: type[M], fields: Mapping[str, Any], revision: str) -> M:
    """Return a memory with its revision."""
    item = kind(**fields)
    item.revision = revision
    return item


@dataclass(frozen=True)
class LoadedMemory:
    """A memory with its value, which stays serialized: one byte of that can take seventy as an object."""

    address: Address
    memory: StoredMemory
    codec: Codec
    packed: bytes
    segment_bytes: int
    """The size of what its segments hold."""

    def value(self) -> dict[str, Any]:
        """Deserialize the value."""
        return memory_items.unpack_value(self.codec, self.memory.item, self.packed)

    def item(self) -> MemoryItem:
        """Return it as LangGraph's `get` does."""
        return with_revision(MemoryItem, self._fields(), self.memory.revision)

    def found(self, score: float | None = None) -> FoundItem:
        """Return it as LangGraph's `search` does."""
        return with_revision(FoundItem, {**self._fields(), "score": score}, self.memory.revision)

    def _fields(self) -> Mapping[str, Any]:
        return {
            "namespace": self.address.namespace,
            "key": self.address.key,
            "value": self.value(),
            "created_at": moment(self.memory.created_us),
            "updated_at": moment(self.memory.updated_us),
        }


def moment(microseconds: int) -> datetime:
    """Return a number of epoch microseconds as a time."""
    return _EPOCH + timedelta(microseconds=microseconds)


def in_microseconds(time: datetime) -> int:
    """Return a time as epoch microseconds. One without a zone is in UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def get(storage: StoreStorage, addresses: Sequence[Address]) -> Op[list[LoadedMemory | None]]:
    """Read memories by their keys; one of them by GetItem."""
    keys = {(each.pk, each.sk): each.item_key for each in addresses}
    found = yield from read_items(storage, list(keys.values()))
    by_key = {(items.partition_key(item), items.sort_key(item)): item for item in found}
    loaded = yield from load(storage, by_key.values())
    by_address = {(each.address.pk, each.address.sk): each for each in loaded if each is not None}
    return [by_address.get((each.pk, each.sk)) for each in addresses]


def read_items(storage: StoreStorage, keys: Sequence[Item]) -> Op[list[Item]]:
    """Read the items of memories by their keys; one of them by GetItem."""
    if len(keys) != 1:
        return (yield from storage.table.batch_get(keys, consistent=storage.consistent_read))
    response = yield from storage.table.send("get_item", Key=keys[0], ConsistentRead=storage.consistent_read)
    return [response["Item"]] if "Item" in response else []


def load(storage: StoreStorage, found: Iterable[Item]) -> Op[list[LoadedMemory | None]]:
    """Read the values of memories that were found, without deserializing them; `None` for those that do not live."""
    return (yield from gather([_load(storage, item) for item in found]))


def _load(storage: StoreStorage, item: Item) -> Op[LoadedMemory | None]:
    missing: str | None = None
    for _ in range(limits.ATTEMPTS_MAX):
        memory = memory_items.parse_memory(item, storage.clock())
        if memory is None:
            return None
        if memory.revision == missing:
            break
        loaded = LoadedSegments(items.partition_key(item))
        if not (yield from loaded.read(storage, memory.part.own, by_keys=True)):
            size = sum(map(len, loaded.contents.values()))
            opened = partial(
                content.part_content, storage.codec, item, memory_items.VALUE, memory.part, loaded.contents
            )
            packed = yield from work(opened, size)
            return LoadedMemory(parse_address(item), memory, storage.codec, packed, size)
        # Another put has replaced the value since, and removed its segments.
        missing = memory.revision
        again = yield from storage.table.get(items.partition_key(item), items.sort_key(item))
        if again is None:
            return None
        item = again
    raise items.damaged(item, "segments that it needs are not in the table")


def packed_bytes(found: Iterable[LoadedMemory]) -> int:
    """Return how many bytes the values of memories have, serialized."""
    return sum(len(each.packed) for each in found)


# What belongs to a value beside its item


def belongings(storage: StoreStorage, item: Item) -> Op[list[Item]]:
    """Return the keys of the segments and vectors of the value in an item, which need not live."""
    part = items.parse_part(item, memory_items.VALUE)
    if part is None:
        return []
    pk = items.partition_key(item)
    loaded = LoadedSegments(pk)
    yield from loaded.read_indexes(storage, part.own)
    address, revision = parse_address(item), memory_items.revision_of(item)
    vectors = (vector_sk(address, revision, each) for each in range(memory_items.vectors_of(item)))
    sks = [*(items.segment_sk(each) for each in sorted(reach(part.own, loaded.contents))), *vectors]
    return [items.key(pk, sk) for sk in sks]


def parts_of(storage: StoreStorage, item: Item) -> Op[list[Item]]:
    """Return the keys of the segments and vectors of the value that an item has replaced, without the old item.

    This reads the segments of the whole partition.
    """
    address, revision = parse_address(item), memory_items.replaced_revision(item)
    if revision is None:
        return []
    prefixes = (items.SEGMENTS, f"{vectors_prefix(address)}{revision}#")
    attributes = (schema.PARTITION_KEY, schema.SORT_KEY, memory_items.PART_OF)
    kinds = [Query(address.pk, prefix=each, attributes=attributes) for each in prefixes]
    segments, vectors = yield from gather([storage.table.query_all(each) for each in kinds])
    wanted = part_of(address, revision)
    own = [each for each in segments if items.text(each, memory_items.PART_OF) == wanted]
    return [items.key_of(each) for each in (*own, *vectors)]


def renew(storage: StoreStorage, memories: Iterable[StoredMemory]) -> Op[None]:
    """Renew the expiries of memories that were read, if a tenth of their ttl has gone."""
    now = storage.clock()
    aged = {
        each.revision: _renew(storage, each, each.ttl_seconds, now)
        for each in memories
        if each.ttl_seconds is not None
        and each.expires_at is not None
        and each.expires_at - now < (1 - _RENEWED_SHARE) * each.ttl_seconds
    }
    yield from gather(list(aged.values()))


def _renew(storage: StoreStorage, memory: StoredMemory, ttl_seconds: int, now: float) -> Op[None]:
    expires_at = memory_items.expiry(ttl_seconds, now)
    parts_until = None
    if memory.parts_until is not None and memory.parts_until < expires_at:
        # Segments and vectors first: a memory never outlives them.
        parts_until = memory_items.expiry(memory_items.PART_LIFETIMES * ttl_seconds, now)
        keys = yield from belongings(storage, memory.item)
        extended = yield from gather([extend(storage, each, parts_until) for each in keys])
        if not all(extended):
            # Another put has replaced the value.
            return
    change = memory_items.refresh(memory, expires_at, parts_until, now)
    yield from storage.table.try_update(items.key_of(memory.item), change)
