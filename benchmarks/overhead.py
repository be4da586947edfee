"""What a saver adds to an agent: a conversation without one, with `InMemorySaver`, and with ours at a distance.

A turn is three calls of a model and two rounds of tools. A call of the model takes 300 ms, the tools take
nothing, which leaves the saver as little time to work beside them as an agent can. One turn comes before the
measured ones and opens the connections.

Where the time goes is told by when nodes begin and end: what a turn takes before its first node is the read, between
nodes the wait for what is stored, within them what the saver's other threads keep from them, and after the last one
the wait for the last checkpoint.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.clock import Times
from benchmarks.contestants import OURS, session_of
from benchmarks.conversation import config_of
from benchmarks.figures import Section, under
from benchmarks.network import ROUND_TRIP_MS, distant
from benchmarks.prose import prose
from benchmarks.raw import new_table
from benchmarks.report import table

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

_PLACES = ("before", "between", "within", "after")
_WHOLE = "whole"

# How long turns took, as a whole and in each place, by side, durability and checkpointer.
Measured: TypeAlias = Mapping[tuple[str, str, str], Mapping[str, Times]]


def run(engine: Engine) -> Section:
    """Run the conversation in every way that a graph is run."""
    return section_of(measure(engine))


def measure(engine: Engine) -> Measured:
    """Time a turn, in milliseconds, in every way that a graph is run and with every checkpointer."""
    with distant(engine) as remote:
        return {
            (side, durability, name): _turns(remote, name, side, durability)
            for side in _SIDES
            for durability in _DURABILITIES
            for name in (_NONE, _IN_MEMORY, OURS.name)
        }


def section_of(times: Measured) -> Section:
    """Compare with what the project set out to reach."""
    rows = [
        (
            _title(side, durability),
            *(
                f"{times[side, durability, name][_WHOLE].p50_ms:.0f}"
                for name in (_NONE, _IN_MEMORY, OURS.name)
            ),
            f"{_overhead(times, side, durability):.1f}%",
            *(f"{_added_ms(times, side, durability, place):.1f}" for place in _PLACES),
        )
        for side in _SIDES
        for durability in _DURABILITIES
    ]
    header = ("", _NONE, _IN_MEMORY, OURS.name, "overhead", *(f"of it {place} nodes" for place in _PLACES))
    return Section(
        f"Overhead on an agent: {_MODEL_CALLS} model calls of {MODEL_SECONDS * 1000:.0f} ms per turn,"
        f" network of {ROUND_TRIP_MS} ms, milliseconds per turn",
        (table(header, rows),),
        [
            under(
                f"overhead of {side} at the default durability",
                5,
                _overhead(times, side, "async"),
                "%",
                _remark(times, side),
            )
            for side in _SIDES
        ],
        {
            " ".join(way): {place: each.seconds for place, each in places.items()}
            for way, places in times.items()
        },
    )


def markdown(times: Measured) -> str:
    """Return what a step takes longer than in an agent without a checkpointer, as a table of a document."""
    lines = [("", *(f"{name}, ms per step" for name in (_IN_MEMORY, OURS.name)), "of a turn")]
    lines.append(("---",) * len(lines[0]))
    for side in _SIDES:
        for durability in _DURABILITIES:
            bare, *others = (
                times[side, durability, name][_WHOLE].p50_ms for name in (_NONE, _IN_MEMORY, OURS.name)
            )
            added = [f"{(each - bare) / _STEPS_PER_TURN:.1f}" for each in others]
            lines.append((_title(side, durability), *added, f"{100 * (others[-1] / bare - 1):.1f}%"))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _overhead(times: Measured, side: str, durability: Durability) -> float:
    bare = times[side, durability, _IN_MEMORY][_WHOLE].p50_ms
    return 100 * _added_ms(times, side, durability, _WHOLE) / bare


def _added_ms(times: Measured, side: str, durability: Durability, place: str) -> float:
    """How much longer than with `InMemorySaver` a turn takes in a place."""
    ours, bare = (times[side, durability, name][place].p50_ms for name in (OURS.name, _IN_MEMORY))
    return ours - bare


def _remark(times: Measured, side: str) -> str:
    before, between, within, after = (_added_ms(times, side, "async", place) for place in _PLACES)
    return (
        f"LangGraph waits {before:.0f} ms for the newest checkpoint, which it reads before it does anything, and"
        f" {after:.0f} ms for the last one, which it does not return without: a round trip, and two, with their CPU;"
        f" {between + within:.0f} ms go to the saver's CPU beside the calls. With the look beside the commit the last"
        " one would be a round trip less, and not safe (docs/design.md)"
    )


def _title(side: str, durability: Durability) -> str:
    return f"{side}, durability={durability!r}" + (" (default)" if durability == "async" else "")


def _turns(engine: Engine, name: str, side: str, durability: Durability) -> dict[str, Times]:
    with ExitStack() as stack:
        saver: BaseCheckpointSaver[Any] | None = None if name == _NONE else InMemorySaver()
        if name == OURS.name:
            saver = OURS.open(
                stack.enter_context(new_table(engine, OURS)),
                region_name=engine.region_name,
                endpoint_url=engine.endpoint_url,
                session=session_of(engine),
            )
        # When nodes began and ended, one after the other.
        moments: list[float] = []
        agent, turns_of = _agent(saver, moments), list[dict[str, float]]()
        # LangGraph fails where a durability is asked for and there is nothing to store with.
        wanted = durability if saver else None

        async def turns() -> None:
            for turn in range(1 + _TURNS):
                question: Any = {"messages": [HumanMessage(prose(Random(f"question/{turn}"), 260))]}
                config = config_of("thread")
                moments[:] = [time.perf_counter()]
                if side == "ainvoke":
                    await agent.ainvoke(question, config, durability=wanted)
                else:
                    agent.invoke(question, config, durability=wanted)
                turns_of.append(_places([*moments, time.perf_counter()]))

        asyncio.run(turns())
    # The first turn opens the connections.
    return {place: Times([each[place] for each in turns_of[1:]]) for place in (_WHOLE, *_PLACES)}


def _places(moments: Sequence[float]) -> dict[str, float]:
    """How long a turn took in each place: moments are its start, each node's start and end, and its end."""
    spans = [end - start for start, end in pairwise(moments)]
    times = {
        "before": spans[0],
        "between": sum(spans[2:-1:2]),
        "within": sum(spans[1::2]),
        "after": spans[-1],
    }
    return {_WHOLE: moments[-1] - moments[0], **times}


def _agent(saver: BaseCheckpointSaver[Any] | None, moments: list[float]) -> CompiledStateGraph[MessagesState]:
    def model(state: MessagesState) -> MessagesState:
        moments.append(time.perf_counter())
        time.sleep(MODEL_SECONDS)
        return answer(state)

    async def amodel(state: MessagesState) -> MessagesState:
        moments.append(time.perf_counter())
        await asyncio.sleep(MODEL_SECONDS)
        return answer(state)

    def answer(state: MessagesState) -> MessagesState:
        answered: MessagesState = {
            "messages": [AIMessage(prose(Random(f"answer/{len(state['messages'])}"), 700))]
        }
        moments.append(time.perf_counter())
        return answered

    def tools(state: MessagesState) -> MessagesState:
        moments.append(time.perf_counter())
        count = len(state["messages"])
        text = prose(Random(f"tool/{count}"), 1000)
        moments.append(time.perf_counter())
        return {"messages": [ToolMessage(text, tool_call_id=f"call-{count}")]}

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
