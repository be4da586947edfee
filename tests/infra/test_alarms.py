"""Alarms and dashboards of all templates watch metrics that there are, under dimensions that they have.

An alarm on a metric without data never goes off.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from langgraph.checkpoint.dynamodb._format.schema import INDEXES
from langgraph.checkpoint.dynamodb.observe import EmbeddedMetrics, Event
from tests.infra.authorization import actions_of
from tests.infra.rendering import INFRA, Node, Stack
from tests.infra.stacks import GATEWAYS, TABLE_STACK, stack_of

ALARM = "AWS::CloudWatch::Alarm"
TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:oncall"
OF_TABLE, OF_OPERATION = ("TableName",), ("TableName", "Operation")
OF_INDEX = ("TableName", "GlobalSecondaryIndexName")
# What an alarm is for, by the cause that DynamoDB's metrics name.
CAUSES = {
    "ThrottledPartitionKey": "KeyRangeThroughput",
    "ThrottledOnDemandMaximum": "MaxOnDemandThroughput",
    "ThrottledAccountLimit": "AccountLimit",
}
OF_TABLE_AND_INDEXES = (
    *(f"{direction}{cause}ThrottleEvents" for direction in ("Read", "Write") for cause in CAUSES.values()),
    "ReadThrottleEvents",
    "WriteThrottleEvents",
    "ConsumedReadCapacityUnits",
    "ConsumedWriteCapacityUnits",
)


class Metric(NamedTuple):
    """A metric: its namespace, its name, and the names of its dimensions."""

    namespace: str
    name: str
    dimensions: tuple[str, ...]


def _written_by_savers() -> Iterator[Metric]:
    """Yield every metric that a saver with `EmbeddedMetrics` writes."""
    lines: list[str] = []
    metrics = EmbeddedMetrics(service="agent", write=lines.append)
    for operation, outcome in (("acquire", "ok"), ("prune", "began"), ("prune", "ok")):
        event: Any = {"operation": operation, "outcome": outcome}
        metrics(Event(**event, read_units=1.0, write_units=1.0))
    for line in map(json.loads, lines):
        for directive in line["_aws"]["CloudWatchMetrics"]:
            for metric in directive["Metrics"]:
                yield Metric(directive["Namespace"], metric["Name"], tuple(directive["Dimensions"][0]))


OF_SAVERS = set(_written_by_savers())
OF_DYNAMODB = {
    *(Metric("AWS/DynamoDB", each, of) for each in OF_TABLE_AND_INDEXES for of in (OF_TABLE, OF_INDEX)),
    Metric("AWS/DynamoDB", "ConditionalCheckFailedRequests", OF_TABLE),
    Metric("AWS/DynamoDB", "TimeToLiveDeletedItemCount", OF_TABLE),
    Metric("AWS/DynamoDB", "SystemErrors", OF_OPERATION),
    Metric("AWS/DynamoDB", "SuccessfulRequestLatency", OF_OPERATION),
}
OF_SERVICES = {
    *(Metric("AWS/Lambda", each, ("FunctionName",)) for each in ("Duration", "Errors", "Throttles")),
    *(Metric("AWS/ApiGateway", each, ("ApiId",)) for each in ("4xx", "5xx")),
    *(
        Metric("AWS/ApplicationELB", each, ("LoadBalancer",))
        for each in (
            "HTTPCode_ELB_5XX_Count",
            "HTTPCode_Target_4XX_Count",
            "HTTPCode_Target_5XX_Count",
            "TargetResponseTime",
        )
    ),
    Metric("AWS/ApplicationELB", "HealthyHostCount", ("TargetGroup", "LoadBalancer")),
    Metric("AWS/ECS", "MemoryUtilization", ("ClusterName", "ServiceName")),
}
WATCHED = {"table": stack_of("observability.yaml"), "savers": stack_of("saver-metrics.yaml"), **GATEWAYS}


def sources(alarm: Node) -> list[Node]:
    """The metrics that an alarm reads, as the template has them."""
    return [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", ()) if "MetricStat" in each] or [
        alarm
    ]


def metrics_of(stack: Stack) -> list[tuple[Metric, dict[str, str]]]:
    """The metrics that the alarms of a stack read, with their dimensions' values."""
    found = []
    for source in (each for alarm in stack.of_type(ALARM).values() for each in sources(alarm)):
        values = {each["Name"]: each["Value"] for each in source.get("Dimensions", [])}
        found.append((Metric(source["Namespace"], source["MetricName"], tuple(values)), values))
    return found


