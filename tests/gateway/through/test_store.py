"""The store through the gateway: every test of the contract, and what is the gateway's own."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb.gateway import Limits, memory_calls
from langgraph.checkpoint.dynamodb.gateway.memory_calls import StoreResults
from langgraph.checkpoint.dynamodb.http import HttpStore
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from langgraph.store.dynamodb import DynamoDBStore, SearchLimitError
from langgraph.store.dynamodb.resources import StoreStorage
from tests.conftest import Closed, MakeSaver
from tests.gateway.through.conftest import NO_CERTIFICATES, Serve
from tests.store import test_contract, test_events, test_paging, test_vectors
from tests.store.conftest import DictEngine, embeddings
from tests.store.test_paging import FILES, events, fill, paged, pages_of
from tests.store.test_vectors import indexed
from tests.support.checkpoints import noise
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")

# numpy is the service's, which says what to install: test_labels.py. A client is told neither units nor what is stored.
# The service keeps nothing between two pages.
OF_THE_TABLE = (
    "test_all_pages_cost_what_one_search_does",
    "test_a_put_of_another_process_between_two_pages_moves_nothing",
    "test_equal_searches_of_a_batch_are_read_once",
    "test_a_search_by_similarity_with_a_filter_that_matches_rarely_reads_memories_once",
    "test_vectors_and_their_store_without_numpy_say_what_to_install",
    "test_units_and_bytes_are_told",
)
# The same tests, with the fixtures of this module.
globals().update(
    {
        name: each
        for module in (test_contract, test_events, test_paging, test_vectors)
        for name, each in vars(module).items()
        if name.startswith("test_") and name not in OF_THE_TABLE
    }
)
__all__ = ["embeddings", "events", "indexed", "paged"]

MakeStore = Callable[..., HttpStore]
MakeDirect = Callable[..., DynamoDBStore]
NAMESPACE = ("users", "u1")
# The service's, and not the client's.
OF_THE_LIMITS = ("search_bytes_max", "body_bytes_max", "decompressed_bytes_max")
LARGE: dict[str, Any] = dict.fromkeys(OF_THE_LIMITS, 64 << 20)
OF_THE_SAVER = ("serde", "consistent_read", "allow_unencrypted")


@pytest.fixture
def storages(monkeypatch: pytest.MonkeyPatch) -> list[StoreStorage]:
    """Give the storages of all stores that services make."""
    made = list[StoreStorage]()

    def make(**fields: Any) -> StoreStorage:
        made.append(StoreStorage(**fields))
        return made[-1]

    monkeypatch.setattr(memory_calls, "StoreStorage", make)
    return made


class Asked(list[str]):
    """The endpoints that clients have asked."""

    twice = False
    answer: Any = None
    before: Callable[[], None] | None = None

    def send(self, send: Callable[[Any], Any], call: Any) -> Any:
        """Send a request; or again, as if the first answer had been lost; or answer it here."""
        self.append(call.method)
        if self.before is not None:
            self.before()
        if self.answer is not None:
            return self.answer
        answer = send(call)
        return send(call) if self.twice else answer


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Give the endpoints that clients ask on OS threads."""
    noted, send = Asked(), GatewayTransport.send
    monkeypatch.setattr(GatewayTransport, "send", lambda self, call: noted.send(partial(send, self), call))
    return noted


@pytest.fixture
def make_store(
    make_saver: MakeSaver,
    serve_saver: Serve,
    storages: list[StoreStorage],
    asked: Asked,
    table_name: str,
    closed: Closed,
) -> Callable[..., Any]:
    """Give a factory of stores through a gateway; it takes the store's keywords, and they are closed after the test."""
    del asked

    def make(**options: Any) -> Any:
        given = {name: options.pop(name) for name in OF_THE_SAVER if name in options}
        limits = LARGE | {each: options.pop(each) for each in OF_THE_LIMITS if each in options}
        own = options.pop("client", None)
        saver = make_saver(**given) if own is None else DynamoDBSaver(table_name, client=own)
        url = serve_saver(saver, limits=Limits(**limits))
        store = closed(HttpStore(url, client_options={"verify": NO_CERTIFICATES}, **options))
        # That of the service, whose clock tests change.
        store.storage = storages[-1]
        return store

    return make


@pytest.fixture
def store(make_store: MakeStore) -> HttpStore:
    """Give a store without vectors."""
    return make_store()


@pytest.fixture
def watched(make_store: MakeStore, own_client: Any, traffic: Traffic) -> HttpStore:
    """Give a store through a gateway whose every request to the table is in `traffic`."""
    del traffic
    return make_store(client=own_client)


