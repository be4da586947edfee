"""The requests of the page, and their answers: names and parameters in, documents out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._operations.overview import threads_of_run
from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.view import documents
from langgraph.checkpoint.dynamodb.view.changes import changes
from langgraph.checkpoint.dynamodb.view.cost import cost
from langgraph.checkpoint.dynamodb.view.directory import directory
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView
from langgraph.checkpoint.dynamodb.view.node import Node
from langgraph.checkpoint.dynamodb.view.nodes import PARTS_MAX, Shower
from langgraph.checkpoint.dynamodb.view.search import search
from langgraph.checkpoint.dynamodb.view.state import pending, state, value_at
from langgraph.checkpoint.dynamodb.view.thread_view import Session, ThreadView
from langgraph.checkpoint.dynamodb.view.threads import thread_document
from langgraph.checkpoint.dynamodb.view.tree import ROWS, ROWS_MAX, tree

Parameters = Mapping[str, str]
_InThread: TypeAlias = "Callable[[ThreadView, Parameters], Op[Any]]"


class Responses:
    """Answers the page's requests from one session."""

    def __init__(self, session: Session, thread_id: str | None = None) -> None:
        """Store the session, and the thread that the page begins with."""
        self._session = session
        self._thread_id = thread_id
        self.table_name = session.storage.table.name
        self._of: dict[str, Callable[[Parameters], Any]] = {
            "start": self._start,
            "directory": self._directory,
            "threads": self._threads,
            "thread": self._thread,
            **{name: self._in_thread(answer) for name, answer in _OF_THREADS.items()},
        }

    def answer(self, name: str, parameters: Parameters) -> Any:
        """Return the document that answers a request.

        Args:
            name: The document's name.
            parameters: The parameters by their names.

        Raises:
            CheckpointNotFoundError: There is no such document, thread or checkpoint.
            CheckpointerInputError: A parameter is missing, or cannot be used.
        """
        answer = self._of.get(name)
        if answer is None:
            msg = f"there is no document {name!r}"
            raise CheckpointNotFoundError(msg)
        return answer(parameters)

    def _start(self, _: Parameters) -> documents.Start:
        return documents.Start(table=self.table_name, thread=self._thread_id)

    def _directory(self, parameters: Parameters) -> documents.Directory:
        owner, title, before = (parameters.get(each) for each in ("owner", "title", "before"))
        return self._session.run(directory(self._session.storage, owner, title or "", before))

    def _threads(self, parameters: Parameters) -> documents.ThreadsDocument:
        found = self._session.run(threads_of_run(self._session.storage, _text(parameters, "run")))
        return documents.ThreadsDocument(threads=found)

    def _thread(self, parameters: Parameters) -> documents.ThreadDocument:
        thread_id = _text(parameters, "thread")
        self._session.forget(thread_id)
        with self._session.opened(thread_id) as thread:
            return self._session.run(thread_document(thread, Shower()))

    def _in_thread(self, answer: _InThread) -> Callable[[Parameters], Any]:
        def answered(parameters: Parameters) -> Any:
            with self._session.opened(_text(parameters, "thread")) as thread:
                return self._session.run(answer(thread, parameters))

        return answered


# Documents of one thread


def _tree(thread: ThreadView, parameters: Parameters) -> Op[documents.Tree]:
    limit = _number(parameters, "limit", ROWS, ROWS_MAX, at_least=1)
    namespace = yield from thread.namespace(_text(parameters, "ns"))
    return (yield from tree(namespace, parameters.get("before"), limit))


def _part(thread: ThreadView, parameters: Parameters) -> Op[Node]:
    namespace, checkpoint = yield from _checkpoint(thread, parameters)
    value = yield from value_at(namespace, checkpoint, _path(parameters))
    return _part_shower().node(value, start=_number(parameters, "start", 0, None))


def _in_checkpoint(make: Callable[[NamespaceView, StoredCheckpoint, Shower], Op[Any]]) -> _InThread:
    def answer(thread: ThreadView, parameters: Parameters) -> Op[Any]:
        namespace, checkpoint = yield from _checkpoint(thread, parameters)
        return (yield from make(namespace, checkpoint, Shower()))

    return answer


def _search(thread: ThreadView, parameters: Parameters) -> Op[documents.SearchDocument]:
    return (yield from search(thread, _text(parameters, "text"), parameters.get("cursor")))


def _cost(thread: ThreadView, parameters: Parameters) -> Op[documents.Cost]:
    return (yield from cost((yield from thread.namespace(_text(parameters, "ns")))))


def _checkpoint(thread: ThreadView, parameters: Parameters) -> Any:
    return thread.checkpoint(_text(parameters, "ns"), _text(parameters, "checkpoint"))


_OF_THREADS: Mapping[str, _InThread] = {
    "tree": _tree,
    "part": _part,
    "search": _search,
    "cost": _cost,
    **{each.__name__: _in_checkpoint(each) for each in (state, pending, changes)},
}
_PART_TEXT_MAX = 256 * 1024


def _part_shower() -> Shower:
    return Shower(text_max=_PART_TEXT_MAX, parts_max=5 * PARTS_MAX)


# Parameters


def _text(parameters: Parameters, name: str) -> str:
    value = parameters.get(name)
    if value is None:
        msg = f"the parameter {name!r} is missing"
        raise CheckpointerInputError(msg)
    return value


def _number(parameters: Parameters, name: str, default: int, at_most: int | None, at_least: int = 0) -> int:
    value = parameters.get(name, str(default))
    number = int(value) if value.isdecimal() and len(value) <= 15 else -1
    if number < at_least or (at_most is not None and number > at_most):
        msg = f"the parameter {name!r} is {value!r}; give a whole number from {at_least}" + (
            "" if at_most is None else f" to {at_most}"
        )
        raise CheckpointerInputError(msg)
    return number


def _path(parameters: Parameters) -> list[str | int]:
    value = _text(parameters, "path")
    try:
        path = json.loads(value)
    except (ValueError, RecursionError):
        path = None
    if not isinstance(path, list) or not all(type(each) in (str, int) for each in path):
        msg = f'the parameter \'path\' is {value!r}; give a JSON list, such as ["values", "messages", 0]'
        raise CheckpointerInputError(msg)
    return path
