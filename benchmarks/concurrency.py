"""Operations per second of many threads at once on one event loop, beside a raw client that sends the same.

Each thread stores a small checkpoint, a task's writes, and reads its checkpoint back, over and over. The raw
client is aiobotocore's with the saver's settings; what it sends was recorded from one thread and is sent
again under the name of each. The engine runs on the same machine, so both are as fast as both cores allow.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from benchmarks.contestants import OURS, session_of
from benchmarks.conversation import config_of
from benchmarks.figures import Figure, Section
from benchmarks.raw import Recorder, aimed_at, async_session_of, new_table, renamed
from benchmarks.report import table
from benchmarks.states import Thread, message
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.clients import default_config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain_core.messages import AnyMessage

    from benchmarks.raw import Round
    from tools.engine import Engine

THREADS = (1, 64, 1024)
_AT_LEAST = 0.8
# As many operations in all, however many threads share them.
_OPERATIONS_MIN = 600
_OPERATIONS_PER_STEP = 3
_REPETITIONS = 3
_TEMPLATE = "template-thread"


def run(engine: Engine) -> Section:
    """Measure saver and raw client in turn, each on empty tables."""
    results = asyncio.run(_measure(engine))
    rows, figures, data = [], [], {}
    for threads, (ours, raw, cpu) in results.items():
        ratio = max(ours) / max(raw)
        rows.append(
            (f"{threads:,} threads", f"{max(ours):.0f}", f"{max(raw):.0f}", f"{ratio:.2f}", f"{cpu:.0%}")
        )
        figures.append(
            Figure(
                f"operations per second of {threads:,} threads, to the raw client's",
                f"at least {_AT_LEAST:g} times",
                f"{ratio:.2f} times",
                ratio >= _AT_LEAST,
                f"our process had {cpu:.0%} of a core, and the engine runs on the same cores; a raw client neither"
                " serializes, compresses and checks, nor remembers what it stored",
            )
        )
        data[str(threads)] = {"ours_per_second": ours, "raw_per_second": raw}
    header = ("", "ours", "raw", "ours / raw", "our process, of one core")
    return Section("Operations per second, async", (table(header, rows),), figures, data)


async def _measure(engine: Engine) -> dict[int, tuple[list[float], list[float], float]]:
    results: dict[int, tuple[list[float], list[float], float]] = {}
    async with AsyncExitStack() as stack:
        own_table, raw_table = (stack.enter_context(new_table(engine, OURS)) for _ in range(2))
        saver = await stack.enter_async_context(
            DynamoDBSaver(
                own_table,
                region_name=engine.region_name,
                endpoint_url=engine.endpoint_url,
                async_session=async_session_of(engine),
            )
        )
        client = await stack.enter_async_context(
            async_session_of(engine).create_client(
                "dynamodb",
                region_name=engine.region_name,
                endpoint_url=engine.endpoint_url,
                config=default_config(),
            )
        )
        for threads in THREADS:
            steps = max(1, _OPERATIONS_MIN // threads // _OPERATIONS_PER_STEP)
            messages = [message(step) for step in range(steps)]
            template = aimed_at(_recorded(engine, messages), raw_table)
            ours, raw, shares = list[float](), list[float](), list[float]()
            for repetition in range(_REPETITIONS):
                names = [f"{threads}-{repetition}-{number}" for number in range(threads)]
                seconds, share = await _timed([_own(saver, name, messages) for name in names])
                operations = threads * steps * _OPERATIONS_PER_STEP
                ours.append(operations / seconds)
                shares.append(share)
                scripts = [renamed(template, _TEMPLATE, name) for name in names]
                seconds, _ = await _timed([_raw(client, rounds) for rounds in scripts])
                raw.append(operations / seconds)
            results[threads] = ours, raw, max(shares)
    return results


async def _timed(scripts: Sequence[Awaitable[None]]) -> tuple[float, float]:
    """Return how long all of them took side by side, and the share of a core that this process had."""
    started, process_started = time.perf_counter(), time.process_time()
    await asyncio.gather(*scripts)
    seconds = time.perf_counter() - started
    return seconds, (time.process_time() - process_started) / seconds


async def _own(saver: DynamoDBSaver, name: str, messages: Sequence[AnyMessage]) -> None:
    thread = Thread(saver, name)
    for step, new in enumerate(messages):
        await thread.aput(messages=[new], step=step)
        await saver.aput_writes(thread.config, [("messages", [new])], "task")
        await saver.aget_tuple(config_of(name))


async def _raw(client: object, rounds: Sequence[Round]) -> None:
    for round_ in rounds:
        calls: list[Callable[..., Awaitable[Any]]] = [getattr(client, each.method) for each in round_]
        await asyncio.gather(*(call(**each.params) for call, each in zip(calls, round_, strict=True)))


def _recorded(engine: Engine, messages: Sequence[AnyMessage]) -> Sequence[Round]:
    """Return what one thread sends."""
    with new_table(engine, OURS) as table_name:
        session = session_of(engine)
        recorder = Recorder(session)
        saver = DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url)
        thread = Thread(saver, _TEMPLATE)
        for step, new in enumerate(messages):
            thread.put(messages=[new], step=step)
            saver.put_writes(thread.config, [("messages", [new])], "task")
            saver.get_tuple(config_of(_TEMPLATE))
        saver.close()
        return recorder.take()
