"""A thread as it was read, cached while it is viewed; the document of it, and a search in it."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from .._format import inert, items
from .._operations import arguments, entries, thread_item
from .._operations.reads import StoredCheckpoint
from .._runtime.steps import Op
from .._runtime.storage import LruCache, Storage
from ..errors import CheckpointerError, CheckpointNotFoundError
from ..saver import DynamoDBSaver
from . import documents, stored_values, tree
from .namespace_view import Caches, NamespaceView
from .nodes import Node, Shower

T = TypeVar("T")
# How many threads are cached. Others are read again when they are requested.
_THREADS_MAX = 8
# How far one request goes: this many checkpoints, or this many bytes of values.
_LOOKED_AT_MAX = 500
_BYTES_MAX = 32 * 1024 * 1024
_HITS_MAX = 100
# How many characters are shown before and after a hit.
_BEFORE, _BEHIND = 60, 120


class ThreadView:
    """A thread: its namespaces, each as far as it was read."""

    def __init__(self, storage: Storage, thread_id: str, caches: Caches) -> None:
        """Read nothing yet."""
        self.root = items.partition_of(arguments.checked_id(thread_id, "thread_id"))
        self._storage = storage
        self._caches = caches
        self._namespaces: dict[str, NamespaceView] = {}

    def about(self) -> Op[entries.ThreadDescription]:
        """Return the thread's owner and title. An owner of another tenant is not shown, as no list shows it."""
        about = yield from entries.description_of(self._storage, self.root, None)
        return about if entries.is_of_tenant(self.root, about) else entries.ThreadDescription()

    def namespaces(self) -> Op[list[NamespaceView]]:
        """Return every namespace, the root's first."""
        if not self._namespaces:
            for partition in (yield from thread_item.namespaces(self._storage, self.root)):
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
        read_only_saver.serde = inert.inert(saver.serde, self._caches.objects)
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
    about, problem = entries.ThreadDescription(), None
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


def search(thread: ThreadView, text: str, start: int) -> Op[documents.SearchDocument]:
    """Search for a text in values and pending writes, oldest checkpoints first, ignoring case.

    Args:
        thread: The thread.
        text: The text to look for.
        start: How many checkpoints earlier requests have looked at.
    """
    history = list[tuple[str, str, NamespaceView, StoredCheckpoint]]()
    for namespace in (yield from thread.namespaces()):
        yield from namespace.read_to_end()
        history += [
            (each.checkpoint_id, namespace.partition.namespace, namespace, each) for each in namespace.rows
        ]
    history.sort(key=lambda each: each[:2])
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    hits, at, read_bytes = list[documents.Hit](), start, 0
    while at < len(history) and at - start < _LOOKED_AT_MAX:
        for hit, size in (yield from _hits(*history[at][2:], pattern)):
            hits += hit
            read_bytes += size
        at += 1
        if len(hits) >= _HITS_MAX or read_bytes > _BYTES_MAX:
            break
    cursor = at if at < len(history) else None
    return documents.SearchDocument(hits=hits, cursor=cursor, looked_at=at, of=len(history))


def _hits(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, pattern: re.Pattern[str]
) -> Op[list[tuple[list[documents.Hit], int]]]:
    """Return the hits in each new value of a checkpoint, and in each of its tasks' writes, with the value's size."""
    loaded = yield from tree.know(namespace, checkpoint, whole=True)
    found = []
    for path, node, old, new in (yield from _new_values(namespace, checkpoint, loaded)):
        hits = []
        for where, match in _new_matches(pattern, new, old, path):
            before = match.string[max(0, match.start() - _BEFORE) : match.start()]
            hits.append(
                documents.Hit(
                    ns=namespace.partition.namespace,
                    checkpoint=checkpoint.checkpoint_id,
                    step=loaded.step,
                    stored_at=tree.stored(checkpoint, loaded.body),
                    path=list(where),
                    node=node,
                    excerpt=before + match.string[match.start() : match.end() + _BEHIND],
                    at=len(before.encode("utf-16-le", "surrogatepass")) // 2,
                )
            )
        found.append((hits, stored_values.size_bytes(new)))
    return found


def _new_values(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, loaded: tree.CheckpointFacts
) -> Op[list[tuple[stored_values.Steps, str | None, Any, Any]]]:
    """Return each new value of a checkpoint: its path, the node that wrote it, the value before it, and itself.

    They end with the first one that cannot be read.
    """
    found = list[tuple[stored_values.Steps, str | None, Any, Any]]()
    values = {} if loaded.body is None else loaded.body.values
    earlier = {} if loaded.parent is None else loaded.parent.values
    try:
        parent = yield from namespace.parent(checkpoint)
        for name, value in sorted(values.items()):
            if value != earlier.get(name):
                old = None
                if parent is not None and name in earlier:
                    old = yield from namespace.value(parent, earlier[name])
                found.append((("values", name), None, old, (yield from namespace.value(checkpoint, value))))
        for place, (task, write) in enumerate(loaded.writes):
            old = None
            if write.channel in values:
                old = yield from namespace.value(checkpoint, values[write.channel])
            new = namespace.loads(write, task.item)
            found.append((("writes", place), tree.node_of(task, loaded.sends), old, new))
    except CheckpointerError:
        pass
    return found


def _new_matches(
    pattern: re.Pattern[str], value: Any, before: Any, path: stored_values.Steps
) -> Iterator[tuple[stored_values.Steps, re.Match[str]]]:
    """Yield the matches in texts and numbers that one value has and another has not.

    Parts that both lists share are the same object while it is cached, and are skipped.
    """
    places = [path]
    if isinstance(value, list) and isinstance(before, list):
        places = [(*path, place) for place in range(len(value))]
    else:
        value, before = [value], [before]
    had, has = {id(each) for each in before}, {id(each) for each in value}
    new = [(place, each) for place, each in zip(places, value, strict=True) if id(each) not in had]
    found = [
        (at, match)
        for place, each in new
        for at, text in stored_values.texts(each, place)
        if (match := pattern.search(text))
    ]
    if found:
        old = {text for each in before if id(each) not in has for _, text in stored_values.texts(each)}
        yield from (each for each in found if each[1].string not in old)
