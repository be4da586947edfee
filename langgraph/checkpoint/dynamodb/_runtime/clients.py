"""Clients: one for blocking calls and one for each event loop, made when first needed and closed with the saver.

Slow initialization runs once, in an OS thread, so that no event loop is blocked. Only connections belong to a loop.
They are closed before the loop is, so a module-level saver works on the next one.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._format.limits import (
    CONNECT_SECONDS,
    PARALLEL_REQUESTS,
    POOL_CONNECTIONS,
    READ_SECONDS,
    RETRY_SECONDS,
)
from langgraph.checkpoint.dynamodb._runtime.attempts import Attempts
from langgraph.checkpoint.dynamodb._runtime.failures import is_transient, locating, misfit, outage_remedy
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process, without_forks
from langgraph.checkpoint.dynamodb._runtime.loops import LoopEnd, run_apart
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerUnavailableError
from langgraph.checkpoint.dynamodb.version import requirement

logger = logging.getLogger(__name__)

_SERVICE = "dynamodb"

# The errors of a library that calls another release of its own dependency than it was made for.
_INSIDE = (AttributeError, ImportError, TypeError)

Opened: TypeAlias = tuple[Any, Callable[[], Awaitable[None]]]
"""A client for one event loop, and the function that closes it there."""


@dataclass(frozen=True)
class ClientOptions:
    """The constructor's options about clients. Sessions and clients are used as given."""

    region_name: str | None = None
    endpoint_url: str | None = None
    session: Any = None
    async_session: Any = None
    client: Any = None
    client_config: Any = None
    retry_seconds: float = RETRY_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    read_seconds: float = READ_SECONDS

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments with which every kind of session makes a client."""
        return {
            "region_name": self.region_name,
            "endpoint_url": self.endpoint_url,
            "config": self.client_config or default_config(self.connect_seconds, self.read_seconds),
        }


def default_config(connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS) -> Any:
    """Return the client configuration for when none is given.

    botocore sends a request once, and `Attempts` sends it again.
    """
    from botocore.config import Config  # noqa: PLC0415 - importing the saver should cost little.

    return Config(
        connect_timeout=connect_seconds,
        read_timeout=read_seconds,
        tcp_keepalive=True,
        max_pool_connections=POOL_CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="langgraph-dynamodb",
    )


class Clients:
    """The clients of one saver and its clones."""

    def __init__(self, options: ClientOptions) -> None:
        """Take the options; nothing is opened yet."""
        self._options = options
        # aioboto3 depends on it, so this covers both.
        self._has_library = importlib.util.find_spec("aiobotocore") is not None
        start_in_every_process(self)

    def start(self) -> None:
        """Start with nothing open; also after a fork, which copies neither OS threads nor usable connections."""
        self._lock = threading.Lock()
        # Held while a client is made; an event loop never waits for it.
        self._making = threading.Lock()
        self._session = self._options.session
        self._client = self._options.client
        self._native_client: Any = None
        self._executor: ThreadPoolExecutor | None = None
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClient] = {}
        weakref.finalize(self, _let_go, self._loops).atexit = False

    # Blocking

    def send(self, call: Call) -> Any:
        """Make a request, with retries, and wait for its response."""
        attempts = self._attempts(call, native=False)
        while True:
            try:
                return self._send(call)
            except Exception as error:
                wait = attempts.seconds_to_next(error)
                if wait is None:
                    self._give_up(call, error, attempts, native=False)
                    raise
            time.sleep(wait)

    def _send(self, call: Call) -> Any:
        client = self.client()
        with locating(client):
            return getattr(client, call.method)(**call.params)

    def _attempts(self, call: Call, *, native: bool) -> Attempts:
        once = call.is_sent_once or self._has_own_retries(native=native)
        return Attempts(
            0.0 if once else self._options.retry_seconds,
            is_transient,
            partial(outage_remedy, _table_of(call)),
        )

    def _give_up(self, call: Call, error: Exception, attempts: Attempts, *, native: bool) -> None:
        """Raise our error after the last attempt, if the failure may pass, or is one of the installation."""
        if native and isinstance(error, _INSIDE):
            told = misfit()
            if told is not None:
                raise CheckpointerConfigurationError(told) from error
        if not is_transient(error):
            return
        # How often a client with its own retries has tried is in botocore's message.
        spent = "" if self._has_own_retries(native=native) else f". Gave up after {attempts.spent}"
        raise CheckpointerUnavailableError(outage_remedy(_table_of(call), error) + spent) from error

    def _has_own_retries(self, *, native: bool) -> bool:
        """Tell whether a client retries by itself: a given one does, and one made with a given configuration."""
        options = self._options
        return options.client_config is not None or (options.client is not None and not native)

    def pool(self) -> Executor:
        """Return the pool for parallel requests."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    PARALLEL_REQUESTS, thread_name_prefix="langgraph-dynamodb"
                )
            return self._executor

    def client(self) -> Any:
        """Return the blocking client; make it if there is none."""
        # Another thread may close it and set it to None at any time.
        client = self._client
        if client is None:
            with self._making, without_forks():
                client = self._client
                if client is None:
                    client = self._client = self.session().client(_SERVICE, **self._options.arguments())
        return client

    def session(self) -> Any:
        """Return the session that the blocking client comes from."""
        if self._session is None:
            import boto3  # noqa: PLC0415 - importing the saver should cost little.

            self._session = boto3.Session()
        return self._session

    def close(self) -> None:
        """Close the blocking client, unless it was given, and the pool. Both are made again when needed."""
        with self._lock:
            client, executor = self._client, self._executor
            self._client, self._executor = self._options.client, None
        if executor is not None:
            executor.shutdown()
        if client is not None and client is not self._options.client:
            client.close()

    # Async

    async def asend(self, call: Call) -> Any:
        """Make a request on the running event loop, with retries."""
        attempts = self._attempts(call, native=self._is_native)
        while True:
            try:
                return await self.asend_once(call)
            except Exception as error:
                wait = attempts.seconds_to_next(error)
                if wait is None:
                    self._give_up(call, error, attempts, native=self._is_native)
                    raise
            await asyncio.sleep(wait)

    @property
    def has_own_retries(self) -> bool:
        """Whether the clients of event loops send requests again by themselves."""
        return self._has_own_retries(native=self._is_native)

    async def asend_once(self, call: Call) -> Any:
        """Make a request on the running event loop, once."""
        if not self._is_native:
            return await asyncio.to_thread(self._send, call)
        loop = asyncio.get_running_loop()
        with self._lock:
            holder = self._loops.get(loop)
            if holder is None:
                for closed in [each for each in self._loops if each.is_closed()]:
                    del self._loops[closed]
                holder = self._loops[loop] = _LoopClient(loop)
        return await holder.send(call, self._open)

    async def aclose(self) -> None:
        """Close the running event loop's connections; they are opened again when needed."""
        with self._lock:
            holder = self._loops.get(asyncio.get_running_loop())
        if holder is not None:
            await holder.close()

    @property
    def _is_native(self) -> bool:
        """Whether there is an async client. Otherwise requests run on the blocking client in OS threads.

        A given blocking client or session determines the credentials, which cannot be carried over to an async
        session. So unless an async session was given too, async requests run on the blocking client in OS threads.
        """
        options = self._options
        if options.async_session is not None:
            return True
        if options.client is not None or options.session is not None:
            _say_once("DynamoDBSaver was given a boto3 client or session and no async_session")
            return False
        if not self._has_library:
            _say_once("neither aiobotocore nor aioboto3 is installed")
            return False
        return True

    async def _open(self) -> Opened:
        """Return a client for the running event loop, made in an OS thread, and the function that closes it there."""
        if self._options.async_session is None:
            client = await asyncio.to_thread(self._made_native_client)
            return client, client.close
        session = self._options.async_session
        make = getattr(session, "create_client", None) or session.client
        context = make(_SERVICE, **self._options.arguments())

        async def entered() -> Any:
            return await context.__aenter__()

        def opened() -> Any:
            with without_forks():
                return run_apart(entered())

        # It opens its connections later, on the loop of its first request.
        client = await asyncio.to_thread(opened)
        return client, partial(context.__aexit__, None, None, None)

    def _made_native_client(self) -> Any:
        with self._making, without_forks():
            if self._native_client is None:
                from langgraph.checkpoint.dynamodb._runtime import native  # noqa: PLC0415 - optional.

                self._native_client = native.make_client(_SERVICE, self.session(), self._options.arguments())
        return self._native_client


