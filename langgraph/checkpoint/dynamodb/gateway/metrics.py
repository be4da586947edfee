"""Metrics in Prometheus format, by endpoint, class of error and tenant. They name no thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb.observe.bounded import BoundedTenants

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "langgraph_dynamodb_gateway"
# By name: the type, the description and the labels.
_SERIES = {
    "requests_total": ("counter", "Requests answered.", ("endpoint", "status")),
    "errors_total": ("counter", "Errors, by class.", ("endpoint", "error")),
    "received_bytes_total": ("counter", "Bytes of bodies.", ("endpoint",)),
    "sent_bytes_total": ("counter", "Bytes of answers.", ("endpoint",)),
    "in_flight": ("gauge", "Requests under way, or waiting.", ("endpoint",)),
    "tenant_requests_total": ("counter", "Requests answered, by tenant.", ("tenant", "status")),
    "tenant_milliseconds_total": ("counter", "Milliseconds that requests took, by tenant.", ("tenant",)),
    "waiting": ("gauge", "Requests that wait for a place.", ("tenant",)),
}
# The upper bounds of the histogram of durations.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass
class _Durations:
    counts: list[int] = field(default_factory=lambda: [0] * len(_SECONDS))
    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        for position, bound in enumerate(_SECONDS):
            self.counts[position] += seconds <= bound


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        """Start at zero."""
        self._counts = {name: Counter[tuple[str, ...]]() for name in _SERIES}
        self._durations: defaultdict[str, _Durations] = defaultdict(_Durations)
        self._tenants = BoundedTenants()

    def begin(self, endpoint: str) -> None:
        """Count a request that has come."""
        self._counts["in_flight"][endpoint,] += 1

    def end(
        self,
        endpoint: str,
        status: int,
        error: str | None,
        seconds: float,
        received: int,
        sent: int,
        tenant: str | None,
    ) -> None:
        """Count a request that was answered: its status, its error's class, seconds, bytes and tenant."""
        label = self._tenants.label(tenant)
        self._counts["tenant_requests_total"][label, str(status)] += 1
        self._counts["tenant_milliseconds_total"][label,] += round(seconds * 1000)
        self._counts["in_flight"][endpoint,] -= 1
        self._counts["requests_total"][endpoint, str(status)] += 1
        if error is not None:
            self._counts["errors_total"][endpoint, error] += 1
        self._counts["received_bytes_total"][endpoint,] += received
        self._counts["sent_bytes_total"][endpoint,] += sent
        self._durations[endpoint].add(seconds)

    def text(self, waiting: Mapping[str | None, int]) -> str:
        """Return all metrics in Prometheus format.

        Args:
            waiting: How many requests of each tenant wait for a place.
        """
        self._counts["waiting"].clear()
        for tenant, count in waiting.items():
            self._counts["waiting"][self._tenants.label(tenant),] += count
        return "".join(f"{line}\n" for line in (*self._series(), *self._histogram()))

    def _series(self) -> Iterator[str]:
        for name, (kind, says, labels) in _SERIES.items():
            yield f"# HELP {_PREFIX}_{name} {says}"
            yield f"# TYPE {_PREFIX}_{name} {kind}"
            for key, value in sorted(self._counts[name].items()):
                named = ",".join(f'{label}="{each}"' for label, each in zip(labels, key, strict=True))
                yield f"{_PREFIX}_{name}{{{named}}} {value}"

    def _histogram(self) -> Iterator[str]:
        name = f"{_PREFIX}_request_seconds"
        yield f"# HELP {name} Seconds that requests took."
        yield f"# TYPE {name} histogram"
        for endpoint, durations in sorted(self._durations.items()):
            for bound, count in zip(_SECONDS, durations.counts, strict=True):
                yield f'{name}_bucket{{endpoint="{endpoint}",le="{bound}"}} {count}'
            yield f'{name}_bucket{{endpoint="{endpoint}",le="+Inf"}} {durations.count}'
            yield f'{name}_sum{{endpoint="{endpoint}"}} {durations.seconds}'
            yield f'{name}_count{{endpoint="{endpoint}"}} {durations.count}'
