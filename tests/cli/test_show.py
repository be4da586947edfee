"""`show`: a checkpoint as a person reads it, and as a script does. `history`: checkpoints with their forks."""

import datetime
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.cli.conftest import OpenSaver, Run, encrypting
from tests.support import graphs
from tests.support.checkpoints import store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def shared(table: str) -> str:
    """Give the table with threads that no test changes."""
    return table


@dataclass
class Order:
    """What an application keeps in its state."""

    number: int
    note: bytes = b""


def test_messages_are_shown_as_they_were_said_and_cut(run: Run) -> None:
    shown = run("show", "chat").out
    assert "thread: chat" in shown
    assert "\n  human: the weather\n" in shown
    assert '  ai: → look_up({"page": 0})' in shown
    assert "\n  ai: The answer to the weather.\n" in shown
    assert "KB in all)" in shown
    assert "line 149 of page 0" not in shown
    assert "line 149 of page 0" in run("show", "chat", "--full").out


def test_a_script_gets_all_of_a_checkpoint(run: Run) -> None:
    newest = run("show", "chat", "--json").json
    messages = newest["values"]["messages"]
    assert [each["type"] for each in messages] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert "line 149 of page 0" in messages[2]["content"]
    assert newest["metadata"]["step"] == 5
    earlier = run("show", "chat", "--json", "--checkpoint", newest["parent_id"]).json
    assert earlier["checkpoint_id"] == newest["parent_id"]
    assert {each["channel"] for each in earlier["pending_writes"]} == {"messages"}
    assert earlier["interrupts"] == []


def test_what_waits_for_a_human_is_said(run: Run) -> None:
    found = run("show", "waiting", "--json").json
    assert sorted(each["value"] for each in found["interrupts"]) == ["approve budget?", "approve travel?"]
    shown = run("show", "waiting").out
    assert "Waiting for a human" in shown
    assert "approve travel?" in shown
    assert "filed" in shown


def test_a_failed_task_is_shown_with_its_error(run: Run, open_own: OpenSaver) -> None:
    graph = graphs.unreliable([], failures=9)(open_own())
    with pytest.raises(ConnectionError):
        graph.invoke({"log": []}, {"configurable": {"thread_id": "failed"}})
    shown = run("show", "failed").out
    assert "Failed" in shown
    assert "the network is down" in shown


def test_objects_are_shown_by_their_fields_and_nothing_is_imported(
    run: Run, open_own: OpenSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = open_own(serde=JsonPlusSerializer(pickle_fallback=True))
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

    shown = run("show", "objects").out
    assert "order: Order(" in shown
    assert '"number": 8' in shown
    assert "when: 2026-01-01T00:00:00+00:00" in shown
    assert "picture: <2.0 MB>" in shown
    assert "\x1b" not in shown
    assert r"terminal: \u001b[31mred\u202e" in shown
    assert "lambda: pickle(<" in shown

    found = run("show", "objects", "--json").json["values"]
    assert found["order"]["type"].endswith(".Order")
    assert found["order"]["value"]["number"] == 7
    assert found["order"]["value"]["note"]["type"] == "bytes"
    assert found["by number"] == {"1": "one"}
    assert found["nothing"] is None
    assert found["terminal"] == "\x1b[31mred\u202e"


def test_a_delta_channel_is_shown_by_what_it_is_rebuilt_from(run: Run, open_own: OpenSaver) -> None:
    graphs.journal(open_own()).invoke({"rounds": 0}, {"configurable": {"thread_id": "journal"}})
    found = run("show", "journal", "--json").json["values"]
    assert found["log"]["type"] == "delta channel"
    assert ["round 1", "x" * 400] in found["log"]["value"]["writes"]


@pytest.mark.parametrize(
    "command", ["show chat --checkpoint 1", "show chat --namespace other", "history chat --namespace other"]
)
def test_what_is_not_there_is_not_found(run: Run, command: str) -> None:
    ended = run(*command.split())
    assert (ended.code, ended.out) == (3, "")
    assert "error: thread 'chat' has no checkpoint" in ended.err


def test_a_namespace_is_shown(run: Run) -> None:
    nested = run("show", "nested", "--json").json
    assert nested["namespace"] == ""
    (task,) = {each["task_id"] for each in nested["interrupts"]}
    inner = run("show", "nested", "--json", "--namespace", f"middle:{task}").json
    assert inner["values"]["log"][-1] == "before 2"
    assert f"namespace: middle:{task}" in run("show", "nested", "--namespace", f"middle:{task}").out


# `history`


def test_checkpoints_are_listed_and_a_fork_says_what_it_continues(run: Run) -> None:
    shown = run("history", "forked").out.splitlines()
    found = run("history", "forked", "--json").json
    assert [each["metadata"]["source"] for each in found] == ["update", *["loop"] * 6, "input"]
    assert found[0]["parent_id"] == found[3]["checkpoint_id"]
    assert found[0]["stored_at"] > found[1]["stored_at"]
    assert [each.split()[0] for each in shown] == [each["checkpoint_id"] for each in found]
    assert [number for number, each in enumerate(shown) if "continues" in each] == [0]
    assert shown[0].endswith(f"step 4, update  continues {found[3]['checkpoint_id']}")
    assert "1 task with writes" in shown[-1]


def test_what_waits_and_what_has_failed_are_marked(run: Run) -> None:
    assert "WAITING FOR A HUMAN" in run("history", "waiting").out
    nested = run("history", "nested")
    assert "Other namespaces: 'middle:" in nested.err
    namespace = nested.err.split("'")[1]
    inner = run("history", "nested", "--namespace", namespace)
    assert "step 0, loop" in inner.out


def test_a_limit_shows_the_newest_and_says_so(run: Run) -> None:
    ended = run("history", "chat", "--limit", "2")
    assert len(ended.out.splitlines()) == 2
    assert "There are older ones" in ended.err
    assert "There are older ones" not in run("history", "chat", "--limit", "7").err


def test_without_the_key_the_tree_is_shown_and_with_it_the_steps(
    run: Run, open_own: OpenSaver, configure: Callable[..., None]
) -> None:
    store(open_own(**encrypting()), thread_config("secret"), "1", {"text": "x"})
    assert run("history", "secret").out == "1  encrypted\n"
    run("show", "secret").fails(4, "`encryption_key` and `serde` in the file")
    configure()
    assert run("history", "secret").out == "1  step 1, loop\n"
    assert run("show", "secret", "--json").json["values"] == {"text": "x"}
