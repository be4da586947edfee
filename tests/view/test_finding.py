"""Finding where something comes from: what changed, who made it so, and where a text appeared first."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.view import blame as blame_module
from langgraph.checkpoint.dynamodb.view import search as search_module
from tests.support import graphs
from tests.support.checkpoints import Conversation, noise, store, thread_config
from tests.view.conftest import Asked

pytestmark = pytest.mark.engines("dynamodb-local")


def blamed(asked: Asked, **parameters: Any) -> Any:
    """The origin of a value, however many requests it takes."""
    cursor: dict[str, Any] = {}
    while True:
        found = asked.get("blame", **parameters, **cursor)
        assert found["looked_at"] <= found["of"]
        if found["cursor"] is None:
            return found["origin"]
        assert found["origin"] is None
        cursor = {"cursor": found["cursor"]}


def searched(asked: Asked, thread: str, text: str) -> list[Any]:
    """All places where a text appeared, however many requests it takes."""
    hits, cursor = list[Any](), dict[str, Any]()
    while True:
        found = asked.get("search", thread=thread, text=text, **cursor)
        hits += found["hits"]
        if found["cursor"] is None:
            assert found["looked_at"] == found["of"]
            return hits
        cursor = {"cursor": found["cursor"]}


# What changed


def test_changes_are_against_the_parent_or_any_other(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    first = talk.put(text="x", large=noise(50_000))["configurable"]["checkpoint_id"]
    talk.put(text="y", new=1)
    at = asked.newest(thread)
    found = asked.get("changes", **at)
    assert found["against"] == first
    told = [(each["channel"], each["kind"], each["before_bytes"]) for each in found["channels"]]
    assert told == [("new", "added", None), ("text", "changed", 1)]
    assert found["unchanged"] == ["large"]
    [change] = found["channels"][1]["changes"]
    assert (change["before"]["text"], change["after"]["text"]) == ("x", "y")
    back = asked.get("changes", thread=thread, ns="", checkpoint=first, against=at["checkpoint"])
    assert [(each["channel"], each["kind"]) for each in back["channels"]] == [
        ("new", "gone"),
        ("text", "changed"),
    ]
    alone = asked.get("changes", thread=thread, ns="", checkpoint=first)
    assert (alone["against"], [each["kind"] for each in alone["channels"]]) == (None, ["added", "added"])


def test_forks_whose_versions_are_the_same_are_compared_by_their_values(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    begun = Conversation(saver, thread)
    begun.put(log=["one"])
    forks = list[str]()
    for word in ("left", "right"):
        fork = Conversation(saver, thread)
        fork.config, fork.step = begun.config, begun.step + len(forks)
        fork.values, fork.versions = dict(begun.values), dict(begun.versions)
        forks.append(fork.put(log=["one", word])["configurable"]["checkpoint_id"])
    found = asked.get("changes", thread=thread, ns="", checkpoint=forks[1], against=forks[0])
    [change] = found["channels"][0]["changes"]
    assert (change["before"]["text"], change["after"]["text"]) == ("left", "right")


def test_a_channel_that_was_written_to_and_is_the_same_did_not_change(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    talk = Conversation(saver, thread)
    talk.put(text="x", number=1)
    talk.put(text="x", number=1.0)
    found = asked.get("changes", **asked.newest(thread))
    assert found["unchanged"] == ["text"]
    assert [each["channel"] for each in found["channels"]] == ["number"]


def test_a_value_that_is_stored_in_another_way_did_not_change(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    """A small state lies in one item. When the state has grown, the same value has segments."""
    talk = Conversation(saver, thread)
    talk.put(text=noise(7_000))
    talk.put(text=noise(7_000), other=noise(60_000, 1))
    found = asked.get("changes", **asked.newest(thread))
    assert found["unchanged"] == ["text"]
    assert [each["channel"] for each in found["channels"]] == ["other"]


def test_very_many_changes_are_counted(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    talk.put(log=[])
    talk.put(log=list(range(500)))
    [channel] = asked.get("changes", **asked.newest(thread))["channels"]
    assert len(channel["changes"]) + channel["more"] == 500


# Blame


def test_a_value_is_blamed_on_the_task_that_first_wrote_it(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    graphs.agent(saver).invoke({"messages": [("user", "the weather")]}, thread_config(thread))
    at = asked.newest(thread)
    origin = blamed(asked, **at, path=["values", "messages", 2, "content"])
    assert (origin["step"], origin["source"], origin["before"]) == (2, "loop", None)
    assert [(each["node"], each["wrote_it"]) for each in origin["tasks"]] == [("tools", True)]
    assert origin["path"] == ["values", "messages", 2, "content"]
    question = blamed(asked, **at, path=["values", "messages", 0])
    assert (question["step"], question["tasks"][0]["node"]) == (0, "__start__")
    assert question["tasks"][0]["wrote_it"] is False or question["tasks"][0]["wrote_it"]
    channel = blamed(asked, **at, path=["values", "messages"])
    assert channel["checkpoint"] == at["checkpoint"]
    assert channel["before"]["length"] == 5


def test_a_value_that_comes_from_outside_is_blamed_on_no_task(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    agent = graphs.agent(saver)
    agent.invoke({"messages": [("user", "the weather")]}, thread_config(thread))
    earlier = list(agent.get_state_history(thread_config(thread)))[3]
    agent.update_state(earlier.config, {"messages": [("user", "another way")]}, as_node="model")
    at = asked.newest(thread)
    last = asked.values(thread)["messages"]["node"]["length"] - 1
    origin = blamed(asked, **at, path=["values", "messages", last])
    assert (origin["source"], origin["checkpoint"]) == ("update", at["checkpoint"])
    assert [each["node"] for each in origin["tasks"] if not each["wrote_it"]] == []


def test_a_message_is_followed_by_its_id_though_others_in_front_of_it_went(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    said: list[Any] = [HumanMessage("one", id="1"), AIMessage("two", id="2")]
    talk = Conversation(saver, thread)
    talk.put(messages=said[:1])
    second = talk.put(messages=said)["configurable"]["checkpoint_id"]
    talk.put(other=1)
    talk.put(messages=[said[1], HumanMessage("three", id="3")])
    origin = blamed(asked, **asked.newest(thread), path=["values", "messages", 0, "content"])
    assert (origin["checkpoint"], origin["path"][2]) == (second, 1)


def test_a_part_of_a_list_is_followed_as_it_is_and_then_by_its_place(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    talk = Conversation(saver, thread)
    ids = [
        talk.put(log=value)["configurable"]["checkpoint_id"]
        for value in (["a", {"price": 1}], ["b", "a", {"price": 1}], ["b", "a", {"price": 2, "tax": 0}], [9])
    ]
    at = {"thread": thread, "ns": "", "checkpoint": ids[2]}
    moved = blamed(asked, **at, path=["values", "log", 1])
    assert (moved["checkpoint"], moved["path"], moved["before"]) == (ids[0], ["values", "log", 0], None)
    price = blamed(asked, **at, path=["values", "log", 2, "price"])
    assert (price["checkpoint"], price["before"]["text"]) == (ids[2], "1")
    assert blamed(asked, **at, path=["values", "log", 2, "tax"])["before"] is None
    newest = blamed(asked, **asked.newest(thread), path=["values", "log", 0])
    assert (newest["checkpoint"], newest["before"]["text"]) == (ids[3], "b")


def test_a_long_way_back_takes_several_requests(
    asked: Asked, saver: DynamoDBSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Conversation(saver, thread)
    first = talk.put(log=["begun"])["configurable"]["checkpoint_id"]
    for number in range(8):
        talk.put(log=["begun", *range(number)])
    for number in range(8):
        talk.put(other=number)
    monkeypatch.setattr(blame_module, "_DECODED_MAX", 2)
    monkeypatch.setattr(blame_module, "_LOOKED_AT_MAX", 5)
    at = asked.newest(thread)
    found = asked.get("blame", **at, path=["values", "log", 0])
    assert (found["origin"], found["looked_at"]) == (None, 5)
    assert blamed(asked, **at, path=["values", "log", 0])["checkpoint"] == first
    for cursor in ("x", "[]", '["nobody", ["values", "log"], 1]', "[" * 100_000):
        with pytest.raises(CheckpointerInputError, match="cursor"):
            asked.get("blame", **at, path=["values", "log", 0], cursor=cursor)


def test_what_is_no_value_has_no_blame(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    store(saver, thread_config(thread), "1", {"text": "x"})
    at = asked.newest(thread)
    for path in (["writes", 0], ["values"], []):
        with pytest.raises(CheckpointerInputError, match="does not lead to a value"):
            asked.get("blame", **at, path=path)
    with pytest.raises(CheckpointNotFoundError):
        asked.get("blame", **at, path=["values", "text", "deeper"])


def test_a_delta_channel_is_blamed_by_its_writes(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    graph = graphs.journal(saver)
    graph.invoke({"log": ["begun"]}, thread_config(thread))
    graph.invoke(Command(resume="yes"), thread_config(thread))
    rows = [row for row in asked.rows(thread) if "log" in row["changed"]]
    at = {"thread": thread, "ns": "", "checkpoint": rows[0]["checkpoint"]}
    origin = blamed(asked, **at, path=["values", "log"])
    assert origin["checkpoint"] == rows[0]["checkpoint"]


# Search


def test_a_text_is_found_where_it_first_appeared_in_subgraphs_too(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    graphs.subgraphs(None)(saver).invoke({"log": ["begun"]}, thread_config(thread))
    first, *_ = hits = searched(asked, thread, "DEEP 3")
    assert first["node"] == "deep"
    assert "inner" in first["ns"]
    assert (first["path"], first["excerpt"], first["at"]) == (["writes", 0, 0], "deep 3", 0)
    assert [each["path"][:2] for each in hits] == [["writes", 0], ["values", "log"]]
    assert searched(asked, thread, "never said") == []


def test_a_text_that_stays_is_found_once_and_one_that_comes_again_again(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    talk = Conversation(saver, thread)
    first = talk.put(log=["the price is 412 euros", "x"])["configurable"]["checkpoint_id"]
    talk.put(log=["the price is 412 euros", "x", "y"])
    talk.put(other=2)
    again = talk.put(log=["the price is 412 euros", "x", "y", "was it 412?"])["configurable"]["checkpoint_id"]
    found = [(each["checkpoint"], each["path"]) for each in searched(asked, thread, "412")]
    assert found == [(first, ["values", "log", 0]), (again, ["values", "log", 3])]


def test_a_number_is_found_like_a_text(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    talk.put(price={"flight": 412})
    wrong = talk.put(price={"flight": 4120})["configurable"]["checkpoint_id"]
    talk.put(price={"flight": 4120, "hotel": 336, "paid": True})
    found = [(each["checkpoint"], each["path"]) for each in searched(asked, thread, "4120")]
    assert found == [(wrong, ["values", "price", "flight"])]


def test_an_excerpt_has_a_little_around_the_text(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    text = "\N{GRINNING FACE}" * 100 + "Needle" + "y" * 1000
    store(saver, thread_config(thread), "1", {"text": text, "key": {"needle": 1}})
    key, value = searched(asked, thread, "needle")
    assert key["path"] == ["values", "key", "needle"]
    assert value["at"] == 120
    assert value["excerpt"].startswith("\N{GRINNING FACE}" * 60 + "Needley")
    assert len(value["excerpt"]) < 300


def test_bytes_that_look_like_the_text_are_no_text(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    store(saver, thread_config(thread), "1", {"raw": b"needle"})
    assert searched(asked, thread, "needle") == []


class Spelling:
    """A serializer that writes JSON, which spells characters."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Write it as LangGraph once did."""
        return "json", json.dumps(obj).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read it."""
        return json.loads(data[1])


def test_letters_of_any_alphabet_are_found_however_they_were_written(
    asked: Asked, table: str, open_saver: Callable[..., DynamoDBSaver], saver: DynamoDBSaver, thread: str
) -> None:
    config = store(saver, thread_config(thread), "1", {"text": "Übermäßig"})
    open_saver(table, serde=Spelling()).put_writes(config, [("said", "ÜBUNG \ud800")], "task")
    assert [each["path"] for each in searched(asked, thread, "über")] == [["values", "text"]]
    assert [each["path"] for each in searched(asked, thread, "übung")] == [["writes", 0]]


@pytest.mark.parametrize("broken", [b"[" * 50_000 + b'"needle"' + b"]" * 50_000, b'["needle"'])
def test_json_that_cannot_be_read_hides_nothing_else(
    asked: Asked,
    table: str,
    open_saver: Callable[..., DynamoDBSaver],
    saver: DynamoDBSaver,
    thread: str,
    broken: bytes,
) -> None:
    config = store(saver, thread_config(thread), "1", {"text": "a needle"})

    class Broken(Spelling):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            del obj
            return "json", broken

    open_saver(table, serde=Broken()).put_writes(config, [("said", "needle")], "task")
    store(saver, config, "2", {"text": "a needle", "more": "needles"})
    assert [each["path"] for each in searched(asked, thread, "needle")] == [
        ["values", "text"],
        ["values", "more"],
    ]


def test_a_long_search_takes_several_requests(
    asked: Asked, saver: DynamoDBSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Conversation(saver, thread)
    for number in range(7):
        talk.put(log=[f"entry {number}"])
    for name, limit in (("_LOOKED_AT_MAX", 3), ("_BYTES_MAX", 20), ("_HITS_MAX", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(search_module, name, limit)
            assert asked.get("search", thread=thread, text="entry")["looked_at"] < 7
            assert len(searched(asked, thread, "entry")) == 7
    for cursor in ("y", "8", "1" * 5_000):
        with pytest.raises(CheckpointerInputError, match="cursor"):
            asked.get("search", thread=thread, text="x", cursor=cursor)
    with pytest.raises(CheckpointerInputError, match="text"):
        asked.get("search", thread=thread, text="")
