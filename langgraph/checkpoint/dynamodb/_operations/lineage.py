"""The way back from a checkpoint through its parents, which needs neither a serializer nor a key."""

from __future__ import annotations

from collections.abc import Callable

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._operations.reads import Group, History, find
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op


class Lineage:
    """A namespace's checkpoints by their ids: history is read in pages, and what is out of order alone."""

    def __init__(self, table: Table, at: Partition, *, below: str | None = None) -> None:
        """Start from below a checkpoint, or from the newest."""
        self._table = table
        self._at = at
        # A checkpoint may be rebuilt from what is too old to be read by itself.
        self._history = History(table, at, below=below, as_ancestors=True)
        self.read: dict[str, Group] = {}

    def newest(self) -> Op[Group | None]:
        """The newest checkpoint of the namespace."""
        yield from self._next_page(0)
        return next(iter(self.read.values()), None)

    def group(self, checkpoint_id: str, at_least: Callable[[], int]) -> Op[Group | None]:
        """A checkpoint's items, of which each page that is read has `at_least()` many."""
        # Ids only ascend within one process, so a parent may lie outside the range that history is read in.
        while checkpoint_id not in self.read and not self._history.done:
            groups = yield from self._next_page(at_least())
            if groups and groups[-1].checkpoint_id < checkpoint_id:
                break
        if checkpoint_id not in self.read:
            return (yield from find(self._table, self._at, checkpoint_id, as_ancestor=True))
        return self.read[checkpoint_id]

    def back(self, head: Item, last: str, count: int | None = None) -> Op[list[Group]]:
        """Walk from a head's parent to an ancestor, or as far as there are parents, or `count` of them."""
        path, passed = list[Group](), {items.checkpoint_id_of(head)}
        while (not path or path[-1].checkpoint_id != last) and len(path) != count:
            parent_id = items.text(head, items.PARENT)
            if parent_id is None or parent_id in passed:
                # The first checkpoint; or one that was put again as a child of its own descendants.
                break
            passed.add(parent_id)
            group = yield from self.group(parent_id, lambda: 0)
            if group is None:
                break
            path.append(group)
            head = group.head
        return path

    def _next_page(self, at_least: int) -> Op[list[Group]]:
        groups = yield from self._history.page(at_least)
        self.read |= {group.checkpoint_id: group for group in groups}
        return groups
