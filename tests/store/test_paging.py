"""Reading a list page by page costs one search, and the pages fit each other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from langgraph.store.base import GetOp, PutOp, SearchItem, SearchOp

from langgraph.checkpoint.dynamodb.observe import Event
from langgraph.store.dynamodb import DynamoDBStore
from langgraph.store.dynamodb import resources as bounds
from langgraph.store.dynamodb.resources import Listings
from langgraph.store.dynamodb.store import TableStore
from tests.store.conftest import DIMS, CountedEmbeddings, MakeStore

pytestmark = pytest.mark.engines("dynamodb-local")

FILES = ("agent", "files")


def fill(store: TableStore, count: int, **more: Any) -> None:
    """Put so many small memories."""
    for start in range(0, count, 500):
        numbers = range(start, min(count, start + 500))
        store.batch(
            [
                PutOp(FILES, f"{number:05}", {"text": "ab" * (number % 7), "even": number % 2 == 0} | more)
                for number in numbers
            ]
        )


def pages_of(store: TableStore, limit: int, **options: Any) -> Iterator[list[str]]:
    """Read as deepagents' `StoreBackend` does."""
    offset, page = 0, ["a first page"]
    while page:
        page = [each.key for each in store.search(FILES, limit=limit, offset=offset, **options)]
        yield page
        offset += limit


@pytest.fixture
def events() -> list[Event]:
    """Collect events."""
    return []


@pytest.fixture
def paged(make_store: MakeStore, embeddings: CountedEmbeddings, events: list[Event]) -> DynamoDBStore:
    """Give a store that embeds texts."""
    return make_store(index={"dims": DIMS, "embed": embeddings, "fields": ["text"]}, on_event=events.append)


def test_all_pages_cost_what_one_search_does(paged: TableStore, events: list[Event]) -> None:
    fill(paged, 600)
    events.clear()
    keys = [each.key for each in paged.search(FILES, limit=3_000)]
    [search] = events
    events.clear()
    assert [key for page in pages_of(paged, 100) for key in page] == keys
    assert sum(each.read_units or 0 for each in events) == search.read_units
    assert sum(each.requests for each in events) == search.requests


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filter": {"even": True}},
        {"query": "aaab"},
        {"query": "aaab", "filter": {"even": True}},
        {"order": "key"},
        {"order": "key", "filter": {"even": False}},
        {"order": "created_at"},
    ],
)
def test_pages_are_those_of_one_search(paged: TableStore, options: dict[str, Any]) -> None:
    fill(paged, 300)
    whole = [each.key for each in paged.search(FILES, limit=1_000, **options)]
    for limit in (7, 100, 150):
        assert [key for page in pages_of(paged, limit, **options) for key in page] == whole


def test_a_put_of_another_process_between_two_pages_moves_nothing(make_store: MakeStore) -> None:
    store, other = make_store(), make_store()
    fill(store, 30)
    whole = [each.key for each in store.search(FILES, limit=100)]
    pages = pages_of(store, 10)
    read = [*next(pages)]
    other.put(FILES, whole[-1], {"text": "new"})
    other.put(FILES, "another", {"text": "new"})
    assert [*read, *(key for page in pages for key in page)] == whole


@pytest.mark.parametrize(
    "change", ["put", "delete", "put_if", "batch", "delete_namespace", "a shorter prefix"]
)
def test_a_page_has_what_this_process_changed(paged: TableStore, change: str) -> None:
    fill(paged, 30)
    whole = paged.search(FILES, limit=100)
    pages = pages_of(paged, 10)
    next(pages)
    found = whole[15]
    changes: dict[str, Callable[[], object]] = {
        "put": lambda: paged.put(FILES, found.key, {"text": "new"}),
        "delete": lambda: paged.delete(FILES, found.key),
        "put_if": lambda: paged.put_if(FILES, found.key, {"text": "new"}, revision=found.revision),
        "batch": lambda: paged.batch([PutOp(FILES, found.key, None)]),
        "delete_namespace": lambda: paged.delete_namespace(FILES),
        "a shorter prefix": lambda: paged.delete_namespace(("agent",)),
    }
    changes[change]()
    now = [each.key for each in paged.search(FILES, limit=100)]
    assert next(pages) == now[10:20]
    assert now[10:20] != [each.key for each in whole[10:20]]


