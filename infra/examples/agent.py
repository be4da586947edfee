"""The agent that both examples run: it plans, it answers, and it remembers what a thread told it before.

Its model is scripted, so that the examples need no access to one. Put a chat model's `invoke` in place of `_model`.
"""

from __future__ import annotations

import operator
import os
import time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph

# How long the model takes, so that there is a middle in which a process can be stopped.
THINK_SECONDS = float(os.environ.get("THINK_SECONDS", "0"))


class State(TypedDict):
    """The conversation, and which process took which step of it."""

    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[list[str], operator.add]


def _model(messages: list[AnyMessage]) -> AIMessage:
    time.sleep(THINK_SECONDS)
    said = [str(message.content) for message in messages if isinstance(message, HumanMessage)]
    return AIMessage(f"You have told me {len(said)} things. The first was: {said[0]}")


def _plan(state: State) -> dict[str, Any]:
    return {"steps": [f"plan message {len(state['messages'])} in process {os.getpid()}"]}


def _answer(state: State) -> dict[str, Any]:
    step = f"answer message {len(state['messages'])} in process {os.getpid()}"
    return {"messages": [_model(state["messages"])], "steps": [step]}


def build_agent(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[State, None, State, State]:
    """Compile the agent on a saver.

    Args:
        saver: Where it keeps its threads.

    Returns:
        The agent, for `invoke` and for `ainvoke`.
    """
    graph = StateGraph(State)
    graph.add_node("plan", _plan)
    graph.add_node("answer", _answer)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)
