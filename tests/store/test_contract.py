"""LangGraph's contract of a store, line by line, on each engine."""

import random
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointSerializationError
from langgraph.store.dynamodb import DynamoDBStore, SearchLimitError
from langgraph.store.dynamodb.json_values import NESTING_MAX
from tests.store.conftest import MakeStore
from tests.store.test_json_values import nested
from tests.support.traffic import Traffic

NAMESPACE = ("users", "u1", "notes")
BIG = {"text": "".join(f"{number:x} " for number in range(40_000))}


def keys(found: Any) -> list[str]:
    """Return the keys of what a search found."""
    return [each.key for each in found]


def got(store: DynamoDBStore, namespace: tuple[str, ...] = NAMESPACE, key: str = "k") -> Any:
    """Return a memory that is there."""
    return store.get(namespace, key)


def revision_of(item: Any) -> object:
    """Return the revision of what was read."""
    return item.revision


def test_a_value_comes_back_with_its_types_and_times(store: DynamoDBStore) -> None:
    value: dict[str, Any] = {
        "n": 1,
        "f": 1.0,
        "none": None,
        "no": False,
        "list": [1, {"a": "b"}],
        "text": "ключ",
        "": {},
    }
    store.put(NAMESPACE, "k", value)
    item = got(store)
    assert (item.namespace, item.key, item.value) == (NAMESPACE, "k", value)
    assert [type(item.value[name]) for name in ("n", "f", "no")] == [int, float, bool]
    assert item.created_at == item.updated_at
    assert item.created_at.tzinfo is not None
    store.put(NAMESPACE, "k", {"n": 2})
    again = got(store)
    assert again.value == {"n": 2}
    assert again.created_at == item.created_at
    assert again.updated_at > item.updated_at
    assert store.get(NAMESPACE, "k") == again


def test_what_a_caller_changes_later_is_not_stored(store: DynamoDBStore) -> None:
    value: dict[str, Any] = {"list": [1]}
    ops = [PutOp(NAMESPACE, "k", value)]
    store.batch(ops)
    value["list"].append(2)
    got(store).value["list"].append(3)
    assert store.search(NAMESPACE)[0].value == {"list": [1]}


def test_namespaces_are_labels_and_not_text(store: DynamoDBStore) -> None:
    namespaces = [
        ("a", "b"),
        ("a:b",),
        ("a/b",),
        ("a#b",),
        ("a%2Fb",),
        ("a", "b", "c"),
        ("a", "bc"),
        ("a",),
        ("ab",),
    ]
    for number, namespace in enumerate(namespaces):
        store.put(namespace, "k/#%", {"n": number})
    for number, namespace in enumerate(namespaces):
        assert got(store, namespace, "k/#%").value == {"n": number}
    assert {each.namespace for each in store.search(("a", "b"))} == {("a", "b"), ("a", "b", "c")}
    assert {each.namespace for each in store.search(("a",))} == {
        ("a",),
        ("a", "b"),
        ("a", "b", "c"),
        ("a", "bc"),
    }
    assert {each.namespace for each in store.search(())} == set(namespaces)
    assert store.list_namespaces() == sorted(namespaces)
    store.delete(("a", "b"), "k/#%")
    assert store.get(("a/b",), "k/#%") is not None
    assert ("a", "b") not in store.list_namespaces()


