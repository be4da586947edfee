"""A thread on the page: its tree, and a checkpoint with what it holds, as a person with a browser meets them."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import Conversation
from tests.view import story
from tests.view.page.conftest import Visit, check_accessible

pytestmark = [pytest.mark.engines("dynamodb-local"), pytest.mark.asyncio(loop_scope="session")]


def step(page: Page, *said: str) -> Locator:
    """The checkpoints of the tree of which a screen reader says this."""
    return page.get_by_role("treeitem", name=re.compile(".*".join(map(re.escape, said))))


def panel(page: Page) -> Locator:
    """What the tab shows."""
    return page.get_by_role("tabpanel")


async def choose(page: Page, *said: str, tab: str | None = None) -> Locator:
    """Click on a checkpoint, and on a tab, and give what that shows."""
    await step(page, *said).first.click()
    await expect(step(page, *said).first).to_have_attribute("aria-selected", "true")
    if tab is not None:
        await page.get_by_role("tab", name=tab).click()
        await expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    await expect(panel(page)).to_have_attribute("aria-busy", "false")
    return panel(page)


async def search(page: Page, text: str) -> Locator:
    """Look for a text as one does without a mouse, and give the findings."""
    await page.keyboard.press("/")
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")
    findings = page.get_by_role("complementary", name="Findings")
    await expect(findings.get_by_role("progressbar")).to_be_hidden()
    return findings


@pytest.mark.search
async def test_the_wrong_turn_is_found_by_a_search(visit: Visit) -> None:
    page = await visit()
    findings = await search(page, story.WRONG)
    await expect(findings.get_by_role("button", name="Step 3 first add_up")).to_contain_text(story.WRONG)
    await findings.get_by_role("button", name=re.compile("Step 4 .*messages")).first.click()
    await expect(step(page, "step 4", "made by add_up")).to_have_attribute("aria-selected", "true")
    revealed = panel(page).locator(".revealed")
    await expect(revealed).to_have_text(f"The flight is {story.WRONG}.")
    await expect(revealed).to_be_in_viewport()
    await findings.get_by_role("button", name="Step 3 first").click()
    await expect(page.get_by_role("tab", name="Pending")).to_have_attribute("aria-selected", "true")
    await expect(panel(page)).to_contain_text("Runs next")
    await expect(panel(page).locator(".revealed")).to_contain_text(story.WRONG)
    await expect(panel(page).locator(".revealed")).to_be_focused()
    await check_accessible(page, "search")
    await page.keyboard.press("/")
    await page.keyboard.type(" that nobody said")
    await page.keyboard.press("Enter")
    await expect(findings).to_contain_text("It is nowhere in this thread.")


async def test_the_tree_shows_forks_failures_and_what_a_human_was_asked(visit: Visit) -> None:
    page = await visit()
    await expect(page.get_by_role("treeitem")).to_have_count(11)
    await expect(step(page, "step 1", "a task failed and was tried again")).to_be_visible()
    await expect(step(page, "step 5", "a human is asked")).to_be_visible()
    await expect(step(page, "step 4", "a human answered")).to_be_visible()
    await expect(step(page, "step 2", "made by find_flight, find_hotel", "after its parent")).to_be_visible()
    await expect(step(page, "fork")).to_have_count(1)
    await expect(step(page, "update")).to_have_count(1)
    await expect(step(page, "newest")).to_have_attribute("aria-selected", "true")
    boxes = [await each.locator(".shape").bounding_box() for each in await page.get_by_role("treeitem").all()]
    middles = {round(box["y"] + box["height"] / 2) for box in boxes if box is not None}
    assert len(middles) == 3, "each branch has a row of its own"


async def test_hostile_content_is_shown_as_text(visit: Visit) -> None:
    page = await visit("hostile")
    said = panel(page).get_by_role("article")
    await expect(said.nth(0)).to_contain_text(story.SCRIPT)
    await expect(said.nth(1)).to_contain_text(r"\u001b[31mred\u001b[0m\u001b]0;title\u0007")
    await expect(said.nth(2)).to_contain_text(r"invoice\u202efdp.exe")
    pieces = said.nth(3).locator(".text.long > span")
    assert len(await said.nth(3).inner_text()) < 5_000
    for shown in (2, 3):
        await said.nth(3).get_by_role("button", name="Show more").click()
        await expect(pieces).to_have_count(shown)
    assert len(await said.nth(3).inner_text()) > 100_000
    await check_accessible(page, "hostile")
    await expect(panel(page)).to_contain_text("__proto__")
    await expect(panel(page)).to_contain_text("constructor")
    for tab in ("What changed", "Pending"):
        await choose(page, "newest", tab=tab)
    findings = await search(page, "<script>")
    await findings.get_by_role("button", name="<script>").first.click()
    assert await page.locator("img, script:not([src]), b").count() == 0


@pytest.mark.search
async def test_a_subgraph_is_a_lane_that_opens(visit: Visit) -> None:
    page = await visit()
    lane = page.get_by_role("button", name="research")
    await expect(lane).to_have_attribute("aria-expanded", "false")
    await lane.click()
    await expect(lane).to_have_attribute("aria-expanded", "true")
    await expect(step(page, "made by rates")).to_have_count(1)
    await page.get_by_role("button", name="check").click()
    await choose(page, "made by compare")
    await check_accessible(page, "subgraphs")
    caller = page.get_by_role("region", name="Checkpoint", exact=True).get_by_role(
        "button", name="step 1, rates"
    )
    await caller.click()
    await expect(step(page, "made by rates")).to_have_attribute("aria-selected", "true")
    await lane.click()
    await expect(page.get_by_role("treeitem")).to_have_count(11)


@pytest.mark.search
async def test_messages_are_a_conversation_and_other_values_a_tree(visit: Visit) -> None:
    page = await visit()
    shown = await choose(page, "step 5", "made by ask")
    await check_accessible(page, "state")
    talk = shown.get_by_role("region", name="Channel messages")
    await expect(talk).to_contain_text("510 tokens read and 83 written")
    await expect(talk.locator(".conversation > li")).to_have_count(4)
    asking = talk.locator(".conversation > li").nth(1)
    await expect(asking).to_contain_text("120 tokens in, 48 out")
    for tool, found in {"find_flight": "TP 1357", "find_hotel": "Pensao Alegria"}.items():
        call = asking.locator("details.tool-call").filter(has_text=tool)
        await expect(call.get_by_role("article")).to_contain_text(found)
        await call.locator("summary").first.click()
        await expect(call.get_by_role("article")).to_be_hidden()

    offer = shown.get_by_role("region", name="Channel offer")
    await expect(offer).to_contain_text(re.compile(r"3 entries.*\d+ B", re.DOTALL))
    price = offer.locator("details").filter(has=page.get_by_text("price", exact=True)).last
    await expect(price).to_contain_text("4120")
    await price.locator("summary").click()
    await expect(price.get_by_text("4120")).to_be_hidden()
    await expect(shown).to_contain_text(re.compile(r"4 channels, .*: messages [\d.]+ KB, found \d+ B, "))


@pytest.mark.search
async def test_what_changed_is_told_against_the_parent(visit: Visit) -> None:
    page = await visit()
    shown = await choose(page, "step 4", "made by add_up", tab="What changed")
    await expect(shown.get_by_role("region", name="Changes of offer")).to_contain_text("added")
    await expect(shown).to_contain_text("390 tokens read and 35 written by models in this step")
    await expect(shown.get_by_role("region", name="Changes of messages")).to_contain_text(story.WRONG)
    await expect(shown).to_contain_text("Unchanged: account, found")
    await check_accessible(page, "changes")
    await choose(page, "step -1", tab="What changed")
    await expect(shown).to_contain_text("Its parent is not there")


@pytest.mark.search
async def test_each_side_of_a_long_change_goes_on_as_it_was(visit: Visit, saver: DynamoDBSaver) -> None:
    talk = Conversation(saver, "long-texts")
    talk.put(note="before " * 10_000)
    talk.put(note="after " * 10_000)
    page = await visit("long-texts")
    shown = await choose(page, "newest", tab="What changed")
    for side in ("before", "after"):
        pieces = shown.locator(f".side.{side} .text.long > span")
        for count in (2, 3):
            await shown.locator(f".side.{side}").get_by_role("button", name="Show more").click()
            await expect(pieces).to_have_count(count)
        assert "".join(await pieces.all_text_contents()) == f"{side} " * 10_000


@pytest.mark.search
async def test_pending_has_writes_questions_failures_and_what_runs_next(
    visit: Visit, saver: DynamoDBSaver
) -> None:
    page = await visit()
    shown = await choose(page, "step 5", "a human is asked", tab="Pending")
    await expect(shown).to_contain_text("Runs next: ask")
    await expect(shown.get_by_role("region", name="Task ask")).to_contain_text("waits for an answer")
    await expect(shown).to_contain_text("Book the journey?")
    await choose(page, "step 1", "tried again", tab="Pending")
    failed = shown.get_by_role("region", name="Task find_hotel")
    await expect(failed).to_contain_text("failed, was tried again and finished")
    await check_accessible(page, "pending")
    await expect(failed).to_contain_text(story.FAILURE)
    summary = page.get_by_role("region", name="Checkpoint", exact=True)
    await expect(summary).to_contain_text(story.FAILURE)
    await choose(page, "step 4", "a human answered")
    await expect(summary).to_contain_text(story.ANSWER)
    story.tell_failure(saver, "failed")
    page = await visit("failed")
    await expect(step(page, "step 1", "a task failed, newest")).to_have_attribute("aria-selected", "true")
    shown = await choose(page, "newest", tab="Pending")
    await expect(shown.get_by_role("region", name="Task find_hotel").get_by_role("heading")).to_contain_text(
        "failed"
    )
    await expect(shown).to_contain_text(re.compile("Runs next: .*find_hotel"))


@pytest.mark.search
async def test_the_tree_is_walked_by_keyboard(visit: Visit) -> None:
    page = await visit()
    await page.get_by_role("tree").focus()
    walk = {
        "Home": "step -1",
        "ArrowRight": "step 0",
        "PageDown": "step 5, loop, made by ask",
        "ArrowLeft": "step 4, loop, made by add_up",
        "ArrowDown": "step 4, fork",
        "ArrowUp": "step 5, loop, made by ask",
        "PageUp": "step -1",
        "End": "newest",
    }
    for key, said in walk.items():
        await page.keyboard.press(key)
        await expect(step(page, said).first).to_have_attribute("aria-selected", "true")
        active = await page.get_by_role("tree").get_attribute("aria-activedescendant")
        assert active == await step(page, said).first.get_attribute("id")
    await choose(page, "step 2", "made by find_flight")
    await page.get_by_role("tree").focus()
    await page.keyboard.press("o")
    await expect(step(page, "made by rates")).to_be_visible()
    await page.get_by_role("tab", name="State").focus()
    for name in ("What changed", "Pending", "State"):
        await page.keyboard.press("ArrowRight")
        await expect(page.get_by_role("tab", name=name)).to_be_focused()
        await expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")


@pytest.mark.search
async def test_a_click_counts_though_the_tree_is_drawn_anew_during_it(visit: Visit) -> None:
    page = await visit()
    first = page.get_by_role("treeitem").first
    await expect(first).to_have_attribute("aria-selected", "false")
    await first.hover()
    await page.mouse.down()
    # Drawn in the next frame, as after any scrolling.
    await page.locator(".tree").evaluate(
        "(tree) => new Promise((drawn) => {"
        " tree.dispatchEvent(new Event('scroll')); requestAnimationFrame(() => requestAnimationFrame(drawn)); })"
    )
    await page.mouse.up()
    await expect(first).to_have_attribute("aria-selected", "true")


@pytest.mark.search
async def test_a_place_has_an_address(visit: Visit) -> None:
    page = await visit()
    await choose(page, "step 4", "made by add_up", tab="Pending")
    summary = page.get_by_role("region", name="Checkpoint", exact=True)
    await expect(summary).to_contain_text(re.compile(r"stored\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+[12]"))
    await summary.get_by_role("button", name="Copy").last.click()
    await expect(summary.get_by_role("button", name="Copy").last).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == story.JOURNEY
    await page.reload()
    await expect(step(page, "step 4", "made by add_up")).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("tab", name="Pending")).to_have_attribute("aria-selected", "true")
    await page.get_by_role("link", name="Skip to the content").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    await expect(step(page, "step 4", "made by add_up")).to_be_visible()


@pytest.mark.search
async def test_two_thousand_checkpoints_are_drawn_as_needed(visit: Visit, saver: DynamoDBSaver) -> None:
    talk = Conversation(saver, "long")
    for number in range(2_000):
        talk.put(count=number)
    page = await visit("long")
    await expect(page.get_by_role("treeitem").first).to_have_attribute("aria-setsize", "2000", timeout=60_000)
    await page.get_by_role("tree").focus()
    drawn = []
    for key in ("Home", "End", "PageUp"):
        await page.keyboard.press(key)
        drawn.append(await page.get_by_role("treeitem").count())
        assert await page.locator("[role=treeitem][aria-selected=true]").is_visible()
    assert max(drawn) < 40


@pytest.mark.search
async def test_large_values_are_shown_piece_by_piece(visit: Visit, saver: DynamoDBSaver) -> None:
    story.tell_large(saver, "large")
    page = await visit("large")
    message = panel(page).get_by_role("article")
    await expect(message).to_contain_text("word word")
    pieces = message.locator(".text.long > span")
    for shown in range(1, 6):
        await expect(pieces).to_have_count(shown)
        await message.get_by_role("button", name="Show more (5 MB in all)").click()
    await expect(pieces).to_have_count(6)
    text = "".join(await pieces.all_text_contents())
    assert len(text) > 300_000
    assert ("word " * story.LARGE_CHARACTERS).startswith(text)
    found = panel(page).get_by_role("region", name="Channel found")
    await expect(found).to_contain_text("20,000 items")
    shown = await found.locator(".entries > .entry").count()
    await found.get_by_role("button", name="Show more").click()
    await expect(found.locator(".entries > .entry").nth(shown + 1)).to_contain_text("entry")
    offer = panel(page).get_by_role("region", name="Channel offer")
    await expect(offer).to_contain_text("25 MB")
    assert await page.locator("body *").count() < 20_000, "what is not looked at is not there"


@pytest.mark.search
async def test_what_goes_wrong_is_said_with_its_remedy(visit: Visit) -> None:
    page = await visit(may_fail=True)
    await page.context.set_offline(True)
    await page.get_by_role("tab", name="What changed").click()
    await expect(page.get_by_role("alert")).to_contain_text("Start `langgraph-dynamodb view` again")
    await page.context.set_offline(False)
    await page.route(
        "**/api/pending*",
        lambda route: route.fulfill(
            status=503, json={"title": "no", "status": 503, "detail": "wait a while"}
        ),
    )
    await page.get_by_role("tab", name="Pending").click()
    await expect(page.get_by_role("alert")).to_have_text("wait a while")
    await choose(page, "newest", tab="State")
    await expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.search
@pytest.mark.parametrize("width", [1024, pytest.param(420, id="phone")])
async def test_it_fits_the_width_of_the_screen(visit: Visit, width: int) -> None:
    page = await visit(width=width)
    title = page.get_by_role("heading", level=1)
    await expect(title).to_contain_text(story.JOURNEY)
    await expect(title).to_be_in_viewport(ratio=1)
    for name in ("What changed", "Pending", "State"):
        await choose(page, "newest", tab=name)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    if width == 420:
        # The summary, and then what is chosen of it; each as wide as the screen.
        boxes = [await page.locator(each).bounding_box() for each in (".summary", ".inspector")]
        above, below = [box for box in boxes if box is not None]
        assert above["y"] + above["height"] <= below["y"]
        assert above["width"] == below["width"] == width
    await search(page, story.WRONG)
    await expect(page.locator(".findings")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await check_accessible(page, f"search-{width}")
