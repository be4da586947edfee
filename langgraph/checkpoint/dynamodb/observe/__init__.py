"""Events of a saver's operations, and where they go: a log, CloudWatch's embedded metrics, OpenTelemetry.

`observe.otel` is apart, since it needs the extra `otel`.
"""

from langgraph.checkpoint.dynamodb._runtime.events import Event, Events
from langgraph.checkpoint.dynamodb.observe.cloudwatch import EmbeddedMetrics
from langgraph.checkpoint.dynamodb.observe.logs import LogEvents

__all__ = ["EmbeddedMetrics", "Event", "Events", "LogEvents"]
