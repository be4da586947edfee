"""One checkpoint: the values of its channels, its pending writes, its changes, and more of a value that was cut."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from .._format.content import Write, delta_counters
from .._format.inert import Stored
from .._operations.reads import StoredCheckpoint
from .._runtime.steps import Op
from ..errors import CheckpointerError, CheckpointerInputError, CheckpointNotFoundError
from . import documents, stored_values, tree
from .namespace_view import NamespaceView, TaskWrites
from .nodes import TEXT_MAX, Shower

_CHANGES_MAX = 200
# How many characters are shown before the first difference of long texts.
_CONTEXT = 200


def state(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, shower: Shower
) -> Op[documents.StateDocument]:
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
            documents.Channel(
                name=name,
                changed=version != before.get(name),
                segments=0 if stored is None else len(stored.segments),
                node=node,
                problem=problem,
            )
        )
    return documents.StateDocument(
        channels=channels, metadata=shower.node((yield from namespace.metadata(checkpoint)))
    )


def channel_versions(namespace: NamespaceView, checkpoint: StoredCheckpoint | None) -> Op[dict[str, Any]]:
    """Return the versions of the channels that have a value in a checkpoint, sorted by name."""
    if checkpoint is None:
        return {}
    body, metadata = (yield from namespace.body(checkpoint)), (yield from namespace.metadata(checkpoint))
    names = sorted(body.values.keys() | delta_counters(metadata))
    return {name: tree.versions(body).get(name) for name in names}


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
    return Stored(stored_values.REBUILT, {"from": seed, "writes": writes})


def pending(namespace: NamespaceView, checkpoint: StoredCheckpoint, shower: Shower) -> Op[documents.Pending]:
    """Return everything that the tasks of a checkpoint have stored, and which nodes run next."""
    known = yield from tree.know(namespace, checkpoint, whole=True)
    return documents.Pending(
        tasks=[tree.task_document(namespace, each, known.sends, shower) for each in known.tasks],
        next=tree.next_nodes(known),
        writes=[_write_document(namespace, *each, known.sends, shower) for each in known.writes],
        problem=known.problem,
    )


def _write_document(
    namespace: NamespaceView, task: TaskWrites, write: Write, sends: Sequence[tree.Sent], shower: Shower
) -> documents.WriteDocument:
    value, problem = None, None
    try:
        value = shower.of(write.channel).node(namespace.loads(write, task.item))
    except CheckpointerError as error:
        problem = str(error)
    return documents.WriteDocument(
        task_id=task.task_id,
        node=tree.node_of(task, sends),
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
            return stored_values.part_at((yield from channel_value(namespace, checkpoint, name)), rest)
        case ["writes", int(place), *rest]:
            writes = (yield from tree.know(namespace, checkpoint, whole=True)).writes
            if not 0 <= place < len(writes):
                msg = f"checkpoint {checkpoint.checkpoint_id!r} has no pending write {place}"
                raise CheckpointNotFoundError(msg)
            task, write = writes[place]
            return stored_values.part_at(namespace.loads(write, task.item), rest)
        case ["metadata", *rest]:
            return stored_values.part_at((yield from namespace.metadata(checkpoint)), rest)
    raise CheckpointerInputError(
        f"path {list(path)!r} has to begin with 'values' and a channel, 'writes' and a number, or 'metadata'"
    )


def changes(namespace: NamespaceView, checkpoint: StoredCheckpoint, shower: Shower) -> Op[documents.Changes]:
    """Return the changes of a checkpoint against its parent. Without a parent, everything is added."""
    now = yield from channel_versions(namespace, checkpoint)
    parent = yield from namespace.parent(checkpoint)
    before = yield from channel_versions(namespace, parent)
    found, unchanged = list[documents.ChannelChanges](), list[str]()
    for name in sorted(now.keys() | before.keys()):
        if name in now and name in before and now[name] == before[name]:
            unchanged.append(name)
            continue
        sides = parent if name in before else None, checkpoint if name in now else None
        told = yield from _of_channel(namespace, name, *sides, shower)
        if told["changes"] or told["problem"]:
            found.append(told)
        else:
            unchanged.append(name)
    parent_id = None if parent is None else parent.checkpoint_id
    return documents.Changes(parent=parent_id, channels=found, unchanged=unchanged)


def _of_channel(
    namespace: NamespaceView,
    name: str,
    before: StoredCheckpoint | None,
    after: StoredCheckpoint | None,
    shower: Shower,
) -> Op[documents.ChannelChanges]:
    """Return the changes of a channel between two checkpoints; None stands for one without the channel."""
    root: stored_values.Steps = ("values", name)
    told = documents.ChannelChanges(
        channel=name, kind="changed", before_bytes=None, after_bytes=None, changes=[], more=0, problem=None
    )
    try:
        old = None if before is None else (yield from channel_value(namespace, before, name))
        new = None if after is None else (yield from channel_value(namespace, after, name))
    except CheckpointerError as error:
        told["problem"] = str(error)
        return told
    found = stored_values.differences(old, new, root, root)
    if before is None:
        told["kind"], found = "added", iter([stored_values.Difference("added", None, root, after=new)])
    elif after is None:
        told["kind"], found = "gone", iter([stored_values.Difference("gone", root, None, before=old)])
    told["before_bytes"] = None if before is None else stored_values.size_bytes(old)
    told["after_bytes"] = None if after is None else stored_values.size_bytes(new)
    told["changes"] = [_change(each, shower.of(name)) for each in islice(found, _CHANGES_MAX)]
    told["more"] = sum(1 for _ in found)
    return told


def _change(difference: stored_values.Difference, shower: Shower) -> documents.ChangeDocument:
    start = _first_difference(difference.before, difference.after)
    return documents.ChangeDocument(
        kind=difference.kind,
        before_path=_path(difference.before_path),
        path=_path(difference.path),
        before=None if difference.kind == "added" else shower.node(difference.before, start=start),
        after=None if difference.kind == "gone" else shower.node(difference.after, start=start),
    )


def _first_difference(before: Any, after: Any) -> int:
    """Return where to begin showing two texts, so that their difference is visible."""
    if not (isinstance(before, str) and isinstance(after, str)) or max(len(before), len(after)) <= TEXT_MAX:
        return 0
    return max(0, stored_values.common(before, after) - _CONTEXT)


def _path(path: stored_values.Steps | None) -> documents.Path | None:
    return None if path is None else list(path)
