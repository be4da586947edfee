"""The exported file, opened without a network: it shows what the server shows, and says what was masked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.view import STATIC
from langgraph.checkpoint.dynamodb.view.bundle import bundled
from langgraph.checkpoint.dynamodb.view.export import Exporter
from langgraph.checkpoint.dynamodb.view.masks import Masks, parse_rule
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.view import story
from tests.view.page.conftest import Visit
from tests.view.page.test_thread_page import OFFERED, choose, panel, search, step

pytestmark = [pytest.mark.engines("dynamodb-local"), pytest.mark.asyncio(loop_scope="session")]

# Of the story and of its subgraph.
CHECKPOINTS = 15
# What the changes are against is chosen from a list only where there is a server.
_SAID = """(panel) => [...panel.querySelectorAll(":scope > * > :not(.against)")].map((each) => each.innerText).join()"""


def exported(saver: DynamoDBSaver, file: Path, thread: str, *rules: str) -> str:
    """The address of a thread's file, in which the rules mask values."""
    masks = Masks([parse_rule(each, "masked") for each in rules])
    document = Exporter(Session(saver), masks, lambda done, of: None).export(thread)
    file.write_text(bundled(STATIC, document), encoding="utf-8")
    return file.as_uri()


async def told(page: Page) -> list[str]:
    """What every tab shows of every checkpoint that is open in the tree, as text."""
    said = []
    # By their ids: what is drawn, and in which order, changes as others come into sight.
    for each in await page.get_by_role("treeitem").evaluate_all("(items) => items.map((each) => each.id)"):
        item = page.locator(f"[id='{each}']")
        await item.click()
        await expect(item).to_have_attribute("aria-selected", "true")
        for tab in ("State", "What changed", "Pending", "Cost"):
            await page.get_by_role("tab", name=tab).click()
            await expect(panel(page)).to_have_attribute("aria-busy", "false")
            said.append(await panel(page).evaluate(_SAID))
        said.append(await page.get_by_role("region", name="Checkpoint", exact=True).inner_text())
    return said


async def test_an_exported_file_finds_the_wrong_turn_offline(
    visit: Visit, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    page = await visit(at=exported(saver, tmp_path / "report.html", story.JOURNEY, "mail", "account.key"))
    await expect(page.get_by_role("treeitem")).to_have_count(11)
    findings = await search(page, story.WRONG)
    await expect(findings.get_by_role("button", name="Step 3 first add_up")).to_contain_text(story.WRONG)
    shown = await choose(page, "step 5", "made by ask")
    await shown.get_by_role("button", name=OFFERED).press("Enter")
    await expect(findings).to_contain_text("Step 4, by add_up")
    notice = page.get_by_role("note")
    await notice.get_by_text("Masked or left out by 2 rules").click()
    await expect(notice).to_contain_text(re.compile(r"mail: masked \d+ time"))
    await expect(shown.get_by_role("region", name="Channel account")).to_contain_text("masked: mail")
    for secret in (story.MAIL, story.KEY):
        assert secret not in (tmp_path / "report.html").read_text()


@pytest.mark.search
async def test_an_exported_file_shows_what_the_server_shows(
    visit: Visit, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    served = await visit()
    alone = await visit(at=exported(saver, tmp_path / "report.html", story.JOURNEY))
    for page in (served, alone):
        await page.get_by_role("button", name="research").click()
        await expect(step(page, "made by rates")).to_be_visible()
        await expect(page.get_by_role("treeitem")).to_have_count(CHECKPOINTS)
    there, here = await told(served), await told(alone)
    # What is drawn comes in the order in which it came into sight.
    assert sorted(here) == sorted(there)
    assert len(set(here)) > 3 * CHECKPOINTS


@pytest.mark.search
async def test_hostile_content_is_text_in_an_exported_file(
    visit: Visit, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    page = await visit("hostile", at=exported(saver, tmp_path / "report.html", "hostile"))
    said = panel(page).get_by_role("article")
    await expect(said.nth(0)).to_contain_text(story.SCRIPT)
    await expect(said.nth(2)).to_contain_text(r"invoice\u202efdp.exe")
    await search(page, "<script>")
    assert await page.locator("img, b").count() == 0
