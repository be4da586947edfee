"""A bound on the values of a metric's label: each value is a series of its own, which is stored and billed."""

from __future__ import annotations

import threading

# No tenant of the gateway or of infra/tenant.yaml can have such a name.
OTHER = "(other)"
NONE = "(none)"
TENANTS_MAX = 100


class BoundedTenants:
    """Names the first tenants that come, and calls the rest `(other)`."""

    def __init__(self, count_max: int = TENANTS_MAX) -> None:
        """Take how many tenants get a name of their own."""
        self._count_max = count_max
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def label(self, tenant: str | None) -> str:
        """Return the label of a tenant; `(none)` for operations without one, or with several."""
        if tenant is None:
            return NONE
        with self._lock:
            if tenant not in self._known and len(self._known) < self._count_max:
                self._known.add(tenant)
            return tenant if tenant in self._known else OTHER
