"""The agent that both examples run: it plans, it answers, and it remembers what a thread told it before.

In all threads of a user it remembers each message that began with "Remember". The user is what stands before the first
slash of a thread's id, such as `ada/1`. So one policy keeps threads and memories of users apart.

Its model is scripted, so that the examples need no access to one. Put a chat model's `invoke` in place of `call_model`.
"""

import contextlib
import operator
import os
import time
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias, TypedDict

from botocore.exceptions import BotoCoreError, ClientError
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from langgraph.checkpoint.dynamodb import CheckpointerError, DynamoDBSaver

# How long the model takes, so that there is a middle in which a process can be stopped.
THINK_SECONDS = float(os.environ.get("THINK_SECONDS", "0"))
# A thread has one runner at a time. One that was killed keeps others out for so long, and 5 seconds more.
LOCK_SECONDS = float(os.environ.get("LOCK_SECONDS", "20"))
# For so long a message waits for the one before it. The caller, and Lambda's time-out, have to wait for longer.
WAIT_SECONDS = float(os.environ.get("WAIT_SECONDS", "30"))
# A step that failed as often, or that a time-out ended, is given up: its message gets an error for an answer. Otherwise
# a message that the model can never answer would keep every later one of its thread out.
ATTEMPTS_MAX = int(os.environ.get("ATTEMPTS_MAX", "3"))
# How many memories of a user the model is given, the newest first.
MEMORIES_MAX = 10
# The name under which attempts stand among a checkpoint's pending writes. No channel of the graph has it.
_ATTEMPT = "attempt"


class AttemptFailedError(Exception):
    """A step of the thread failed. Send the message again: the step is tried again, or given up."""


class MessageFailedError(Exception):
    """The message was given up. Sending it again changes nothing."""


class State(TypedDict):
    """The conversation, and which process took which step of it."""

    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[list[str], operator.add]


Agent: TypeAlias = CompiledStateGraph[State, None, State, State]


def call_model(messages: list[AnyMessage], memories: list[str]) -> AIMessage:
    """Answer the newest of these messages, knowing what its user wants to be remembered."""
    time.sleep(THINK_SECONDS)
    said = [str(message.content) for message in messages if isinstance(message, HumanMessage)]
    known = f" I remember: {' '.join(memories)}" if memories else ""
    return AIMessage(f"You have told me {len(said)} things. The first was: {said[0]}{known}")


def _plan(state: State) -> dict[str, Any]:
    return {"steps": [f"plan message {len(state['messages'])} in process {os.getpid()}"]}


def _answer(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    step = f"answer message {len(state['messages'])} in process {os.getpid()}"
    memories = _memories(state["messages"][-1], config["configurable"]["thread_id"], store)
    return {"messages": [call_model(state["messages"], memories)], "steps": [step]}


def _memories(message: AnyMessage, thread_id: str, store: BaseStore) -> list[str]:
    """Return what a thread's user wants to be remembered, this message included."""
    user, slash, _ = thread_id.partition("/")
    if not slash:
        return []
    namespace = (user, "memories")
    if str(message.content).startswith("Remember"):
        # Under the message's id, so a step that is tried again remembers nothing twice.
        store.put(namespace, str(message.id), {"text": str(message.content)})
    return [each.value["text"] for each in store.search(namespace, limit=MEMORIES_MAX)]


def build_agent(saver: BaseCheckpointSaver[Any], store: BaseStore) -> Agent:
    """Compile the agent on a saver and a store.

    Args:
        saver: Where it keeps its threads.
        store: Where it keeps what it remembers of its users.

    Returns:
        The agent, for `invoke` and for `ainvoke`.
    """
    graph = StateGraph(State)
    graph.add_node("plan", _plan)
    graph.add_node("answer", _answer)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver, store=store)


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
        AttemptFailedError: A step failed, of this message or of an earlier one; send the message again.
        ThreadBusyError: Another runner had the thread for too long; send the message again.
        ThreadLockLostError: This one stood still for too long; send the message again.
    """
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    saver = _saver_of(agent)
    with saver.thread_lock(thread_id, ttl=LOCK_SECONDS, wait=WAIT_SECONDS), _failures(thread_id):
        snapshot = agent.get_state(thread)
        state: dict[str, Any] = snapshot.values
        # A step failed here, or a process died. With no input the run goes on after the last step that was stored.
        if snapshot.next and (stored := saver.get_tuple(thread)):
            if _attempts(stored) < ATTEMPTS_MAX:
                saver.put_writes(stored.config, *_attempt(stored))
                state = agent.invoke(None, thread, durability="sync")
            else:
                agent.update_state(stored.config, _given_up(), as_node="answer")
                state = agent.get_state(thread).values
        if message_id not in message_ids(state):
            state = agent.invoke(_said(message_id, text), thread, durability="sync")
    return state


async def aconverse(agent: Agent, thread_id: str, message_id: str, text: str) -> dict[str, Any]:
    """Do as `converse` does."""
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    saver = _saver_of(agent)
    async with saver.athread_lock(thread_id, ttl=LOCK_SECONDS, wait=WAIT_SECONDS):
        with _failures(thread_id):
            snapshot = await agent.aget_state(thread)
            state: dict[str, Any] = snapshot.values
            if snapshot.next and (stored := await saver.aget_tuple(thread)):
                if _attempts(stored) < ATTEMPTS_MAX:
                    await saver.aput_writes(stored.config, *_attempt(stored))
                    state = await agent.ainvoke(None, thread, durability="sync")
                else:
                    await agent.aupdate_state(stored.config, _given_up(), as_node="answer")
                    state = (await agent.aget_state(thread)).values
            if message_id not in message_ids(state):
                state = await agent.ainvoke(_said(message_id, text), thread, durability="sync")
    return state


def _attempts(stored: CheckpointTuple) -> int:
    """Count the attempts at the step behind a checkpoint; the run that stored the checkpoint made the first."""
    return 1 + sum(name == _ATTEMPT for _, name, _ in stored.pending_writes or [])


def _attempt(stored: CheckpointTuple) -> tuple[list[tuple[str, int]], str]:
    """Note the next attempt, before it begins: one that a time-out ends has no other way to be counted."""
    number = 1 + _attempts(stored)
    return [(_ATTEMPT, number)], f"{_ATTEMPT}-{number}"


def _given_up() -> dict[str, Any]:
    text = f"This message could not be answered: {ATTEMPTS_MAX} attempts failed."
    return {"messages": [AIMessage(text, additional_kwargs={"failed": True})], "steps": []}


@contextlib.contextmanager
def _failures(thread_id: str) -> Iterator[None]:
    """Tell failures of the agent, such as those of its model, from those of the table."""
    try:
        yield
    except (CheckpointerError, BotoCoreError, ClientError):
        raise
    except Exception as error:
        raise AttemptFailedError(f"a step of thread {thread_id!r} failed: {error!r}") from error


def reply_to(state: dict[str, Any], message_id: str) -> str:
    """The answer that a conversation has to a message.

    Args:
        state: The state of the conversation.
        message_id: The id of a message in it.

    Returns:
        The answer's text.

    Raises:
        MessageFailedError: The message was given up.
    """
    messages: list[AnyMessage] = state["messages"]
    asked = message_ids(state).index(message_id)
    answer = next(message for message in messages[asked:] if isinstance(message, AIMessage))
    if answer.additional_kwargs.get("failed"):
        raise MessageFailedError(str(answer.content))
    return str(answer.content)


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
