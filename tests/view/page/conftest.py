"""The page in a real browser: one table, one server and one browser for all tests of a process."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, expect

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.server import PageServer
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import MakeSaver
from tests.support.browser import browser_or_skip
from tests.support.checkpoints import table_of_its_own
from tests.view import story

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SCHEMES: Sequence[Literal["light", "dark"]] = ("light", "dark")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Give a browser."""
    async with browser_or_skip() as found:
        yield found


@pytest.fixture(scope="session")
def saver(client: DynamoDBClient, open_saver: MakeSaver) -> Iterator[DynamoDBSaver]:
    """Give a saver on a table with the threads that no test changes."""
    with table_of_its_own(client, "journeys") as name:
        saver = open_saver(name)
        story.tell_journey(saver)
        story.tell_hostile(saver, "hostile")
        yield saver


@pytest.fixture(scope="session")
def address(saver: DynamoDBSaver) -> Iterator[str]:
    """Give the address of the page, served as the command serves it."""
    store = DynamoDBStore(saver.storage.table.name, client=saver.transport.client())
    store.put(("users", "heidi"), "taste", {"text": "likes <b>trains</b>\u202e"})
    with PageServer(Responses(Session(saver), None, lambda: store), 0) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        yield server.address
        server.end()
        thread.join()


@dataclass
class Watch:
    """What a page did that it must not: run what is stored, ask elsewhere, or fail."""

    origin: str
    may_fail: bool
    """Whether requests are to fail, which a browser says in its console."""
    seen: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        """Watch a page."""
        page.on("dialog", self._dialog)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        page.on("request", self._request)

    async def _dialog(self, dialog: Dialog) -> None:
        self.seen.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not self.may_fail:
            self.seen.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:")):
            self.seen.append(f"request: {request.url}")


async def check_accessible(page: Page, name: str) -> None:
    """Check that axe-core finds nothing serious in what a page shows, light and dark; take screenshots for people."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    await page.evaluate(AXE)
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        await page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}.png")
        result = await page.evaluate("axe.run()")
        assert result["passes"], "axe-core has to have looked at something"
        serious = [each for each in result["violations"] if each["impact"] in ("serious", "critical")]
        found = [(each["id"], [node["target"] for node in each["nodes"]]) for each in serious]
        assert found == [], scheme


Visit = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, address: str) -> AsyncIterator[Visit]:
    """Give what opens the page at a thread; whatever the page did wrong fails the test."""
    contexts: list[BrowserContext] = []
    watches: list[Watch] = []

    async def visit(
        thread: str = story.JOURNEY, *, at: str | None = None, width: int = 1280, may_fail: bool = False
    ) -> Page:
        context = await browser.new_context(
            viewport={"width": width, "height": 800},
            reduced_motion="reduce",
            offline=at is not None,
            timezone_id="Europe/Zurich",
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        page = await context.new_page()
        watches.append(Watch(at or address, may_fail))
        watches[-1].over(page)
        await page.goto(f"{at or address}#thread={thread}")
        await expect(page.get_by_role("tabpanel")).to_have_attribute("aria-busy", "false")
        return page

    yield visit
    for context in contexts:
        await context.close()
    assert [each for watch in watches for each in watch.seen] == []
