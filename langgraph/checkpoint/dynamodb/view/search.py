"""Search: the steps of a thread, subgraphs included, at which a text appeared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .._operations.reads import StoredCheckpoint
from .._runtime.steps import Op
from ..errors import CheckpointerError
from . import documents
from .namespace_view import NamespaceView
from .stored_values import Steps, size_bytes, texts
from .thread_view import ThreadView
from .tree import CheckpointFacts, know, node_of, stored

# How far one request goes: this many checkpoints, or this many bytes of values.
_LOOKED_AT_MAX = 500
_BYTES_MAX = 32 * 1024 * 1024
_HITS_MAX = 100
# How many characters are shown before and after a hit.
_BEFORE, _BEHIND = 60, 120


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
    loaded = yield from know(namespace, checkpoint, whole=True)
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
                    stored_at=stored(checkpoint, loaded.body),
                    path=list(where),
                    node=node,
                    excerpt=before + match.string[match.start() : match.end() + _BEHIND],
                    at=len(before.encode("utf-16-le", "surrogatepass")) // 2,
                )
            )
        found.append((hits, size_bytes(new)))
    return found


def _new_values(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, loaded: CheckpointFacts
) -> Op[list[tuple[Steps, str | None, Any, Any]]]:
    """Return each new value of a checkpoint: its path, the node that wrote it, the value before it, and itself.

    They end with the first one that cannot be read.
    """
    found = list[tuple[Steps, str | None, Any, Any]]()
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
            found.append((("writes", place), node_of(task, loaded.sends), old, new))
    except CheckpointerError:
        pass
    return found


def _new_matches(
    pattern: re.Pattern[str], value: Any, before: Any, path: Steps
) -> Iterator[tuple[Steps, re.Match[str]]]:
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
        for at, text in texts(each, place)
        if (match := pattern.search(text))
    ]
    if found:
        old = {text for each in before if id(each) not in has for _, text in texts(each)}
        yield from (each for each in found if each[1].string not in old)
