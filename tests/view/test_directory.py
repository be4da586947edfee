"""The first page: pages of the directory, one query each, searches that say what they looked at, and memories."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.view import responses as responses_module
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.checkpoints import store, table_of_its_own, thread_config
from tests.support.directory import Entered, enter_threads
from tests.view import story
from tests.view.conftest import Asked, Metered, Raw

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")

SERDE = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
OWNER_KEY = b"owners' key of 20 b."


@pytest.fixture
def own_table(client: DynamoDBClient) -> Iterator[str]:
    """Give a table that no other test reads: threads of another key are in the way of a list of all."""
    with table_of_its_own(client, "view") as name:
        yield name


@pytest.fixture
def owner() -> str:
    """Give the name of an owner that nobody else has."""
    return f"owner-{uuid.uuid4().hex}"


def enter(saver: DynamoDBSaver, owner: str, count: int) -> list[str]:
    """Enter threads of an owner, each a second older than the one before; return their ids."""
    now = int(saver.storage.clock())
    threads = [
        Entered(f"{owner} {number:03}", owner, now - number, f"Trip {number}") for number in range(count)
    ]
    enter_threads(saver, threads)
    return [each.thread_id for each in threads]


def names(page: Any) -> list[str]:
    """Return the ids of a page's threads."""
    return [each["thread"] for each in page["threads"]]


def test_a_page_of_an_owner_is_one_query_and_one_for_each_status(
    metered: Metered, saver: DynamoDBSaver, owner: str
) -> None:
    expected = enter(saver, owner, 45)
    with metered.meter.operation() as read:
        pages = [*metered.asked.pages("directory", owner=owner)]
    assert [name for page in pages for name in names(page)] == expected
    assert [page["looked_at"] for page in pages] == [20, 20, 5]
    assert read.calls == {"Query": 3 + 45}


def test_a_thread_has_its_owner_title_and_status(asked: Asked, saver: DynamoDBSaver, owner: str) -> None:
    story.tell_failure(saver, f"{owner} failed")
    story.tell_once(saver, f"{owner} idle", HumanMessage("hello"))
    config = store(saver, thread_config(f"{owner} waiting"), "1", {"text": "x"})
    saver.put_writes(config, [("__interrupt__", ["sure?"])], "task")
    for status in ("failed", "idle", "waiting"):
        saver.set_thread(f"{owner} {status}", owner=owner, title=f"It is {status}")
    found = asked.get("directory", owner=owner)
    assert {each["title"]: each["status"] for each in found["threads"]} == {
        "It is failed": "failed",
        "It is idle": "idle",
        "It is waiting": "waiting",
    }
    assert {each["owner"] for each in found["threads"]} == {owner}
    listed = asked.get("directory", title="IT IS WAITING")
    assert f"{owner} waiting" in names(listed)
    assert all("it is waiting" in each["title"].lower() for each in listed["threads"])
    for status in ("failed", "idle", "waiting"):
        page = asked.get("directory", owner=owner, status=status)
        assert ([each["status"] for each in page["threads"]], page["looked_at"]) == ([status], 3)
    with pytest.raises(CheckpointerInputError, match="'status'"):
        asked.get("directory", status="lost")


