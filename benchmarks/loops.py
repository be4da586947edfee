"""What a handler pays per invocation for its event loop: the same turn of a chat by `invoke`, and in loops.

Process time, with the client and without the engine. Each invocation begins a thread. All take turns, and medians
count. The endpoint is not encrypted: on AWS a new connection costs a TLS handshake besides, and `asyncio.run`
makes new ones each time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from uuid import uuid4

import boto3
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks.clock import interleaved
from benchmarks.contestants import OURS
from benchmarks.figures import Section, within
from benchmarks.raw import new_table
from benchmarks.report import table
from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

    from tools.engine import Engine

_REPETITIONS = 60
_INVOKE = "invoke"
_RUN = "asyncio.run(ainvoke)"
_TARGET = 1.3


def run(engine: Engine) -> Section:
    """Measure each form of a handler."""
    # What says that boto3 runs in threads, which is what is asked for here.
    logging.getLogger("langgraph.checkpoint.dynamodb").setLevel(logging.ERROR)
    with new_table(engine, OURS) as table_name, patch.dict(os.environ, engine.environment()):
        loop = asyncio.new_event_loop()
        with (
            DynamoDBSaver(table_name) as native,
            DynamoDBSaver(table_name, session=boto3.Session()) as threads,
        ):
            forms = _forms(native, threads, loop)
            measured = interleaved(list(forms.values()), _REPETITIONS, time.process_time)
        loop.close()
    times = {name: each.p50_ms for name, each in zip(forms, measured, strict=True)}
    rows = [(name, f"{each:.1f}", f"{each / times[_INVOKE]:.2f}") for name, each in times.items()]
    return Section(
        "CPU of an invocation in milliseconds, by what runs it",
        (
            table(("handler", "median", "/ invoke"), rows),
            f"The fastest handler: {min(times, key=times.__getitem__)}",
        ),
        (
            within(
                "asyncio.run for each invocation, natively, to invoke",
                _TARGET,
                times[_RUN] / times[_INVOKE],
                "each loop opens connections of its own, and LangGraph itself does more in ainvoke than in invoke",
            ),
        ),
        {"ms": times},
    )


def _forms(
    native: DynamoDBSaver, threads: DynamoDBSaver, loop: asyncio.AbstractEventLoop
) -> dict[str, Callable[[], object]]:
    graph, in_threads = _graph(native), _graph(threads)
    return {
        _INVOKE: lambda: graph.invoke(_QUESTION, _new_thread()),
        _RUN: lambda: asyncio.run(graph.ainvoke(_QUESTION, _new_thread())),
        "a loop that is kept": lambda: loop.run_until_complete(graph.ainvoke(_QUESTION, _new_thread())),
        f"{_RUN}, boto3 in threads": lambda: asyncio.run(in_threads.ainvoke(_QUESTION, _new_thread())),
        "a loop that is kept, boto3 in threads": lambda: loop.run_until_complete(
            in_threads.ainvoke(_QUESTION, _new_thread())
        ),
    }


_QUESTION = {"messages": [("user", "Hello")]}


def _graph(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _: {"messages": [("ai", "Hello yourself")]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def _new_thread() -> RunnableConfig:
    return {"configurable": {"thread_id": uuid4().hex}}
