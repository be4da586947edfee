"""One saver for many tenants: it signs each request with the credentials of the tenant that the caller serves.

`TenantCredentials` makes sessions whose credentials are those of the tenant that a context variable names. A client
asks its session's credentials for a frozen copy before it signs a request. OS threads and tasks that LangGraph and the
saver start run in copies of the caller's context, so they sign for the caller's tenant too. Without a tenant nothing is
signed.

`AssumeTenantRole` is a broker of such credentials: it assumes one role for every tenant, with the tenant's name as a
session tag. `infra/tenant-role.yaml` makes the role, and `infra/tenant.yaml` the policy that compares the tag with the
threads.
"""

from __future__ import annotations

import asyncio
import datetime
import inspect
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from botocore.credentials import ReadOnlyCredentials
from typing_extensions import Self

from ._format.limits import TENANT_PATTERN
from ._runtime.fork import start_in_every_process, without_forks
from .errors import CheckpointerConfigurationError, CheckpointerInputError

if TYPE_CHECKING:
    import boto3

__all__ = ["AssumeTenantRole", "TenantCredentials"]

Fetch: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Returns a tenant's credentials as STS does: `AccessKeyId`, `SecretAccessKey`, `SessionToken`, `Expiration`."""

# Credentials are fetched anew so long before they expire. AWS's clients do the same.
_REFRESH_SECONDS = 300.0
# After a fetch that failed, the next one waits so long while the old credentials are valid.
_RETRY_SECONDS = 10.0
TENANTS_MAX = 10_000
# Each tenant that waits for its broker takes one, so this many may hang before they delay another.
_THREADS_MAX = 64


@dataclass(frozen=True)
class _Kept:
    credentials: ReadOnlyCredentials = field(repr=False)
    refresh_at: float
    expires_at: float


class TenantCredentials:
    """Credentials of many tenants for one saver.

    Example:
        ```python
        credentials = TenantCredentials(AssumeTenantRole("arn:aws:iam::123456789012:role/tenants"))
        saver = DynamoDBSaver(
            "langgraph-checkpoints",
            session=credentials.session(),
        )
        with credentials.tenant("acme"):
            graph.invoke(inputs, {"configurable": {"thread_id": "acme/thread-1"}})
        ```

    Args:
        fetch: Returns a tenant's credentials, such as `AssumeTenantRole`. It is called in an OS thread, once for each
            tenant and again 5 minutes before the credentials expire. While that fails, the old ones are used.
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
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        start_in_every_process(self)

    def start(self) -> None:
        """Start without a fetch; also after a fork, which copies no threads. Credentials stay valid in a child."""
        self._lock = threading.Lock()
        self._fetching: dict[str, Future[ReadOnlyCredentials]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._threads = 0

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
        session.register_component("credential_provider", _TenantChain(self))
        return boto3.Session(botocore_session=session)

    def current(self) -> ReadOnlyCredentials:
        """Return the credentials of the context's tenant. Fetches them if they are not there.

        Raises:
            CheckpointerConfigurationError: The context has no tenant, or what was fetched are no credentials.
        """
        found = self._kept_or_fetching(self._named())
        return found.result() if isinstance(found, Future) else found

    async def acurrent(self) -> ReadOnlyCredentials:
        """Do as `current` does, without blocking the event loop."""
        found = self._kept_or_fetching(self._named())
        return await asyncio.wrap_future(found) if isinstance(found, Future) else found

    def _named(self) -> str:
        tenant = self._tenant.get()
        if tenant is None:
            raise CheckpointerConfigurationError(
                "no tenant is set for this request, so it cannot be signed;"
                " call the saver inside `with credentials.tenant(name):`"
            )
        return tenant

    def _kept_or_fetching(self, tenant: str) -> ReadOnlyCredentials | Future[ReadOnlyCredentials]:
        """Return a tenant's credentials, or the fetch of them. The caller that begins a fetch waits for it.

        The others use the old credentials meanwhile, or wait for the same fetch if there are none.
        """
        with self._lock:
            now, kept, fetching = self._clock(), self._kept.get(tenant), self._fetching.get(tenant)
            if kept is not None and now < kept.expires_at and (fetching or now <= kept.refresh_at):
                self._kept.move_to_end(tenant)
                return kept.credentials
            return fetching or self._begin(tenant)

    def _begin(self, tenant: str) -> Future[ReadOnlyCredentials]:
        """Begin a fetch in a thread. The threads are daemons, so a broker that hangs keeps no process from ending."""
        if self._threads < _THREADS_MAX:
            threading.Thread(target=self._work, name="langgraph-dynamodb-tenants", daemon=True).start()
            self._threads += 1
        outcome: Future[ReadOnlyCredentials] = Future()
        # A caller that is cancelled must not cancel what others wait for. A running future cannot be cancelled.
        outcome.set_running_or_notify_cancel()
        self._fetching[tenant] = outcome
        self._waiting.append(partial(copy_context().run, self._settle, tenant, outcome))
        return outcome

    def _work(self) -> None:
        """Make the fetches that wait, and end after the last."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                settle = self._waiting.popleft()
            settle()

    def _settle(self, tenant: str, outcome: Future[ReadOnlyCredentials]) -> None:
        try:
            outcome.set_result(self._refreshed(tenant))
        except BaseException as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it.
            outcome.set_exception(error)

    def _refreshed(self, tenant: str) -> ReadOnlyCredentials:
        """Fetch a tenant's credentials. If that fails, the old ones do until they expire."""
        try:
            return self._keep(tenant, _checked(self._fetch(tenant)))
        except Exception:
            old, now = self._kept.get(tenant), self._clock()
            if old is None or old.expires_at <= now:
                raise
            return self._keep(tenant, replace(old, refresh_at=now + _RETRY_SECONDS))
        finally:
            with self._lock:
                del self._fetching[tenant]

    def _keep(self, tenant: str, kept: _Kept) -> ReadOnlyCredentials:
        with self._lock:
            self._kept[tenant] = kept
            self._kept.move_to_end(tenant)
            while len(self._kept) > self._tenants_max:
                self._kept.popitem(last=False)
        return kept.credentials


