"""What one checkpoint holds: its channels' values, its pending writes, and more of a value that was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.content import Body, delta_counters
from langgraph.checkpoint.dynamodb._format.looking import Stored
from langgraph.checkpoint.dynamodb._operations.reads import Group
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerError,
    CheckpointerInputError,
    CheckpointNotFoundError,
)
from langgraph.checkpoint.dynamodb.view.documents import Channel, Pending, State, Write
from langgraph.checkpoint.dynamodb.view.lane import Lane
from langgraph.checkpoint.dynamodb.view.nodes import Shower
from langgraph.checkpoint.dynamodb.view.plain import REBUILT, part_at
from langgraph.checkpoint.dynamodb.view.tree import (
    Known,
    know,
    next_nodes,
    node_of,
    task_document,
    versions,
)


def state(lane: Lane, group: Group, shower: Shower) -> Op[State]:
    """A checkpoint, channel by channel. A channel that cannot be read says so, and the others are shown."""
    body = yield from lane.body(group)
    metadata = yield from lane.metadata(group)
    parent = yield from lane.parent(group)
    before = {} if parent is None else versions((yield from lane.body(parent)))
    channels = []
    for name in (yield from channels_of(lane, group)):
        channels.append((yield from _channel(lane, group, body, name, shower)))
        channels[-1]["changed"] = versions(body).get(name) != before.get(name)
    return State(
        thread=lane.at.thread_id,
        ns=lane.at.namespace,
        checkpoint=group.checkpoint_id,
        channels=channels,
        metadata=shower.node(metadata),
    )


def _channel(lane: Lane, group: Group, body: Body, name: str, shower: Shower) -> Op[Channel]:
    stored, version = body.values.get(name), versions(body).get(name)
    channel = Channel(
        name=name,
        version=None if version is None else str(version),
        changed=True,
        stored_bytes=0,
        serialized_as=REBUILT if stored is None else stored.kind,
        segments=0 if stored is None else len(stored.segments),
        node=None,
        problem=None,
    )
    try:
        if stored is None:
            value = yield from channel_value(lane, group, body, name)
        else:
            value, channel["stored_bytes"] = yield from lane.measured_value(group, stored)
        channel["node"] = shower.node(value, (name,))
    except CheckpointerError as error:
        channel["problem"] = str(error)
    return channel


def channels_of(lane: Lane, group: Group) -> Op[list[str]]:
    """The channels that have a value in a checkpoint, by their names."""
    body, metadata = (yield from lane.body(group)), (yield from lane.metadata(group))
    return sorted(body.values.keys() | delta_counters(metadata))


def channel_value(lane: Lane, group: Group, body: Body, name: str) -> Op[Any]:
    """A channel's value; of a delta channel that is not stored here, what it is rebuilt from."""
    stored = body.values.get(name)
    if stored is not None:
        return (yield from lane.value(group, stored))
    seed, writes, passed = None, list[Any](), {group.checkpoint_id}
    at = yield from lane.parent(group)
    while at is not None and at.checkpoint_id not in passed:
        passed.add(at.checkpoint_id)
        tasks = yield from lane.tasks(at, whole=True)
        found = [
            lane.loads(each, task.item) for task in tasks for each in task.writes if each.channel == name
        ]
        writes = found + writes
        earlier = yield from lane.body(at)
        if name in earlier.values:
            seed = yield from lane.value(at, earlier.values[name])
            break
        at = yield from lane.parent(at)
    return Stored(REBUILT, {"from": seed, "writes": writes})


def pending(lane: Lane, group: Group, shower: Shower) -> Op[Pending]:
    """What the tasks of a checkpoint have stored, whole, and which nodes run next."""
    known = yield from know(lane, group, whole=True)
    return Pending(
        thread=lane.at.thread_id,
        ns=lane.at.namespace,
        checkpoint=group.checkpoint_id,
        tasks=[task_document(lane, each, known.sends, shower) for each in known.tasks],
        next=next_nodes(known),
        writes=[_write(lane, known, place, shower) for place in range(len(_writes(known)))],
        problem=known.problem,
    )


def _writes(known: Known) -> list[tuple[int, int]]:
    """The places of all pending writes: those of tasks, and in them those of their writes."""
    return [(task, write) for task, each in enumerate(known.tasks) for write in range(len(each.writes))]


def _write(lane: Lane, known: Known, place: int, shower: Shower) -> Write:
    at, within = _writes(known)[place]
    task = known.tasks[at]
    write = task.writes[within]
    value, problem = None, None
    try:
        value = shower.node(lane.loads(write, task.item), (write.channel,))
    except CheckpointerError as error:
        problem = str(error)
    return Write(
        task_id=items.task_id_of(task.item),
        node=node_of(task, known.sends),
        channel=write.channel,
        value=value,
        problem=problem,
    )


def value_at(lane: Lane, group: Group, path: Sequence[str | int]) -> Op[Any]:
    """The value at the end of a path.

    Raises:
        CheckpointerInputError: The path does not begin as one does.
        CheckpointNotFoundError: Nothing is there.
    """
    match list(path):
        case ["values", str(name), *rest]:
            body = yield from lane.body(group)
            if name not in (yield from channels_of(lane, group)):
                msg = f"checkpoint {group.checkpoint_id!r} has no value of channel {name!r}"
                raise CheckpointNotFoundError(msg)
            return part_at((yield from channel_value(lane, group, body, name)), rest)
        case ["writes", int(place), *rest]:
            known = yield from know(lane, group, whole=True)
            places = _writes(known)
            if not 0 <= place < len(places):
                msg = f"checkpoint {group.checkpoint_id!r} has no pending write {place}"
                raise CheckpointNotFoundError(msg)
            task = known.tasks[places[place][0]]
            return part_at(lane.loads(task.writes[places[place][1]], task.item), rest)
        case ["metadata", *rest]:
            return part_at((yield from lane.metadata(group)), rest)
    msg = (
        f"path {list(path)!r} has to begin with 'values' and a channel, 'writes' and a number, or 'metadata'"
    )
    raise CheckpointerInputError(msg)
