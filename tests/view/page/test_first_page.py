"""The first page in a browser: the list of threads, its searches, and threads by their ids and runs."""

import re
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from playwright.async_api import Locator, Page, expect

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.directory import Entered, enter_threads
from tests.view import story
from tests.view.page.conftest import Visit, check_accessible
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


def listed(page: Page) -> Locator:
    """The list of threads."""
    return page.get_by_role("region", name="Threads", exact=True)


async def search_list(page: Page, label: str, text: str) -> None:
    """Search the list."""
    await page.get_by_label(label, exact=True).fill(text)
    await page.keyboard.press("Enter")


async def test_an_owner_s_threads_are_listed_page_by_page(visit: Visit, saver: DynamoDBSaver) -> None:
    now = int(saver.storage.clock())
    threads = [Entered(f"grace {number}", "grace", now - number, f"Trip {number}") for number in range(45)]
    enter_threads(saver, threads)
    page = await visit()
    await finder(page)
    await search_list(page, "Owner", "grace")
    rows = listed(page).get_by_role("listitem")
    await expect(rows).to_have_count(20)
    await expect(rows.first).to_contain_text("Trip 0")
    await expect(rows.first).to_contain_text("idle")
    await expect(rows.first).to_contain_text("owner grace")
    for count in (40, 45):
        await listed(page).get_by_role("button", name="Older threads").click()
        await expect(rows).to_have_count(count)
    await expect(listed(page).get_by_role("button", name="Older threads")).to_have_count(0)
    await expect(listed(page).get_by_role("status")).to_contain_text("There are no older ones")
    await expect(listed(page).get_by_role("status")).to_contain_text("not in the directory are not looked at")
    await search_list(page, "Text in the title", "trip 44")
    await expect(rows).to_have_count(1)
    await expect(listed(page).get_by_role("status")).to_contain_text(
        "1 thread with this title, among the newest 45 threads of threads of grace"
    )


async def test_a_thread_is_opened_from_the_list_and_the_search_is_there_again(
    visit: Visit, saver: DynamoDBSaver
) -> None:
    saver.set_thread(story.JOURNEY, owner="ada", title="Three nights in <b>Lisbon</b>\u202e")
    page = await visit("hostile")
    await finder(page)
    await search_list(page, "Owner", "ada")
    row = listed(page).get_by_role("button", name=re.compile("Three nights"))
    await expect(row).to_contain_text(r"<b>Lisbon</b>\u202e")
    await check_accessible(page, "threads")
    await row.click()
    await expect(page.get_by_role("treeitem")).to_have_count(11)
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_contain_text(r"<b>Lisbon</b>\u202e")
    await expect(heading).to_contain_text("owner ada")
    await page.go_back()
    await expect(page.get_by_label("Owner", exact=True)).to_have_value("ada")
    await expect(row).to_be_visible()


async def test_what_cannot_be_listed_is_said_and_threads_still_open(visit: Visit) -> None:
    page = await visit("hostile", may_fail=True)
    await finder(page)
    await search_list(page, "Owner", "x" * 5000)
    await expect(listed(page).get_by_role("alert")).to_contain_text("owner")
    await page.get_by_label("Thread id").fill(story.JOURNEY)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("treeitem")).to_have_count(11)


# Without the list


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
    box: Any = await page.get_by_role("heading", name="Threads of").bounding_box()
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
    await expect(page.get_by_role("main")).to_contain_text("no checkpoint of a thread nobody's in table")
    await expect(page.get_by_role("main")).to_contain_text("may be mistyped, the thread in another table")
    await page.get_by_role("link", name="List the threads of this table").click()
    await expect(listed(page)).to_be_visible()


async def test_threads_that_failed_and_memories_are_found(visit: Visit, saver: DynamoDBSaver) -> None:
    story.tell_failure(saver, "failed once")
    saver.set_thread("failed once", owner="heidi", title="A hotel")
    page = await visit()
    await finder(page)
    await page.get_by_label("Status").select_option("failed")
    await search_list(page, "Owner", "heidi")
    await expect(listed(page).get_by_role("listitem")).to_have_count(1)
    await expect(listed(page).get_by_role("status")).to_contain_text("1 thread with this status")
    await page.get_by_label("Memories of an owner").fill("heidi")
    await page.get_by_role("button", name="Show").click()
    memories = page.get_by_role("region", name="Memories of heidi")
    await expect(memories).to_contain_text("users/heidi · updated ")
    await expect(memories).to_contain_text(r"likes <b>trains</b>\u202e")
    await check_accessible(page, "memories")
