"""The chat with a sidebar in a browser, on a table with the conversations of many users: one query a page."""

import asyncio
import random
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from playwright.async_api import Page, expect

from examples import chat
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import Event
from tests.conftest import MakeSaver
from tests.support.browser import browser_or_skip
from tests.support.directory import Entered, enter_threads
from tests.support.seeds import first_seed

pytestmark = pytest.mark.engines("dynamodb-local")

HOSTILE = "<img src=x onerror=alert(1)>"


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """Serve an app on this machine, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


def seeded(saver: DynamoDBSaver, threads: int, users: int) -> list[str]:
    """Enter conversations of many users; return the titles of user 0, who has some more, newest first."""
    seed = first_seed()
    rng = random.Random(seed)
    now = int(saver.storage.clock())
    entered = []
    # No two were active at the same time, so there is one order.
    for age in rng.sample(range(1, 10_000_000), threads):
        user = f"user-{0 if rng.random() < 45 / threads else rng.randrange(users)}"
        thread_id = chat.thread_of(user, UUID(int=rng.getrandbits(128)))
        entered.append(Entered(thread_id, user, now - age, f"About {age}"))
    enter_threads(saver, entered)
    own = [each for each in entered if each.owner == "user-0"]
    return [str(each.title) for each in sorted(own, key=lambda each: -each.last_active)]


@asynccontextmanager
async def opened(saver: DynamoDBSaver, user: str) -> AsyncIterator[tuple[Page, str, list[str]]]:
    """Serve the chat, and yield a user's page in a browser, the address, and the page's errors."""
    async with served(chat.create_app(saver)) as address, browser_or_skip() as browser:
        page, alerts = await browser.new_page(), list[str]()
        page.on("pageerror", lambda error: alerts.append(str(error)))
        await page.goto(f"{address}/?user={user}")
        yield page, address, alerts


def rows(page: Page) -> Any:
    """Return the titles in the sidebar."""
    return page.locator("#chats .open")


@pytest.mark.parametrize(("threads", "users"), [(50, 5), pytest.param(10_000, 500, marks=pytest.mark.search)])
async def test_a_user_s_conversations_are_in_the_sidebar(
    make_saver: MakeSaver, threads: int, users: int
) -> None:
    events: list[Event] = []
    saver = make_saver(owner_from="user_id", on_event=events.append)
    expected = seeded(saver, threads, users)
    assert len(expected) > chat.PAGE_CHATS
    events.clear()
    async with opened(saver, "user-0") as (page, _, alerts):
        shown = chat.PAGE_CHATS
        await expect(rows(page)).to_have_text(expected[:shown])
        while shown < len(expected):
            await page.get_by_role("button", name="More").click()
            shown = min(shown + chat.PAGE_CHATS, len(expected))
            await expect(rows(page)).to_have_text(expected[:shown])
        await expect(page.get_by_role("button", name="More")).to_be_hidden()
        pages = -(-len(expected) // chat.PAGE_CHATS)
        asked = [("warm_up", 1), *[("list_threads", 1)] * pages]
        assert [(each.operation, each.requests) for each in events] == asked
        assert alerts == []


async def say(page: Page, text: str) -> None:
    """Send a message, and wait for its answer."""
    await page.get_by_label("Message", exact=True).fill(text)
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text(f"The last one: {text}")


async def test_a_conversation_is_begun_renamed_continued_and_deleted(make_saver: MakeSaver) -> None:
    saver = make_saver(owner_from="user_id")
    async with opened(saver, "ada") as (page, address, alerts):
        await say(page, HOSTILE)
        await page.get_by_role("button", name="New chat").click()
        await say(page, "hello")
        await expect(rows(page)).to_have_text(["hello", HOSTILE])
        await page.get_by_role("button", name=HOSTILE, exact=True).click()
        await say(page, "again")
        await expect(page.get_by_role("log")).to_contain_text("You have said 2 things")
        await expect(rows(page)).to_have_text([HOSTILE, "hello"])
        page.on("dialog", lambda dialog: dialog.accept("Greetings"))
        await page.get_by_role("button", name="Rename hello").click()
        await page.get_by_role("button", name=f"Delete {HOSTILE}").click()
        await expect(rows(page)).to_have_text(["Greetings"])
        await page.reload()
        await expect(rows(page)).to_have_text(["Greetings"])
        await page.get_by_role("button", name="Greetings", exact=True).click()
        await expect(page.get_by_role("log")).to_contain_text("The last one: hello")
        await page.goto(f"{address}/?user=grace")
        await say(page, "mine")
        await expect(rows(page)).to_have_text(["mine"])
        assert alerts == []
        # The page says what the service refuses, and the browser tells of the error when it likes.
        async with page.expect_event("pageerror"):
            await page.goto(f"{address}/?user=a+b")
            await expect(page.get_by_role("alert")).to_contain_text(re.compile("GET /chats failed"))
        assert len(alerts) == 1


@asynccontextmanager
async def asking(saver: DynamoDBSaver) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the service for one user."""
    transport = httpx.ASGITransport(app=chat.create_app(saver))
    headers = {"user": "ada", "content-type": "application/json"}
    async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as client:
        yield client


