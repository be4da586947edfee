"""The tree: a namespace's checkpoints with the nodes that led to each, and the outcomes of their tasks."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, TASKS

from .._format import inert, items, moments, pricing
from .._format.content import Body, Write
from .._format.schema import RUN_ID
from .._operations.reads import StoredCheckpoint
from .._runtime.steps import Op
from ..errors import CheckpointerError
from . import documents, stored_values
from .namespace_view import NamespaceView, TaskWrites
from .nodes import Shower

ROWS = 500
ROWS_MAX = 5000
# Names that LangGraph writes besides channels, and channels that tell which nodes run next.
_ERROR_NODE = "__error_source_node__"
_BRANCH, _JOIN, _START = "branch:to:", "join:", "__start__"
_PULLED = re.compile(r"~__pregel_pull, (.*)", re.DOTALL)
_PUSHED = re.compile(r"~__pregel_push, (\d{10})\b")
# Of questions, answers and errors, a tree shows the beginning.
_TREE_TEXT_MAX = 500
_TREE_PARTS_MAX = 20


class Sent(NamedTuple):
    """The node and the argument of a `Send`."""

    node: str | None
    argument: Any


@dataclass
class CheckpointFacts:
    """The facts about a checkpoint; if it cannot be read, the reason."""

    metadata: CheckpointMetadata = field(default_factory=lambda: CheckpointMetadata())
    body: Body | None = None
    parent: Body | None = None
    tasks: Sequence[TaskWrites] = ()
    parent_tasks: Sequence[TaskWrites] = ()
    sends: Sequence[Sent] = ()
    """The `Send`s that create tasks, by their places."""
    parent_sends: Sequence[Sent] = ()
    joined: Sequence[str] = ()
    """The nodes whose awaited nodes have all run."""
    problem: str | None = None

    @property
    def step(self) -> int | None:
        """The step, if the metadata has one."""
        step = self.metadata.get("step")
        return step if isinstance(step, int) else None

    @property
    def source(self) -> str | None:
        """The source, if the metadata has one."""
        return _text(self.metadata.get("source"))

    @property
    def writes(self) -> list[tuple[TaskWrites, Write]]:
        """The pending writes with their tasks, in the order in which paths number them."""
        return [(task, write) for task in self.tasks for write in task.writes]


def know(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, *, whole: bool = False
) -> Op[CheckpointFacts]:
    """Read the facts about a checkpoint. `whole` reads large writes too."""
    loaded = CheckpointFacts()
    try:
        loaded.metadata = yield from namespace.metadata(checkpoint)
        loaded.body = yield from namespace.body(checkpoint)
        loaded.tasks = yield from namespace.tasks(checkpoint, whole=whole)
        loaded.sends = yield from _sends(namespace, checkpoint, loaded.body, whole=whole)
        loaded.joined = yield from _joined(namespace, checkpoint, loaded.body)
        parent = yield from namespace.parent(checkpoint)
        if parent is not None:
            loaded.parent = yield from namespace.body(parent)
            loaded.parent_tasks = yield from namespace.tasks(parent, whole=whole)
            loaded.parent_sends = yield from _sends(namespace, parent, loaded.parent, whole=whole)
    except CheckpointerError as error:
        loaded.problem = str(error)
    return loaded


def tree(
    namespace: NamespaceView, before: str | None, limit: int, shows: Collection[str] | None = None
) -> Op[documents.Tree]:
    """Return some checkpoints of a namespace, newest first, older than `before` if that is given."""
    while not namespace.done and len(_below(namespace, before)) <= limit:
        yield from namespace.read_on()
    found = _below(namespace, before)
    rows = []
    for checkpoint in found[:limit]:
        rows.append((yield from row(namespace, checkpoint, shows)))  # noqa: PERF401 - a comprehension cannot yield.
    newest = next(iter(namespace.rows), None)
    return documents.Tree(
        newest=None if newest is None else newest.checkpoint_id,
        rows=rows,
        before=rows[-1]["checkpoint"] if len(found) > limit else None,
        problem=namespace.problem,
    )


def _below(namespace: NamespaceView, before: str | None) -> list[StoredCheckpoint]:
    return [each for each in namespace.rows if before is None or each.checkpoint_id < before]


def row(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, shows: Collection[str] | None = None
) -> Op[documents.Row]:
    """Return a checkpoint's row of the tree. `shows` is that of its shower."""
    shower = Shower(text_max=_TREE_TEXT_MAX, parts_max=_TREE_PARTS_MAX, shows=shows)
    loaded = yield from know(namespace, checkpoint)
    own = [pricing.item_bytes(each) for each in checkpoint.members]
    return documents.Row(
        checkpoint=checkpoint.checkpoint_id,
        parent=items.text(checkpoint.head, items.PARENT),
        stored_at=stored(checkpoint, loaded.body),
        step=loaded.step,
        source=loaded.source,
        run=_text(loaded.metadata.get(RUN_ID)) or _text(checkpoint.head.get(RUN_ID, {}).get("S")),
        ran=ran(loaded),
        next=next_nodes(loaded),
        changed=changed_channels(loaded),
        tasks=[task_document(namespace, each, loaded.sends, shower) for each in loaded.tasks],
        expires_at=_iso(moments.in_epoch_seconds(items.expires_at(checkpoint.head))),
        items=len(own),
        bytes=sum(own),
        problem=loaded.problem,
    )


