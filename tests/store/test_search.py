"""Searches and lists of namespaces, request by request: what they find, in which order, and how much they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.store.base import Item as StoredItem
from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.store.dynamodb import SearchLimitError
from langgraph.store.dynamodb.keys import Address, address_of, entry_partition
from langgraph.store.dynamodb.memory_items import Expected
from langgraph.store.dynamodb.partitions import list_namespaces, narrower, stay_registered, unregister
from langgraph.store.dynamodb.put import NewMemory, Times, put_all
from langgraph.store.dynamodb.reads import get, in_microseconds, moment, renew
from langgraph.store.dynamodb.resources import Listings, StoreStorage
from langgraph.store.dynamodb.search import Search, search
from tests.support.checkpoints import noise
from tests.support.harness import Harness

PLACES = [
    ("a", "b", "1"),
    ("a", "b", "2"),
    ("a", "b", "c", "3"),
    ("a", "c", "4"),
    ("a", "5"),
    ("z", "b", "6"),
]


def _storage(harness: Harness, **options: Any) -> StoreStorage:
    base = harness.process().storage
    return StoreStorage(codec=base.codec, table=base.table, clock=base.clock, rng=base.rng, **options)


def _at(*labels: str) -> Address:
    return address_of(labels[:-1], labels[-1])


def _put(harness: Harness, address: Address, value: dict[str, Any] | None, **options: Any) -> Any:
    [outcome] = harness.run(put_all(_storage(harness), [NewMemory(address, value, **options)], [[]]))
    return outcome


@pytest.fixture
def harness() -> Harness:
    """A table with six memories, the last one the newest."""
    harness = Harness()
    for number, place in enumerate(PLACES, 1):
        _put(harness, _at(*place), {"n": number, "even": number % 2 == 0})
        harness.now += 1
    return harness


def _found(harness: Harness, storage: StoreStorage | None = None, **wanted: Any) -> str:
    found = harness.run(search(storage or _storage(harness), Search(**wanted)))
    assert all(score is None for _, score in found)
    return "".join(loaded.address.key for loaded, _ in found)


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"namespace": ()}, "654321"),
        ({"namespace": ("a",)}, "54321"),
        ({"namespace": ("a", "b")}, "321"),
        ({"namespace": ("a", "b", "c")}, "3"),
        ({"namespace": ("b",)}, ""),
        ({"namespace": (), "limit": 2}, "65"),
        ({"namespace": (), "limit": 0}, ""),
        ({"namespace": (), "limit": 2, "offset": 3}, "32"),
        ({"namespace": (), "filter": {"even": True}}, "642"),
        ({"namespace": (), "filter": {"even": True}, "limit": 1, "offset": 1}, "4"),
        ({"namespace": (), "order": "created_at"}, "65432" + "1"),
        ({"namespace": (), "order": "key"}, "512346"),
        ({"namespace": ("a",), "order": "key", "limit": 2}, "51"),
        ({"namespace": ("a",), "order": "key", "limit": 2, "offset": 1}, "12"),
        ({"namespace": (), "order": "key", "filter": {"even": True}, "limit": 2}, "24"),
    ],
)
def test_a_search_finds_what_is_under_its_namespace_in_order(
    harness: Harness, wanted: dict[str, Any], keys: str
) -> None:
    assert _found(harness, **wanted) == keys


@pytest.mark.parametrize("order", ["updated_at", "created_at", "key"])
def test_a_search_goes_on_behind_a_memory(harness: Harness, order: Any) -> None:
    whole = harness.run(search(_storage(harness), Search((), order=order)))
    for position, (loaded, _) in enumerate(whole):
        after: StoredItem = loaded.item()
        rest = "".join(each.address.key for each, _ in whole[position + 1 :])
        assert _found(harness, namespace=(), order=order, after=after) == rest


@pytest.mark.parametrize("order", ["updated_at", "key"])
def test_the_next_page_comes_from_what_was_read_unless_something_changed(
    harness: Harness, order: Any
) -> None:
    storage = _storage(harness, listings=Listings(1 << 30))
    wanted = {"namespace": ("a", "b"), "order": order, "limit": 1}
    pages = [_found(harness, storage, **wanted)]
    run = harness.begin(search(storage, Search(**wanted, offset=1)))
    reads = sum(call.method == "query" for call in run.trace())
    assert reads == (order == "key")
    _put(harness, _at("a", "b", "0"), {})
    pages += [_found(harness, storage, **wanted, offset=2)]
    assert pages == (["3", "1"] if order == "updated_at" else ["1", "3"])
    with storage.listings.changing([("a",)]):
        pass
    assert _found(harness, storage, **wanted, offset=3) == ("1" if order == "updated_at" else "3")


def test_a_search_that_would_read_too_much_says_so(harness: Harness) -> None:
    read = list[int]()
    storage = _storage(harness, search_bytes_max=10**6, on_read=read.append)
    assert _found(harness, storage, namespace=("a", "b")) == "321"
    size = sum(read)
    exact = _storage(harness, search_bytes_max=size)
    assert _found(harness, exact, namespace=("a", "b")) == "321"
    with pytest.raises(
        SearchLimitError, match=r"^A search of namespace \('a', 'b'\) reads more than search_bytes_max"
    ):
        _found(harness, _storage(harness, search_bytes_max=size - 1), namespace=("a", "b"))
    _put(harness, _at("a", "b", "c", "large"), {"data": noise(200_000).hex()})
    # What segments hold counts too.
    with pytest.raises(SearchLimitError):
        _found(harness, _storage(harness, search_bytes_max=300_000), namespace=("a", "b"))
    assert _found(harness, _storage(harness, search_bytes_max=900_000), namespace=("a", "b", "c")) in (
        "large3",
    )


def _namespaces(harness: Harness, *, under: tuple[str, ...] = (), **wanted: Any) -> list[str]:
    conditions = tuple(
        MatchCondition(match_type=kind, path=path) for kind, path in wanted.pop("match", {}).items()
    )
    op = ListNamespacesOp(match_conditions=conditions, **wanted)
    return ["".join(each) for each in harness.run(list_namespaces(_storage(harness), op, under))]


@pytest.mark.parametrize(
    ("wanted", "namespaces"),
    [
        ({}, ["a", "ab", "abc", "ac", "zb"]),
        ({"limit": 2, "offset": 1}, ["ab", "abc"]),
        ({"max_depth": 1}, ["a", "z"]),
        ({"match": {"prefix": ("a", "b")}}, ["ab", "abc"]),
        ({"match": {"prefix": ("*", "b")}}, ["ab", "abc", "zb"]),
        ({"match": {"suffix": ("b",)}}, ["ab", "zb"]),
        ({"match": {"prefix": ("a",), "suffix": ("*", "c")}}, ["abc", "ac"]),
        ({"match": {"prefix": ("a", "*", "*", "*")}}, []),
        ({"under": ("a", "b")}, ["ab", "abc"]),
        ({"under": ("a", "b"), "match": {"prefix": ("a",)}}, ["ab", "abc"]),
        ({"under": ("z",), "match": {"prefix": ("a",)}}, []),
    ],
)
def test_namespaces_are_listed_as_they_match(
    harness: Harness, wanted: dict[str, Any], namespaces: list[str]
) -> None:
    assert _namespaces(harness, **wanted) == namespaces


def test_a_namespace_whose_memories_are_gone_is_not_listed(harness: Harness) -> None:
    _put(harness, _at("a", "b", "1"), None)
    assert "ab" in _namespaces(harness)
    _put(harness, _at("a", "b", "2"), None)
    assert _namespaces(harness, match={"prefix": ("a", "b")}) == ["abc"]
    _put(harness, _at("t", "u", "k"), {}, ttl_seconds=60)
    assert "tu" in _namespaces(harness)
    harness.now += 61
    assert "tu" not in _namespaces(harness)


@pytest.mark.parametrize(
    ("prefix", "under", "both"),
    [((), (), ()), (("a",), (), ("a",)), (("a",), ("a", "b"), ("a", "b")), (("a", "c"), ("a", "b"), None)],
)
def test_two_prefixes_have_what_is_under_both(prefix: Any, under: Any, both: Any) -> None:
    assert narrower(prefix, under) == narrower(under, prefix) == both


def _entry(harness: Harness) -> Any:
    return next(
        (each for each in harness.model.items() if each["SK"]["S"] == "P#b/" and each["PK"]["S"][0] == "z"),
        None,
    )


def test_a_partition_is_registered_until_nothing_lives_in_it(harness: Harness) -> None:
    pk, storage = _at("z", "b", "6").pk, _storage(harness)
    storage.registered[pk] = harness.now
    harness.run(unregister(storage, pk, harness.now))
    assert _entry(harness) is not None
    _put(harness, _at("z", "b", "6"), None)
    # One that was registered later stays.
    harness.run(unregister(storage, pk, 0))
    assert (_entry(harness) is not None, pk in storage.registered) == (True, True)
    # A put comes between the mark and the last look.
    run = harness.begin(unregister(storage, pk, harness.now))
    run.until(lambda call: call.method == "update_item")
    run.go_on()
    _put(harness, _at("z", "b", "7"), {})
    run.finish()
    assert "leaving" not in _entry(harness)
    _put(harness, _at("z", "b", "7"), None)
    harness.run(unregister(storage, pk, harness.now))
    assert (_entry(harness), pk in storage.registered) == (None, False)
    harness.run(stay_registered(storage, pk))
    assert _entry(harness) is not None
    assert pk in storage.registered
    assert entry_partition(_entry(harness)) == pk


@pytest.mark.parametrize(
    ("expected", "times", "is_stored"),
    [
        (None, None, True),
        (Expected(None), None, False),
        (Expected("other"), None, False),
        (None, Times(1, 2, None), False),
        (None, Times(1, 10**17, None), True),
    ],
)
def test_a_put_stores_over_what_it_expects(
    harness: Harness, expected: Expected | None, times: Times | None, *, is_stored: bool
) -> None:
    address = _at("a", "b", "1")
    large: Sequence[dict[str, Any]] = ({"n": "new"}, {"n": noise(150_000).hex()})
    for value in large:
        assert (_put(harness, address, value, expected=expected, times=times) is not None) == is_stored
        times = times and Times(1, times.updated_us + 1, None)
        [loaded] = harness.run(get(_storage(harness), [address]))
        assert loaded is not None
        assert loaded.value["n"] == (value["n"] if is_stored else 1)
    # No segments are left of what was replaced, or not stored.
    assert bool([each for each in harness.model.items() if each["SK"]["S"].startswith("S#")]) == is_stored
    assert loaded is not None
    for kept in ({"expected": Expected(loaded.memory.revision)}, {}):
        assert _put(harness, address, {"n": 2} if kept else None, **kept) is not None
    assert not [each for each in harness.model.items() if each["SK"]["S"].startswith("S#")]
    assert harness.run(get(_storage(harness), [address])) == [None]
    assert _put(harness, address, {}, expected=Expected(None)) is not None


def test_a_memory_is_renewed_once_a_tenth_of_its_ttl_has_gone(harness: Harness) -> None:
    address = _at("t", "u", "k")
    _put(harness, address, {"n": noise(150_000).hex()}, ttl_seconds=1000)
    begun = harness.now

    def expiries() -> tuple[float, float]:
        parts = [each for each in harness.model.items() if each["PK"]["S"] == address.pk]
        ends = {each["SK"]["S"][:2]: items.number(each, "expires_at") or 0 for each in parts}
        return ends["M#"] - begun, ends["S#"] - begun

    def read() -> None:
        storage = _storage(harness)
        [loaded] = harness.run(get(storage, [address]))
        assert loaded is not None
        harness.run(renew(storage, [loaded.memory]))

    assert expiries() == (1000, 3000)
    for seconds, ends in (
        (100, (1000, 3000)),
        (101, (1101, 3000)),
        (1100, (2100, 3000)),
        (2050, (3050, 5050)),
    ):
        harness.now = begun + seconds
        read()
        assert expiries() == ends
    harness.now = begun + 3050
    assert harness.run(get(_storage(harness), [address])) == [None]


def test_times_are_microseconds_of_the_epoch() -> None:
    assert in_microseconds(moment(1_700_000_000_123_456)) == 1_700_000_000_123_456
    assert in_microseconds(moment(5).replace(tzinfo=None)) == 5


def test_a_memory_that_lost_its_segments_is_damage(harness: Harness) -> None:
    address = _at("a", "b", "1")
    _put(harness, address, {"n": noise(150_000).hex()})
    for each in harness.model.items():
        if each["SK"]["S"].startswith("S#"):
            harness.remove(each)
    with pytest.raises(
        CheckpointCorruptionError, match=r"^item PK='a/b/%M#' .* segments that it needs are not in"
    ):
        harness.run(get(_storage(harness), [address]))
