"""Reading a checkpoint's ancestors, without a serializer or a key."""

from __future__ import annotations

from collections.abc import Callable

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._operations.reads import NamespaceReader, StoredCheckpoint, find
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage


class AncestorReader:
    """Reads checkpoints of a namespace by id: in pages, newest first, and one alone if it is out of order."""

    def __init__(self, storage: Storage, partition: Partition, *, below: str | None = None) -> None:
        """Start below a checkpoint, or at the newest one."""
        self._storage = storage
        self._partition = partition
        # A checkpoint may be rebuilt from ancestors that have expired for readers.
        self._history = NamespaceReader(storage, partition, below=below, as_ancestors=True)
        self.read: dict[str, StoredCheckpoint] = {}

    def newest(self) -> Op[StoredCheckpoint | None]:
        """Return the newest checkpoint of the namespace."""
        yield from self._next_page(0)
        return next(iter(self.read.values()), None)

    def checkpoint(self, checkpoint_id: str, at_least: Callable[[], int]) -> Op[StoredCheckpoint | None]:
        """Return the items of a checkpoint. Each page that has to be read has `at_least()` items or more."""
        # Ids only ascend within one process, so a parent may lie outside the range that history is read in.
        while checkpoint_id not in self.read and not self._history.done:
            checkpoints = yield from self._next_page(at_least())
            if checkpoints and checkpoints[-1].checkpoint_id < checkpoint_id:
                break
        if checkpoint_id not in self.read:
            return (yield from find(self._storage, self._partition, checkpoint_id, as_ancestor=True))
        return self.read[checkpoint_id]

    def back(self, head: Item, last: str) -> Op[list[StoredCheckpoint]]:
        """Walk back from a head's parent to the ancestor `last`, or to the first checkpoint."""
        path, passed = list[StoredCheckpoint](), {items.checkpoint_id_of(head)}
        while not path or path[-1].checkpoint_id != last:
            parent_id = items.text(head, items.PARENT)
            if parent_id is None or parent_id in passed:
                # This is the first checkpoint, or one that was put again as a child of its own descendants.
                break
            passed.add(parent_id)
            checkpoint = yield from self.checkpoint(parent_id, lambda: 0)
            if checkpoint is None:
                break
            path.append(checkpoint)
            head = checkpoint.head
        return path

    def _next_page(self, at_least: int) -> Op[list[StoredCheckpoint]]:
        checkpoints = yield from self._history.page(at_least)
        self.read |= {checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints}
        return checkpoints
