"""Joining: an operation that takes longer than a request goes on, and a repeated request joins it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.joining import Joining
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from tests.gateway.conftest import MakeClient, Script

ONE, OTHER = Principal("one", rights=RIGHTS), Principal("other", rights=RIGHTS)


async def test_a_prune_that_takes_long_is_joined_by_the_same_request_of_the_same_principal(
    make_client: MakeClient, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.app.PART_SECONDS", 1.0)
    go_on: Future[None] = Future()
    script.wait = Wait(go_on, 60)
    script.answer = {"done": True}
    principals = iter([ONE, ONE, OTHER, ONE])
    client = make_client(authenticate=lambda _: asyncio.sleep(0, next(principals)))

    async def ask() -> Any:
        return (await client.post("/checkpoints/prune", json={"thread_ids": ["a"]})).json()["done"]

    assert not await ask()
    assert not any(await asyncio.gather(ask(), ask()))
    # Nobody joins what another principal has begun.
    assert len(script.asked) == 2
    go_on.set_result(None)
    assert await ask()
    assert len(script.asked) == 2


async def test_its_error_is_that_of_who_joins() -> None:
    joining, begin = Joining(), asyncio.Event()

    async def fail() -> None:
        await begin.wait()
        raise ThreadBusyError("busy")

    assert not await joining.done("key", fail, 0.01)
    begin.set()
    with pytest.raises(ThreadBusyError, match="busy"):
        await joining.done("key", fail, 10.0)


async def test_what_nobody_joins_any_more_is_ended() -> None:
    """A client that has given up must not find later that something was deleted after all."""
    begun, ended = 0, asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    joining = Joining()
    assert not await joining.done("key", work, 0.01)
    await ended.wait()
    assert not await joining.done("key", work, 0.01)
    assert begun == 2


async def test_a_result_that_nobody_takes_is_forgotten_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    joining = Joining()
    begin = asyncio.Event()

    async def fail() -> None:
        await begin.wait()
        raise ThreadBusyError("busy")

    assert not await joining.done("key", fail, 0.05)
    begin.set()
    await asyncio.sleep(0.1)
    assert await joining.done("key", lambda: asyncio.sleep(0), 1.0)
    assert caplog.records == []
