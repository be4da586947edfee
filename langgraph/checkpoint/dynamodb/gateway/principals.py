"""Principals: who makes a request, which threads they own, and what they may do with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from .._format import items
from .._format.labels import label_of
from .._format.limits import TENANT_PATTERN
from .._operations.arguments import checked_id
from ..errors import CheckpointerInputError
from .problems import forbidden

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
