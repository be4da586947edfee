"""Principals: who makes a request, which threads they own, and what they may do with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import TENANT_PATTERN
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint, Right
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden
from langgraph.checkpoint.dynamodb.gateway.wire import ListRequest, Message, ThreadsRequest

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
        if self.tenant is not None and not re.fullmatch(TENANT_PATTERN, self.tenant):
            msg = (
                "tenant has to be letters, digits, dots, underscores and hyphens, without the slash after it"
            )
            raise CheckpointerInputError(msg)
        unknown = set(self.rights) - RIGHTS
        if unknown:
            msg = f"rights can be {', '.join(sorted(RIGHTS))}; {len(unknown)} of yours are none of these"
            raise CheckpointerInputError(msg)
        if self.owner_name is not None:
            checked_id(self.owner, "owner")
            items.owner_key(self.owner_name)
            if self.tenant is None and "/" in self.owner_name:
                msg = (
                    "owner has a slash, and the part before it would be a tenant; give tenant, and the owner without"
                    " it"
                )
                raise CheckpointerInputError(msg)

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


def check_right(principal: Principal, right: Right) -> None:
    """Raise if a principal lacks a right.

    Raises:
        ProblemError: The principal lacks it.
    """
    if right not in principal.rights:
        raise forbidden(f"this request needs the right to {right}, which these credentials do not have")


def check_rights(principal: Principal, endpoint: Endpoint, request: Message) -> None:
    """Raise if a principal lacks a right that a request needs, where that depends on the request.

    Raises:
        ProblemError: The principal lacks it.
    """
    for right in () if endpoint.rights is None else endpoint.rights(request):
        check_right(principal, right)


def check_threads(principal: Principal, endpoint: Endpoint, request: Message) -> None:
    """Raise if a request names a thread of another tenant, or all threads.

    Raises:
        ProblemError: It does.
    """
    named = list(endpoint.threads(request))
    if isinstance(request, ListRequest) and request.thread_id is None and principal.owner is None:
        _check_list_without_thread(principal, request)
        named.remove(None)
    _check_named(principal, named)
    owner = getattr(request, "owner", None)
    if isinstance(request, ThreadsRequest) and owner is None and principal.owner is None:
        check_right(principal, "administer")
        _check_named(principal, [None])
    if owner is not None and not principal.owns(owner):
        prefix = principal.prefix
        raise forbidden(
            f"this names an owner that is not of the tenant of these credentials, whose owners begin with {prefix!r};"
            f" give HttpCheckpointSaver thread_prefix={prefix!r}, or begin the names with it"
        )


def _check_list_without_thread(principal: Principal, request: ListRequest) -> None:
    # An index answers a list by run id, of which a tenant sees only its own threads (see lists.py). Anything else is a
    # scan of the table.
    if items.indexable_run_id(request.filter) is not None:
        return
    check_right(principal, "administer")
    _check_named(principal, [None])


def _check_named(principal: Principal, named: Iterable[str | None]) -> None:
    for thread_id in named:
        if thread_id is None and (principal.tenant, principal.owner) != (None, None):
            raise forbidden(
                "this request is about all threads, and these credentials are for one tenant or owner"
            )
        if thread_id is not None and not principal.owns(thread_id):
            prefix = principal.prefix
            raise forbidden(
                "this names a thread that is not of the tenant of these credentials, whose thread ids begin with"
                f" {prefix!r}; give HttpCheckpointSaver thread_prefix={prefix!r}, or begin the ids with it"
            )
