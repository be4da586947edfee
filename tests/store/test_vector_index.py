"""Search by DynamoDB's vector index, against a double that answers by the documented rules."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.tenants import TenantCredentials
from langgraph.store.dynamodb import DynamoDBStore, SearchLimitError
from langgraph.store.dynamodb.keys import address_of
from langgraph.store.dynamodb.memory_items import pack_value
from langgraph.store.dynamodb.put import Put, put
from langgraph.store.dynamodb.search import Found, Search, search
from langgraph.store.dynamodb.similarity import Query
from langgraph.store.dynamodb.storage import StoreStorage
from langgraph.store.dynamodb.vector_index import INDEX, IndexVectors, add_command, check_index
from tests.store.test_vectors import DISTANCES
from tests.support.harness import Harness
from tests.support.vector_index import VectorIndex

T = TypeVar("T")
CONFIG: Any = {"dims": 3, "embed": lambda texts: [[1.0, 0.0, 0.0] for _ in texts], "search": "dynamodb"}


class World:
    """A store's operations on a table that has a vector index."""

    def __init__(self, distance: Literal["cosine", "l2", "inner_product"] = "cosine", dims: int = 3) -> None:
        """Make an empty table."""
        self.harness = Harness()
        self.vectors = IndexVectors(dims, distance)
        self.index = VectorIndex(self.harness.model, self.vectors.definition())
        base = self.harness.process().storage
        self.storage = StoreStorage(codec=base.codec, table=base.table, clock=base.clock, rng=base.rng)

    def run(self, operation: Op[T]) -> T:
        """Run an operation."""
        outcomes: Any = None
        try:
            while True:
                steps = operation.send(outcomes)
                outcomes = [self._perform(step) for step in steps]
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _perform(self, step: Any) -> Any:
        if not hasattr(step, "method"):
            return self.harness.perform(step)
        try:
            return self.index.handle(step.method, step.params)
        except Exception as error:  # noqa: BLE001 - the operation is told.
            return error

    def put(self, namespace: tuple[str, ...], key: str, *embeddings: list[float], value: Any = None) -> None:
        """Store a memory with vectors."""
        address = address_of(namespace, key)
        raw = pack_value(self.storage.codec, value or {}, "value")
        packed = [self.vectors.pack(each, address) for each in embeddings]
        assert self.run(put(self.storage, Put(address, raw, packed)))
        self.harness.now += 1

    def found(self, namespace: tuple[str, ...], embedding: list[float], **options: Any) -> list[Found]:
        """Search."""
        wanted = Search(namespace, similar_to=Query(self.vectors, embedding), **options)
        return self.run(search(self.storage, wanted))


def keys(found: list[Found]) -> list[str]:
    """Return the keys of what was found."""
    return [loaded.address.key for loaded, _ in found]


@pytest.mark.parametrize(("distance", "expected"), DISTANCES)
def test_each_distance_gives_the_scores_of_the_exact_search(
    distance: Any, expected: list[tuple[str, float]]
) -> None:
    world = World(distance)
    for key, embedding in {"a": [1.0, 0.0, 0.0], "b": [2.0, 0.1, 0.0], "c": [0.0, 0.0, 1.0]}.items():
        world.put(("n",), key, embedding)
    found = world.found(("n",), [1.0, 0.0, 0.0])
    assert keys(found) == [key for key, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-5)


def test_prefixes_match_whole_labels_at_every_depth() -> None:
    world = World()
    deep = tuple("abcdefghij")
    namespaces = [("a",), ("a", "b"), ("ab",), ("a/b",), deep[:8], deep[:9], deep, (*deep[:8], "x")]
    for namespace in namespaces:
        world.put(namespace, "k", [1.0, 0.0, 0.0])
    for prefix in ((), ("a",), ("a", "b"), deep[:7], deep[:8], deep[:9], deep, ("a", "bc")):
        found = world.found(prefix, [1.0, 0.0, 0.0], limit=20)
        assert {loaded.address.namespace for loaded, _ in found} == {
            each for each in namespaces if each[: len(prefix)] == prefix
        }
        assert all(score == pytest.approx(1) for _, score in found)


def test_an_index_that_lags_gives_no_score_of_an_old_value_and_leaves_nothing_out() -> None:
    world = World()
    world.put(("n",), "replaced", [1.0, 0.0, 0.0])
    world.put(("n",), "gone", [1.0, 0.0, 0.0])
    world.put(("n",), "same", [0.0, 1.0, 0.0], [0.5, 0.5, 0.0])
    world.put(("n",), "without")
    world.index.freeze()
    world.put(("n",), "replaced", [0.0, 0.0, 1.0])
    world.put(("n",), "new", [1.0, 0.0, 0.0])
    world.run(put(world.storage, Put(address_of(("n",), "gone"), None)))
    found = world.found(("n",), [1.0, 0.0, 0.0])
    assert [(loaded.address.key, score) for loaded, score in found] == [
        ("same", pytest.approx(0.5**0.5)), ("new", None), ("replaced", None), ("without", None),
    ]  # fmt: skip
    world.index.seen = None
    assert keys(world.found(("n",), [1.0, 0.0, 0.0], limit=2)) == ["new", "same"]


