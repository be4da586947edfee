"""`top`: hot threads, tenants and throttles of the last minutes, from CloudWatch.

The table's own metrics have units and throttles, its Contributor Insights the hot keys. Tenants are in the metrics that
savers with `EmbeddedMetrics` write.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb._format.items import parse_partition
from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK, MEMORIES_MARK, REGISTER_MARK
from langgraph.checkpoint.dynamodb._format.labels import parse_labels as parse_path
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.labels import labels_text
from langgraph.checkpoint.dynamodb.observe.cloudwatch import NAMESPACE

_MINUTE_SECONDS = 60
_ROWS_MAX = 10
_OF_TABLE = {
    "read_units": "ConsumedReadCapacityUnits",
    "write_units": "ConsumedWriteCapacityUnits",
    "read_throttles": "ReadThrottleEvents",
    "write_throttles": "WriteThrottleEvents",
}
_OF_TENANT = {"read_units": "ReadUnits", "write_units": "WriteUnits"}
_BESIDE_THREADS = {MEMORIES_MARK: "memories", REGISTER_MARK: "register of", CACHE_MARK: "node cache"}
# The rules that DynamoDB makes for the partition keys of a table: those accessed most, and those throttled most.
_ACCESSED, _THROTTLED = "-PKC-", "-PKT-"


@dataclass
class Moment:
    """The last minutes of a table."""

    minutes: int
    table: dict[str, float] = field(default_factory=dict)
    """Units and throttles."""
    tenants: dict[str, dict[str, float]] = field(default_factory=dict)
    """Units by tenant."""
    threads: dict[str, int] = field(default_factory=dict)
    """Requests of the threads that have most."""
    throttled: dict[str, int] = field(default_factory=dict)
    """Throttled requests of the threads that have most."""
    notes: list[str] = field(default_factory=list)
    """Remedies for metrics that could not be read."""


@dataclass(frozen=True)
class Watch:
    """Reads the metrics of one table."""

    client: Any
    cloudwatch: Any
    table_name: str
    namespace: str
    """The namespace of the savers' metrics."""

    def last(self, minutes: int) -> Moment:
        """Read the last minutes."""
        end = datetime.datetime.now(datetime.timezone.utc)
        span = {"StartTime": end - datetime.timedelta(minutes=minutes), "EndTime": end}
        moment = Moment(minutes)
        self._read_metrics(moment, span)
        self._read_threads(moment, span)
        return moment

    def _read_metrics(self, moment: Moment, span: Mapping[str, Any]) -> None:
        period = moment.minutes * _MINUTE_SECONDS
        # An ARN ends in the table's name.
        dimensions = [{"Name": "TableName", "Value": self.table_name.rpartition("/")[2]}]
        queries = [
            {
                "Id": name,
                "MetricStat": {
                    "Metric": {"Namespace": "AWS/DynamoDB", "MetricName": metric, "Dimensions": dimensions},
                    "Period": period,
                    "Stat": "Sum",
                },
            }
            for name, metric in _OF_TABLE.items()
        ]
        queries += [
            {
                "Id": f"tenant_{name}",
                "Label": "${PROP('Dim.tenant')}",
                "Expression": f"SEARCH('{{{self.namespace},service,tenant}} MetricName=\"{metric}\"',"
                f" 'Sum', {period})",
            }
            for name, metric in _OF_TENANT.items()
        ]
        pages = self.cloudwatch.get_paginator("get_metric_data")
        for page in pages.paginate(MetricDataQueries=queries, **span):
            for result in page["MetricDataResults"]:
                amount = sum(result["Values"])
                if result["Id"] in _OF_TABLE:
                    moment.table[result["Id"]] = moment.table.get(result["Id"], 0.0) + amount
                    continue
                # Several services have the same tenant.
                units = moment.tenants.setdefault(result["Label"], dict.fromkeys(_OF_TENANT, 0.0))
                units[result["Id"].removeprefix("tenant_")] += amount
        if not moment.tenants:
            moment.notes.append(
                f"no tenants in the namespace {self.namespace}: pass on_event=EmbeddedMetrics() to the savers,"
                " or --namespace; see `langgraph-dynamodb docs observing`"
            )

    def _read_threads(self, moment: Moment, span: Mapping[str, Any]) -> None:
        try:
            described = self.client.describe_contributor_insights(TableName=self.table_name)
            for rule in described.get("ContributorInsightsRuleList", ()):
                if _ACCESSED in rule:
                    moment.threads = self._contributors(rule, moment.minutes, span)
                elif _THROTTLED in rule:
                    moment.throttled = self._contributors(rule, moment.minutes, span)
            if described.get("ContributorInsightsStatus") == "ENABLED":
                return
            why = "Contributor Insights is off"
        except ClientError as error:
            why = f"Contributor Insights cannot be read ({error.response['Error']['Code']})"
        moment.notes.append(
            f"no threads: {why}; deploy the table's stack with ContributorInsights=ACCESSED_AND_THROTTLED_KEYS, and"
            " allow dynamodb:DescribeContributorInsights and cloudwatch:GetInsightRuleReport"
        )

    def _contributors(self, rule: str, minutes: int, span: Mapping[str, Any]) -> dict[str, int]:
        report = self.cloudwatch.get_insight_rule_report(
            RuleName=rule, Period=minutes * _MINUTE_SECONDS, MaxContributorCount=_ROWS_MAX, **span
        )
        counts = Counter[str]()
        for each in report["Contributors"]:
            # A thread has a partition for each of its namespaces.
            counts[_name_of(each["Keys"][0])] += int(each["ApproximateAggregateValue"])
        return dict(counts.most_common())


