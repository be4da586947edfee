"""The contents of one checkpoint: its channels' values, its pending writes, and more of a value that was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._format.content import Write, delta_counters
from .._format.inert import Stored
from .._operations.reads import StoredCheckpoint
from .._runtime.steps import Op
from ..errors import CheckpointerError, CheckpointerInputError, CheckpointNotFoundError
from . import documents
from .documents import Channel, Pending, StateDocument
from .namespace_view import NamespaceView, Task
from .nodes import Shower
from .plain import REBUILT, part_at
from .tree import Sent, know, next_nodes, node_of, task_document, versions


def state(namespace: NamespaceView, checkpoint: StoredCheckpoint, shower: Shower) -> Op[StateDocument]:
    """Return a checkpoint, channel by channel. An unreadable channel has a problem, and the others are shown."""
    body = yield from namespace.body(checkpoint)
    now = yield from channel_versions(namespace, checkpoint)
    before = yield from channel_versions(namespace, (yield from namespace.parent(checkpoint)))
    channels = []
    for name, version in now.items():
        node, problem = None, None
        try:
            node = shower.of(name).node((yield from channel_value(namespace, checkpoint, name)))
        except CheckpointerError as error:
            problem = str(error)
        stored = body.values.get(name)
        channels.append(
            Channel(
                name=name,
                changed=version != before.get(name),
                segments=0 if stored is None else len(stored.segments),
                node=node,
                problem=problem,
            )
        )
    return StateDocument(channels=channels, metadata=shower.node((yield from namespace.metadata(checkpoint))))


def channel_versions(namespace: NamespaceView, checkpoint: StoredCheckpoint | None) -> Op[dict[str, Any]]:
    """Return the versions of the channels that have a value in a checkpoint, sorted by name."""
    if checkpoint is None:
        return {}
    body, metadata = (yield from namespace.body(checkpoint)), (yield from namespace.metadata(checkpoint))
    names = sorted(body.values.keys() | delta_counters(metadata))
    return {name: versions(body).get(name) for name in names}


def channel_value(namespace: NamespaceView, checkpoint: StoredCheckpoint, name: str) -> Op[Any]:
    """Return a channel's value; for a delta channel that is not stored here, return what it is rebuilt from."""
    stored = (yield from namespace.body(checkpoint)).values.get(name)
    if stored is not None:
        return (yield from namespace.value(checkpoint, stored))
    seed, writes, passed = None, list[Any](), {checkpoint.checkpoint_id}
    at = yield from namespace.parent(checkpoint)
    while at is not None and at.checkpoint_id not in passed:
        passed.add(at.checkpoint_id)
        tasks = yield from namespace.tasks(at, whole=True)
        found = [
            namespace.loads(each, task.item) for task in tasks for each in task.writes if each.channel == name
        ]
        writes = found + writes
        earlier = yield from namespace.body(at)
        if name in earlier.values:
            seed = yield from namespace.value(at, earlier.values[name])
            break
        at = yield from namespace.parent(at)
    return Stored(REBUILT, {"from": seed, "writes": writes})


def pending(namespace: NamespaceView, checkpoint: StoredCheckpoint, shower: Shower) -> Op[Pending]:
    """Return everything that the tasks of a checkpoint have stored, and which nodes run next."""
    known = yield from know(namespace, checkpoint, whole=True)
    return Pending(
        tasks=[task_document(namespace, each, known.sends, shower) for each in known.tasks],
        next=next_nodes(known),
        writes=[_write_document(namespace, *each, known.sends, shower) for each in known.writes],
        problem=known.problem,
    )


def _write_document(
    namespace: NamespaceView, task: Task, write: Write, sends: Sequence[Sent], shower: Shower
) -> documents.WriteDocument:
    value, problem = None, None
    try:
        value = shower.of(write.channel).node(namespace.loads(write, task.item))
    except CheckpointerError as error:
        problem = str(error)
    return documents.WriteDocument(
        task_id=task.task_id,
        node=node_of(task, sends),
        channel=write.channel,
        value=value,
        problem=problem,
    )


def value_at(namespace: NamespaceView, checkpoint: StoredCheckpoint, path: Sequence[str | int]) -> Op[Any]:
    """Return the value at the end of a path.

    Raises:
        CheckpointerInputError: The path does not begin with a known root.
        CheckpointNotFoundError: Nothing is there.
    """
    match list(path):
        case ["values", str(name), *rest]:
            if name not in (yield from channel_versions(namespace, checkpoint)):
                msg = f"checkpoint {checkpoint.checkpoint_id!r} has no value of channel {name!r}"
                raise CheckpointNotFoundError(msg)
            return part_at((yield from channel_value(namespace, checkpoint, name)), rest)
        case ["writes", int(place), *rest]:
            writes = (yield from know(namespace, checkpoint, whole=True)).writes
            if not 0 <= place < len(writes):
                msg = f"checkpoint {checkpoint.checkpoint_id!r} has no pending write {place}"
                raise CheckpointNotFoundError(msg)
            task, write = writes[place]
            return part_at(namespace.loads(write, task.item), rest)
        case ["metadata", *rest]:
            return part_at((yield from namespace.metadata(checkpoint)), rest)
    msg = (
        f"path {list(path)!r} has to begin with 'values' and a channel, 'writes' and a number, or 'metadata'"
    )
    raise CheckpointerInputError(msg)
