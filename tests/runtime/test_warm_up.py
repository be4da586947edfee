"""`warm_up`: after it, the first call loads and opens nothing; without it, nothing is loaded earlier."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.drivers import warm_up
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.observed import Collected
from tests.support.operations import Side, both_sides
from tests.support.scripted import scripted_server
from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

KINDS: dict[str, Callable[..., Any]] = {
    "saver": DynamoDBSaver,
    "store": DynamoDBStore,
    "cache": DynamoDBCache,
}


def _warm(side: Side, made: Any) -> None:
    if side == "sync":
        with made:
            made.warm_up()
        return

    async def warm() -> None:
        async with made:
            await made.awarm_up()

    asyncio.run(warm())


@both_sides
@pytest.mark.parametrize("kind", KINDS)
def test_it_sends_one_read(kind: str, side: Side) -> None:
    with scripted_server() as endpoint:
        _warm(side, KINDS[kind]("the-table", endpoint_url=endpoint.address, region_name="us-east-1"))
        assert endpoint.requests == ["GetItem"]


@both_sides
@pytest.mark.parametrize("on_event", [None, Collected()], ids=["plain", "observed"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_outage_is_logged_and_not_waited_for(
    caplog: pytest.LogCaptureFixture, kind: str, on_event: Any, side: Side
) -> None:
    with scripted_server() as endpoint:
        endpoint.always = (400, "ThrottlingException")
        where = {"endpoint_url": endpoint.address, "region_name": "us-east-1"}
        _warm(side, KINDS[kind]("the-table", on_event=on_event, **where))
        assert endpoint.requests == ["GetItem"]
    [record] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert record.getMessage().startswith(
        "warm_up got no answer, so the first call takes longer: DynamoDB throttles"
    )


def test_a_refusal_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The policy of a tenant denies the item, and the connection is made."""
    warming = warm_up(DynamoDBSaver("the-table")._first_request())  # noqa: SLF001
    next(warming)
    with pytest.raises(StopIteration):
        warming.send([ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetItem")])
    assert caplog.records == []


# Prints which modules are loaded by making a saver, and which by its first calls.
PROGRAM = """
import sys

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.operations import ask

table, url, side, is_warm = sys.argv[1:]
saver = DynamoDBSaver(table, endpoint_url=url, region_name="us-east-1")
print(*sorted(sys.modules))
config = {"configurable": {"thread_id": "warm", "checkpoint_ns": ""}}
if is_warm == "True":
    ask(side, saver, "warm_up")
before = set(sys.modules)
ask(side, saver, "get_tuple", config)
ask(side, saver, "put", config, empty_checkpoint(), {"source": "loop", "step": 1}, {})
print(*sorted(set(sys.modules) - before))
saver.close()
"""
LIBRARIES = {"aiobotocore", "aiohttp", "boto3", "botocore"}


@both_sides
@pytest.mark.parametrize("is_warm", [True, False])
def test_the_first_call_after_it_loads_nothing(
    engine: Engine, table_name: str, side: Side, *, is_warm: bool
) -> None:
    done = subprocess.run(  # noqa: S603  # This interpreter, with the program above.
        [sys.executable, "-c", PROGRAM, table_name, str(engine.endpoint_url), side, str(is_warm)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"},
    )
    made, called = ({each.partition(".")[0] for each in line.split()} for line in done.stdout.splitlines())
    assert not made & LIBRARIES
    assert bool(called & (LIBRARIES | {"langgraph"})) is not is_warm
