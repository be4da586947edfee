"""The workload: a tool-calling agent whose model follows a script.

One turn is a question, two rounds of tools and an answer: 6 messages, 7 checkpoints and 6 calls of
`put_writes`. What is said depends on the seed, the turn and the round only, so every saver stores the same
text. The ids that LangGraph draws (of checkpoints, tasks and tool messages) differ between runs and have the
same length.
"""

from __future__ import annotations

from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.prose import prose, records, uuid, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Durability

STEPS_PER_TURN = 7
_SEED = "conversation"
_TOOL_ROUNDS = 2


def config_of(thread_id: str) -> RunnableConfig:
    """Return the configuration that names a thread."""
    return {"configurable": {"thread_id": thread_id}}


def conversation(
    saver: BaseCheckpointSaver[Any], thread_id: str, turns: int, durability: Durability = "sync"
) -> Iterator[int]:
    """Run a conversation and yields the number of each turn when all of it has been stored."""
    return relay([saver], thread_id, turns, durability)


def relay(
    savers: Iterable[BaseCheckpointSaver[Any]], thread_id: str, turns: int, durability: Durability = "sync"
) -> Iterator[int]:
    """Run a conversation of which each turn is on the next of some savers, over and over, as on so many processes."""
    agents = cycle(map(_agent, savers))
    for turn in range(1, turns + 1):
        next(agents).invoke({"messages": [question(turn)]}, config_of(thread_id), durability=durability)
        yield turn


def question(turn: int) -> HumanMessage:
    """Return what is asked in a turn."""
    random = Random(f"{_SEED}/{turn}/question")
    return HumanMessage(prose(random, 260), id=uuid(random))


def _agent(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[MessagesState]:
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [answer(state["messages"])]})
    graph.add_node("tools", ToolNode([search]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


@tool("search")
def search(query: str, limit: int) -> str:
    """Search the records of the company."""
    return records(Random(f"{_SEED}/{query}/{limit}"), 1000)


def answer(messages: Sequence[BaseMessage]) -> AIMessage:
    """Answer as the script says: it asks for a tool twice, then it speaks."""
    turn = sum(isinstance(message, HumanMessage) for message in messages)
    calls = 0
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            break
        calls += isinstance(message, AIMessage)
    random = Random(f"{_SEED}/{turn}/{calls}")
    asks = calls < _TOOL_ROUNDS
    return AIMessage(
        prose(random, 60 if asks else 900),
        id=f"lc_run--{uuid(random)}",
        response_metadata={
            "id": f"msg_{random.getrandbits(120):030x}",
            "model_name": "scripted-model-1",
            "model_provider": "script",
            "stop_reason": "tool_use" if asks else "end_turn",
        },
        usage_metadata=_usage(random, len(messages)),
        tool_calls=[_tool_call(random)] if asks else [],
    )


def _tool_call(random: Random) -> ToolCall:
    arguments = {"query": " ".join(words(random, 6)), "limit": random.randint(3, 50)}
    return ToolCall(name="search", args=arguments, id=f"toolu_{random.getrandbits(96):024x}")


def _usage(random: Random, messages: int) -> UsageMetadata:
    read = 300 * messages + random.randint(0, 200)
    written = random.randint(20, 400)
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
