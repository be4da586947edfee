"""`search`: read what is under a namespace, filter it here, and put it in order.

A filter of DynamoDB saves no read units, and cannot look into sealed values. So a search costs what is under its
namespace, in pages of up to a megabyte, up to a bound. Only in the order of keys it stops once it has enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langgraph.store.base import Item as StoredItem

from langgraph.checkpoint.dynamodb._format.items import Item, key, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.limits import PAGE_ITEMS_FIRST
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import SearchLimitError
from langgraph.store.dynamodb import keys
from langgraph.store.dynamodb.budget import Budget, read_under
from langgraph.store.dynamodb.keys import Address
from langgraph.store.dynamodb.memory_items import StoredMemory, parse_memory
from langgraph.store.dynamodb.reads import LoadedMemory, in_microseconds, load
from langgraph.store.dynamodb.register import partitions_under
from langgraph.store.dynamodb.similarity import Scored, Scores, SimilarityQuery
from langgraph.store.dynamodb.storage import StoreStorage
from langgraph.store.dynamodb.values import matches

Order: TypeAlias = Literal["updated_at", "created_at", "key"]
ORDERS: Sequence[Order] = ("updated_at", "created_at", "key")
_Found: TypeAlias = tuple[LoadedMemory, float]
# Where there is a filter, values are opened in groups until enough match.
_GROUP = 64


@dataclass(frozen=True)
class Search:
    """A search that has been checked."""

    namespace: tuple[str, ...]
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    similar_to: SimilarityQuery | None = None
    order: Order = "updated_at"
    after: StoredItem | None = None

    @property
    def needed(self) -> int:
        """How many matching memories to find."""
        return self.offset + self.limit

    def place(self, memory: StoredMemory, address: Address) -> tuple[Any, ...]:
        """Return what memories are sorted by: the newest first, or by key."""
        if self.order == "key":
            return address.pk, address.sk
        newest = memory.updated_us if self.order == "updated_at" else memory.created_us
        return -newest, address.pk, address.sk

    def start(self) -> tuple[Any, ...] | None:
        """Return the place of the memory behind which to go on; `None` for the beginning."""
        if self.after is None:
            return None
        address = keys.address_of(self.after.namespace, self.after.key)
        if self.order == "key":
            return address.pk, address.sk
        return -in_microseconds(getattr(self.after, self.order)), address.pk, address.sk


def search(storage: StoreStorage, wanted: Search) -> Op[list[Scored]]:
    """Find memories under a namespace.

    Raises:
        SearchLimitError: It would read too much.
    """
    if not wanted.limit:
        return []
    budget = Budget(storage, wanted.namespace)
    if wanted.similar_to is not None:
        found = yield from _by_score(storage, wanted, wanted.similar_to, budget)
    elif wanted.order == "key":
        found = yield from _by_key(storage, wanted, budget)
    else:
        memories = yield from _memories(storage, wanted, budget)
        found = yield from _matching(storage, wanted, memories, wanted.needed, budget)
    return found[wanted.offset : wanted.needed]


def _memories(storage: StoreStorage, wanted: Search, budget: Budget) -> Op[list[StoredMemory]]:
    """Read the memories under a namespace, in order."""
    found = yield from read_under(storage, wanted.namespace, keys.MEMORIES, budget)
    memories = [each for each in (parse_memory(item, storage.clock()) for item in found) if each is not None]
    places = [(wanted.place(each, keys.parse_address(each.item)), each) for each in memories]
    start = wanted.start()
    later = [each for each in places if start is None or each[0] > start]
    return [memory for _, memory in sorted(later, key=lambda each: each[0])]


def _matching(
    storage: StoreStorage, wanted: Search, memories: Sequence[StoredMemory], needed: int, budget: Budget
) -> Op[list[Scored]]:
    """Open memories in order until enough of them match."""
    found: list[Scored] = []
    group = _GROUP if wanted.filter else max(1, needed)
    for start in range(0, len(memories), group):
        if len(found) >= needed:
            break
        loaded = yield from _open(storage, [each.item for each in memories[start : start + group]], budget)
        found += [(each, None) for each in loaded if matches(each.value, wanted.filter)]
    return found[:needed]


def _open(storage: StoreStorage, found: Iterable[Item], budget: Budget) -> Op[list[LoadedMemory]]:
    loaded = [each for each in (yield from load(storage, found)) if each is not None]
    budget.take(sum(each.segment_bytes for each in loaded))
    return loaded


def _by_key(storage: StoreStorage, wanted: Search, budget: Budget) -> Op[list[Scored]]:
    """Read memories in the order of their keys, and no more than are needed."""
    start = wanted.start()
    prefix = keys.path_prefix(keys.MEMORIES, wanted.namespace)
    found: list[Scored] = []
    for pk in (yield from partitions_under(storage, wanted.namespace)):
        if start is not None and pk < start[0]:
            continue
        first = max(prefix, start[1]) if start is not None and pk == start[0] else prefix
        if first >= keys.after(prefix):
            continue
        query = Query(
            pk,
            between=(first, keys.after(prefix)),
            consistent=storage.consistent_read,
            first_page=max(PAGE_ITEMS_FIRST, wanted.needed + 1),
        )
        while not query.done and len(found) < wanted.needed:
            page = yield from storage.table.query_page(query)
            budget.take(sum(map(item_bytes, page)))
            memories = [
                memory
                for memory in (parse_memory(item, storage.clock()) for item in page)
                if memory is not None
                and (start is None or wanted.place(memory, keys.parse_address(memory.item)) > start)
            ]
            found += yield from _matching(storage, wanted, memories, wanted.needed - len(found), budget)
    return found


def _by_score(
    storage: StoreStorage, wanted: Search, query: SimilarityQuery, budget: Budget
) -> Op[list[Scored]]:
    """Find the memories whose vectors are most similar to a query; those without vectors come last."""
    candidates = yield from query.vectors.candidates(
        storage, wanted.namespace, wanted.needed, query.embedding, budget
    )
    mismatched: set[str] = set()
    found = yield from _best(storage, wanted, query, candidates.scores, mismatched, budget)
    if len(found) >= wanted.needed:
        return _ranked(found)
    if candidates.limit is not None:
        # There are more vectors, and the memories that match may be among them.
        msg = (
            f"A search by similarity in namespace {wanted.namespace} found {len(found)} of {wanted.needed} memories"
            f" among the {candidates.limit} most similar vectors, which is all that the engine returns. Ask for fewer,"
            " or search a longer namespace; the exact search has no such limit."
        )
        raise SearchLimitError(msg)
    memories = yield from _memories(storage, wanted, budget)
    rest = [each for each in _besides(found, memories) if each.revision not in mismatched]
    # What was stored since the vectors were read has vectors, too.
    new = [each.item for each in rest if each.vectors]
    for each in (yield from _open(storage, new, budget)):
        found += yield from _scored(storage, wanted, query, candidates.scores, each)
    missing = max(0, wanted.needed - len(found))
    unscored = yield from _matching(storage, wanted, _besides(found, rest), missing, budget)
    return _ranked(found) + unscored


def _best(
    storage: StoreStorage,
    wanted: Search,
    query: SimilarityQuery,
    scores: Scores,
    mismatched: set[str],
    budget: Budget,
) -> Op[list[_Found]]:
    """Open the memories with the best scores, until enough of them match and none of the others can be better.

    Args:
        storage: The storage.
        wanted: The search.
        query: What they are compared with.
        scores: The scores.
        mismatched: Gets the revisions of those that do not match.
        budget: Counts what is read.
    """
    ranked = sorted(scores, key=lambda each: (-max(scores[each].values()), each))
    found: list[_Found] = []
    group = _GROUP if wanted.filter else wanted.needed
    for start in range(0, len(ranked), group):
        bound = max(scores[ranked[start]].values())
        if sum(score >= bound for _, score in found) >= wanted.needed:
            break
        best = [key(pk, sk) for pk, sk in ranked[start : start + group]]
        items = yield from storage.table.batch_get(best, consistent=storage.consistent_read)
        for each in (yield from _open(storage, items, budget)):
            if not matches(each.value, wanted.filter):
                mismatched.add(each.memory.revision)
            found += yield from _scored(storage, wanted, query, scores, each)
    return found


def _scored(
    storage: StoreStorage, wanted: Search, query: SimilarityQuery, scores: Scores, loaded: LoadedMemory
) -> Op[list[_Found]]:
    """Return a memory with its score; nothing if it does not match, or has no score."""
    score = scores.get((loaded.address.pk, loaded.address.sk), {}).get(loaded.memory.revision)
    found: Scored | None = (loaded, score)
    if score is None and loaded.memory.vectors:
        found = yield from query.vectors.score(storage, loaded, query.embedding)
    if found is None or found[1] is None or not matches(found[0].value, wanted.filter):
        return []
    return [(found[0], found[1])]


def _ranked(found: Sequence[_Found]) -> list[Scored]:
    return [*sorted(found, key=lambda each: (-each[1], each[0].address.pk, each[0].address.sk))]


def _besides(found: Sequence[_Found], memories: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Return the memories that were not found."""
    seen = {(each.address.pk, each.address.sk) for each, _ in found}
    return [each for each in memories if _place(each) not in seen]


def _place(memory: StoredMemory) -> tuple[str, str]:
    return partition_key(memory.item), sort_key(memory.item)
