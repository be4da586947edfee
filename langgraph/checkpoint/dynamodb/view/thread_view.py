"""Threads as they were read, cached while they are viewed."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TypeVar

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.inert import inert
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from langgraph.checkpoint.dynamodb._operations.threads import namespaces
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver
from langgraph.checkpoint.dynamodb.view.caches import Caches
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView

T = TypeVar("T")
# How many threads are cached. Others are read again when they are requested.
_THREADS_MAX = 8


class ThreadView:
    """A thread: its namespaces, each as far as it was read."""

    def __init__(self, storage: LocalStorage, thread_id: str, caches: Caches) -> None:
        """Read nothing yet."""
        self.root = items.partition_of(checked_id(thread_id, "thread_id"))
        self._storage = storage
        self._caches = caches
        self._lanes: dict[str, NamespaceView] = {}

    def lanes(self) -> Op[list[NamespaceView]]:
        """Return every namespace, the root's first."""
        if not self._lanes:
            for partition in (yield from namespaces(self._storage, self.root)):
                self._lanes[partition.namespace] = NamespaceView(self._storage, partition, self._caches)
        return list(self._lanes.values())

    def lane(self, namespace: str) -> Op[NamespaceView]:
        """Return a namespace.

        Raises:
            CheckpointNotFoundError: The thread has no such namespace.
        """
        yield from self.lanes()
        found = self._lanes.get(namespace)
        if found is None:
            msg = f"thread {self.root.thread_id!r} has no namespace {namespace!r}; look at the thread again"
            raise CheckpointNotFoundError(msg)
        return found

    def checkpoint(self, namespace: str, checkpoint_id: str) -> Op[tuple[NamespaceView, StoredCheckpoint]]:
        """Return a checkpoint with its namespace.

        Raises:
            CheckpointNotFoundError: The thread has no such namespace or checkpoint.
        """
        lane = yield from self.lane(namespace)
        checkpoint = yield from lane.find(checkpoint_id)
        if checkpoint is None or not lane.is_readable(checkpoint):
            msg = f"thread {self.root.thread_id!r} has no checkpoint {checkpoint_id!r}; look at the thread again"
            raise CheckpointNotFoundError(msg)
        return lane, checkpoint


class Session:
    """The state of one viewer: a table, and the threads that were viewed last."""

    def __init__(self, saver: DynamoDBSaver) -> None:
        """Read through a copy of a saver, with its table and key, but without making any object that values name.

        The saver itself is not closed.
        """
        self._caches = Caches()
        read_only_saver = copy.copy(saver)
        read_only_saver.serde = inert(saver.serde, self._caches.objects)
        self.storage = read_only_saver.storage
        self._runner = read_only_saver.runner
        self._records: OrderedDict[str, tuple[ThreadView, RLock]] = OrderedDict()
        self._lock = RLock()

    def run(self, operation: Op[T]) -> T:
        """Run an operation below the saver."""
        return self._runner.run(operation)

    def stream(self, operation: Stream[T]) -> Iterator[T]:
        """Run a stream below the saver."""
        return self._runner.stream(operation)

    def forget(self, thread_id: str) -> None:
        """Drop a thread, so that it is read again when it is next opened. Cached segments stay: they never change."""
        with self._lock:
            self._records.pop(thread_id, None)

    @contextmanager
    def opened(self, thread_id: str) -> Iterator[ThreadView]:
        """Yield a thread to one request at a time, so that nothing is read twice."""
        with self._lock:
            if thread_id not in self._records:
                record = ThreadView(self.storage, thread_id, self._caches)
                self._records[thread_id] = (record, RLock())
                while len(self._records) > _THREADS_MAX:
                    self._records.popitem(last=False)
            self._records.move_to_end(thread_id)
            record, lock = self._records[thread_id]
        with lock:
            yield record
