"""Search by similarity: the best text of a memory counts, and no vector of an old value does."""

import math
import sys
import time
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import PutOp, SearchOp

from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.store.dynamodb import DynamoDBStore, SearchLimitError
from tests.store.conftest import DIMS, CountedEmbeddings, MakeStore
from tests.support.checkpoints import noise
from tests.support.traffic import Traffic

NAMESPACE = ("users", "u1", "notes")


@pytest.fixture(params=["plain", "encrypted"])
def indexed(
    request: pytest.FixtureRequest, make_store: MakeStore, embeddings: CountedEmbeddings
) -> DynamoDBStore:
    """Give a store that embeds `text`, and what is in `parts`."""
    cipher = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    index = {"dims": DIMS, "embed": embeddings, "fields": ["text", "parts[*].text"]}
    return make_store(index=index, serde=cipher if request.param == "encrypted" else None)


def found(store: DynamoDBStore, query: str, **options: Any) -> list[tuple[str, float | None]]:
    """Return keys and rounded scores."""
    items = store.search(NAMESPACE, query=query, **options)
    return [(each.key, None if each.score is None else round(each.score, 2)) for each in items]


def test_the_best_text_counts_and_what_has_no_vector_comes_last(indexed: DynamoDBStore) -> None:
    indexed.batch([
        PutOp(NAMESPACE, "one", {"text": "aaab"}),
        PutOp(NAMESPACE, "many", {"text": "zzz", "parts": [{"text": "a"}, {"text": "q"}, {"no": 1}]}),
        PutOp(NAMESPACE, "none", {"other": "a"}),
        PutOp(NAMESPACE, "unindexed", {"text": "a"}, index=False),
        PutOp(NAMESPACE, "by path", {"text": "a", "title": "b"}, index=["title"]),
    ])  # fmt: skip
    expected = [("many", 1.0), ("one", 0.95), ("by path", 0.0)]
    assert found(indexed, "a")[:3] == expected
    assert set(found(indexed, "a")[3:]) == {("none", None), ("unindexed", None)}
    assert found(indexed, "a", limit=2) == expected[:2]
    assert found(indexed, "a", limit=1, offset=1) == expected[1:2]
    assert found(indexed, "a", limit=3, offset=2)[0] == expected[2]
    assert found(indexed, "a", filter={"text": {"$ne": "zzz"}}, limit=1) == [("one", 0.95)]
    assert [score for _, score in found(indexed, "")] == [None] * 5
    assert indexed.search((), query="a", limit=1)[0].key == "many"


def test_an_old_value_is_not_found_by_its_text(indexed: DynamoDBStore, client: Any, table_name: str) -> None:
    indexed.put(NAMESPACE, "k", {"text": "a", "parts": [{"text": "b"}, {"text": "c"}]})
    indexed.put(NAMESPACE, "k", {"text": "z"})
    assert found(indexed, "z") == [("k", 1.0)]
    assert found(indexed, "b") == [("k", 0.0)]
    assert _vectors(client, table_name) == 1
    indexed.put(NAMESPACE, "k", {"text": "z"}, index=False)
    assert found(indexed, "z") == [("k", None)]
    assert _vectors(client, table_name) == 0
    indexed.put(NAMESPACE, "k", {"text": "z"}, ttl=1)
    object.__setattr__(indexed.storage, "clock", lambda: time.time() + 100)
    assert found(indexed, "z") == []
    object.__setattr__(indexed.storage, "clock", time.time)
    indexed.delete(NAMESPACE, "k")
    assert found(indexed, "z") == []
    assert _vectors(client, table_name) == 0


def _vectors(client: Any, table_name: str) -> int:
    return sum(item["SK"]["S"].startswith("V#") for item in client.scan(TableName=table_name)["Items"])


def test_a_batch_embeds_its_texts_by_one_call(make_store: MakeStore, embeddings: CountedEmbeddings) -> None:
    store = make_store(index={"dims": DIMS, "embed": embeddings, "fields": ["text"]})
    store.batch([PutOp(NAMESPACE, str(n), {"text": f"{'ab'[n % 2]}"}) for n in range(5)])
    assert embeddings.calls == [["a", "b"]]
    embeddings.calls.clear()
    store.batch([SearchOp(NAMESPACE, query="a"), SearchOp((), query="a"), SearchOp(NAMESPACE)])
    assert embeddings.calls == [["a"]]


async def test_the_async_side_embeds_too(make_store: MakeStore, embeddings: CountedEmbeddings) -> None:
    async def embed(texts: Any) -> list[list[float]]:
        return embeddings(texts)

    async with make_store(index={"dims": DIMS, "embed": embed}) as store:
        await store.aput(NAMESPACE, "k", {"whole": "document"})
        assert embeddings.calls == [['{"whole": "document"}']]
        (item,) = await store.asearch(NAMESPACE, query='{"whole": "document"}')
        assert item.score == pytest.approx(1, abs=1e-3)
        assert await store.aput_if(NAMESPACE, "k", {"whole": "z"}, revision=getattr(item, "revision"))  # noqa: B009
        assert len(embeddings.calls) == 3


def test_a_search_reads_the_vectors_and_the_best_memories(
    watched: DynamoDBStore, own_client: Any, traffic: Traffic, make_store: MakeStore,
    embeddings: CountedEmbeddings,
) -> None:  # fmt: skip
    del watched
    store = make_store(client=own_client, index={"dims": DIMS, "embed": embeddings, "fields": ["text"]})
    store.batch([PutOp(NAMESPACE, str(number), {"text": "ab" * number}) for number in range(1, 30)])
    traffic.clear()
    assert len(store.search(NAMESPACE, query="a", limit=5)) == 5
    assert traffic.operations == ["Query", "BatchGetItem"]


