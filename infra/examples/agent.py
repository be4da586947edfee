"""The agent that both examples run: it plans, it answers, and it remembers what a thread told it before.

Its model is scripted, so that the examples need no access to one. Put a chat model's `invoke` in place of `_model`.
"""

from __future__ import annotations

import operator
import os
import time
from typing import Annotated, Any, TypeAlias, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph

from langgraph.checkpoint.dynamodb import DynamoDBSaver

# How long the model takes, so that there is a middle in which a process can be stopped.
THINK_SECONDS = float(os.environ.get("THINK_SECONDS", "0"))
# A thread has one runner at a time. One that was killed keeps others out for so long, and 5 seconds more.
LOCK_SECONDS = float(os.environ.get("LOCK_SECONDS", "20"))
# For so long a message waits for the one before it. The caller, and Lambda's time-out, have to wait for longer.
WAIT_SECONDS = float(os.environ.get("WAIT_SECONDS", "30"))


class State(TypedDict):
    """The conversation, and which process took which step of it."""

    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[list[str], operator.add]


Agent: TypeAlias = CompiledStateGraph[State, None, State, State]


def _model(messages: list[AnyMessage]) -> AIMessage:
    time.sleep(THINK_SECONDS)
    said = [str(message.content) for message in messages if isinstance(message, HumanMessage)]
    return AIMessage(f"You have told me {len(said)} things. The first was: {said[0]}")


def _plan(state: State) -> dict[str, Any]:
    return {"steps": [f"plan message {len(state['messages'])} in process {os.getpid()}"]}


def _answer(state: State) -> dict[str, Any]:
    step = f"answer message {len(state['messages'])} in process {os.getpid()}"
    return {"messages": [_model(state["messages"])], "steps": [step]}


def build_agent(saver: BaseCheckpointSaver[Any]) -> Agent:
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


def converse(agent: Agent, thread_id: str, message_id: str, text: str) -> dict[str, Any]:
    """Answer one message once, whether it is new, half-answered or answered already, and who else may be at it.

    Args:
        agent: The agent, on a `DynamoDBSaver`.
        thread_id: The conversation.
        message_id: The sender's own id of the message. Whoever is not sure that it was answered sends it again with it.
        text: What the person says.

    Returns:
        The state of the conversation, with the message and its answer in it.

    Raises:
        ThreadBusyError: Another runner had the thread for too long; send the message again.
        ThreadLockLostError: This one stood still for too long; send the message again.
    """
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    with _saver_of(agent).thread_lock(thread_id, ttl=LOCK_SECONDS, wait=WAIT_SECONDS):
        snapshot = agent.get_state(thread)
        state: dict[str, Any] = snapshot.values
        if snapshot.next:
            # A process died here. With no input the run goes on after the last step that was stored.
            state = agent.invoke(None, thread, durability="sync")
        if message_id not in message_ids(state):
            state = agent.invoke(_said(message_id, text), thread, durability="sync")
    return state


async def aconverse(agent: Agent, thread_id: str, message_id: str, text: str) -> dict[str, Any]:
    """Do as `converse` does."""
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    async with _saver_of(agent).athread_lock(thread_id, ttl=LOCK_SECONDS, wait=WAIT_SECONDS):
        snapshot = await agent.aget_state(thread)
        state: dict[str, Any] = snapshot.values
        if snapshot.next:
            state = await agent.ainvoke(None, thread, durability="sync")
        if message_id not in message_ids(state):
            state = await agent.ainvoke(_said(message_id, text), thread, durability="sync")
    return state


def reply_to(state: dict[str, Any], message_id: str) -> str:
    """The answer that a conversation has to a message.

    Args:
        state: The state of the conversation.
        message_id: The id of a message in it.

    Returns:
        The answer's text.
    """
    messages: list[AnyMessage] = state["messages"]
    asked = message_ids(state).index(message_id)
    return str(next(message for message in messages[asked:] if isinstance(message, AIMessage)).content)


def message_ids(state: dict[str, Any]) -> list[str | None]:
    """The ids of a conversation's messages.

    Args:
        state: The state of the conversation, which may be empty.

    Returns:
        The ids, oldest first.
    """
    return [message.id for message in state.get("messages", [])]


def _said(message_id: str, text: str) -> State:
    return {"messages": [HumanMessage(text, id=message_id)], "steps": []}


def _saver_of(agent: Agent) -> DynamoDBSaver:
    if not isinstance(agent.checkpointer, DynamoDBSaver):
        raise TypeError("the agent has to be compiled with a DynamoDBSaver")
    return agent.checkpointer
