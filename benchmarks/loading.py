"""How long it takes to read a state of some size back, at a distance.

Text compresses and random bytes do not, so what travels differs by a factor of three or more. The process has
its connections open and knows nothing of the thread.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from benchmarks.clock import Times
from benchmarks.contestants import OURS, session_of
from benchmarks.conversation import config_of
from benchmarks.figures import Section, under
from benchmarks.network import ROUND_TRIP_MS, distant
from benchmarks.prose import prose
from benchmarks.raw import RawClient, Recorder, new_table
from benchmarks.report import table
from benchmarks.states import Thread
from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.engine import Engine

SIZES = (1_000, 100_000, 1_000_000, 10_000_000)
_FIGURE_BYTES_MAX = 1_000_000
_FIGURE_MS = 100
_REPETITIONS = 15


def _text(size: int) -> str:
    """Return a text without long repetitions: sentences that were made once, in ever new orders."""
    random, text = Random("loading"), ""
    sentences = prose(random, min(size, 100_000)).split(". ")
    while len(text) < size:
        random.shuffle(sentences)
        text += ". ".join(sentences)
    return text[:size]


_KINDS: dict[str, Callable[[int], object]] = {"text": _text, "random bytes": Random("loading").randbytes}


def run(engine: Engine) -> Section:
    """Store each state once and read it several times, beside a raw client that only fetches it."""
    with distant(engine) as remote:
        times = {(kind, size): _load(remote, make(size)) for kind, make in _KINDS.items() for size in SIZES}
    rows = [
        (
            f"{size / 1000:,.0f} KB of {kind}",
            requests,
            *(f"{each:.1f}" for each in (ours.p50_ms, ours.p99_ms, raw.p50_ms)),
            f"{ours.p50_ms / raw.p50_ms:.2f}",
        )
        for (kind, size), (ours, raw, requests) in times.items()
    ]
    worst, bare = max(
        (ours.p50_ms, raw.p50_ms) for (_, size), (ours, raw, _) in times.items() if size <= _FIGURE_BYTES_MAX
    )
    return Section(
        f"Loading a state with get_tuple, network of {ROUND_TRIP_MS} ms, milliseconds",
        (table(("", "requests", "ours p50", "ours p99", "raw p50", "ours / raw"), rows),),
        (
            under(
                "get_tuple of up to 1 MB",
                _FIGURE_MS,
                worst,
                " ms",
                f"a raw client takes {bare:.0f} ms to fetch the same items from this engine",
            ),
        ),
        {
            f"{kind} {size}": {"ours_seconds": ours.seconds, "raw_seconds": raw.seconds, "requests": requests}
            for (kind, size), (ours, raw, requests) in times.items()
        },
    )


def _load(engine: Engine, value: object) -> tuple[Times, Times, int]:
    ours, raw = Times(), Times()
    client = RawClient(engine)
    with new_table(engine, OURS) as table_name:
        session = session_of(engine)
        recorder = Recorder(session)
        saver = DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url)
        Thread(saver, "thread").put(value=value)
        saver.get_tuple(config_of("thread"))
        recorder.take()
        for _ in range(_REPETITIONS):
            ours.measure(lambda: saver.get_tuple(config_of("thread")))
            rounds = recorder.take()
            raw.measure(client.sends(rounds, table_name))
        saver.close()
    client.close()
    return ours, raw, sum(map(len, rounds))
