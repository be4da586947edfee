"""What `infra/observability.yaml` watches: the dimensions under which DynamoDB really publishes each metric."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from langgraph.checkpoint.dynamodb._format.schema import INDEXES
from tests.infra.authorization import actions_of
from tests.infra.rendering import INFRA, Node, load, render
from tests.infra.test_parameters import GIVEN

TABLE_STACK = render(load("table.yaml"))
TEMPLATE = load("observability.yaml")
ALARM = "AWS::CloudWatch::Alarm"
TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:oncall"

# Under which dimensions DynamoDB publishes a metric. An alarm on any other set never gets data and never goes off.
OF_TABLE_AND_INDEX = {("TableName",), ("TableName", "GlobalSecondaryIndexName")}
# What an alarm is for, by the cause that DynamoDB's metrics name.
CAUSES = {
    "ThrottledPartitionKey": "KeyRangeThroughput",
    "ThrottledOnDemandMaximum": "MaxOnDemandThroughput",
    "ThrottledAccountLimit": "AccountLimit",
}
BY_CAUSE = {
    f"{direction}{cause}ThrottleEvents" for direction in ("Read", "Write") for cause in CAUSES.values()
}
DIMENSIONS: dict[str, set[tuple[str, ...]]] = {
    **dict.fromkeys(BY_CAUSE, OF_TABLE_AND_INDEX),
    "ReadThrottleEvents": OF_TABLE_AND_INDEX,
    "WriteThrottleEvents": OF_TABLE_AND_INDEX,
    "ConsumedReadCapacityUnits": OF_TABLE_AND_INDEX,
    "ConsumedWriteCapacityUnits": OF_TABLE_AND_INDEX,
    "ConditionalCheckFailedRequests": {("TableName",)},
    "TimeToLiveDeletedItemCount": {("TableName",)},
    "SystemErrors": {("TableName", "Operation")},
    "SuccessfulRequestLatency": {("TableName", "Operation")},
}


SEARCH = re.compile(
    r"SEARCH\('\{AWS/DynamoDB,(TableName,\w+)\} TableName=\"langgraph-checkpoints\""
    r" MetricName=\"(\w+)\"', '(?:Sum|Average|SampleCount)', 60\)"
)


def observe(**parameters: str) -> Node:
    """The stack of alarms and dashboard beside the table's stack."""
    given = {"TableStackName": "checkpoints", **parameters}
    return render(TEMPLATE, given, stack_name="observability", exports=TABLE_STACK.exports)


def metrics_of(alarm: Node) -> list[tuple[str, dict[str, str]]]:
    """The metrics that an alarm reads, with their dimensions."""
    sources = [
        metric["MetricStat"]["Metric"] for metric in alarm.get("Metrics", []) if "MetricStat" in metric
    ]
    for source in sources or [alarm]:
        assert source["Namespace"] == "AWS/DynamoDB"
    return [
        (
            source["MetricName"],
            {dimension["Name"]: dimension["Value"] for dimension in source.get("Dimensions", [])},
        )
        for source in sources or [alarm]
    ]


def operations(alarm: Node) -> set[str]:
    """The operations that an alarm reads a metric of."""
    return {dimensions["Operation"] for _, dimensions in metrics_of(alarm)}


def test_alarms_read_metrics_under_dimensions_that_exist() -> None:
    alarms = observe().of_type(ALARM)
    for alarm in alarms.values():
        for name, dimensions in metrics_of(alarm):
            assert tuple(dimensions) in DIMENSIONS[name]
            assert dimensions.get("TableName", "langgraph-checkpoints") == "langgraph-checkpoints"
            assert dimensions.get("GlobalSecondaryIndexName", "run_id-index") in INDEXES


