"""Threads as they were read, cached while they are viewed, and the document of one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from .._format import items
from .._format.inert import inert
from .._operations.arguments import checked_id
from .._operations.entries import ThreadDescription, is_of_tenant, read_about
from .._operations.reads import StoredCheckpoint
from .._operations.thread_item import namespaces
from .._runtime.cache import LruCache
from .._runtime.steps import Op
from .._runtime.storage import Storage
from ..errors import CheckpointerError, CheckpointNotFoundError
from ..saver import DynamoDBSaver
from . import documents
from .namespace_view import Caches, NamespaceView
from .nodes import Node, Shower

T = TypeVar("T")
# How many threads are cached. Others are read again when they are requested.
_THREADS_MAX = 8


class ThreadView:
    """A thread: its namespaces, each as far as it was read."""

    def __init__(self, storage: Storage, thread_id: str, caches: Caches) -> None:
        """Read nothing yet."""
        self.root = items.partition_of(checked_id(thread_id, "thread_id"))
        self._storage = storage
        self._caches = caches
        self._namespaces: dict[str, NamespaceView] = {}

    def about(self) -> Op[ThreadDescription]:
        """Return the thread's owner and title. An owner of another tenant is not shown, as no list shows it."""
        item = yield from self._storage.table.get(self.root.pk, items.THREAD)
        about = ThreadDescription() if item is None else read_about(self._storage.codec, item)
        return about if is_of_tenant(self.root, about) else ThreadDescription()

    def namespaces(self) -> Op[list[NamespaceView]]:
        """Return every namespace, the root's first."""
        if not self._namespaces:
            for partition in (yield from namespaces(self._storage, self.root)):
                self._namespaces[partition.namespace] = NamespaceView(self._storage, partition, self._caches)
        return list(self._namespaces.values())

    def namespace(self, name: str) -> Op[NamespaceView]:
        """Return a namespace.

        Raises:
            CheckpointNotFoundError: The thread has no such namespace.
        """
        yield from self.namespaces()
        found = self._namespaces.get(name)
        if found is None:
            msg = f"thread {self.root.thread_id!r} has no namespace {name!r}; look at the thread again"
            raise CheckpointNotFoundError(msg)
        return found

    def checkpoint(self, name: str, checkpoint_id: str) -> Op[tuple[NamespaceView, StoredCheckpoint]]:
        """Return a checkpoint of a namespace, with that namespace.

        Raises:
            CheckpointNotFoundError: The thread has no such namespace or checkpoint.
        """
        namespace = yield from self.namespace(name)
        checkpoint = yield from namespace.find(checkpoint_id)
        if checkpoint is None or not namespace.is_readable(checkpoint):
            msg = f"thread {self.root.thread_id!r} has no checkpoint {checkpoint_id!r}; look at the thread again"
            raise CheckpointNotFoundError(msg)
        return namespace, checkpoint


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
        self._threads: LruCache[str, ThreadView] = LruCache(_THREADS_MAX)
        self._lock = Lock()

    def run(self, operation: Op[T]) -> T:
        """Run an operation below the saver."""
        return self._runner.run(operation)

    @contextmanager
    def opened(self, thread_id: str, *, anew: bool = False) -> Iterator[ThreadView]:
        """Yield a thread to one request at a time, so that nothing is read twice.

        Args:
            thread_id: The thread's id.
            anew: Whether to read it again. Cached segments stay: they never change.
        """
        with self._lock:
            thread = None if anew else self._threads.get(thread_id)
            if thread is None:
                thread = ThreadView(self.storage, thread_id, self._caches)
                self._threads.keep(thread_id, thread, 1)
            yield thread


def thread_document(thread: ThreadView, shower: Shower) -> Op[documents.ThreadDocument]:
    """Return a thread, before its checkpoints are read."""
    about, problem = ThreadDescription(), None
    try:
        about = yield from thread.about()
    except CheckpointerError as error:
        problem = str(error)
    names = [each.partition.namespace for each in (yield from thread.namespaces())]
    return documents.ThreadDocument(
        owner=_shown(about.owner, shower),
        title=_shown(about.title, shower),
        problem=problem,
        lanes=[_lane(each, names) for each in names],
    )


def _shown(text: str | None, shower: Shower) -> Node | None:
    return None if text is None else shower.node(text)


def _lane(namespace: str, others: list[str]) -> documents.Lane:
    """Return a namespace. Its name begins with those around it, and has a call's task after a colon."""
    around, _, own = namespace.rpartition("|")
    name, _, task_id = own.partition(":")
    parent = around if around in others else ""
    return documents.Lane(
        ns=namespace, name=name, parent=parent if namespace else None, task_id=task_id or None
    )
