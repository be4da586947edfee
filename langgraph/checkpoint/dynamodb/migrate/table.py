"""This package's own saver: exact positions of writes, measured capacity, few reads of shared segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import Write, read_writes
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._operations import put_writes
from langgraph.checkpoint.dynamodb._operations.arguments import config_of
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.directory_table import carry_entry
from langgraph.checkpoint.dynamodb._operations.get import decode_tuple
from langgraph.checkpoint.dynamodb._operations.overview import measure_thread, overview, scan_threads
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    LoadedSegments,
    NamespaceReader,
    StoredCheckpoint,
    find,
    load,
)
from langgraph.checkpoint.dynamodb._operations.threads import namespaces, read_thread
from langgraph.checkpoint.dynamodb._operations.usage import account_of
from langgraph.checkpoint.dynamodb._runtime.cache import Cache
from langgraph.checkpoint.dynamodb._runtime.drivers import BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError, ThreadBusyError
from langgraph.checkpoint.dynamodb.migrate.capacity import CapacityLimit
from langgraph.checkpoint.dynamodb.migrate.record import Record, Ref, WritePosition, record_of
from langgraph.checkpoint.dynamodb.migrate.saver_endpoint import SaverEndpoint
from langgraph.checkpoint.dynamodb.protocol import Change, Thread
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

_WRITING = frozenset({"put_item", "update_item", "delete_item", "batch_write_item"})
# The checkpoints of a namespace share segments, so up to this many bytes of them are kept.
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024


class TableEndpoint(SaverEndpoint):
    """A table of this package's saver."""

    saver: DynamoDBSaver
    mover: DynamoDBSaver
    knows_positions = True

    def __init__(self, saver: DynamoDBSaver, budget: CapacityLimit | None = None) -> None:
        """Take the saver, and what its writes are paid from."""
        super().__init__(saver)
        self.budget = CapacityLimit() if budget is None else budget
        self._driver = BlockingDriver(self._send, saver.transport.pool)

    def _send(self, call: Call) -> Any:
        """Make a request. The capacity of writes is measured."""
        if call.method not in _WRITING:
            return self.saver.transport.send(call)
        response = self.saver.transport.send(
            Call(call.method, {**call.params, "ReturnConsumedCapacity": "TOTAL"}, call.delay_seconds)
        )
        consumed = response.get("ConsumedCapacity") or []
        for each in [consumed] if isinstance(consumed, Mapping) else consumed:
            self.budget.spend(each["CapacityUnits"])
        return response

    @property
    def _storage(self) -> Storage:
        return self.mover.storage

    @property
    def table_name(self) -> str:
        """The table's name, or its ARN."""
        return self._storage.table.name

    def beside(self, table_name: str) -> TableEndpoint:
        """Return the endpoint of another table in the same place: a copy of this one, encrypted for this one's name."""
        return self._with(table=replace(self._storage.table, name=table_name))

    def with_ttl(self, ttl_seconds: int | None) -> TableEndpoint:
        """Return an endpoint of the same table that creates threads with another ttl."""
        return self._with(ttl_seconds=ttl_seconds)

    def _with(self, **options: Any) -> TableEndpoint:
        return TableEndpoint(self.saver.with_storage(cache=Cache(0), **options))

    # Reading

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, by a scan of the table."""
        for page in self._driver.stream(scan_threads(self._storage)):
            yield from page.thread_ids

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first, and those that later ones are rebuilt from."""
        return sorted(self._driver.run(_refs(self._storage, thread_id)))

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Read checkpoints of a thread one after the other. Yield None for one that is no longer there."""
        loaded = dict[str, LoadedSegments]()
        for ref in refs:
            partition = items.partition_of(thread_id, ref.namespace)
            segments = loaded.setdefault(ref.namespace, LoadedSegments(partition.pk))
            yield self._driver.run(_record(self._storage, partition, ref.checkpoint_id, segments))
            if (
                sum(len(data) for each in loaded.values() for data in each.contents.values())
                > _SEGMENT_BYTES_KEPT
            ):
                loaded.clear()

    def stored_bytes(self, thread_id: str) -> int | None:
        """Return the size of a thread's items, by DynamoDB's rules. All of them are read for it."""
        return self._driver.run(overview(self._storage, thread_id)).bytes

    def write_units(self, thread_id: str) -> int:
        """Return how many write units it takes to write a thread's items, or to delete them."""
        account = account_of(self._driver.run(measure_thread(self._storage, thread_id)))
        return sum(step.write_units for step in account.steps)

    def thread(self, thread_id: str) -> Thread | None:
        """Read a thread's own item, strongly consistent."""
        return self._driver.run(read_thread(self._storage, items.partition_of(thread_id)))

    # Writing

    def seconds_to_wait(self) -> float:
        """Return how many seconds to wait before the next checkpoint, to stay within the capacity."""
        return self.budget.seconds_to_wait()

    def put(self, thread_id: str, record: Record) -> None:
        """Store a checkpoint, and then its writes."""
        partition = items.partition_of(thread_id, record.namespace)
        parent = config_of(partition, record.parent_id or "")
        versions = record.checkpoint["channel_versions"]
        self._driver.run(put(self._storage, parent, record.checkpoint, record.metadata, versions))
        self.put_writes(thread_id, record)

    def copy(self, source: TableEndpoint, source_thread_id: str, thread_id: str) -> None:
        """Copy a thread as it is stored, from this table or one beside it."""
        operation = copy_thread(self._storage, source_thread_id, thread_id, source_storage=source._storage)
        self._driver.run(operation)

    def carry_entry(self, source: TableEndpoint, source_thread_id: str, thread_id: str) -> None:
        """Enter a thread in the directory as another one is, unless it is there."""
        source_root, root = items.partition_of(source_thread_id), items.partition_of(thread_id)
        thread = self.thread(thread_id)
        # The condition of the update holds for no thread item that has gone.
        epoch = b"" if thread is None else thread.epoch
        newest = self._driver.run(NamespaceReader(self._storage, root).page())
        ends_at = items.ends_at(newest[0].head) if newest else None
        self._driver.run(carry_entry(source._storage, self._storage, source_root, root, epoch, ends_at))

    def create_copy(self, thread_id: str) -> bytes:
        """Create a thread that is to become a copy, and return its epoch.

        Raises:
            ThreadBusyError: There is such a thread already.
        """
        epoch = self._storage.rng.randbytes(8)
        found = self._change_thread(thread_id, protocol.create_copy(epoch))
        # The request may have been sent again after its answer was lost.
        if found is not None and not (found and Thread.parse(found).confirms(epoch)):
            msg = f"thread {thread_id!r} was created by another process; run the command again"
            raise ThreadBusyError(msg)
        return epoch

    def complete_copy(self, thread_id: str, epoch: bytes) -> None:
        """Let a copy stand for its original, which may be deleted from here on.

        Raises:
            ThreadBusyError: The copy is being deleted, or has been.
        """
        if self._change_thread(thread_id, protocol.complete_copy(epoch)) is not None:
            msg = f"thread {thread_id!r} was deleted or pruned by another process; run the command again"
            raise ThreadBusyError(msg)

    def revoke_copy(self, thread_id: str) -> None:
        """Stop a copy from standing for its original, so that the copy may be deleted."""
        self._change_thread(thread_id, protocol.revoke_copy())

    def _change_thread(self, thread_id: str, change: Change) -> Item | None:
        return self._driver.run(
            self._storage.table.try_update(items.thread_key(items.partition_of(thread_id)), change)
        )

    def put_writes(self, thread_id: str, record: Record) -> None:
        """Store the writes of a checkpoint that is already stored, in exactly their positions."""
        partition = items.partition_of(thread_id, record.namespace)
        for task_id, serialized in _serialized(self._storage.codec, record).items():
            self._driver.run(
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


def _refs(storage: Storage, thread_id: str) -> Op[list[Ref]]:
    found = list[Ref]()
    for partition in (yield from namespaces(storage, items.partition_of(thread_id))):
        history = NamespaceReader(storage, partition, first_page=None, as_ancestors=True)
        while not history.done:
            found += [
                Ref(checkpoint.checkpoint_id, partition.namespace)
                for checkpoint in (yield from history.page())
            ]
    return found


def _record(
    storage: Storage, partition: Partition, checkpoint_id: str, loaded: LoadedSegments
) -> Op[Record | None]:
    for _ in range(ATTEMPTS_MAX):
        checkpoint = yield from find(storage, partition, checkpoint_id, as_ancestor=True)
        if checkpoint is None:
            return None
        try:
            whole = yield from load(storage, checkpoint, loaded)
        except ChangedMeanwhileError:
            continue
        if whole is None:
            return None
        return (
            yield from work(partial(_decoded, partition, storage.codec, whole, loaded), whole.sealed_bytes())
        )
    msg = (
        f"checkpoint {checkpoint_id!r} was replaced or deleted while it was being read, {ATTEMPTS_MAX} times"
    )
    raise CheckpointNotFoundError(msg)


def _decoded(
    partition: Partition, codec: Codec, checkpoint: StoredCheckpoint, loaded: LoadedSegments
) -> Record:
    positions = [
        WritePosition(write.task_path, items.task_id_of(item), write.index)
        for item, name in product(checkpoint.writes, (items.WRITES, *items.SPECIAL_WRITES.values()))
        for write in read_writes(codec, item, name, loaded.contents)
    ]
    return record_of(decode_tuple(partition, codec, checkpoint, loaded), sorted(positions))
