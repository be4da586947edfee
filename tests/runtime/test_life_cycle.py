"""Clients over the life of a saver: opened when needed, one for each event loop, and closed with it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import MakeSaver
from tests.support.checkpoints import METADATA, checkpoint_of, store, stored_values, thread_config
from tests.support.traffic import Traffic
from tests.support.watched import BIG, WatchedLoops, WatchedSession, use

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# A client is made and closed in the same way for every engine.
pytestmark = pytest.mark.engines("dynamodb-local")


# Event loops


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> WatchedLoops:
    """Give what is known of async clients and their connections."""
    return WatchedLoops(monkeypatch)


def test_a_plain_saver_opens_connections_on_each_event_loop_and_closes_them_with_the_loop(
    make_unclosed: MakeSaver, loops: WatchedLoops
) -> None:
    saver = make_unclosed()
    assert loops.clients == 0
    for number in range(3):
        assert asyncio.run(use(saver, f"thread-{number}")) == ["01", "00"]
        assert (loops.clients, loops.opened, loops.open) == (1, number + 1, 0)


async def test_a_list_that_is_left_early_and_a_cancelled_call_leave_the_saver_usable(
    make_unclosed: MakeSaver, loops: WatchedLoops
) -> None:
    async with make_unclosed() as saver:
        cancelled = asyncio.create_task(use(saver, "cancelled"))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert await use(saver, "thread-1") == ["01", "00"]
        async for found in saver.alist(thread_config()):
            assert found.config["configurable"]["checkpoint_id"] == "01"
            break
        assert await use(saver, "thread-2") == ["01", "00"]
    assert loops.open == 0


# Threads


def test_many_threads_use_one_saver_with_one_client(make_unclosed: MakeSaver) -> None:
    session = WatchedSession()
    together = threading.Barrier(32)

    def use_one(number: int) -> Any:
        config = thread_config(f"thread-{number}")
        together.wait()
        store(saver, config, "1", {"number": number, "big": BIG})
        return stored_values(saver, config)["number"]

    with make_unclosed(session=session) as saver, ThreadPoolExecutor(32) as pool:
        assert list(pool.map(use_one, range(32))) == list(range(32))
    assert len(session.clients) == 1


# Context managers


def test_a_saver_can_be_used_again_after_it_was_closed(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = WatchedSession()
    closed: list[Any] = []
    with make_unclosed(session=session) as saver:
        assert isinstance(saver, DynamoDBSaver)
        store(saver, thread_config(), "1", {"big": BIG})
        (client,) = session.clients
        monkeypatch.setattr(client, "close", lambda: closed.append(client))
    assert closed == [client]
    assert stored_values(saver, thread_config()) == {"big": BIG}
    assert len(session.clients) == 2
    saver.close()
    saver.close()
    assert closed == [client]


async def test_a_saver_can_be_used_again_after_its_connections_were_closed(
    make_unclosed: MakeSaver, loops: WatchedLoops
) -> None:
    async with make_unclosed() as saver:
        assert isinstance(saver, DynamoDBSaver)
        assert await use(saver, "thread-1") == ["01", "00"]
    assert (loops.opened, loops.open) == (1, 0)
    assert await use(saver, "thread-2") == ["01", "00"]
    assert (loops.opened, loops.open) == (2, 1)
    await saver.aclose()
    await saver.aclose()
    assert loops.open == 0


async def test_leaving_the_async_context_closes_the_blocking_client_too(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = WatchedSession()
    closed: list[str] = []
    async with make_unclosed(session=session) as saver:
        store(saver, thread_config(), "1", {})
        monkeypatch.setattr(session.clients[0], "close", lambda: closed.append("closed"))
    assert closed == ["closed"]


# Clones


def test_a_clone_shares_the_clients_and_the_memory(
    make_unclosed: MakeSaver, table_name: str, client: DynamoDBClient
) -> None:
    session = WatchedSession()
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    original = make_unclosed(session=session, serde=serde)
    clone = original.with_allowlist([("somewhere", "Something")])
    assert isinstance(clone, DynamoDBSaver)
    assert clone is not original
    assert clone.serde is not serde
    first = store(original, thread_config(), "1", {"big": BIG})
    # Whose end is sealed now that a step has left it untouched.
    parent = original.put(first, checkpoint_of("2", {"big": BIG}), METADATA, {})
    traffic = Traffic(session.clients[0].meta.events)
    clone.put(parent, checkpoint_of("3", {"big": BIG}), METADATA, {})
    # It neither reads the parent back nor writes again what the original wrote: it only looks at the thread.
    assert traffic.operations == ["PutItem", "GetItem"]
    assert stored_values(original, thread_config()) == {"big": BIG}
    assert len(session.clients) == 1
    clone.close()
    assert stored_values(DynamoDBSaver(table_name, client=client), thread_config()) == {"big": BIG}
