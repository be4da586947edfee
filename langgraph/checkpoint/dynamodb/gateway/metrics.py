"""Metrics in Prometheus format, by endpoint, class of error and tenant. They name no thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb.observe.bounded import BoundedTenants

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "langgraph_dynamodb_gateway"
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
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._errors: Counter[tuple[str, ...]] = Counter()
        self._received: Counter[tuple[str, ...]] = Counter()
        self._sent: Counter[tuple[str, ...]] = Counter()
        self._in_flight: Counter[tuple[str, ...]] = Counter()
        self._durations: defaultdict[str, _Durations] = defaultdict(_Durations)
        self._tenants = BoundedTenants()
        self._of_tenants: Counter[tuple[str, ...]] = Counter()
        self._milliseconds_of_tenants: Counter[tuple[str, ...]] = Counter()

    def begin(self, endpoint: str) -> None:
        """Count a request that has come."""
        self._in_flight[endpoint,] += 1

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
        self._of_tenants[label, str(status)] += 1
        self._milliseconds_of_tenants[label,] += round(seconds * 1000)
        self._in_flight[endpoint,] -= 1
        self._requests[endpoint, str(status)] += 1
        if error is not None:
            self._errors[endpoint, error] += 1
        self._received[endpoint,] += received
        self._sent[endpoint,] += sent
        self._durations[endpoint].add(seconds)

    def text(self, waiting: Mapping[str | None, int]) -> str:
        """Return all metrics in Prometheus format.

        Args:
            waiting: How many requests of each tenant wait for a place.
        """
        return "".join(f"{line}\n" for line in self._lines(waiting))

    def _lines(self, waiting: Mapping[str | None, int]) -> Iterator[str]:
        by_endpoint = ("endpoint",)
        yield from _lines(
            "requests_total", "counter", "Requests answered.", ("endpoint", "status"), self._requests
        )
        yield from _lines("errors_total", "counter", "Errors, by class.", ("endpoint", "error"), self._errors)
        yield from _lines("received_bytes_total", "counter", "Bytes of bodies.", by_endpoint, self._received)
        yield from _lines("sent_bytes_total", "counter", "Bytes of answers.", by_endpoint, self._sent)
        yield from _lines(
            "in_flight", "gauge", "Requests under way, or waiting.", by_endpoint, self._in_flight
        )
        by_tenant = ("tenant",)
        yield from _lines(
            "tenant_requests_total",
            "counter",
            "Requests answered, by tenant.",
            ("tenant", "status"),
            self._of_tenants,
        )
        yield from _lines(
            "tenant_milliseconds_total",
            "counter",
            "Milliseconds that requests took, by tenant.",
            by_tenant,
            self._milliseconds_of_tenants,
        )
        labelled = Counter[tuple[str, ...]]()
        for tenant, count in waiting.items():
            labelled[self._tenants.label(tenant),] += count
        yield from _lines("waiting", "gauge", "Requests that wait for a place.", by_tenant, labelled)
        yield from self._histogram()

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


def _lines(
    name: str, kind: str, says: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], int]
) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {says}"
    yield f"# TYPE {_PREFIX}_{name} {kind}"
    for key, value in sorted(values.items()):
        named = ",".join(f'{label}="{each}"' for label, each in zip(labels, key, strict=True))
        yield f"{_PREFIX}_{name}{{{named}}} {value}"
