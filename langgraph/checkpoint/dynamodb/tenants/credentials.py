"""`TenantCredentials`: sessions whose credentials are those of the tenant that a context variable names.

A client asks its session's credentials for a frozen copy before it signs a request. OS threads and tasks that LangGraph
and the saver start run in copies of the caller's context, so they sign for the caller's tenant too. Without a tenant
nothing is signed.
"""

from __future__ import annotations

import asyncio
import datetime
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from botocore.credentials import ReadOnlyCredentials

from langgraph.checkpoint.dynamodb._format.limits import TENANT_PATTERN
from langgraph.checkpoint.dynamodb._runtime.connection import tenant_sessions
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process, without_forks
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError

if TYPE_CHECKING:
    import boto3
    from aiobotocore.session import AioSession

Fetch: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Returns a tenant's credentials as STS does: `AccessKeyId`, `SecretAccessKey`, `SessionToken`, `Expiration`."""

# Credentials are fetched anew so long before they expire. AWS's clients do the same.
_REFRESH_SECONDS = 300.0
TENANTS_MAX = 10_000
# Locks are shared by tenants: fetches of one tenant exclude each other, and those of most others do not.
_LOCKS = 64


@dataclass(frozen=True)
class _Fetched:
    credentials: ReadOnlyCredentials
    expires_at: float

    def seconds_left(self, now: float) -> float:
        return self.expires_at - now


class TenantCredentials:
    """Credentials of many tenants for one saver.

    Example:
        ```python
        credentials = TenantCredentials(AssumeTenantRole("arn:aws:iam::123456789012:role/tenants"))
        saver = DynamoDBSaver(
            "langgraph-checkpoints",
            session=credentials.session(),
            async_session=credentials.async_session(),
        )
        with credentials.tenant("acme"):
            graph.invoke(inputs, {"configurable": {"thread_id": "acme/thread-1"}})
        ```

    Args:
        fetch: Returns a tenant's credentials, such as `AssumeTenantRole`. It is called in an OS thread, once for each
            tenant and again 5 minutes before the credentials expire.
        tenants_max: How many tenants' credentials to keep: those used last. Others are fetched again.
        clock: Returns the time, in epoch seconds.
    """

    def __init__(
        self, fetch: Fetch, *, tenants_max: int = TENANTS_MAX, clock: Callable[[], float] = time.time
    ) -> None:
        """Take the source of credentials. Nothing is fetched yet."""
        self._fetch = fetch
        self._tenants_max = tenants_max
        self._clock = clock
        self._tenant: ContextVar[str | None] = ContextVar("langgraph_dynamodb_tenant", default=None)
        self._fetched: OrderedDict[str, _Fetched] = OrderedDict()
        start_in_every_process(self)

    def start(self) -> None:
        """Make the locks; also after a fork. Credentials stay valid in a child."""
        self._lock = threading.Lock()
        self._fetching = [threading.Lock() for _ in range(_LOCKS)]

    @contextmanager
    def tenant(self, name: Any) -> Iterator[None]:
        """Sign the requests of a block as a tenant, also in the tasks and OS threads that the block starts.

        Args:
            name: The tenant's name: letters, digits, dots, underscores and hyphens.

        Raises:
            CheckpointerInputError: The name has other characters.
        """
        if not isinstance(name, str) or not re.fullmatch(TENANT_PATTERN, name):
            msg = f"{name!r} is not a tenant's name; give 1 to 128 letters, digits, dots, underscores and hyphens"
            raise CheckpointerInputError(msg)
        token = self._tenant.set(name)
        try:
            yield
        finally:
            self._tenant.reset(token)

    def session(self) -> boto3.Session:
        """Return a session for a saver's `session`."""
        with without_forks():
            import boto3  # noqa: PLC0415 - importing the package should cost little.
            import botocore.session  # noqa: PLC0415

            session: Any = botocore.session.get_session()
        session.register_component("credential_provider", _Provider(_Credentials(self)))
        made = boto3.Session(botocore_session=session)
        tenant_sessions.add(made)
        return made

    def async_session(self) -> AioSession:
        """Return a session for a saver's `async_session`. It needs aiobotocore or aioboto3."""
        with without_forks():
            from aiobotocore.session import get_session  # noqa: PLC0415 - optional.

            session = get_session()
        session.register_component("credential_provider", _AsyncProvider(_AsyncCredentials(self)))
        tenant_sessions.add(session)
        return session

    def current(self) -> ReadOnlyCredentials:
        """Return the credentials of the context's tenant. Fetches them if they are not there.

        Raises:
            CheckpointerConfigurationError: The context has no tenant.
        """
        tenant = self._named()
        found = self._fresh(tenant)
        if found is None:
            # One fetch for all who wait; the others find what it brought.
            with self._fetching[hash(tenant) % _LOCKS]:
                found = self._fresh(tenant) or self._refreshed(tenant)
        return found.credentials

    async def acurrent(self) -> ReadOnlyCredentials:
        """Do as `current` does, and fetch in an OS thread."""
        found = self._fresh(self._named())
        return await asyncio.to_thread(self.current) if found is None else found.credentials

    def _named(self) -> str:
        tenant = self._tenant.get()
        if tenant is None:
            msg = (
                "no tenant is set for this request, so it cannot be signed;"
                " call the saver inside `with credentials.tenant(name):`"
            )
            raise CheckpointerConfigurationError(msg)
        return tenant

    def _fresh(self, tenant: str) -> _Fetched | None:
        with self._lock:
            found = self._fetched.get(tenant)
            if found is None or found.seconds_left(self._clock()) < _REFRESH_SECONDS:
                return None
            self._fetched.move_to_end(tenant)
            return found

    def _refreshed(self, tenant: str) -> _Fetched:
        """Fetch a tenant's credentials. If that fails, the old ones do until they expire."""
        try:
            return self._keep(tenant, self._fetch(tenant))
        except Exception:
            old = self._fetched.get(tenant)
            if old is None or old.seconds_left(self._clock()) <= 0:
                raise
            return old

    def _keep(self, tenant: str, answer: Mapping[str, Any]) -> _Fetched:
        expiration: datetime.datetime = answer["Expiration"]
        credentials = ReadOnlyCredentials(
            answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"], answer.get("AccountId")
        )
        fetched = _Fetched(credentials, expiration.timestamp())
        with self._lock:
            self._fetched[tenant] = fetched
            self._fetched.move_to_end(tenant)
            while len(self._fetched) > self._tenants_max:
                self._fetched.popitem(last=False)
        return fetched


