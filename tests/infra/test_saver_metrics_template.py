"""`infra/saver-metrics.yaml` watches metrics that savers with `EmbeddedMetrics` really write."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.observe import EmbeddedMetrics, Event
from tests.infra.authorization import Gate
from tests.infra.rendering import INFRA, Node, load, render

ALARM = "AWS::CloudWatch::Alarm"
TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:oncall"
TEMPLATE = load("saver-metrics.yaml")


def _stack(**parameters: str) -> Node:
    return render(TEMPLATE, {"Service": "agent", **parameters}, stack_name="savers", exports={})


def _written() -> set[tuple[str, str, tuple[str, ...]]]:
    """The namespace, name and dimensions of every metric that a saver writes."""
    lines: list[str] = []
    metrics = EmbeddedMetrics(service="agent", write=lines.append)
    for operation, outcome in (("acquire", "ok"), ("prune", "began"), ("prune", "ok")):
        event: Any = {"operation": operation, "outcome": outcome}
        metrics(Event(**event, read_units=1.0, write_units=1.0))
    return {
        (directive["Namespace"], metric["Name"], tuple(directive["Dimensions"][0]))
        for line in map(json.loads, lines)
        for directive in line["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
    }


def _metrics_of(alarm: Node) -> list[Node]:
    return [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", ()) if "MetricStat" in each] or [
        alarm
    ]


def test_alarms_read_metrics_that_savers_write() -> None:
    alarms = _stack().of_type(ALARM)
    read = {
        (each["Namespace"], each["MetricName"], tuple(one["Name"] for one in each["Dimensions"]))
        for alarm in alarms.values()
        for each in _metrics_of(alarm)
    }
    assert read <= _written()
    assert {name for _, name, _ in read} == {"DeletionsFailed", "Errors", "LockWait", "Requests", "Retries"}
    assert {
        one["Value"] for alarm in alarms.values() for each in _metrics_of(alarm) for one in each["Dimensions"]
    } == {"agent"}


def test_the_dashboard_shows_metrics_that_savers_write() -> None:
    widgets = json.loads(_stack().properties("Dashboard")["DashboardBody"])["widgets"]
    written, shown = _written(), set()
    for metric in (each for widget in widgets for each in widget["properties"]["metrics"]):
        if isinstance(metric[0], str):
            namespace, name, dimension, value = metric[:4]
            assert value == "agent"
            shown.add((namespace, name, (dimension,)))
        elif "SEARCH" in metric[0]["expression"]:
            found = re.search(r"\{(.*?)\} service=\"agent\" MetricName=\"(\w+)\"", metric[0]["expression"])
            assert found is not None
            namespace, *dimensions = found[1].split(",")
            shown.add((namespace, found[2], tuple(dimensions)))
    assert shown <= written
    assert {name for _, name, _ in shown} >= {
        "ReadUnits",
        "WriteUnits",
        "CacheHits",
        "CacheMisses",
        "Retries",
        "DeletionsBegan",
        "DeletionsFailed",
        "LockWait",
        "Duration",
    }
    taken = [
        (x, y)
        for widget in widgets
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(taken) == len(set(taken))


def test_the_busiest_tenant_is_watched_where_a_limit_is_given() -> None:
    assert "BusiestTenant" not in _stack().of_type(ALARM)
    alarm = _stack(TenantWriteUnits="5000").properties("BusiestTenant")
    assert alarm["Threshold"] == "5000"
    [metric] = alarm["Metrics"]
    found = re.fullmatch(
        r"SELECT SUM\((\w+)\) FROM SCHEMA\(\"(.+)\", (\w+), (\w+)\) WHERE service = 'agent'"
        r" GROUP BY tenant ORDER BY SUM\(\) DESC LIMIT 1",
        metric["Expression"],
    )
    assert found is not None
    name, namespace, *dimensions = found.groups()
    assert (namespace, name, tuple(dimensions)) in _written()
    assert (metric["Period"], metric["ReturnData"]) == (300, True)


def test_operations_that_are_refused_ring() -> None:
    """Lost rights, a disabled key, expired credentials, a deleted table: DynamoDB has no metric of any of them."""
    alarm = _stack(ErrorsPercent="5").properties("Errors")
    [share] = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    assert share["Stat"] == "Average"
    assert [each["Expression"] for each in alarm["Metrics"] if "Expression" in each] == ["100 * errors"]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", "5")


@pytest.mark.engines("dynamodb-local")
def test_a_saver_that_lost_its_rights_writes_errors(saver_of: Any) -> None:
    lines: list[str] = []
    saver = saver_of(Gate([]), on_event=EmbeddedMetrics(write=lines.append))
    with pytest.raises(CheckpointerConfigurationError, match="was denied"):
        saver.get_tuple({"configurable": {"thread_id": "thread"}})
    [line] = map(json.loads, lines)
    assert (line["Errors"], line["outcome"]) == (1, "error")


def test_the_document_has_what_the_alarms_cost() -> None:
    count = sum(len(_metrics_of(alarm)) for alarm in _stack().of_type(ALARM).values())
    document = " ".join((INFRA.parent / "docs" / "observing.md").read_text(encoding="utf-8").split())
    assert f"{count} metrics, which cost ${count * 0.1:.2f} a month" in document
