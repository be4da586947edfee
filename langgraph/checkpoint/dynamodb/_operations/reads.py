"""Reading checkpoints: finding heads, and loading the segments they name.

A reader may meet a checkpoint whose segments a deletion has just removed. It reads the head again; if the
segments are still missing, the thread's epoch says whether the checkpoint was ever acknowledged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, open_plain
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    INDEX_GROUP,
    PAGE_ITEMS_FIRST,
    PAGE_ITEMS_GROWTH,
    PAGE_ITEMS_MAX,
    QUERIED_SEGMENTS_MAX,
    QUERIED_SEGMENTS_MIN,
)
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import Chunk, expand, is_index, piece
from langgraph.checkpoint.dynamodb._runtime.memory import StoredSegment
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, both, work
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb.protocol import Thread, is_committed, is_reusable


class ChangedMeanwhileError(Exception):
    """An item that was being read has been replaced or deleted; it has to be found again."""


@dataclass(frozen=True)
class Group:
    """The items of one checkpoint: its head and its tasks' writes."""

    head: Item
    writes: Sequence[Item] = ()

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint's id."""
        return items.checkpoint_id_of(self.head)

    @property
    def members(self) -> Sequence[Item]:
        """The head, and the writes."""
        return (self.head, *self.writes)

    def own_ids(self) -> set[bytes]:
        """The segments that hold the items' own content, without the values'."""
        return items.own_ids(self.members)

    def ids(self) -> set[bytes]:
        """Every segment that the items name."""
        return items.named_ids(self.members)

    def sealed_bytes(self) -> int:
        """How much the items hold themselves, sealed."""
        return sum(len(part.sealed) for item in self.members for _, part in items.parts_of(item))


@dataclass
class Segments:
    """Segments of one partition that were read: plaintexts and, with an epoch, what else is to be known of them."""

    contents: dict[bytes, bytes] = field(default_factory=dict)
    chunks: dict[bytes, Chunk] = field(default_factory=dict)
    # That of the head for which they are read, under which they are to be remembered.
    epoch: bytes | None = None
    # Whether what is remembered may be taken for them.
    from_memory: bool = False
    # Whether the head was seen while its thread had this epoch: then it stays whole for as long as it is there.
    counts: bool = False

    @classmethod
    def of(cls, head: Item) -> Segments:
        """Those of a head: none yet."""
        return cls(epoch=items.binary(head, items.EPOCH))


