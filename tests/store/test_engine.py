"""An engine of the user's own keeps the vectors: three methods, which may be late and may keep too much."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import PutOp

from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.store.dynamodb import DynamoDBStore, SearchLimitError
from tests.store.conftest import DIMS, CountedEmbeddings, DictEngine, MakeStore

NAMESPACE = ("users", "u1", "notes")


@pytest.fixture
def engine_of_mine() -> DictEngine:
    """Give an engine."""
    return DictEngine()


@pytest.fixture
def indexed(
    make_store: MakeStore, embeddings: CountedEmbeddings, engine_of_mine: DictEngine
) -> DynamoDBStore:
    """Give a store that uses it."""
    index = {"dims": DIMS, "embed": embeddings, "fields": ["text", "more[*]"], "search": engine_of_mine}
    return make_store(index=index)


def found(store: DynamoDBStore, query: str, **options: Any) -> list[tuple[str, float | None]]:
    """Return keys and scores."""
    return [(each.key, each.score) for each in store.search(NAMESPACE, query=query, **options)]


async def test_the_engine_has_what_the_values_have(
    indexed: DynamoDBStore, engine_of_mine: DictEngine
) -> None:
    indexed.batch([
        PutOp(NAMESPACE, "one", {"text": "a", "more": ["aa", "b"]}),
        PutOp(NAMESPACE, "two", {"text": "ab"}),
        PutOp(NAMESPACE, "none", {"text": "a"}, index=False),
        PutOp(("other",), "far", {"text": "aaaa"}),
    ])  # fmt: skip
    assert found(indexed, "a") == [("one", 2.0), ("two", 1.0), ("none", None)]
    assert [each.key for each in await indexed.asearch((), query="a", limit=1)] == ["far"]
    assert len(engine_of_mine.kept) == 5
    await indexed.aput(NAMESPACE, "one", {"text": "c"})
    assert len(engine_of_mine.kept) == 3
    assert found(indexed, "c", limit=1) == [("one", 1.0)]
    assert indexed.delete_namespace(NAMESPACE) == 3
    assert {each.namespace for each in engine_of_mine.kept.values()} == {("other",)}


def test_vectors_of_old_values_are_never_found(indexed: DynamoDBStore, engine_of_mine: DictEngine) -> None:
    engine_of_mine.forgets = False
    indexed.put(NAMESPACE, "k", {"text": "aaaa"})
    indexed.put(NAMESPACE, "k", {"text": "a"})
    indexed.put(NAMESPACE, "gone", {"text": "aaa"})
    indexed.delete(NAMESPACE, "gone")
    assert len(engine_of_mine.kept) == 3
    assert found(indexed, "a") == [("k", 1.0)]


def test_an_engine_that_returns_as_much_as_it_may_gives_no_short_answer(
    indexed: DynamoDBStore, engine_of_mine: DictEngine
) -> None:
    indexed.batch([PutOp(NAMESPACE, str(number), {"text": "a", "n": number}) for number in range(120)])
    assert len(found(indexed, "a", limit=30)) == 30
    with pytest.raises(SearchLimitError, match="found 0 of 1 memories among the 104 most similar vectors"):
        found(indexed, "a", limit=1, filter={"n": 1000})


class FixedEngine(DictEngine):
    """Returns the same answer to every search."""

    answer: Sequence[tuple[str, float]] = ()

    def search(
        self, namespace: tuple[str, ...], embedding: Sequence[float], limit: int
    ) -> Sequence[tuple[str, float]]:
        """Return the answer."""
        return self.answer


@pytest.fixture
def fixed(make_store: MakeStore, embeddings: CountedEmbeddings) -> tuple[DynamoDBStore, FixedEngine]:
    """Give a store, and its engine of one answer."""
    engine = FixedEngine()
    return make_store(index={"dims": DIMS, "embed": embeddings, "search": engine}), engine


@pytest.mark.parametrize("vector_id", ["mine", "users/u1/%M#V#notes/#k"])
def test_ids_that_are_not_the_stores_are_refused(
    fixed: tuple[DynamoDBStore, FixedEngine], vector_id: str
) -> None:
    store, engine = fixed
    engine.answer = [(vector_id, 1.0)]
    with pytest.raises(CheckpointerInputError, match="must return ids that were passed to its put"):
        store.search(NAMESPACE, query="a")


def test_an_engine_cannot_return_memories_of_another_namespace(
    fixed: tuple[DynamoDBStore, FixedEngine],
) -> None:
    # As one that takes a prefix of text for one of labels.
    store, engine = fixed
    store.put(("users", "u12", "notes"), "k", {"text": "a"})
    engine.answer = [(each, 1.0) for each in engine.kept]
    assert len(store.search(("users", "u12"), query="a")) == len(store.search(("users",), query="a")) == 1
    for namespace in (("users", "u1"), ("user",), ("users", "u12", "note"), ("users", "u12", "notes", "x")):
        with pytest.raises(CheckpointerInputError, match=r"%M#V#notes.* is not under the namespace"):
            store.search(namespace, query="a")


def test_a_score_that_is_not_a_number_is_refused(fixed: tuple[DynamoDBStore, FixedEngine]) -> None:
    store, engine = fixed
    store.put(NAMESPACE, "k", {"text": "a"})
    engine.answer = [(each, math.nan) for each in engine.kept]
    with pytest.raises(CheckpointerInputError, match="the score nan"):
        store.search(NAMESPACE, query="a")


def test_an_engine_is_refused_where_values_are_encrypted(
    make_store: MakeStore, embeddings: CountedEmbeddings
) -> None:
    cipher = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with pytest.raises(CheckpointerConfigurationError, match="not encrypted, and serde encrypts"):
        make_store(index={"dims": DIMS, "embed": embeddings, "search": DictEngine()}, serde=cipher)
