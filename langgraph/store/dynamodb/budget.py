"""Reading all that is under a namespace, within what one search may read."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import SearchLimitError

from . import keys
from .register import partitions_under
from .storage import StoreStorage


class Budget:
    """Counts what one search reads, and raises before it is too much."""

    def __init__(self, storage: StoreStorage, namespace: Sequence[str]) -> None:
        """Start with nothing read."""
        self._left = storage.search_bytes_max
        self._on_read = storage.on_read
        self._message = (
            f"A search of namespace {tuple(namespace)} reads more than search_bytes_max, {self._left} bytes. Search a"
            ' longer namespace, read it in pages with order="key" and after=, or give the store a larger'
            " search_bytes_max."
        )

    def has(self, size_bytes: int) -> bool:
        """Tell whether so many bytes may still be read."""
        return size_bytes <= self._left

    def take(self, size_bytes: int) -> None:
        """Count bytes that were read.

        Raises:
            SearchLimitError: They are too many.
        """
        self._on_read(size_bytes)
        self._left -= size_bytes
        if self._left < 0:
            raise SearchLimitError(self._message)


def read_under(storage: StoreStorage, namespace: Sequence[str], kind: str, budget: Budget) -> Op[list[Item]]:
    """Read all items of one kind under a namespace."""
    partitions = yield from partitions_under(storage, namespace)
    prefix = keys.path_prefix(kind, namespace)
    read = [
        _read(storage, Query(pk, prefix=prefix, consistent=storage.consistent_read), budget)
        for pk in partitions
    ]
    return [item for each in (yield from gather(read)) for item in each]


def _read(storage: StoreStorage, query: Query, budget: Budget) -> Op[list[Item]]:
    found: list[Item] = []
    while not query.done:
        page = yield from storage.table.query_page(query)
        budget.take(sum(map(item_bytes, page)))
        found += page
    return found
