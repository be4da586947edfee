"""Clients: one for blocking calls, one for each event loop; made when first needed, closed with the saver.

An async client belongs to the event loop it was made on. It is held open by an async generator that the
loop knows, so a loop that `asyncio.run` ends closes it, and a module-level saver works in the next one.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
import weakref
from collections.abc import AsyncGenerator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.dynamodb._format.limits import PARALLEL_REQUESTS, POOL_CONNECTIONS
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process
from langgraph.checkpoint.dynamodb._runtime.steps import Call

logger = logging.getLogger(__name__)

_SERVICE = "dynamodb"


@dataclass(frozen=True)
class ClientOptions:
    """What the saver's constructor was given about clients; sessions and clients are used as given."""

    region_name: str | None
    endpoint_url: str | None
    session: Any
    async_session: Any
    client: Any
    client_config: Any

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments that every kind of session makes a client with."""
        return {
            "region_name": self.region_name,
            "endpoint_url": self.endpoint_url,
            "config": self.client_config or default_config(),
        }


def default_config() -> Any:
    """The client configuration where none is given.

    Time-outs are short, since a thawed Lambda finds its connections dead; attempts are as many as fit into
    about a minute of botocore's standard back-off.
    """
    from botocore.config import Config  # noqa: PLC0415 - importing the saver should cost little.

    return Config(
        connect_timeout=3,
        read_timeout=10,
        tcp_keepalive=True,
        max_pool_connections=POOL_CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 10},
        user_agent_extra="langgraph-dynamodb",
    )


class Clients:
    """The clients of one saver and its clones."""

    def __init__(self, options: ClientOptions) -> None:
        """Take the options; nothing is opened yet."""
        self._options = options
        start_in_every_process(self)

    def start(self) -> None:
        """Have nothing open; also after a fork, which copies neither threads nor what connections are for."""
        self._lock = threading.Lock()
        self._client = self._options.client
        self._executor: ThreadPoolExecutor | None = None
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClient] = (
            weakref.WeakKeyDictionary()
        )

    # Blocking

    def send(self, call: Call) -> Any:
        """Make a request and wait for its response."""
        return getattr(self._blocking_client(), call.method)(**call.params)

    def pool(self) -> Executor:
        """The pool for requests that go out side by side."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    PARALLEL_REQUESTS, thread_name_prefix="langgraph-dynamodb"
                )
            return self._executor

    def _blocking_client(self) -> Any:
        if self._client is None:
            with self._lock:
                if self._client is None:
                    import boto3  # noqa: PLC0415 - importing the saver should cost little.

                    session: Any = self._options.session or boto3.Session()
                    self._client = session.client(_SERVICE, **self._options.arguments())
        return self._client

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
        """Make a request on the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            holder = self._loops.get(loop)
            if holder is None:
                for closed in [each for each in self._loops if each.is_closed()]:
                    del self._loops[closed]
                holder = self._loops[loop] = _LoopClient(self._async_session())
        if holder.session is None:
            return await asyncio.to_thread(self.send, call)
        return await holder.send(call, self._options.arguments())

    async def aclose(self) -> None:
        """Close the running event loop's client; it is made again when needed."""
        with self._lock:
            holder = self._loops.pop(asyncio.get_running_loop(), None)
        if holder is not None:
            await holder.close()

    def _async_session(self) -> Any:
        """The session for async clients; None where requests run on the blocking client in threads.

        A blocking client or session that was given says whose credentials to use, which cannot be carried
        over to an async session; so unless one was given too, async requests go through it in threads.
        """
        options = self._options
        if options.async_session is not None:
            return options.async_session
        if options.client is not None or options.session is not None:
            _say_once("DynamoDBSaver was given a boto3 client or session and no async_session")
            return None
        for name, factory in (("aioboto3", "Session"), ("aiobotocore.session", "get_session")):
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            return getattr(module, factory)()
        _say_once("neither aioboto3 nor aiobotocore is installed")
        return None


class _LoopClient:
    """One event loop's client, opened once and closed on the loop."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._lock = asyncio.Lock()
        self._client: Any = None
        self._holder: AsyncGenerator[Any, None] | None = None
        self._turns = asyncio.Semaphore(0)

    async def send(self, call: Call, arguments: dict[str, Any]) -> Any:
        client = await self._opened(arguments)
        # aiohttp gives a free connection to who asks first, which is the caller that has just had one.
        async with self._turns:
            return await getattr(client, call.method)(**call.params)

    async def _opened(self, arguments: dict[str, Any]) -> Any:
        if self._client is None:
            async with self._lock:
                if self._client is None:
                    holder = self._hold(arguments)
                    client = await anext(holder)
                    self._turns = asyncio.Semaphore(client.meta.config.max_pool_connections)
                    self._client, self._holder = client, holder
        return self._client

    async def _hold(self, arguments: dict[str, Any]) -> AsyncGenerator[Any, None]:
        make = getattr(self.session, "create_client", None) or self.session.client
        async with make(_SERVICE, **arguments) as client:
            try:
                yield client
            finally:
                # Requests that come after the loop began to shut down must not meet a closed client.
                self._client = None

    async def close(self) -> None:
        if self._holder is not None:
            await self._holder.aclose()


_said: set[str] = set()


def _say_once(why: str) -> None:
    if why not in _said:
        _said.add(why)
        logger.warning(
            "%s: async methods run boto3 in threads. For native async install langgraph-dynamodb[aioboto3] or"
            " langgraph-dynamodb[aiobotocore], and pass async_session= where you pass client= or session=.",
            why,
        )
