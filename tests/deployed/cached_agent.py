"""A function for Lambda that keeps threads, memories and a node's results in one table, for `test_lambda_agent`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import CachePolicy
from typing_extensions import TypedDict

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.store.dynamodb import DynamoDBStore


class Trip(TypedDict, total=False):
    """A place, the process that looked it up, and all places of the user."""

    place: str
    looked_up_by: int
    places: list[str]


async def look_up(state: Trip) -> Trip:
    """Say which process looked the place up."""
    del state
    return {"looked_up_by": os.getpid()}


async def remember(state: Trip, config: RunnableConfig, *, store: BaseStore) -> Trip:
    """Keep the place, and list all places of the user, who is in front of the slash of the thread's id."""
    user = config["configurable"]["thread_id"].partition("/")[0]
    await store.aput(("users", user), state["place"], {"place": state["place"]})
    return {"places": sorted(each.key for each in await store.asearch(("users", user)))}


table_name = os.environ["TABLE_NAME"]
agent = (
    StateGraph(Trip)
    .add_node("look_up", look_up, cache_policy=CachePolicy(key_func=lambda state: state["place"], ttl=600))
    .add_node("remember", remember)
    .add_edge(START, "look_up")
    .add_edge("look_up", "remember")
    .compile(
        checkpointer=DynamoDBSaver(table_name),
        store=DynamoDBStore(table_name),
        cache=DynamoDBCache(table_name),
    )
)
loop = asyncio.new_event_loop()


def handler(event: dict[str, Any], _context: object) -> Any:
    """Run the agent on the event loop of this execution environment."""
    config: RunnableConfig = {"configurable": {"thread_id": event["thread_id"]}}
    return loop.run_until_complete(agent.ainvoke({"place": event["message"]}, config))
