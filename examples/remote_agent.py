"""An agent that has no access to AWS, and keeps its threads through the gateway.

Start one with `make gateway`, then, with the address that it prints:

    python -m examples.remote_agent ADDRESS start trip-1     searches, compares, and asks a human
    python -m examples.remote_agent ADDRESS yes trip-1       answers, and the trip is booked
    python -m examples.remote_agent ADDRESS fork trip-1      goes back, compares once more, and asks again
    python -m examples.remote_agent ADDRESS no trip-1        answers that, and nothing is booked

Kill `start` in the middle, as a machine that fails would; `resume` then goes on after the last step that was stored.
"""

import operator
import sys
import time
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

STEP_SECONDS = 0.5


class Trip(TypedDict):
    """What has been done of a trip."""

    done: Annotated[list[str], operator.add]


def work(name: str) -> dict[str, Any]:
    """Do something that takes its time."""
    print(f"{name} begins", flush=True)
    time.sleep(STEP_SECONDS)
    return {"done": [name]}


def search(state: Trip) -> dict[str, Any]:
    """Look for what there is."""
    return work("search")


def compare(state: Trip) -> dict[str, Any]:
    """Choose one of it."""
    return work("compare")


def book(state: Trip) -> dict[str, Any]:
    """Book it, once a human has agreed."""
    return work("book") if interrupt("Book it?") else {"done": ["nothing booked"]}


Agent = CompiledStateGraph[Trip, None, Trip, Trip]


def start(agent: Agent, trip: RunnableConfig) -> dict[str, Any]:
    """Begin a trip. Each step is stored before the next one begins."""
    return agent.invoke({"done": []}, trip, durability="sync")


def resume(agent: Agent, trip: RunnableConfig) -> dict[str, Any]:
    """Go on with a trip whose process was killed: without an input, the thread says where it was."""
    return agent.invoke(None, trip, durability="sync")


def yes(agent: Agent, trip: RunnableConfig) -> dict[str, Any]:
    """Agree."""
    return agent.invoke(Command(resume=True), trip, durability="sync")


def no(agent: Agent, trip: RunnableConfig) -> dict[str, Any]:
    """Do not agree."""
    return agent.invoke(Command(resume=False), trip, durability="sync")


def fork(agent: Agent, trip: RunnableConfig) -> dict[str, Any]:
    """Go back to what was found, and on from there; what came of it before stays in the thread's history."""
    found = next(past for past in agent.get_state_history(trip) if past.next == ("compare",))
    return agent.invoke(None, found.config, durability="sync")


ACTIONS = {action.__name__: action for action in (start, resume, yes, no, fork)}


def main(address: str, action: str, thread_id: str) -> None:
    """Do one thing with one thread, in this process."""
    builder = StateGraph(Trip).add_node(search).add_node(compare).add_node(book)
    builder.add_edge(START, "search").add_edge("search", "compare").add_edge("compare", "book")
    with HttpCheckpointSaver(address) as saver:
        result = ACTIONS[action](
            builder.compile(checkpointer=saver), {"configurable": {"thread_id": thread_id}}
        )
    for question in result.get("__interrupt__", ()):
        print(f"asks: {question.value}")
    print(f"done: {', '.join(result['done'])}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m examples.remote_agent ADDRESS ACTION THREAD")
    main(*sys.argv[1:])
