"""The page before a thread is chosen: by its id, or by a run."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from playwright.async_api import Page, expect

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.view import story
from tests.view.page.conftest import Visit
from tests.view.page.test_thread_page import search

pytestmark = [
    pytest.mark.engines("dynamodb-local"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.search,
]


async def finder(page: Page) -> None:
    """Go to where threads are found."""
    await page.get_by_role("link", name="Threads").click()
    await expect(page.get_by_role("heading", name="Threads of")).to_be_visible()


async def test_the_scroll_bar_is_at_the_edge_of_a_wide_window(visit: Visit) -> None:
    page = await visit(width=1900)
    await finder(page)
    await page.set_viewport_size({"width": 1900, "height": 150})
    scrolling = """() => [...document.querySelectorAll("*")]
        .filter((each) => each.scrollHeight > each.clientHeight)
        .filter((each) => getComputedStyle(each).overflowY === "auto")
        .map((each) => each.getBoundingClientRect().right)"""
    assert await page.evaluate(scrolling) == [1900]
    # What is read stays in a column of a readable width, in the middle.
    box = await page.get_by_role("heading", name="Threads of").bounding_box()
    assert box is not None
    assert box["width"] < 900
    assert abs(box["x"] + box["width"] / 2 - 950) < 20


async def test_a_thread_may_have_any_id(visit: Visit, saver: DynamoDBSaver) -> None:
    name = "a&b=c#d%20<i>é</i>\u202e|:"
    story.tell_once(saver, name, HumanMessage("It is here."), offer={"\u202ekey": "value"})
    page = await visit()
    await finder(page)
    await page.get_by_label("Thread id").fill(name)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("tabpanel")).to_contain_text("It is here.")
    await expect(page.get_by_role("heading", level=1)).to_contain_text(r"<i>é</i>\u202e|:")
    findings = await search(page, "value")
    await findings.get_by_role("button", name="offer").click()
    await expect(page.locator(".revealed")).to_contain_text(r"\u202ekey value")
    await page.reload()
    await expect(page.get_by_role("tabpanel")).to_contain_text("It is here.")


async def test_a_thread_is_found_by_a_run(visit: Visit) -> None:
    page = await visit("hostile")
    await finder(page)
    await page.get_by_label("Run id").fill(story.RUN_ID)
    await page.get_by_role("button", name="Find", exact=True).click()
    found = page.get_by_role("region", name=f"Threads of run {story.RUN_ID}")
    await found.get_by_role("button", name=story.JOURNEY).click()
    await expect(page.get_by_role("treeitem")).to_have_count(11)


async def test_a_thread_that_is_not_there_is_said_to_be_none(visit: Visit) -> None:
    page = await visit()
    await finder(page)
    await page.get_by_label("Thread id").fill("nobody's")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_contain_text("no checkpoint")
