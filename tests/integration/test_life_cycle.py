"""Clients over the life of a saver: opened when needed, one for each event loop, closed with it, and as given."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver, _clients
from tests.support.samples import METADATA, checkpoint_of, config_of, store, values_of
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

PROJECT_FOLDER = Path(__file__).parents[2]
BIG = "x" * 50_000


class WatchedSession:
    """A boto3 session that notes the clients it makes, with their options."""

    def __init__(self) -> None:
        """Take the session of this environment."""
        self.options: list[dict[str, Any]] = []
        self.clients: list[Any] = []
        self._session: Any = boto3.Session()

    def client(self, service_name: str, **options: Any) -> Any:
        """Make a client, as `boto3.Session.client` does."""
        self.options.append(options)
        self.clients.append(self._session.client(service_name, **options))
        return self.clients[-1]


class WatchedAsyncSession:
    """aiobotocore's session, which notes its clients' options and how many of them are open."""

    def __init__(self) -> None:
        """Take the session of this environment."""
        self.options: list[dict[str, Any]] = []
        self.open = 0
        self._session: Any = importlib.import_module("aiobotocore.session").get_session()

    def create_client(self, service_name: str, **options: Any) -> WatchedAsyncClient:
        """Make a client that is open within a context, as aiobotocore's session does."""
        self.options.append(options)
        return WatchedAsyncClient(self, self._session.create_client(service_name, **options))


class WatchedAsyncClient:
    """The context of one client; no generator, as aiobotocore's is none."""

    def __init__(self, session: WatchedAsyncSession, context: Any) -> None:
        """Watch the context of a client."""
        self._session = session
        self._context = context

    async def __aenter__(self) -> Any:
        """Open the client."""
        client = await self._context.__aenter__()
        self._session.open += 1
        return client

    async def __aexit__(self, *exception: Any) -> None:
        """Close the client."""
        await self._context.__aexit__(*exception)
        self._session.open -= 1


@pytest.fixture
def make(engine: Engine, table_name: str) -> Callable[..., DynamoDBSaver]:
    """Give a factory of savers that nothing closes but the test."""

    def make(**options: Any) -> DynamoDBSaver:
        reach = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        return DynamoDBSaver(table_name, **(reach | options))

    return make


async def _use(saver: DynamoDBSaver, thread_id: str, steps: int = 2) -> list[str]:
    """Store some checkpoints with writes, and list them."""
    config = config_of(thread_id)
    for number in range(steps):
        checkpoint = checkpoint_of(f"{number:02}", {"big": BIG + str(number)})
        config = await saver.aput(config, checkpoint, METADATA, checkpoint["channel_versions"])
        await saver.aput_writes(config, [("channel", number)], "task")
    found = await saver.aget_tuple(config_of(thread_id))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"big": BIG + str(steps - 1)}
    assert found.pending_writes == [("task", "channel", steps - 1)]
    return [each.config["configurable"]["checkpoint_id"] async for each in saver.alist(config_of(thread_id))]


# Event loops


def test_a_plain_saver_opens_a_client_on_each_event_loop_and_closes_it_with_the_loop(
    make: Callable[..., DynamoDBSaver],
) -> None:
    session = WatchedAsyncSession()
    saver = make(async_session=session)
    assert session.options == []
    for number in range(3):
        assert asyncio.run(_use(saver, f"thread-{number}")) == ["01", "00"]
        assert (len(session.options), session.open) == (number + 1, 0)


SEVERAL_LOOPS = """
import asyncio, gc, sys
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.dynamodb import DynamoDBSaver

saver = DynamoDBSaver(sys.argv[1])

async def handle(number):
    config = {"configurable": {"thread_id": "thread-1", "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "id": str(number), "channel_values": {"big": "x" * 50_000},
        "channel_versions": {"big": number}}
    await saver.aput(config, checkpoint, {"source": "loop", "step": number, "parents": {}}, {"big": number})
    async for found in saver.alist(config):
        return found.config["configurable"]["checkpoint_id"]

print(*[asyncio.run(handle(number)) for number in range(1, 4)])
del saver
gc.collect()
"""


def _run(program: str, *arguments: str, environment: dict[str, str] | None = None) -> tuple[str, str]:
    """Run a program in a fresh process in which every warning is shown, and return what it printed."""
    done = subprocess.run(  # noqa: S603  # This interpreter, with a program of this file.
        [sys.executable, "-W", "always::ResourceWarning", "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=PROJECT_FOLDER,
        env=environment,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_a_process_with_several_event_loops_leaves_nothing_open(engine: Engine, table_name: str) -> None:
    printed, complaints = _run(SEVERAL_LOOPS, table_name, environment=engine.environment())
    assert printed == "1 2 3"
    assert complaints == ""


def test_event_loops_of_several_threads_have_a_client_each(make: Callable[..., DynamoDBSaver]) -> None:
    session = WatchedAsyncSession()
    saver = make(async_session=session)
    together = threading.Barrier(4)

    async def use(number: int) -> list[str]:
        await asyncio.to_thread(together.wait)
        return await _use(saver, f"thread-{number}")

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: asyncio.run(use(number)), range(4)))
    assert results == [["01", "00"]] * 4
    assert (len(session.options), session.open) == (4, 0)


