"""A workflow that goes on where it was killed: `python -m examples.workflow examples/agent.yaml order-1`.

Kill it in the middle, as a machine that fails would, and run it again: no step that was done is done once more. On a
local engine: put `python -m tools.engine run` before it.
"""

import operator
import sys
import time
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import START, StateGraph

from langgraph.checkpoint.dynamodb import create_checkpointer

STEPS = ("reserve", "charge", "pack", "ship")
STEP_SECONDS = 0.5


class Order(TypedDict):
    """What has been done of an order."""

    done: Annotated[list[str], operator.add]


def step(name: str) -> RunnableLambda[Order, Any]:
    """Make a step that takes its time."""

    def work(state: Order) -> dict[str, Any]:
        print(f"{name}: after {', '.join(state['done']) or 'nothing'}", flush=True)
        time.sleep(STEP_SECONDS)
        return {"done": [name]}

    return RunnableLambda(work)


def main(file: str, order_id: str) -> None:
    """Do what is left to be done of an order."""
    builder = StateGraph(Order)
    for before, name in zip((START, *STEPS), STEPS, strict=False):
        builder.add_node(name, step(name))
        builder.add_edge(before, name)
    thread: RunnableConfig = {"configurable": {"thread_id": order_id}}
    with create_checkpointer(file) as checkpointer:
        workflow = builder.compile(checkpointer=checkpointer)
        has_begun = bool(workflow.get_state(thread).next)
        # Without an input, a run goes on where the last one ended. Each step is stored before the next one begins.
        state = workflow.invoke(None if has_begun else {"done": []}, thread, durability="sync")
    print(f"{order_id} is done: {', '.join(state['done'])}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m examples.workflow FILE ORDER")
    main(*sys.argv[1:])