def operations(alarm: Node) -> set[str]:
    """The operations that an alarm reads a metric of."""
    values = ({each["Name"]: each["Value"] for each in source["Dimensions"]} for source in sources(alarm))
    return {each["Operation"] for each in values}


def statistics(alarm: Node) -> set[tuple[str, int]]:
    """The statistics and periods of the metrics that an expression of an alarm reads."""
    stats = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    return {(each["Stat"], each["Period"]) for each in stats}


@pytest.mark.parametrize("name", WATCHED)
def test_alarms_read_metrics_that_there_are(name: str) -> None:
    found = metrics_of(WATCHED[name])
    assert {metric for metric, _ in found} <= OF_DYNAMODB | OF_SERVICES | OF_SAVERS
    known = {
        "TableName": {"langgraph-checkpoints"},
        "GlobalSecondaryIndexName": set(INDEXES),
        "service": {"agent"},
    }
    for _, values in found:
        assert all(value in known.get(each, {value}) for each, value in values.items())


def test_what_can_go_wrong_is_watched() -> None:
    for each in GATEWAYS.values():
        assert {"FailedRequests", "RefusedRequests"} <= each.of_type(ALARM).keys()
    named = {metric.name for metric, _ in metrics_of(WATCHED["savers"])}
    assert named == {"DeletionsFailed", "Errors", "LockWait", "Requests", "Retries"}


@pytest.mark.parametrize("template", ["observability.yaml", "saver-metrics.yaml", "gateway.yaml", "ecs.yaml"])
def test_alarms_explain_themselves_and_go_to_the_topic_or_to_nobody(template: str) -> None:
    for topic, actions in (("", None), (TOPIC_ARN, [TOPIC_ARN])):
        alarms = stack_of(template, AlarmTopicArn=topic).of_type(ALARM)
        assert alarms
        for alarm in alarms.values():
            assert alarm["AlarmDescription"]
            assert alarm.get("AlarmActions") == alarm.get("OKActions") == actions


@pytest.mark.parametrize("name", CAUSES)
def test_each_cause_of_throttling_has_an_alarm_over_reads_and_writes_of_table_and_indexes(name: str) -> None:
    alarm = WATCHED["table"].properties(name)
    watched = {
        (source["MetricName"], *(each["Value"] for each in source["Dimensions"][1:]))
        for source in sources(alarm)
    }
    assert watched == {
        (f"{direction}{CAUSES[name]}ThrottleEvents", *index)
        for direction in ("Read", "Write")
        for index in ((), *((each,) for each in INDEXES))
    }
    assert statistics(alarm) == {("Sum", 60)}
    # One metric without data would otherwise leave the sum without data.
    [sum_of_all] = [each["Expression"] for each in alarm["Metrics"] if each.get("ReturnData", True)]
    assert sum_of_all == "SUM(FILL(METRICS(), 0))"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
    assert "docs/runbook.md" in alarm["AlarmDescription"]


def test_a_table_that_answers_no_read_rings_where_traffic_is_expected() -> None:
    """Refused requests, and those to a table that is gone, have no metric: only answers that are missing tell."""
    assert "Quiet" not in WATCHED["table"].resources
    alarm = stack_of("observability.yaml", QuietMinutes="60").properties("Quiet")
    reads = actions_of(TABLE_STACK.properties("ReaderPolicy")["PolicyDocument"])
    assert operations(alarm) == {action.removeprefix("dynamodb:") for action in reads}
    assert {each["MetricName"] for each in sources(alarm)} == {"SuccessfulRequestLatency"}
    assert statistics(alarm) == {("SampleCount", 60)}
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["EvaluationPeriods"] == "60"


