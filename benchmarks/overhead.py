"""What a saver adds to an agent: a conversation without one, with `InMemorySaver`, and with ours at a distance.

A turn is three calls of a model and two rounds of tools. A call of the model takes 300 ms, the tools take
nothing, which leaves the saver as little time to work beside them as an agent can. One turn comes before the
measured ones and opens the connections.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.clock import Times
from benchmarks.contestants import OURS, new_bench
from benchmarks.conversation import config_of
from benchmarks.network import distant
from benchmarks.prose import prose
from benchmarks.report import Section, table

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Durability

    from tools.engine import Engine

MODEL_SECONDS = 0.3
_MODEL_CALLS = 3
_TURNS = 8
# The input, the calls, and the tools between them are a checkpoint each.
_STEPS_PER_TURN = 2 * _MODEL_CALLS
_SIDES = ("invoke", "ainvoke")
_DURABILITIES: tuple[Durability, ...] = ("async", "sync")
_NONE, _IN_MEMORY = "none", "InMemorySaver"

# By side, durability and checkpointer.
Measured: TypeAlias = Mapping[tuple[str, str, str], Times]


def run(engine: Engine) -> Section:
    """Run the conversation in every way that a graph is run."""
    return Section({"overhead": markdown(measure(engine))})


def measure(engine: Engine) -> Measured:
    """Time a turn, in milliseconds, in every way that a graph is run and with every checkpointer."""
    with distant(engine) as remote:
        return {
            (side, durability, name): _turns(remote, name, side, durability)
            for side in _SIDES
            for durability in _DURABILITIES
            for name in (_NONE, _IN_MEMORY, OURS.name)
        }


def markdown(times: Measured) -> str:
    """Return what a step takes longer than in an agent without a checkpointer, as a table of a document."""
    rows = list[Sequence[object]]()
    for side in _SIDES:
        for durability in _DURABILITIES:
            bare, *others = (times[side, durability, name].p50_ms for name in (_NONE, _IN_MEMORY, OURS.name))
            added = [f"{(each - bare) / _STEPS_PER_TURN:.1f}" for each in others]
            rows.append((_title(side, durability), *added, f"{100 * (others[-1] / bare - 1):.1f}%"))
    return table(["", *(f"{name}, ms per step" for name in (_IN_MEMORY, OURS.name)), "of a turn"], rows)


def _title(side: str, durability: Durability) -> str:
    return f"{side}, durability={durability!r}" + (" (default)" if durability == "async" else "")


def _turns(engine: Engine, name: str, side: str, durability: Durability) -> Times:
    with ExitStack() as stack:
        saver: BaseCheckpointSaver[Any] | None = None if name == _NONE else InMemorySaver()
        if name == OURS.name:
            saver = stack.enter_context(new_bench(OURS, engine)).open()
        agent, times = _agent(saver), Times()
        # LangGraph fails where a durability is asked for and there is nothing to store with.
        wanted = durability if saver else None

        async def turns() -> None:
            for turn in range(1 + _TURNS):
                question: Any = {"messages": [HumanMessage(prose(Random(f"question/{turn}"), 260))]}
                started = time.perf_counter()
                if side == "ainvoke":
                    await agent.ainvoke(question, config_of("thread"), durability=wanted)
                else:
                    agent.invoke(question, config_of("thread"), durability=wanted)
                times.seconds.append(time.perf_counter() - started)

        asyncio.run(turns())
    # The first turn opens the connections.
    return Times(times.seconds[1:])


def _agent(saver: BaseCheckpointSaver[Any] | None) -> CompiledStateGraph[MessagesState]:
    def model(state: MessagesState) -> MessagesState:
        time.sleep(MODEL_SECONDS)
        return answer(state)

    async def amodel(state: MessagesState) -> MessagesState:
        await asyncio.sleep(MODEL_SECONDS)
        return answer(state)

    def answer(state: MessagesState) -> MessagesState:
        return {"messages": [AIMessage(prose(Random(f"answer/{len(state['messages'])}"), 700))]}

    def tools(state: MessagesState) -> MessagesState:
        count = len(state["messages"])
        return {"messages": [ToolMessage(prose(Random(f"tool/{count}"), 1000), tool_call_id=f"call-{count}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", RunnableLambda(model, amodel))
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _next)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def _next(state: MessagesState) -> str:
    # A turn is a question, and answers with tools between them: a message for each step.
    return END if len(state["messages"]) % _STEPS_PER_TURN == 0 else "tools"
