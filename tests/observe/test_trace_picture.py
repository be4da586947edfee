"""The picture of a trace: its rows are the spans, and its words say the same."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tools.trace_picture import PICTURE, described, drawn, rows_of

_SVG = "{http://www.w3.org/2000/svg}"


def test_each_span_is_a_row_below_its_parent() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent, ours = provider.get_tracer("agent"), provider.get_tracer("langgraph.checkpoint.dynamodb")
    theirs = provider.get_tracer("opentelemetry.instrumentation.botocore.dynamodb")
    with agent.start_as_current_span("turn"):
        units = {"langgraph_dynamodb.write_units": 2.0}
        with (
            ours.start_as_current_span("put", attributes=units),
            theirs.start_as_current_span("DynamoDB.PutItem"),
        ):
            pass
        with agent.start_as_current_span("node <model>"):
            pass
    rows = rows_of(exporter.get_finished_spans())
    assert [(each.name, each.kind, each.depth, each.units) for each in rows] == [
        ("turn", "agent", 0, ""),
        ("put", "saver", 1, "2 write"),
        ("DynamoDB.PutItem", "request", 2, ""),
        ("node <model>", "agent", 1, ""),
    ]
    assert all(0 <= each.began <= each.ended for each in rows)
    assert described(rows).startswith("1 operations of the saver (put) and 1 requests")
    texts = [each.text for each in ElementTree.fromstring(drawn(rows)).iter(f"{_SVG}text")]  # noqa: S314
    assert "node <model>" in texts


def test_the_picture_of_the_documents_has_a_text_alternative() -> None:
    picture = ElementTree.fromstring(Path(PICTURE).read_text(encoding="utf-8"))  # noqa: S314 - our own.
    assert picture.attrib["role"] == "img"
    told = {each.tag.removeprefix(_SVG): each.text or "" for each in picture}
    assert "trace of one turn" in told["title"]
    rects = [each.attrib["class"] for each in picture.iter(f"{_SVG}rect")]
    # The legend has one of each.
    operations, requests = rects.count("saver") - 1, rects.count("request") - 1
    assert told["desc"].startswith(f"{operations} operations of the saver")
    assert f"{requests} requests to DynamoDB" in told["desc"]
    assert operations > 4
    assert requests > operations