def test_a_batch_reads_the_state_before_its_puts_and_the_last_put_counts(store: DynamoDBStore) -> None:
    store.put(NAMESPACE, "old", {"n": 0})
    results = store.batch([
        PutOp(NAMESPACE, "old", {"n": 1}),
        GetOp(NAMESPACE, "old"),
        GetOp(NAMESPACE, "new"),
        SearchOp(NAMESPACE),
        ListNamespacesOp(),
        PutOp(NAMESPACE, "new", {"n": 1}),
        PutOp(("other",), "k", {"n": 1}),
        PutOp(NAMESPACE, "new", {"n": 2}),
        PutOp(("other",), "k", None),
        PutOp(("langgraph", "x"), "k", {"n": 1}),
    ])  # fmt: skip
    assert [results[0], *results[2:3], *results[5:]] == [None] * 7
    got: Any = results[1]
    found: Any = results[3]
    assert got.value == {"n": 0}
    assert keys(found) == ["old"]
    assert results[4] == [NAMESPACE]
    after = {(each.namespace, each.key): each.value["n"] for each in store.search((), limit=99)}
    assert after == {(NAMESPACE, "old"): 1, (NAMESPACE, "new"): 2, (("langgraph", "x"), "k"): 1}
    assert store.batch([]) == []


async def test_put_if_refuses_the_root_label_that_put_refuses(
    watched: DynamoDBStore, traffic: Traffic
) -> None:
    reserved = ("langgraph", "x")
    with pytest.raises(InvalidNamespaceError, match="Root label"):
        watched.put(reserved, "k", {})
    with pytest.raises(InvalidNamespaceError, match=r"begins with .langgraph., which LangGraph has reserved"):
        watched.put_if(reserved, "k", {}, revision=None)
    with pytest.raises(InvalidNamespaceError, match=r"begins with .langgraph., which LangGraph has reserved"):
        await watched.aput_if(reserved, "k", {}, revision=None)
    assert traffic.requests == []


def test_what_a_batch_stored_under_langgraph_is_read_deleted_and_moved(store: DynamoDBStore) -> None:
    reserved = ("langgraph", "x")
    store.batch([PutOp(reserved, "k", {"n": 1})])
    records = list(store.export_items(reserved))
    found: Any = store.get(reserved, "k")
    assert store.put_if(reserved, "k", None, revision=found.revision) is not None
    assert store.get(reserved, "k") is None
    store.sweep_ttl()
    newer = [{**each, "updated_at": "2999-01-01T00:00:00+00:00"} for each in records]
    assert store.import_items(newer) == 1
    assert keys(store.search(reserved)) == ["k"]


