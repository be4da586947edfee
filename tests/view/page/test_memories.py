"""The page of memories in a browser: namespaces to go down by, memories with their values, and other pages."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.view.page.conftest import Visit

pytestmark = [
    pytest.mark.engines("dynamodb-local"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.search,
]

SPELLED = "<img src=x onerror=alert(1)>\\u202e"


async def open_memories(visit: Visit) -> Page:
    """Go to the memories."""
    page = await visit()
    await page.get_by_role("link", name="Memories").click()
    await expect(page.get_by_role("heading", name="Memories of")).to_be_visible()
    return page


def namespaces(page: Page) -> Locator:
    """The labels to go down by."""
    return page.get_by_role("region", name="Namespaces")


def shown(page: Page) -> Locator:
    """The memories."""
    return page.get_by_role("region", name="Memories", exact=True)


@pytest.mark.usefixtures("memories")
async def test_memories_are_found_by_their_namespaces(visit: Visit) -> None:
    page = await open_memories(visit)
    for label in ("memories", "ada"):
        await namespaces(page).get_by_role("button", name=label, exact=True).click()
    food = shown(page).get_by_role("article", name="food")
    await expect(food).to_contain_text(SPELLED)
    for fact in ("updated 20", "created 20", "revision ", "ttl 1 h, expires 20", "no vectors"):
        await expect(food).to_contain_text(fact)
    trip = shown(page).get_by_role("article", name=SPELLED)
    await expect(trip).to_contain_text("Lisbon")
    await expect(trip).to_contain_text("no ttl")
    await shown(page).get_by_role("button", name="trips", exact=True).click()
    await expect(shown(page).get_by_role("article")).to_have_count(2)
    await expect(shown(page).get_by_role("status")).to_have_text("Memories: 2.")
    large = shown(page).get_by_role("article", name="large")
    await large.get_by_role("button", name="Show the value").click()
    await expect(large.locator(".text.long")).to_be_visible()
    await page.get_by_role("navigation").get_by_role("button", name="memories").click()
    await expect(namespaces(page).get_by_role("button", name="grace/1", exact=True)).to_be_visible()
    await page.go_back()
    await expect(large).to_be_visible()
    await page.reload()
    await expect(large).to_be_visible()


@pytest.mark.usefixtures("memories")
async def test_a_label_is_entered_and_more_memories_are_asked_for(visit: Visit) -> None:
    page = await open_memories(visit)
    for label in ("memories", "grace/1"):
        await page.get_by_label("Label").fill(label)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("navigation")).to_contain_text(label)
    rows = shown(page).get_by_role("article")
    await expect(rows).to_have_count(50)
    await expect(shown(page).get_by_role("status")).to_have_text("Memories: 50 so far.")
    await shown(page).get_by_role("button", name="More memories").click()
    await expect(rows).to_have_count(60)


async def test_what_is_no_namespace_is_said_and_the_threads_are_a_link_away(visit: Visit) -> None:
    page = await visit(may_fail=True)
    await page.goto(f"{page.url.partition('#')[0]}#memories=nonsense")
    await expect(namespaces(page)).to_be_visible()
    long = "x" * 3000
    await page.goto(f'{page.url.partition("#")[0]}#memories=["{long}"]')
    await expect(shown(page).get_by_role("alert")).to_contain_text("labels")
    await page.get_by_role("link", name="Threads").click()
    await expect(page.get_by_role("heading", name="Threads of")).to_be_visible()
