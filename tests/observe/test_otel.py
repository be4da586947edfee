"""Spans and metrics of OpenTelemetry, as its own exporters in memory receive them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from opentelemetry.instrumentation.botocore import AiobotocoreInstrumentor, BotocoreInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver, ThreadBusyError
from langgraph.checkpoint.dynamodb.observe import Event, Events
from langgraph.checkpoint.dynamodb.observe.otel import OpenTelemetry
from tests.support.checkpoints import thread_config
from tests.support.operations import OPERATIONS, Side, ask_all, both_sides

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

MakeSaver = Callable[..., DynamoDBSaver]


# They have no types.
_INSTRUMENTORS: tuple[Any, ...] = (BotocoreInstrumentor, AiobotocoreInstrumentor)


LOCK = {"acquire", "release"}


class Recorded:
    """What was recorded in memory."""

    def __init__(self) -> None:
        """Start without anything."""
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meter_provider = MeterProvider([self.reader])
        self.tracer = self.tracer_provider.get_tracer("test")

    def on_event(self, **options: Any) -> OpenTelemetry:
        """Return an `on_event` that records here."""
        return OpenTelemetry(
            tracer_provider=self.tracer_provider, meter_provider=self.meter_provider, **options
        )

    def spans(self, scope: str) -> list[ReadableSpan]:
        """Return the spans of one library's scope."""
        spans = self.exporter.get_finished_spans()
        return [
            each for each in spans if each.instrumentation_scope and scope in each.instrumentation_scope.name
        ]

    @property
    def ours(self) -> list[ReadableSpan]:
        """The spans of the saver's operations."""
        return self.spans("langgraph.checkpoint.dynamodb")

    def points(self) -> dict[str, list[Any]]:
        """Return the data points by the metric's name."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """Give a place for spans and metrics; both libraries' requests have spans too."""
    recorded = Recorded()
    instrumentors: list[Any] = [each() for each in _INSTRUMENTORS]
    for each in instrumentors:
        each.instrument(tracer_provider=recorded.tracer_provider)
    yield recorded
    for each in instrumentors:
        each.uninstrument()
    recorded.tracer_provider.shutdown()
    recorded.meter_provider.shutdown()


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def _value(points: list[Any], **labels: Any) -> float:
    wanted = {name.replace("__", "."): value for name, value in labels.items()}
    return sum(float(each.value) for each in points if wanted.items() <= dict(each.attributes).items())


@both_sides
def test_every_request_is_below_its_operation_in_the_caller_s_trace(
    make_unclosed: MakeSaver, recorded: Recorded, side: Side
) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [("ai", "x" * 20_000)]})
    graph.add_edge(START, "answer")
    saver = make_unclosed(on_event=recorded.on_event())
    agent = graph.compile(checkpointer=saver)
    question: Any = {"messages": [("user", "hello")]}
    with recorded.tracer.start_as_current_span("turn") as turn:
        if side == "sync":
            agent.invoke(question, thread_config("acme/1"))
        else:
            asyncio.run(agent.ainvoke(question, thread_config("acme/1")))
    saver.close()
    trace_id = turn.get_span_context().trace_id
    requests = recorded.spans("opentelemetry.instrumentation.botocore")
    assert {each.context.trace_id for each in (*recorded.ours, *requests) if each.context} == {trace_id}
    operations = {_id(each): each for each in recorded.ours}
    assert len(requests) > len(operations) > 4
    assert all(each.parent is not None and each.parent.span_id in operations for each in requests)
    counted = sum(int(str((each.attributes or {})["langgraph_dynamodb.requests"])) for each in recorded.ours)
    assert counted == len(requests)


