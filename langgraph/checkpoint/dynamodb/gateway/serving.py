"""Serving a call: who asks, what a function of the service gets, and what is checked before it runs. It knows no call.

A principal that is bound to an owner reaches that owner's threads only. Each of its requests first reads the items of
the threads that it names. Nothing that the client sends, and nothing that this process remembers, says whose a thread
is now (docs/decisions/0009). What a request changes in a thread, it changes in the life of the thread that was read.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from .._format import items, limits, schema
from .._format.labels import label_of
from .._operations import entries, thread_item
from .._operations.arguments import checked_id
from .._runtime.steps import Op, gather
from .._runtime.storage import CachedThread, Storage
from ..errors import CheckpointerInputError, ThreadBusyError
from ..protocol import Thread
from .call import Endpoint, Kind, Right
from .problems import forbidden, problem_of

if TYPE_CHECKING:
    # A client of a saver loads neither the store nor the cache.
    from langgraph.cache.dynamodb.entries import CacheStorage
    from langgraph.store.dynamodb.resources import StoreStorage


RIGHTS: frozenset[Right] = frozenset(get_args(Right))


@dataclass(frozen=True)
class Principal:
    """The caller of a request.

    Args:
        name: The name in the log. Requests with the same name are counted together.
        tenant: The tenant that owns the threads whose ids begin with its name and a slash. None: all threads.
        owner: The owner of the threads, without the tenant's name. None: all threads of the tenant.
        rights: Any of `read`, `write` and `administer` (delete, prune, copy, list all); none contains another.

    Raises:
        CheckpointerInputError: The tenant is not a valid tenant name, the owner not a name, or a right is unknown.
    """

    name: str
    tenant: str | None = None
    rights: frozenset[Right] = frozenset(("read", "write"))
    owner: str | None = None

    def __post_init__(self) -> None:
        """Refuse a tenant that would be another one's prefix, or match all threads."""
        if self.tenant is not None and not re.fullmatch(limits.TENANT_PATTERN, self.tenant):
            raise CheckpointerInputError(
                "tenant has to be letters, digits, dots, underscores and hyphens, without the slash after it"
            )
        unknown = set(self.rights) - RIGHTS
        if unknown:
            raise CheckpointerInputError(
                f"rights can be {', '.join(sorted(RIGHTS))}; {len(unknown)} of yours are none of these"
            )
        if self.owner_name is not None:
            checked_id(self.owner, "owner")
            items.owner_key(self.owner_name)
            if self.tenant is None and "/" in self.owner_name:
                raise CheckpointerInputError(
                    "owner has a slash, and the part before it would be a tenant; give tenant, and the owner without"
                    " it"
                )

    @property
    def owner_name(self) -> str | None:
        """The owner's name as the table has it."""
        if self.owner is None or self.tenant is None:
            return self.owner
        return f"{self.tenant}/{self.owner}"

    @property
    def prefix(self) -> str:
        """The beginning of the ids of all threads, and the names of all owners, that belong to the tenant."""
        return "" if self.tenant is None else f"{self.tenant}/"

    def owns(self, thread_id: str) -> bool:
        """Tell whether a thread, or an owner, belongs to the tenant."""
        return thread_id.startswith(self.prefix)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the namespaces of the principal's cached nodes begin with.

        Raises:
            ProblemError: The principal is bound to an owner of no tenant, whose name might be that of a tenant.
        """
        if self.owner is not None and self.tenant is None:
            raise forbidden(
                "memories and cached nodes of an owner are those of a tenant; give these credentials a tenant"
            )
        return tuple(each for each in (self.tenant, self.owner) if each is not None)

    @property
    def memory_labels(self) -> tuple[str, ...]:
        """The labels that the namespaces of the principal's memories begin with: LangGraph refuses a dot in one."""
        return tuple(map(label_of, self.labels))


def check_begins(namespace: Sequence[str], labels: tuple[str, ...]) -> None:
    """Raise if a namespace, or a prefix to delete, does not begin with a principal's labels."""
    if tuple(namespace[: len(labels)]) != labels:
        raise forbidden(
            "this reaches memories or cached nodes that are not of these credentials; their namespaces begin with"
            f" {labels!r}"
        )


def check_right(principal: Principal, right: Right) -> None:
    """Raise if a principal lacks a right."""
    if right not in principal.rights:
        raise forbidden(f"this request needs the right to {right}, which these credentials do not have")


Run = Callable[[Op[Any], str], Awaitable[Any]]


@dataclass(frozen=True)
class Serving:
    """All that a function of the service needs to serve one request."""

    storage: Storage
    store: StoreStorage
    cache: CacheStorage
    who: Principal
    response_bytes: int
    """After how many bytes of values a response ends."""
    part_seconds: float
    """After how long a part of what takes longer ends."""
    value_bytes_max: int
    """How many bytes all values together may have that come as deltas."""
    held: Callable[[int], None] = lambda _size_bytes: None
    """Counts bytes that the request holds in memory; raises if there is no room for them."""
    note: Callable[[Exception], dict[str, Any]] = lambda error: problem_of(error).document("")
    """Records an error that is a part of a response, and returns its document."""
    pins: Mapping[str, CachedThread] = field(default_factory=dict)
    """The states of threads that were checked, under which alone something may change in them."""

    def of(self, thread_id: str) -> Storage:
        """Return the storage of what changes a thread."""
        return replace(self.storage, pinned=self.pins.get(thread_id))

    def fullness(self) -> Callable[[int], bool]:
        """Return what tells whether a page of so many bytes ends, since it is full or its time is over."""
        until = self.storage.clock() + self.part_seconds
        return lambda size_bytes: size_bytes > self.response_bytes or self.storage.clock() > until