async def test_without_an_index_a_query_is_ignored_as_by_other_stores_and_the_log_says_so_once(
    store: DynamoDBStore, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        store.put(NAMESPACE, str(number), {"n": number})
    assert caplog.records == []
    found = store.search(NAMESPACE, query="anything")
    assert [(each.key, each.score) for each in found] == [("2", None), ("1", None), ("0", None)]
    await store.asearch(NAMESPACE, query="something")
    store.search(NAMESPACE, query="")
    said = [each for each in caplog.records if "ignores the query" in each.message]
    assert [each.levelname for each in said] == ["WARNING"]


# What LangGraph refuses as a namespace, too.
NO_NAMESPACES = [
    GetOp(("a.b",), "k"), SearchOp(("",)), PutOp(("a", "b\0"), "k", {}), PutOp((), "k", {}),
    ListNamespacesOp((MatchCondition("prefix", ("a.b",)),)),
]  # fmt: skip
# Its letters would be labels: under ("u", "s", ...), a search of "user-1" would find the memories of "user-10".
TEXTS = [
    GetOp(cast("Any", "user-1"), "k"), SearchOp(cast("Any", "user-1")), PutOp(cast("Any", "user-1"), "k", {}),
    ListNamespacesOp((MatchCondition("prefix", cast("Any", "user-1")),)), SearchOp(cast("Any", None)),
]  # fmt: skip
NO_JSON = [PutOp(("a",), "k", {"at": {1}}), PutOp(("a",), "k", {"a": {1: 2}})]
BAD: list[Any] = [
    PutOp(("a",), "k", {}, ttl=0), PutOp(("a",), "k", {}, ttl=float("nan")), PutOp(("a",), "k", {}, ttl=1e308),
    PutOp(("a",), "k", {}, ttl=10**400), PutOp(("a",), "k", {}, ttl=527_040_001), PutOp(("a",), "k" * 1100, {}),
    PutOp(("a", "\ud800"), "k", {}), SearchOp(("a",), limit=-1), SearchOp(("a",), offset=-1),
    SearchOp(("a",), filter={"n": {"$in": [1]}}), SearchOp(("a",), filter={"n": {"$gt": 1, "x": 2}}), "get",
    SearchOp(("a",), filter={"n": {1: 2}}), SearchOp(("a",), filter={"n": {"m": {None: 2}}}),
    SearchOp(("a",), query=cast("Any", ["text"])), SearchOp(("a",), query=cast("Any", 5)),
    ListNamespacesOp(max_depth=-1), ListNamespacesOp(max_depth=cast("Any", 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "error", "message"), [
    *((each, InvalidNamespaceError, None) for each in NO_NAMESPACES),
    *((each, CheckpointerInputError, r"is ('user-1'|None); give a tuple of labels") for each in TEXTS),
    *((each, CheckpointSerializationError, None) for each in NO_JSON),
    *((each, CheckpointerInputError, None) for each in BAD),
], ids=str)  # fmt: skip
def test_bad_operations_are_refused_before_anything_is_stored(
    watched: DynamoDBStore, traffic: Traffic, op: Any, error: type[Exception], message: str | None
) -> None:
    with pytest.raises(error, match=message):
        watched.batch([PutOp(("fine",), "k", {}), op])
    assert traffic.requests == []


@pytest.mark.parametrize("namespace", ["user-1", 5])
def test_a_record_with_a_text_as_namespace_is_not_imported(store: DynamoDBStore, namespace: Any) -> None:
    store.put(NAMESPACE, "k", {})
    records = [{**each, "namespace": namespace} for each in store.export_items()]
    with pytest.raises(CheckpointerInputError, match=f"namespace is {namespace!r}; give a tuple of labels"):
        store.import_items(records)
    with pytest.raises(CheckpointerInputError, match="namespace is 'user-1'; give a tuple of labels"):
        store.put_if(cast("Any", "user-1"), "k", {}, revision=None)
    assert store.list_namespaces() == [NAMESPACE]


@pytest.mark.parametrize("in_lists", [True, False], ids=["lists", "dicts"])
@pytest.mark.parametrize(
    "serde", [JsonPlusSerializer(), JsonPlusSerializer(pickle_fallback=True)], ids=["msgpack", "pickle"]
)
def test_the_deepest_value_that_is_taken_can_be_read_again(
    make_store: MakeStore, serde: JsonPlusSerializer, in_lists: bool
) -> None:
    """`test_json_values` has what is deeper."""
    store, deepest = make_store(serde=serde), nested(NESTING_MAX, in_lists=in_lists)
    store.put(("a",), "deep", deepest)
    assert got(store, ("a",), "deep").value == deepest
    assert keys(store.search(("a",), filter={"a": {"$ne": 1}})) == ["deep"]


def test_a_value_that_needs_pickle_is_refused_since_no_store_reads_pickle(make_store: MakeStore) -> None:
    store = make_store(serde=JsonPlusSerializer(pickle_fallback=True))
    with pytest.raises(CheckpointSerializationError, match=r"value of memory 'k' .*64 bits"):
        store.put(("a",), "k", {"n": 2**70})
    assert store.get(("a",), "k") is None


def test_limit_and_offset_count_after_the_filter_and_the_newest_is_first(store: DynamoDBStore) -> None:
    for number in range(12):
        store.put(NAMESPACE, str(number), {"even": number % 2 == 0})
    assert keys(store.search(NAMESPACE, limit=4)) == ["11", "10", "9", "8"]
    assert keys(store.search(NAMESPACE, filter={"even": True}, limit=2)) == ["10", "8"]
    assert keys(store.search(NAMESPACE, filter={"even": True}, limit=2, offset=3)) == ["4", "2"]
    assert keys(store.search(NAMESPACE, limit=0)) == []
    assert keys(store.search(NAMESPACE, offset=99)) == []
    store.put(NAMESPACE, "0", {"even": True})
    assert keys(store.search(NAMESPACE, limit=1)) == ["0"]
    assert keys(store.search(NAMESPACE, limit=1, order="created_at")) == ["11"]


@pytest.mark.parametrize("order", ["updated_at", pytest.param("created_at", marks=pytest.mark.search), "key"])
@pytest.mark.parametrize(
    "prefix",
    [
        (),
        pytest.param(("users",), marks=pytest.mark.search),
        ("users", "u1"),
        pytest.param(("users", "u1", "notes"), marks=pytest.mark.search),
    ],
)
def test_a_long_list_is_read_page_by_page(store: DynamoDBStore, order: Any, prefix: tuple[str, ...]) -> None:
    store.batch([
        PutOp(("users", user, kind), f"{number}", {"n": number})
        for user in ("u1", "u2") for kind in ("notes", "x") for number in range(7)
    ])  # fmt: skip
    store.put(("users",), "k", {"n": 0})
    whole = store.search(prefix, limit=99, order=order)
    pages: list[Any] = []
    while page := store.search(prefix, limit=3, order=order, after=pages[-1] if pages else None):
        pages += page
    assert [(each.namespace, each.key) for each in pages] == [(each.namespace, each.key) for each in whole]
    assert len(pages) == {0: 29, 1: 29, 2: 14, 3: 7}[len(prefix)]
    even = [each for each in whole if each.value["n"] % 2 == 0]
    filtered = store.search(prefix, filter={"n": {"$ne": 1}}, limit=99, order=order, after=whole[0])
    assert len(filtered) == sum(each.value["n"] != 1 for each in whole[1:])
    assert even


def test_a_page_goes_on_after_a_memory_and_nothing_else(watched: DynamoDBStore, traffic: Traffic) -> None:
    # In strict mode, a checkpoint returns what a search found as a dict.
    after: Any = {"namespace": list(NAMESPACE), "key": "k"}
    with pytest.raises(
        CheckpointerInputError, match=r"after is {.*}; give the last memory of the page before"
    ):
        watched.search(NAMESPACE, order="key", after=after)
    assert traffic.requests == []


def test_a_list_by_key_after_a_memory_behind_its_prefix_is_empty(store: DynamoDBStore) -> None:
    for label in ("c", "d"):
        store.put(("a", "b", label), "k", {})
    behind, before = store.get(("a", "b", "d"), "k"), store.get(("a", "b", "c"), "k")
    assert store.search(("a", "b", "c"), order="key", after=behind) == []
    assert keys(store.search(("a", "b", "d"), order="key", after=before)) == ["k"]


def test_a_second_label_that_the_register_cannot_hold_is_refused(store: DynamoDBStore) -> None:
    with pytest.raises(
        CheckpointerInputError, match=r"second label makes a key of 1103 bytes, over .* of 1024"
    ):
        store.put(("a", "x" * 1_100), "k", {})
    assert store.search(("a",)) == []


def test_an_unknown_type_of_match_is_refused(store: DynamoDBStore) -> None:
    condition = MatchCondition(cast("Any", "contains"), ("a",))
    with pytest.raises(CheckpointerInputError, match=r"match_type is 'contains'; give 'prefix' or 'suffix'"):
        store.batch([ListNamespacesOp(match_conditions=(condition,))])


def test_list_namespaces(store: DynamoDBStore) -> None:
    namespaces = [
        ("a",),
        ("a", "b"),
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "c", "e"),
        ("z", "b", "e"),
        ("é",),
    ]
    store.batch([PutOp(each, key, {}) for each in namespaces for key in ("k", "l")])
    assert store.list_namespaces() == sorted(namespaces)
    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b"), ("a", "b", "c"), ("a", "b", "d", "e")]
    assert store.list_namespaces(prefix=("*", "b")) == [
        ("a", "b"), ("a", "b", "c"), ("a", "b", "d", "e"), ("z", "b", "e")]  # fmt: skip
    assert store.list_namespaces(suffix=("e",)) == [("a", "b", "d", "e"), ("a", "c", "e"), ("z", "b", "e")]
    assert store.list_namespaces(prefix=("a",), suffix=("*", "e")) == [("a", "b", "d", "e"), ("a", "c", "e")]
    assert store.list_namespaces(prefix=("a", "*", "*", "*", "*")) == []
    assert store.list_namespaces(max_depth=1) == [("a",), ("z",), ("é",)]
    assert store.list_namespaces(prefix=("a",), max_depth=2, limit=2, offset=1) == [("a", "b"), ("a", "c")]
    assert store.list_namespaces(limit=0) == []
    store.delete(("a", "b"), "k")
    assert ("a", "b") in store.list_namespaces()
    store.delete(("a", "b"), "l")
    assert ("a", "b") not in store.list_namespaces()
    assert ("a", "b", "c") in store.list_namespaces(prefix=("a", "b"))


def test_a_search_that_would_read_too_much_says_so(make_store: MakeStore) -> None:
    store = make_store(search_bytes_max=4_000)
    store.batch([PutOp(NAMESPACE, str(number), {"text": f"{number}" * 200}) for number in range(60)])
    with pytest.raises(SearchLimitError, match="search_bytes_max, 4000 bytes"):
        store.search(NAMESPACE)
    assert len(store.search(NAMESPACE, order="key", limit=5)) == 5
    store.put(("one",), "k", BIG | {"more": "".join(chr(33 + n * n % 90) for n in range(300_000))})
    with pytest.raises(SearchLimitError):
        store.search(("one",))


# Expiry


def at(store: DynamoDBStore, seconds: float) -> None:
    """Let the store believe that so many seconds have passed."""
    object.__setattr__(store.storage, "clock", lambda: time.time() + seconds)


def alive(store: DynamoDBStore) -> bool:
    """Tell whether the memory is there, without renewing it."""
    found = store.get(NAMESPACE, "k", refresh_ttl=False) is not None
    assert ("k" in keys(store.search(NAMESPACE, refresh_ttl=False))) == found
    assert found == (NAMESPACE in store.list_namespaces())
    return found


def test_a_ttl_ends_and_a_read_renews_it(make_store: MakeStore) -> None:
    store = make_store()
    store.put(NAMESPACE, "k", {"n": 1}, ttl=2)
    at(store, 100)
    assert alive(store)
    assert store.get(NAMESPACE, "k") is not None
    at(store, 180)
    assert alive(store)
    assert keys(store.search(NAMESPACE)) == ["k"]
    at(store, 290)
    assert alive(store)
    at(store, 302)
    assert not alive(store)
    assert store.get(NAMESPACE, "k") is None
    assert not alive(store)
    assert store.sweep_ttl() == 1
    at(store, 0)
    assert not alive(store)


def test_the_longest_ttl_of_a_memory_is_renewed_and_exported(make_store: MakeStore) -> None:
    store = make_store()
    store.put(NAMESPACE, "k", {"n": 1}, ttl=527_040_000)
    assert store.get(NAMESPACE, "k") is not None
    records = list(store.export_items(NAMESPACE))
    assert [each["ttl_minutes"] for each in records] == [527_040_000]
    store.delete(NAMESPACE, "k")
    assert store.import_items(records) == 1


def test_default_ttl_is_for_puts_that_say_nothing(make_store: MakeStore) -> None:
    store = make_store(ttl={"default_ttl": 1, "refresh_on_read": False})
    store.put(NAMESPACE, "default", {})
    store.put(NAMESPACE, "never", {}, ttl=None)
    store.put(NAMESPACE, "longer", {}, ttl=5)
    assert store.put_if(NAMESPACE, "default too", {}, revision=None)
    at(store, 40)
    assert len(store.search(NAMESPACE)) == 4
    at(store, 80)
    assert set(keys(store.search(NAMESPACE))) == {"never", "longer"}
    assert store.get(NAMESPACE, "longer", refresh_ttl=True) is not None
    at(store, 350)
    assert set(keys(store.search(NAMESPACE))) == {"never", "longer"}


# Requests


def test_what_operations_cost(watched: DynamoDBStore, traffic: Traffic) -> None:
    def sent(call: Callable[[], object]) -> list[str]:
        traffic.clear()
        call()
        return traffic.operations

    assert sent(lambda: watched.put(NAMESPACE, "k", {"n": 1})) == ["PutItem", "UpdateItem", "GetItem"]
    assert sent(lambda: watched.put(NAMESPACE, "k", {"n": 2})) == ["UpdateItem", "GetItem"]
    assert sent(lambda: watched.get(NAMESPACE, "k")) == ["GetItem"]
    assert (
        sent(lambda: watched.batch([GetOp(NAMESPACE, str(each)) for each in range(150)]))
        == ["BatchGetItem"] * 2
    )
    assert sent(lambda: watched.search(NAMESPACE)) == ["Query"]
    assert sent(lambda: watched.search(NAMESPACE[:1])) == ["Query"] * 2
    assert sent(lambda: watched.list_namespaces(prefix=NAMESPACE[:2])) == ["Query"] * 2
    assert sent(lambda: watched.put_if(NAMESPACE, "new", {}, revision=None)) == ["UpdateItem", "GetItem"]
    assert sent(lambda: watched.delete(NAMESPACE, "k")) == ["UpdateItem"]
    assert "Scan" not in sent(
        lambda: (watched.search(()), watched.list_namespaces(), watched.delete_namespace(()))
    )


# Beyond the contract


def test_put_if_stores_only_over_what_was_read(store: DynamoDBStore) -> None:
    first = store.put_if(NAMESPACE, "k", {"n": 1}, revision=None)
    assert first is not None
    assert store.put_if(NAMESPACE, "k", {"n": 9}, revision=None) is None
    assert (got(store).revision, revision_of(store.search(NAMESPACE)[0])) == (first, first)
    second = store.put_if(NAMESPACE, "k", {"n": 2}, revision=first)
    assert second not in (None, first)
    assert store.put_if(NAMESPACE, "k", {"n": 9}, revision=first) is None
    assert store.put_if(NAMESPACE, "k", None, revision=first) is None
    assert store.put_if(NAMESPACE, "k", None, revision=second) is not None
    assert store.get(NAMESPACE, "k") is None
    assert store.put_if(NAMESPACE, "k", {"n": 9}, revision=second) is None
    assert store.put_if(NAMESPACE, "k", None, revision=second) is None
    assert store.put_if(NAMESPACE, "k", {"n": 3}, revision=None) is not None
    with pytest.raises(CheckpointerInputError, match="revision"):
        store.put_if(NAMESPACE, "k", {}, revision="")
    with pytest.raises(CheckpointerInputError, match="deletes"):
        store.put_if(NAMESPACE, "k", None, revision=None)


def test_a_deletion_misses_nothing_that_an_eventually_consistent_read_may_not_show_yet(
    watched: DynamoDBStore, traffic: Traffic
) -> None:
    object.__setattr__(watched.storage, "consistent_read", False)
    watched.put(NAMESPACE, "k", {})
    for delete in (watched.delete_namespace, watched.sweep_ttl):
        traffic.clear()
        delete(("users",))
        queries = [each.params for each in traffic.requests if each.operation == "Query"]
        assert len(queries) > 1
        assert all(each["ConsistentRead"] for each in queries)


def test_delete_namespace_leaves_nothing_but_the_register(
    make_store: MakeStore, embeddings: Any, client: Any, table_name: str
) -> None:
    store = make_store(index={"dims": 26, "embed": embeddings, "fields": ["topic"]})
    store.put(("users", "u1"), "k", {"topic": "a"})
    store.put(NAMESPACE, "k", BIG | {"topic": "a"})
    store.put(NAMESPACE, "gone", {"topic": "a"})
    store.delete(NAMESPACE, "gone")
    store.put(("users", "u12"), "k", {"topic": "a"})
    at(store, 3600 + 60)
    assert store.delete_namespace(NAMESPACE) == 1
    assert store.delete_namespace(NAMESPACE) == 0
    assert store.list_namespaces() == [("users", "u1"), ("users", "u12")]
    assert store.delete_namespace(("users",)) == 2
    assert store.search((), query="a") == []
    assert client.scan(TableName=table_name)["Count"] == 0


def test_an_export_is_imported_with_its_times(store: DynamoDBStore) -> None:
    store.put(NAMESPACE, "old", BIG)
    store.put(NAMESPACE, "old", BIG | {"n": 2})
    store.put(("a",), "short", {"n": 1}, ttl=60)
    records = list(store.export_items())
    before = store.search((), limit=99)
    assert [each["key"] for each in store.export_items(("a",))] == ["short"]
    store.delete_namespace(())
    assert store.import_items(iter(records)) == 2
    assert store.search((), limit=99) == before
    assert list(store.export_items()) == records
    assert store.import_items(records) == 0
    store.put(("a",), "short", {"n": 9})
    assert store.import_items(records) == 0
    for broken in ({}, "x", {**records[0], "created_at": "yesterday"}, {**records[0], "value": 1}):
        with pytest.raises(CheckpointerInputError):
            store.import_items([cast("Any", broken)])
    for field, value in {
        "namespace": "ab",
        "created_at": "0001-01-01T00:00:00+23:59",
        # A put over it would be later than the last time that there is.
        "updated_at": "9999-12-31T23:59:59.999999+00:00",
        "expires_at": "9999-12-31T23:59:59-10:00",
    }.items():
        with pytest.raises(CheckpointerInputError, match=field):
            store.import_items([{**records[0], "key": "new", field: value}])
    assert len(store.search((), limit=99)) == 2


def test_a_record_with_an_expiry_or_a_ttl_alone_expires(
    make_store: MakeStore, client: Any, table_name: str
) -> None:
    store = make_store()
    store.put(NAMESPACE, "k", {"data": random.Random(5).randbytes(200_000).hex()})
    (record,) = store.export_items()
    store.delete_namespace(())
    ends = record["updated_at"].replace(record["updated_at"][:4], "2999", 1)
    only_ttl, only_expiry = {"key": "ttl", "ttl_minutes": 60}, {"key": "expiry", "expires_at": ends}
    store.import_items([record | only_ttl, record | only_expiry])
    # Nothing is left for ever: neither a memory, nor the segments of one.
    stored = client.scan(TableName=table_name)["Items"]
    assert [each["SK"]["S"] for each in stored if "expires_at" not in each] == ["P#u1/"]
    at(store, 3601)
    assert store.get(NAMESPACE, "ttl") is None
    assert store.get(NAMESPACE, "expiry") is not None


def test_there_is_no_sweeper_to_start_since_dynamodb_sweeps(make_store: MakeStore) -> None:
    store = make_store(ttl={"default_ttl": 1, "sweep_interval_minutes": 1})
    assert store.start_ttl_sweeper().done()
    assert store.stop_ttl_sweeper(timeout=1) is True
    store.put(NAMESPACE, "k", {})
    at(store, 100)
    assert store.get(NAMESPACE, "k") is None


@pytest.mark.search
@pytest.mark.engines("dynamodb-local")
def test_a_value_of_25_megabytes_is_stored_and_replaced_as_a_whole(
    make_store: MakeStore, client: Any, table_name: str
) -> None:
    store = make_store()
    value = {"data": random.Random(4).randbytes(12_500_000).hex()}
    store.put(NAMESPACE, "k", value)
    assert got(store).value == value
    store.put(NAMESPACE, "k", {"small": True})
    assert client.scan(TableName=table_name, Select="COUNT")["Count"] == 2