_KINDS = {
    "AccessKeyId": str,
    "SecretAccessKey": str,
    "SessionToken": str,
    "Expiration": datetime.datetime,
}


def _checked(answer: Any) -> _Kept:
    """Return what a broker answered; raise if these are no credentials, without showing a value."""
    fault = _fault(answer)
    if fault is not None:
        raise CheckpointerConfigurationError(
            f"the function that fetches a tenant's credentials returned {fault}; let it return a mapping with"
            " AccessKeyId, SecretAccessKey and SessionToken as texts, and Expiration as a datetime.datetime; in an"
            ' answer of STS that is the value of "Credentials"'
        )
    expires_at = answer["Expiration"].timestamp()
    credentials = ReadOnlyCredentials(
        answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"], answer.get("AccountId")
    )
    return _Kept(credentials, expires_at - _REFRESH_SECONDS, expires_at)


def _fault(answer: Any) -> str | None:
    if inspect.iscoroutine(answer):
        # Otherwise Python warns that nobody awaits it.
        answer.close()
        return "a coroutine, since it is an `async def`"
    if not isinstance(answer, Mapping):
        return f"a value of type {type(answer).__name__}"
    missing = [name for name in _KINDS if name not in answer]
    if missing:
        return f"a mapping without {', '.join(missing)}"
    for name, kind in _KINDS.items():
        if not isinstance(answer[name], kind):
            return f"a mapping whose {name} is of type {type(answer[name]).__name__}"
    return None


class _TenantChain:
    """The credential chain of a session of botocore, and what it finds: the credentials of each request's tenant."""

    method = "tenant"

    def __init__(self, tenants: TenantCredentials) -> None:
        self._tenants = tenants

    def load_credentials(self) -> Self:
        return self

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return self._tenants.current()

    async def aget_frozen_credentials(self) -> ReadOnlyCredentials:
        return await self._tenants.acurrent()

    def get_account_id(self) -> str | None:
        return self._tenants.current().account_id

    def get_deferred_property(self, property_name: str) -> Callable[[], Any]:
        """Return a function that returns a property of the tenant later. It is called for the account's id only."""
        del property_name
        return self.get_account_id


# The broker

# AWS allows no more for a role that a role assumes.
DURATION_SECONDS = 3600
_NOT_IN_NAMES = re.compile(r"[^\w+=,.@-]", re.ASCII)
_NAME_MAX = 64


class AssumeTenantRole:
    """Fetches a tenant's credentials by assuming a role with the session tag `tenant`.

    Args:
        role_arn: The role.
        client: A boto3 client of STS with the broker's own credentials. By default it creates one, in the region that
            boto3 finds.
        duration_seconds: For how long the credentials are valid.
    """

    def __init__(
        self, role_arn: str, *, client: Any = None, duration_seconds: int = DURATION_SECONDS
    ) -> None:
        """Take the role. Nothing is requested yet."""
        self._role_arn = role_arn
        self._given = client
        self._duration_seconds = duration_seconds
        start_in_every_process(self)

    def start(self) -> None:
        """Start without a client, unless one was given; also after a fork."""
        self._lock = threading.Lock()
        self._client = self._given

    def __call__(self, tenant: str) -> Mapping[str, Any]:
        """Assume the role for a tenant and return its credentials. CloudTrail has the tenant in the session's name."""
        answer = self._sts().assume_role(
            RoleArn=self._role_arn,
            # A session's name has 2 characters at least.
            RoleSessionName=f"t-{_NOT_IN_NAMES.sub('-', tenant)}"[:_NAME_MAX],
            Tags=[{"Key": "tenant", "Value": tenant}],
            DurationSeconds=self._duration_seconds,
        )
        # arn:aws:sts::<account>:assumed-role/...
        account_id = answer["AssumedRoleUser"]["Arn"].split(":")[4]
        return {**answer["Credentials"], "AccountId": account_id}

    def _sts(self) -> Any:
        with self._lock:
            if self._client is None:
                with without_forks():
                    import boto3  # noqa: PLC0415 - importing the package should cost little.

                    self._client = boto3.Session().client("sts")
            return self._client