async def test_nobody_reaches_another_user_s_conversation(make_saver: MakeSaver) -> None:
    async with asking(make_saver(owner_from="user_id")) as client:
        where = f"/chats/{UUID(int=1)}"
        await client.post(where, json={"text": "mine"})
        assert (await client.get(where, headers={"user": "grace"})).json() == []
        await client.delete(where, headers={"user": "grace"})
        found = (await client.get("/chats")).json()["chats"]
        assert [each["title"] for each in found] == ["mine"]
        assert (await client.get("/chats", headers={"user": "grace"})).json()["chats"] == []
        for user in ("", "ada/1", "Ada"):
            assert (await client.get("/chats", headers={"user": user})).status_code == 422


async def test_what_cannot_be_used_is_refused(make_saver: MakeSaver) -> None:
    async with asking(make_saver(owner_from="user_id")) as client:
        where = f"/chats/{UUID(int=1)}"
        await client.post(where, json={"text": "hello"})
        for cursor in ("zzz", "", "é", "[" * 20_000):
            refused = await client.get("/chats", params={"before": cursor})
            assert (refused.status_code, "cursor" in refused.json()["detail"]) == (422, True)
        for method, name in (("POST", "text"), ("PUT", "title")):
            refused = await client.request(method, where, content=b'{"%s": "\\ud800"}' % name.encode())
            assert (refused.status_code, f"body.{name}" in refused.json()["detail"]) == (422, True)


async def test_a_thread_that_is_no_chat_is_not_shown(make_saver: MakeSaver) -> None:
    saver = make_saver(owner_from="user_id")
    async with asking(saver) as client:
        thread_id = chat.thread_of("ada", UUID(int=1))
        await client.post(f"/chats/{UUID(int=1)}", json={"text": "hello"})
        # An operator keeps the thread that a restored one replaces, under such a name.
        await saver.acopy_thread(thread_id, f"{thread_id}.before-restored")
        for other in (f"ada/{UUID(int=2).hex}", str(UUID(int=3)), "trip"):
            await saver.aset_thread(other, owner="ada")
        found = (await client.get("/chats")).json()["chats"]
        assert [each["id"] for each in found] == [str(UUID(int=1))]


async def test_a_deleted_chat_stays_deleted(make_saver: MakeSaver) -> None:
    async with asking(make_saver(owner_from="user_id")) as client:
        where = f"/chats/{UUID(int=1)}"
        await client.post(where, json={"text": "hello"})
        assert (await client.post(where, json={"text": "again", "continues": True})).status_code == 200
        for _ in range(2):
            assert (await client.delete(where)).status_code == 200
        assert (await client.put(where, json={"title": "ghost"})).status_code == 404
        said = await client.post(where, json={"text": "anybody there?", "continues": True})
        assert (said.status_code, said.json()["detail"].endswith("deleted.")) == (404, True)
        assert (await client.get("/chats")).json()["chats"] == []