async def test_tasks_that_need_the_client_at_once_share_one(make: Callable[..., DynamoDBSaver]) -> None:
    session = WatchedAsyncSession()
    async with make(async_session=session) as saver:
        await asyncio.gather(*(_use(saver, f"thread-{number}") for number in range(8)))
        assert (len(session.options), session.open) == (1, 1)
    assert session.open == 0


async def test_a_list_that_is_left_early_and_a_cancelled_call_leave_the_saver_usable(
    make: Callable[..., DynamoDBSaver],
) -> None:
    session = WatchedAsyncSession()
    async with make(async_session=session) as saver:
        cancelled = asyncio.create_task(_use(saver, "cancelled"))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert await _use(saver, "thread-1") == ["01", "00"]
        async for found in saver.alist(config_of()):
            assert found.config["configurable"]["checkpoint_id"] == "01"
            break
        assert await _use(saver, "thread-2") == ["01", "00"]
    assert session.open == 0


# Threads


def test_many_threads_use_one_saver_with_one_client(make: Callable[..., DynamoDBSaver]) -> None:
    session = WatchedSession()
    together = threading.Barrier(32)

    def use(number: int) -> tuple[list[str], Any]:
        together.wait()
        config = config_of(f"thread-{number}", f"namespace-{number % 2}")
        parent = config
        for step in range(3):
            parent = store(saver, parent, str(step), {"number": number, "big": BIG + str(step)})
            saver.put_writes(parent, [("channel", step)], "task")
        listed = [each.config["configurable"]["checkpoint_id"] for each in saver.list(config)]
        return listed, values_of(saver, config)["number"]

    with make(session=session) as saver, ThreadPoolExecutor(32) as pool:
        results = list(pool.map(use, range(32)))
    assert results == [(["2", "1", "0"], number) for number in range(32)]
    assert len(session.clients) == 1


# Context managers


