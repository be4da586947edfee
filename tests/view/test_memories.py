"""Memories for the viewer: namespaces from the register, pages in the order of keys, and no scan."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import PutOp

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.view import memories as memories_module
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from langgraph.store.dynamodb import DynamoDBStore
from langgraph.store.dynamodb.reads import MemoryItem
from tests.support.checkpoints import noise
from tests.view.conftest import Asked, Metered
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")

SERDE = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")


@pytest.fixture
def first() -> str:
    """Give a first label that nobody else has."""
    return f"label-{uuid.uuid4().hex}"


@pytest.fixture
def open_store(
    engine: Engine, table: str, sessions: dict[str, Any]
) -> Iterator[Callable[..., DynamoDBStore]]:
    """Give a factory of stores on the table, closed after the test."""
    stores: list[DynamoDBStore] = []

    def open_store(**options: Any) -> DynamoDBStore:
        connection = {"endpoint_url": engine.endpoint_url, "session": sessions["session"], **options}
        stores.append(DynamoDBStore(table, **connection))
        return stores[-1]

    yield open_store
    for each in stores:
        each.close()


@pytest.fixture
def store(open_store: Callable[..., DynamoDBStore]) -> DynamoDBStore:
    """Give a store on the table."""
    return open_store()


def keys(page: Any) -> list[str]:
    """Return the keys of a page's memories."""
    return [each["key"] for each in page["memories"]]


def embedded(texts: list[str]) -> list[list[float]]:
    """Return a vector for each text."""
    return [[float(len(text)), 1.0] for text in texts]


def test_namespaces_are_found_label_by_label(asked: Asked, store: DynamoDBStore, first: str) -> None:
    for labels in [(first,), (first, "ada"), (first, "ada", "food"), (first, "grace/1")]:
        store.put(labels, "key", {"labels": list(labels)})
    assert first in asked.get("namespaces", labels=[])["labels"]
    assert asked.get("namespaces", labels=[first]) == {"labels": ["ada", "grace/1"], "more": 0}
    with pytest.raises(CheckpointerInputError, match="2 labels"):
        asked.get("namespaces", labels=[first, "ada"])
    # Those of one label only are listed there; of two, also those below.
    found = asked.get("memories", labels=[first])["memories"]
    assert [each["namespace"] for each in found] == [[first]]
    found = asked.get("memories", labels=[first, "ada"])["memories"]
    assert [each["namespace"] for each in found] == [[first, "ada"], [first, "ada", "food"]]
    found = asked.get("memories", labels=[first, "ada", "food"])["memories"]
    assert [each["namespace"] for each in found] == [[first, "ada", "food"]]
    assert asked.get("memories", labels=[first, "nobody"])["memories"] == []


def test_a_long_list_of_labels_says_how_many_it_leaves_out(
    asked: Asked, store: DynamoDBStore, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories_module, "_LABELS_MAX", 2)
    for name in ("a", "b", "c"):
        store.put((first, name), "key", {})
    assert asked.get("namespaces", labels=[first]) == {"labels": ["a", "b"], "more": 1}


def test_a_memory_has_its_times_revision_ttl_and_vectors(
    asked: Asked, open_store: Callable[..., DynamoDBStore], first: str
) -> None:
    store = open_store(index={"embed": embedded, "dims": 2, "fields": ["text"]})
    store.put((first, "ada"), "food", {"text": "pizza", "more": [1, None]}, ttl=60)
    store.put((first, "ada"), "plain", {"x": 1}, index=False)
    food, plain = asked.get("memories", labels=[first, "ada"])["memories"]
    stored = store.get((first, "ada"), "plain")
    assert isinstance(stored, MemoryItem)
    assert (plain["revision"], plain["vectors"], plain["ttl_seconds"], plain["expires_at"]) == (
        stored.revision,
        0,
        None,
        None,
    )
    assert (plain["created_at"], plain["updated_at"]) == (
        stored.created_at.isoformat(),
        stored.updated_at.isoformat(),
    )
    assert (food["vectors"], food["ttl_seconds"]) == (1, 3600)
    assert food["expires_at"].endswith("+00:00")
    assert {each["key"]: each["node"]["kind"] for each in food["value"]["entries"]} == {
        "text": "text",
        "more": "list",
    }


