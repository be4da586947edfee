"""A thread exported as one file, which shows the same page without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
)
from langgraph.checkpoint.dynamodb.view.changes import changes
from langgraph.checkpoint.dynamodb.view.cost import cost
from langgraph.checkpoint.dynamodb.view.documents import Start
from langgraph.checkpoint.dynamodb.view.exported import Export
from langgraph.checkpoint.dynamodb.view.masks import Masks, without_patterns
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView
from langgraph.checkpoint.dynamodb.view.sharing import SharingShower
from langgraph.checkpoint.dynamodb.view.state import pending, state
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from langgraph.checkpoint.dynamodb.view.threads import thread_document
from langgraph.checkpoint.dynamodb.view.tree import tree

CUT_BYTES = 1024 * 1024
# All checkpoints of a namespace are one page.
_ALL = 1 << 62


class Exporter:
    """Collects the documents of a thread."""

    def __init__(self, session: Session, masks: Masks, tell: Callable[[int, int], None]) -> None:
        """Prepare an export.

        Args:
            session: The session that reads the thread.
            masks: The rules of what is masked.
            tell: Called with the number of finished checkpoints, and of all.
        """
        self._session = session
        self._masks = masks
        self._tell = tell
        self._shower = SharingShower(masks, CUT_BYTES)
        self._documents: dict[str, Any] = {}

    def export(self, thread_id: str) -> Export:
        """Return all that the page shows of a thread.

        Raises:
            CheckpointNotFoundError: The thread has no checkpoint.
            CheckpointerInputError: Masking makes two checkpoints or namespaces the same.
        """
        with self._session.opened(thread_id) as thread:
            namespaces = self._session.run(thread.namespaces())
            for namespace in namespaces:
                self._session.run(namespace.read_to_end())
            of = sum(len(namespace.rows) for namespace in namespaces)
            if not of:
                msg = f"thread {thread_id!r} has no checkpoint; `threads` lists the threads that there are"
                raise CheckpointNotFoundError(msg)
            self._add("start", {}, Start(table=self._session.storage.table.name, thread=thread_id))
            document = self._session.run(thread_document(thread, self._shower))
            self._add("thread", {"thread": thread_id}, document)
            done = 0
            for namespace in namespaces:
                self._namespace(namespace)
                for checkpoint in namespace.rows:
                    self._checkpoint(namespace, checkpoint)
                    done += 1
                    self._tell(done, of)
        return Export(
            made_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            masks=self._masks.told(),
            cut_bytes=CUT_BYTES,
            shared=[without_patterns(each, self._masks) for each in self._shower.shared],
            documents=self._documents,
        )

    def _namespace(self, namespace: NamespaceView) -> None:
        address = {"thread": namespace.partition.thread_id, "ns": namespace.partition.namespace}
        self._add_readable("tree", address, tree(namespace, None, _ALL, lambda: self._shower))
        self._add_readable("cost", address, cost(namespace))

    def _checkpoint(self, namespace: NamespaceView, checkpoint: StoredCheckpoint) -> None:
        address = {
            "thread": namespace.partition.thread_id,
            "ns": namespace.partition.namespace,
            "checkpoint": checkpoint.checkpoint_id,
        }
        parent = self._session.run(namespace.parent(checkpoint))
        self._add_readable("state", address, state(namespace, checkpoint, self._shower))
        self._add_readable("changes", address, changes(namespace, checkpoint, parent, self._shower))
        self._add_readable("pending", address, pending(namespace, checkpoint, self._shower))

    def _add_readable(self, name: str, parameters: Mapping[str, str], operation: Op[Any]) -> None:
        """Add a document, unless its checkpoint is damaged, which the tree shows."""
        try:
            document = self._session.run(operation)
        except (CheckpointCorruptionError, CheckpointFormatError):
            return
        self._add(name, parameters, document)

    def _add(self, name: str, parameters: Mapping[str, str], document: Any) -> None:
        shown = without_patterns(dict(parameters), self._masks)
        key = address(name, shown)
        if key in self._documents:
            msg = "what is masked makes two checkpoints or namespaces the same; give a narrower expression"
            raise CheckpointerInputError(msg)
        self._documents[key] = without_patterns(document, self._masks)


def address(name: str, parameters: Mapping[str, str]) -> str:
    """Return the request that a document answers, in the form that the page writes."""
    # What `encodeURIComponent` leaves as it is.
    safe = "!'()*-._~"
    given = "&".join(f"{key}={quote(each, safe=safe)}" for key, each in parameters.items())
    return f"api/{name}?{given}" if given else f"api/{name}"
