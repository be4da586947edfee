"""What a checkpoint holds: shown as data, in parts, and never made or run."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError
from tests.support import graphs
from tests.support.checkpoints import Conversation, noise, store, thread_config
from tests.support.javascript import store_recorded
from tests.view.conftest import Asked, Raw

pytestmark = pytest.mark.engines("dynamodb-local")


def test_channels_say_how_they_are_stored(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    talk.put(text="x", large="".join(map(str, range(50_000))))
    talk.put(text="y")
    found = asked.values(thread)
    assert (found["text"]["changed"], found["large"]["changed"]) == (True, False)
    assert found["large"]["segments"] > 1
    metadata = asked.get("state", **asked.newest(thread))["metadata"]
    assert [each["key"] for each in metadata["entries"]] == ["source", "step", "parents"]


def test_a_large_value_comes_in_parts(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    text = "".join(map(str, range(60_000)))
    store(saver, thread_config(thread), "1", {"log": ["first", text], "b": noise(300_000)})
    found = asked.values(thread)
    assert found["log"]["node"]["items"][1]["cut"]
    at = asked.newest(thread)
    whole, start = "", 0
    while start < len(text):
        part = asked.get("part", **at, path=["values", "log", 1], start=start)
        assert len(json.dumps(part)) < 300_000
        whole += part["text"]
        start = part["end"]
    assert whole == text
    assert asked.get("part", **at, path=["values", "b"], start=299_999)["length"] == 300_000
    assert asked.get("part", **at, path=["metadata", "source"])["text"] == "loop"


def test_what_tasks_wrote_comes_in_parts_too(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    config = store(saver, thread_config(thread), "1", {"text": "x"})
    saver.put_writes(config, [("found", {"deep": [1, "y" * 30_000]})], "task")
    at = asked.newest(thread)
    part = asked.get("part", **at, path=["writes", 0, "deep", 1], start=29_999)
    assert (part["text"], part["length"]) == ("y", 30_000)
    for path in (["writes", 1], ["writes", -1], ["values", "nothing"], ["writes", 0, "deep", 2]):
        with pytest.raises(CheckpointNotFoundError):
            asked.get("part", **at, path=path)
    for path in ([], ["values"], ["writes", "0"], ["else"]):
        with pytest.raises(CheckpointerInputError, match="has to begin with"):
            asked.get("part", **at, path=path)


def test_a_delta_channel_is_what_it_is_rebuilt_from(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    graph = graphs.journal(saver)
    graph.invoke({"log": ["begun"]}, thread_config(thread))
    graph.invoke(Command(resume="yes"), thread_config(thread))
    kinds = set()
    for row in asked.rows(thread):
        at = {"thread": thread, "ns": "", "checkpoint": row["checkpoint"]}
        channels = {each["name"]: each for each in asked.get("state", **at)["channels"]}
        log = channels.get("log")
        if log is None:
            continue
        kinds.add(log["node"].get("type"))
        assert log["problem"] is None
        if log["node"]["kind"] == "instance":
            entries = {each["key"]: each["node"] for each in log["node"]["value"]["entries"]}
            assert set(entries) == {"from", "writes"}
    assert kinds == {"delta channel", None}
    newest = graph.get_state(thread_config(thread)).values["log"]
    assert asked.get("search", thread=thread, text=newest[-1])["hits"]


def test_segments_that_are_missing_are_told_of_their_channel(
    asked: Asked, saver: DynamoDBSaver, thread: str, raw: Raw
) -> None:
    store(saver, thread_config(thread), "1", {"large": noise(100_000), "small": 1})
    missing = raw.items(thread, "S#")[0]
    raw.client.delete_item(TableName=raw.table, Key={"PK": missing["PK"], "SK": missing["SK"]})
    channels = asked.values(thread)
    assert "1 of" in channels["large"]["problem"]
    assert channels["large"]["node"] is None
    assert channels["small"]["node"]["text"] == "1"
    at = asked.newest(thread)
    [change] = [each for each in asked.get("changes", **at)["channels"] if each["problem"]]
    assert change["channel"] == "large"
    assert asked.get("search", thread=thread, text="anything")["hits"] == []


def test_one_damaged_segment_keeps_no_other_value_from_being_shown(
    asked: Asked, saver: DynamoDBSaver, thread: str, raw: Raw
) -> None:
    store(saver, thread_config(thread), "1", {"large": noise(20_000), "other": noise(60_000, 1)})
    damaged = raw.items(thread, "S#")[0]["SK"]["S"]
    raw.change(thread, damaged, data={"B": b"\x01\x00\x00 something else"})
    problems = {name: each["problem"] for name, each in asked.values(thread).items()}
    assert sorted(problem is None for problem in problems.values()) == [False, True]
    assert any("is damaged: its checksum" in problem for problem in problems.values() if problem)


def test_what_cannot_be_read_of_a_write_is_told_of_it(
    asked: Asked, table: str, open_saver: Callable[..., DynamoDBSaver], thread: str
) -> None:
    class Torn(JsonPlusSerializer):
        """A serializer that writes what is no value."""

        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            """Write the beginning of a text."""
            del obj
            return "msgpack", b"\xd9"

    store(open_saver(table), thread_config(thread), "1", {"text": "x"})
    torn = open_saver(table, serde=Torn())
    torn.put_writes(thread_config(thread, checkpoint_id="1"), [("text", "x"), ("__interrupt__", "x")], "task")
    pending = asked.get("pending", **asked.newest(thread))
    assert all("cannot read" in each["problem"] for each in pending["writes"])
    assert [each["value"] for each in pending["writes"]] == [None, None]
    assert asked.rows(thread)[0]["tasks"][0]["asked"][0]["type"] == "unreadable"
    assert [each["path"] for each in asked.get("search", thread=thread, text="x")["hits"]] == [
        ["values", "text"]
    ]


def test_messages_of_langgraph_js_are_shown_as_messages(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    store_recorded(saver, thread, "start", "yes")
    messages = asked.values(thread)["messages"]["node"]["items"]
    assert [(each["kind"], each["role"], each["content"]["text"]) for each in messages] == [
        ("message", "human", "Where to?"),
        ("message", "ai", "Lisbon is warm."),
        ("message", "tool", "booked"),
    ]
    [call] = messages[1]["calls"]
    assert (call["name"], call["id"], messages[2]["result_of"]) == ("book", "call-1", "call-1")