class _Credentials:
    """The credentials of a session of botocore: the tenant's of each request."""

    method = "tenant"

    def __init__(self, tenants: TenantCredentials) -> None:
        self._tenants = tenants

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return self._tenants.current()

    def get_account_id(self) -> str | None:
        return self._tenants.current().account_id

    def get_deferred_property(self, property_name: str) -> Callable[[], Any]:
        """Return a function that returns a property of the tenant later. It is called for the account's id only."""
        del property_name
        return self.get_account_id


class _AsyncCredentials:
    """The credentials of a session of aiobotocore: the tenant's of each request."""

    method = "tenant"

    def __init__(self, tenants: TenantCredentials) -> None:
        self._tenants = tenants

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return await self._tenants.acurrent()

    async def get_account_id(self) -> str | None:
        return (await self._tenants.acurrent()).account_id

    def get_deferred_property(self, property_name: str) -> Callable[[], Any]:
        """Return a function that returns a property of the tenant later. It is called for the account's id only."""
        del property_name
        return self.get_account_id


class _Provider:
    """The credential chain of a session of botocore."""

    def __init__(self, credentials: _Credentials) -> None:
        self._credentials = credentials

    def load_credentials(self) -> _Credentials:
        return self._credentials


class _AsyncProvider:
    """The credential chain of a session of aiobotocore."""

    def __init__(self, credentials: _AsyncCredentials) -> None:
        self._credentials = credentials

    async def load_credentials(self) -> _AsyncCredentials:
        return self._credentials
