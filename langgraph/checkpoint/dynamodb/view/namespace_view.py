"""One namespace as it was read: its checkpoints, their bodies, and the segments and values that were needed.

Everything is read from the table once. Heads and pending writes come by one query, page by page. Segments, which
checkpoints share, come by their keys or, if most of them are needed, by one query of them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import CheckpointMetadata

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.content import Body, Write, read_body, read_metadata, read_writes
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.segments import StoredValue, expand, inline_bytes, is_index, reach
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory
from langgraph.checkpoint.dynamodb._operations.reads import (
    StoredCheckpoint,
    hides_namespace,
    open_segment,
    segment_items,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, CheckpointFormatError
from langgraph.checkpoint.dynamodb.view.caches import Caches, Segment, SizedValue

# A query of all segments also reads unwanted bytes, but a read by key is rounded up for each item.
_WANTED_SHARE = 0.8
_KEYS_AT_ONCE = 1000


@dataclass(frozen=True)
class Task:
    """One task's pending writes of a checkpoint, as they were stored."""

    item: Item
    writes: tuple[Write, ...]
    """Special ones too, but none of a part whose segments were not read."""
    is_complete: bool
    """Whether every part was read."""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return items.task_id_of(self.item)


class NamespaceView:
    """A namespace, as far as it was read."""

    def __init__(self, storage: Storage, partition: Partition, caches: Caches) -> None:
        """Read nothing yet.

        Args:
            storage: The storage, whose serializer only looks.
            partition: The namespace.
            caches: The caches of segments and values, which others share.
        """
        self.partition = partition
        self.checkpoints: dict[str, StoredCheckpoint] = {}
        """The checkpoints that were read, newest first."""
        self.inventory = Inventory(partition)
        """All items that were read, with their sizes. Segments are kept without their data."""
        self.problem: str | None = None
        """The damage of an item that cannot be shown at all."""
        self._storage = storage
        self._caches = caches
        self._query = Query(
            partition.pk,
            between=(items.CHECKPOINTS, items.AFTER_CHECKPOINTS),
            descending=True,
            consistent=False,
        )
        self._bodies: dict[str, Body] = {}
        self._tasks: dict[str, tuple[Task, ...]] = {}
        # Segments that are stored but whose content is not what was written, with the error of each.
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
        known = len(self.checkpoints)
        for item in (yield from self._storage.table.query_page(self._query)):
            try:
                self._add(item)
            except CheckpointCorruptionError as error:
                self.problem = str(error)
            if self._is_over(item):
                self._query.done = True
                break
        new = list(self.checkpoints.values())[known:]
        yield from self._read_indexes({each for checkpoint in new for each in self._named(checkpoint)})

    def _add(self, item: Item) -> None:
        """Add an item. Writes sort after their head, and so arrive before it in this descending query.

        Raises:
            CheckpointCorruptionError: The item cannot have its place in a tree.
        """
        now = self._storage.clock()
        self.inventory.sizes[items.sort_key(item)] = item_bytes(item)
        items.is_expired(item, now)
        items.text(item, items.PARENT)
        self.inventory.add(item)
        if items.is_head(item):
            checkpoint_id = items.checkpoint_id_of(item)
            writes = self.inventory.writes.get(checkpoint_id, ())
            live = [each for each in writes if not items.is_expired(each, now)]
            self.checkpoints[checkpoint_id] = StoredCheckpoint(item, live)

    def _is_over(self, item: Item) -> bool:
        """Tell whether an item is the newest checkpoint's head and has expired, which hides the whole namespace."""
        newest = next(iter(self.checkpoints.values()), None)
        return newest is not None and newest.head is item and hides_namespace(item, self._storage.clock())

    def _named(self, checkpoint: StoredCheckpoint) -> set[bytes]:
        """Return the segments that a checkpoint names, or none if that cannot be read, which its body reports."""
        try:
            return checkpoint.ids()
        except (CheckpointCorruptionError, CheckpointFormatError):
            return set()

    def read_to_end(self) -> Op[None]:
        """Read all checkpoints."""
        while not self.done:
            yield from self.read_on()

    def find(self, checkpoint_id: str) -> Op[StoredCheckpoint | None]:
        """Return a checkpoint by its id, or None. Newer checkpoints are read with it."""
        while checkpoint_id not in self.checkpoints and not self.done:
            yield from self.read_on()
        return self.checkpoints.get(checkpoint_id)

    def is_readable(self, checkpoint: StoredCheckpoint) -> bool:
        """Tell whether a checkpoint has not expired. An expired one is kept for those that are rebuilt from it."""
        return not items.is_expired(checkpoint.head, self._storage.clock())

    @property
    def rows(self) -> list[StoredCheckpoint]:
        """The checkpoints that were read and have not expired, newest first."""
        return [each for each in self.checkpoints.values() if self.is_readable(each)]

    def body(self, checkpoint: StoredCheckpoint) -> Op[Body]:
        """Return a checkpoint without its values."""
        found = self._bodies.get(checkpoint.checkpoint_id)
        if found is None:
            contents = yield from self._own_contents([checkpoint.head])
            items.check_format(checkpoint.head)
            found = self._bodies[checkpoint.checkpoint_id] = read_body(
                self._storage.codec, checkpoint.head, contents
            )
        return found

    def metadata(self, checkpoint: StoredCheckpoint) -> Op[CheckpointMetadata]:
        """Return a checkpoint's metadata."""
        return read_metadata(
            self._storage.codec, checkpoint.head, (yield from self._own_contents([checkpoint.head]))
        )

    def tasks(self, checkpoint: StoredCheckpoint, *, whole: bool) -> Op[tuple[Task, ...]]:
        """Return the stored writes of a checkpoint's tasks. Writes in segments are read only if `whole` is true."""
        known = self._tasks.get(checkpoint.checkpoint_id)
        if known is None or (whole and not all(each.is_complete for each in known)):
            contents = (yield from self._own_contents(checkpoint.writes)) if whole else self._indexes
            known = tuple(self._task(each, contents, whole=whole) for each in checkpoint.writes)
            self._tasks[checkpoint.checkpoint_id] = known
        return known

    def _task(self, item: Item, contents: Mapping[bytes, bytes], *, whole: bool) -> Task:
        writes, is_complete = list[Write](), True
        for name, part in items.parts_of(item):
            if part.own and not whole:
                is_complete = False
            else:
                writes += read_writes(self._storage.codec, item, name, contents)
        return Task(item, tuple(sorted(writes, key=lambda each: each.index)), is_complete)

    def loads(self, write: Write, item: Item) -> Any:
        """Return the value of a pending write, as data."""
        return self._storage.codec.loads(write.kind, write.data, item)

    # Values

    def raw(self, checkpoint: StoredCheckpoint, value: StoredValue) -> Op[bytes]:
        """Return a stored value as it was serialized.

        Raises:
            CheckpointCorruptionError: Segments of the value are missing or damaged.
        """
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
        size = sum(len(contents[each]) for each in value.segments) + inline_bytes([value])
        self._storage.codec.check_size(size, checkpoint.head)
        return value.join(contents)

    def value(self, checkpoint: StoredCheckpoint, stored: StoredValue) -> Op[Any]:
        """Return a stored value as data. Checkpoints with the same value share it, so it must not be changed."""
        return (yield from self.measured_value(checkpoint, stored)).value

    def measured_value(self, checkpoint: StoredCheckpoint, stored: StoredValue) -> Op[SizedValue]:
        """Return a stored value with its size."""
        key = (self.partition.pk, stored)
        found = self._caches.values.get(key)
        if found is None:
            raw = yield from self.raw(checkpoint, stored)
            found = SizedValue(self._storage.codec.loads(stored.kind, raw, checkpoint.head), len(raw))
            self._caches.values.keep(key, found, len(raw))
        return found

    # Segments

    def contents(self, ids: Iterable[bytes]) -> Op[dict[bytes, bytes]]:
        """Return the plaintexts of segments. Those that are not in the table are left out."""
        wanted, found = dict.fromkeys(ids), dict[bytes, bytes]()
        for each in wanted:
            segment = self._caches.segments.get((self.partition.pk, each))
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
        """Read all segments whose size is not known."""
        for each in self.named() - self.inventory.segments.keys():
            segment = self._caches.segments.get((self.partition.pk, each))
            if segment is not None:
                self._note(each, segment)
        missing = sorted(self.named() - self.inventory.segments.keys())
        if missing:
            yield from self._fetch(missing, None)

    def named(self) -> set[bytes]:
        """Return every segment that the checkpoints and writes that were read name, index segments included."""
        named = (reach(self._named(each), self._indexes) for each in self.checkpoints.values())
        return set[bytes]().union(*named)

    def _fetch(self, ids: list[bytes], found: dict[bytes, bytes] | None) -> Op[None]:
        """Read segments, into `found` if it is given, in whichever way reads less."""
        left = set(ids)
        if self.done and len(ids) >= _WANTED_SHARE * len(self.named()):
            query = Query(self.partition.pk, prefix=items.SEGMENTS, consistent=False)
            while not query.done:
                left -= self._decode((yield from self._storage.table.query_page(query)), found)
        yield from self._fetch_keys(left, found)

    def _fetch_keys(self, ids: Iterable[bytes], found: dict[bytes, bytes] | None) -> Op[None]:
        wanted = sorted(ids)
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[start : start + _KEYS_AT_ONCE]
            self._decode((yield from segment_items(self._storage.table, self.partition.pk, some)), found)

    def _decode(self, read: Iterable[Item], found: dict[bytes, bytes] | None) -> set[bytes]:
        taken = set()
        for item in read:
            segment_id = items.segment_id_of(item)
            taken.add(segment_id)
            try:
                segment = Segment(open_segment(self._storage.codec, item), item_bytes(item))
            except CheckpointCorruptionError as error:
                # The other segments are still of use.
                self._damaged[segment_id] = str(error)
                continue
            self._caches.segments.keep((self.partition.pk, segment_id), segment, len(segment.content))
            self._note(segment_id, segment)
            if found is not None:
                found[segment_id] = segment.content
        return taken

    def _note(self, segment_id: bytes, segment: Segment) -> None:
        sort_key = items.segment_sk(segment_id)
        self.inventory.sizes[sort_key] = segment.item_bytes
        self.inventory.segments[segment_id] = items.key(self.partition.pk, sort_key)
        if is_index(segment_id):
            self._indexes[segment_id] = segment.content

    def _read_indexes(self, ids: set[bytes]) -> Op[None]:
        wanted = {each for each in ids if is_index(each)} - self._indexes.keys()
        while wanted:
            found = yield from self.contents(sorted(wanted))
            inner = {each for index in found.values() for each in items.unpack_ids(index)}
            wanted = {each for each in inner if is_index(each)} - self._indexes.keys()

    def _own_contents(self, some: Iterable[Item]) -> Op[Mapping[bytes, bytes]]:
        """Return the segments needed to open items: index segments, and those that hold the items' own content."""
        own = items.own_ids(some)
        if not own:
            return self._indexes
        contents = yield from self.contents(each for each in expand(own, self._indexes) if not is_index(each))
        return {**self._indexes, **contents}

    # Parents

    def parent(self, checkpoint: StoredCheckpoint) -> Op[StoredCheckpoint | None]:
        """Return a checkpoint's parent, if it is in the table. It may have expired, if others are rebuilt from it."""
        parent_id = items.text(checkpoint.head, items.PARENT)
        return None if parent_id is None else (yield from self.find(parent_id))
