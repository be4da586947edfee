"""How long it takes until the page of a long thread shows something, and what is read for that.

A browser opens a thread of some five hundred checkpoints in a viewer that knows nothing of it. Then all of it is
looked at: what each step cost, and a text that is nowhere, for which everything is searched. The floor reads each item
that was read once, by one request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.contestants import OURS, session_of
from benchmarks.conversation import STEPS_PER_TURN, conversation
from benchmarks.figures import Section, within
from benchmarks.meter import Meter
from benchmarks.raw import Recorder, new_table
from benchmarks.report import table
from benchmarks.stored import item_bytes, scan
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.pricing import read_units
from langgraph.checkpoint.dynamodb.view.answers import Answers
from langgraph.checkpoint.dynamodb.view.server import PageServer
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tools.browser import run_browser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from playwright.async_api import Browser, Page

    from tools.engine import Engine

_THREAD = "conversation"
_TURNS = 72
_REPETITIONS = 5
_RATIO_MAX = 1.2
_MARKS = "Object.fromEntries(performance.getEntriesByType('mark').map((each) => [each.name, each.startTime]))"


@dataclass(frozen=True)
class Taken:
    """What had been taken from the table by some moment, and what reading the same items once takes."""

    requests: int
    read_units: float
    floor: float

    @property
    def ratio(self) -> float:
        """How many times the floor was read."""
        return self.read_units / self.floor


@dataclass(frozen=True)
class Visit:
    """One visit: milliseconds from the navigation on, and what was read."""

    useful_ms: float
    whole_ms: float
    opened: Taken
    looked_at: Taken


def run(engine: Engine) -> Section:
    """Store a conversation, and look at it several times."""
    with new_table(engine, OURS) as name:
        with DynamoDBSaver(name, session=session_of(engine), endpoint_url=engine.endpoint_url) as saver:
            deque(conversation(saver, _THREAD, _TURNS), maxlen=0)
        visits = asyncio.run(_visit(engine, name))
    first = visits[0]
    useful, whole = (median(getattr(each, field) for each in visits) for field in ("useful_ms", "whole_ms"))
    rows = [
        (what, taken.requests, taken.read_units, taken.floor, f"{taken.ratio:.2f}")
        for what, taken in (("opened", first.opened), ("and all of it looked at", first.looked_at))
    ]
    times = [("the newest checkpoint and its state", useful), ("every checkpoint in the tree", whole)]
    checkpoints = _TURNS * STEPS_PER_TURN
    return Section(
        f"The page of a thread of {checkpoints} checkpoints, on this machine",
        [
            table(["to see", "ms in the browser"], [(what, f"{ms:.0f}") for what, ms in times]),
            table(["the page was", "requests", "read units", "reading each item once", "ratio"], rows),
        ],
        [
            within(f"read units to {what}, to reading each item once", _RATIO_MAX, taken.ratio)
            for what, taken in (
                ("open a thread's page", first.opened),
                ("look at all of it", first.looked_at),
            )
        ],
        {"visits": [asdict(each) for each in visits]},
    )


async def _visit(engine: Engine, table_name: str) -> list[Visit]:
    async with run_browser() as browser:
        # The first one fills the browser's own caches.
        visits = [await _visit_once(engine, table_name, browser) for _ in range(_REPETITIONS + 1)]
    return visits[1:]


async def _visit_once(engine: Engine, table_name: str, browser: Browser) -> Visit:
    session = session_of(engine)
    meter, recorder = Meter(), Recorder(session)
    meter.watch(session)
    with DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url) as saver:
        sizes = {_key(item): item_bytes(item) for item in scan(saver.transport.client(), table_name)}
        recorder.take()
        before = meter.total.requests, meter.total.read_units
        seen: set[tuple[str, str]] = set()

        def taken() -> Taken:
            rounds = recorder.take()
            seen.update(_key(item) for round_ in rounds for each in round_ for item in _items(each.response))
            floor = read_units(sum(sizes[each] for each in seen))
            requests, units = meter.total.requests - before[0], meter.total.read_units - before[1]
            return Taken(requests, units, floor)

        with _served(saver) as address:
            page = await browser.new_page()
            await page.goto(f"{address}#thread={_THREAD}")
            await page.get_by_role("treeitem").first.wait_for()
            marks = await _marks(page)
            opened = taken()
            await _look_at_all(page)
            visit = Visit(marks["useful"], marks["whole"], opened, taken())
            await page.close()
    return visit


async def _marks(page: Page) -> dict[str, float]:
    """What the page notes of itself, once it has read the whole tree."""
    while True:
        marks: dict[str, float] = await page.evaluate(_MARKS)
        if {"useful", "whole"} <= marks.keys():
            return marks
        await asyncio.sleep(0.02)


async def _look_at_all(page: Page) -> None:
    await page.get_by_role("tab", name="Cost").click()
    await page.get_by_role("slider").first.wait_for()
    await page.get_by_role("searchbox").fill("what nobody has said")
    await page.get_by_role("button", name="Find").click()
    await page.get_by_text("It is nowhere in this thread.").wait_for()


@contextmanager
def _served(saver: DynamoDBSaver) -> Iterator[str]:
    with PageServer(Answers(Session(saver)), 0) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        yield server.address
        server.end()
        thread.join()


def _items(response: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The items that a request has read."""
    yield from response.get("Items", ())
    if "Item" in response:
        yield response["Item"]
    for found in response.get("Responses", {}).values():
        yield from found


def _key(item: dict[str, Any]) -> tuple[str, str]:
    return item["PK"]["S"], item["SK"]["S"]
