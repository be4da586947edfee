"""A thread's namespaces, and how they are nested."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.view.documents import Lane, Thread
from langgraph.checkpoint.dynamodb.view.thread_view import ThreadView


def thread_document(thread: ThreadView) -> Op[Thread]:
    """Return a thread, before its checkpoints are read."""
    names = [each.partition.namespace for each in (yield from thread.namespaces())]
    return Thread(thread=thread.root.thread_id, lanes=[_lane(each, names) for each in names])


def _lane(namespace: str, others: list[str]) -> Lane:
    """Return a namespace. Its name begins with those around it, and has a call's task after a colon."""
    around, _, own = namespace.rpartition("|")
    name, _, task_id = own.partition(":")
    parent = around if around in others else ""
    return Lane(ns=namespace, name=name, parent=parent if namespace else None, task_id=task_id or None)
