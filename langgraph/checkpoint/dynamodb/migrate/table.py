"""The store of this package's own saver: exact places of writes, measured capacity, and few reads of what is shared."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import Write as StoredWrite
from langgraph.checkpoint.dynamodb._format.content import read_writes
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._operations import put_writes
from langgraph.checkpoint.dynamodb._operations.access import DirectAccess
from langgraph.checkpoint.dynamodb._operations.accounts import account_of
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.get import decode_tuple
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    History,
    Segments,
    config_of,
    find,
    load,
)
from langgraph.checkpoint.dynamodb._operations.survey import measure_thread, overview, scan_threads
from langgraph.checkpoint.dynamodb._operations.threads import namespaces, read_thread, thread_key
from langgraph.checkpoint.dynamodb._runtime.drivers import BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.memory import Memory
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError, ThreadBusyError
from langgraph.checkpoint.dynamodb.migrate.capacity import Budget
from langgraph.checkpoint.dynamodb.migrate.record import Place, Record, Ref, record_of
from langgraph.checkpoint.dynamodb.migrate.store import SaverStore
from langgraph.checkpoint.dynamodb.protocol import Change, Thread
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

_WRITING = frozenset({"put_item", "update_item", "delete_item", "batch_write_item"})
# Segments are shared by the checkpoints of a namespace, so they are kept, up to this many bytes of them.
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024


class TableStore(SaverStore):
    """A table of this package's saver."""

    saver: DynamoDBSaver
    mover: DynamoDBSaver
    knows_places = True

    def __init__(self, saver: DynamoDBSaver, budget: Budget | None = None) -> None:
        """Take the saver, and what its writes are paid from."""
        super().__init__(saver)
        self.budget = Budget() if budget is None else budget
        self._driver = BlockingDriver(self._send, saver._clients.pool)

    def _send(self, call: Call) -> Any:
        """Make a request; what it takes to write is measured."""
        if call.method not in _WRITING:
            return self.saver._clients.send(call)
        response = self.saver._clients.send(
            Call(call.method, {**call.params, "ReturnConsumedCapacity": "TOTAL"}, call.delay_seconds)
        )
        consumed = response.get("ConsumedCapacity") or []
        for each in [consumed] if isinstance(consumed, Mapping) else consumed:
            self.budget.spend(each["CapacityUnits"])
        return response

    @property
    def _table(self) -> Table:
        return self.saver._table

    @property
    def _codec(self) -> Codec:
        return self.mover._codec

    @property
    def table_name(self) -> str:
        """The table's name, or its ARN."""
        return self._table.name

    def beside(self, table_name: str) -> TableStore:
        """The store of another table in the same place, with what was encrypted for this one: a copy of it."""
        return self._with(name=table_name)

    def with_ttl(self, ttl_seconds: int | None) -> TableStore:
        """Return a store of the same table that gives the threads that it creates another ttl."""
        return self._with(ttl_seconds=ttl_seconds)

    def _with(self, **options: Any) -> TableStore:
        saver = copy.copy(self.saver)
        saver._table = replace(self._table, memory=Memory(0), **options)
        return TableStore(saver)

    # Reading

    def thread_ids(self) -> Iterator[str]:
        """The ids of all threads, by a scan of the table."""
        for page in self._driver.stream(scan_threads(self._table)):
            yield from page.thread_ids

    def refs(self, thread_id: str) -> list[Ref]:
        """A thread's checkpoints in every namespace, the oldest first; with those that later ones are rebuilt from."""
        return sorted(self._driver.run(_refs(self._table, thread_id)))

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Checkpoints of a thread as they are read one after the other; None for one that is not there any more."""
        known = dict[str, Segments]()
        for ref in refs:
            at = items.partition(thread_id, ref.namespace)
            segments = known.setdefault(ref.namespace, Segments())
            yield self._driver.run(_record(self._table, self._codec, at, ref.checkpoint_id, segments))
            if (
                sum(len(data) for each in known.values() for data in each.contents.values())
                > _SEGMENT_BYTES_KEPT
            ):
                known.clear()

    def stored_bytes(self, thread_id: str) -> int | None:
        """How much a thread's items take up, by DynamoDB's rules; to know it, they are read."""
        return self._driver.run(overview(self._table, thread_id)).bytes

    def write_units(self, thread_id: str) -> int:
        """Measure what it takes to write a thread's items, or to delete them."""
        account = account_of(self._driver.run(measure_thread(self._table, thread_id)))
        return sum(step.write_units for step in account.steps)

    def thread(self, thread_id: str) -> Thread | None:
        """Read a thread's own item, strongly consistent."""
        return self._driver.run(read_thread(self._table, items.partition(thread_id)))

    # Writing

    def seconds_to_wait(self) -> float:
        """How long to wait before the next checkpoint, so as to stay within the capacity."""
        return self.budget.seconds_to_wait()

    def put(self, thread_id: str, record: Record) -> None:
        """Store a checkpoint, and then its writes."""
        at = items.partition(thread_id, record.namespace)
        parent = config_of(at, record.parent_id or "")
        versions = record.checkpoint["channel_versions"]
        self._driver.run(put(self._table, self._codec, parent, record.checkpoint, record.metadata, versions))
        self.put_writes(thread_id, record)

    def copy(self, source: TableStore, source_thread_id: str, thread_id: str) -> None:
        """Copy a thread as it is stored, from this table or one that is beside it."""
        operation = copy_thread(
            self._table, self._codec, source_thread_id, thread_id, source_table=source._table
        )
        self._driver.run(operation)

    def create_copy(self, thread_id: str) -> bytes:
        """Create a thread that is to become a copy; return its epoch.

        Raises:
            ThreadBusyError: There is such a thread already.
        """
        epoch = self._table.rng.randbytes(8)
        found = self._change_thread(thread_id, protocol.create_copy(epoch))
        # The request may have been sent again after its answer was lost.
        if found is not None and not (found and Thread.parse(found).confirms(epoch)):
            msg = f"Thread {thread_id!r} was created by another process. Run the command again."
            raise ThreadBusyError(msg)
        return epoch

    def complete_copy(self, thread_id: str, epoch: bytes) -> None:
        """Let a copy stand for its original, which may be deleted from here on.

        Raises:
            ThreadBusyError: The copy is being deleted, or has been.
        """
        if self._change_thread(thread_id, protocol.complete_copy(epoch)) is not None:
            msg = f"Thread {thread_id!r} was deleted or pruned by another process. Run the command again."
            raise ThreadBusyError(msg)

    def revoke_copy(self, thread_id: str) -> None:
        """Let a copy not stand for its original any more, so that the copy may be deleted."""
        self._change_thread(thread_id, protocol.revoke_copy())

    def _change_thread(self, thread_id: str, change: Change) -> Item | None:
        return self._driver.run(self._table.try_update(thread_key(items.partition(thread_id)), change))

    def put_writes(self, thread_id: str, record: Record) -> None:
        """Store the writes of a checkpoint that is there already, in just their places."""
        at = items.partition(thread_id, record.namespace)
        for task_id, serialized in _serialized(self._codec, record).items():
            access = DirectAccess(self._table, self._codec)
            self._driver.run(put_writes.store(access, at, record.checkpoint["id"], task_id, serialized))