def test_the_gateway_compares_vectors() -> None:
    index: Any = {"dims": 3, "embed": lambda _: [[1.0]], "search": DictEngine()}
    with pytest.raises(CheckpointerConfigurationError, match="the gateway compares vectors exactly"):
        HttpStore("https://gateway.example", index=index)


# Pages


def _read_units(client: Any) -> list[float]:
    """Return the read units of all that a client asks from now on."""
    units = list[float]()
    hooks = client.meta.events
    hooks.register("provide-client-params", lambda params, **_: {**params, "ReturnConsumedCapacity": "TOTAL"})
    hooks.register(
        "after-call", lambda parsed, **_: units.append(parsed["ConsumedCapacity"]["CapacityUnits"])
    )
    return units


def test_all_pages_of_small_memories_cost_two_searches(
    make_store: MakeStore, own_client: Any, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy this machine is, no page ends before it is full, and the next one comes in time.
    monkeypatch.setattr(Limits, "part_seconds", 600.0)
    monkeypatch.setattr("langgraph.store.dynamodb.resources.LISTING_SECONDS", 600.0)
    store = make_store(client=own_client)
    fill(store, 2_000)
    asked.clear()
    units = _read_units(own_client)
    assert len({key for page in pages_of(store, 100) for key in page}) == 2_000
    assert (sum(units) <= 200, len(units) <= 25, len(asked) <= 5) == (True, True, True)


def test_pages_renew_the_ttls_of_no_memory_that_was_not_returned(
    store: Any, client: Any, table_name: str
) -> None:
    store.batch([PutOp(FILES, f"{number:02}", {}, ttl=60) for number in range(30)])
    test_contract.at(store, 1800)
    read = [each.key for offset in (0, 5) for each in store.search(FILES, limit=5, offset=offset)]
    ends = {
        each["SK"]["S"][-2:]: int(each["expires_at"]["N"])
        for each in client.scan(TableName=table_name)["Items"]
        if "ttl_seconds" in each
    }
    assert sorted(read) == sorted(key for key in ends if ends[key] > min(ends.values()) + 900)


def test_pages_of_large_memories_read_no_more_than_a_page(make_store: MakeStore, asked: Asked) -> None:
    """What does not fit into the answer beside a page is left for the next one, or is read without what follows."""
    store = make_store(body_bytes_max=30_000)
    for number in range(30):
        size = 10 if number >= 10 else 40_000 if number < 5 else 9_000
        store.put(FILES, f"{number:02}", {"text": "x" * size})
    pages, read = pages_of(store, 5), list[str]()
    for _ in range(5):
        read += next(pages)
    assert read == [f"{number:02}" for number in range(29, 4, -1)]
    with pytest.raises(CheckpointerInputError, match=r"value of memory '04' has 40\d* bytes"):
        next(pages)


# Many operations, and large ones


def test_what_does_not_fit_into_one_answer_is_asked_for_again(make_store: MakeStore, asked: Asked) -> None:
    store = make_store(body_bytes_max=30_000)
    for number in range(12):
        store.put(NAMESPACE, f"{number:02}", {"text": f"{number} " * 2000, "n": number})
    asked.clear()
    ops: list[Any] = [
        SearchOp(NAMESPACE, limit=11),
        *(GetOp(NAMESPACE, f"{number:02}") for number in range(12)),
        # The puts come last, also behind the rest of what the search found.
        *(PutOp(NAMESPACE, f"{number:02}", {"n": "new"}) for number in range(12)),
        ListNamespacesOp(),
    ]
    results: Any = store.batch(ops)
    assert len(asked) > 5
    assert [each.value["n"] for each in results[0]] == list(range(11, 0, -1))
    assert [each.value["n"] for each in results[1:13]] == list(range(12))
    assert results[13:] == [*[None] * 12, [NAMESPACE]]
    for order in ("updated_at", "created_at", "key"):
        found: Any = store.search(NAMESPACE, limit=99, order=order)
        assert len({each.key for each in found}) == len(found) == 12
        assert {each.value["n"] for each in found} == {"new"}


def test_a_search_by_similarity_that_needs_many_answers(make_store: MakeStore, embeddings: Any) -> None:
    index = {"dims": 26, "embed": embeddings, "fields": ["topic"]}
    store = make_store(body_bytes_max=30_000, index=index)
    for number in range(8):
        store.put(NAMESPACE, f"{number}", {"topic": "a" * 8 + "b" * number, "text": f"{number} " * 2500})
    found = store.search(NAMESPACE, query="a", limit=6)
    assert [each.key for each in found] == [f"{number}" for number in range(6)]
    assert sorted(found, key=lambda each: -(each.score or 0)) == found


def test_what_changes_after_a_search_is_found_as_it_is_then(make_store: MakeStore, asked: Asked) -> None:
    store = make_store(body_bytes_max=30_000)
    for number in range(9):
        store.put(NAMESPACE, f"{number}", {"text": f"{number} " * 2000, "n": number})
    asked.clear()

    def change() -> None:
        if len(asked) == 2:
            other = make_store()
            other.put(NAMESPACE, "0", {"n": 0, "text": "later"})
            other.put(NAMESPACE, "1", {"n": 99})
            other.delete(NAMESPACE, "2")

    asked.before = change
    found = store.search(NAMESPACE, filter={"n": {"$lt": 9}}, limit=9)
    assert [each.key for each in found] == ["8", "7", "6", "5", "4", "3", "0"]
    assert found[-1].value["text"] == "later"


def test_a_value_over_the_limits_is_refused_by_name(make_store: MakeStore, asked: Asked) -> None:
    store = make_store(decompressed_bytes_max=600_000)
    with pytest.raises(CheckpointerInputError, match=r"the put of 'k' has .* bytes, and .*body_bytes_max"):
        store.put(NAMESPACE, "k", {"text": "x" * 700_000})
    assert asked == ["about"]
    store.put(NAMESPACE, "k", {"text": "x" * 550_000})
    with pytest.raises(CheckpointerInputError, match="put of 'k'"):
        store.put_if(NAMESPACE, "k", {"text": "x" * 700_000}, revision=None)
    # The gateway's limits are asked for once.
    assert asked == ["about", "store/batch"]


def test_namespaces_come_in_as_many_responses_as_there_is_time_for(
    store: Any, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespaces = [("users", "u1"), *(("users", f"u{number % 5}", f"{number}") for number in range(20))]
    store.batch([PutOp(each, "k", {}) for each in namespaces])
    # The time for every response is over at once.
    monkeypatch.setattr(Limits, "part_seconds", -1.0)
    monkeypatch.setattr("langgraph.store.dynamodb.partitions._AT_ONCE", 2)
    asked.clear()
    assert store.list_namespaces() == sorted(namespaces)
    assert len(asked) >= len(namespaces)
    assert store.list_namespaces(prefix=("users", "u1"), limit=2, offset=1) == [
        ("users", "u1", "1"),
        ("users", "u1", "11"),
    ]
    assert store.list_namespaces(max_depth=2) == [("users", f"u{number}") for number in range(5)]
    # Nothing that is found ends a response then.
    for number in range(4):
        store.delete_namespace(("users", f"u{number}"))
    asked.clear()
    assert len(store.list_namespaces()) == 4
    reads, new = [ListNamespacesOp(), GetOp(("users", "u4", "4"), "k")], ("users", "u4", "new")
    listed, got, _ = store.batch([*reads, PutOp(new, "k", {})])
    assert (new in listed, got.key, store.get(new, "k").key) == (False, "k", "k")


def test_namespaces_come_in_as_many_responses_as_they_need(make_store: MakeStore, asked: Asked) -> None:
    store = make_store(body_bytes_max=2_000)
    namespaces = sorted(("users", f"u{number}") for number in range(20))
    for each in namespaces:
        store.put(each, "k", {})
    asked.clear()
    assert store.list_namespaces() == namespaces
    assert len(asked) >= 3


def test_a_memory_as_large_as_a_body_is_read_and_a_larger_one_names_the_limit(make_store: MakeStore) -> None:
    store = make_store(body_bytes_max=30_000)
    # A memory's document has 300 bytes beside its value.
    largest = {"text": "x" * (30_000 - 300 - len('{"text":""}'))}
    store.put(NAMESPACE, "k", largest)
    found: Any = store.get(NAMESPACE, "k")
    assert found.value == largest
    store.put(NAMESPACE, "k", {"text": largest["text"] + "x"})
    with pytest.raises(CheckpointerInputError, match="at most 30000; raise body_bytes_max"):
        store.get(NAMESPACE, "k")


def test_what_is_deleted_while_it_is_exported_is_left_out(
    make_store: MakeStore, make_direct: MakeDirect, asked: Asked
) -> None:
    store, direct = make_store(body_bytes_max=30_000), make_direct()
    for number in range(9):
        store.put(NAMESPACE, f"{number}", {"text": f"{number} " * 2000, "n": number})
    asked.clear()

    def delete() -> None:
        # The first answer had no room for the last one, which is asked for now.
        if len(asked) == 2:
            direct.delete(NAMESPACE, "8")

    asked.before = delete
    assert [each["key"] for each in store.export_items(NAMESPACE)] == [f"{number}" for number in range(8)]
    assert len(asked) >= 2


def test_a_deletion_goes_on_with_the_next_request(
    store: Any, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The last one has the longest key that a memory of its namespace can have.
    keys = [*map(str, range(29)), "k" * 1019]
    store.batch([PutOp(("users", f"u{number % 3}", "x"), key, {}) for number, key in enumerate(keys)])
    # Every look at the clock is past the end of the time for one request.
    now = iter(range(2_000_000_000, 10**10, 1000))
    object.__setattr__(store.storage, "clock", lambda: float(next(now)))
    asked.clear()
    assert store.delete_namespace(("users",)) == 30
    assert asked == ["store/delete-namespace"] * 4


# Beside a store on the table


@pytest.fixture
def make_direct(reach: dict[str, Any], table_name: str, closed: Closed) -> MakeDirect:
    """Give a factory of stores on the table itself."""
    return lambda **options: closed(DynamoDBStore(table_name, **reach, **options))


def test_either_store_reads_what_the_other_one_stored(
    make_store: MakeStore, make_direct: MakeDirect, embeddings: Any
) -> None:
    index = {"dims": 26, "embed": embeddings, "fields": ["topic"]}
    near, far = make_direct(index=index), make_store(index=index)
    far.put(NAMESPACE, "far", {"topic": "zz", "n": 1.5}, ttl=60)
    near.put(NAMESPACE, "near", {"topic": "zy", "n": [None, True, 2**60]})
    assert near.search(NAMESPACE, query="z") == far.search(NAMESPACE, query="z")
    assert [each.key for each in far.search(NAMESPACE, query="z")] == ["far", "near"]
    assert list(near.export_items()) == list(far.export_items())
    found: Any = near.get(NAMESPACE, "far")
    assert far.put_if(NAMESPACE, "far", {"n": 2}, revision=found.revision)
    assert near.put_if(NAMESPACE, "far", {"n": 3}, revision=found.revision) is None


def test_an_export_asks_for_as_many_large_memories_as_one_search_may_read(
    make_store: MakeStore, make_direct: MakeDirect
) -> None:
    near, far = make_direct(), make_store(search_bytes_max=60_000)
    near.batch([PutOp(NAMESPACE, f"{number:02}", {"text": noise(10_000).hex()}) for number in range(20)])
    assert list(far.export_items()) == list(near.export_items())
    near.put(NAMESPACE, "too large", {"text": noise(100_000).hex()})
    with pytest.raises(SearchLimitError):
        list(far.export_items())


def test_a_put_if_whose_answer_was_lost_is_known_again(
    store: HttpStore, asked: Asked, client: Any, table_name: str
) -> None:
    large = {"text": "".join(chr(33 + number * number % 90) for number in range(300_000))}
    store.put(("users", "u1", "x"), "k", large)
    stored = client.scan(TableName=table_name)["Count"]
    store.delete(("users", "u1", "x"), "k")
    asked.twice = True
    revision: Any = store.put_if(NAMESPACE, "k", large, revision=None)
    found: Any = store.get(NAMESPACE, "k")
    assert (found.revision, found.value) == (revision, large)
    # The second call has left nothing: there is the tombstone, and once what a value of this size takes.
    assert client.scan(TableName=table_name)["Count"] == stored + 1
    assert store.put_if(NAMESPACE, "k", None, revision=revision)
    assert store.get(NAMESPACE, "k") is None


def test_an_import_whose_answer_was_lost_counts_once(store: HttpStore, asked: Asked) -> None:
    store.put(NAMESPACE, "k", {})
    records = [{**each, "key": f"{number}"} for number, each in enumerate([*store.export_items()] * 3)]
    asked.twice = True
    assert store.import_items(records) == 3
    assert store.import_items(records) == 0


def test_an_answer_without_any_result_ends_the_call(store: HttpStore, asked: Asked) -> None:
    assert store.get(NAMESPACE, "k") is None
    asked.answer = StoreResults([None], [0])
    with pytest.raises(CheckpointerError, match="the gateway ran no operation of a batch"):
        store.get(NAMESPACE, "k")


def test_a_value_is_sent_as_the_text_of_its_json(store: HttpStore) -> None:
    value = {"nan": float("inf"), "text": "\u2028 \U0001f600", "deep": json.loads("[" * 200 + "]" * 200)}
    store.put(NAMESPACE, "k", value)
    found: Any = store.get(NAMESPACE, "k")
    assert found.value == value