def test_a_page_is_one_query_and_reads_on_behind_its_last_memory(
    metered: Metered, store: DynamoDBStore, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories_module, "_PAGE_MEMORIES", 3)
    for number in range(8):
        store.put((first, "ada"), f"key {number}", {"number": number})
    store.delete((first, "ada"), "key 4")
    found: list[str] = []
    parameters: dict[str, str] = {}
    while True:
        with metered.meter.operation() as read:
            page = metered.asked.get("memories", labels=[first, "ada"], **parameters)
        assert set(read.calls) == {"Query"}
        found += keys(page)
        if page["after"] is None:
            break
        parameters = {"after": page["after"]}
    assert found == [f"key {number}" for number in range(8) if number != 4]


def test_a_request_ends_behind_many_deleted_memories(
    asked: Asked, store: DynamoDBStore, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories_module, "_PAGE_MEMORIES", 2)
    monkeypatch.setattr(memories_module, "_LOOKED_AT_MAX", 4)
    names = [f"key {number:02}" for number in range(30)]
    store.batch([PutOp((first, "ada"), each, {}) for each in names])
    store.batch([PutOp((first, "ada"), each, None) for each in names[:-1]])
    page = asked.get("memories", labels=[first, "ada"])
    assert (page["memories"], 4 <= page["looked_at"] < 30) == ([], True)
    rest = asked.get("memories", labels=[first, "ada"], after=page["after"])
    while not rest["memories"]:
        rest = asked.get("memories", labels=[first, "ada"], after=rest["after"])
    assert keys(rest) == ["key 29"]


def test_a_large_value_is_read_when_it_is_wanted_and_in_parts(
    asked: Asked, store: DynamoDBStore, first: str
) -> None:
    text = noise(300_000).hex()
    store.put((first, "ada"), "large", {"text": text, "small": 1})
    [memory] = asked.get("memories", labels=[first, "ada"])["memories"]
    assert (memory["value"], memory["problem"]) == (None, None)
    at = {"labels": [first, "ada"], "key": "large"}
    node = next(each["node"] for each in asked.get("memory", **at)["entries"] if each["key"] == "text")
    assert (node["length"], node["cut"]) == (len(text), True)
    rest = asked.get("memory", **at, path=["text"], start=str(node["end"]))
    assert rest["text"] == text[node["end"] : rest["end"]]
    for missing in ({"key": "nothing"}, {"path": ["nothing"]}):
        with pytest.raises(CheckpointNotFoundError):
            asked.get("memory", **{**at, **missing})


def test_with_a_cipher_memories_need_the_key_and_a_damaged_one_hides_no_other(
    asked: Asked,
    open_saver: Callable[..., DynamoDBSaver],
    open_store: Callable[..., DynamoDBStore],
    table: str,
    client: DynamoDBClient,
    first: str,
) -> None:
    store = open_store(serde=SERDE)
    for name in ("one", "two"):
        store.put((first, "ada"), name, {"secret": name})
    keyed = Asked(Responses(Session(open_saver(table, serde=SERDE))))
    found = keyed.get("memories", labels=[first, "ada"])["memories"]
    assert [each["value"]["entries"][0]["node"]["text"] for each in found] == ["one", "two"]
    for each in asked.get("memories", labels=[first, "ada"])["memories"]:
        assert each["value"] is None
        assert "cipher" in each["problem"]
    client.update_item(
        TableName=table,
        Key={"PK": {"S": f"{first}/ada/%M#"}, "SK": {"S": "M##one"}},
        UpdateExpression="REMOVE created_us",
    )
    damaged, whole = keyed.get("memories", labels=[first, "ada"])["memories"]
    assert (damaged["key"], damaged["revision"], whole["problem"]) == ("one", None, None)
    assert "created_us" in damaged["problem"]


@pytest.mark.parametrize(
    "parameters",
    [{"labels": []}, {"labels": [1]}, {"labels": ["a"], "after": "x"}, {"labels": "x"}],
)
def test_what_is_no_namespace_is_refused(asked: Asked, parameters: dict[str, Any]) -> None:
    with pytest.raises(CheckpointerInputError):
        asked.get("memories", **parameters)
