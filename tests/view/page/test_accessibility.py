"""axe-core finds nothing serious in any view of the page, light and dark; people get screenshots of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from tests.view import story
from tests.view.page.conftest import SCREENSHOTS, Visit
from tests.view.page.test_finding_threads import finder
from tests.view.page.test_thread_page import choose, panel, search

pytestmark = [
    pytest.mark.engines("dynamodb-local"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.search,
]

SCHEMES: Sequence[Literal["light", "dark"]] = ("light", "dark")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


async def _state(page: Page) -> None:
    await choose(page, "step 5", "made by ask")


async def _changes(page: Page) -> None:
    await choose(page, "step 4", "made by add_up", tab="What changed")


async def _pending(page: Page) -> None:
    await choose(page, "step 1", "tried again", tab="Pending")


async def _cost(page: Page) -> None:
    await choose(page, "step 5", "made by ask", tab="Cost")
    await panel(page).get_by_text("As a table").click()


async def _found(page: Page) -> None:
    findings = await search(page, story.WRONG)
    await findings.get_by_role("button").nth(2).click()
    await expect(panel(page).locator(".revealed")).to_be_visible()


async def _subgraphs(page: Page) -> None:
    await page.get_by_role("button", name="research").click()
    await choose(page, "made by rates")


async def _hostile(page: Page) -> None:
    await page.goto(f"{page.url.partition('#')[0]}#thread=hostile")
    said = panel(page).get_by_role("article").nth(3)
    await said.get_by_role("button", name="Show more").click()
    await expect(said.locator(".text.long > span")).to_have_count(2)


async def _threads(page: Page) -> None:
    await finder(page)
    await expect(page.get_by_text("newest activity first")).to_be_visible()


VIEWS: dict[str, Callable[[Page], Awaitable[None]]] = {
    "state": _state,
    "changes": _changes,
    "pending": _pending,
    "cost": _cost,
    "search": _found,
    "subgraphs": _subgraphs,
    "threads": _threads,
    "hostile": _hostile,
}


@pytest.mark.parametrize("name", VIEWS)
async def test_nothing_serious_is_in_the_way_of_anybody(visit: Visit, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page = await visit()
    await VIEWS[name](page)
    await page.evaluate(AXE)
    found: list[str] = []
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        await page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}.png")
        result = await page.evaluate("axe.run()")
        assert result["passes"], "axe-core has to have looked at something"
        found += [
            f"{scheme}: {each['id']} at {[node['target'] for node in each['nodes']]}"
            for each in result["violations"]
            if each["impact"] in ("serious", "critical")
        ]
    assert found == []
