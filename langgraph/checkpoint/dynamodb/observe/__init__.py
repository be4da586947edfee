"""Events of a saver's operations, and where they go: a log, CloudWatch's embedded metrics, OpenTelemetry.

`observe.otel` is apart, since it needs the extra `otel`.
"""

from .._runtime.events import Event, Events
from .cloudwatch import EmbeddedMetrics
from .logs import LogEvents

__all__ = ["EmbeddedMetrics", "Event", "Events", "LogEvents"]
