"""Blame: the checkpoint, task and node that first made a value what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.view.changes import identity
from langgraph.checkpoint.dynamodb.view.documents import Blame, Maker, Origin
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView
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

# How far one request goes back: this many checkpoints with a value to decode, or this many in all.
_DECODED_MAX = 50
_LOOKED_AT_MAX = 1000


def blame(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, path: Sequence[str | int], cursor: str | None
) -> Op[Blame]:
    """Follow a value back to its origin, as far as one request goes.

    Args:
        namespace: The namespace.
        checkpoint: The checkpoint that has the value.
        path: The path to the value, which begins with "values" and a channel.
        cursor: Where an earlier request stopped.

    Raises:
        CheckpointerInputError: The path does not lead to a value, or the cursor is none.
        CheckpointNotFoundError: Nothing is there.
    """
    if len(path) < 2 or path[0] != "values":
        msg = f"path {list(path)!r} does not lead to a value; a pending write belongs to its task"
        raise CheckpointerInputError(msg)
    looked_at, decoded = 0, 0
    wanted = fingerprint((yield from value_at(namespace, checkpoint, path)))
    if cursor is not None:
        checkpoint, path, looked_at = yield from _resumed(namespace, cursor)
    for _ in range(_LOOKED_AT_MAX):
        parent = yield from namespace.parent(checkpoint)
        looked_at += 1
        earlier = None
        if parent is not None:
            if (yield from _is_untouched(namespace, checkpoint, parent, str(path[1]))):
                checkpoint = parent
                continue
            decoded += 1
            earlier = yield from _earlier_path(namespace, checkpoint, parent, path)
        if (
            parent is None
            or earlier is None
            or fingerprint((yield from value_at(namespace, parent, earlier))) != wanted
        ):
            origin = yield from _origin(namespace, checkpoint, path, parent, earlier)
            return Blame(origin=origin, cursor=None, looked_at=looked_at, of=len(namespace.rows))
        checkpoint, path = parent, earlier
        if decoded == _DECODED_MAX:
            break
    cursor = json.dumps([checkpoint.checkpoint_id, list(path), looked_at])
    return Blame(origin=None, cursor=cursor, looked_at=looked_at, of=len(namespace.rows))


def _resumed(namespace: NamespaceView, cursor: str) -> Op[tuple[StoredCheckpoint, Sequence[str | int], int]]:
    try:
        match json.loads(cursor):
            case [str(checkpoint_id), ["values", str(), *_] as path, int(looked_at)]:
                checkpoint = yield from namespace.find(checkpoint_id)
                if checkpoint is not None:
                    return checkpoint, path, looked_at
    except (ValueError, RecursionError):
        pass
    msg = f"the parameter 'cursor' is {cursor!r}; give the one of the document before, or none"
    raise CheckpointerInputError(msg)


def _is_untouched(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, parent: StoredCheckpoint, channel: str
) -> Op[bool]:
    """Tell whether a channel is the same as in the parent, as far as that is known without its value."""
    body, before = (yield from namespace.body(checkpoint)), (yield from namespace.body(parent))
    if versions(body).get(channel) != versions(before).get(channel):
        value = body.values.get(channel)
        return value is not None and value == before.values.get(channel)
    # A delta channel that is stored in one of the two only has another form there.
    return (channel in body.values) == (channel in before.values)


def _earlier_path(
    namespace: NamespaceView,
    checkpoint: StoredCheckpoint,
    parent: StoredCheckpoint,
    path: Sequence[str | int],
) -> Op[Sequence[str | int] | None]:
    """Return the path in the parent of what is at a path, or None if the parent has nothing of the kind."""
    channel = str(path[1])
    value = yield from channel_value(namespace, checkpoint, channel)
    if channel not in (yield from channels_of(namespace, parent)):
        return None
    before = yield from channel_value(namespace, parent, channel)
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
    """Return the old place of a list's part: by its message's id, by its value, or at the same place."""
    own = identity(part)
    if step < len(old) and identity(old[step]) == own:
        return step
    same = [place for place, each in enumerate(old) if identity(each) == own]
    if same:
        return min(same, key=lambda place: abs(place - step))
    fields = message_fields(part)
    is_new = fields is not None and fields.get("id") is not None
    return None if is_new or step >= len(old) else step


# The origin


def _origin(
    namespace: NamespaceView,
    checkpoint: StoredCheckpoint,
    path: Sequence[str | int],
    parent: StoredCheckpoint | None,
    earlier: Sequence[str | int] | None,
) -> Op[Origin]:
    loaded = yield from know(namespace, checkpoint, whole=True)
    value = yield from value_at(namespace, checkpoint, path)
    before = None
    if parent is not None and earlier is not None:
        before = Shower().node((yield from value_at(namespace, parent, earlier)))
    makers = [
        Maker(
            task_id=task.task_id,
            node=node_of(task, loaded.parent_sends),
            wrote_it=contains(namespace.loads(write, task.item), value),
        )
        for task, write in writers(loaded, str(path[1]))
    ]
    if loaded.source != "loop":
        # A change from outside wrote the state itself; the parent's own tasks led elsewhere.
        makers = [each for each in makers if each["wrote_it"]]
    return Origin(
        ns=namespace.partition.namespace,
        checkpoint=checkpoint.checkpoint_id,
        parent=None if parent is None else parent.checkpoint_id,
        path=list(path),
        step=loaded.step,
        source=loaded.source,
        stored_at=stored(checkpoint, loaded.body),
        tasks=sorted(makers, key=lambda each: not each["wrote_it"]),
        before=before,
    )


def contains(written: Any, value: Any) -> bool:
    """Tell whether a task's write contains a value. An id that a message received later is ignored."""
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
    """Yield a value and everything in it."""
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