def test_a_search_by_similarity_reads_no_more_memories_than_a_search_may(
    make_store: MakeStore, embeddings: CountedEmbeddings
) -> None:
    index = {"dims": DIMS, "embed": embeddings, "fields": ["text"]}
    store = make_store(index=index, search_bytes_max=1_000_000)
    for number in range(12):
        store.put(NAMESPACE, str(number), {"text": "a", "noise": noise(90_000).hex()})
    assert len(store.search(NAMESPACE, query="a", limit=5)) == 5
    with pytest.raises(SearchLimitError):
        store.search(NAMESPACE, query="a", limit=12)


def test_embeddings_of_another_size_are_refused(make_store: MakeStore) -> None:
    store = make_store(index={"dims": 3, "embed": lambda texts: [[1.0] for _ in texts]})
    with pytest.raises(CheckpointerConfigurationError, match="have 1 dimensions, and index has dims=3"):
        store.put(NAMESPACE, "k", {"a": 1})
    assert store.get(NAMESPACE, "k") is None


@pytest.mark.parametrize("wrong", [math.nan, -math.inf, 1e300, 10**400, None, "1", [1.0]], ids=str)
def test_an_embedding_that_cannot_be_compared_is_refused(make_store: MakeStore, wrong: Any) -> None:
    # No order has a place for what is not a number: one such score would mix up all others.
    store = make_store(index={"dims": 2, "embed": lambda texts: [[1.0, wrong] for _ in texts]})
    with pytest.raises(CheckpointerConfigurationError, match="embed returned an embedding with"):
        store.batch([PutOp(NAMESPACE, "fine", {"a": 1}, index=False), PutOp(NAMESPACE, "k", {"a": 1})])
    assert store.search(NAMESPACE) == []
    with pytest.raises(CheckpointerConfigurationError, match="embed returned an embedding with"):
        store.search(NAMESPACE, query="a")


async def test_an_embedding_that_is_missing_is_named(make_store: MakeStore) -> None:
    store = make_store(index={"dims": 1, "embed": lambda _: [[1.0]], "fields": ["text"]})
    puts = [PutOp(NAMESPACE, text, {"text": text}) for text in "ab"]
    with pytest.raises(CheckpointerConfigurationError, match="embed returned 1 embeddings for 2 texts"):
        store.batch(puts)
    with pytest.raises(CheckpointerConfigurationError, match="embed returned 1 embeddings for 2 texts"):
        await store.abatch(puts)
    assert store.search(NAMESPACE) == []


@pytest.mark.parametrize("paths", ["text", True, [1]])
def test_paths_are_a_list_since_the_letters_of_a_text_name_nothing(
    indexed: DynamoDBStore, paths: Any
) -> None:
    with pytest.raises(CheckpointerInputError, match=r"index of a put is .*; give a list of paths"):
        indexed.put(NAMESPACE, "k", {"text": "a"}, index=paths)
    assert indexed.get(NAMESPACE, "k") is None


def test_vectors_of_another_model_are_named_with_their_remedy(make_store: MakeStore) -> None:
    def with_dims(dims: int) -> DynamoDBStore:
        return make_store(index={"dims": dims, "embed": lambda texts: [[1.0] * dims for _ in texts]})

    with_dims(2).put(NAMESPACE, "k", {"a": 1})
    store = with_dims(3)
    store.put(NAMESPACE, "new", {"a": 1})
    with pytest.raises(CheckpointerConfigurationError, match=r"2 dimensions, .* dims=3; .* import_items"):
        store.search(NAMESPACE, query="a")
    records = list(store.export_items(NAMESPACE))
    store.delete_namespace(NAMESPACE)
    store.import_items(records)
    assert found(store, "a") == [("k", 1.0), ("new", 1.0)]


DISTANCES = [
    ("cosine", [("a", 1.0), ("b", 2 / math.sqrt(4.01)), ("c", 0.0)]),
    ("l2", [("a", 0.0), ("b", -math.sqrt(1.01)), ("c", -math.sqrt(2))]),
    ("inner_product", [("b", 2.0), ("a", 1.0), ("c", 0.0)]),
]


@pytest.mark.parametrize(("distance", "expected"), DISTANCES)
def test_each_distance_puts_the_closest_first(
    make_store: MakeStore, distance: str, expected: list[tuple[str, float]]
) -> None:
    known = {"a": [1.0, 0.0, 0.0], "b": [2.0, 0.1, 0.0], "c": [0.0, 0.0, 1.0]}
    store = make_store(
        index={
            "dims": 3,
            "embed": lambda texts: [known[text] for text in texts],
            "fields": ["text"],
            "distance_type": distance,
        }
    )
    store.batch([PutOp(NAMESPACE, key, {"text": key}) for key in known])
    found = store.search(NAMESPACE, query="a")
    assert [each.key for each in found] == [key for key, _ in expected]
    assert [each.score for each in found] == pytest.approx([score for _, score in expected], abs=1e-3)


def test_a_store_tells_its_index(make_store: MakeStore, embeddings: CountedEmbeddings) -> None:
    index = {"dims": DIMS, "embed": embeddings, "fields": ["text"]}
    store = make_store(index=index)
    assert store.index_config == index
    assert store.embeddings is not None
    assert store.embeddings.embed_query("aa") == embeddings(["aa"])[0]
    assert make_store().index_config is None
    assert make_store().embeddings is None


def test_vectors_and_their_store_without_numpy_say_what_to_install(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.store.dynamodb.vectors", None)
    with pytest.raises(CheckpointerConfigurationError, match=r"\[vectors\]"):
        make_store(index={"dims": 3, "embed": lambda _: [[1.0]]})
