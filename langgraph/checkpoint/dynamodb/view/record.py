"""Threads as they were read, for as long as somebody looks at them."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TypeVar

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.looking import looking
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.reads import Group
from langgraph.checkpoint.dynamodb._operations.threads import namespaces
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver
from langgraph.checkpoint.dynamodb.view.kept import Kept
from langgraph.checkpoint.dynamodb.view.lane import Lane

T = TypeVar("T")
# How many threads are kept; of the others what is asked for is read again.
_THREADS_MAX = 8


class Record:
    """A thread: its namespaces, each as far as it was read."""

    def __init__(self, table: Table, codec: Codec, thread_id: str, kept: Kept) -> None:
        """Read nothing yet."""
        self.root = items.partition(checked_id(thread_id, "thread_id"))
        self._table = table
        self._codec = codec
        self._kept = kept
        self._lanes: dict[str, Lane] = {}

    def lanes(self) -> Op[list[Lane]]:
        """Every namespace, the root's first."""
        if not self._lanes:
            for at in (yield from namespaces(self._table, self.root)):
                self._lanes[at.namespace] = Lane(self._table, self._codec, at, self._kept)
        return list(self._lanes.values())

    def lane(self, namespace: str) -> Op[Lane]:
        """A namespace, which has to be there."""
        yield from self.lanes()
        found = self._lanes.get(namespace)
        if found is None:
            msg = f"thread {self.root.thread_id!r} has no namespace {namespace!r}; look at the thread again"
            raise CheckpointNotFoundError(msg)
        return found

    def checkpoint(self, namespace: str, checkpoint_id: str) -> Op[tuple[Lane, Group]]:
        """A checkpoint, which has to be there."""
        lane = yield from self.lane(namespace)
        group = yield from lane.find(checkpoint_id)
        if group is None or not lane.is_readable(group):
            msg = f"thread {self.root.thread_id!r} has no checkpoint {checkpoint_id!r}; look at the thread again"
            raise CheckpointNotFoundError(msg)
        return lane, group


class Session:
    """What one viewer has open: a table, and the threads that were looked at lately."""

    def __init__(self, saver: DynamoDBSaver) -> None:
        """Look through a saver, which is not closed: with its table, its key, and nothing that its values name."""
        self._kept = Kept()
        onlooker = copy.copy(saver)
        onlooker.serde = looking(saver.serde, self._kept.objects)
        self.table = onlooker._table
        self._codec = onlooker._codec
        self._driver = onlooker._blocking
        self._records: OrderedDict[str, tuple[Record, RLock]] = OrderedDict()
        self._lock = RLock()

    def run(self, operation: Op[T]) -> T:
        """Run an operation below the saver."""
        return self._driver.run(operation)

    def stream(self, operation: Stream[T]) -> Iterator[T]:
        """Run a stream below the saver."""
        return self._driver.stream(operation)

    def forget(self, thread_id: str) -> None:
        """Look at a thread anew when it is opened next. Its segments never change."""
        with self._lock:
            self._records.pop(thread_id, None)

    @contextmanager
    def opened(self, thread_id: str) -> Iterator[Record]:
        """Give a thread to one request at a time, so that nothing is read twice."""
        with self._lock:
            if thread_id not in self._records:
                record = Record(self.table, self._codec, thread_id, self._kept)
                self._records[thread_id] = (record, RLock())
                while len(self._records) > _THREADS_MAX:
                    self._records.popitem(last=False)
            self._records.move_to_end(thread_id)
            record, lock = self._records[thread_id]
        with lock:
            yield record
