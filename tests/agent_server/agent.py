"""The agent that the server runs: it repeats what was said, asks for a name if need be, and waits if it is told to."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


async def answer(state: MessagesState) -> dict[str, Any]:
    """Answer the last message."""
    said = [str(message.content) for message in state["messages"] if message.type == "human"]
    name = f" {interrupt('What is your name?')}" if said[-1] == "Who am I?" else ""
    if said[-1] == "Wait.":
        await asyncio.sleep(60)
    return {"messages": [("ai", f"{' '.join(said)}{name}")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
