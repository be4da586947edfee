"""The namespaces that a principal reaches: those that begin with its tenant, and its owner if it is bound to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden
from langgraph.store.dynamodb.namespaces import narrower


@dataclass(frozen=True)
class Scope:
    """The labels that a principal's namespaces begin with."""

    labels: tuple[str, ...]

    @classmethod
    def of(cls, principal: Principal) -> Scope:
        """Return the scope of a principal.

        Raises:
            ProblemError: The principal is bound to an owner of no tenant, whose name might be that of a tenant.
        """
        if principal.owner is not None and principal.tenant is None:
            raise forbidden(
                "memories and cached nodes of an owner are those of a tenant; give these credentials a tenant"
            )
        return cls(tuple(each for each in (principal.tenant, principal.owner) if each is not None))

    def check(self, namespace: Sequence[str]) -> None:
        """Raise if a namespace, or a prefix of namespaces to delete, does not begin with the labels.

        Raises:
            ProblemError: It does not.
        """
        if tuple(namespace[: len(self.labels)]) != self.labels:
            raise forbidden(
                "this reaches memories or cached nodes that are not of these credentials; their namespaces begin with"
                f" {self.labels!r}"
            )

    def narrowed(self, prefix: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return a prefix to read under, as far as the principal reaches it; `None` if that is nothing."""
        return narrower(prefix, self.labels)