class _LoopClient:
    """One event loop's client, opened once and closed on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._end = LoopEnd.of(loop)
        self._opening: asyncio.Task[Any] | None = None
        self._turns = asyncio.Semaphore(0)
        self._client: Any = None

    async def send(self, call: Call, open_: Callable[[], Awaitable[Opened]]) -> Any:
        client = self._client
        if client is None:
            if self._opening is None:
                self._opening = asyncio.create_task(self._open(open_))
            # Other callers wait for it too, so cancelling one caller must not cancel it.
            client = await asyncio.shield(self._opening)
        # aiohttp gives a free connection to the first to ask, which is the caller that just returned one.
        async with self._turns:
            with locating(client):
                return await getattr(client, call.method)(**call.params)

    async def _open(self, open_: Callable[[], Awaitable[Opened]]) -> Any:
        try:
            client, self._close = await open_()
        finally:
            self._opening = None
        self._turns = asyncio.Semaphore(client.meta.config.max_pool_connections)
        self._client = client
        self._end.open.add(self)
        return client

    async def close(self) -> None:
        if self._client is not None:
            self._client = None
            self._end.open.discard(self)
            await self._close()

    def close_soon(self) -> None:
        if self._client is not None:
            self._end.close_soon(self)


def _table_of(call: Call) -> str:
    """Return the name of the table that a request is for."""
    return str(call.params.get("TableName") or next(iter(call.params["RequestItems"])))


def _let_go(loops: dict[asyncio.AbstractEventLoop, _LoopClient]) -> None:
    """Close the connections of a saver that was garbage-collected."""
    for holder in list(loops.values()):
        holder.close_soon()


_said: set[str] = set()


def _say_once(why: str) -> None:
    if why not in _said:
        _said.add(why)
        logger.warning(
            "%s: async methods run boto3 in threads. For native async, pip install %s, and pass async_session= where"
            " you pass client= or session=.",
            why,
            requirement("aiobotocore"),
        )
