"""Event loops: they go on while a client is made, share it, and leave nothing open, however they end."""

from __future__ import annotations

import asyncio
import datetime
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.credentials import RefreshableCredentials

from langgraph.checkpoint.dynamodb._runtime import native
from tests.conftest import MakeSaver
from tests.support.loop_ends import check_end, every_end
from tests.support.watched import use

if TYPE_CHECKING:
    from tools.engine import Engine

# A client is made in the same way for every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

WAIT_SECONDS_MAX = 60.0


# While a client is made


class Gate:
    """Holds up whoever comes through until the event loop, which has to go on for that, opens it."""

    def __init__(self) -> None:
        """Be closed."""
        self._loop = asyncio.get_running_loop()
        self._reached = asyncio.Event()
        self._opened = threading.Event()

    def pass_through(self) -> None:
        """Wait until it is opened; whoever waits on the event loop itself waits in vain."""
        self._loop.call_soon_threadsafe(self._reached.set)
        assert self._opened.wait(WAIT_SECONDS_MAX)

    async def open_when_reached(self) -> None:
        """Open it, as a task among others."""
        await self._reached.wait()
        self._opened.set()


async def test_an_event_loop_goes_on_while_its_client_is_made(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, make = Gate(), native.make_client

    def slowly(*arguments: Any) -> Any:
        gate.pass_through()
        return make(*arguments)

    monkeypatch.setattr(native, "make_client", slowly)
    async with make_unclosed() as saver:
        _, used = await asyncio.gather(gate.open_when_reached(), use(saver, "thread-1"))
    assert used == ["01", "00"]


@pytest.mark.parametrize("is_given", [False, True], ids=["own session", "given session"])
async def test_an_event_loop_goes_on_while_credentials_are_renewed(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch, *, is_given: bool
) -> None:
    gate = Gate()

    def renewed() -> dict[str, Any]:
        gate.pass_through()
        return {"access_key": "a", "secret_key": "b", "token": "c", "expiry_time": _in_hours(2)}

    found = RefreshableCredentials("a", "b", "c", _in_hours(0), renewed, "test")
    monkeypatch.setattr("boto3.Session.get_credentials", lambda _: found)
    async with make_unclosed(session=boto3.Session() if is_given else None) as saver:
        _, used = await asyncio.gather(gate.open_when_reached(), use(saver, "thread-1"))
    assert used == ["01", "00"]


def _in_hours(hours: int) -> Any:
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)
    return moment.isoformat() if hours else moment


async def test_a_client_that_could_not_be_made_is_made_by_the_next_call(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_unclosed() as saver:
        with monkeypatch.context() as broken:
            broken.setattr(native, "make_client", lambda *_: 1 / 0)
            results = await asyncio.gather(
                *(use(saver, f"thread-{number}") for number in range(3)), return_exceptions=True
            )
            assert [type(each) for each in results] == [ZeroDivisionError] * 3
        assert await use(saver, "thread-1") == ["01", "00"]


# What is kept from loop to loop


def test_a_loop_that_has_ended_is_not_kept(make_unclosed: MakeSaver) -> None:
    saver, loops = make_unclosed(), []

    async def use_one(number: int) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await use(saver, f"thread-{number}")

    for number in range(3):
        asyncio.run(use_one(number))
    gc.collect()
    assert [loop() for loop in loops[:-1]] == [None, None]


def test_event_loops_side_by_side_share_all_but_connections(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, made = make_unclosed(), list[str]()

    def noted(name: str, make: Callable[..., Any], *arguments: Any) -> Any:
        made.append(name)
        return make(*arguments)

    for name in ("make_client", "_certificates"):
        monkeypatch.setattr(native, name, partial(noted, name, getattr(native, name)))
    together = threading.Barrier(4)

    async def use_one(number: int) -> list[str]:
        await asyncio.to_thread(together.wait)
        return await use(saver, f"thread-{number}")

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: asyncio.run(use_one(number)), range(4)))
    assert results == [["01", "00"]] * 4
    assert made == ["make_client", "_certificates"]


# How loops and savers end

USE = """
import asyncio, gc, os, sys
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.dynamodb import DynamoDBSaver

async def use(saver, number):
    config = {"configurable": {"thread_id": "thread-1", "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "id": str(number), "channel_values": {"big": os.urandom(50_000)},
        "channel_versions": {"big": number}}
    await saver.aput(config, checkpoint, {"source": "loop", "step": number, "parents": {}}, {"big": number})
    print((await saver.aget_tuple(config)).config["configurable"]["checkpoint_id"], end=" ", flush=True)

def made():
    return DynamoDBSaver(sys.argv[1])
"""


@every_end()
def test_nothing_is_left_open_after(engine: Engine, table_name: str, end: str) -> None:
    check_end(USE, end, table_name, environment=engine.environment())
