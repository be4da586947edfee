"""What is measured: each function runs one workload on an empty table and returns what it cost."""

from __future__ import annotations

import operator
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from botocore.exceptions import ClientError
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Interrupt, Send
from typing_extensions import TypedDict

from benchmarks.contestants import Bench, Contestant
from benchmarks.conversation import STEPS_PER_TURN, config_of, conversation
from benchmarks.meter import Tally, total
from benchmarks.prose import prose, uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.graph.state import CompiledStateGraph

    from benchmarks.contestants import MeteredSaver
    from benchmarks.stored import Stored
    from tools.engine import Engine

_THREAD = "thread"
_LIST_BYTES = 1_000_000
_ELEMENT_BYTES = 1_000
_LIST_STEPS = 20
_SENDS = 1_000
_COUNTER_STEPS = 6


@dataclass(frozen=True)
class ConversationCost:
    """What a conversation cost turn by turn, and what reading and deleting its thread took at the end."""

    turns: Sequence[Tally]
    operations: dict[str, Tally]
    counts: dict[str, int]
    state_bytes: int
    stored: Stored
    get_idle: Tally
    get_interrupted: Tally
    delete: Tally
    left_after_delete: int

    def write_units(self, turns: int) -> float:
        """Return the write units of the first so many turns."""
        return sum(turn.write_units for turn in self.turns[:turns])

    def write_units_per_step(self, first: int, last: int) -> float:
        """Return the mean of some turns, the last one included, per checkpoint."""
        window = self.turns[first - 1 : last]
        return sum(turn.write_units for turn in window) / (len(window) * STEPS_PER_TURN)


@dataclass(frozen=True)
class SmallCost:
    """The most requests that one operation on a small state took."""

    put: int
    put_writes: int
    get_tuple: int
    get_tuple_state_bytes: int


def measure_conversation(contestant: Contestant, engine: Engine, turns: int) -> ConversationCost:
    """Run the agent, then reads its thread from new processes, idle and interrupted, and deletes it."""
    with closing(Bench(contestant, engine)) as bench:
        saver, costs, seen = bench.saver, list[Tally](), 0
        for _ in conversation(saver, _THREAD, turns):
            costs.append(total(tally for _, tally in saver.operations[seen:]))
            seen = len(saver.operations)
        kinds = ("get_tuple", "put", "put_writes")
        operations = {kind: total(saver.tallies(kind)) for kind in kinds}
        counts = {kind: len(saver.tallies(kind)) for kind in kinds}
        size = bench.stored()
        get_idle, state_bytes = _read(bench.reopen())
        _interrupt(bench.reopen())
        get_interrupted, _ = _read(bench.reopen())
        deleting = bench.reopen()
        deleting.delete_thread(_THREAD)
        [delete] = deleting.tallies("delete_thread")
        left = bench.stored().items
    return ConversationCost(
        costs, operations, counts, state_bytes, size, get_idle, get_interrupted, delete, left
    )


def measure_small(contestant: Contestant, engine: Engine) -> SmallCost:
    """Count the requests of operations on states with nothing in them that would need more than an item.

    The writing operations are those of a counter, without the first of each kind, which make the thread or ask for
    its ttl; what is read is a conversation of one turn, which is as long as it can be under 8 KiB.
    """
    with closing(Bench(contestant, engine)) as bench:
        _count(bench.saver)
        _, *puts = bench.saver.tallies("put")
        _, *writes = bench.saver.tallies("put_writes")
    with closing(Bench(contestant, engine)) as bench:
        reads = [_read(bench.reopen()) for _ in conversation(bench.saver, _THREAD, 1)]
    return SmallCost(
        put=max(tally.requests for tally in puts),
        put_writes=max(tally.requests for tally in writes),
        get_tuple=max(tally.requests for tally, _ in reads),
        get_tuple_state_bytes=max(size for _, size in reads),
    )


