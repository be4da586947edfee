"""A thread that LangGraph.js wrote: its messages are messages, and its tasks have nodes, questions and answers."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.javascript import store_recorded
from tests.view.conftest import Asked

pytestmark = pytest.mark.engines("dynamodb-local")


def test_messages_are_shown_as_messages(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    store_recorded(saver, thread, "start", "yes")
    messages = asked.values(thread)["messages"]["node"]["items"]
    assert [(each["kind"], each["role"], each["content"]["text"]) for each in messages] == [
        ("message", "human", "Where to?"),
        ("message", "ai", "Lisbon is warm."),
        ("message", "tool", "booked"),
    ]
    [call] = messages[1]["calls"]
    assert (call["name"], call["id"], messages[2]["result_of"]) == ("book", "call-1", "call-1")


def test_a_task_that_waits_has_its_node_and_its_question(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    store_recorded(saver, thread, "start")
    row = asked.rows(thread)[0]
    [waiting] = row["tasks"]
    assert (waiting["node"], waiting["waiting"], waiting["finished"]) == ("book", True, False)
    assert [each["text"] for each in waiting["asked"]] == ["Book Lisbon?"]
    assert row["next"] == ["book"]


def test_a_task_that_was_answered_has_its_answer(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    store_recorded(saver, thread, "start", "yes")
    newest, waited, *_ = asked.rows(thread)
    assert newest["ran"] == ["book"]
    answered = {task["node"]: task for task in waited["tasks"]}
    assert [each["text"] for each in answered["book"]["answered"]] == ["yes"]
    assert (answered["book"]["waiting"], answered["book"]["finished"]) == (False, True)