def _serialized(codec: Codec, record: Record) -> dict[str, put_writes.Serialized]:
    """A record's writes by their tasks, as `put_writes` stores them."""
    tasks = dict[str, put_writes.Serialized]()
    for (task_path, task_id, index), channel, value in record.writes:
        kind, data = codec.dumps(value, f"the write to channel {channel!r}")
        regular, special = tasks.setdefault(task_id, ({}, {}))
        (regular if index >= 0 else special)[index] = StoredWrite(index, channel, kind, data, task_path)
    return tasks


def _refs(table: Table, thread_id: str) -> Op[list[Ref]]:
    found = list[Ref]()
    for at in (yield from namespaces(table, items.partition(thread_id))):
        history = History(table, at, first_page=None, as_ancestors=True)
        while not history.done:
            found += [Ref(group.checkpoint_id, at.namespace) for group in (yield from history.page())]
    return found


def _record(
    table: Table, codec: Codec, at: Partition, checkpoint_id: str, known: Segments
) -> Op[Record | None]:
    for _ in range(ATTEMPTS_MAX):
        group = yield from find(table, at, checkpoint_id, as_ancestor=True)
        if group is None:
            return None
        try:
            loaded = yield from load(table, codec, group, known)
        except ChangedMeanwhileError:
            continue
        if loaded is None:
            return None
        return (yield from work(partial(_decoded, at, codec, loaded, known), loaded.sealed_bytes()))
    msg = (
        f"checkpoint {checkpoint_id!r} was replaced or deleted while it was being read, {ATTEMPTS_MAX} times"
    )
    raise CheckpointNotFoundError(msg)


def _decoded(at: Partition, codec: Codec, group: Group, known: Segments) -> Record:
    places = [
        Place(write.task_path, items.task_id_of(item), write.index)
        for item, name in product(group.writes, (items.WRITES, *items.SPECIAL_WRITES.values()))
        for write in read_writes(codec, item, name, known.contents)
    ]
    return record_of(decode_tuple(at, codec, group, known), sorted(places))