@dataclass
class Reach:
    """Checks the names in a request of a principal, and notes the threads among them."""

    who: Principal
    named: list[str] = field(default_factory=list)

    def __call__(self, kind: Kind, name: Any) -> Any:
        """Return a name that the principal may use; note a thread."""
        match kind:
            case "thread" | "position":
                self._check(name, "a thread", "thread ids")
                self.named.append(name)
            case "threads":
                self._check(name, "a thread", "thread ids")
            case "owner":
                self._check(name, "an owner", "owners")
                if self.who.owner_name not in (None, name):
                    says = "this names another owner than these credentials are bound to; leave owner out"
                    raise forbidden(says)
            case "memories":
                check_begins(name, self.who.memory_labels)
            case "searched":
                # Only the principal's own are found under it.
                pass
            case _:
                check_begins(name, self.who.labels)
        return name

    def _check(self, name: str, kind: str, kinds: str) -> None:
        if not self.who.owns(name):
            prefix = self.who.prefix
            raise forbidden(
                f"this names {kind} that is not of the tenant of these credentials, whose {kinds} begin with"
                f" {prefix!r}; give HttpCheckpointSaver thread_prefix={prefix!r}, or begin the {kinds} with it"
            )


def check_all(who: Principal) -> None:
    """Raise if a principal may not reach the threads of all tenants."""
    check_right(who, "administer")
    if (who.tenant, who.owner) != (None, None):
        raise forbidden(
            "this request is about all threads, and these credentials are for one tenant or owner"
        )


async def served(
    endpoint: Endpoint[Any], arguments: Any, named: Collection[str], it: Serving, run: Run
) -> Any:
    """Run the function of an endpoint, as far as the threads exist that its arguments name, and are the owner's."""
    owner = it.who.owner_name
    created = None if endpoint.creates is None else getattr(arguments, endpoint.creates)
    if owner is not None:
        it = replace(it, storage=replace(it.storage, owner=owner))
    for _ in range(limits.ATTEMPTS_MAX):
        if owner is not None and named:
            # It may create a thread, so it has the same deadline as what follows.
            pins = await run(admitted(it.storage, owner, named, created), "check_owner")
            if endpoint.absent is not None and not pins.keys() >= {*named}:
                return endpoint.absent(arguments)
            it = replace(it, pins=pins)
        try:
            return await run(endpoint.operation(it, arguments), endpoint.event)
        except thread_item.PinnedEpochError:
            continue
    raise ThreadBusyError("the thread was deleted or pruned at every attempt; try again when that has ended")


def admitted(
    storage: Storage, owner: str, named: Iterable[str], created: str | None
) -> Op[Mapping[str, CachedThread]]:
    """Return the states of the threads that exist. One that may be created is, unless another one does not exist."""
    wanted = dict.fromkeys(named)
    for _ in range(2):
        threads = yield from _read(storage, wanted)
        # Whoever writes to the table can enter a thread under any key of the index, but not change what is sealed.
        if any(entries.read_about(storage.codec, item).owner != owner for item in threads.values()):
            raise forbidden(
                "this names a thread of another owner than these credentials are bound to, or one without an owner; an"
                " operator names its owner by set_thread"
            )
        states = {each: Thread.parse(item) for each, item in threads.items()}
        pins = {each: CachedThread(state.epoch, state.life) for each, state in states.items()}
        others_exist = pins.keys() >= {*wanted} - {created}
        if created is None or not others_exist or (created in pins and not states[created].is_pending):
            return pins
        root = items.partition_of(created)
        # It is created with its owner: it might become another's meanwhile. So might it have been before.
        yield from thread_item.ensure_epoch(entries.with_owner(storage, root, owner), root)
    raise thread_item.PinnedEpochError


def _read(storage: Storage, thread_ids: Iterable[str]) -> Op[Mapping[str, items.Item]]:
    """Read the items of threads that exist, strongly consistent; not those that are nobody's and dead, or expired."""
    roots = {each: items.partition_of(each).root for each in thread_ids}
    found = yield from gather([storage.table.get(root, items.THREAD) for root in roots.values()])
    now = storage.clock()
    return {
        thread_id: item
        for thread_id, item in zip(roots, found, strict=True)
        if item is not None and (schema.OWNER in item or _is_there(item, now))
    }


def _is_there(item: items.Item, now: float) -> bool:
    """Tell whether there is a thread, given its item: a deletion that has died leaves an item, which expires."""
    return Thread.parse(item).is_alive(now) and not items.is_expired(item, now)
