"""Clients: one for blocking calls and one for all event loops, made when first needed.

Slow initialization runs once, in an OS thread, so that no event loop is blocked. Only connections belong to a loop.
They are closed before the loop is, so a module-level saver works on the next one.
"""

import asyncio
import importlib.util
import logging
import os
import platform
import threading
import time
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from typing_extensions import override

from .._format.limits import CONNECT_SECONDS, POOL_CONNECTIONS, READ_SECONDS, RETRY_SECONDS
from ..errors import CheckpointerConfigurationError, CheckpointerUnavailableError
from ..version import __version__, requirement
from . import failures, fork
from .attempts import Attempts
from .loops import Connections, LoopConnections
from .steps import Call

logger = logging.getLogger(__name__)

_SERVICE = "dynamodb"

# The errors of a library that calls another release of its own dependency than it was made for.
_INSIDE = (AttributeError, ImportError, TypeError)


@dataclass(frozen=True)
class ClientOptions:
    """The constructor's options about clients. Sessions and clients are used as given."""

    region_name: str | None = None
    endpoint_url: str | None = None
    session: Any = None
    client: Any = None
    client_config: Any = None
    retry_seconds: float = RETRY_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    read_seconds: float = READ_SECONDS

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments with which sessions make clients."""
        return {
            "region_name": self.region_name,
            "endpoint_url": self.endpoint_url,
            "config": self.client_config or default_config(self.connect_seconds, self.read_seconds),
        }


def default_config(connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS) -> Any:
    """Return the client configuration for when none is given.

    botocore sends a request once, and `Attempts` sends it again. Two things take it a fifth of a request's CPU time.
    It need not check parameters: they are made here, from arguments that are checked. And it has a text as User-Agent,
    which it would otherwise compose twice.
    """
    from botocore.config import Config  # noqa: PLC0415 - importing the saver should cost little.

    return Config(
        connect_timeout=connect_seconds,
        read_timeout=read_seconds,
        tcp_keepalive=True,
        max_pool_connections=POOL_CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent=_user_agent(),
        parameter_validation=False,
    )


@cache
def _user_agent() -> str:
    """Return the text by which AWS and CloudTrail know the client, in the form of botocore's own."""
    import botocore  # noqa: PLC0415 - importing the saver should cost little.

    system = platform.system().lower()
    parts = {
        "langgraph-dynamodb/": __version__,
        "md/Botocore#": botocore.__version__,
        "ua/": "2.1",
        f"os/{'macos' if system == 'darwin' else system}#": platform.release(),
        "md/arch#": platform.machine().lower(),
        "lang/python#": platform.python_version(),
        "md/pyimpl#": platform.python_implementation(),
        "exec-env/": os.environ.get("AWS_EXECUTION_ENV"),
        "cfg/retry-mode#": "standard",
        "app/": os.environ.get("AWS_SDK_UA_APP_ID"),
    }
    return " ".join(f"{name}{value}" for name, value in parts.items() if value)


