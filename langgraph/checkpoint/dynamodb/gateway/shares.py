"""Shares: how much of a limited resource each tenant, and each of its principals, may have.

A tenant may take more while it has less than three times what it leaves to the others, and so may a principal within
its tenant. So one tenant alone gets three quarters of everything, and a second one three quarters of the rest: those
who take all they can still leave something to whoever comes next.
"""

from __future__ import annotations

from collections import Counter

from langgraph.checkpoint.dynamodb.gateway.principals import Principal

PART = 3 / 4
"""The part of everything that one tenant may have, and of the tenant's part that one principal may have."""
_TIMES_THE_REST = 3


class Shares:
    """The resource, and how much of it each principal has."""

    def __init__(self, total: int) -> None:
        """Start with all of it free.

        Args:
            total: How much there is.
        """
        self._free = total
        self._held: Counter[tuple[str | None, ...]] = Counter()

    def may_take(self, who: Principal, amount: int = 1) -> bool:
        """Tell whether a principal may have more."""
        left_to_tenant = (_TIMES_THE_REST * self._free - self.of_tenant(who.tenant)) * (1 - PART)
        return amount <= self._free and self.of(who) < _TIMES_THE_REST * left_to_tenant

    def take(self, who: Principal, amount: int = 1) -> None:
        """Assign an amount to a principal."""
        self._add(who, amount)

    def give_back(self, who: Principal, amount: int = 1) -> None:
        """Return an amount of a principal to the free part."""
        self._add(who, -amount)

    def of_tenant(self, tenant: str | None) -> int:
        """Return how much a tenant has."""
        return self._held[tenant,]

    def of(self, who: Principal) -> int:
        """Return how much a principal has."""
        return self._held[who.tenant, who.name]

    def _add(self, who: Principal, amount: int) -> None:
        self._free -= amount
        for key in ((who.tenant,), (who.tenant, who.name)):
            self._held[key] += amount
            if not self._held[key]:
                del self._held[key]
