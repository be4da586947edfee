"""A thread as one HTML file: opened from a disk, without a server, and with its values masked."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.view.page_file import page_file
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.view import story
from tests.view.page.conftest import Visit, check_accessible
from tests.view.page.test_thread_page import choose, panel, step

pytestmark = [pytest.mark.engines("dynamodb-local"), pytest.mark.asyncio(loop_scope="session")]


def data_of(page: str) -> Any:
    """The data of a file."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    return json.loads(found)


async def test_a_file_shows_the_thread_without_a_server(
    visit: Visit, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    file = tmp_path / "trip #1.html"
    file.write_text(page_file(Session(saver), story.JOURNEY, None), encoding="utf-8")
    page = await visit(at=file.as_uri())
    await expect(page.get_by_role("treeitem")).to_have_count(11)
    await expect(page.get_by_role("link", name="Threads")).to_be_hidden()
    await expect(page.get_by_role("search")).to_be_hidden()
    await choose(page, "step 4", "made by add_up", tab="What changed")
    await expect(panel(page)).to_contain_text(story.WRONG)
    await choose(page, "step 1", "tried again", tab="Pending")
    await expect(panel(page)).to_contain_text(story.FAILURE)
    await page.get_by_role("button", name="research").click()
    await expect(step(page, "made by rates")).to_have_count(1)
    await check_accessible(page, "file")
    await page.reload()
    await expect(page.get_by_role("tab", name="Pending")).to_have_attribute("aria-selected", "true")


async def test_a_masked_file_has_types_names_and_sizes_only(
    visit: Visit, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    said = (story.WRONG, story.QUESTION, story.ANSWER, story.FAILURE, story.MAIL, story.KEY)
    hidden = (*said, "Lisbon", "4120", "ada-the-owner", "Three nights")
    saver.set_thread(story.JOURNEY, owner="ada-the-owner", title="Three nights")
    whole = page_file(Session(saver), story.JOURNEY, None)
    assert all(each in whole for each in hidden)
    masked = page_file(Session(saver), story.JOURNEY, ())
    assert [each for each in hidden if each in masked] == []
    assert "find_hotel" in masked
    some = page_file(Session(saver), story.JOURNEY, ("offer",))
    assert "4120" in some
    assert story.MAIL not in some
    with pytest.raises(CheckpointerInputError, match=r"a channel 'ofer'; give some of .*offer"):
        page_file(Session(saver), story.JOURNEY, ("ofer",))
    file = tmp_path / "masked.html"
    file.write_text(masked, encoding="utf-8")
    page = await visit(at=file.as_uri())
    await choose(page, "step 5", "made by ask", tab="What changed")
    await expect(panel(page)).to_contain_text("masked")
    await choose(page, "step 5", "made by ask", tab="State")
    await expect(panel(page).get_by_role("region", name="Channel offer")).to_contain_text(
        "number, 3 B, masked"
    )
    await check_accessible(page, "masked")


async def test_nothing_stored_ends_the_element_that_it_is_in(saver: DynamoDBSaver) -> None:
    page = page_file(Session(saver), "hostile", None)
    assert page.count("</script>") == 2
    assert story.SCRIPT in json.dumps(data_of(page)).replace('\\"', '"')


async def test_equal_parts_are_in_a_file_once(saver: DynamoDBSaver) -> None:
    page = page_file(Session(saver), story.JOURNEY, None)
    assert page.count("I look for a flight and a hotel.") <= 3