class Clients(Connections):
    """The clients of one saver and its clones."""

    def __init__(self, options: ClientOptions) -> None:
        """Take the options; nothing is opened yet."""
        self._options = options
        self._why_in_threads = _why_in_threads(options)
        super().__init__()

    @override
    def start(self) -> None:
        super().start()
        # Held while a client is made; an event loop never waits for it.
        self._making = threading.Lock()
        self._session = self._options.session
        self._client = self._options.client
        self._native_client: Any = None

    # Blocking

    def send(self, call: Call) -> Any:
        """Make a request, with retries, and wait for its response."""
        attempts = self._attempts(call)
        while True:
            try:
                return self._send(call)
            except Exception as error:
                wait = attempts.seconds_to_next(error)
                if wait is None:
                    self._give_up(call, error, attempts)
                    raise
            time.sleep(wait)

    def _send(self, call: Call) -> Any:
        client = self.client()
        with failures.locating(client):
            return getattr(client, call.method)(**call.params)

    def _attempts(self, call: Call) -> Attempts:
        return Attempts(
            0.0 if call.is_sent_once else self._options.retry_seconds,
            failures.is_transient,
            partial(failures.outage_remedy, _table_of(call)),
        )

    def _give_up(self, call: Call, error: Exception, attempts: Attempts) -> None:
        """Raise our error after the last attempt, if the failure may pass, or is one of the installation."""
        if isinstance(error, _INSIDE):
            told = failures.misfit()
            if told is not None:
                raise CheckpointerConfigurationError(told) from error
        if not failures.is_transient(error):
            return
        told = failures.outage_remedy(_table_of(call), error)
        failure = CheckpointerUnavailableError(f"{told}. Gave up after {attempts.spent}")
        raise failures.about_request(failure, error, attempts.number) from error

    def client(self) -> Any:
        """Return the blocking client; make it if there is none."""
        # Another thread may close it and set it to None at any time.
        client = self._client
        if client is None:
            with self._making, fork.without_forks():
                client = self._client
                if client is None:
                    client = self._client = self.session().client(_SERVICE, **self._options.arguments())
        return client

    def session(self) -> Any:
        """Return the session that the clients come from."""
        if self._session is None:
            import boto3  # noqa: PLC0415 - importing the saver should cost little.

            self._session = boto3.Session()
        return self._session

    @override
    def close(self) -> None:
        """Close the blocking client, unless it was given, and the pool. Both are made again when needed."""
        client, self._client = self._client, self._options.client
        super().close()
        if client is not None and client is not self._options.client:
            client.close()

    # Async

    async def asend(self, call: Call) -> Any:
        """Make a request on the running event loop, with retries."""
        attempts = self._attempts(call)
        while True:
            try:
                return await self.asend_once(call)
            except Exception as error:
                wait = attempts.seconds_to_next(error)
                if wait is None:
                    self._give_up(call, error, attempts)
                    raise
            await asyncio.sleep(wait)

    async def asend_once(self, call: Call) -> Any:
        """Make a request on the running event loop, once."""
        if self._why_in_threads is not None:
            _say_once(self._why_in_threads)
            return await asyncio.to_thread(self._send, call)
        opened = self._loops.get(asyncio.get_running_loop())
        if opened is None:
            opened = self.on_loop(partial(_connections, await asyncio.to_thread(self.async_client)))
        async with opened.turns:
            with failures.locating(opened.client):
                return await getattr(opened.client, call.method)(**call.params)

    def async_client(self) -> Any:
        """Return the async client, which is for every event loop; make it if there is none.

        It blocks, and needs a thread without an event loop.
        """
        with self._making, fork.without_forks():
            if self._native_client is None:
                from . import native  # noqa: PLC0415 - optional.

                self._native_client = native.make_client(_SERVICE, self.session(), self._options.arguments())
        return self._native_client


def _connections(client: Any, loop: asyncio.AbstractEventLoop) -> LoopConnections:
    return LoopConnections(loop, client, client.close, client.meta.config.max_pool_connections)


def _table_of(call: Call) -> str:
    """Return the name of the table that a request is for."""
    return str(call.params.get("TableName") or next(iter(call.params["RequestItems"])))


def _why_in_threads(options: ClientOptions) -> str | None:
    """Say why async requests run on the blocking client in OS threads, and the remedy; `None` if they do not."""
    if options.client is not None:
        return "pass session= instead of client="
    if options.session is not None:
        from boto3.session import Session  # noqa: PLC0415 - importing the saver should cost little.

        if not isinstance(options.session, Session):
            return "pass a boto3.Session as session="
    if importlib.util.find_spec("aiobotocore") is None:
        return f"pip install {requirement('aiobotocore')}"
    return None


_said: set[str] = set()


def _say_once(remedy: str) -> None:
    if remedy not in _said:
        _said.add(remedy)
        logger.warning("Async methods run boto3 in threads. For native async, %s.", remedy)