def test_a_saver_can_be_used_again_after_it_was_closed(
    make: Callable[..., DynamoDBSaver], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = WatchedSession()
    closed: list[Any] = []
    with make(session=session) as saver:
        assert isinstance(saver, DynamoDBSaver)
        store(saver, config_of(), "1", {"big": BIG})
        (client,) = session.clients
        monkeypatch.setattr(client, "close", lambda: closed.append(client))
    assert closed == [client]
    assert values_of(saver, config_of()) == {"big": BIG}
    assert len(session.clients) == 2
    saver.close()
    saver.close()
    assert closed == [client]


async def test_a_saver_can_be_used_again_after_its_async_client_was_closed(
    make: Callable[..., DynamoDBSaver],
) -> None:
    session = WatchedAsyncSession()
    async with make(async_session=session) as saver:
        assert isinstance(saver, DynamoDBSaver)
        assert await _use(saver, "thread-1") == ["01", "00"]
    assert (len(session.options), session.open) == (1, 0)
    assert await _use(saver, "thread-2") == ["01", "00"]
    assert (len(session.options), session.open) == (2, 1)
    await saver.aclose()
    await saver.aclose()
    assert session.open == 0


async def test_leaving_the_async_context_closes_the_blocking_client_too(
    make: Callable[..., DynamoDBSaver], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = WatchedSession()
    closed: list[str] = []
    async with make(session=session, async_session=WatchedAsyncSession()) as saver:
        store(saver, config_of(), "1", {})
        monkeypatch.setattr(session.clients[0], "close", lambda: closed.append("closed"))
    assert closed == ["closed"]


def test_an_exception_in_the_context_is_not_swallowed(make: Callable[..., DynamoDBSaver]) -> None:
    with pytest.raises(LookupError, match="of the caller"), make():
        raise LookupError("of the caller")


# Clones


def test_a_clone_shares_the_clients_and_the_memory(
    make: Callable[..., DynamoDBSaver], table_name: str, client: DynamoDBClient
) -> None:
    session = WatchedSession()
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    original = make(session=session, serde=serde)
    clone = original.with_allowlist([("somewhere", "Something")])
    assert isinstance(clone, DynamoDBSaver)
    assert clone is not original
    assert clone.serde is not serde
    parent = store(original, config_of(), "1", {"big": BIG})
    traffic = Traffic(session.clients[0].meta.events)
    clone.put(parent, checkpoint_of("2", {"big": BIG}), METADATA, {})
    # It neither reads the parent back nor writes again what the original wrote: it only looks at the thread.
    assert traffic.operations == ["PutItem", "GetItem"]
    assert values_of(original, config_of()) == {"big": BIG}
    assert len(session.clients) == 1
    clone.close()
    assert values_of(DynamoDBSaver(table_name, client=client), config_of()) == {"big": BIG}


# What was given


def test_a_client_that_was_given_is_used_and_stays_open(
    make: Callable[..., DynamoDBSaver], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as given:
        traffic = Traffic(given.meta.events)
        with monkeypatch.context() as watched:
            watched.setattr(given, "close", lambda: closed.append("closed"))
            # Whatever else was said of clients does not count: this one would reach nothing.
            with make(client=given, endpoint_url="http://127.0.0.1:9", region_name="nowhere-1") as saver:
                store(saver, config_of(), "1", {"a": 1})
            assert values_of(saver, config_of()) == {"a": 1}
            saver.close()
    assert closed == []
    assert "PutItem" in traffic.operations


def test_a_session_and_a_configuration_that_were_given_are_used_as_they_are(
    make: Callable[..., DynamoDBSaver], engine: Engine
) -> None:
    session = WatchedSession()
    config = Config(user_agent_extra="given", retries={"total_max_attempts": 1})
    with make(session=session, client_config=config) as saver:
        store(saver, config_of(), "1", {})
    (options,) = session.options
    assert options["config"] is config
    assert (options["endpoint_url"], options["region_name"]) == (engine.endpoint_url, engine.region_name)


async def test_the_async_client_is_made_with_the_same_options(make: Callable[..., DynamoDBSaver]) -> None:
    session = WatchedAsyncSession()
    config = importlib.import_module("aiobotocore.config").AioConfig(user_agent_extra="given")
    async with make(async_session=session, client_config=config) as saver:
        await _use(saver, "thread-1")
    (options,) = session.options
    assert options["config"] is config


def test_without_a_configuration_both_clients_get_the_same_bounded_one(
    make: Callable[..., DynamoDBSaver],
) -> None:
    blocking, native = WatchedSession(), WatchedAsyncSession()
    with make(session=blocking, async_session=native) as saver:
        store(saver, config_of("blocking"), "1", {})
        asyncio.run(_use(saver, "native"))
    for options in (*blocking.options, *native.options):
        config = options["config"]
        assert config.tcp_keepalive
        assert config.connect_timeout <= 5
        assert config.read_timeout <= 30
        assert config.max_pool_connections >= 50
        assert config.retries["mode"] == "standard"


def test_a_session_of_aiobotocore_is_taken(make: Callable[..., DynamoDBSaver]) -> None:
    session = importlib.import_module("aiobotocore.session").get_session()
    assert asyncio.run(_use(make(async_session=session), "thread-1")) == ["01", "00"]


def test_a_session_of_aioboto3_is_taken(make: Callable[..., DynamoDBSaver]) -> None:
    aioboto3 = pytest.importorskip("aioboto3", reason="aioboto3 is not in this environment")
    assert asyncio.run(_use(make(async_session=aioboto3.Session()), "thread-1")) == ["01", "00"]


# Without an async library


@pytest.fixture
def threads_are_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[], list[str]]:
    """Give what the log says of threads, from a process that has not said it yet."""
    monkeypatch.setattr(_clients, "_said", set())
    caplog.set_level(logging.WARNING, logger=_clients.__name__)
    return lambda: [each.getMessage() for each in caplog.records if each.name == _clients.__name__]


def test_without_an_async_library_requests_run_in_threads_and_the_log_says_so_once(
    make: Callable[..., DynamoDBSaver],
    monkeypatch: pytest.MonkeyPatch,
    threads_are_said: Callable[[], list[str]],
) -> None:
    for name in ("aioboto3", "aiobotocore", "aiobotocore.session"):
        monkeypatch.setitem(sys.modules, name, None)
    for number in range(2):
        with make() as saver:
            assert asyncio.run(_use(saver, f"thread-{number}")) == ["01", "00"]
            assert asyncio.run(_use(saver, f"thread-{number}")) == ["01", "00"]
    (message,) = threads_are_said()
    assert "neither aioboto3 nor aiobotocore is installed" in message
    assert "langgraph-dynamodb[aioboto3]" in message
    assert "langgraph-dynamodb[aiobotocore]" in message


def test_with_a_blocking_client_alone_async_requests_go_through_it_in_threads(
    make: Callable[..., DynamoDBSaver], client: DynamoDBClient, threads_are_said: Callable[[], list[str]]
) -> None:
    threads: set[int] = set()

    def note(**_: Any) -> None:
        threads.add(threading.get_ident())

    client.meta.events.register("before-call.dynamodb", note)
    try:
        assert asyncio.run(_use(make(client=client), "thread-1")) == ["01", "00"]
    finally:
        client.meta.events.unregister("before-call.dynamodb", note)
    assert threads
    assert threading.get_ident() not in threads
    (message,) = threads_are_said()
    assert "async_session=" in message


# Imports


IMPORT = """
import sys
from langgraph.checkpoint.dynamodb import DynamoDBSaver
DynamoDBSaver("the-table")
print(*sorted({"aiohttp", "aioboto3", "aiobotocore", "boto3", "botocore"} & sys.modules.keys()))
"""


def test_importing_and_making_a_saver_loads_no_client_library() -> None:
    assert _run(IMPORT) == ("", "")
