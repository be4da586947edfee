"""`list_namespaces`: find the namespaces that have memories, one small query each."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraph.checkpoint.dynamodb._format.items import is_expired
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather

from . import memory_items
from .keys import MEMORIES, after, parse_address, path_prefix
from .register import partitions_under
from .storage import StoreStorage

_ANY = "*"


def list_namespaces(
    storage: StoreStorage, wanted: ListNamespacesOp, under: tuple[str, ...] = ()
) -> Op[list[tuple[str, ...]]]:
    """List namespaces that have memories: filtered, cut, without duplicates, sorted, and then limited.

    Args:
        storage: The storage.
        wanted: What to list.
        under: Labels that all of them begin with.
    """
    conditions = wanted.match_conditions or ()
    prefix = max((_literal(each) for each in conditions if each.match_type == "prefix"), key=len, default=())
    narrowed = narrower(prefix, under)
    if narrowed is None:
        return []
    found = yield from namespaces_under(storage, narrowed)
    kept = {
        each[: wanted.max_depth] for each in found if all(_holds(condition, each) for condition in conditions)
    }
    return sorted(kept)[wanted.offset : wanted.offset + wanted.limit]


def narrower(prefix: tuple[str, ...], under: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the longer one of two prefixes; `None` if no namespace has both."""
    length = min(len(prefix), len(under))
    return max(prefix, under, key=len) if prefix[:length] == under[:length] else None


def _literal(condition: MatchCondition) -> tuple[str, ...]:
    """Return the labels of a path before its first wildcard."""
    path = tuple(condition.path)
    return path[: path.index(_ANY)] if _ANY in path else path


def _holds(condition: MatchCondition, namespace: Sequence[str]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    labels = namespace[start : start + len(path)]
    return all(wanted in (_ANY, label) for label, wanted in zip(labels, path, strict=True))


def namespaces_under(storage: StoreStorage, prefix: Sequence[str]) -> Op[list[tuple[str, ...]]]:
    """Find every namespace with memories under a prefix."""
    partitions = yield from partitions_under(storage, prefix)
    found = yield from gather(
        [_in_partition(storage, pk, path_prefix(MEMORIES, prefix)) for pk in partitions]
    )
    return [namespace for each in found for namespace in each]


def _in_partition(storage: StoreStorage, pk: str, prefix: str) -> Op[list[tuple[str, ...]]]:
    """Find the namespaces of one partition: from a memory of one, go on behind all memories of that namespace."""
    found: list[tuple[str, ...]] = []
    query: Query | None = _keys(storage, pk, prefix, prefix)
    while query is not None and not query.done:
        page = yield from storage.table.query_page(query)
        live = [each for each in page if not is_expired(each, storage.clock())]
        if live:
            namespace = parse_address(live[0]).namespace
            found.append(namespace)
            # A `#` follows a namespace's own labels, and sorts before every label of those below it.
            query = _keys(storage, pk, after(f"{path_prefix(MEMORIES, namespace)}#"), prefix)
    return found


def _keys(storage: StoreStorage, pk: str, first: str, prefix: str) -> Query:
    return Query(
        pk,
        between=(first, after(prefix)),
        consistent=storage.consistent_read,
        first_page=1,
        attributes=(PARTITION_KEY, SORT_KEY, *memory_items.LIVE_ATTRIBUTES),
    )
