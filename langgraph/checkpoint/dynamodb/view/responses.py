"""The requests of the page, and their answers: names and parameters in, documents out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, Json, NonNegativeInt, StrictInt, StrictStr, ValidationError, validate_call

from langgraph.store.dynamodb import DynamoDBStore

from .._operations.overview import threads_of_run
from .._runtime.steps import Op
from ..errors import CheckpointerInputError, CheckpointNotFoundError
from . import documents
from .changes import changes
from .directory import directory
from .memories import memories
from .namespace_view import NamespaceView
from .node import Node
from .nodes import PARTS_MAX, Shower
from .search import search
from .state import pending, state, value_at
from .thread_view import Session
from .threads import thread_document
from .tree import ROWS, ROWS_MAX, tree

T = TypeVar("T")
_DOCUMENTS = "start directory memories threads thread tree state part changes search pending"
_Text = Annotated[str, Field(min_length=1)]
_Limit = Annotated[int, Field(ge=1, le=ROWS_MAX)]
_Status = Literal["idle", "waiting", "failed"] | None
_Path = Json[list[StrictStr | StrictInt]]
_PART_TEXT_MAX = 256 * 1024


class Responses:
    """Answers the page's requests from one session. `documents` lists them: each has a method of its name."""

    def __init__(
        self,
        session: Session,
        thread_id: str | None = None,
        open_store: Callable[[], DynamoDBStore] | None = None,
    ) -> None:
        """Store the session, the thread that the page begins with, and what opens the store of memories."""
        self._session = session
        self._thread_id = thread_id
        self._open_store = open_store
        self.table_name = session.storage.table.name
        self._documents: dict[str, Callable[..., Any]] = {
            name: validate_call(getattr(self, name)) for name in _DOCUMENTS.split()
        }

    def answer(self, name: str, parameters: Mapping[str, str]) -> Any:
        """Return the document that answers a request.

        Args:
            name: The document's name.
            parameters: The parameters by their names.

        Raises:
            CheckpointNotFoundError: There is no such document, thread or checkpoint.
            CheckpointerInputError: A parameter is missing, or cannot be used.
        """
        answer = self._documents.get(name)
        if answer is None:
            msg = f"there is no document {name!r}"
            raise CheckpointNotFoundError(msg)
        try:
            return answer(**parameters)
        except ValidationError as error:
            wrong = [f"the parameter {each['loc'][0]!r}: {each['msg']}" for each in error.errors()]
            raise CheckpointerInputError("; ".join(wrong)) from error

    def start(self) -> documents.Start:
        """Return what the page begins with."""
        return documents.Start(table=self.table_name, thread=self._thread_id)

    def directory(
        self, owner: str | None = None, title: str = "", status: _Status = None, before: str | None = None
    ) -> documents.Directory:
        """Return a page of the list of threads."""
        return self._session.run(directory(self._session.storage, owner, title, status, before))

    def memories(self, of: _Text, offset: NonNegativeInt = 0) -> documents.MemoriesDocument:
        """Return memories of an owner or under a namespace."""
        if self._open_store is None:
            msg = "this page has no store of memories"
            raise CheckpointerInputError(msg)
        return memories(self._open_store(), of, offset)

    def threads(self, run: str) -> documents.ThreadsDocument:
        """Return the threads of a run."""
        found = self._session.run(threads_of_run(self._session.storage, run))
        return documents.ThreadsDocument(threads=found)

    def thread(self, thread: str) -> documents.ThreadDocument:
        """Return a thread, which is read again."""
        with self._session.opened(thread, anew=True) as view:
            return self._session.run(thread_document(view, Shower()))

    def tree(self, thread: str, ns: str, before: str | None = None, limit: _Limit = ROWS) -> documents.Tree:
        """Return some checkpoints of a namespace."""
        return self._in_namespace(thread, ns, lambda namespace: tree(namespace, before, limit))

    def state(self, thread: str, ns: str, checkpoint: str) -> documents.StateDocument:
        """Return the contents of a checkpoint."""
        return self._in_checkpoint(thread, ns, checkpoint, state, Shower())

    def part(self, thread: str, ns: str, checkpoint: str, path: _Path, start: NonNegativeInt = 0) -> Node:
        """Return more of a value that was cut."""
        value = self._in_checkpoint(thread, ns, checkpoint, value_at, path)
        return Shower(text_max=_PART_TEXT_MAX, parts_max=5 * PARTS_MAX).node(value, start=start)

    def changes(self, thread: str, ns: str, checkpoint: str) -> documents.Changes:
        """Return the changes of a checkpoint against its parent."""
        return self._in_checkpoint(thread, ns, checkpoint, changes, Shower())

    def search(self, thread: str, text: _Text, cursor: NonNegativeInt = 0) -> documents.SearchDocument:
        """Return places where a text appeared."""
        with self._session.opened(thread) as view:
            return self._session.run(search(view, text, cursor))

    def pending(self, thread: str, ns: str, checkpoint: str) -> documents.Pending:
        """Return what the tasks of a checkpoint have stored."""
        return self._in_checkpoint(thread, ns, checkpoint, pending, Shower())

    def _in_namespace(self, thread: str, ns: str, make: Callable[[NamespaceView], Op[T]]) -> T:
        with self._session.opened(thread) as view:
            found = self._session.run(view.namespace(ns))
            return self._session.run(make(found))

    def _in_checkpoint(
        self, thread: str, ns: str, checkpoint: str, make: Callable[..., Op[T]], *arguments: object
    ) -> T:
        with self._session.opened(thread) as view:
            found = self._session.run(view.checkpoint(ns, checkpoint))
            return self._session.run(make(*found, *arguments))
