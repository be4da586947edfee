"""What a handler pays per invocation for its event loop: the same turn of a chat by `invoke`, and in loops.

Process time, with the client and without the engine. Each invocation begins a thread. All take turns, and medians
count. The endpoint is not encrypted: on AWS a new connection costs a TLS handshake besides, and `asyncio.run`
makes new ones each time.

Then the saver's own part of a start: of an event loop, on which it has been before on none, and of its async client,
which it makes once. Beside it is what aiobotocore takes alone, of which each loop needs a client.
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
from aiobotocore.session import get_session
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
# A start of aiobotocore's takes a tenth of a second, so fewer do.
_START_REPETITIONS = 20
_NOTHING = "a loop, and nothing"
_KEPT = "a read, on a loop that is kept"
_NEW_LOOP = "a loop, and a read"
_NEW_CLIENT = "a loop, a saver, and a read"
_ALONE = "a loop, a client of aiobotocore, and a query"
_LOOP_TARGET = 0.1
_CLIENT_TARGET = 1.5


def run(engine: Engine) -> Section:
    """Measure each form of a handler."""
    # What says that boto3 runs in threads, which is what is asked for here.
    logging.getLogger("langgraph.checkpoint.dynamodb").setLevel(logging.ERROR)
    with new_table(engine, OURS) as table_name, patch.dict(os.environ, engine.environment()):
        loop = asyncio.new_event_loop()
        with (
            DynamoDBSaver(table_name) as native,
            DynamoDBSaver(table_name, client=boto3.client("dynamodb")) as threads,
        ):
            forms = _forms(native, threads, loop)
            measured = interleaved(list(forms.values()), _REPETITIONS, time.process_time)
            starts = _measured_starts(native, table_name, loop)
        loop.close()
    times = {name: each.p50_ms for name, each in zip(forms, measured, strict=True)}
    rows = [(name, f"{each:.1f}", f"{each / times[_INVOKE]:.2f}") for name, each in times.items()]
    return Section(
        "CPU of an invocation in milliseconds, by what runs it",
        (
            table(("handler", "median", "/ invoke"), rows),
            f"The fastest handler: {min(times, key=times.__getitem__)}",
            table(("what starts", "median"), [(name, f"{each:.1f}") for name, each in starts.items()]),
        ),
        (
            within(
                "asyncio.run for each invocation, natively, to invoke",
                _TARGET,
                times[_RUN] / times[_INVOKE],
                "each loop opens connections of its own, and LangGraph itself does more in ainvoke than in invoke",
            ),
            within(
                "the saver's part of a new loop, to a client of aiobotocore",
                _LOOP_TARGET,
                (starts[_NEW_LOOP] - starts[_KEPT] - starts[_NOTHING]) / (starts[_ALONE] - starts[_NOTHING]),
            ),
            within(
                "a new saver on a new loop, to a client of aiobotocore",
                _CLIENT_TARGET,
                (starts[_NEW_CLIENT] - starts[_NOTHING]) / (starts[_ALONE] - starts[_NOTHING]),
            ),
        ),
        {"ms": times, "starts_ms": starts},
    )


def _measured_starts(
    native: DynamoDBSaver, table_name: str, loop: asyncio.AbstractEventLoop
) -> dict[str, float]:
    thread = _new_thread()

    async def nothing() -> None:
        pass

    async def of_a_new_saver() -> None:
        await DynamoDBSaver(table_name).aget_tuple(thread)

    async def alone() -> None:
        async with get_session().create_client("dynamodb") as client:
            await client.query(
                TableName=table_name,
                KeyConditionExpression="PK = :pk",
                ExpressionAttributeValues={":pk": {"S": "none"}},
            )

    forms: dict[str, Callable[[], object]] = {
        _NOTHING: lambda: asyncio.run(nothing()),
        _KEPT: lambda: loop.run_until_complete(native.aget_tuple(thread)),
        _NEW_LOOP: lambda: asyncio.run(native.aget_tuple(thread)),
        _NEW_CLIENT: lambda: asyncio.run(of_a_new_saver()),
        _ALONE: lambda: asyncio.run(alone()),
    }
    for start in forms.values():
        start()
    measured = interleaved(list(forms.values()), _START_REPETITIONS, time.process_time)
    return {name: each.p50_ms for name, each in zip(forms, measured, strict=True)}


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
