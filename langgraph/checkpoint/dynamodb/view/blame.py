"""Blame: which checkpoint, task and node first made a value what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.dynamodb._operations.reads import Group
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.view.changes import identity
from langgraph.checkpoint.dynamodb.view.documents import Blame, Maker, Origin
from langgraph.checkpoint.dynamodb.view.lane import Lane
from langgraph.checkpoint.dynamodb.view.nodes import Shower
from langgraph.checkpoint.dynamodb.view.plain import (
    LISTS,
    fingerprint,
    has_part,
    inside,
    message_fields,
    part_at,
)
from langgraph.checkpoint.dynamodb.view.state import channel_value, channels_of, value_at
from langgraph.checkpoint.dynamodb.view.tree import know, node_of, stored, versions, writers

# How far one request goes back: so many checkpoints whose value has to be decoded, or so many in all.
_DECODED_MAX = 50
_LOOKED_AT_MAX = 1000


def blame(lane: Lane, group: Group, path: Sequence[str | int], cursor: str | None) -> Op[Blame]:
    """Follow a value back to where it came from, as far as one request goes.

    Args:
        lane: The namespace.
        group: The checkpoint that has the value.
        path: The way to the value, which begins with "values" and a channel.
        cursor: How far an earlier request came.

    Raises:
        CheckpointerInputError: The path is not one to a value, or the cursor is none.
        CheckpointNotFoundError: Nothing is there.
    """
    if len(path) < 2 or path[0] != "values":
        msg = f"path {list(path)!r} is not that of a value; a pending write is its task's"
        raise CheckpointerInputError(msg)
    looked_at, decoded = 0, 0
    wanted = fingerprint((yield from value_at(lane, group, path)))
    if cursor is not None:
        group, path, looked_at = yield from _resumed(lane, cursor)
    for _ in range(_LOOKED_AT_MAX):
        parent = yield from lane.parent(group)
        looked_at += 1
        if parent is None:
            return _blame(lane, (yield from _origin(lane, group, path, None, None)), None, looked_at)
        if not (yield from _is_untouched(lane, group, parent, str(path[1]))):
            decoded += 1
            earlier = yield from _earlier_path(lane, group, parent, path)
            if earlier is None or fingerprint((yield from value_at(lane, parent, earlier))) != wanted:
                origin = yield from _origin(lane, group, path, parent, earlier)
                return _blame(lane, origin, None, looked_at)
            path = earlier
        group = parent
        if decoded == _DECODED_MAX:
            break
    cursor = json.dumps([group.checkpoint_id, list(path), looked_at])
    return _blame(lane, None, cursor, looked_at)


def _blame(lane: Lane, origin: Origin | None, cursor: str | None, looked_at: int) -> Blame:
    return Blame(origin=origin, cursor=cursor, looked_at=looked_at, of=len(lane.rows))


def _resumed(lane: Lane, cursor: str) -> Op[tuple[Group, Sequence[str | int], int]]:
    try:
        match json.loads(cursor):
            case [str(checkpoint_id), ["values", str(), *_] as path, int(looked_at)]:
                group = yield from lane.find(checkpoint_id)
                if group is not None:
                    return group, path, looked_at
    except (ValueError, RecursionError):
        pass
    msg = f"the parameter 'cursor' is {cursor!r}; give the one of the document before, or none"
    raise CheckpointerInputError(msg)


def _is_untouched(lane: Lane, group: Group, parent: Group, channel: str) -> Op[bool]:
    """Whether a channel is what it was in the parent, as far as that can be told without its value."""
    body, before = (yield from lane.body(group)), (yield from lane.body(parent))
    if versions(body).get(channel) != versions(before).get(channel):
        value = body.values.get(channel)
        return value is not None and value == before.values.get(channel)
    # A delta channel that is stored for once is in another form.
    return (channel in body.values) == (channel in before.values)


def _earlier_path(
    lane: Lane, group: Group, parent: Group, path: Sequence[str | int]
) -> Op[Sequence[str | int] | None]:
    """Where the parent has what is at a path; None where it has nothing of the kind."""
    channel = str(path[1])
    value = yield from channel_value(lane, group, (yield from lane.body(group)), channel)
    if channel not in (yield from channels_of(lane, parent)):
        return None
    before = yield from channel_value(lane, parent, (yield from lane.body(parent)), channel)
    found: list[str | int] = [*path[:2]]
    for at, step in enumerate(path[2:], 2):
        part, old = part_at(value, path[2:at]), inside(part_at(before, found[2:]))
        place: str | int | None = step
        if isinstance(step, int) and isinstance(old, LISTS):
            place = _place(list(inside(part))[step], list(old), step)
        if place is None or not has_part(old, [place]):
            return None
        found.append(place)
    return found


def _place(part: Any, old: Sequence[Any], step: int) -> int | None:
    """Where a list had a part before: by its message's id, as it is, or at its place."""
    own = identity(part)
    if step < len(old) and identity(old[step]) == own:
        return step
    same = [place for place, each in enumerate(old) if identity(each) == own]
    if same:
        return min(same, key=lambda place: abs(place - step))
    fields = message_fields(part)
    is_new = fields is not None and fields.get("id") is not None
    return None if is_new or step >= len(old) else step


# Who made it


def _origin(
    lane: Lane,
    group: Group,
    path: Sequence[str | int],
    parent: Group | None,
    earlier: Sequence[str | int] | None,
) -> Op[Origin]:
    known = yield from know(lane, group, whole=True)
    value = yield from value_at(lane, group, path)
    before = None
    if parent is not None and earlier is not None:
        before = Shower().node((yield from value_at(lane, parent, earlier)))
    makers = [
        Maker(
            task_id=task.task_id,
            node=node_of(task, known.parent_sends),
            wrote_it=contains(lane.loads(write, task.item), value),
        )
        for task, write in writers(known, str(path[1]))
    ]
    source = known.metadata.get("source")
    if source != "loop":
        # Who changed the state from outside wrote it; the parent's own tasks led elsewhere.
        makers = [each for each in makers if each["wrote_it"]]
    step = known.metadata.get("step")
    return Origin(
        ns=lane.at.namespace,
        checkpoint=group.checkpoint_id,
        parent=None if parent is None else parent.checkpoint_id,
        path=list(path),
        step=step if isinstance(step, int) else None,
        source=source if isinstance(source, str) else None,
        stored_at=stored(group, known.body),
        tasks=sorted(makers, key=lambda each: not each["wrote_it"]),
        before=before,
    )


def contains(written: Any, value: Any) -> bool:
    """Whether what a task wrote has a value in it. An id that a message was given later on does not count."""
    if isinstance(value, str):
        return any(value in each for each in _parts(written) if isinstance(each, str))
    wanted = _likeness(value)
    return any(_likeness(each) == wanted for each in _parts(written))


def _likeness(value: Any) -> bytes:
    fields = message_fields(value)
    if fields is None:
        return fingerprint(value)
    return fingerprint({key: each for key, each in fields.items() if key != "id"})


def _parts(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        content = inside(each)
        if content is not each:
            yield content
        if isinstance(content, Mapping):
            waiting += content.values()
        elif isinstance(content, LISTS):
            waiting += content
