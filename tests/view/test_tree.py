"""The tree: what led to each checkpoint, what its tasks did, and that a long thread comes in pages."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.types import Command

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.support import graphs
from tests.support.checkpoints import Conversation, noise, store, thread_config
from tests.view.conftest import Asked, Raw

pytestmark = pytest.mark.engines("dynamodb-local")


def steps(rows: list[Any]) -> list[Any]:
    """What each checkpoint was made by and what follows, the oldest first."""
    return [(row["step"], row["source"], row["ran"], row["next"]) for row in reversed(rows)]


def test_each_step_says_what_ran_and_what_runs_next(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    graphs.fan_out(saver).invoke({"log": ["begun"]}, thread_config(thread))
    rows = asked.rows(thread)
    assert steps(rows) == [
        (-1, "input", [], ["__start__"]),
        (0, "loop", ["__start__"], ["left", "right"]),
        (1, "loop", ["left", "right"], ["join"]),
        (2, "loop", ["join"], ["work"]),
        (3, "loop", ["work"], []),
    ]
    assert [row["parent"] for row in rows] == [*(row["checkpoint"] for row in rows[1:]), None]
    assert rows[-2]["changed"] == ["__start__", "branch:to:left", "branch:to:right", "log"]
    sent = {task["node"] for task in rows[1]["tasks"]}
    assert (sent, len(rows[1]["tasks"])) == ({"work"}, 5)
    arguments = {each["sent"]["entries"][0]["node"]["text"] for each in rows[1]["tasks"]}
    assert len(arguments) == 5, "each task has its own"
    assert all(row["stored_at"] and row["problem"] is None for row in rows)
    assert [row["items"] for row in rows] == [1, 6, 2, 3, 2]


def test_an_input_that_forks_was_made_by_no_node(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    graph = graphs.fan_out(saver)
    graph.invoke({"log": ["begun"]}, thread_config(thread))
    earlier = list(graph.get_state_history(thread_config(thread)))[2]
    graph.invoke({"log": ["another"]}, earlier.config)
    inputs = [row for row in asked.rows(thread) if row["source"] == "input"]
    assert [row["ran"] for row in inputs] == [[], []]


def test_a_fork_begins_at_an_older_parent(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    agent = graphs.agent(saver)
    agent.invoke({"messages": [("user", "the weather")]}, thread_config(thread))
    earlier = list(agent.get_state_history(thread_config(thread)))[3]
    agent.update_state(earlier.config, {"messages": [("user", "another way")]}, as_node="model")
    rows = asked.rows(thread)
    assert rows[0]["source"] == "update"
    assert rows[0]["parent"] == earlier.config["configurable"]["checkpoint_id"]
    assert [row["parent"] for row in rows].count(rows[0]["parent"]) == 2
    assert asked.get("tree", thread=thread, ns="")["newest"] == rows[0]["checkpoint"]


def test_what_was_asked_and_what_was_answered(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    graph = graphs.approvals(saver)
    graph.invoke({"log": []}, thread_config(thread))
    [waiting, *_] = asked.rows(thread)
    tasks = {task["node"]: task for task in waiting["tasks"]}
    waits = {name: task["waiting"] for name, task in tasks.items()}
    assert waits == {"travel": True, "budget": True, "file": False}
    assert tasks["travel"]["asked"][0]["text"] == "approve travel?"
    assert tasks["file"]["finished"]
    assert tasks["file"]["writes"] == ["count", "join:travel+budget+file:close", "log"]
    interrupts = graph.get_state(thread_config(thread)).interrupts
    graph.invoke(
        Command(resume={each.id: f"yes to {each.value}" for each in interrupts}), thread_config(thread)
    )
    # What was read stays as it was read, until somebody looks at the thread again.
    assert asked.rows(thread)[0] == waiting
    asked.get("thread", thread=thread)
    answered = {task["node"]: task for task in asked.rows(thread)[2]["tasks"]}
    assert answered["budget"]["answered"][-1]["text"] == "yes to approve budget?"
    assert (answered["budget"]["waiting"], answered["budget"]["finished"]) == (False, True)


def test_a_failed_task_that_was_tried_again_says_both(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    graph = graphs.unreliable([], failures=1)(saver)
    with contextlib.suppress(ConnectionError):
        graph.invoke({"log": []}, thread_config(thread))
    [failed] = [task for task in asked.rows(thread)[0]["tasks"] if task["error"]]
    assert (failed["node"], failed["finished"]) == ("unsteady", False)
    assert "the network is down" in failed["error"]["text"]
    graph.invoke(None, thread_config(thread))
    asked.get("thread", thread=thread)
    [failed] = [task for row in asked.rows(thread) for task in row["tasks"] if task["error"]]
    assert failed["finished"]


def test_subgraphs_are_lanes_within_the_task_that_called_them(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    graphs.subgraphs(None)(saver).invoke({"log": ["begun"]}, thread_config(thread))
    root, middle, inner = asked.get("thread", thread=thread)["lanes"]
    assert root == {"ns": "", "name": "", "parent": None, "task_id": None}
    assert (middle["name"], middle["parent"]) == ("middle", "")
    assert (inner["name"], inner["parent"]) == ("inner", middle["ns"])
    [task] = asked.rows(thread)[0]["tasks"]
    assert (task["task_id"], task["node"]) == (middle["task_id"], "middle")
    assert task["asked"][0]["entries"][0]["key"] == "seen"
    [deep] = asked.rows(thread, middle["ns"])[0]["tasks"]
    assert deep["task_id"] == inner["task_id"]
    assert steps(asked.rows(thread, inner["ns"]))[-1] == (1, "loop", ["deep"], ["ask"])


def test_other_subgraphs_are_lanes_as_well(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    graphs.subgraphs(True)(saver).invoke({"log": ["begun"]}, thread_config(thread))
    _, middle, inner = asked.get("thread", thread=thread)["lanes"]
    # One that keeps its state over all calls is of no task.
    assert (middle["ns"], middle["task_id"], inner["parent"]) == ("middle", None, "middle")
    # The graph around another one keeps nothing.
    store(saver, thread_config(f"{thread}-2", "outer:1|inner:2"), "1", {"a": 1})
    [_, lane] = asked.get("thread", thread=f"{thread}-2")["lanes"]
    assert (lane["name"], lane["parent"], lane["task_id"]) == ("inner", "", "2")


def test_a_long_thread_comes_in_pages_that_are_the_whole(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    talk = Conversation(saver, thread)
    stored = [talk.put(count=each)["configurable"]["checkpoint_id"] for each in range(12)]
    pages = [page["rows"] for page in asked.pages("tree", thread=thread, ns="", limit=5)]
    assert [row["checkpoint"] for rows in pages for row in rows] == stored[::-1]
    assert [len(rows) for rows in pages] == [5, 5, 2]
    # The parent of the last of a page is on the next one, and what it changed is told all the same.
    assert all(row["changed"] == ["count"] for row in asked.rows(thread))


def test_a_thread_that_is_not_there_has_no_checkpoint(asked: Asked) -> None:
    found = asked.get("tree", thread="nobody", ns="")
    assert (found["rows"], found["newest"], found["before"]) == ([], None, None)
    with pytest.raises(CheckpointNotFoundError, match="has no checkpoint 'x'"):
        asked.get("state", thread="nobody", ns="", checkpoint="x")
    with pytest.raises(CheckpointNotFoundError, match="no namespace 'child'"):
        asked.get("tree", thread="nobody", ns="child")


def test_what_has_expired_is_not_there(
    asked: Asked, table: str, open_saver: Callable[..., DynamoDBSaver], thread: str, raw: Raw
) -> None:
    talk = Conversation(open_saver(table, ttl_seconds=1000), thread)
    first, newest = (talk.put(count=each)["configurable"]["checkpoint_id"] for each in range(2))
    assert asked.rows(thread)[0]["expires_at"]
    past: Any = {"expires_at": {"N": "1"}}
    raw.change(thread, f"C#{first}#", **past)
    asked.get("thread", thread=thread)
    assert [row["parent"] for row in asked.rows(thread)] == [first]
    with pytest.raises(CheckpointNotFoundError):
        asked.get("state", thread=thread, ns="", checkpoint=first)
    dead: Any = {"alive_until": {"N": "1"}}
    raw.change(thread, "T", **dead)
    raw.change(thread, f"C#{newest}#", **dead)
    asked.get("thread", thread=thread)
    # All of a thread ends at once.
    assert asked.rows(thread) == []


@pytest.mark.parametrize(
    "body", [b"\x01\x00\x00\x00\x00\x01\x00\x00nonsense", b"x"], ids=["content", "segments"]
)
def test_one_damaged_checkpoint_does_not_hide_the_others(
    asked: Asked, saver: DynamoDBSaver, thread: str, raw: Raw, body: bytes
) -> None:
    talk = Conversation(saver, thread)
    talk.put(count=1)
    damaged = talk.put(count=2)["configurable"]["checkpoint_id"]
    talk.put(count=3)
    raw.change(thread, f"C#{damaged}#", body={"B": body})
    raw.change(thread, "C#strange")
    newest, middle, oldest = asked.rows(thread)
    assert "is damaged" in middle["problem"]
    assert middle["changed"] == middle["ran"] == middle["next"] == []
    # Of what it is the child of nothing can be said.
    assert "is damaged" in newest["problem"]
    assert oldest["problem"] is None
    assert asked.get("search", thread=thread, text="nothing")["looked_at"] == 3
    assert "sort key" in asked.get("tree", thread=thread, ns="")["problem"]


def test_a_checkpoint_without_a_place_is_told_of_and_left_out(
    asked: Asked, saver: DynamoDBSaver, thread: str, raw: Raw
) -> None:
    talk = Conversation(saver, thread)
    damaged = [talk.put(count=each)["configurable"]["checkpoint_id"] for each in range(2)]
    talk.put(count=3)
    raw.change(thread, f"C#{damaged[0]}#", parent={"N": "1"})
    raw.change(thread, f"C#{damaged[1]}#", expires_at={"S": "soon"})
    found = asked.get("tree", thread=thread, ns="")
    assert [row["parent"] for row in found["rows"]] == [damaged[1]]
    assert "is damaged" in found["problem"]


def test_a_thread_of_another_key_says_so(
    table: str, open_saver: Callable[..., DynamoDBSaver], thread: str
) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    saver = open_saver(table, serde=serde)
    store(saver, thread_config(thread), "1", {"text": "secret"})
    assert Asked(Responses(Session(saver))).values(thread)["text"]["node"]["text"] == "secret"
    for other in (None, EncryptedSerializer.from_pycryptodome_aes(key=b"another key, 16.")):
        looker = Asked(Responses(Session(open_saver(table, serde=other))))
        [row] = looker.rows(thread)
        assert "key" in row["problem"] or "cipher" in row["problem"]
        assert "secret" not in str(looker.get("pending", **looker.newest(thread)))


def test_large_writes_are_read_when_they_are_wanted(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    config = store(saver, thread_config(thread), "1", {"text": "x"})
    saver.put_writes(config, [("found", noise(200_000))], "task", "~__pregel_pull, search")
    [row] = asked.rows(thread)
    assert [(task["node"], task["writes"], task["finished"]) for task in row["tasks"]] == [(None, [], True)]
    pending = asked.get("pending", **asked.newest(thread))
    assert [(each["node"], each["channel"], each["value"]["bytes"]) for each in pending["writes"]] == [
        ("search", "found", 200_000)
    ]


def test_a_checkpoint_of_any_id_has_the_time_that_it_says(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    checkpoint: Any = {**empty_checkpoint(), "id": "by hand", "ts": "2026-01-01T00:00:00+00:00"}
    metadata: Any = {"step": "no number", "source": "loop"}
    saver.put(thread_config(thread), checkpoint, metadata, {})
    [row] = asked.rows(thread)
    assert (row["stored_at"], row["step"]) == ("2026-01-01T00:00:00+00:00", None)
