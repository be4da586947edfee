"""Metrics in Prometheus format, by endpoint, class of error and tenant. They name no thread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..observe.bounded import BoundedTenants
from .asking import Trail

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "langgraph_dynamodb_gateway"
# The upper bounds of the histogram's buckets.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


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
    stored_bytes: int = 0
    """The bytes of the items that it put into the table."""
    trail: Trail | None = None

    def store(self, size_bytes: int) -> None:
        """Count bytes that were stored."""
        self.stored_bytes += size_bytes


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        """Start at zero."""
        own = self._registry = CollectorRegistry()

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"{_PREFIX}_{name}", says, labels, registry=own)

        self._requests = counter("requests", "Requests answered.", "endpoint", "status")
        self._errors = counter("errors", "Errors, by class.", "endpoint", "error")
        self._received = counter("received_bytes", "Bytes of bodies.", "endpoint")
        self._sent = counter("sent_bytes", "Bytes of answers.", "endpoint")
        self._of_tenants = counter("tenant_requests", "Requests answered, by tenant.", "tenant", "status")
        self._times = counter("tenant_seconds", "Seconds that requests took, by tenant.", "tenant")
        self._stored = counter("tenant_stored_bytes", "Bytes of items put, by tenant.", "tenant")
        self._in_flight = Gauge(
            f"{_PREFIX}_in_flight", "Requests under way, or waiting.", ("endpoint",), registry=own
        )
        self._waiting = Gauge(
            f"{_PREFIX}_waiting", "Requests that wait for their turn.", ("tenant",), registry=own
        )
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "Seconds that requests took.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=own,
        )
        self._tenants = BoundedTenants()

    def begin(self, endpoint: str) -> None:
        """Count a request that has come."""
        self._in_flight.labels(endpoint).inc()

    def end(self, record: RequestRecord, status: int, seconds: float, tenant: str | None) -> None:
        """Count a request that was answered, or given up."""
        endpoint, label = record.endpoint, self._tenants.label(tenant)
        self._of_tenants.labels(label, status).inc()
        self._times.labels(label).inc(seconds)
        self._stored.labels(label).inc(record.stored_bytes)
        self._in_flight.labels(endpoint).dec()
        self._requests.labels(endpoint, status).inc()
        if record.error is not None:
            self._errors.labels(endpoint, record.error).inc()
        self._received.labels(endpoint).inc(record.received_bytes)
        self._sent.labels(endpoint).inc(record.sent_bytes)
        self._seconds.labels(endpoint).observe(seconds)

    def text(self, waiting: Mapping[str | None, int]) -> str:
        """Return all metrics in Prometheus format.

        Args:
            waiting: How many requests of each tenant wait for their turn.
        """
        self._waiting.clear()
        for tenant, count in waiting.items():
            self._waiting.labels(self._tenants.label(tenant)).inc(count)
        return generate_latest(self._registry).decode()
