"""One namespace as it was read: its checkpoints, their bodies, the segments and values that were asked for.

Whatever is read of the table is read once. Heads and pending writes come by one query, page by page; segments, which
checkpoints share, by their keys or, where most of them are wanted, by a query of them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import CheckpointMetadata

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import Body, Write, read_body, read_metadata, read_writes
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.segments import StoredValue, expand, is_index, reach
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory
from langgraph.checkpoint.dynamodb._operations.reads import Group, open_segment
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, CheckpointFormatError
from langgraph.checkpoint.dynamodb.view.kept import Kept, Segment, Value

# One query of all segments reads more bytes than are wanted, and each item by its key is rounded up.
_WANTED_SHARE = 0.8
_KEYS_AT_ONCE = 1000


@dataclass(frozen=True)
class Task:
    """One task's pending writes of a checkpoint, as they were stored."""

    item: Item
    writes: tuple[Write, ...]
    """Special ones too; none of a part whose segments were not read."""
    is_complete: bool
    """Whether every part was read."""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return items.task_id_of(self.item)


class Lane:
    """A namespace, as far as it was read."""

    def __init__(self, table: Table, codec: Codec, at: Partition, kept: Kept) -> None:
        """Read nothing yet.

        Args:
            table: The table.
            codec: A codec whose serializer only looks.
            at: The namespace.
            kept: What segments and values are kept in; others share it.
        """
        self.at = at
        self.groups: dict[str, Group] = {}
        """The checkpoints that were read, the newest first."""
        self.inventory = Inventory(at)
        """All items that were read, with their sizes; segments without their data."""
        self.problem: str | None = None
        """What is wrong with an item that cannot be shown at all."""
        self._table = table
        self._codec = codec
        self._kept = kept
        self._query = Query(
            at.pk,
            between=(items.CHECKPOINTS, items.AFTER_CHECKPOINTS),
            descending=True,
            consistent=False,
        )
        self._bodies: dict[str, Body] = {}
        self._tasks: dict[str, tuple[Task, ...]] = {}
        # What is wrong with segments that are there, and hold something else than what was written.
        self._damaged: dict[bytes, str] = {}

    @property
    def _indexes(self) -> dict[bytes, bytes]:
        return self.inventory.indexes.contents

    # Checkpoints

    @property
    def done(self) -> bool:
        """Whether all checkpoints were read."""
        return self._query.done

    def read_on(self) -> Op[None]:
        """Read the next page of checkpoints, and the index segments that they name."""
        known = len(self.groups)
        for item in (yield from self._table.query_page(self._query)):
            try:
                self._add(item)
            except CheckpointCorruptionError as error:
                self.problem = str(error)
            if self._is_over(item):
                # A namespace without its newest checkpoint is none at all, even where older ones have not expired yet.
                self._query.done = True
                break
        new = list(self.groups.values())[known:]
        yield from self._read_indexes({each for group in new for each in self._named(group)})

    def _add(self, item: Item) -> None:
        """Take an item in. Writes sort behind their head, so they come before it.

        Raises:
            CheckpointCorruptionError: It cannot have its place in a tree.
        """
        now = self._table.clock()
        self.inventory.sizes[items.sort_key(item)] = item_bytes(item)
        items.is_expired(item, now)
        items.text(item, items.PARENT)
        self.inventory.add(item)
        if items.is_head(item):
            checkpoint_id = items.checkpoint_id_of(item)
            writes = self.inventory.writes.get(checkpoint_id, ())
            live = [each for each in writes if not items.is_expired(each, now)]
            self.groups[checkpoint_id] = Group(item, live)

    def _is_over(self, item: Item) -> bool:
        """Whether the newest checkpoint has just been read, and has expired."""
        newest = next(iter(self.groups.values()), None)
        return newest is not None and newest.head is item and not self.is_readable(newest)

    def _named(self, group: Group) -> set[bytes]:
        """The segments that a checkpoint names; none where that cannot be read, which its body tells."""
        try:
            return group.ids()
        except (CheckpointCorruptionError, CheckpointFormatError):
            return set()

    def read_to_end(self) -> Op[None]:
        """Read all checkpoints."""
        while not self.done:
            yield from self.read_on()

    def find(self, checkpoint_id: str) -> Op[Group | None]:
        """A checkpoint by its id; what is newer is read with it."""
        while checkpoint_id not in self.groups and not self.done:
            yield from self.read_on()
        return self.groups.get(checkpoint_id)

    def is_readable(self, group: Group) -> bool:
        """Whether a checkpoint has not expired; one that has is kept for those that are rebuilt from it."""
        return not items.is_expired(group.head, self._table.clock())

    @property
    def rows(self) -> list[Group]:
        """The checkpoints that were read and have not expired, the newest first."""
        return [each for each in self.groups.values() if self.is_readable(each)]

    def body(self, group: Group) -> Op[Body]:
        """A checkpoint without its values."""
        found = self._bodies.get(group.checkpoint_id)
        if found is None:
            contents = yield from self._own_contents([group.head])
            items.check_format(group.head)
            found = self._bodies[group.checkpoint_id] = read_body(self._codec, group.head, contents)
        return found

    def metadata(self, group: Group) -> Op[CheckpointMetadata]:
        """A checkpoint's metadata."""
        return read_metadata(self._codec, group.head, (yield from self._own_contents([group.head])))

    def tasks(self, group: Group, *, whole: bool) -> Op[tuple[Task, ...]]:
        """What the tasks of a checkpoint have stored; what is large enough for segments only where all is wanted."""
        known = self._tasks.get(group.checkpoint_id)
        if known is None or (whole and not all(each.is_complete for each in known)):
            contents = (yield from self._own_contents(group.writes)) if whole else self._indexes
            known = tuple(self._task(each, contents, whole=whole) for each in group.writes)
            self._tasks[group.checkpoint_id] = known
        return known

    def _task(self, item: Item, contents: Mapping[bytes, bytes], *, whole: bool) -> Task:
        writes, is_complete = list[Write](), True
        for name, part in items.parts_of(item):
            if part.own and not whole:
                is_complete = False
            else:
                writes += read_writes(self._codec, item, name, contents)
        return Task(item, tuple(sorted(writes, key=lambda each: each.index)), is_complete)

    def loads(self, write: Write, item: Item) -> Any:
        """The value of a pending write, as data."""
        return self._codec.loads(write.kind, write.data, item)

    # Values

    def raw(self, group: Group, value: StoredValue) -> Op[bytes]:
        """A stored value as it was serialized."""
        contents = yield from self.contents(value.segments)
        missing = [each for each in value.segments if each not in contents]
        damaged = next((each for each in missing if each in self._damaged), None)
        if damaged is not None:
            raise CheckpointCorruptionError(self._damaged[damaged])
        if missing:
            msg = (
                f"{len(missing)} of {len(value.segments)} segments of the value are not in the table;"
                " `verify` says whether that is damage"
            )
            raise CheckpointCorruptionError(msg)
        size = sum(len(contents[each]) for each in value.segments) + len(value.tail)
        self._codec.check_size(size, group.head)
        return value.join(contents)

    def value(self, group: Group, stored: StoredValue) -> Op[Any]:
        """A stored value as data. Checkpoints that hold the same share it, so nobody may change it."""
        return (yield from self.measured_value(group, stored)).value

    def measured_value(self, group: Group, stored: StoredValue) -> Op[Value]:
        """A stored value with how much it takes up."""
        key = (self.at.pk, stored)
        found = self._kept.values.get(key)
        if found is None:
            raw = yield from self.raw(group, stored)
            found = Value(self._codec.loads(stored.kind, raw, group.head), len(raw))
            self._kept.values.keep(key, found, len(raw))
        return found

    def segments_of(self, group: Group) -> set[bytes]:
        """Every segment that a checkpoint and its writes name, index segments included."""
        return reach(self._named(group), self._indexes)

    # Segments

    def contents(self, ids: Iterable[bytes]) -> Op[dict[bytes, bytes]]:
        """The plaintexts of segments; those that are not in the table are left out."""
        wanted, found = dict.fromkeys(ids), dict[bytes, bytes]()
        for each in wanted:
            segment = self._kept.segments.get((self.at.pk, each))
            if segment is not None:
                self._note(each, segment)
                found[each] = segment.content
        missing = [each for each in wanted if each not in found]
        if missing and all(map(is_index, missing)):
            yield from self._fetch_keys(missing, found)
        elif missing:
            yield from self._fetch(missing, found)
        return {each: found[each] for each in wanted if each in found}

    def measure_segments(self) -> Op[None]:
        """Read all segments whose size is not known, to know it."""
        for each in self.named() - self.inventory.segments.keys():
            segment = self._kept.segments.get((self.at.pk, each))
            if segment is not None:
                self._note(each, segment)
        missing = sorted(self.named() - self.inventory.segments.keys())
        if missing:
            yield from self._fetch(missing, None)

    def named(self) -> set[bytes]:
        """Every segment that is named by what was read."""
        return {each for group in self.groups.values() for each in self.segments_of(group)}

    def _fetch(self, ids: list[bytes], found: dict[bytes, bytes] | None) -> Op[None]:
        """Read segments, into `found` where they are wanted, in whichever way reads less."""
        left = set(ids)
        if self.done and len(ids) >= _WANTED_SHARE * len(self.named()):
            query = Query(self.at.pk, prefix=items.SEGMENTS, consistent=False)
            while not query.done:
                left -= self._take((yield from self._table.query_page(query)), found)
        yield from self._fetch_keys(left, found)

    def _fetch_keys(self, ids: Iterable[bytes], found: dict[bytes, bytes] | None) -> Op[None]:
        left = set(ids)
        # What an eventually consistent read does not find may have been written a moment ago.
        for consistent in (False, True):
            keys = [items.key(self.at.pk, items.segment_sk(each)) for each in sorted(left)]
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                left -= self._take((yield from self._table.batch_get(some, consistent=consistent)), found)

    def _take(self, read: Iterable[Item], found: dict[bytes, bytes] | None) -> set[bytes]:
        taken = set()
        for item in read:
            segment_id = items.segment_id_of(item)
            taken.add(segment_id)
            try:
                segment = Segment(open_segment(self._codec, item), item_bytes(item))
            except CheckpointCorruptionError as error:
                # The others are good for something.
                self._damaged[segment_id] = str(error)
                continue
            self._kept.segments.keep((self.at.pk, segment_id), segment, len(segment.content))
            self._note(segment_id, segment)
            if found is not None:
                found[segment_id] = segment.content
        return taken

    def _note(self, segment_id: bytes, segment: Segment) -> None:
        sort_key = items.segment_sk(segment_id)
        self.inventory.sizes[sort_key] = segment.item_bytes
        self.inventory.segments[segment_id] = items.key(self.at.pk, sort_key)
        if is_index(segment_id):
            self._indexes[segment_id] = segment.content

    def _read_indexes(self, ids: set[bytes]) -> Op[None]:
        wanted = {each for each in ids if is_index(each)} - self._indexes.keys()
        while wanted:
            found = yield from self.contents(sorted(wanted))
            inner = {each for index in found.values() for each in items.unpack_ids(index)}
            wanted = {each for each in inner if is_index(each)} - self._indexes.keys()

    def _own_contents(self, some: Iterable[Item]) -> Op[Mapping[bytes, bytes]]:
        """What is needed to open items: index segments, and the segments that hold their own content."""
        own = items.own_ids(some)
        if not own:
            return self._indexes
        contents = yield from self.contents(each for each in expand(own, self._indexes) if not is_index(each))
        return {**self._indexes, **contents}

    # The way back

    def parent(self, group: Group) -> Op[Group | None]:
        """A checkpoint's parent, if it is in the table; one that has expired may be what others are rebuilt from."""
        parent_id = items.text(group.head, items.PARENT)
        return None if parent_id is None else (yield from self.find(parent_id))