def config_of(at: Partition, checkpoint_id: str) -> RunnableConfig:
    """The config that points to a checkpoint."""
    return {
        "configurable": {
            "thread_id": at.thread_id,
            "checkpoint_ns": at.namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


# Finding heads


class History:
    """A namespace's checkpoints, newest first, read page by page."""

    def __init__(
        self,
        table: Table,
        at: Partition,
        *,
        below: str | None = None,
        includes_below: bool = False,
        first_page: int | None = PAGE_ITEMS_FIRST,
        consistent: bool = True,
        as_ancestors: bool = False,
    ) -> None:
        """Start at the newest checkpoint, or at the newest one with a smaller id than `below`.

        `includes_below` starts at `below` itself.
        `as_ancestors` gives those too that are only kept because later ones are rebuilt from them.
        """
        self.at = at
        self._table = table
        self._as_ancestors = as_ancestors
        self._excluded = None if includes_below else below
        # A namespace without its newest checkpoint is none at all, even where older ones have not expired yet.
        self._newest_unseen = below is None
        self._writes: list[Item] = []
        until = items.AFTER_CHECKPOINTS
        if below is not None:
            until = items.after_checkpoint(below) if includes_below else items.checkpoint_prefix(below)
        self._query = Query(
            at.pk,
            between=(items.CHECKPOINTS, until),
            descending=True,
            consistent=consistent,
            first_page=first_page,
        )

    @property
    def done(self) -> bool:
        """Whether everything has been read."""
        return self._query.done

    def page(self, at_least: int = 0) -> Op[list[Group]]:
        """Read on, so many items or more, until a live checkpoint is complete or the namespace is at its end."""
        groups: list[Group] = []
        while not groups and not self.done:
            groups = yield from self.next_page(at_least)
        return groups

    def next_page(self, at_least: int = 0) -> Op[list[Group]]:
        """Read one page, which may complete no checkpoint."""
        groups: list[Group] = []
        for item in (yield from self._table.query_page(self._query, at_least)):
            if not items.is_head(item):
                self._writes.append(item)
            elif self._newest_unseen and items.is_expired(item, self._table.clock()):
                self._query.done = True
                return []
            else:
                groups += self._complete(item)
        return groups

    def _complete(self, head: Item) -> list[Group]:
        """The group that a head completes, if the head counts. Writes sort behind their head, so came before."""
        checkpoint_id = items.checkpoint_id_of(head)
        writes = [item for item in self._writes if items.checkpoint_id_of(item) == checkpoint_id]
        self._writes = []
        self._newest_unseen = False
        if checkpoint_id == self._excluded:
            return []
        group = _live(self._table, head, writes, as_ancestor=self._as_ancestors)
        return [] if group is None else [group]


def find_newest(table: Table, at: Partition, *, below: str | None, consistent: bool) -> Op[Group | None]:
    """Read the items of the newest live checkpoint, or of the newest one with a smaller id than `below`.

    From a single page, as far as one can hold them: between two a put may store what the first one lacked, and a
    deletion take what the second one was to find. So each page begins anew.
    """
    first_page = PAGE_ITEMS_FIRST
    while True:
        history = History(table, at, below=below, first_page=first_page, consistent=consistent)
        groups = yield from history.next_page()
        if not groups and not history.done and first_page < PAGE_ITEMS_MAX:
            first_page *= PAGE_ITEMS_GROWTH
            continue
        groups = groups or (yield from history.page())
        return groups[0] if groups else None


def find(
    table: Table, at: Partition, checkpoint_id: str, *, consistent: bool = True, as_ancestor: bool = False
) -> Op[Group | None]:
    """Read the items of one checkpoint."""
    query = Query(at.pk, prefix=items.checkpoint_prefix(checkpoint_id), consistent=consistent)
    found = yield from table.query_all(query)
    if not found or not items.is_head(found[0]):
        return None
    return _live(table, found[0], found[1:], as_ancestor=as_ancestor)


def _live(table: Table, head: Item, writes: Sequence[Item], *, as_ancestor: bool) -> Group | None:
    """What has not expired of a checkpoint; None where its head has."""
    now = table.clock()
    if items.is_expired(head, now, as_ancestor=as_ancestor):
        return None
    items.check_format(head)
    return Group(head, [each for each in writes if not items.is_expired(each, now)])


# Loading what heads name


def read_segments(
    table: Table,
    codec: Codec | None,
    pk: str,
    ids: Iterable[bytes],
    known: Segments,
) -> Op[set[bytes]]:
    """Read segments, and those that index segments among them name, into `known`; return what is missing.

    Without a codec just the index segments are read, which need none.
    Segments never change, so what is remembered of them is true, and others are read eventually consistent; only what
    seems missing is read again.
    """
    missing: set[bytes] = set()
    counts = is_index if codec is None else bool
    wanted = set(filter(counts, expand(ids, known.contents))) - known.contents.keys()
    page = {} if codec is None else (yield from _page_of_segments(table, pk, wanted, known))
    while wanted:
        remembered = _remembered(table, pk, wanted, known)
        read = [page[each] for each in sorted(wanted & page.keys() - remembered.keys())]
        read += yield from segment_items(table, pk, wanted - remembered.keys() - page.keys())
        kept = [
            {**items.key(pk, items.segment_sk(each)), items.DATA: {"B": segment.sealed}}
            for each, segment in remembered.items()
        ]
        contents = yield from work(partial(_open, codec, [*kept, *read]), 8192 * len(wanted))
        known.contents |= contents
        if known.epoch is not None:
            stored = yield from work(partial(_stored, read, contents), 8192 * len(read))
            table.memory.remember_segments(pk, known.epoch, stored)
            known.chunks |= {each: segment.chunk for each, segment in {**remembered, **stored}.items()}
        missing |= wanted - contents.keys()
        named = {
            inner for each, data in contents.items() if is_index(each) for inner in items.unpack_ids(data)
        }
        wanted = set(filter(counts, named)) - known.contents.keys() - missing
    return missing


def segment_items(table: Table, pk: str, ids: Iterable[bytes]) -> Op[list[Item]]:
    """Read segments by their ids: eventually consistent, since they never change; what seems missing, once more."""
    left, found = set(ids), list[Item]()
    for consistent in (False, True):
        keys = [items.key(pk, items.segment_sk(each)) for each in sorted(left)]
        found += yield from table.batch_get(keys, consistent=consistent)
        left -= {items.segment_id_of(item) for item in found}
    return found


def _page_of_segments(
    table: Table, pk: str, wanted: Collection[bytes], known: Segments
) -> Op[dict[bytes, Item]]:
    """Read a page of a partition's segments where it is likely to have most of those that are wanted, and more cheaply.

    Their ids are random, so a page is a fair sample of the partition. It has at most a quarter more items than are
    wanted, and what it does not have is read by its keys.
    """
    count = sum(INDEX_GROUP if is_index(each) else 1 for each in wanted)
    is_begun = known.contents or _remembered(table, pk, wanted, known)
    if is_begun or not QUERIED_SEGMENTS_MIN <= count <= QUERIED_SEGMENTS_MAX:
        return {}
    query = Query(pk, prefix=items.SEGMENTS, consistent=False, first_page=len(wanted) + count * 5 // 4)
    return {items.segment_id_of(item): item for item in (yield from table.query_page(query))}


def _remembered(
    table: Table, pk: str, wanted: Collection[bytes], known: Segments
) -> Mapping[bytes, StoredSegment]:
    """Those of some segments that may be taken from memory."""
    if known.epoch is None or not known.from_memory:
        return {}
    return table.memory.segments(pk, known.epoch, wanted)


def _open(codec: Codec | None, segments: Sequence[Item]) -> dict[bytes, bytes]:
    contents: dict[bytes, bytes] = {}
    size = 0
    for item in segments:
        content = contents[items.segment_id_of(item)] = open_segment(codec, item)
        size += len(content)
        if codec is not None:
            # A checkpoint's values, what describes them, and its writes may each have so much.
            codec.check_size(size // 3, item)
    return contents


def _stored(segments: Sequence[Item], contents: Mapping[bytes, bytes]) -> dict[bytes, StoredSegment]:
    """What is to be remembered of segments that were read."""
    stored = {}
    for item in segments:
        segment_id = items.segment_id_of(item)
        chunk = Chunk.of(piece(contents[segment_id]), items.number(item, TTL_ATTRIBUTE))
        stored[segment_id] = StoredSegment(items.binary(item, items.DATA), chunk)
    return stored


def open_segment(codec: Codec | None, segment: Item) -> bytes:
    """What a segment holds; index segments need no codec."""
    data = items.binary(segment, items.DATA)
    if codec is None or is_index(items.segment_id_of(segment)):
        return open_plain(data, segment)
    return codec.open(data, segment, items.DATA)


def load(table: Table, codec: Codec, group: Group, known: Segments) -> Op[Group | None]:
    """Read every segment that a checkpoint names.

    Returns:
        The checkpoint without writes that were never acknowledged, or None where it never was itself.

    Raises:
        CheckpointCorruptionError: Segments of what was acknowledged are missing.
        ChangedMeanwhileError: The checkpoint has to be found again.
    """
    missing = yield from _read_segments_of(table, codec, group, known)
    if not missing:
        return group
    if (yield from lost_parts(table, group.head, known)):
        return None
    whole = []
    for item in group.writes:
        lost = yield from lost_parts(table, item, known)
        whole.append({name: value for name, value in item.items() if name not in lost})
    return Group(group.head, whole)


def _read_segments_of(table: Table, codec: Codec, group: Group, known: Segments) -> Op[set[bytes]]:
    """Read every segment that a checkpoint names; return what is missing.

    What the process remembers is taken where the checkpoint counts: of others a deletion may have taken segments, and
    who remembers them is not to show what nobody else can read.
    """
    pk, epoch = items.partition_key(group.head), known.epoch
    if epoch is not None:
        known.counts = _is_known_to_count(table, group, epoch)
        known.from_memory = known.counts or bool(table.memory.segments(pk, epoch, group.ids()))
    reading = read_segments(table, codec, pk, group.ids(), known)
    if known.counts or not known.from_memory:
        return (yield from reading)
    missing, item = yield from both(reading, table.get(items.parse_partition(pk).root, items.THREAD))
    known.counts = item is not None and is_reusable(epoch, Thread.parse(item).epoch)
    if known.counts:
        return missing
    known.from_memory = False
    known.contents.clear()
    known.chunks.clear()
    return (yield from read_segments(table, codec, pk, group.ids(), known))


def _is_known_to_count(table: Table, group: Group, epoch: bytes) -> bool:
    """Whether this process has seen that a checkpoint counts, as it is now."""
    entry = table.memory.checkpoint(items.partition_key(group.head), group.checkpoint_id)
    return entry is not None and entry.counts and is_reusable(entry.epoch, epoch)


def lost_parts(table: Table, item: Item, known: Segments, names: Sequence[str] = items.PARTS) -> Op[set[str]]:
    """The parts of a head or writes item of which segments were not found: they were never acknowledged.

    Raises:
        CheckpointCorruptionError: One was, under the thread's epoch, and has not changed: the table is damaged.
        ChangedMeanwhileError: One has changed, or expired.
    """
    missing = {name: _missing(known, part.ids) for name, part in items.parts_of(item) if name in names}
    lost = {name: ids for name, ids in missing.items() if ids}
    if lost:
        yield from judge(table, item, lost)
    return set(lost)


def judge(table: Table, item: Item, lost: Mapping[str, Sequence[bytes]]) -> Op[None]:
    """Say why segments that parts of an item name are missing; return where the parts were never acknowledged.

    Raises:
        CheckpointCorruptionError: One was, under the thread's epoch, and has not changed: the table is damaged.
        ChangedMeanwhileError: One has changed, or expired.
    """
    at = items.parse_partition(items.partition_key(item))
    again = yield from table.get(at.pk, items.sort_key(item))
    if again is None or any(again.get(name) != item.get(name) for name in lost):
        raise ChangedMeanwhileError
    if items.is_expired(again, table.clock(), as_ancestor=True):
        # It was there when the reader began, which then stood still; what it names may have expired too.
        raise ChangedMeanwhileError
    thread_item = yield from table.get(at.root, items.THREAD)
    thread = None if thread_item is None else Thread.parse(thread_item)
    missing = [each for name, ids in lost.items() if is_committed(again, name, thread) for each in ids]
    if not missing:
        return
    segments = ", ".join(items.segment_sk(each) for each in missing[:3])
    msg = (
        f"{items.name_of(item)} needs segments that are not in the table ({len(missing)} missing, first:"
        f" {segments}); restore them from a backup or point-in-time recovery, or delete the thread"
    )
    raise CheckpointCorruptionError(msg)


def _missing(known: Segments, ids: Iterable[bytes]) -> list[bytes]:
    return [each for each in expand(ids, known.contents) if each not in known.contents]