def test_more_than_one_search_returns_is_an_error_and_no_short_answer() -> None:
    world = World()
    for number in range(101):
        world.put(("n",), f"{number:03}", [1.0, number / 1000, 0.0], value={"n": number})
    assert keys(world.found(("n",), [1.0, 0.0, 0.0], limit=3)) == ["000", "001", "002"]
    assert len(world.found(("n",), [1.0, 0.0, 0.0], limit=100)) == 100
    with pytest.raises(
        SearchLimitError, match="found 100 of 101 memories among the 100 most similar vectors"
    ):
        world.found(("n",), [1.0, 0.0, 0.0], limit=101)
    with pytest.raises(SearchLimitError, match="found 0 of 1 memories"):
        world.found(("n",), [1.0, 0.0, 0.0], limit=1, filter={"n": 100})


def test_what_is_wrong_with_the_index_is_named_with_its_remedy() -> None:
    world = World()
    world.put(("n",), "k", [1.0, 0.0, 0.0])
    world.run(check_index(world.storage.table, world.vectors))
    world.index.exists = False
    with pytest.raises(
        CheckpointerConfigurationError, match=f"has no vector index {INDEX}; add it with `aws dynamodb"
    ):
        world.found(("n",), [1.0, 0.0, 0.0])
    world.index.exists = True
    for status in ({"IndexStatus": "CREATING"}, {"IndexStatus": "ACTIVE", "Backfilling": True}):
        world.index.status = status
        with pytest.raises(CheckpointerConfigurationError, match="is still being built"):
            world.run(check_index(world.storage.table, world.vectors))
    world.index.status = {"IndexStatus": "ACTIVE"}
    with pytest.raises(CheckpointerConfigurationError, match="has Dimensions=3, not 4"):
        world.run(
            search(world.storage, Search(("n",), similar_to=Query(IndexVectors(4, "cosine"), [1.0] * 4)))
        )
    with pytest.raises(CheckpointerConfigurationError, match="has DistanceFunction=COSINE, not EUCLIDEAN"):
        world.run(check_index(world.storage.table, IndexVectors(3, "l2")))
    world.index.billing = "PROVISIONED"
    with pytest.raises(
        CheckpointerConfigurationError, match="provisioned capacity, and vector indexes are for on-dem"
    ):
        world.run(check_index(world.storage.table, world.vectors))


def test_the_command_creates_the_index_that_the_store_expects() -> None:
    vectors = IndexVectors(1536, "l2")
    command = add_command("memories", vectors)
    (update,) = json.loads(command.split("'")[1])
    assert update == {"Create": vectors.definition()}
    assert len(update["Create"]["SearchSchema"]) == 8


# The store refuses what the index cannot do


@pytest.fixture
def with_new_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the installed botocore know the request."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.43.64")


@pytest.mark.usefixtures("with_new_botocore")
def test_encrypted_values_and_sessions_of_tenants_are_refused(
    make_store: Callable[..., DynamoDBStore],
) -> None:
    cipher = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with pytest.raises(CheckpointerConfigurationError, match="keeps embeddings that are not encrypted"):
        make_store(index=CONFIG, serde=cipher)
    session = TenantCredentials(lambda _: {}).session()
    with pytest.raises(CheckpointerConfigurationError, match="no policy can keep tenants apart"):
        make_store(index=CONFIG, session=session, async_session=None)
    assert make_store(index=CONFIG).index_config == CONFIG


@pytest.mark.usefixtures("with_new_botocore")
def test_setup_names_what_the_table_lacks(make_store: Callable[..., DynamoDBStore]) -> None:
    with pytest.raises(CheckpointerConfigurationError, match=r"has no vector index|provisioned capacity"):
        make_store(index=CONFIG).setup()


@pytest.mark.parametrize("installed", ["1.43.63", "1.40.61", "1.9.99"])
def test_a_botocore_that_does_not_know_the_request_is_refused(
    monkeypatch: pytest.MonkeyPatch, make_store: Callable[..., DynamoDBStore], installed: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: installed)
    with pytest.raises(
        CheckpointerConfigurationError, match=f"needs botocore 1.43.64 or later, and {installed}"
    ):
        make_store(index=CONFIG)
