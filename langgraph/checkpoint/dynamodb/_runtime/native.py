"""The async client: made once for all event loops. Each loop has its own connections and nothing else.

Loading the service's model, its endpoint rules and the certificates takes long, and none of them belongs to a loop.
This module is loaded only if async methods run natively.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from functools import cache, partial
from typing import Any

import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import get_session
from botocore.credentials import RefreshableCredentials
from botocore.httpsession import create_urllib3_context, get_cert_path

# What a session of boto3 calls its profile if it has none.
_NO_PROFILE = "default"


def make_client(service_name: str, session: Any, arguments: dict[str, Any]) -> Any:
    """Make a client that may be used on every event loop. Blocks: call it in a thread.

    Args:
        service_name: The service.
        session: The boto3 session whose credentials, region and profile are used.
        arguments: The keyword arguments of a session's `create_client`.

    Returns:
        The client; its `close` closes the connections of the running event loop.
    """
    native: Any = get_session()
    native.register_component("credential_provider", _CredentialChain(session))
    if session.profile_name != _NO_PROFILE:
        native.set_config_variable("profile", session.profile_name)
    region_name = arguments["region_name"] or session.region_name
    options = {**arguments, "region_name": region_name, "config": _config(arguments["config"])}
    make = native.create_client(service_name, **options)

    async def opened() -> Any:
        return await make.__aenter__()

    # nest_asyncio's `asyncio.run` would leave its loop open. Debug mode would log that this is slow, although no other
    # event loop waits for it.
    with closing(asyncio.new_event_loop()) as loop:
        loop.set_debug(False)
        return loop.run_until_complete(opened())


def _config(given: Any) -> Any:
    """Return the given configuration, changed to make one HTTP session per loop, of the class that it names."""
    config: Any = AioConfig().merge(given)
    config.connector_args = getattr(given, "connector_args", config.connector_args)
    config.http_session_cls = partial(LoopSessions, getattr(given, "http_session_cls", AIOHTTPSession))
    return config


class _CredentialChain:
    """The credential chain of boto3. aiobotocore's own uses locks that belong to a loop."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def load_credentials(self) -> Any:
        found = self._session.get_credentials()
        return None if found is None else _AsyncCredentials(found)


class _AsyncCredentials:
    """Credentials that are renewed in a thread, so that the event loop is not blocked."""

    def __init__(self, credentials: Any) -> None:
        self.method = credentials.method
        self._credentials = credentials

    async def get_frozen_credentials(self) -> Any:
        credentials = self._credentials
        if hasattr(credentials, "aget_frozen_credentials"):
            # Those of tenants, for which many tasks may wait at once.
            return await credentials.aget_frozen_credentials()
        if isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed():
            return await asyncio.to_thread(credentials.get_frozen_credentials)
        return credentials.get_frozen_credentials()

    async def get_account_id(self) -> Any:
        return (await self.get_frozen_credentials()).account_id

    def get_deferred_property(self, property_name: str) -> Any:
        """Return a function that returns a property later. It is called for the account's id only."""
        del property_name
        return self.get_account_id


class LoopSessions:
    """Replaces aiobotocore's HTTP session by one for each event loop."""

    def __init__(self, kind: Any, **options: Any) -> None:
        """Take the class of HTTP sessions, and the options that aiobotocore passes to it."""
        self._make = partial(kind, **options)
        special = options["client_cert"] or options["proxies"]
        if kind is AIOHTTPSession and options["verify"] and not special:
            self._make = partial(_PlainSession, certificates=_certificates(options["verify"]), **options)
        self._sessions: dict[asyncio.AbstractEventLoop, Any] = {}

    async def __aenter__(self) -> LoopSessions:
        """Return itself; the first request of each loop opens a session."""
        return self

    async def close(self) -> None:
        """Close the running event loop's session; the next request opens another."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.__aexit__(None, None, None)

    async def send(self, request: Any) -> Any:
        """Send a request over a connection of the running event loop."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = self._make()
            await session.__aenter__()
        return await session.send(request)


@cache
def _certificates(verify: Any) -> Any:
    """Make the TLS context that aiobotocore would make for each session. Loading its certificates takes longest."""
    context = create_urllib3_context()
    context.check_hostname = True
    context.load_verify_locations(get_cert_path(verify))
    return context


class _PlainSession(AIOHTTPSession):
    """An aiobotocore HTTP session without a proxy or a client certificate, which shares a given TLS context."""

    def __init__(self, *, certificates: Any, **options: Any) -> None:
        super().__init__(**options)
        connect_seconds, read_seconds = options["timeout"]
        self._open: aiohttp.ClientSession | None = None
        self._make = partial(
            aiohttp.ClientSession,
            timeout=aiohttp.ClientTimeout(sock_connect=connect_seconds, sock_read=read_seconds),
            skip_auto_headers={"CONTENT-TYPE"},
            auto_decompress=False,
        )
        self._make_connector = partial(
            aiohttp.TCPConnector,
            limit=options["max_pool_connections"],
            ssl=certificates,
            **options["connector_args"],
        )

    async def _get_session(self, _proxy_url: None) -> aiohttp.ClientSession:
        """Return aiohttp's session. aiobotocore's own method would load the certificates again."""
        if self._open is None:
            self._open = self._make(connector=self._make_connector())
        return self._open

    async def __aexit__(self, *exception: Any) -> None:
        if self._open is not None:
            await self._open.close()
        await super().__aexit__(*exception)
