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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.args import ClientArgsCreator
from botocore.config import Config
from botocore.validate import ParamValidator

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime import clients
from langgraph.checkpoint.dynamodb._runtime.failures import misfit
from tests.conftest import MakeSaver
from tests.support.checkpoints import store, stored_values, thread_config
from tests.support.operations import Side, ask, both_sides
from tests.support.options import SessionOfMine
from tests.support.traffic import Traffic
from tests.support.watched import WatchedSession, use

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


async def test_a_session_and_a_configuration_that_were_given_are_those_of_both_clients(
    make_unclosed: MakeSaver, engine: Engine
) -> None:
    session = WatchedSession()
    config = importlib.import_module("aiobotocore.config").AioConfig(user_agent_extra="given")
    async with make_unclosed(session=session, client_config=config) as saver:
        store(saver, thread_config("blocking"), "1", {})
        await use(saver, "native")
        both = [*session.clients, await asyncio.to_thread(saver.transport.async_client)]
    assert len(both) == 2
    for client in both:
        assert client.meta.config.user_agent_extra == "given"
        assert (client.meta.endpoint_url, client.meta.region_name) == (
            engine.endpoint_url,
            engine.region_name,
        )


def test_without_a_configuration_both_clients_get_the_same_bounded_one(make_unclosed: MakeSaver) -> None:
    with make_unclosed() as saver:
        for client in (saver.transport.client(), saver.transport.async_client()):
            config = client.meta.config
            assert config.tcp_keepalive
            assert config.connect_timeout <= 5
            assert config.read_timeout <= 30
            assert config.max_pool_connections >= 50
            assert config.retries["mode"] == "standard"


def _client(saver: DynamoDBSaver, side: Side) -> Any:
    return saver.transport.async_client() if side == "async" else saver.transport.client()


def _sent(client: Any, name: str) -> list[str]:
    """Give what a client sends in a header from now on."""
    sent: list[str] = []

    def note(request: Any, **_: Any) -> None:
        header = request.headers[name]
        sent.append(header.decode() if isinstance(header, bytes) else header)

    client.meta.events.register("before-send.dynamodb", note)
    return sent


@both_sides
def test_without_a_configuration_requests_cost_less_than_botocores(
    make_unclosed: MakeSaver, monkeypatch: pytest.MonkeyPatch, side: Side
) -> None:
    """They are not checked twice, and their User-Agent is composed once: in the form of botocore's own."""
    monkeypatch.setattr(ParamValidator, "validate", None)
    with make_unclosed() as saver:
        sent = _sent(_client(saver, side), "User-Agent")
        ask(side, saver, "get_tuple", thread_config())
    config: Any = boto3.client("dynamodb", config=Config(retries={"mode": "standard"})).meta.config
    usual = config.user_agent
    assert sent[0].startswith("langgraph-dynamodb/")
    # botocore also notes features of a client, as `m/` and letters.
    parts = [each for each in usual.split() if not each.startswith(("m/", "Boto3/"))]
    assert set(parts) <= {*sent[0].split(), *usual.split()[-1:]}


PROFILES = """
[profile agents]
region = eu-west-3
aws_access_key_id = {key}
aws_secret_access_key = secret
services = here
[services here]
dynamodb =
  endpoint_url = {endpoint_url}
"""


@both_sides
def test_a_profile_of_a_session_holds_on_both_sides(
    engine: Engine, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: Side
) -> None:
    # DynamoDB Local keeps the tables of one key and region apart from those of others.
    config, key = tmp_path / "config", "AKIDPROFILE"
    config.write_text(PROFILES.format(key=key, endpoint_url=engine.endpoint_url), encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name)
    with DynamoDBSaver(table_name, session=boto3.Session(profile_name="agents")) as saver:
        made = _client(saver, side)
        assert made.meta.endpoint_url == engine.endpoint_url
        signed = _sent(made, "Authorization")
        with contextlib.suppress(CheckpointerConfigurationError):
            ask(side, saver, "get_tuple", thread_config())
    assert f"Credential={key}/" in signed[0]
    assert "/eu-west-3/dynamodb/" in signed[0]


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
    monkeypatch.setitem(sys.modules, "aiobotocore", None)
    for number in range(2):
        with make_unclosed() as saver:
            assert asyncio.run(use(saver, f"thread-{number}")) == ["01", "00"]
            assert asyncio.run(use(saver, f"thread-{number}")) == ["01", "00"]
    (message,) = threads_are_said()
    assert "pip install" in message
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
    assert "pass session= instead of client=" in message


def test_with_another_kind_of_session_async_requests_run_in_threads(
    make_unclosed: MakeSaver, threads_are_said: Callable[[], list[str]]
) -> None:
    assert asyncio.run(use(make_unclosed(session=SessionOfMine()), "thread-1")) == ["01", "00"]
    (message,) = threads_are_said()
    assert "pass a boto3.Session as session=" in message


# Libraries that do not fit each other


def _other_botocore(monkeypatch: pytest.MonkeyPatch, requirement: str) -> None:
    """Change botocore as a later release did: aiobotocore calls a method that wants one argument more."""

    def changed(_self: Any, _one_more: Any, **_options: Any) -> None:
        raise AssertionError

    name = "compute_endpoint_resolver_builtin_defaults"
    monkeypatch.setattr(ClientArgsCreator, name, changed)
    monkeypatch.setattr(metadata, "requires", lambda _: ["aiohttp>=1", requirement])


def test_an_aiobotocore_that_does_not_fit_is_told_with_both_versions_and_the_command(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    _other_botocore(monkeypatch, "botocore<1.5,>=1.4")
    saver = DynamoDBSaver("the-table", endpoint_url=engine.endpoint_url, region_name="us-east-1")
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
