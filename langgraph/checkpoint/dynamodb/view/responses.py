"""The requests of the page and their responses: names and parameters in, documents out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import unquote

from langgraph.store.base import InvalidNamespaceError
from pydantic import Field, Json, NonNegativeInt, StrictInt, StrictStr, ValidationError, validate_call

from langgraph.store.dynamodb import DynamoDBStore

from .._operations.error_collector import OF_ONE_THREAD
from .._operations.overview import threads_of_run
from .._operations.threads import ThreadQuery, ThreadSummary, list_threads, look_up
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from ..errors import CheckpointerInputError, CheckpointNotFoundError
from . import documents, namespace_view, state, thread_view
from .nodes import PARTS_MAX, Node, Shower
from .tree import ROWS, ROWS_MAX, tree

T = TypeVar("T")
_DOCUMENTS = "start directory memories threads thread tree state part changes search pending"
_Text = Annotated[str, Field(min_length=1)]
_Limit = Annotated[int, Field(ge=1, le=ROWS_MAX)]
_Status = Literal["idle", "waiting", "failed"] | None
_Path = Json[list[StrictStr | StrictInt]]
_PART_TEXT_MAX = 256 * 1024
PAGE_THREADS = 20
# A title is sealed, so DynamoDB cannot look for it. A search reads this many threads at a time, and in one request.
_SEARCHED_THREADS = 200
_LOOKED_AT_MAX = 1000
_PAGE_MEMORIES = 20


class Responses:
    """The responses to the page's requests, from one session. `documents` lists them: each has a method of its name."""

    def __init__(
        self,
        session: thread_view.Session,
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

    def document(self, name: str, parameters: Mapping[str, str]) -> Any:
        """Return the document that a request asks for.

        Args:
            name: The document's name.
            parameters: The parameters by their names.

        Raises:
            CheckpointNotFoundError: There is no such document, thread or checkpoint.
            CheckpointerInputError: A parameter is missing, or cannot be used.
        """
        make = self._documents.get(name)
        if make is None:
            raise CheckpointNotFoundError(f"there is no document {name!r}")
        try:
            return make(**parameters)
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
            raise CheckpointerInputError("this page has no store of memories")
        return memories(self._open_store(), of, offset)

    def threads(self, run: str) -> documents.ThreadsDocument:
        """Return the threads of a run."""
        found = self._session.run(threads_of_run(self._session.storage, run))
        return documents.ThreadsDocument(threads=found)

    def thread(self, thread: str) -> documents.ThreadDocument:
        """Return a thread, which is read again."""
        with self._session.opened(thread, anew=True) as view:
            return self._session.run(thread_view.thread_document(view, Shower()))

    def tree(self, thread: str, ns: str, before: str | None = None, limit: _Limit = ROWS) -> documents.Tree:
        """Return some checkpoints of a namespace."""
        return self._in_namespace(thread, ns, lambda namespace: tree(namespace, before, limit))

    def state(self, thread: str, ns: str, checkpoint: str) -> documents.StateDocument:
        """Return the contents of a checkpoint."""
        return self._in_checkpoint(thread, ns, checkpoint, state.state, Shower())

    def part(self, thread: str, ns: str, checkpoint: str, path: _Path, start: NonNegativeInt = 0) -> Node:
        """Return more of a value that was cut."""
        value = self._in_checkpoint(thread, ns, checkpoint, state.value_at, path)
        return Shower(text_max=_PART_TEXT_MAX, parts_max=5 * PARTS_MAX).node(value, start=start)

    def changes(self, thread: str, ns: str, checkpoint: str) -> documents.Changes:
        """Return the changes of a checkpoint against its parent."""
        return self._in_checkpoint(thread, ns, checkpoint, state.changes, Shower())

    def search(self, thread: str, text: _Text, cursor: NonNegativeInt = 0) -> documents.SearchDocument:
        """Return places where a text appeared."""
        with self._session.opened(thread) as view:
            return self._session.run(thread_view.search(view, text, cursor))

    def pending(self, thread: str, ns: str, checkpoint: str) -> documents.Pending:
        """Return what the tasks of a checkpoint have stored."""
        return self._in_checkpoint(thread, ns, checkpoint, state.pending, Shower())

    def _in_namespace(self, thread: str, ns: str, make: Callable[[namespace_view.NamespaceView], Op[T]]) -> T:
        with self._session.opened(thread) as view:
            found = self._session.run(view.namespace(ns))
            return self._session.run(make(found))

    def _in_checkpoint(
        self, thread: str, ns: str, checkpoint: str, make: Callable[..., Op[T]], *arguments: object
    ) -> T:
        with self._session.opened(thread) as view:
            found = self._session.run(view.checkpoint(ns, checkpoint))
            return self._session.run(make(*found, *arguments))


def directory(
    storage: Storage, owner: str | None, title: str, status: str | None, before: str | None
) -> Op[documents.Directory]:
    """Return a page of an owner's threads, or of all: those with a status, and a text in their title in any case."""
    limit, wanted = (_SEARCHED_THREADS if title or status else PAGE_THREADS), title.casefold()
    threads, looked_at = list[documents.ListedThread](), 0
    while True:
        page = yield from list_threads(storage, ThreadQuery(owner=owner, limit=limit, before=before))
        looked_at, before = looked_at + len(page.threads), page.cursor
        named = [each for each in page.threads if wanted in (each.title or "").casefold()]
        listed = yield from gather([_listed(storage, each) for each in named])
        threads += [each for each in listed if status is None or each["status"] == status]
        if before is None or len(threads) >= PAGE_THREADS or looked_at >= _LOOKED_AT_MAX:
            break
    return documents.Directory(threads=threads, looked_at=looked_at, before=before)


def _listed(storage: Storage, summary: ThreadSummary) -> Op[documents.ListedThread]:
    """Look up the status of a thread. One that is damaged hides no other."""
    problem = None
    try:
        newest = yield from look_up(storage, summary.thread_id)
        summary = replace(summary, status=newest.status, step=newest.step)
    except OF_ONE_THREAD as error:
        summary, problem = replace(summary, status=None), str(error)
    return documents.ListedThread(
        thread=summary.thread_id,
        owner=summary.owner,
        title=summary.title,
        last_active=None if summary.last_active is None else summary.last_active.isoformat(),
        status=summary.status,
        step=summary.step,
        problem=problem,
    )


def memories(store: DynamoDBStore, of: str, offset: int) -> documents.MemoriesDocument:
    """Return a page of memories, newest first. A name alone is also the owner's in a namespace such as `users/ada`."""
    labels = tuple(unquote(each) for each in of.split("/"))
    wanted = offset + _PAGE_MEMORIES + 1
    try:
        found = store.search(labels, limit=wanted, refresh_ttl=False)
    except InvalidNamespaceError as error:
        raise CheckpointerInputError(f"the namespace {of!r} cannot be used: {error}") from error
    owned = store.list_namespaces(prefix=("*", *labels), max_depth=2, limit=1000) if len(labels) == 1 else []
    for space in owned:
        found += store.search(space, limit=wanted, refresh_ttl=False)
    found.sort(key=lambda each: each.updated_at, reverse=True)
    shown, shower = found[offset : wanted - 1], Shower()
    return documents.MemoriesDocument(
        memories=[
            documents.MemoryDocument(
                namespace=list(each.namespace),
                key=each.key,
                updated_at=each.updated_at.isoformat(),
                value=shower.node(each.value),
            )
            for each in shown
        ],
        offset=wanted - 1 if len(found) >= wanted else None,
    )