@pytest.mark.parametrize("why", ["too old", "too large", "another limit", "another filter"])
def test_what_cannot_go_on_reads_again(
    paged: TableStore, events: list[Event], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    fill(paged, 30)
    if why == "too old":
        monkeypatch.setattr(bounds, "LISTING_SECONDS", -1.0)
    if why == "too large":
        monkeypatch.setattr(bounds, "_LISTING_BYTES_MIN", bounds.LISTINGS_BYTES_MAX + 1)
    whole = [each.key for each in paged.search(FILES, limit=100)]
    paged.search(FILES, limit=10)
    events.clear()
    limit = 9 if why == "another limit" else 10
    wanted = {"even": {"$ne": "neither"}} if why == "another filter" else None
    found = paged.search(FILES, limit=limit, offset=10, filter=wanted)
    assert [each.key for each in found] == whole[10 : 10 + limit]
    assert events[-1].requests


def test_who_changes_a_filter_between_two_pages_gets_the_pages_of_each(paged: TableStore) -> None:
    fill(paged, 300)
    wanted = {"even": True}
    whole = [each.key for each in paged.search(FILES, filter=wanted, limit=300)]
    pages = pages_of(paged, 10, filter=wanted)
    found = next(pages)
    wanted["even"] = False
    paged.search(FILES, filter=wanted, limit=10)
    for offset in range(10, 150, 10):
        found += [each.key for each in paged.search(FILES, filter={"even": True}, limit=10, offset=offset)]
    assert found == whole


@dataclass
class _Listing:
    namespace: Sequence[str] = FILES
    read_at: float = 100.0
    changes_before: int = 0
    size_bytes: int = 0


@pytest.mark.parametrize(("now", "is_there"), [(100.0, True), (105.0, True), (105.1, False), (99.9, False)])
def test_pages_are_of_a_list_that_was_read_lately_by_a_clock_that_may_be_set_back(
    now: float, *, is_there: bool
) -> None:
    listings = Listings[_Listing](bounds.LISTINGS_BYTES_MAX)
    listings.keep("a search", 10, listings.begin(_Listing()), 100.0)
    assert (listings.take("a search", 10, now) is not None) == is_there


def test_equal_gets_of_a_batch_have_values_of_their_own(paged: TableStore) -> None:
    fill(paged, 3)
    ops = [GetOp(FILES, "00002"), GetOp(FILES, "00001"), GetOp(FILES, "00002")]
    one, _, other = (cast("SearchItem", each) for each in paged.batch(ops))
    assert one == other
    one.value["text"] = "changed"
    assert other.value["text"] != "changed"


def test_equal_searches_of_a_batch_are_read_once(paged: TableStore, events: list[Event]) -> None:
    fill(paged, 3)
    events.clear()
    one, other, another = (
        cast("list[SearchItem]", each)
        for each in paged.batch([SearchOp(FILES), SearchOp(FILES), SearchOp(FILES, limit=2)])
    )
    assert events[-1].requests == 2
    assert one == other
    assert another == one[:2]
    one[0].value["text"] = "changed"
    assert other[0].value["text"] != "changed"


def test_a_search_by_similarity_with_a_filter_that_matches_rarely_reads_memories_once(
    paged: TableStore, events: list[Event]
) -> None:
    fill(paged, 300)
    paged.put(FILES, "rare", {"text": "z", "even": None})
    events.clear()
    assert [each.key for each in paged.search(FILES, query="ab", filter={"even": None})] == ["rare"]
    paged.search(FILES, query="ab", limit=1)
    paged.search(FILES, limit=2_000)
    rare, vectors, memories = events
    # Two groups of 64 by their keys, one unit each.
    assert (rare.read_units or 0) <= (vectors.read_units or 0) + (memories.read_units or 0) + 128
    assert rare.requests <= vectors.requests + memories.requests + 2