@pytest.mark.parametrize("name", CAUSES)
def test_each_cause_of_throttling_has_an_alarm_over_reads_and_writes_of_table_and_indexes(name: str) -> None:
    alarm = observe().properties(name)
    watched = {
        (metric, dimensions.get("GlobalSecondaryIndexName")) for metric, dimensions in metrics_of(alarm)
    }
    assert watched == {
        (f"{direction}{CAUSES[name]}ThrottleEvents", index)
        for direction in ("Read", "Write")
        for index in (None, *INDEXES)
    }
    stats = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    assert {(each["Stat"], each["Period"]) for each in stats} == {("Sum", 60)}
    # One metric without data would otherwise leave the sum without data.
    [sum_of_all] = [each["Expression"] for each in alarm["Metrics"] if each.get("ReturnData", True)]
    assert sum_of_all == "SUM(FILL(METRICS(), 0))"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
    assert "docs/runbook.md" in alarm["AlarmDescription"]


@pytest.mark.parametrize(
    "template", ["observability.yaml", "saver-metrics.yaml", "gateway.yaml", "gateway-ecs.yaml"]
)
def test_alarms_explain_themselves_and_go_to_the_topic_or_to_nobody(template: str) -> None:
    for topic, actions in (("", None), (TOPIC_ARN, [TOPIC_ARN])):
        given = {**GIVEN[template], "AlarmTopicArn": topic}
        alarms = render(load(template), given, exports=TABLE_STACK.exports).of_type(ALARM)
        assert alarms
        for alarm in alarms.values():
            assert alarm["AlarmDescription"]
            assert alarm.get("AlarmActions") == alarm.get("OKActions") == actions


def test_a_table_that_answers_no_read_rings_where_traffic_is_expected() -> None:
    """Refused requests, and those to a table that is gone, have no metric: only answers that are missing tell."""
    assert "Quiet" not in observe().resources
    alarm = observe(QuietMinutes="60").properties("Quiet")
    reads = actions_of(TABLE_STACK.properties("ReaderPolicy")["PolicyDocument"])
    assert operations(alarm) == {action.removeprefix("dynamodb:") for action in reads}
    assert {name for name, _ in metrics_of(alarm)} == {"SuccessfulRequestLatency"}
    stats = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    assert {(each["Stat"], each["Period"]) for each in stats} == {("SampleCount", 60)}
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["EvaluationPeriods"] == "60"


def dashboard_widgets() -> list[Node]:
    """The widgets of the rendered dashboard."""
    widgets: list[Node] = json.loads(observe().properties("Dashboard")["DashboardBody"])["widgets"]
    return widgets


def test_dashboard_shows_metrics_that_exist() -> None:
    shown: dict[str, set[tuple[str, ...]]] = {}
    for widget in dashboard_widgets():
        for metric in widget["properties"]["metrics"]:
            if isinstance(metric[0], dict):
                found = SEARCH.fullmatch(metric[0]["expression"])
                assert found is not None
                # A search finds each index and each operation, whatever its name.
                name, dimensions = found[2], tuple(found[1].split(","))
            else:
                namespace, name, *pairs = [part for part in metric if isinstance(part, str)]
                assert (namespace, pairs[1]) == ("AWS/DynamoDB", "langgraph-checkpoints")
                dimensions = tuple(pairs[::2])
            shown.setdefault(name, set()).add(dimensions)
    assert shown == DIMENSIONS


def test_document_has_what_the_alarms_cost() -> None:
    """CloudWatch charges each metric that an alarm watches, those of an expression one by one."""
    count = sum(len(metrics_of(alarm)) for alarm in observe().of_type(ALARM).values())
    document = (INFRA.parent / "docs" / "cost.md").read_text()
    assert f"| {count} \u00d7 $0.10 = ${count * 0.1:.2f} |" in document


@pytest.mark.parametrize("template", sorted(INFRA.glob("*.yaml")), ids=lambda path: path.name)
def test_a_template_leaves_room_below_what_cloudformation_takes_without_a_bucket(template: Path) -> None:
    assert len(template.read_bytes()) <= 0.8 * 51_200
