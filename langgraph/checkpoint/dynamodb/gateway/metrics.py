"""Metrics in Prometheus format, by endpoint, class of error and tenant. They name no thread."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb.gateway.asking import Trail
from langgraph.checkpoint.dynamodb.observe.bounded import BoundedTenants

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "langgraph_dynamodb_gateway"
# By name: the type and the description, which the parts of a histogram have in common, and the labels.
_SERIES = {
    "requests_total": ("counter", "Requests answered.", ("endpoint", "status")),
    "errors_total": ("counter", "Errors, by class.", ("endpoint", "error")),
    "received_bytes_total": ("counter", "Bytes of bodies.", ("endpoint",)),
    "sent_bytes_total": ("counter", "Bytes of answers.", ("endpoint",)),
    "in_flight": ("gauge", "Requests under way, or waiting.", ("endpoint",)),
    "tenant_requests_total": ("counter", "Requests answered, by tenant.", ("tenant", "status")),
    "tenant_milliseconds_total": ("counter", "Milliseconds that requests took, by tenant.", ("tenant",)),
    "waiting": ("gauge", "Requests that wait for a place.", ("tenant",)),
    "request_seconds": ("histogram", "Seconds that requests took.", ()),
    "request_seconds_bucket": ("", "", ("endpoint", "le")),
    "request_seconds_sum": ("", "", ("endpoint",)),
    "request_seconds_count": ("", "", ("endpoint",)),
}
# The upper bounds of the histogram's buckets, which Prometheus wants in this order.
_SECONDS = (
    "0.005",
    "0.01",
    "0.025",
    "0.05",
    "0.1",
    "0.25",
    "0.5",
    "1.0",
    "2.5",
    "5.0",
    "10.0",
    "30.0",
    "60.0",
    "+Inf",
)


@dataclass
class RequestRecord:
    """The facts about one request, for the log and the metrics. A handler may set its error."""

    request_id: str
    endpoint: str
    began: float = field(default_factory=time.perf_counter)
    status: int | None = None
    error: str | None = None
    received_bytes: int = 0
    sent_bytes: int = 0
    trail: Trail | None = None


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        """Start at zero."""
        self._counts: dict[str, defaultdict[tuple[str, ...], float]]
        self._counts = {name: defaultdict(int) for name in _SERIES}
        self._tenants = BoundedTenants()

    def begin(self, endpoint: str) -> None:
        """Count a request that has come."""
        self._counts["in_flight"][endpoint,] += 1

    def end(self, record: RequestRecord, status: int, seconds: float, tenant: str | None) -> None:
        """Count a request that was answered, or given up."""
        endpoint, label = record.endpoint, self._tenants.label(tenant)
        self._counts["tenant_requests_total"][label, str(status)] += 1
        self._counts["tenant_milliseconds_total"][label,] += round(seconds * 1000)
        self._counts["in_flight"][endpoint,] -= 1
        self._counts["requests_total"][endpoint, str(status)] += 1
        if record.error is not None:
            self._counts["errors_total"][endpoint, record.error] += 1
        self._counts["received_bytes_total"][endpoint,] += record.received_bytes
        self._counts["sent_bytes_total"][endpoint,] += record.sent_bytes
        for bound in _SECONDS:
            self._counts["request_seconds_bucket"][endpoint, bound] += seconds <= float(bound)
        self._counts["request_seconds_sum"][endpoint,] += seconds
        self._counts["request_seconds_count"][endpoint,] += 1

    def text(self, waiting: Mapping[str | None, int]) -> str:
        """Return all metrics in Prometheus format.

        Args:
            waiting: How many requests of each tenant wait for a place.
        """
        self._counts["waiting"].clear()
        for tenant, count in waiting.items():
            self._counts["waiting"][self._tenants.label(tenant),] += count
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, (kind, says, labels) in _SERIES.items():
            if kind:
                yield f"# HELP {_PREFIX}_{name} {says}"
                yield f"# TYPE {_PREFIX}_{name} {kind}"
            for key, value in self._counts[name].items():
                named = ",".join(f'{label}="{each}"' for label, each in zip(labels, key, strict=True))
                yield f"{_PREFIX}_{name}{{{named}}} {value}"
