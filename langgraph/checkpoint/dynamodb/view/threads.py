"""A thread's owner and title, its namespaces, and how they are nested."""

from __future__ import annotations

from .._operations.entries import ThreadDescription
from .._runtime.steps import Op
from ..errors import CheckpointerError
from .documents import Lane, ThreadDocument
from .node import Node
from .nodes import Shower
from .thread_view import ThreadView


def thread_document(thread: ThreadView, shower: Shower) -> Op[ThreadDocument]:
    """Return a thread, before its checkpoints are read."""
    about, problem = ThreadDescription(), None
    try:
        about = yield from thread.about()
    except CheckpointerError as error:
        problem = str(error)
    names = [each.partition.namespace for each in (yield from thread.namespaces())]
    return ThreadDocument(
        owner=_shown(about.owner, shower),
        title=_shown(about.title, shower),
        problem=problem,
        lanes=[_lane(each, names) for each in names],
    )


def _shown(text: str | None, shower: Shower) -> Node | None:
    return None if text is None else shower.node(text)


def _lane(namespace: str, others: list[str]) -> Lane:
    """Return a namespace. Its name begins with those around it, and has a call's task after a colon."""
    around, _, own = namespace.rpartition("|")
    name, _, task_id = own.partition(":")
    parent = around if around in others else ""
    return Lane(ns=namespace, name=name, parent=parent if namespace else None, task_id=task_id or None)
