"""One namespace as it was read: its checkpoints, their bodies, and the segments and values that were needed.

Everything is read from the table once. Heads and pending writes come by one query, page by page, and segments, which
checkpoints share, by their keys.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import CheckpointMetadata

from .._format import items
from .._format.content import Body, Write, read_body, read_metadata, read_writes
from .._format.items import Item, Partition
from .._format.segments import StoredValue, expand, inline_bytes, is_index
from .._operations.reads import LifeOfThread, StoredCheckpoint, open_segment, segment_items
from .._runtime.requests import Query
from .._runtime.steps import Op
from .._runtime.storage import LruCache, Storage
from ..errors import CheckpointCorruptionError, CheckpointFormatError

# Bytes of segments' plaintexts, and of serialized values. Decoded values take several times as much memory.
_SEGMENT_BYTES_MAX = 256 * 1024 * 1024
_VALUE_BYTES_MAX = 32 * 1024 * 1024


class Caches:
    """The caches that all threads of a session share."""

    def __init__(self) -> None:
        """Start empty."""
        self.segments: LruCache[Hashable, bytes] = LruCache(_SEGMENT_BYTES_MAX)
        self.values: LruCache[Hashable, Any] = LruCache(_VALUE_BYTES_MAX)
        self.objects: LruCache[Hashable, Any] = LruCache(_VALUE_BYTES_MAX)
        """Messages and other objects, which successive values often share."""


@dataclass(frozen=True)
class TaskWrites:
    """One task's pending writes of a checkpoint, as they were stored."""

    item: Item
    writes: tuple[Write, ...]
    """Special ones too, but none of a part whose segments were not read."""

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
        # Writes sort after their head, and so arrive before it in this descending query.
        self._writes: list[Item] = []
        self._life = LifeOfThread(storage)
        self._readable: set[str] = set()
        self._bodies: dict[str, Body] = {}
        self._indexes: dict[bytes, bytes] = {}
        # Segments that are stored but whose content is not what was written, with the error of each.
        self._damaged: dict[bytes, str] = {}

    # Checkpoints

    @property
    def done(self) -> bool:
        """Whether all checkpoints were read."""
        return self._query.done

    def read_on(self) -> Op[None]:
        """Read the next page of checkpoints, and the index segments that they name."""
        known = len(self.checkpoints)
        for item in (yield from self._storage.table.query_page(self._query)):
            yield from self._add_if_sound(item)
        if self._life.is_over:
            self._query.done = True
        new = list(self.checkpoints.values())[known:]
        yield from self._read_indexes({each for checkpoint in new for each in _named(checkpoint)})

    def _add_if_sound(self, item: Item) -> Op[None]:
        try:
            yield from self._add(item)
        except CheckpointCorruptionError as error:
            self.problem = str(error)

    def _add(self, item: Item) -> Op[None]:
        """Add an item.

        Raises:
            CheckpointCorruptionError: The item cannot have its place in a tree.
        """
        now = self._storage.clock()
        items.is_expired(item, now)
        items.text(item, items.PARENT)
        checkpoint_id = items.checkpoint_id_of(item)
        if items.is_head(item):
            own = [each for each in self._writes if items.checkpoint_id_of(each) == checkpoint_id]
            live = [each for each in own if not items.is_expired(each, now)]
            self.checkpoints[checkpoint_id] = StoredCheckpoint(item, live)
            self._writes.clear()
            if items.is_shown(item, now) and (yield from self._life.shows(item)):
                self._readable.add(checkpoint_id)
        else:
            self._writes.append(item)

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
        return checkpoint.checkpoint_id in self._readable

    @property
    def rows(self) -> list[StoredCheckpoint]:
        """The checkpoints that were read and have not expired, newest first."""
        return [each for each in self.checkpoints.values() if self.is_readable(each)]

    def parent(self, checkpoint: StoredCheckpoint) -> Op[StoredCheckpoint | None]:
        """Return a checkpoint's parent, if it is in the table. It may have expired, if others are rebuilt from it."""
        parent_id = items.text(checkpoint.head, items.PARENT)
        return None if parent_id is None else (yield from self.find(parent_id))

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

    def tasks(self, checkpoint: StoredCheckpoint, *, whole: bool) -> Op[list[TaskWrites]]:
        """Return the stored writes of a checkpoint's tasks. Writes in segments are read only if `whole` is true."""
        contents = (yield from self._own_contents(checkpoint.writes)) if whole else self._indexes
        return [self._task(each, contents, whole=whole) for each in checkpoint.writes]

    def _task(self, item: Item, contents: Mapping[bytes, bytes], *, whole: bool) -> TaskWrites:
        parts = [name for name, part in items.parts_of(item) if whole or not part.own]
        writes = [each for name in parts for each in read_writes(self._storage.codec, item, name, contents)]
        return TaskWrites(item, tuple(sorted(writes, key=lambda each: each.index)))

    # Values

    def loads(self, write: Write, item: Item) -> Any:
        """Return the value of a pending write, as data."""
        return self._storage.codec.loads(write.kind, write.data, item)

    def value(self, checkpoint: StoredCheckpoint, stored: StoredValue) -> Op[Any]:
        """Return a stored value as data. Checkpoints with the same value share it, so it must not be changed.

        Raises:
            CheckpointCorruptionError: Segments of the value are missing or damaged.
        """
        key = (self.partition.pk, stored)
        found = self._caches.values.get(key)
        if found is None:
            contents = yield from self._contents(stored.segments)
            self._check_is_whole(stored, contents)
            size = sum(len(contents[each]) for each in stored.segments) + inline_bytes([stored])
            self._storage.codec.check_size(size, checkpoint.head)
            found = self._storage.codec.loads(stored.kind, stored.join(contents), checkpoint.head)
            self._caches.values.keep(key, found, size)
        return found

    def _check_is_whole(self, stored: StoredValue, contents: Mapping[bytes, bytes]) -> None:
        missing = [each for each in stored.segments if each not in contents]
        if missing:
            says = (
                f"{len(missing)} of {len(stored.segments)} segments of the value are not in the table;"
                " `verify` says whether that is damage"
            )
            damage = (self._damaged[each] for each in missing if each in self._damaged)
            raise CheckpointCorruptionError(next(damage, says))

    # Segments

    def _contents(self, ids: Iterable[bytes]) -> Op[dict[bytes, bytes]]:
        """Return the plaintexts of segments. Those that are missing or damaged are left out."""
        found, others = dict[bytes, bytes](), list[bytes]()
        for each in dict.fromkeys(ids):
            content = self._caches.segments.get((self.partition.pk, each))
            if content is None:
                others.append(each)
            else:
                found[each] = content
        for item in (yield from segment_items(self._storage.table, self.partition.pk, others)):
            segment_id = items.segment_id_of(item)
            try:
                content = open_segment(self._storage.codec, item)
            except CheckpointCorruptionError as error:
                # The other segments are still of use.
                self._damaged[segment_id] = str(error)
                continue
            self._caches.segments.keep((self.partition.pk, segment_id), content, len(content))
            found[segment_id] = content
        return found

    def _read_indexes(self, ids: set[bytes]) -> Op[None]:
        wanted = {each for each in ids if is_index(each)} - self._indexes.keys()
        while wanted:
            found = yield from self._contents(sorted(wanted))
            self._indexes |= found
            inner = {each for index in found.values() for each in items.unpack_ids(index)}
            wanted = {each for each in inner if is_index(each)} - self._indexes.keys()

    def _own_contents(self, some: Iterable[Item]) -> Op[Mapping[bytes, bytes]]:
        """Return the segments needed to open items: index segments, and those that hold the items' own content."""
        own = items.own_ids(some)
        if not own:
            return self._indexes
        contents = yield from self._contents(
            each for each in expand(own, self._indexes) if not is_index(each)
        )
        return {**self._indexes, **contents}


def _named(checkpoint: StoredCheckpoint) -> set[bytes]:
    """Return the segments that a checkpoint names, or none if that cannot be read, which its body reports."""
    try:
        return checkpoint.ids()
    except (CheckpointCorruptionError, CheckpointFormatError):
        return set()
