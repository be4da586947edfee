"""Units: the capacity that one request consumed, for a client that asks for it. Nobody else's request is measured.

A tenant's scan or query of an index also reads what belongs to others, and its units would tell how much. So a tenant
gets no units for a request that makes one, and a principal that is bound to an owner gets none at all: where it is told
that there is no such thread, there may be one of somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from langgraph.checkpoint.dynamodb._runtime.accounting import READS, units_of
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.gateway.principals import Principal

HEADER = "X-Units"


@dataclass
class Units:
    """The capacity that one request of a client consumed."""

    has_tenant: bool
    """Whether the client is one of several tenants of the table."""
    read: float | None = None
    write: float | None = None
    has_secret: bool = False
    """Whether a request read what may belong to others."""

    def add(self, call: Call, response: Any) -> None:
        """Count a request to the table."""
        if call.method in READS:
            self.read = (self.read or 0.0) + units_of(response)
        else:
            self.write = (self.write or 0.0) + units_of(response)
        self.has_secret |= call.method == "scan" or "IndexName" in call.params

    def added_to(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return an answer with the units, if its client may know them."""
        if self.has_secret and self.has_tenant:
            return document
        return document | {"units": {"read": self.read, "write": self.write}}


def asked_units(request: Request, principal: Principal) -> Units | None:
    """Return where to count the units of a request; `None` if its client does not ask for them, or may not know."""
    if HEADER not in request.headers or principal.owner_name is not None:
        return None
    return Units(has_tenant=principal.tenant is not None)