def test_the_busiest_tenant_is_watched_where_a_limit_is_given() -> None:
    assert "BusiestTenant" not in WATCHED["savers"].of_type(ALARM)
    alarm = stack_of("saver-metrics.yaml", TenantWriteUnits="5000").properties("BusiestTenant")
    assert alarm["Threshold"] == "5000"
    [metric] = alarm["Metrics"]
    found = re.fullmatch(
        r"SELECT SUM\((\w+)\) FROM SCHEMA\(\"(.+)\", (\w+), (\w+)\) WHERE service = 'agent'"
        r" GROUP BY tenant ORDER BY SUM\(\) DESC LIMIT 1",
        metric["Expression"],
    )
    assert found is not None
    name, namespace, *dimensions = found.groups()
    assert Metric(namespace, name, tuple(dimensions)) in OF_SAVERS
    assert (metric["Period"], metric["ReturnData"]) == (300, True)


def test_operations_that_are_refused_ring() -> None:
    """Lost rights, a disabled key, expired credentials, a deleted table: DynamoDB has no metric of any of them."""
    alarm = stack_of("saver-metrics.yaml", ErrorsPercent="5").properties("Errors")
    assert statistics(alarm) == {("Sum", 300), ("SampleCount", 300)}
    [expression] = [each["Expression"] for each in alarm["Metrics"] if "Expression" in each]
    # One failure of a quiet night does not.
    assert expression == "IF(errors >= 5, 100 * errors / operations, 0)"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", "5")


SEARCH = re.compile(
    r"SEARCH\('\{([\w/-]+),([\w,]+)\} \w+=\"([\w-]+)\" MetricName=\"(\w+)\"',"
    r" '(?:Sum|Average|SampleCount|p99)', (?:60|300)\)"
)


def widgets_of(name: str) -> list[Node]:
    """The widgets of a dashboard."""
    found: list[Node] = json.loads(WATCHED[name].properties("Dashboard")["DashboardBody"])["widgets"]
    return found


def shown(name: str) -> Iterator[tuple[Metric, str]]:
    """Yield the metrics that a dashboard shows, each with whose they are."""
    for metric in (each for widget in widgets_of(name) for each in widget["properties"]["metrics"]):
        if isinstance(metric[0], str):
            namespace, title, *pairs = [part for part in metric if isinstance(part, str)]
            yield Metric(namespace, title, tuple(pairs[::2])), pairs[1]
        elif "SEARCH" in metric[0]["expression"]:
            # A search finds each index, operation and tenant, whatever its name.
            found: Any = SEARCH.fullmatch(metric[0]["expression"])
            yield Metric(found[1], found[4], tuple(found[2].split(","))), found[3]


def test_dashboards_show_all_metrics_that_there_are() -> None:
    of_table, of_savers = set(shown("table")), set(shown("savers"))
    assert of_table == {(metric, "langgraph-checkpoints") for metric in OF_DYNAMODB}
    assert of_savers <= {(metric, "agent") for metric in OF_SAVERS}
    assert {metric.name for metric, _ in of_savers} >= {
        *("ReadUnits", "WriteUnits", "CacheHits", "CacheMisses", "Retries", "DeletionsBegan"),
        *("DeletionsFailed", "LockWait", "Duration"),
    }


@pytest.mark.parametrize("name", ["table", "savers"])
def test_no_widget_lies_on_another(name: str) -> None:
    taken = [
        (x, y)
        for widget in widgets_of(name)
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize(
    ("name", "page", "says"),
    [
        ("table", "cost.md", "| {} \u00d7 $0.10 = ${:.2f} |"),
        ("savers", "observing.md", "{} metrics, which cost ${:.2f} a month"),
    ],
)
def test_the_documents_have_what_the_alarms_cost(name: str, page: str, says: str) -> None:
    """CloudWatch charges each metric that an alarm watches, those of an expression one by one."""
    count = len(metrics_of(WATCHED[name]))
    document = " ".join((INFRA.parent / "docs" / page).read_text(encoding="utf-8").split())
    assert says.format(count, count * 0.1) in document
