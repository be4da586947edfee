"""What each backend is put to: LangGraph's conformance suite, a large state, many tasks, deletions, listings, a chat.

A trial takes an empty store, and returns its rows of the table by their titles; nothing where a backend refuses.
"""

from __future__ import annotations

import operator
import statistics
import time
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, TypedDict

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import BASE_CAPABILITIES, EXTENDED_CAPABILITIES
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from benchmarks.clock import Times
from benchmarks.conversation import config_of, conversation
from benchmarks.months import EXAMPLES, Usage
from benchmarks.states import Thread, chat, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from langgraph.graph.state import CompiledStateGraph

    from benchmarks.stores import Saver, Store

OPERATIONS = ("put", "get_tuple")
TURNS = tuple(sorted({example.turns for example in EXAMPLES}))
_LARGE_BYTES = 10_000_000
# The first ones find a server that has not compiled what it needs for them; the median counts.
_LARGE_STATES = 7
_SENDS = 300
_FAN_OUTS = 5
_WINDOW, _WINDOW_TURNS = 200, 5
_PRUNED = 1_000
_FILES, _PAGE = 2_000, 100
_FOLDER = ("agent", "files")
# What comes before the measured steps, and opens connections.
_WARM_STEPS = 3


async def capabilities(store: Store) -> dict[str, str]:
    """Run LangGraph's conformance suite on the async methods, and say which capabilities passed."""

    @checkpointer_test(name="saver")
    async def saver_under_test() -> AsyncIterator[Saver]:
        async with store.aopen() as saver:
            yield saver

    report = await validate(saver_under_test)
    rows = {}
    for group in (BASE_CAPABILITIES, EXTENDED_CAPABILITIES):
        names = sorted(each.value for each in group)
        passed = [name for name in names if report.results[name].passed]
        rows[f"conformance: {', '.join(names)}"] = f"{len(passed)} of {len(names)}" + (
            f": {', '.join(passed)}" if 0 < len(passed) < len(names) else ""
        )
    return rows


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
        new = [*self._messages[:-1], message(1001 + 2 * number)]
        self.times["put"].measure(lambda: self._thread.put(messages=new))
        self.times["get_tuple"].measure(lambda: self._saver.get_tuple(config_of("thread")))


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


def large(store: Store) -> dict[str, float | None]:
    """Store states that do not compress, and read them with another saver, both with their connections open."""
    put, get = Times(), Times()
    titles = [
        f"{name} of {_LARGE_BYTES / 1e6:.0f} MB, p50 in ms" for name in ("first put", "first get_tuple")
    ]
    with store.open() as saver:
        saver.get_tuple(config_of("nobody"))
        for number in range(_LARGE_STATES):
            thread, value = Thread(saver, f"large {number}"), Random(number).randbytes(_LARGE_BYTES)
            try:
                put.measure(partial(thread.put, value=value))
            except Exception:  # noqa: BLE001  # Each saver has errors of its own.
                return dict.fromkeys(titles)
    with store.open() as saver:
        saver.get_tuple(config_of("nobody"))
        for number in range(_LARGE_STATES):
            get.measure(partial(saver.get_tuple, config_of(f"large {number}")))
    return dict(zip(titles, (put.p50_ms, get.p50_ms), strict=True))


class _Numbers(TypedDict):
    numbers: Annotated[list[int], operator.add]


def _fan_out(saver: Saver) -> CompiledStateGraph[_Numbers]:
    """A graph that runs many tasks in one step, each of which stores a pending write."""
    sends = [Send("task", number) for number in range(_SENDS)]
    builder = StateGraph(_Numbers).add_node("task", lambda number: {"numbers": [number]})
    return builder.add_conditional_edges(START, lambda _: sends, ["task"]).compile(checkpointer=saver)


async def fan_out(store: Store) -> dict[str, float]:
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
    return {
        f"a step of {_SENDS} `Send`s by {name}, ms of the process's CPU": statistics.median(each[1:]) * 1000
        for name, each in (("invoke", blocking), ("ainvoke", on_loop))
    }


def usage(store: Store) -> dict[int, Usage]:
    """Run one conversation, and say what it has taken after so many turns, beyond what an empty store takes."""
    found: dict[int, Usage] = {}
    with store.open() as saver:
        before, empty = _units(store), store.weigh()
        for turn in conversation(saver, "thread", TURNS[-1]):
            if turn in TURNS:
                write_units, read_units = _units(store)
                found[turn] = Usage(write_units - before[0], read_units - before[1], store.weigh() - empty)
    return found


def _units(store: Store) -> tuple[float, float]:
    if store.meter is None:
        return 0.0, 0.0
    return store.meter.total.write_units, store.meter.total.read_units


def window(store: Store) -> dict[str, float]:
    """Store turns each of which adds two messages to a list, and removes its first two."""
    said = [message(number) for number in range(_WINDOW + 2 * (1 + _WINDOW_TURNS))]
    with store.open() as saver:
        thread, sizes = Thread(saver, "thread"), list[int]()
        for start in range(0, 2 * (1 + _WINDOW_TURNS), 2):
            thread.put(messages=said[start : start + _WINDOW])
            sizes.append(store.weigh().bytes)
    stored = (sizes[-1] - sizes[0]) / _WINDOW_TURNS / 1000
    return {f"stored by a turn of a window over {_WINDOW} messages, KB": stored}


def prune(store: Store) -> dict[str, float | None]:
    """Prune a thread to its newest checkpoint."""
    took, title = Times(), f"`prune` of {_PRUNED:,} checkpoints to one, ms"
    with store.open() as saver:
        thread = Thread(saver, "thread")
        for number in range(_PRUNED):
            thread.put(count=number)
        try:
            took.measure(partial(saver.prune, ["thread"], strategy="keep_latest"))
        except NotImplementedError:
            return {title: None}
    return {title: took.p50_ms}


def listing(store: Store) -> dict[str, float]:
    """Search all memories of a namespace, page by page."""
    took = Times()
    with store.memories() as memories:
        for number in range(_FILES):
            memories.put(_FOLDER, str(number), {"content": f"hello {number}"})
        took.measure(
            lambda: [memories.search(_FOLDER, limit=_PAGE, offset=at) for at in range(0, _FILES + 1, _PAGE)]
        )
    return {f"all pages of {_FILES:,} memories, {_PAGE} each, ms": took.p50_ms}


TRIALS: tuple[Callable[[Store], Mapping[str, float | None]], ...] = (large, window, prune, listing)
