"""An agent on Lambda: `handler` runs it with asyncio, `sync_handler` without; the template's parameter chooses.

Both take `{"thread_id": "...", "message": "..."}` and return `{"reply": "...", "messages": <count>}`.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agent import build_agent
from langchain_core.messages import HumanMessage

from langgraph.checkpoint.dynamodb import DynamoDBSaver

# Lambda imports this module once per execution environment and then calls the handler many times. The saver is made
# here, so that its connections and what it remembers of a thread are used again. It opens nothing before its first
# request, keeps one async client per event loop, and survives that Lambda freezes the process in between.
agent = build_agent(DynamoDBSaver(os.environ["TABLE_NAME"]))


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer a message, with an event loop of its own for each invocation.

    Args:
        event: `thread_id` and `message`.
        _context: Lambda's context, not used.

    Returns:
        The reply, and how many messages the thread holds.
    """
    thread, message = _request(event)
    return _response(asyncio.run(agent.ainvoke(message, thread, durability="sync")))


def sync_handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer a message without an event loop.

    Args:
        event: `thread_id` and `message`.
        _context: Lambda's context, not used.

    Returns:
        The reply, and how many messages the thread holds.
    """
    thread, message = _request(event)
    return _response(agent.invoke(message, thread, durability="sync"))


def _request(event: dict[str, Any]) -> tuple[Any, Any]:
    missing = {"thread_id", "message"} - event.keys()
    if missing:
        raise ValueError(f"the event needs {' and '.join(sorted(missing))}")
    return {"configurable": {"thread_id": event["thread_id"]}}, {"messages": [HumanMessage(event["message"])]}


def _response(state: dict[str, Any]) -> dict[str, Any]:
    return {"reply": state["messages"][-1].content, "messages": len(state["messages"])}
