"""An agent that is a LangGraph graph: it is killed in the middle of turns, and goes on with them.

A turn that was acknowledged is in the thread's log once and whole, at its place; one that was not is finished or begun
again, whichever the table says.
"""

import asyncio
import operator
import random
from collections.abc import Mapping
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Durability
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.chaos.operation_log import OperationFailedError, OperationLog
from tests.simulation.history import Violation
from tests.support.checkpoints import thread_config
from tests.support.graphs import Graph

CONVERSATIONS = 4
TURNS = 20
TOOLS = ("search", "weather", "calendar")
PAGE_BYTES = 3_000
DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")


class State(TypedDict, total=False):
    """A log of what was done, and the page that the tools found for each turn."""

    turn: int
    log: Annotated[list[str], operator.add]
    pages: Annotated[list[bytes], operator.add]


def entries(turn: int) -> list[str]:
    """What a whole turn logs; the tools' share in the order of their names."""
    return [f"question {turn}", *(f"{name} {turn}" for name in sorted(TOOLS)), f"answer {turn}"]


def page(turn: int, name: str) -> bytes:
    """What a tool finds."""
    return random.Random(f"{turn}/{name}").randbytes(PAGE_BYTES)


def build(saver: DynamoDBSaver) -> Graph:
    """Build a question, three tools side by side, and an answer."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [f"question {state['turn']}"]})
    graph.add_node("answer", lambda state: {"log": [f"answer {state['turn']}"]})
    graph.add_edge(START, "ask")
    for name in TOOLS:
        graph.add_node(name, _tool(name))
        graph.add_edge("ask", name)
    graph.add_edge(list(TOOLS), "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def _tool(name: str) -> Any:
    def run(state: State) -> dict[str, Any]:
        return {"log": [f"{name} {state['turn']}"], "pages": [page(state["turn"], name)]}

    return run


def check_state(values: Mapping[str, Any], acknowledged: int, asked: int) -> int:
    """Check a thread's state; return how many turns are whole in it.

    Args:
        values: The state.
        acknowledged: How many turns were acknowledged.
        asked: How many turns were begun.
    """
    log = list(values.get("log", ()))
    whole = len(log) // len(entries(0))
    before = [entry for turn in range(whole) for entry in entries(turn)]
    rest = log[len(before) :]
    # Of tools that ran side by side some may have stored their writes and others not.
    if log[: len(before)] != before or rest != [entry for entry in entries(whole) if entry in rest]:
        raise Violation(f"the log of {asked} turns is torn: {log}")
    if not acknowledged <= whole <= asked:
        raise Violation(f"{whole} turns are whole, of {acknowledged} acknowledged and {asked} begun")
    pages = [
        page(turn, name) for turn in range(whole + 1) for name in sorted(TOOLS) if f"{name} {turn}" in log
    ]
    if values.get("pages", []) != pages:
        raise Violation(f"the pages of {whole} turns are not those that the tools found")
    return whole


class GraphAgent:
    """One process's work on some conversations at once, the sync and the async way."""

    def __init__(
        self, name: str, saver: DynamoDBSaver, operation_log: OperationLog, rng: random.Random
    ) -> None:
        """Take what the agent works with."""
        self._name = name
        self._graph = build(saver)
        self._log = operation_log
        self._rng = rng

    async def work(self) -> None:
        """Work on all conversations, for ever."""
        await asyncio.gather(*(self._converse(number) for number in range(CONVERSATIONS)))

    async def _converse(self, number: int) -> None:
        generation = 0
        while True:
            thread = f"{self._name}-{number}-{generation}"
            if self._log.turns[thread].acknowledged == TURNS:
                generation += 1
                continue
            try:
                await self._turn(thread, blocking=number % 2 == 0)
            except OperationFailedError:
                # As an application does that was told of an error: it reads the thread again, and goes on.
                continue

    async def _turn(self, thread: str, *, blocking: bool) -> None:
        """Finish the turn that is under way in the table, or begin the next one."""
        graph, config, turns = self._graph, thread_config(thread), self._log.turns[thread]

        async def read() -> Any:
            return await (
                asyncio.to_thread(graph.get_state, config) if blocking else graph.aget_state(config)
            )

        state = await self._log.perform(read, "get_state", thread)
        whole = check_state(state.values, turns.acknowledged, turns.asked)
        # `next` is empty too where all tasks of the last step have stored their writes; `tasks` is not.
        goes_on = bool(state.tasks)
        number = turns.asked - 1 if goes_on else whole
        durability = self._rng.choice(DURABILITIES)

        async def run() -> Any:
            inputs = None if goes_on else {"turn": number}
            if blocking:
                return await asyncio.to_thread(lambda: graph.invoke(inputs, config, durability=durability))
            return await graph.ainvoke(inputs, config, durability=durability)

        kind = "resumed turn" if goes_on else "turn"
        values = await self._log.perform(run, kind, thread, number)
        if check_state(values, number + 1, number + 1) != number + 1:
            raise Violation(f"turn {number} of {thread} returned without being whole")
