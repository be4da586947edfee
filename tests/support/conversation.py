"""A whole agent run, small: a model that asks for a tool, a person who allows it, a large result, and an answer."""

import random
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

# Larger than a checkpoint keeps inline, so that the run reads and writes segments.
TOOL_RESULT_BYTES = 60_000


class State(TypedDict):
    """The conversation so far."""

    messages: Annotated[list[AnyMessage], add_messages]


def _model(state: State) -> dict[str, Any]:
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(f"The tool returned {len(str(last.content))} characters.")]}
    call = {"name": "look_up", "args": {}, "id": f"call-{len(state['messages'])}"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def _tool(state: State) -> dict[str, Any]:
    allowed = interrupt("May I look it up?")
    last = state["messages"][-1]
    assert isinstance(last, AIMessage)
    # Compression must not make it small: the point is a state that needs segments.
    result = random.Random(0).randbytes(TOOL_RESULT_BYTES // 2).hex() if allowed else ""
    return {"messages": [ToolMessage(result, tool_call_id=last.tool_calls[0]["id"])]}


def _next(state: State) -> str:
    last = state["messages"][-1]
    return "tool" if isinstance(last, AIMessage) and last.tool_calls else END


def build_agent(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[State, None, State, State]:
    """The agent, on a saver."""
    graph = StateGraph(State)
    graph.add_node("model", _model)
    graph.add_node("tool", _tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _next, ["tool", END])
    graph.add_edge("tool", "model")
    return graph.compile(checkpointer=saver)


def config_of(thread_id: str, **metadata: str) -> RunnableConfig:
    """The configuration of a thread, with what the checkpoints' metadata is to hold beside LangGraph's own."""
    return {"configurable": {"thread_id": thread_id}, "metadata": dict(metadata)}


def converse(saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> list[AnyMessage]:
    """One question of a person and what comes of it: asked, interrupted, allowed, answered."""
    agent = build_agent(saver)
    asked = agent.invoke({"messages": [HumanMessage("Look it up.")]}, config)
    assert asked["__interrupt__"], "the agent did not ask"
    messages: list[AnyMessage] = agent.invoke(Command(resume=True), config)["messages"]
    return messages
