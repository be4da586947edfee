"""The graphs that the server runs.

`graph` repeats what was said, asks for a name if need be, and waits if it is told to. `journal` adds to a delta
channel. `diary` keeps what was said in the store. `weather` looks up the weather of a place, once.
"""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, interrupt
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import open_cache


async def answer(state: MessagesState) -> dict[str, Any]:
    """Answer the last message."""
    said = [str(message.content) for message in state["messages"] if message.type == "human"]
    name = f" {interrupt('What is your name?')}" if said[-1] == "Who am I?" else ""
    if said[-1] == "Wait.":
        await asyncio.sleep(60)
    return {"messages": [("ai", f"{' '.join(said)}{name}")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()


def _extend(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(entry for write in writes for entry in write)]


class AccessLog(TypedDict):
    """A log whose entries are rebuilt from what each step wrote."""

    log: Annotated[list[str], DeltaChannel(_extend, snapshot_frequency=1000)]


def count(state: AccessLog) -> dict[str, Any]:
    """Say how many entries there are."""
    return {"log": [f"after {len(state['log'])}"]}


journal = StateGraph(AccessLog).add_node("count", count).add_edge(START, "count").compile()


async def remember(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
    """Keep the last message as a memory, and answer with all memories, the oldest first."""
    assert runtime.store is not None
    found = await runtime.store.asearch(("users", "ada"))
    said = str(state["messages"][-1].content)
    await runtime.store.aput(("users", "ada"), f"memory {len(found)}", {"text": said})
    return {"messages": [("ai", " ".join(each.value["text"] for each in reversed(found)))]}


diary = StateGraph(MessagesState).add_node("remember", remember).add_edge(START, "remember").compile()


class Forecast(TypedDict, total=False):
    """A place, and the weather there."""

    place: str
    weather: str


_LOOKED_UP = itertools.count(1)


async def look_up(state: Forecast) -> Forecast:
    """Say how many places have been looked up."""
    return {"weather": f"{state['place']} is number {next(_LOOKED_UP)}"}


weather = (
    StateGraph(Forecast)
    .add_node("look_up", look_up, cache_policy=CachePolicy(ttl=600))
    .add_edge(START, "look_up")
    .compile(cache=open_cache())
)
