"""The tree: a namespace's checkpoints with what led to each, and what its tasks did, asked and failed with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, TASKS

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.content import Body, Write
from langgraph.checkpoint.dynamodb._format.looking import Stored
from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds, stored_at
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID
from langgraph.checkpoint.dynamodb._operations.reads import Group
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.view import documents
from langgraph.checkpoint.dynamodb.view.documents import Row
from langgraph.checkpoint.dynamodb.view.lane import Lane, Task
from langgraph.checkpoint.dynamodb.view.nodes import Shower
from langgraph.checkpoint.dynamodb.view.plain import LISTS, inside

ROWS = 500
ROWS_MAX = 5000
# What LangGraph writes besides channels, and which channels tell what runs next.
_ERROR_NODE = "__error_source_node__"
_BRANCH, _JOIN, _START = "branch:to:", "join:", "__start__"
_PULLED = re.compile(r"~__pregel_pull, (.*)", re.DOTALL)
_PUSHED = re.compile(r"~__pregel_push, (\d{10})\b")
# Of what was asked, answered and failed with, a tree shows the beginning.
_TREE_TEXT_MAX = 500
_TREE_PARTS_MAX = 20


@dataclass
class Known:
    """What can be said of a checkpoint; of one that cannot be read, why."""

    metadata: CheckpointMetadata = field(default_factory=lambda: CheckpointMetadata())
    body: Body | None = None
    parent: Body | None = None
    tasks: Sequence[Task] = ()
    parent_tasks: Sequence[Task] = ()
    sends: Sequence[str | None] = ()
    """The nodes of the tasks that were sent for, by their places."""
    parent_sends: Sequence[str | None] = ()
    joined: Sequence[str] = ()
    """The nodes of which everything that they wait for has been."""
    problem: str | None = None


def know(lane: Lane, group: Group, *, whole: bool = False) -> Op[Known]:
    """Find out what can be said of a checkpoint; `whole` reads large writes too."""
    known = Known()
    try:
        known.metadata = yield from lane.metadata(group)
        known.body = yield from lane.body(group)
        known.tasks = yield from lane.tasks(group, whole=whole)
        known.sends = yield from _sends(lane, group, known.body, whole=whole)
        known.joined = yield from _joined(lane, group, known.body)
        parent = yield from lane.parent(group)
        if parent is not None:
            known.parent = yield from lane.body(parent)
            known.parent_tasks = yield from lane.tasks(parent, whole=whole)
            known.parent_sends = yield from _sends(lane, parent, known.parent, whole=whole)
    except CheckpointerError as error:
        known.problem = str(error)
    return known


def tree_shower() -> Shower:
    """What shows the values of one checkpoint in a tree."""
    return Shower(text_max=_TREE_TEXT_MAX, parts_max=_TREE_PARTS_MAX)


def tree(
    lane: Lane, before: str | None, limit: int, shower: Callable[[], Shower] = tree_shower
) -> Op[documents.Tree]:
    """Some checkpoints of a namespace, the newest first, older than one of them."""
    while not lane.done and len(_below(lane, before)) <= limit:
        yield from lane.read_on()
    found = _below(lane, before)
    rows = []
    for group in found[:limit]:
        rows.append((yield from row(lane, group, shower())))  # noqa: PERF401 - a comprehension cannot yield.
    newest = next(iter(lane.rows), None)
    return documents.Tree(
        thread=lane.at.thread_id,
        ns=lane.at.namespace,
        newest=None if newest is None else newest.checkpoint_id,
        rows=rows,
        before=rows[-1]["checkpoint"] if len(found) > limit else None,
        problem=lane.problem,
    )


def _below(lane: Lane, before: str | None) -> list[Group]:
    return [each for each in lane.rows if before is None or each.checkpoint_id < before]


def row(lane: Lane, group: Group, shower: Shower) -> Op[Row]:
    """A checkpoint in the tree."""
    known = yield from know(lane, group)
    step, run = known.metadata.get("step"), known.metadata.get(RUN_ID)
    own = [lane.inventory.sizes[items.sort_key(each)] for each in group.members]
    return Row(
        checkpoint=group.checkpoint_id,
        parent=items.text(group.head, items.PARENT),
        stored_at=stored(group, known.body),
        step=step if isinstance(step, int) else None,
        source=_text(known.metadata.get("source")),
        run=_text(run) or _text(group.head.get(RUN_ID, {}).get("S")),
        ran=ran(known),
        next=next_nodes(known),
        changed=changed_channels(known),
        tasks=[task_document(lane, each, known.sends, shower) for each in known.tasks],
        expires_at=_iso(in_epoch_seconds(items.ends_at(group.head))),
        items=len(own),
        bytes=sum(own),
        problem=known.problem,
    )


def stored(group: Group, body: Body | None) -> str | None:
    """When a checkpoint was stored, as its id or it itself says."""
    by_id = _iso(stored_at(group.checkpoint_id))
    return by_id or (None if body is None else _text(body.checkpoint.get("ts")))


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# Tasks


def node_of(task: Task, sends: Sequence[str | None]) -> str | None:
    """The node that a task ran, as the paths of its writes say, or what it failed with."""
    for write in task.writes:
        pulled = _PULLED.match(write.task_path)
        if pulled is not None:
            return pulled[1]
        pushed = _PUSHED.match(write.task_path)
        if pushed is not None and int(pushed[1]) < len(sends):
            return sends[int(pushed[1])]
    return None


def is_finished(task: Task) -> bool:
    """Whether a task has stored its result."""
    return items.WRITES in task.item


def task_document(lane: Lane, task: Task, sends: Sequence[str | None], shower: Shower) -> documents.Task:
    """A task as the page shows it."""

    def values(channel: str) -> Iterator[Any]:
        for write in task.writes:
            if write.channel == channel:
                try:
                    yield lane.loads(write, task.item)
                except CheckpointerError as error:
                    yield Stored("unreadable", str(error))

    asked = [part for each in values(INTERRUPT) for part in _several(each)]
    error = next(values(ERROR), None)
    special = (INTERRUPT, RESUME, ERROR, _ERROR_NODE)
    finished = is_finished(task)
    return documents.Task(
        task_id=task.task_id,
        node=node_of(task, sends),
        asked=[shower.node(_question(each), (INTERRUPT, "value")) for each in asked],
        answered=[shower.node(part, (RESUME,)) for each in values(RESUME) for part in _several(each)],
        error=None if error is None else shower.node(error, (ERROR,)),
        finished=finished,
        waiting=bool(asked) and not finished,
        writes=sorted({write.channel for write in task.writes} - set(special)),
    )


def _several(value: Any) -> Sequence[Any]:
    content = inside(value)
    return list(content) if isinstance(content, LISTS) else [value]


def _question(interrupt: Any) -> Any:
    """What an interrupt asks, without LangGraph's wrapping."""
    content = inside(interrupt)
    is_wrapped = isinstance(interrupt, Stored) and isinstance(content, Mapping) and "value" in content
    return content["value"] if is_wrapped else interrupt


