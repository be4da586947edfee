"""`show`: a checkpoint as a person reads it, and as a script does."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.cli.conftest import Run
from tests.support import graphs
from tests.support.checkpoints import store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


@dataclass
class Order:
    """What an application keeps in its state."""

    number: int
    note: bytes = b""


def test_messages_are_shown_as_they_were_said_and_cut(run: Run, table: str) -> None:
    shown = run("show", "chat", "--table", table).out
    assert "thread: chat" in shown
    assert "\n  human: the weather\n" in shown
    assert '  ai: → look_up({"page": 0})' in shown
    assert "\n  ai: The answer to the weather.\n" in shown
    assert "KB in all)" in shown
    assert "line 149 of page 0" not in shown
    assert "line 149 of page 0" in run("show", "chat", "--table", table, "--full").out


def test_a_script_gets_all_of_a_checkpoint(run: Run, table: str) -> None:
    newest = run("show", "chat", "--table", table, "--json").json
    messages = newest["values"]["messages"]
    assert [each["type"] for each in messages] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert "line 149 of page 0" in messages[2]["content"]
    assert newest["metadata"]["step"] == 5
    earlier = run("show", "chat", "--table", table, "--json", "--checkpoint", newest["parent_id"]).json
    assert earlier["checkpoint_id"] == newest["parent_id"]
    assert {each["channel"] for each in earlier["pending_writes"]} == {"messages"}
    assert earlier["interrupts"] == []


def test_what_waits_for_a_human_is_said(run: Run, table: str) -> None:
    found = run("show", "waiting", "--table", table, "--json").json
    assert sorted(each["value"] for each in found["interrupts"]) == ["approve budget?", "approve travel?"]
    shown = run("show", "waiting", "--table", table).out
    assert "Waiting for a human" in shown
    assert "approve travel?" in shown
    assert "filed" in shown


def test_a_task_that_went_on_waits_no_more(
    run: Run, make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver]
) -> None:
    table = make_table()
    saver = open_saver(table)
    config = store(saver, thread_config("answered"), "1", {"text": "x"})
    for task, written in (("a", "__no_writes__"), ("b", "__return__"), ("c", "__resume__")):
        saver.put_writes(config, [("__interrupt__", [f"{task}?"])], task)
        saver.put_writes(config, [(written, None)], task)
    found = run("show", "answered", "--table", table, "--json").json
    assert found["interrupts"] == [{"task_id": "c", "value": "c?"}]


def test_a_failed_task_is_shown_with_its_error(
    run: Run, make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver]
) -> None:
    table = make_table()
    graph = graphs.unreliable([], failures=9)(open_saver(table))
    with pytest.raises(ConnectionError):
        graph.invoke({"log": []}, {"configurable": {"thread_id": "failed"}})
    shown = run("show", "failed", "--table", table).out
    assert "Failed" in shown
    assert "the network is down" in shown


def test_objects_are_shown_by_their_fields_and_nothing_is_imported(
    run: Run,
    make_table: Callable[[], str],
    open_saver: Callable[..., DynamoDBSaver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = make_table()
    saver = open_saver(table, serde=JsonPlusSerializer(pickle_fallback=True))
    values: dict[str, Any] = {
        "order": Order(7, b"\x00" * 3000),
        "orders": [Order(8)],
        "lambda": complex(1, 2),
        "when": datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
        "by number": {1: "one"},
        "terminal": "\x1b[31mred\u202e",
        "nothing": None,
        "picture": b"\x01" * 2_000_000,
    }
    store(saver, thread_config("objects"), "1", values)
    monkeypatch.delitem(globals(), "Order")
    monkeypatch.setattr(pickle, "loads", None)

    shown = run("show", "objects", "--table", table).out
    assert "order: Order(" in shown
    assert '"number": 8' in shown
    assert "when: 2026-01-01T00:00:00+00:00" in shown
    assert "picture: <2.0 MB>" in shown
    assert "\x1b" not in shown
    assert r"terminal: \u001b[31mred\u202e" in shown
    assert "lambda: pickle(<" in shown

    found = run("show", "objects", "--table", table, "--json").json["values"]
    assert found["order"]["type"].endswith(".Order")
    assert found["order"]["value"]["number"] == 7
    assert found["order"]["value"]["note"]["type"] == "bytes"
    assert found["by number"] == {"1": "one"}
    assert found["nothing"] is None
    assert found["terminal"] == "\x1b[31mred\u202e"


def test_a_delta_channel_is_shown_by_what_it_is_rebuilt_from(
    run: Run, make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver]
) -> None:
    table = make_table()
    graphs.journal(open_saver(table)).invoke({"rounds": 0}, {"configurable": {"thread_id": "journal"}})
    found = run("show", "journal", "--table", table, "--json").json["values"]
    assert found["log"]["type"] == "delta channel"
    assert ["round 1", "x" * 400] in found["log"]["value"]["writes"]


@pytest.mark.parametrize("more", [(), ("--checkpoint", "1"), ("--namespace", "other")])
def test_what_is_not_there_is_not_found(run: Run, table: str, more: tuple[str, ...]) -> None:
    thread = "chat" if more else "nobody"
    ended = run("show", thread, "--table", table, *more)
    assert ended.code == 3
    assert f"error: thread {thread!r} has no checkpoint" in ended.err
    assert ended.out == ""


def test_an_empty_id_does_not_stand_for_the_newest(run: Run, table: str) -> None:
    ended = run("show", "chat", "--checkpoint", "", "--table", table)
    assert (ended.code, ended.out) == (2, "")
    assert "the id of a checkpoint is empty" in ended.err


def test_a_namespace_is_shown(run: Run, table: str) -> None:
    nested = run("show", "nested", "--table", table, "--json").json
    assert nested["namespace"] == ""
    (task,) = {each["task_id"] for each in nested["interrupts"]}
    inner = run("show", "nested", "--table", table, "--json", "--namespace", f"middle:{task}").json
    assert inner["values"]["log"][-1] == "before 2"
    assert (
        f"namespace: middle:{task}"
        in run("show", "nested", "--table", table, "--namespace", f"middle:{task}").out
    )
