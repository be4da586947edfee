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
