"""`search`: read what is under a namespace, filter it here, and put it in order.

A filter of DynamoDB saves no read units, and cannot look into sealed values. So a search costs what is under its
namespace, in pages of up to a megabyte, up to a bound. Only in the order of keys it stops once it has enough.

What a search has read and not returned is a *listing*, from which a search for the next page goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from langgraph.store.base import Item as StoredItem

from langgraph.checkpoint.dynamodb._format import limits, pricing
from langgraph.checkpoint.dynamodb._format.items import Item, key, partition_key, sort_key
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import SearchLimitError

from . import json_values, keys
from .memory_items import StoredMemory, parse_memory
from .partitions import BoundedReader, partitions_under
from .reads import LoadedMemory, in_microseconds, load, packed_bytes
from .resources import Listings, StoreStorage
from .similarity import Candidates, Scored, SimilarityQuery

Order: TypeAlias = Literal["updated_at", "created_at", "key"]
ORDERS: Sequence[Order] = ("updated_at", "created_at", "key")
_Found: TypeAlias = tuple[LoadedMemory, float]
# Where there is a filter, values are opened in groups until enough match. Otherwise no more at once than one request
# reads.
_GROUP = 64
_GROUP_MAX = limits.BATCH_GET_ITEMS_MAX
# By similarity, so many groups are read by their keys. If they do not suffice, matches are rare, and a query reads all
# for less.
_GROUPS_BY_KEY = 2
# What a memory takes in this process beside the bytes of its item, and what a score takes.
_MEMORY_BYTES = 2_000
_SCORE_BYTES = 500


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

    @property
    def signature(self) -> Hashable:
        """All that searches for pages of one list have in common."""
        similar_to = None if self.similar_to is None else tuple(self.similar_to.embedding)
        return self.namespace, repr(self.filter), self.limit, self.order, self.start(), similar_to

    def place(self, memory: StoredMemory, address: keys.Address) -> tuple[Any, ...]:
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
    listings: Listings[SearchListing] = storage.listings
    listing, skipped = listings.take(wanted.signature, wanted.offset, storage.clock()), 0
    if listing is None:
        listing, skipped = listings.begin(_listing(storage, wanted)), wanted.offset
    found = yield from listing.next(skipped + wanted.limit)
    if len(found) == skipped + wanted.limit and listing.has_all:
        listings.keep(wanted.signature, wanted.needed, listing, storage.clock())
    return found[skipped:]


def _listing(storage: StoreStorage, wanted: Search) -> SearchListing:
    if wanted.similar_to is not None:
        return _ByScore(storage, wanted, wanted.similar_to)
    return _ByKey(storage, wanted) if wanted.order == "key" else _ByTime(storage, wanted)


class SearchListing(ABC):
    """The memories that a search has read, and not returned."""

    def __init__(self, storage: StoreStorage, wanted: Search) -> None:
        """Start with nothing read."""
        self.namespace = wanted.namespace
        self.read_at = storage.clock()
        self.changes_before = 0
        self._storage = storage
        self._reader = BoundedReader(storage, wanted.namespace)
        self._wanted = wanted
        self._start = wanted.start()
        # Memories that are not opened, in order, and those that are and match.
        self._unopened: list[StoredMemory] = []
        self._matches: list[Scored] = []

    @property
    def has_all(self) -> bool:
        """Whether it can return all that match."""
        return True

    @property
    def size_bytes(self) -> int:
        """The estimated memory that it takes, in bytes."""
        return _kept_bytes(self._unopened, self._matches)

    def next(self, count: int) -> Op[list[Scored]]:
        """Return the next memories that match: so many, or all that are left."""
        self._reader = BoundedReader(self._storage, self.namespace)
        return self._next(count)

    @abstractmethod
    def _next(self, count: int) -> Op[list[Scored]]: ...

    def _read(self) -> Op[list[StoredMemory]]:
        """Read the memories under the namespace, in order."""
        found = yield from self._reader.read_all(keys.MEMORIES)
        return self._living(found)

    def _living(self, found: Iterable[Item]) -> list[StoredMemory]:
        """Return the memories in items that are yet to be returned, in order."""
        now = self._storage.clock()
        memories = [each for each in (parse_memory(item, now) for item in found) if each is not None]
        places = [(self._wanted.place(each, keys.parse_address(each.item)), each) for each in memories]
        later = [each for each in places if self._start is None or each[0] > self._start]
        return [memory for _, memory in sorted(later, key=itemgetter(0))]

    def _group(self, count: int) -> int:
        """Return how many memories to open at once, if so many are wanted."""
        return _GROUP if self._wanted.filter else max(1, min(count, _GROUP_MAX))

    def _open_matching(self, count: int) -> Op[list[Scored]]:
        """Open memories in order until so many match, and return these."""
        group = self._group(count)
        while len(self._matches) < count and self._unopened:
            opened = yield from self._open([each.item for each in self._unopened[:group]])
            del self._unopened[:group]
            self._matches += [(each, None) for each in (yield from self._matching(opened))]
        found, self._matches = self._matches[:count], self._matches[count:]
        return found

    def _open(self, found: Iterable[Item]) -> Op[list[LoadedMemory]]:
        loaded = [each for each in (yield from load(self._storage, found)) if each is not None]
        self._reader.take(sum(each.segment_bytes for each in loaded))
        return loaded

    def _matching(self, loaded: Sequence[LoadedMemory]) -> Op[Sequence[LoadedMemory]]:
        """Return the memories whose value has what the filter wants."""
        wanted = self._wanted.filter
        if not wanted:
            return loaded

        def matching() -> list[LoadedMemory]:
            return [each for each in loaded if json_values.matches(each.value(), wanted)]

        return (yield from work(matching, packed_bytes(loaded)))


class _ByTime(SearchListing):
    """A search that returns the newest first: everything is read at once."""

    _is_read = False

    def _next(self, count: int) -> Op[list[Scored]]:
        if not self._is_read:
            self._unopened = yield from self._read()
            self._is_read = True
        return (yield from self._open_matching(count))


class _ByKey(SearchListing):
    """A search in the order of keys: no more is read than is returned."""

    def _next(self, count: int) -> Op[list[Scored]]:
        prefix = keys.path_prefix(keys.MEMORIES, self.namespace)
        found: list[Scored] = []
        partitions = yield from partitions_under(self._storage, self.namespace)
        for pk, between in keys.ranges_from(partitions, prefix, self._start):
            query = Query(
                pk,
                between=between,
                consistent=self._storage.consistent_read,
                first_page=max(limits.PAGE_ITEMS_FIRST, count + 1),
            )
            while not query.done and len(found) < count:
                page = yield from self._storage.table.query_page(query)
                self._reader.take_items(page)
                self._unopened = self._living(page)
                found += yield from self._open_matching(count - len(found))
        # What else was read is less than a page, and is read again.
        self._unopened, self._matches = [], []
        if found:
            address = found[-1][0].address
            self._start = address.pk, address.sk
        return found


class _ByScore(SearchListing):
    """A search that returns the most similar first, and memories without vectors last."""

    def __init__(self, storage: StoreStorage, wanted: Search, query: SimilarityQuery) -> None:
        super().__init__(storage, wanted)
        self._query = query
        self._candidates: Candidates | None = None
        # The keys of memories to open, the best first. Of what was read by them: groups, memories, bytes.
        self._ranked: list[tuple[str, str]] = []
        self._groups = self._opened = self._group_bytes = 0
        # All memories, once they were read by a query.
        self._memories: list[StoredMemory] | None = None
        self._by_place: dict[tuple[str, str], Item] = {}
        # Those that match and were not returned, with their scores; all that have scores; those that do not match.
        self._scored: list[_Found] = []
        self._with_scores: set[tuple[str, str]] = set()
        self._mismatched: set[str] = set()
        self._is_all_scored = False

    @property
    def has_all(self) -> bool:
        """Whether every vector was compared."""
        return self._candidates is None or self._candidates.limit is None

    @property
    def size_bytes(self) -> int:
        """The estimated memory that it takes, in bytes."""
        scores = 0 if self._candidates is None else len(self._candidates.scores)
        return super().size_bytes + _kept_bytes(self._memories or (), self._scored) + _SCORE_BYTES * scores

    def _next(self, count: int) -> Op[list[Scored]]:
        if self._candidates is None:
            compare = self._query.vectors.candidates
            self._candidates = yield from compare(self._reader, count, self._query.embedding)
            best = {place: max(scores.values()) for place, scores in self._candidates.scores.items()}
            self._ranked = sorted(best, key=lambda each: (-best[each], each))
        yield from self._open_best(self._candidates, count)
        if len(self._scored) < count and not self._is_all_scored:
            yield from self._score_rest(self._candidates, count)
        self._scored.sort(key=lambda each: (-each[1], each[0].address.pk, each[0].address.sk))
        found: list[Scored] = [*self._scored[:count]]
        del self._scored[:count]
        return found + (yield from self._open_matching(count - len(found)))

    def _open_best(self, candidates: Candidates, count: int) -> Op[None]:
        """Open the memories with the best scores, until enough match and none of the others can be better."""
        group = self._group(count)
        while self._ranked:
            bound = max(candidates.scores[self._ranked[0]].values())
            if sum(score >= bound for _, score in self._scored) >= count:
                break
            read = yield from self._items(candidates, self._ranked[:group])
            del self._ranked[:group]
            yield from self._score(candidates, read)

    def _items(self, candidates: Candidates, places: Sequence[tuple[str, str]]) -> Op[list[Item]]:
        """Read memories by their keys; if few match a filter, all by a query, if the search may read as much."""
        expected_bytes = self._group_bytes // max(1, self._opened) * len(candidates.scores)
        is_rare = self._wanted.filter and self._groups >= _GROUPS_BY_KEY
        if self._memories is None and is_rare and self._reader.has(2 * expected_bytes):
            self._memories = yield from self._read()
            self._by_place = {_place(each): each.item for each in self._memories}
        if self._memories is not None:
            return [self._by_place.pop(each) for each in places if each in self._by_place]
        wanted = [key(pk, sk) for pk, sk in places]
        found = yield from self._storage.table.batch_get(wanted, consistent=self._storage.consistent_read)
        self._reader.take_items(found)
        self._groups, self._opened = self._groups + 1, self._opened + len(places)
        self._group_bytes += sum(map(pricing.item_bytes, found))
        return found

    def _score_rest(self, candidates: Candidates, count: int) -> Op[None]:
        """Read the memories that have no score, and score those that were stored since the vectors were read."""
        if candidates.limit is not None:
            # There are more vectors, and the memories that match may be among them.
            raise SearchLimitError(
                f"a search by similarity in namespace {self.namespace} found {len(self._scored)} of {count} memories"
                f" among the {candidates.limit} most similar vectors, which is all that the engine returns; ask for"
                " fewer, search a longer namespace, or use the exact search"
            )
        if self._memories is None:
            self._memories = yield from self._read()
        rest = [each for each in self._memories if each.revision not in self._mismatched]
        new = [each for each in rest if each.vectors and _place(each) not in self._with_scores]
        yield from self._score(candidates, [each.item for each in new])
        self._unopened = [each for each in rest if _place(each) not in self._with_scores]
        self._memories, self._by_place, self._is_all_scored = [], {}, True

    def _score(self, candidates: Candidates, read: Iterable[Item]) -> Op[None]:
        """Open memories, and keep those that match and have a score."""
        opened = yield from self._open(read)
        matching = {each.memory.revision for each in (yield from self._matching(opened))}
        self._mismatched |= {each.memory.revision for each in opened} - matching
        for each in opened:
            place = each.address.pk, each.address.sk
            score = candidates.scores.get(place, {}).get(each.memory.revision)
            found: Scored | None = (each, score)
            if score is None and each.memory.vectors:
                found = yield from self._query.vectors.score(self._storage, each, self._query.embedding)
            if found is None or found[1] is None:
                continue
            if found[0] is not each:
                matching |= {new.memory.revision for new in (yield from self._matching([found[0]]))}
            if found[0].memory.revision in matching:
                self._scored.append((found[0], found[1]))
                self._with_scores.add(place)


def _kept_bytes(unopened: Iterable[StoredMemory], opened: Sequence[Scored]) -> int:
    """Return how much memory items and serialized values take, about."""
    memories = (*unopened, *(loaded.memory for loaded, _ in opened))
    items = sum(_MEMORY_BYTES + pricing.item_bytes(each.item) for each in memories)
    return items + packed_bytes(loaded for loaded, _ in opened)


def _place(memory: StoredMemory) -> tuple[str, str]:
    return partition_key(memory.item), sort_key(memory.item)