def measure_sends(contestant: Contestant, engine: Engine) -> Tally:
    """Store a thousand packets for other nodes in one call, as the step before a map does."""
    with closing(Bench(contestant, engine)) as bench:
        saver, random = bench.saver, Random("sends")
        config = saver.put(
            _root_config(), empty_checkpoint(), {"source": "loop", "step": 0, "parents": {}}, {}
        )
        packets = [
            (
                "__pregel_tasks",
                Send("worker", {"index": index, "order": f"ORD-{random.randint(100000, 999999)}"}),
            )
            for index in range(_SENDS)
        ]
        saver.put_writes(config, packets, uuid(random), "~__pregel_pull, plan")
        [cost] = saver.tallies("put_writes")
    return cost


def measure_list(contestant: Contestant, engine: Engine) -> float | None:
    """Return the write units per step of a 1 MB list that grows, or None if the saver cannot store it."""
    with closing(Bench(contestant, engine)) as bench:
        random = Random("list")
        items = [prose(random, _ELEMENT_BYTES)[:_ELEMENT_BYTES] for _ in range(_LIST_BYTES // _ELEMENT_BYTES)]
        graph = _growing_list(bench.saver)
        try:
            graph.invoke({"items": items, "until": 0}, config_of(_THREAD), durability="sync")
            bench.saver.operations.clear()
            config: RunnableConfig = {**config_of(_THREAD), "recursion_limit": 2 * _LIST_STEPS}
            graph.invoke({"items": [], "until": len(items) + _LIST_STEPS}, config, durability="sync")
        except ClientError:
            return None
        cost = total(tally for _, tally in bench.saver.operations)
        return cost.write_units / len(bench.saver.tallies("put"))


def _root_config() -> RunnableConfig:
    return {"configurable": {"thread_id": _THREAD, "checkpoint_ns": ""}}


def newest(saver: BaseCheckpointSaver[Any], thread_id: str) -> CheckpointTuple:
    """Return the latest checkpoint of a thread that was just written."""
    found = saver.get_tuple(config_of(thread_id))
    if found is None:
        raise AssertionError("The thread that was just written is not there.")
    return found


def _read(saver: MeteredSaver[Any]) -> tuple[Tally, int]:
    """Read the latest checkpoint and return what that took and the size of the serialised state."""
    found = newest(saver, _THREAD)
    _, state = saver.serde.dumps_typed(found.checkpoint["channel_values"])
    [cost] = saver.tallies("get_tuple")
    return cost, len(state)


def _interrupt(saver: MeteredSaver[Any]) -> None:
    """Store what the runtime stores when a task asks a human."""
    found = newest(saver, _THREAD)
    random = Random("interrupt")
    question = Interrupt(value={"question": prose(random, 200)}, id=f"{random.getrandbits(128):032x}")
    saver.put_writes(found.config, [("__interrupt__", (question,))], uuid(random), "~__pregel_pull, model")


class _Count(TypedDict):
    count: int


def _count(saver: MeteredSaver[Any]) -> None:
    graph = StateGraph(_Count)
    graph.add_node("add", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "add")
    graph.add_conditional_edges("add", lambda state: "add" if state["count"] < _COUNTER_STEPS else END)
    graph.compile(checkpointer=saver).invoke({"count": 0}, config_of(_THREAD), durability="sync")


class _Items(TypedDict):
    items: Annotated[list[str], operator.add]
    until: int


def _growing_list(saver: MeteredSaver[Any]) -> CompiledStateGraph[_Items]:
    def append(state: _Items) -> dict[str, list[str]]:
        length = len(state["items"])
        return {"items": [prose(Random(f"list/{length}"), _ELEMENT_BYTES)[:_ELEMENT_BYTES]]}

    def more(state: _Items) -> str:
        return "append" if len(state["items"]) < state["until"] else END

    graph = StateGraph(_Items)
    graph.add_node("append", append)
    graph.add_conditional_edges(START, more)
    graph.add_conditional_edges("append", more)
    return graph.compile(checkpointer=saver)
