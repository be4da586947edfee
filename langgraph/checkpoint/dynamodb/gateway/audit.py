"""The audit trail of one request: which threads it reached, and which requests to AWS it made.

The access log knows the principal, and CloudTrail knows the keys of items but only the gateway's role. The ids of AWS's
requests join the two. A thread is named by a keyed digest, so that who reads the log learns no id from it, and who has
the key can look for one. docs/gateway.md, "Who read a thread", has the commands.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb._runtime.accounting import TableAccounting
from langgraph.checkpoint.dynamodb._runtime.steps import Call

_ACCOUNTING = TableAccounting()


@dataclass
class Trail:
    """The threads and the requests to the table that one request of a client led to."""

    key: bytes
    threads: set[str] = field(default_factory=set)
    request_ids: list[str] = field(default_factory=list)

    def add(self, call: Call, response: Mapping[str, Any]) -> None:
        """Note a request to the table, and what AWS calls it."""
        metadata = response.get("ResponseMetadata", {})
        self.add_threads(_ACCOUNTING.threads_of(call))
        if "RequestId" in metadata:
            self.request_ids.append(metadata["RequestId"])

    def add_threads(self, thread_ids: Iterable[str]) -> None:
        """Note threads that were reached. A request may share a read, or a copy, that another one has begun."""
        self.threads |= {hmac.new(self.key, each.encode(), hashlib.sha256).hexdigest() for each in thread_ids}

    def fields(self) -> dict[str, list[str]]:
        """Return what the access log has of it."""
        return {"threads": sorted(self.threads), "aws_request_ids": self.request_ids}
