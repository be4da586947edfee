"""Search: the steps of a thread, subgraphs included, at which a text appeared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.view.documents import Hit, SearchDocument
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView
from langgraph.checkpoint.dynamodb.view.plain import Steps, size_bytes, texts
from langgraph.checkpoint.dynamodb.view.thread_view import ThreadView
from langgraph.checkpoint.dynamodb.view.tree import CheckpointFacts, know, node_of, stored

# How far one request goes: this many checkpoints, or this many bytes of values.
_LOOKED_AT_MAX = 500
_BYTES_MAX = 32 * 1024 * 1024
_HITS_MAX = 100
# How many characters are shown before and after a hit.
_BEFORE, _BEHIND = 60, 120


def search(thread: ThreadView, text: str, start: int) -> Op[SearchDocument]:
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
    matcher, at = _Matcher(re.compile(re.escape(text), re.IGNORECASE)), start
    while at < len(history) and at - start < _LOOKED_AT_MAX and not matcher.is_done:
        yield from matcher.at(*history[at][2:])
        at += 1
    return SearchDocument(
        hits=matcher.hits, cursor=at if at < len(history) else None, looked_at=at, of=len(history)
    )


@dataclass
class _Matcher:
    """The search of one request."""

    pattern: re.Pattern[str]
    hits: list[Hit] = field(default_factory=list)
    _read_bytes: int = 0

    @property
    def is_done(self) -> bool:
        """Whether this request has found, or read, enough."""
        return self._read_bytes > _BYTES_MAX or len(self.hits) >= _HITS_MAX

    def at(self, namespace: NamespaceView, checkpoint: StoredCheckpoint) -> Op[None]:
        """Search one checkpoint, and then its tasks' writes. Whatever cannot be read is skipped."""
        loaded = yield from know(namespace, checkpoint, whole=True)
        try:
            yield from self._in_values(namespace, checkpoint, loaded)
            yield from self._in_writes(namespace, checkpoint, loaded)
        except CheckpointerError:
            return

    def _in_values(
        self, namespace: NamespaceView, checkpoint: StoredCheckpoint, loaded: CheckpointFacts
    ) -> Op[None]:
        if loaded.body is None:
            return
        parent = yield from namespace.parent(checkpoint)
        for name, value in sorted(loaded.body.values.items()):
            before = None if loaded.parent is None else loaded.parent.values.get(name)
            if value == before:
                continue
            old = None
            if before is not None and parent is not None:
                old = yield from namespace.value(parent, before)
            new = yield from namespace.value(checkpoint, value)
            self._read_bytes += size_bytes(new)
            for path, match in self._new_in(new, old, ("values", name)):
                self._note(namespace, checkpoint, loaded, path, match, None)

    def _in_writes(
        self, namespace: NamespaceView, checkpoint: StoredCheckpoint, loaded: CheckpointFacts
    ) -> Op[None]:
        for place, (task, write) in enumerate(loaded.writes):
            self._read_bytes += len(write.data)
            value = None if loaded.body is None else loaded.body.values.get(write.channel)
            own = None if value is None else (yield from namespace.value(checkpoint, value))
            written = namespace.loads(write, task.item)
            for path, match in self._new_in(written, own, ("writes", place)):
                self._note(namespace, checkpoint, loaded, path, match, node_of(task, loaded.sends))

    def _new_in(self, value: Any, before: Any, path: Steps) -> Iterator[tuple[Steps, re.Match[str]]]:
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
            if (match := self.pattern.search(text))
        ]
        if found:
            old = {text for each in before if id(each) not in has for _, text in texts(each)}
            yield from (each for each in found if each[1].string not in old)

    def _note(
        self,
        namespace: NamespaceView,
        checkpoint: StoredCheckpoint,
        loaded: CheckpointFacts,
        path: Steps,
        match: re.Match[str],
        node: str | None,
    ) -> None:
        found, start, end = match.string, *match.span()
        before = found[max(0, start - _BEFORE) : start]
        self.hits.append(
            Hit(
                ns=namespace.partition.namespace,
                checkpoint=checkpoint.checkpoint_id,
                step=loaded.step,
                stored_at=stored(checkpoint, loaded.body),
                path=list(path),
                node=node,
                excerpt=before + found[start : end + _BEHIND],
                at=len(before.encode("utf-16-le", "surrogatepass")) // 2,
            )
        )