def _sends(lane: Lane, group: Group, body: Body, *, whole: bool) -> Op[Sequence[str | None]]:
    """The nodes that tasks were sent to, by their places; of large ones only where all is wanted."""
    stored_value = body.values.get(TASKS)
    if stored_value is None or (stored_value.segments and not whole):
        return ()
    value = yield from lane.value(group, stored_value)
    return [_send_node(each) for each in _several(value)]


def _send_node(send: Any) -> str | None:
    content = inside(send)
    return _text(content[0]) if isinstance(content, list) and content else None


# What ran, and what is next


def ran(known: Known) -> list[str]:
    """The nodes that made a checkpoint of its parent: those that have seen more, and those that were sent for."""
    if known.body is None:
        return []
    before = {} if known.parent is None else _seen(known.parent)
    names = {name for name, seen in _seen(known.body).items() if before.get(name) != seen}
    if known.metadata.get("source") == "loop":
        pushed = (task for task in known.parent_tasks if is_finished(task) and _is_pushed(task))
        names |= {node for task in pushed if (node := node_of(task, known.parent_sends)) is not None}
    return sorted(name for name in names if not name.startswith("__") or name == _START)


def _is_pushed(task: Task) -> bool:
    return any(_PUSHED.match(write.task_path) for write in task.writes)


def _seen(body: Body) -> Mapping[str, Any]:
    seen = body.checkpoint.get("versions_seen")
    return seen if isinstance(seen, dict) else {}


def next_nodes(known: Known) -> list[str]:
    """The nodes that run next: those whose branch or join has a value, and those that tasks were sent to."""
    if known.body is None:
        return []
    values = known.body.values
    names = {name.removeprefix(_BRANCH) for name in values if name.startswith(_BRANCH)}
    names |= {name for name in (_START,) if name in values}
    names |= {name for name in known.sends if name is not None}
    names |= set(known.joined)
    return sorted(names)


def _joined(lane: Lane, group: Group, body: Body) -> Op[list[str]]:
    """The nodes of which everything that they wait for has been."""
    found = []
    for name, stored_value in body.values.items():
        if name.startswith(_JOIN):
            been = _several((yield from lane.value(group, stored_value)))
            awaited, _, node = name.removeprefix(_JOIN).rpartition(":")
            if set(awaited.split("+")) <= {each for each in been if isinstance(each, str)}:
                found.append(node)
    return found


def changed_channels(known: Known) -> list[str]:
    """The channels that have another version than in the parent."""
    if known.body is None:
        return []
    before = {} if known.parent is None else versions(known.parent)
    now = versions(known.body)
    return sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))


def versions(body: Body) -> Mapping[str, Any]:
    """The versions of a checkpoint's channels."""
    found: Mapping[str, Any] = body.checkpoint.get("channel_versions", {})
    return found


def writers(known: Known, channel: str) -> Iterable[tuple[Task, Write]]:
    """The writes of the parent's tasks that made a channel's value."""
    for task in known.parent_tasks:
        for write in task.writes:
            if write.channel == channel:
                yield task, write
