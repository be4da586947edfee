"""`python -m tools.trace_picture`: draws the trace of one turn of an agent, as docs/observing.md shows it.

The turn runs on the best engine that this machine has. Its spans are those that OpenTelemetry recorded: the agent's,
the saver's operations, and the requests that botocore's instrumentation tells.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from opentelemetry.instrumentation.botocore import BotocoreInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe.otel import OpenTelemetry
from tools.engine import DYNAMODB_LOCAL, Engine, find

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "trace.svg"

_TABLE = "langgraph-checkpoints"
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 760, 250, 150, 18, 46
_KINDS = {"agent": ("#8a8f98", "#8b949e"), "saver": ("#0b6bcb", "#6cb6ff"), "request": ("#d9822b", "#e8a15c")}
_SCOPES = {"langgraph.checkpoint.dynamodb": "saver", "opentelemetry.instrumentation.botocore": "request"}


@dataclass(frozen=True)
class Row:
    """A span: what is drawn of it. Times are milliseconds from the beginning of the trace."""

    name: str
    kind: str
    depth: int
    began: float
    ended: float
    units: str = ""


def recorded_turn() -> list[Row]:
    """Let an agent take two turns on an engine, and return the spans of the second one."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    with ExitStack() as stack:
        engine = stack.enter_context(find(DYNAMODB_LOCAL).run())
        stack.enter_context(_instrumented(provider))
        saver = stack.enter_context(
            DynamoDBSaver(
                _TABLE,
                on_event=OpenTelemetry(tracer_provider=provider),
                **_reach(engine),
            )
        )
        saver.setup()
        agent = _agent(saver, tracer)
        for _ in range(2):
            exporter.clear()
            with tracer.start_as_current_span("turn"):
                question: Any = {"messages": [HumanMessage("What is the weather?")]}
                agent.invoke(question, {"configurable": {"thread_id": "acme/thread-1"}})
    return rows_of(exporter.get_finished_spans())


def _reach(engine: Engine) -> dict[str, Any]:
    return {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}


@contextmanager
def _instrumented(provider: TracerProvider) -> Iterator[None]:
    # It has no types.
    make: Any = BotocoreInstrumentor
    instrumentor = make()
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        instrumentor.uninstrument()


def _agent(saver: DynamoDBSaver, tracer: Tracer) -> CompiledStateGraph[MessagesState]:
    def model(state: MessagesState) -> MessagesState:
        with tracer.start_as_current_span("node model"):
            return {"messages": [AIMessage("It is sunny. " * 80)]}

    def tools(state: MessagesState) -> MessagesState:
        with tracer.start_as_current_span("node tools"):
            return {"messages": [ToolMessage("sunny " * 400, tool_call_id=str(len(state["messages"])))]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda state: "tools" if len(state["messages"]) % 4 == 2 else END, ["tools", END]
    )
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def rows_of(spans: Sequence[ReadableSpan]) -> list[Row]:
    """Return the rows of a trace: each span below its parent, in the order in which they began."""
    ids = {span.context.span_id: span for span in spans if span.context is not None}
    origin = min(span.start_time or 0 for span in spans)

    def ancestors(span: ReadableSpan) -> list[ReadableSpan]:
        parent = None if span.parent is None else ids.get(span.parent.span_id)
        return [] if parent is None else [*ancestors(parent), parent]

    ordered = sorted(spans, key=lambda span: [each.start_time or 0 for each in (*ancestors(span), span)])
    return [_row(span, len(ancestors(span)), origin) for span in ordered]


def _row(span: ReadableSpan, depth: int, origin: int) -> Row:
    scope = "" if span.instrumentation_scope is None else span.instrumentation_scope.name
    kind = next((kind for begins, kind in _SCOPES.items() if scope.startswith(begins)), "agent")
    began, ended = (((moment or origin) - origin) / 1e6 for moment in (span.start_time, span.end_time))
    return Row(span.name.removesuffix(f" {_TABLE}"), kind, depth, began, ended, _units_of(span))


def _units_of(span: ReadableSpan) -> str:
    attributes = span.attributes or {}
    told = [
        f"{float(str(attributes[name])):g} {short}"
        for name, short in (
            ("langgraph_dynamodb.read_units", "read"),
            ("langgraph_dynamodb.write_units", "write"),
        )
        if name in attributes
    ]
    return ", ".join(told)


def drawn(rows: Sequence[Row]) -> str:
    """Draw the rows as SVG, with a text alternative."""
    whole = max(row.ended for row in rows)
    height = _TOP + _ROW * len(rows) + 12
    said = described(rows)
    light, dark = (
        "".join(f".{kind}{{fill:{colours[position]}}}" for kind, colours in _KINDS.items())
        for position in (0, 1)
    )
    style = (
        f"text{{font:12px system-ui,sans-serif;fill:#24292f}}.small{{font-size:11px}}{light}"
        f"@media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}{dark}}}"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        ' aria-labelledby="title description">',
        f'<title id="title">The trace of one turn: {whole:.0f} ms on DynamoDB Local</title>',
        f'<desc id="description">{escape(said)}</desc>',
        f"<style>{style}</style>",
    ]
    for position, kind in enumerate(_KINDS):
        left = 12 + 110 * position
        lines.append(f'<rect class="{kind}" x="{left}" y="12" width="12" height="12" rx="2"/>')
        lines.append(f'<text x="{left + 18}" y="22">{kind}</text>')
    for number, row in enumerate(rows):
        y = _TOP + _ROW * number
        scale = (_WIDTH - _LEFT - _RIGHT) / whole
        x, width = _LEFT + row.began * scale, max(2.0, (row.ended - row.began) * scale)
        told = f"{row.ended - row.began:.1f} ms" + (f", {row.units}" if row.units else "")
        lines.append(f'<text x="{12 + 14 * row.depth}" y="{y + 11}">{escape(row.name)}</text>')
        lines.append(f'<rect class="{row.kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="13" rx="2"/>')
        lines.append(f'<text class="small" x="{x + width + 5:.1f}" y="{y + 11}">{escape(told)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def described(rows: Sequence[Row]) -> str:
    """Say in words what the picture shows."""
    counts = {kind: sum(row.kind == kind for row in rows) for kind in _KINDS}
    operations = ", ".join(row.name for row in rows if row.kind == "saver")
    return (
        f"{counts['saver']} operations of the saver ({operations}) and {counts['request']} requests to DynamoDB,"
        " each below the operation that sent it, all in the trace of the agent's turn."
    )


if __name__ == "__main__":
    rows = recorded_turn()
    PICTURE.write_text(drawn(rows), encoding="utf-8")
    sys.stdout.write(f"{described(rows)}\n")