def _name_of(pk: str) -> str:
    """Return the thread of a partition, or what else the partition has."""
    for mark, what in _BESIDE_THREADS.items():
        if pk.endswith(mark):
            return f"{what} {labels_text(parse_path(pk.removesuffix(mark)))}"
    return parse_partition(pk).thread_id


def top(
    context: CommandContext,
    *,
    minutes: Annotated[int, typer.Option(min=1, max=180, metavar="N", help="The minutes to look back.")] = 5,
    every: Annotated[
        int, typer.Option(min=5, metavar="SECONDS", help="The seconds between two reads of the metrics.")
    ] = 60,
    once: Annotated[bool, typer.Option("--once", help="Print once and end; --json does, too.")] = False,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="The namespace of the metrics that savers write.")
    ] = NAMESPACE,
) -> None:
    """Watch hot threads, tenants and throttles through CloudWatch.

    CloudWatch has the metrics of a minute one to three minutes later. To show hot threads, the table needs Contributor
    Insights. To show tenants, the savers have to write metrics. The command reads nothing from the table. Reading a
    metric costs about $0.0001.
    """
    watch = Watch(context.client, context.session.client("cloudwatch"), context.options.table_name, namespace)
    if context.output.as_json:
        context.output.json(asdict(watch.last(minutes)))
        return
    _print(context, watch.last(minutes))
    while not once:
        time.sleep(every)
        _print(context, watch.last(minutes))


def _print(context: CommandContext, moment: Moment) -> None:
    output = context.output
    period = "minute" if moment.minutes == 1 else f"{moment.minutes} minutes"
    output.text(f"{time.strftime('%H:%M:%S')}, the last {period}", "bold")
    output.table(
        ("units read", "units written", "reads throttled", "writes throttled"),
        [[round(moment.table.get(name, 0)) for name in _OF_TABLE]],
    )
    if moment.tenants:
        tenants = sorted(moment.tenants.items(), key=lambda each: -sum(each[1].values()))[:_ROWS_MAX]
        output.text()
        output.table(
            ("tenant", "units read", "units written"),
            [(name, *(round(units[each]) for each in _OF_TENANT)) for name, units in tenants],
        )
    if moment.threads or moment.throttled:
        output.text()
        threads = {**moment.throttled, **moment.threads}
        output.table(
            ("thread", "requests", "throttled"),
            [(name, moment.threads.get(name), moment.throttled.get(name, 0)) for name in threads],
        )
    output.text()
    for each in moment.notes:
        output.note(each)
