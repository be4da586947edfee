"""Search: the steps of a thread, subgraphs included, at which a text appeared."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import AnyStr, TypeAlias

from langgraph.checkpoint.dynamodb._format.segments import StoredValue
from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.view.documents import Hit, SearchDocument
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView
from langgraph.checkpoint.dynamodb.view.plain import new_texts
from langgraph.checkpoint.dynamodb.view.thread_view import ThreadView
from langgraph.checkpoint.dynamodb.view.tree import CheckpointFacts, know, node_of, stored

# How far one request goes: this many checkpoints, or this many bytes of values.
_LOOKED_AT_MAX = 500
_BYTES_MAX = 32 * 1024 * 1024
_HITS_MAX = 100
# More digits than any count of checkpoints has. Python refuses to read a number of thousands.
_DIGITS_MAX = 15
# How many characters are shown before and after a hit.
_BEFORE, _BEHIND = 60, 120
# If this many characters around a hit are the same in the parent, it is no new hit.
_AROUND = 30

Contexts: TypeAlias = "Counter[str | bytes]"


def search(thread: ThreadView, text: str, cursor: str | None) -> Op[SearchDocument]:
    """Search for a text in values and pending writes, oldest checkpoints first, ignoring case.

    Args:
        thread: The thread.
        text: The text to look for.
        cursor: Where an earlier request stopped.

    Raises:
        CheckpointerInputError: The text is empty, or the cursor is none.
    """
    if not text:
        msg = "the parameter 'text' is empty; give what to look for"
        raise CheckpointerInputError(msg)
    history = list[tuple[str, str, NamespaceView, StoredCheckpoint]]()
    for namespace in (yield from thread.namespaces()):
        yield from namespace.read_to_end()
        history += [
            (each.checkpoint_id, namespace.partition.namespace, namespace, each) for each in namespace.rows
        ]
    history.sort(key=lambda each: each[:2])
    start, matcher = _start(cursor, len(history)), _Matcher(text)
    at = start
    while at < len(history) and at - start < _LOOKED_AT_MAX and not matcher.is_done:
        yield from matcher.at(*history[at][2:])
        at += 1
    cursor = None if at == len(history) else json.dumps(at)
    return SearchDocument(hits=matcher.hits, cursor=cursor, looked_at=at, of=len(history))


def _start(cursor: str | None, count: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > _DIGITS_MAX or int(cursor) > count:
        msg = f"the parameter 'cursor' is {cursor!r}; give the one of the document before, or none"
        raise CheckpointerInputError(msg)
    return int(cursor)


@dataclass
class _Matcher:
    """The search of one request."""

    text: str
    hits: list[Hit] = field(default_factory=list)
    _read_bytes: int = 0
    _found: dict[StoredValue, Contexts] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether this request has found, or read, enough."""
        return self._read_bytes > _BYTES_MAX or len(self.hits) >= _HITS_MAX

    @property
    def _is_number(self) -> bool:
        """Whether the text may be a part of a number, which is not serialized as text."""
        return set(self.text) <= set("0123456789.+-e")

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
        for name, value in sorted(loaded.body.values.items()):
            parent = yield from namespace.parent(checkpoint)
            before = None if loaded.parent is None else loaded.parent.values.get(name)
            if value == before:
                continue
            had = Counter[str | bytes]()
            if before is not None and parent is not None:
                had = yield from self._places_in(namespace, parent, before)
            if not (yield from self._places_in(namespace, checkpoint, value)) - had and not self._is_number:
                continue
            old = None
            if before is not None and parent is not None:
                old = yield from namespace.value(parent, before)
            new = yield from namespace.value(checkpoint, value)
            for path, found in new_texts(new, old, ("values", name), self._is_in):
                self._note(namespace, checkpoint, loaded, path, found, None)

    def _in_writes(
        self, namespace: NamespaceView, checkpoint: StoredCheckpoint, loaded: CheckpointFacts
    ) -> Op[None]:
        for place, (task, write) in enumerate(loaded.writes):
            self._read_bytes += len(write.data)
            if not self._places(write.kind, write.data) and not self._is_number:
                continue
            value = None if loaded.body is None else loaded.body.values.get(write.channel)
            own = None if value is None else (yield from namespace.value(checkpoint, value))
            written = namespace.loads(write, task.item)
            for path, found in new_texts(written, own, ("writes", place), self._is_in):
                self._note(namespace, checkpoint, loaded, path, found, node_of(task, loaded.sends))

    def _places_in(
        self, namespace: NamespaceView, checkpoint: StoredCheckpoint, value: StoredValue
    ) -> Op[Contexts]:
        """Count the contexts of the text in a stored value."""
        if value not in self._found:
            raw = yield from namespace.raw(checkpoint, value)
            self._read_bytes += len(raw)
            self._found[value] = self._places(value.kind, raw)
        return self._found[value]

    def _places(self, kind: str, raw: bytes) -> Contexts:
        """Count the contexts of the text in a serialized value. Bytes that are not text may match too."""
        if kind == "json":
            raw = _unescaped(raw)
        if self.text.isascii():
            return _around(self.text.lower().encode(), raw.lower())
        return _around(self.text.casefold(), raw.decode(errors="replace").casefold())

    def _places_of(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the text begins and ends in another one."""
        return (each.span() for each in re.finditer(re.escape(self.text), text, re.IGNORECASE))

    def _is_in(self, text: str) -> bool:
        return next(self._places_of(text), None) is not None

    def _note(
        self,
        namespace: NamespaceView,
        checkpoint: StoredCheckpoint,
        loaded: CheckpointFacts,
        path: tuple[str | int, ...],
        found: str,
        node: str | None,
    ) -> None:
        start, end = next(self._places_of(found))
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


def _unescaped(raw: bytes) -> bytes:
    """Return JSON with the characters that it may have escaped, or as it is if Python cannot read it."""
    try:
        return json.dumps(json.loads(raw), ensure_ascii=False).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        return raw


def _around(text: AnyStr, said: AnyStr) -> Contexts:
    found, at = Counter[str | bytes](), said.find(text)
    while at >= 0:
        found[said[max(0, at - _AROUND) : at + len(text) + _AROUND]] += 1
        at = said.find(text, at + len(text))
    return found
