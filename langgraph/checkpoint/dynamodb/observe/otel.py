"""Events as OpenTelemetry's spans and metrics, named by its semantic conventions for database clients.

The span of an operation is current while the operation runs, so the spans of botocore's instrumentation are below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, StatusCode

from .._runtime.events import DELETIONS, Event
from .cloudwatch import TENANTS_MAX, BoundedTenants

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_SCOPE = "langgraph.checkpoint.dynamodb"
# The conventions' own names; those that it has none for begin with ours.
_SYSTEM, _OPERATION, _COLLECTION = "db.system.name", "db.operation.name", "db.collection.name"
_ERROR = "error.type"
_OURS = "langgraph_dynamodb"
_TENANT = f"{_OURS}.tenant"
# The fields of an event that are no attributes of its span: the conventions name them, the span has its own times, and
# throttled attempts are only counted.
_NOT_OF_SPAN = {"table_name", "operation", "error", "started_at", "duration_seconds", "throttled"}
# In seconds; the conventions say these.
_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)


class OpenTelemetry:
    """Makes a span and metrics of each operation.

    Args:
        tracer_provider: The tracer provider; by default the global one.
        meter_provider: The meter provider; by default the global one.
        tenants_max: How many tenants get an attribute value of their own in metrics; the rest are `(other)`.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        tenants_max: int = TENANTS_MAX,
    ) -> None:
        """Make the instruments."""
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._tenants = BoundedTenants(tenants_max)
        meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        seconds = partial(meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=_BUCKETS)
        described = "Duration of the saver's operations."
        self._duration = seconds("db.client.operation.duration", description=described)
        self._lock_wait = seconds(f"{_OURS}.lock.wait", description="Wait for a thread's lock.")
        counters = {
            "units": ("{unit}", "Capacity units that DynamoDB reported."),
            "requests": ("{request}", "Requests, each once."),
            "retries": ("{attempt}", "Further attempts of requests."),
            "throttles": ("{attempt}", "Attempts that were throttled."),
            "cache.lookups": ("{lookup}", "Entries that were looked for in the cache."),
            "segments.reused": ("{segment}", "Segments that were named and not written."),
            "deletions": ("{deletion}", "Deletions, when they begin and when they end."),
        }
        self._counters = {
            name: meter.create_counter(f"{_OURS}.{name}", *described) for name, described in counters.items()
        }

    def begin(self, event: Event) -> OperationSpan:
        """Start the span of an operation, below the caller's current one."""
        target = "" if event.table_name is None else f" {event.table_name}"
        span = self._tracer.start_span(
            f"{event.operation}{target}", kind=SpanKind.CLIENT, attributes=_conventional(event)
        )
        return OperationSpan(span, self)

    def __call__(self, event: Event) -> None:
        """Count that a deletion began. The rest is recorded with the span."""
        if event.outcome == "began":
            self._counters["deletions"].add(1, {_OPERATION: event.operation, "outcome": event.outcome})

    def record(self, event: Event, span: trace.Span) -> None:
        """Record an operation's metrics. A span that is sampled becomes their exemplar."""
        context = trace.set_span_in_context(span)
        attributes = _conventional(event)
        self._duration.record(event.duration_seconds, attributes, context)
        if event.operation == "acquire":
            self._lock_wait.record(event.waited_seconds, attributes, context)
        if event.operation in DELETIONS:
            outcome = {_OPERATION: event.operation, "outcome": event.outcome}
            self._counters["deletions"].add(1, outcome, context)
        tenant = {_TENANT: self._tenants.label(event.tenant)}
        counts: list[tuple[str, float, Mapping[str, str | bool]]] = [
            ("units", event.read_units or 0, {**tenant, "direction": "read"}),
            ("units", event.write_units or 0, {**tenant, "direction": "write"}),
            ("requests", event.requests, {_OPERATION: event.operation}),
            ("retries", event.attempts - event.requests, {_OPERATION: event.operation}),
            ("throttles", event.throttled, {_OPERATION: event.operation}),
            ("cache.lookups", event.cache_hits, {"hit": True}),
            ("cache.lookups", event.cache_misses, {"hit": False}),
            ("segments.reused", event.segments_reused, {}),
        ]
        for name, count, labels in counts:
            if count:
                self._counters[name].add(count, labels, context)


@dataclass(frozen=True)
class OperationSpan:
    """The span of one operation, and where its metrics go."""

    span: trace.Span
    to: OpenTelemetry

    def current(self) -> AbstractContextManager[object]:
        """Make the span current."""
        return trace.use_span(self.span, record_exception=False, set_status_on_exception=False)

    def end(self, event: Event) -> None:
        """Set what is known now, record the metrics and end the span."""
        ours = {name: value for name, value in asdict(event).items() if name not in _NOT_OF_SPAN}
        told = {f"{_OURS}.{name}": value for name, value in ours.items() if value is not None}
        self.span.set_attributes({**_conventional(event), **told})
        if event.outcome == "error":
            self.span.set_status(StatusCode.ERROR)
        self.to.record(event, self.span)
        self.span.end()


def _conventional(event: Event) -> dict[str, str]:
    """Return the attributes that the conventions name."""
    named = {
        _SYSTEM: "aws.dynamodb",
        _OPERATION: event.operation,
        _COLLECTION: event.table_name,
        _ERROR: event.error,
    }
    return {name: value for name, value in named.items() if value is not None}
