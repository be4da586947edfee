"""This package's own saver: exact positions of writes, and few reads of shared segments."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from .._format import items
from .._format.codec import Codec
from .._format.content import Write, read_writes
from .._format.limits import ATTEMPTS_MAX
from .._operations import delete, entries, get, overview, put_writes, reads, thread_item
from .._runtime.steps import Op, work
from .._runtime.storage import CachedThread, Storage
from ..errors import CheckpointNotFoundError, ThreadBusyError
from ..saver import DynamoDBSaver
from .record import Record, Ref, WritePosition, record_of
from .saver_endpoint import SaverEndpoint

# The checkpoints of a namespace share segments, so up to this many bytes of them are kept.
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024


class TableEndpoint(SaverEndpoint):
    """A table of this package's saver."""

    saver: DynamoDBSaver
    mover: DynamoDBSaver
    knows_positions = True

    @property
    def _storage(self) -> Storage:
        return self.mover.storage

    # Reading

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, by a scan of the table."""
        for page in self.mover.runner.stream(overview.scan_threads(self._storage)):
            yield from page.thread_ids

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first, and those that later ones are rebuilt from."""
        return sorted(self.mover.runner.run(_refs(self._storage, thread_id)))

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Read checkpoints of a thread one after the other. Yield None for one that is no longer there."""
        loaded = dict[str, reads.LoadedSegments]()
        for ref in refs:
            partition = items.partition_of(thread_id, ref.namespace)
            segments = loaded.setdefault(ref.namespace, reads.LoadedSegments(partition.pk))
            yield self.mover.runner.run(_record(self._storage, partition, ref.checkpoint_id, segments))
            if (
                sum(len(data) for each in loaded.values() for data in each.contents.values())
                > _SEGMENT_BYTES_KEPT
            ):
                loaded.clear()

    # The directory

    @property
    def owner_from(self) -> str | None:
        """The key of metadata under which the saver looks for a thread's owner."""
        return self._storage.owner_from

    def description(self, thread_id: str) -> entries.ThreadDescription:
        """Return the owner, title and metadata of a thread. Somebody may have forged an owner of another tenant."""
        root = items.partition_of(thread_id)
        about = self.mover.runner.run(entries.description_of(self._storage, root, None))
        return about if entries.is_of_tenant(root, about) else entries.ThreadDescription()

    # Writing

    def clear(self, thread_id: str) -> None:
        """Remove what a thread whose ttl has passed has left: its writes would be seen in a checkpoint of their id."""
        self.mover.runner.run(_clear(self._storage, thread_id))

    def put_writes(self, thread_id: str, record: Record) -> None:
        """Store the writes of a checkpoint that is already stored, in exactly their positions."""
        partition = items.partition_of(thread_id, record.namespace)
        for task_id, serialized in _serialized(self._storage.codec, record).items():
            self.mover.runner.run(
                put_writes.store(self._storage, partition, record.checkpoint["id"], task_id, serialized)
            )


def _serialized(codec: Codec, record: Record) -> dict[str, put_writes.Serialized]:
    """Return a record's writes by their tasks, as `put_writes` stores them."""
    tasks = dict[str, put_writes.Serialized]()
    for (task_path, task_id, index), channel, value in record.writes:
        kind, data = codec.dumps(value, f"the write to channel {channel!r}", channel)
        regular, special = tasks.setdefault(task_id, ({}, {}))
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return tasks


def _clear(storage: Storage, thread_id: str) -> Op[None]:
    thread = yield from thread_item.read_thread(storage, items.partition_of(thread_id))
    if thread is None or thread.is_being_copied or thread.is_alive(storage.clock()):
        return
    # By the time that the deletion has its claim, a run may have begun the thread anew.
    pinned = replace(storage, pinned=CachedThread(thread.epoch, thread.life))
    try:
        yield from delete.delete_thread(pinned, thread_id)
    except thread_item.PinnedEpochError as error:
        msg = f"thread {thread_id!r} was begun in the target meanwhile; stop its agent, and move it again"
        raise ThreadBusyError(msg) from error


def _refs(storage: Storage, thread_id: str) -> Op[list[Ref]]:
    found, life = list[Ref](), reads.LifeOfThread(storage)
    for partition in (yield from thread_item.namespaces(storage, items.partition_of(thread_id))):
        history = reads.NamespaceReader(storage, partition, first_page=None, as_ancestors=True)
        while not history.done:
            for checkpoint in (yield from history.page()):
                if (yield from life.shows(checkpoint.head)):
                    found.append(Ref(checkpoint.checkpoint_id, partition.namespace))
    return found


def _record(
    storage: Storage, partition: items.Partition, checkpoint_id: str, loaded: reads.LoadedSegments
) -> Op[Record | None]:
    for _ in range(ATTEMPTS_MAX):
        checkpoint = yield from reads.find(storage, partition, checkpoint_id, as_ancestor=True)
        if checkpoint is None:
            return None
        try:
            whole = yield from reads.load(storage, checkpoint, loaded)
        except reads.ChangedMeanwhileError:
            continue
        if whole is None:
            return None
        return (
            yield from work(partial(_decoded, partition, storage.codec, whole, loaded), whole.sealed_bytes())
        )
    raise CheckpointNotFoundError(
        f"checkpoint {checkpoint_id!r} was replaced or deleted while it was being read, {ATTEMPTS_MAX} times"
    )


def _decoded(
    partition: items.Partition, codec: Codec, checkpoint: reads.StoredCheckpoint, loaded: reads.LoadedSegments
) -> Record:
    positions = [
        WritePosition(write.task_path, items.task_id_of(item), write.index)
        for item, name in product(checkpoint.writes, (items.WRITES, *items.SPECIAL_WRITES.values()))
        for write in read_writes(codec, item, name, loaded.contents)
    ]
    found, _ = get.decoded(partition, codec, checkpoint, loaded)
    return record_of(found, sorted(positions))
