"""A thread that LangGraph.js wrote, in Python: it is read, continued, and shown as plain JSON."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from tests.conftest import MakeSaver
from tests.gateway.through.conftest import MakeRemote
from tests.support.checkpoints import thread_config
from tests.support.javascript import store_recorded

pytestmark = pytest.mark.engines("dynamodb-local")

TRIP = thread_config("trip")


def said(messages: list[Any]) -> list[Any]:
    """Return the classes of messages, and what they say."""
    return [(type(each), each.content) for each in messages]


BOOKED = [(HumanMessage, "Where to?"), (AIMessage, "Lisbon is warm."), (ToolMessage, "booked")]


@pytest.mark.parametrize("through", ["gateway", "table"])
def test_python_reads_and_continues_it(make_saver: MakeSaver, make_remote: MakeRemote, through: str) -> None:
    direct = make_saver()
    saver: Any = make_remote() if through == "gateway" else direct
    store_recorded(direct, "trip", "start")
    pending = saver.get_tuple(TRIP).pending_writes
    [[interrupt]] = [value for _, channel, value in pending if channel == "__interrupt__"]
    assert interrupt.value == "Book Lisbon?"
    store_recorded(direct, "trip", "yes")
    read = saver.get_tuple(TRIP)
    assert said(read.checkpoint["channel_values"]["messages"]) == BOOKED
    assert read.checkpoint["channel_values"]["messages"][1].tool_calls[0]["args"] == {"city": "Lisbon"}
    assert [each.metadata["step"] for each in saver.list(TRIP)] == [2, 1, 0, -1]

    builder = StateGraph(MessagesState).add_node("reply", lambda _: {"messages": [AIMessage("On Monday.")]})
    graph = builder.add_edge(START, "reply").compile(checkpointer=saver)
    state = graph.invoke({"messages": [HumanMessage("And back?")]}, TRIP)
    assert said(state["messages"]) == [*BOOKED, (HumanMessage, "And back?"), (AIMessage, "On Monday.")]
    # A version that JavaScript began stays a number.
    versions = saver.get_tuple(TRIP).checkpoint["channel_versions"]
    assert versions["messages"] > read.checkpoint["channel_versions"]["messages"]