def test_all_threads_are_listed_without_an_owner(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    described = asked.get("thread", thread=thread)
    assert (described["owner"], described["title"], described["problem"]) == (None, None, None)
    saver.set_thread(thread)
    page = asked.get("directory")
    found = next(each for each in page["threads"] if each["thread"] == thread)
    assert (found["owner"], found["title"], found["step"], found["status"]) == (None, None, None, "idle")
    assert found["last_active"].endswith("+00:00")


def test_a_search_for_a_title_says_how_far_it_looked(
    metered: Metered, saver: DynamoDBSaver, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = enter(saver, owner, 50)
    monkeypatch.setattr(responses_module, "_SEARCHED_THREADS", 10)
    monkeypatch.setattr(responses_module, "_LOOKED_AT_MAX", 30)
    with metered.meter.operation() as read:
        page = metered.asked.get("directory", owner=owner, title="trip 4")
    # The others are not looked up.
    assert (names(page), page["looked_at"], read.calls) == ([expected[4]], 30, {"Query": 3 + 1})
    rest = metered.asked.get("directory", owner=owner, title="trip 4", before=page["before"])
    assert (names(rest), rest["looked_at"], rest["before"]) == (expected[40:], 20, None)
    # As soon as there is a page, the search rests.
    assert metered.asked.get("directory", owner=owner, title="TRIP")["looked_at"] == 20


def test_a_damaged_thread_hides_no_other(asked: Asked, saver: DynamoDBSaver, raw: Raw, owner: str) -> None:
    for name in ("whole", "damaged"):
        store(saver, thread_config(f"{owner} {name}"), "1", {"text": "x"})
        saver.set_thread(f"{owner} {name}", owner=owner)
    raw.change(f"{owner} damaged", "C#1#", v={"N": "99"})
    found = {each["thread"]: each for each in asked.get("directory", owner=owner)["threads"]}
    assert found[f"{owner} whole"]["status"] == "idle"
    assert found[f"{owner} damaged"]["status"] is None
    assert "format" in found[f"{owner} damaged"]["problem"]


def test_with_a_cipher_owners_are_found_by_their_key(
    own_table: str, open_saver: Callable[..., DynamoDBSaver], owner: str
) -> None:
    saver = open_saver(own_table, serde=SERDE, owner_key=OWNER_KEY)
    thread = f"{owner} 1"
    saver.set_thread(thread, owner=owner, title="A secret trip")
    asked = Asked(Responses(Session(saver)))
    [found] = asked.get("directory", owner=owner, title="secret")["threads"]
    assert (found["owner"], found["title"]) == (owner, "A secret trip")
    described = asked.get("thread", thread=thread)
    assert (described["owner"]["text"], described["title"]["text"]) == (owner, "A secret trip")
    keyless = Asked(Responses(Session(open_saver(own_table, serde=SERDE))))
    with pytest.raises(CheckpointerConfigurationError, match="owner_key"):
        keyless.get("directory", owner=owner)
    other = EncryptedSerializer.from_pycryptodome_aes(key=b"another key, 16.")
    stranger = Asked(Responses(Session(open_saver(own_table, serde=other, owner_key=OWNER_KEY))))
    described = stranger.get("thread", thread=thread)
    assert (described["owner"], described["title"]) == (None, None)
    assert "key" in described["problem"]


# Memories


@pytest.fixture
def memories(table: str, client: DynamoDBClient) -> Iterator[DynamoDBStore]:
    """Give a store on the table."""
    with DynamoDBStore(table, client=client) as memories:
        yield memories


def test_an_owners_memories_come_page_by_page(
    saver: DynamoDBSaver, memories: DynamoDBStore, thread: str
) -> None:
    for number in range(25):
        memories.put(("users", thread, "facts"), f"{number:02}", {"number": number})
    memories.put((thread,), "own", {"a/b": "c"})
    memories.put(("users", "somebody else"), "other", {"number": 0})
    asked = Asked(Responses(Session(saver), None, lambda: memories))
    first = asked.get("memories", of=thread)
    assert [each["key"] for each in first["memories"][:2]] == ["own", "24"]
    second = asked.get("memories", of=thread, offset=first["offset"])
    assert (len(first["memories"]), len(second["memories"]), second["offset"]) == (20, 6, None)
    assert first["memories"][0]["value"]["entries"][0]["key"] == "a/b"
    [found] = asked.get("memories", of="users/somebody%20else")["memories"]
    assert found["namespace"] == ["users", "somebody else"]
    with pytest.raises(CheckpointerInputError, match="the namespace 'users//' cannot be used"):
        asked.get("memories", of="users//")


def test_a_page_without_a_store_says_so(asked: Asked) -> None:
    with pytest.raises(CheckpointerInputError, match="has no store"):
        asked.get("memories", of="ada")
