"""What each backend is put to: LangGraph's conformance suite, single operations, a large state, many tasks, a chat."""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, TypedDict

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from benchmarks.clock import Times
from benchmarks.conversation import config_of, conversation
from benchmarks.months import Usage
from benchmarks.states import Thread, chat, message

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

    from benchmarks.stores import Saver, Store

OPERATIONS = ("put", "get_tuple")
LARGE_BYTES = 10_000_000
# The first ones find a server that has not compiled what it needs for them; the median counts.
_LARGE_STATES = 7
SENDS = 300
_FAN_OUTS = 5
# What comes before the measured steps, and opens connections.
_WARM_STEPS = 3
_NEWEST: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}


async def capabilities(store: Store) -> dict[str, str]:
    """Run LangGraph's conformance suite on the async methods; say of each capability what became of it."""

    @checkpointer_test(name="saver")
    async def saver_under_test() -> AsyncIterator[Saver]:
        async with store.aopen() as saver:
            yield saver

    report = await validate(saver_under_test)
    return {
        name: "passed" if result.passed else "fails" if result.detected else "missing"
        for name, result in report.results.items()
    }


class _Contestant:
    """A thread whose last message changes with every step, and whose size does not."""

    def __init__(self, saver: Saver, state_bytes: int) -> None:
        self._saver = saver
        self._thread = Thread(saver, "thread")
        self._messages = chat(saver.serde, state_bytes)
        self._thread.put(messages=self._messages)
        self.times = {operation: Times() for operation in OPERATIONS}

    def step(self, number: int) -> None:
        """Time each operation once."""
        # All such messages are a model's, which are of a length.
        new: AnyMessage = message(1001 + 2 * number)
        arguments = self._thread.change(messages=[*self._messages[:-1], new])

        def put() -> None:
            self._thread.config = self._saver.put(*arguments)

        self.times["put"].measure(put)
        self.times["get_tuple"].measure(lambda: self._saver.get_tuple(_NEWEST))


def latencies(stores: Mapping[str, Store], state_bytes: int, steps: int) -> dict[str, dict[str, Times]]:
    """Time the operations of all backends in turn, each of them first in some of the steps."""
    with ExitStack() as stack:
        contestants = {
            name: _Contestant(stack.enter_context(store.open()), state_bytes)
            for name, store in stores.items()
        }
        order = list(contestants.values())
        for number in range(_WARM_STEPS + steps):
            for position in range(len(order)):
                order[(number + position) % len(order)].step(number)
    return {
        name: {operation: Times(times.seconds[_WARM_STEPS:]) for operation, times in contestant.times.items()}
        for name, contestant in contestants.items()
    }


@dataclass(frozen=True)
class Large:
    """How long it took to store a large state and to read it; or why it could not be stored."""

    put_ms: float = 0
    get_ms: float = 0
    refusal: str = ""


def large(store: Store) -> Large:
    """Store states that do not compress, and read them with another saver, both with their connections open."""
    put, get = Times(), Times()
    with store.open() as saver:
        saver.get_tuple(config_of("nobody"))
        for number in range(_LARGE_STATES):
            thread, value = Thread(saver, f"large {number}"), Random(number).randbytes(LARGE_BYTES)
            try:
                put.measure(partial(thread.put, value=value))
            except Exception as error:  # noqa: BLE001  # Each saver has errors of its own.
                return Large(refusal=f"{type(error).__name__}: {error}")
    with store.open() as saver:
        saver.get_tuple(config_of("nobody"))
        for number in range(_LARGE_STATES):
            get.measure(partial(saver.get_tuple, config_of(f"large {number}")))
    return Large(put.p50_ms, get.p50_ms)


class _Numbers(TypedDict):
    numbers: Annotated[list[int], operator.add]


def _fan_out(saver: Saver) -> CompiledStateGraph[_Numbers]:
    """A graph that runs many tasks in one step, each of which stores a pending write."""
    sends = [Send("task", number) for number in range(SENDS)]
    builder = StateGraph(_Numbers).add_node("task", lambda number: {"numbers": [number]})
    return builder.add_conditional_edges(START, lambda _: sends, ["task"]).compile(checkpointer=saver)


@dataclass(frozen=True)
class FanOut:
    """The CPU that a process takes for a step of many tasks."""

    invoke_ms: float = 0
    ainvoke_ms: float = 0


async def fan_out(store: Store) -> FanOut:
    """Run steps of many tasks, on threads and on an event loop. The first of each opens connections and is left out."""
    blocking, on_loop = list[float](), list[float]()
    with store.open() as saver:
        graph = _fan_out(saver)
        for number in range(1 + _FAN_OUTS):
            began = time.process_time()
            graph.invoke({"numbers": []}, config_of(f"threads {number}"))
            blocking.append(time.process_time() - began)
    async with store.aopen() as saver:
        graph = _fan_out(saver)
        for number in range(1 + _FAN_OUTS):
            began = time.process_time()
            await graph.ainvoke({"numbers": []}, config_of(f"event loop {number}"))
            on_loop.append(time.process_time() - began)
    return FanOut(*(statistics.median(each[1:]) * 1000 for each in (blocking, on_loop)))


def usage(store: Store, turns: tuple[int, ...]) -> dict[int, Usage]:
    """Run one conversation, and say what it has taken after so many turns, beyond what an empty store takes."""
    found: dict[int, Usage] = {}
    with store.open() as saver:
        before, empty = _units(store), store.weigh()
        for turn in conversation(saver, "thread", max(turns)):
            if turn in turns:
                write_units, read_units = _units(store)
                found[turn] = Usage(write_units - before[0], read_units - before[1], store.weigh() - empty)
    return found


def _units(store: Store) -> tuple[float, float]:
    if store.meter is None:
        return 0.0, 0.0
    return store.meter.total.write_units, store.meter.total.read_units
