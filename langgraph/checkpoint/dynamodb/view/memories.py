"""The memories of an owner, or under a namespace."""

from __future__ import annotations

from urllib.parse import unquote

from langgraph.store.base import InvalidNamespaceError

from langgraph.store.dynamodb import DynamoDBStore

from ..errors import CheckpointerInputError
from .documents import MemoriesDocument, MemoryDocument
from .nodes import Shower

_PAGE_MEMORIES = 20


def memories(store: DynamoDBStore, of: str, offset: int) -> MemoriesDocument:
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
    return MemoriesDocument(
        memories=[
            MemoryDocument(
                namespace=list(each.namespace),
                key=each.key,
                updated_at=each.updated_at.isoformat(),
                value=shower.node(each.value),
            )
            for each in shown
        ],
        offset=wanted - 1 if len(found) >= wanted else None,
    )
