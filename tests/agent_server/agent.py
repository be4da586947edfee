"""The agent that the server runs: it counts what was said, and asks for a name before it says who one is."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


def answer(state: MessagesState) -> dict[str, Any]:
    """Answer the last message."""
    said = [str(message.content) for message in state["messages"] if message.type == "human"]
    name = f" {interrupt('What is your name?')}" if said[-1] == "Who am I?" else ""
    return {"messages": [("ai", f"{' '.join(said)}{name}")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