@both_sides
def test_spans_have_the_names_of_the_conventions(
    make_unclosed: MakeSaver, recorded: Recorded, table_name: str, side: Side
) -> None:
    saver = make_unclosed(on_event=recorded.on_event())
    ask_all(side, saver, "acme/1")
    saver.close()
    names = [each.name.removesuffix(f" {table_name}") for each in recorded.ours]
    assert [name for name in names if name not in LOCK] == [*OPERATIONS]
    put = next(each for each in recorded.ours if each.name.startswith("put "))
    assert put.kind == SpanKind.CLIENT
    assert put.status.status_code == StatusCode.UNSET
    attributes = dict(put.attributes or {})
    assert (
        attributes.items()
        >= {
            "db.system.name": "aws.dynamodb",
            "db.operation.name": "put",
            "db.collection.name": table_name,
            "langgraph_dynamodb.tenant": "acme",
            "langgraph_dynamodb.outcome": "ok",
        }.items()
    )
    assert "langgraph_dynamodb.thread_id" not in attributes
    points = recorded.points()
    durations = {
        each.attributes["db.operation.name"]: each.count for each in points["db.client.operation.duration"]
    }
    assert durations.items() >= dict.fromkeys(OPERATIONS, 1).items()
    units = points["langgraph_dynamodb.units"]
    assert _value(units, direction="write", langgraph_dynamodb__tenant="acme") > 0
    assert _value(points["langgraph_dynamodb.deletions"], outcome="began") == 3
    assert _value(points["langgraph_dynamodb.deletions"], outcome="ok") == 3


def test_a_metric_s_exemplar_is_the_operation_s_span(make_saver: MakeSaver, recorded: Recorded) -> None:
    make_saver(on_event=recorded.on_event()).get_tuple(thread_config())
    (span,) = recorded.ours
    points = recorded.points()
    for name in ("db.client.operation.duration", "langgraph_dynamodb.requests"):
        (point,) = points[name]
        assert [each.span_id for each in point.exemplars] == [_id(span)]


def test_an_error_has_its_type_and_no_text(make_saver: MakeSaver, recorded: Recorded) -> None:
    saver = make_saver(on_event=recorded.on_event())
    with pytest.raises(CheckpointerInputError):
        saver.delete_thread("")
    (span,) = recorded.ours
    assert span.status.status_code == StatusCode.ERROR
    assert span.status.description is None
    assert not span.events
    assert (span.attributes or {})["error.type"] == "CheckpointerInputError"
    (point,) = recorded.points()["db.client.operation.duration"]
    assert point.attributes["error.type"] == "CheckpointerInputError"


def test_the_wait_for_a_lock_is_a_histogram(make_saver: MakeSaver, recorded: Recorded) -> None:
    saver = make_saver(on_event=recorded.on_event())
    with saver.thread_lock("acme/1"), pytest.raises(ThreadBusyError), saver.thread_lock("acme/1", wait=1.0):
        pass
    points = recorded.points()["langgraph_dynamodb.lock.wait"]
    assert sum(each.count for each in points) == 2
    assert 0 < sum(each.sum for each in points) <= 1.0


def test_ids_are_there_where_they_are_asked_for(make_saver: MakeSaver, recorded: Recorded) -> None:
    saver = make_saver(on_event=Events(recorded.on_event(), with_ids=True))
    with saver.thread_lock("acme/1"):
        pass
    assert {(each.attributes or {})["langgraph_dynamodb.thread_id"] for each in recorded.ours} == {"acme/1"}


def test_tenants_of_metrics_are_bounded(recorded: Recorded) -> None:
    on_event = recorded.on_event(tenants_max=1)
    for tenant in ("a", "b", "c"):
        event = Event(operation="put", outcome="ok", tenant=tenant, write_units=1.0)
        span = on_event.begin(event)
        on_event(event)
        span.end(event)
    units = recorded.points()["langgraph_dynamodb.units"]
    assert _value(units, langgraph_dynamodb__tenant="a") == 1
    assert _value(units, langgraph_dynamodb__tenant="(other)") == 2
    assert [each.name for each in recorded.ours] == ["put"] * 3


def test_it_records_nothing_without_a_provider(make_saver: MakeSaver) -> None:
    make_saver(on_event=OpenTelemetry()).get_tuple(thread_config())
