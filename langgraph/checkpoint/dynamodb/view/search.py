"""Search: at which steps of a thread, subgraphs included, a text appeared."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import AnyStr, TypeAlias

from langgraph.checkpoint.dynamodb._format.segments import StoredValue
from langgraph.checkpoint.dynamodb._operations.reads import Group
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.view.documents import Hit, Search
from langgraph.checkpoint.dynamodb.view.lane import Lane
from langgraph.checkpoint.dynamodb.view.plain import new_texts
from langgraph.checkpoint.dynamodb.view.record import Record
from langgraph.checkpoint.dynamodb.view.tree import Known, know, node_of, stored

# How far one request goes: so many checkpoints, or so many bytes of values.
_LOOKED_AT_MAX = 500
_BYTES_MAX = 32 * 1024 * 1024
_HITS_MAX = 100
# How much of a text is shown around what was searched for, in characters.
_BEFORE, _BEHIND = 60, 120
# By so much around it, in characters, the text is taken for the same as in the parent.
_AROUND = 30

Places: TypeAlias = "Counter[str | bytes]"


def search(record: Record, text: str, cursor: str | None) -> Op[Search]:
    """Look for a text in values and pending writes, oldest checkpoints first; upper and lower case are the same.

    Args:
        record: The thread.
        text: What to look for.
        cursor: How far an earlier request came.

    Raises:
        CheckpointerInputError: There is nothing to look for, or the cursor is none.
    """
    if not text:
        msg = "the parameter 'text' is empty; give what to look for"
        raise CheckpointerInputError(msg)
    history = list[tuple[str, str, Lane, Group]]()
    for lane in (yield from record.lanes()):
        yield from lane.read_to_end()
        history += [(each.checkpoint_id, lane.at.namespace, lane, each) for each in lane.rows]
    history.sort(key=lambda each: each[:2])
    start, looking = _start(cursor, len(history)), _Looking(text)
    at = start
    while at < len(history) and at - start < _LOOKED_AT_MAX and not looking.is_done:
        yield from looking.at(*history[at][2:])
        at += 1
    cursor = None if at == len(history) else json.dumps(at)
    return Search(text=text, hits=looking.hits, cursor=cursor, looked_at=at, of=len(history))


def _start(cursor: str | None, count: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or int(cursor) > count:
        msg = f"the parameter 'cursor' is {cursor!r}; give the one of the document before, or none"
        raise CheckpointerInputError(msg)
    return int(cursor)


@dataclass
class _Looking:
    """One request's look for a text."""

    text: str
    hits: list[Hit] = field(default_factory=list)
    _read_bytes: int = 0
    _found: dict[StoredValue, Places] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether this request has found, or looked at, enough."""
        return self._read_bytes > _BYTES_MAX or len(self.hits) >= _HITS_MAX

    @property
    def _is_number(self) -> bool:
        """Whether it may be a part of a number, which is not spelled out where it is serialized."""
        return set(self.text) <= set("0123456789.+-e")

    def at(self, lane: Lane, group: Group) -> Op[None]:
        """Look at one checkpoint, and then at what its tasks wrote. What cannot be read has no text."""
        known = yield from know(lane, group, whole=True)
        try:
            yield from self._in_values(lane, group, known)
            yield from self._in_writes(lane, group, known)
        except CheckpointerError:
            return

    def _in_values(self, lane: Lane, group: Group, known: Known) -> Op[None]:
        if known.body is None:
            return
        for name, value in sorted(known.body.values.items()):
            parent = yield from lane.parent(group)
            before = None if known.parent is None else known.parent.values.get(name)
            if value == before:
                continue
            had = Counter[str | bytes]()
            if before is not None and parent is not None:
                had = yield from self._places_in(lane, parent, before)
            if not (yield from self._places_in(lane, group, value)) - had and not self._is_number:
                continue
            old = None
            if before is not None and parent is not None:
                old = yield from lane.value(parent, before)
            new = yield from lane.value(group, value)
            for path, found in new_texts(new, old, ("values", name), self._is_in):
                self._note(lane, group, known, path, found, None)

    def _in_writes(self, lane: Lane, group: Group, known: Known) -> Op[None]:
        place = -1
        for task in known.tasks:
            for write in task.writes:
                place += 1
                self._read_bytes += len(write.data)
                if not self._places(write.kind, write.data) and not self._is_number:
                    continue
                value = None if known.body is None else known.body.values.get(write.channel)
                own = None if value is None else (yield from lane.value(group, value))
                written = lane.loads(write, task.item)
                for path, found in new_texts(written, own, ("writes", place), self._is_in):
                    self._note(lane, group, known, path, found, node_of(task, known.sends))

    def _places_in(self, lane: Lane, group: Group, value: StoredValue) -> Op[Places]:
        """What is around the text in a stored value, each time that it is there."""
        if value not in self._found:
            raw = yield from lane.raw(group, value)
            self._read_bytes += len(raw)
            self._found[value] = self._places(value.kind, raw)
        return self._found[value]

    def _places(self, kind: str, raw: bytes) -> Places:
        """What is around the text in a serialized value. Other bytes than those of a text may look like it."""
        if kind == "json":
            # It spells some characters.
            raw = json.dumps(json.loads(raw), ensure_ascii=False).encode(errors="surrogatepass")
        if self.text.isascii():
            return _around(self.text.lower().encode(), raw.lower())
        return _around(self.text.casefold(), raw.decode(errors="replace").casefold())

    def _places_of(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the text begins and ends in another one."""
        return (each.span() for each in re.finditer(re.escape(self.text), text, re.IGNORECASE))

    def _is_in(self, text: str) -> bool:
        return next(self._places_of(text), None) is not None

    def _note(
        self,
        lane: Lane,
        group: Group,
        known: Known,
        path: tuple[str | int, ...],
        found: str,
        node: str | None,
    ) -> None:
        start, end = next(self._places_of(found))
        before = found[max(0, start - _BEFORE) : start]
        step = known.metadata.get("step")
        self.hits.append(
            Hit(
                ns=lane.at.namespace,
                checkpoint=group.checkpoint_id,
                step=step if isinstance(step, int) else None,
                stored_at=stored(group, known.body),
                path=list(path),
                node=node,
                excerpt=before + found[start : end + _BEHIND],
                at=len(before.encode("utf-16-le", "surrogatepass")) // 2,
            )
        )


def _around(text: AnyStr, said: AnyStr) -> Places:
    found, at = Counter[str | bytes](), said.find(text)
    while at >= 0:
        found[said[max(0, at - _AROUND) : at + len(text) + _AROUND]] += 1
        at = said.find(text, at + len(text))
    return found