def stored(checkpoint: StoredCheckpoint, body: Body | None) -> str | None:
    """Return when a checkpoint was stored, from its id or else from its own timestamp."""
    by_id = _iso(moments.stored_at(checkpoint.checkpoint_id))
    return by_id or (None if body is None else _text(body.checkpoint.get("ts")))


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# Tasks


def node_of(task: TaskWrites, sends: Sequence[Sent]) -> str | None:
    """Return the node that a task ran, according to the paths of its writes, or None."""
    pulled = (found for write in task.writes if (found := _PULLED.match(write.task_path)))
    sent = _sent(task, sends)
    return next((found[1] for found in pulled), None if sent is None else sent.node)


def _sent(task: TaskWrites, sends: Sequence[Sent]) -> Sent | None:
    """Return the `Send` that created a task, or None."""
    places = (int(found[1]) for write in task.writes if (found := _PUSHED.match(write.task_path)))
    return next((sends[place] for place in places if place < len(sends)), None)


def is_finished(task: TaskWrites) -> bool:
    """Tell whether a task has stored its result."""
    return items.WRITES in task.item


def task_document(
    namespace: NamespaceView, task: TaskWrites, sends: Sequence[Sent], shower: Shower
) -> documents.TaskDocument:
    """Return a task as the page shows it."""

    def values(channel: str) -> Iterator[Any]:
        for write in task.writes:
            if write.channel == channel:
                try:
                    yield namespace.loads(write, task.item)
                except CheckpointerError as error:
                    yield inert.Stored("unreadable", str(error))

    interrupts = [part for each in values(INTERRUPT) for part in _several(each)]
    error = next(values(ERROR), None)
    special = (INTERRUPT, RESUME, ERROR, _ERROR_NODE)
    finished, sent = is_finished(task), _sent(task, sends)
    return documents.TaskDocument(
        task_id=task.task_id,
        node=node_of(task, sends),
        sent=None if sent is None else shower.of(TASKS).node(sent.argument),
        asked=[shower.of(INTERRUPT).node(inert.asked(each)) for each in interrupts],
        answered=[shower.of(RESUME).node(part) for each in values(RESUME) for part in _several(each)],
        error=None if error is None else shower.of(ERROR).node(error),
        finished=finished,
        waiting=bool(interrupts) and not finished,
        writes=sorted({write.channel for write in task.writes} - set(special)),
    )


def _several(value: Any) -> Sequence[Any]:
    content = stored_values.inside(value)
    return list(content) if isinstance(content, stored_values.LISTS) else [value]


def _sends(
    namespace: NamespaceView, checkpoint: StoredCheckpoint, body: Body, *, whole: bool
) -> Op[Sequence[Sent]]:
    """Return a checkpoint's `Send`s, by their places. Large values are read only with `whole`."""
    stored_value = body.values.get(TASKS)
    if stored_value is None or (stored_value.segments and not whole):
        return ()
    value = yield from namespace.value(checkpoint, stored_value)
    return [_read_send(each) for each in _several(value)]


def _read_send(send: Any) -> Sent:
    content = stored_values.inside(send)
    node, argument, *_ = [*content, None, None] if isinstance(content, list) else (None, None)
    return Sent(_text(node), argument)


# The nodes that ran, and those that run next


def ran(known: CheckpointFacts) -> list[str]:
    """Return the nodes that made a checkpoint from its parent: those that saw new versions, and those of `Send`s.

    An input is made by none: if it begins a fork, the nodes that had finished by then are not its own.
    """
    if known.body is None or known.source == "input":
        return []
    before = {} if known.parent is None else _seen(known.parent)
    names = {name for name, seen in _seen(known.body).items() if before.get(name) != seen}
    if known.source == "loop":
        pushed = (task for task in known.parent_tasks if is_finished(task) and _is_pushed(task))
        names |= {node for task in pushed if (node := node_of(task, known.parent_sends)) is not None}
    return sorted(name for name in names if not name.startswith("__") or name == _START)


def _is_pushed(task: TaskWrites) -> bool:
    return any(_PUSHED.match(write.task_path) for write in task.writes)


def _seen(body: Body) -> Mapping[str, Any]:
    seen = body.checkpoint.get("versions_seen")
    return seen if isinstance(seen, dict) else {}


def next_nodes(known: CheckpointFacts) -> list[str]:
    """Return the nodes that run next: those whose branch or join has a value, and those of `Send`s."""
    if known.body is None:
        return []
    values = known.body.values
    names = {name.removeprefix(_BRANCH) for name in values if name.startswith(_BRANCH)}
    names |= {name for name in (_START,) if name in values}
    names |= {sent.node for sent in known.sends if sent.node is not None}
    names |= set(known.joined)
    return sorted(names)


def _joined(namespace: NamespaceView, checkpoint: StoredCheckpoint, body: Body) -> Op[list[str]]:
    """Return the nodes whose awaited nodes have all run."""
    found = []
    for name, stored_value in body.values.items():
        if name.startswith(_JOIN):
            been = _several((yield from namespace.value(checkpoint, stored_value)))
            awaited, _, node = name.removeprefix(_JOIN).rpartition(":")
            if set(awaited.split("+")) <= {each for each in been if isinstance(each, str)}:
                found.append(node)
    return found


def changed_channels(known: CheckpointFacts) -> list[str]:
    """Return the channels whose version differs from the parent's."""
    if known.body is None:
        return []
    before = {} if known.parent is None else versions(known.parent)
    now = versions(known.body)
    return sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))


def versions(body: Body) -> Mapping[str, Any]:
    """Return the versions of a checkpoint's channels."""
    found: Mapping[str, Any] = body.checkpoint.get("channel_versions", {})
    return found
