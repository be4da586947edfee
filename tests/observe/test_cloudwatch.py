"""Events as lines of CloudWatch's embedded metric format."""

import io
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import EmbeddedMetrics, Event
from tests.support.operations import ask_all

# "Specification: Embedded metric format" in CloudWatch's user guide.
UNITS = {"Milliseconds", "Count", "Bytes"}
METRICS_MAX, DIMENSIONS_MAX = 100, 30


def _written(event: Event, **options: Any) -> Any:
    lines: list[str] = []
    EmbeddedMetrics(write=lines.append, **options)(event)
    (line,) = lines
    assert "\n" not in line
    return json.loads(line)


def _series(line: Any) -> dict[str, list[str]]:
    return {
        "/".join(each["Dimensions"][0]): [metric["Name"] for metric in each["Metrics"]]
        for each in line["_aws"]["CloudWatchMetrics"]
    }


def test_every_line_of_a_saver_is_one_that_cloudwatch_reads(make_saver: Callable[..., DynamoDBSaver]) -> None:
    lines: list[str] = []
    ask_all("sync", make_saver(on_event=EmbeddedMetrics(service="agent", write=lines.append)), "acme/1")
    assert lines
    for line in map(json.loads, lines):
        assert line["_aws"]["Timestamp"] > 1e12
        for directive in line["_aws"]["CloudWatchMetrics"]:
            assert directive["Namespace"] == "langgraph-dynamodb"
            assert all(
                len(each) <= DIMENSIONS_MAX and set(each) <= line.keys() for each in directive["Dimensions"]
            )
            assert len(directive["Metrics"]) <= METRICS_MAX
            for metric in directive["Metrics"]:
                assert metric["Unit"] in UNITS
                assert isinstance(line[metric["Name"]], (int, float))


def test_the_end_of_an_operation() -> None:
    event = Event(
        operation="put",
        outcome="ok",
        table_name="threads",
        tenant="acme",
        started_at=1000.0,
        duration_seconds=0.5,
        requests=2,
        attempts=3,
        write_units=4.0,
        cache_hits=1,
    )
    line = _written(event)
    assert line["_aws"]["Timestamp"] == 1_000_500
    assert (line["tenant"], line["operation"], line["service"]) == ("acme", "put", "service_undefined")
    assert (line["Duration"], line["WriteUnits"], line["Retries"], line["CacheHits"]) == (500, 4, 1, 1)
    series = _series(line)
    assert series["service/tenant"] == ["WriteUnits"]
    assert series["service/operation"] == ["Duration", "Errors"]
    assert "LockWait" not in series["service"]
    assert not {"DeletionsFailed", "thread_id", "error"} & line.keys()


@pytest.mark.parametrize(("outcome", "failed"), [("ok", 0), ("error", 1), ("interrupted", 1)])
def test_a_deletion_counts_when_it_begins_and_if_it_fails(outcome: Any, failed: int) -> None:
    began = _written(Event(operation="prune", outcome="began", requests=1))
    assert _series(began)["service"] == ["DeletionsBegan"]
    ended = _written(Event(operation="prune", outcome=outcome))
    assert (ended["DeletionsFailed"], ended["Errors"]) == (failed, outcome == "error")


def test_names_are_those_of_powertools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Agents")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "support")
    event = Event(operation="put", outcome="ok")
    line = _written(event)
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Agents"
    assert line["service"] == "support"
    line = _written(event, namespace="mine", service="own")
    assert (line["_aws"]["CloudWatchMetrics"][0]["Namespace"], line["service"]) == ("mine", "own")


@pytest.mark.parametrize("value", ["", " ", "\u00fc", "a\nb", "a\x7f", "x" * 1025])
def test_what_cloudwatch_refuses_as_a_dimension_is_among_the_others(value: str) -> None:
    line = _written(Event(operation="put", outcome="ok", tenant=value), service=value or " ")
    assert (line["tenant"], line["service"]) == ("(other)", "(other)")


def test_what_is_refused_takes_no_place_of_a_tenant() -> None:
    lines: list[str] = []
    metrics = EmbeddedMetrics(tenants_max=1, write=lines.append)
    for tenant in ("\u00fc", "acme"):
        metrics(Event(operation="put", outcome="ok", tenant=tenant))
    assert [json.loads(each)["tenant"] for each in lines] == ["(other)", "acme"]


def test_lines_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmbeddedMetrics(tenants_max=1)
    for tenant in ("a", "b", None):
        metrics(Event(operation="put", outcome="ok", tenant=tenant))
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(each)["tenant"] for each in lines] == ["a", "(other)", "(none)"]


def test_no_line_waits_in_the_buffer_of_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(cast("io.RawIOBase", written))))
    EmbeddedMetrics()(Event(operation="put", outcome="ok"))
    assert written.getvalue().endswith(b"}\n")
