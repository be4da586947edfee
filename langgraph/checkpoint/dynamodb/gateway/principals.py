"""Principals: who makes a request, which threads they own, and what they may do with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.labels import label_of
from langgraph.checkpoint.dynamodb._format.limits import TENANT_PATTERN
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway.label_wire import BatchRequest, StorePut
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden
from langgraph.checkpoint.dynamodb.gateway.wire import (
    CopyThreadRequest,
    DeleteForRunsRequest,
    ListRequest,
    Message,
    PruneRequest,
    ThreadsRequest,
)

Right: TypeAlias = Literal["read", "write", "administer"]
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

    def check_namespace(self, namespace: Sequence[str]) -> None:
        """Raise if a namespace of cached nodes does not begin with the principal's labels.

        Raises:
            ProblemError: It does not.
        """
        _check_begins(namespace, self.labels)

    def check_memories(self, namespace: Sequence[str]) -> None:
        """Raise if a namespace of memories, or a prefix to delete, does not begin with the principal's labels.

        Raises:
            ProblemError: It does not.
        """
        _check_begins(namespace, self.memory_labels)


def _check_begins(namespace: Sequence[str], labels: tuple[str, ...]) -> None:
    if tuple(namespace[: len(labels)]) != labels:
        raise forbidden(
            "this reaches memories or cached nodes that are not of these credentials; their namespaces begin with"
            f" {labels!r}"
        )


def check_right(principal: Principal, right: Right) -> None:
    """Raise if a principal lacks a right.

    Raises:
        ProblemError: The principal lacks it.
    """
    if right not in principal.rights:
        raise forbidden(f"this request needs the right to {right}, which these credentials do not have")


def threads_of(request: Message) -> list[str | None]:
    """Return every thread that a request names. None stands for all threads."""
    if isinstance(request, CopyThreadRequest):
        return [request.source_thread_id, request.target_thread_id]
    if isinstance(request, PruneRequest):
        return [*request.thread_ids]
    if isinstance(request, DeleteForRunsRequest):
        # A prefix that is the tenant's names threads of the tenant only.
        return [request.thread_prefix or None]
    if isinstance(request, ListRequest) and request.after is not None:
        return [request.thread_id, request.after.thread_id]
    return [request.thread_id] if hasattr(request, "thread_id") else []


def check_request(principal: Principal, request: Message) -> None:
    """Raise if a principal may not make a request: for a right that depends on it, or for what it names.

    Raises:
        ProblemError: The principal lacks a right, or the request names a thread or an owner of another tenant.
    """
    if isinstance(request, BatchRequest):
        for each in request.ops:
            check_right(principal, "write" if isinstance(each, StorePut) else "read")
    if _is_about_all(principal, request):
        if (principal.tenant, principal.owner) != (None, None):
            raise forbidden(
                "this request is about all threads, and these credentials are for one tenant or owner"
            )
        check_right(principal, "administer")
    prefix, owner = principal.prefix, getattr(request, "owner", None)
    if not all(principal.owns(each) for each in threads_of(request) if each is not None):
        raise forbidden(
            "this names a thread that is not of the tenant of these credentials, whose thread ids begin with"
            f" {prefix!r}; give HttpCheckpointSaver thread_prefix={prefix!r}, or begin the ids with it"
        )
    if owner is not None and not principal.owns(owner):
        raise forbidden(
            f"this names an owner that is not of the tenant of these credentials, whose owners begin with {prefix!r};"
            f" give HttpCheckpointSaver thread_prefix={prefix!r}, or begin the names with it"
        )


def _is_about_all(principal: Principal, request: Message) -> bool:
    if isinstance(request, ThreadsRequest):
        return request.owner is None and principal.owner is None
    if isinstance(request, DeleteForRunsRequest) and principal.owner is not None:
        return True
    if isinstance(request, ListRequest) and principal.owner is None:
        # An index answers a list by run id, of which a tenant sees only its own threads (see list.py). Anything else is
        # a scan of the table.
        return request.thread_id is None and items.indexable_run_id(request.filter) is None
    return None in threads_of(request)
