"""What events cost: the CPU of a put and a read without a callable, with one, and with OpenTelemetry's.

Without a callable there are the looks at a context variable that the cache makes: they are timed by themselves, since
the noise of a put is many times their cost.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import empty_checkpoint
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.clock import interleaved
from benchmarks.contestants import OURS
from benchmarks.figures import Section, under
from benchmarks.raw import new_table
from benchmarks.report import table
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.events import note_cache
from langgraph.checkpoint.dynamodb.observe import EmbeddedMetrics, Event
from langgraph.checkpoint.dynamodb.observe.otel import OpenTelemetry

if TYPE_CHECKING:
    from tools.engine import Engine

_REPETITIONS = 200
_LOOKS = 100_000
_NONE = "none"


def run(engine: Engine) -> Section:
    """Measure a step, a put and a read, with each `on_event`."""
    ways: dict[str, Any] = {
        _NONE: None,
        "a function that does nothing": lambda event: None,
        "EmbeddedMetrics": EmbeddedMetrics(write=lambda line: None),
        "OpenTelemetry": OpenTelemetry(tracer_provider=TracerProvider(), meter_provider=MeterProvider()),
    }
    with ExitStack() as stack:
        name = stack.enter_context(new_table(engine, OURS))
        options: dict[str, Any] = {"region_name": engine.region_name, "endpoint_url": engine.endpoint_url}
        savers = {
            way: stack.enter_context(DynamoDBSaver(name, on_event=on_event, **options))
            for way, on_event in ways.items()
        }
        steps: list[Callable[[], object]] = [
            partial(_step, saver, Random(way)) for way, saver in savers.items()
        ]
        for step in steps:
            step()
        measured = interleaved(steps, _REPETITIONS, time.process_time)
        events: list[Event] = []
        _step(stack.enter_context(DynamoDBSaver(name, on_event=events.append, **options)), Random("looks"))
    # At least as many as there were looks, each of which looks for some entries.
    looks = sum(each.cache_hits + each.cache_misses for each in events)
    cpu_ms = {way: each.p50_ms for way, each in zip(ways, measured, strict=True)}
    look_ms = 1000 * timeit.timeit(lambda: note_cache(()), number=_LOOKS) / _LOOKS
    share = 100 * looks * look_ms / cpu_ms[_NONE]
    rows = [(way, f"{each:.2f}", f"{each / cpu_ms[_NONE]:.2f}") for way, each in cpu_ms.items()]
    rows.append((f"{looks} looks of the cache without any", f"{looks * look_ms:.4f}", f"{share / 100:.5f}"))
    return Section(
        "Events: CPU of a put and a read, in milliseconds, by on_event",
        (table(("on_event", "median", "/ none"), rows),),
        [under("events where none are asked for, of a step's CPU", 0.1, share, "%")],
        {"cpu_ms": cpu_ms, "looks": looks, "look_ms": look_ms},
    )


def _step(saver: DynamoDBSaver, rng: Random) -> None:
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"message": rng.randbytes(1000)},
        "channel_versions": {"message": 1},
    }
    config: Any = {"configurable": {"thread_id": str(rng.random()), "checkpoint_ns": ""}}
    stored = saver.put(config, cast("Any", checkpoint), {}, {"message": 1})
    saver.get_tuple(stored)
