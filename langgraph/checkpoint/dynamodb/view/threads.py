"""A thread's namespaces, and how they lie in each other."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.view.documents import Lane, Thread
from langgraph.checkpoint.dynamodb.view.record import Record


def thread_document(record: Record) -> Op[Thread]:
    """A thread, before anything of its checkpoints is read."""
    names = [each.at.namespace for each in (yield from record.lanes())]
    return Thread(thread=record.root.thread_id, lanes=[_lane(each, names) for each in names])


def _lane(namespace: str, others: list[str]) -> Lane:
    """A namespace: those around it are in front, and of a call the task is behind a colon."""
    around, _, own = namespace.rpartition("|")
    name, _, task_id = own.partition(":")
    parent = around if around in others else ""
    return Lane(ns=namespace, name=name, parent=parent if namespace else None, task_id=task_id or None)
