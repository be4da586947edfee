"""Events as CloudWatch metrics: one line of the embedded metric format for each operation.

On Lambda CloudWatch reads the lines from standard output. Elsewhere its agent does, or the log driver of ECS.
Variables and dimensions are those of Powertools for AWS Lambda, so both can write to one namespace.
"""

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .._runtime.events import DELETIONS, Event

NAMESPACE = "langgraph-dynamodb"
# No tenant of the gateway or of infra/tenant.yaml can have such a name.
OTHER = "(other)"
NONE = "(none)"
TENANTS_MAX = 100

# What CloudWatch takes as a dimension's value ("Dimension" in its API reference): printable ASCII, and not only spaces.
_DIMENSION = re.compile("(?=.*[!-~])[ -~]{1,1024}")

_MILLISECONDS, _COUNT, _BYTES = "Milliseconds", "Count", "Bytes"
# The metrics of a service as a whole. Those of an operation and of a tenant are fewer, since each series is billed.
_UNITS = {"ReadUnits": _COUNT, "WriteUnits": _COUNT}
_OF_OPERATION = {"Duration": _MILLISECONDS, "Errors": _COUNT}
_OF_SERVICE = {
    **_UNITS,
    **_OF_OPERATION,
    "Requests": _COUNT,
    "Retries": _COUNT,
    "Throttles": _COUNT,
    "BytesRead": _BYTES,
    "BytesWritten": _BYTES,
    "SegmentsReused": _COUNT,
    "CacheHits": _COUNT,
    "CacheMisses": _COUNT,
    "LockWait": _MILLISECONDS,
    "DeletionsBegan": _COUNT,
    "DeletionsFailed": _COUNT,
}


class BoundedTenants:
    """Names the first tenants that come, and calls the rest `(other)`.

    Each value of a metric's label is a series of its own, which is stored and billed.
    """

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


class EmbeddedMetrics:
    """Writes a line with the metrics of each operation.

    Args:
        namespace: The metrics' namespace; by default `POWERTOOLS_METRICS_NAMESPACE`, or `langgraph-dynamodb`.
        service: The dimension `service`; by default `POWERTOOLS_SERVICE_NAME`, or `service_undefined`, as in
            Powertools. `(other)` if CloudWatch refuses it.
        tenants_max: How many tenants get their own dimension; the rest are `(other)`, as are those whose names
            CloudWatch refuses. CloudWatch bills each series.
        write: Takes a line; by default it goes to standard output.
    """

    def __init__(
        self,
        *,
        namespace: str | None = None,
        service: str | None = None,
        tenants_max: int = TENANTS_MAX,
        write: Callable[[str], object] | None = None,
    ) -> None:
        """Take the names."""
        self._namespace = namespace or os.environ.get("POWERTOOLS_METRICS_NAMESPACE") or NAMESPACE
        self._service = _dimension(
            service or os.environ.get("POWERTOOLS_SERVICE_NAME") or "service_undefined"
        )
        self._tenants = BoundedTenants(tenants_max)
        self._write = write or _to_standard_output

    def __call__(self, event: Event) -> None:
        """Write the line of an event."""
        measured = _measured(event)
        directives = (
            self._directive(("service",), _OF_SERVICE, measured),
            self._directive(("service", "operation"), _OF_OPERATION, measured),
            self._directive(("service", "tenant"), _UNITS, measured),
        )
        metrics = {
            "Timestamp": int((event.started_at + event.duration_seconds) * 1000),
            "CloudWatchMetrics": [each for each in directives if each["Metrics"]],
        }
        named = {
            "service": self._service,
            "operation": event.operation,
            "tenant": self._tenant(event.tenant),
            "outcome": event.outcome,
            "error": event.error,
            "table_name": event.table_name,
            "thread_id": event.thread_id,
        }
        told = {name: value for name, value in named.items() if value is not None}
        self._write(json.dumps({"_aws": metrics, **told, **measured}))

    def _tenant(self, tenant: str | None) -> str:
        if tenant is not None and _dimension(tenant) == OTHER:
            return OTHER
        return self._tenants.label(tenant)

    def _directive(
        self, dimensions: tuple[str, ...], units: Mapping[str, str], measured: Mapping[str, float]
    ) -> dict[str, Any]:
        listed = [{"Name": name, "Unit": unit} for name, unit in units.items() if name in measured]
        return {"Namespace": self._namespace, "Dimensions": [dimensions], "Metrics": listed}


def _dimension(value: str) -> str:
    """Return a dimension's value, or the one of the rest if CloudWatch would drop the metrics with it."""
    return value if _DIMENSION.fullmatch(value) else OTHER


def _measured(event: Event) -> dict[str, float]:
    """Return the metrics of an event. The end of a deletion counts everything, its beginning only itself."""
    if event.outcome == "began":
        return {"DeletionsBegan": 1}
    measured: dict[str, float | None] = {
        "Duration": event.duration_seconds * 1000,
        "Errors": int(event.outcome == "error"),
        "ReadUnits": event.read_units,
        "WriteUnits": event.write_units,
        "Requests": event.requests,
        "Retries": event.attempts - event.requests,
        "Throttles": event.throttled,
        "BytesRead": event.bytes_read,
        "BytesWritten": event.bytes_written,
        "SegmentsReused": event.segments_reused,
        "CacheHits": event.cache_hits,
        "CacheMisses": event.cache_misses,
        "LockWait": event.waited_seconds * 1000 if event.operation == "acquire" else None,
        "DeletionsFailed": int(event.outcome != "ok") if event.operation in DELETIONS else None,
    }
    return {name: value for name, value in measured.items() if value is not None}


def _to_standard_output(line: str) -> None:
    # One call, so that lines of several OS threads stay apart.
    sys.stdout.write(line + "\n")
    # Standard output that is no terminal is buffered, and a process that is killed loses what waits there.
    sys.stdout.flush()
