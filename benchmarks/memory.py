"""What a process remembers while 10,000 threads pass through one saver.

Every thread stores the same few checkpoints, without an engine (see `benchmarks.tape`). What is held is what is
still allocated after a collection, above what was before the first thread; the rest of the process is not the
saver's. What is resident is what the operating system says of another process in which the same threads pass: by
how much its peak grew from the first thread to the last.
"""

from __future__ import annotations

import gc
import multiprocessing
import tracemalloc
from dataclasses import replace
from inspect import signature
from random import Random
from typing import TYPE_CHECKING

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks.contestants import OURS, session_of
from benchmarks.figures import Figure, Section, within
from benchmarks.raw import new_table
from benchmarks.report import table
from benchmarks.resident import peak_bytes
from benchmarks.states import Thread, chat
from benchmarks.tape import Tape
from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.messages import AnyMessage

    from tools.engine import Engine

MIB = 1024 * 1024
THREADS = 10_000
STATE_BYTES = 20_000
_DEFAULT_BYTES: int = signature(DynamoDBSaver).parameters["cache_bytes"].default
_SMALL_BYTES = 2 * MIB
_PUTS = 2
_SEED = "thread"
_SAMPLES = (100, 1_000, 5_000, THREADS)


def run(engine: Engine) -> Section:
    """Let the threads pass with the default bound and with a small one."""
    rows, figures, data = [], list[Figure](), {}
    for name, cache_bytes in (("default", _DEFAULT_BYTES), ("small", _SMALL_BYTES)):
        held, peak = _held(engine, cache_bytes)
        with multiprocessing.get_context("spawn").Pool(1) as process:
            resident = process.apply(_resident, (engine, cache_bytes))
        rows.append(
            (
                f"cache_bytes {cache_bytes / MIB:.0f} MiB ({name})",
                *(f"{held[count] / MIB:.1f}" for count in _SAMPLES),
                f"{peak / MIB:.1f}",
                f"{resident / MIB:.1f}",
            )
        )
        figures += [
            within(
                f"memory held after {THREADS:,} threads, to cache_bytes ({name})",
                1,
                max(held.values()) / cache_bytes,
                "the bound is on an estimate of what the entries take, not on what Python's allocator gives them",
            ),
            within(
                f"memory resident after {THREADS:,} threads, to cache_bytes ({name})",
                1.3,
                resident / cache_bytes,
                f"{(resident - max(held.values())) / MIB:.1f} MiB are not held: what Python's allocator keeps of what"
                " was freed, and what one put takes while it runs, whatever cache_bytes is",
            ),
        ]
        data[name] = {
            "cache_bytes": cache_bytes,
            "held_bytes": held,
            "peak_bytes": peak,
            "resident_bytes": resident,
        }
    header = ("", *(f"after {count:,}" for count in _SAMPLES), "peak", "resident")
    return Section(
        f"Memory in MiB: threads of {_PUTS} puts with a chat of {STATE_BYTES / 1000:.0f} KB each",
        (table(header, rows),),
        figures,
        data,
    )


def _held(engine: Engine, cache_bytes: int) -> tuple[dict[int, int], int]:
    """Return what was held after so many threads, and the peak."""
    held: dict[int, int] = {}
    threads = _threads(engine, cache_bytes)
    next(threads)
    gc.collect()
    tracemalloc.start()
    try:
        for count in threads:
            if count in _SAMPLES:
                gc.collect()
                held[count] = tracemalloc.get_traced_memory()[0]
        return held, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident(engine: Engine, cache_bytes: int) -> int:
    """Return by how many bytes the peak of this process grows while the threads pass."""
    threads = _threads(engine, cache_bytes)
    next(threads)
    before = peak_bytes()
    for _ in threads:
        pass
    return peak_bytes() - before


def _threads(engine: Engine, cache_bytes: int) -> Iterator[int]:
    """Let the threads pass, one at a time; the first one, from 0, is recorded on the engine."""
    messages = chat(JsonPlusSerializer(), STATE_BYTES)
    with new_table(engine, OURS) as table_name:
        tape = Tape(session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url))
        saver = DynamoDBSaver(table_name, client=tape.as_client, cache_bytes=cache_bytes)
        tape.record()
        _thread(saver, "recorded", messages)
        yield 0
        for count in range(1, THREADS + 1):
            tape.rewind()
            _thread(saver, f"thread-{count}", messages)
            yield count


def _thread(saver: DynamoDBSaver, thread_id: str, messages: list[AnyMessage]) -> None:
    # The ids and the epoch of the thread that was recorded, which are what the tape answers with.
    saver._storage = replace(saver.storage, rng=Random(_SEED))  # noqa: SLF001
    thread = Thread(saver, thread_id)
    for missing in range(_PUTS - 1, -1, -1):
        thread.put(messages=messages[: len(messages) - missing])
