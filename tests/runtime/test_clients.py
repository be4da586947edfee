"""Which clients a saver uses: as they were given, as a session makes them, or a blocking one in threads."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import sys
import threading
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.args import ClientArgsCreator

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime import clients
from langgraph.checkpoint.dynamodb._runtime.failures import misfit
from tests.conftest import MakeSaver
from tests.support.checkpoints import store, stored_values, thread_config
from tests.support.traffic import Traffic
from tests.support.watched import WatchedAsyncSession, WatchedSession, use

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

# A client is made in the same way for every engine.
pytestmark = pytest.mark.engines("dynamodb-local")


# What was given


def test_a_client_that_was_given_is_used_and_stays_open(
    make_unclosed: MakeSaver, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as given:
        traffic = Traffic(given.meta.events)
        with monkeypatch.context() as watched:
            watched.setattr(given, "close", lambda: closed.append("closed"))
            with make_unclosed(client=given) as saver:
                store(saver, thread_config(), "1", {"a": 1})
            assert stored_values(saver, thread_config()) == {"a": 1}
            saver.close()
    assert closed == []
    assert "PutItem" in traffic.operations


async def test_sessions_and_a_configuration_that_were_given_are_used_as_they_are(
    make_unclosed: MakeSaver, engine: Engine
) -> None:
    blocking, native = WatchedSession(), WatchedAsyncSession()
    config = importlib.import_module("aiobotocore.config").AioConfig(user_agent_extra="given")
    async with make_unclosed(session=blocking, async_session=native, client_config=config) as saver:
        store(saver, thread_config("blocking"), "1", {})
        await use(saver, "native")
    for options in (*blocking.options, *native.options):
        assert options["config"] is config
        assert (options["endpoint_url"], options["region_name"]) == (engine.endpoint_url, engine.region_name)
    assert (len(blocking.options), len(native.options)) == (1, 1)


def test_without_a_configuration_both_clients_get_the_same_bounded_one(make_unclosed: MakeSaver) -> None:
    blocking, native = WatchedSession(), WatchedAsyncSession()
    with make_unclosed(session=blocking, async_session=native) as saver:
        store(saver, thread_config("blocking"), "1", {})
        asyncio.run(use(saver, "native"))
    for options in (*blocking.options, *native.options):
        config = options["config"]
        assert config.tcp_keepalive
        assert config.connect_timeout <= 5
        assert config.read_timeout <= 30
        assert config.max_pool_connections >= 50
        assert config.retries["mode"] == "standard"


def test_a_session_of_aioboto3_is_taken(make_unclosed: MakeSaver) -> None:
    aioboto3 = pytest.importorskip("aioboto3", reason="aioboto3 is not in this environment")
    assert asyncio.run(use(make_unclosed(async_session=aioboto3.Session()), "thread-1")) == ["01", "00"]


# Without an async library


@pytest.fixture
def threads_are_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[], list[str]]:
    """Give what the log says of threads, from a process that has not said it yet."""
    monkeypatch.setattr(clients, "_said", set())
    caplog.set_level(logging.WARNING, logger=clients.__name__)
    return lambda: [each.getMessage() for each in caplog.records if each.name == clients.__name__]


def test_without_an_async_library_requests_run_in_threads_and_the_log_says_so_once(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch, threads_are_said: Callable[[], list[str]]
) -> None:
    for name in ("aioboto3", "aiobotocore", "aiobotocore.session"):
        monkeypatch.setitem(sys.modules, name, None)
    for number in range(2):
        with make_unclosed() as saver:
            assert asyncio.run(use(saver, f"thread-{number}")) == ["01", "00"]
            assert asyncio.run(use(saver, f"thread-{number}")) == ["01", "00"]
    (message,) = threads_are_said()
    assert "neither aiobotocore nor aioboto3 is installed" in message
    assert "[aiobotocore]" in message


def test_with_a_blocking_client_alone_async_requests_go_through_it_in_threads(
    make_unclosed: MakeSaver, client: DynamoDBClient, threads_are_said: Callable[[], list[str]]
) -> None:
    threads: set[int] = set()

    def note(**_: Any) -> None:
        threads.add(threading.get_ident())

    client.meta.events.register("before-call.dynamodb", note)
    try:
        assert asyncio.run(use(make_unclosed(client=client), "thread-1")) == ["01", "00"]
    finally:
        client.meta.events.unregister("before-call.dynamodb", note)
    assert threads
    assert threading.get_ident() not in threads
    (message,) = threads_are_said()
    assert "async_session=" in message


# Libraries that do not fit each other


def _other_botocore(monkeypatch: pytest.MonkeyPatch, requirement: str) -> None:
    """Change botocore as a later release did: aiobotocore calls a method that wants one argument more."""

    def changed(_self: Any, _one_more: Any, **_options: Any) -> None:
        raise AssertionError

    name = "compute_endpoint_resolver_builtin_defaults"
    monkeypatch.setattr(ClientArgsCreator, name, changed)
    monkeypatch.setattr(metadata, "requires", lambda _: ["aiohttp>=1", requirement])


@pytest.mark.parametrize("own", [True, False])
def test_an_aiobotocore_that_does_not_fit_is_told_with_both_versions_and_the_command(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, own: bool
) -> None:
    session = pytest.importorskip("aiobotocore.session", reason="no async client").get_session()
    _other_botocore(monkeypatch, "botocore<1.5,>=1.4")
    async_session = None if own else session
    saver = DynamoDBSaver(
        "the-table", endpoint_url=engine.endpoint_url, region_name="us-east-1", async_session=async_session
    )
    said = r"aiobotocore \S+ needs botocore <1\.5,>=1\.4, and botocore \S+ is installed; run `pip install --upgrade"
    with pytest.raises(CheckpointerConfigurationError, match=said) as raised:
        asyncio.run(saver.aget_tuple(thread_config()))
    assert isinstance(raised.value.__cause__, TypeError)


def test_an_error_inside_libraries_that_fit_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    pytest.importorskip("aiobotocore", reason="no async client")
    _other_botocore(monkeypatch, "botocore")
    saver = DynamoDBSaver("the-table", endpoint_url=engine.endpoint_url, region_name="us-east-1")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        asyncio.run(saver.aget_tuple(thread_config()))


def test_without_aiobotocore_there_is_nothing_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert misfit() is None
