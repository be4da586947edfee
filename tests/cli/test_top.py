"""`top`, with canned answers of CloudWatch, whose forms botocore checks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from langgraph.checkpoint.dynamodb.cli import top
from langgraph.checkpoint.dynamodb.cli.top import Watch
from tests.cli.conftest import Run

RULES = [f"DynamoDBContributorInsights-{kind}-threads-1" for kind in ("PKC", "SKC", "PKT", "SKT")]


class Canned:
    """Clients of both services, and the answers that they are to have."""

    def __init__(self) -> None:
        """Make clients that send nothing."""
        options: dict[str, Any] = {
            "region_name": "eu-west-1",
            "aws_access_key_id": "x",
            "aws_secret_access_key": "x",
        }
        self.dynamodb: Any = boto3.client("dynamodb", **options)
        self.cloudwatch: Any = boto3.client("cloudwatch", **options)
        self.stubs = [Stubber(self.dynamodb), Stubber(self.cloudwatch)]

    def metrics(self, *results: tuple[str, str, list[float]]) -> None:
        """Answer the next question for metrics, each by its id, label and values."""
        found = [{"Id": name, "Label": label, "Values": values} for name, label, values in results]
        expected = {"MetricDataQueries": ANY, "StartTime": ANY, "EndTime": ANY}
        self.stubs[1].add_response("get_metric_data", {"MetricDataResults": found}, expected)

    def insights(self, status: str, rules: list[str]) -> None:
        """Answer the next question for Contributor Insights."""
        answer = {"ContributorInsightsStatus": status, "ContributorInsightsRuleList": rules}
        self.stubs[0].add_response("describe_contributor_insights", answer, {"TableName": "threads"})

    def contributors(self, rule: str, counts: dict[str, int]) -> None:
        """Answer the next question for a rule's report, by partition key."""
        found = [
            {"Keys": [key], "ApproximateAggregateValue": count, "Datapoints": []}
            for key, count in counts.items()
        ]
        expected = {
            "RuleName": rule,
            "StartTime": ANY,
            "EndTime": ANY,
            "Period": 300,
            "MaxContributorCount": 10,
        }
        self.stubs[1].add_response("get_insight_rule_report", {"Contributors": found}, expected)

    def watch(self) -> Watch:
        """Return what reads the answers."""
        return Watch(self.dynamodb, self.cloudwatch, "threads", "langgraph-dynamodb")


@pytest.fixture
def canned() -> Iterator[Canned]:
    """Give canned clients, all of whose answers have to be asked for."""
    canned = Canned()
    with contextlib.ExitStack() as stack:
        for each in canned.stubs:
            stack.enter_context(each)
        yield canned
        for each in canned.stubs:
            each.assert_no_pending_responses()
    canned.dynamodb.close()
    canned.cloudwatch.close()


def _busy(canned: Canned) -> None:
    canned.metrics(
        ("read_units", "x", [100.0, 20.0]),
        ("write_units", "x", [300.0]),
        ("write_throttles", "x", [7.0]),
        ("tenant_read_units", "acme", [5.0]),
        ("tenant_read_units", "acme", [6.0]),
        ("tenant_write_units", "acme", [7.0]),
        ("tenant_write_units", "red", [90.0]),
    )
    canned.insights("ENABLED", RULES)
    canned.contributors(RULES[0], {"acme/1#": 40, "acme/1#child:2": 2, "red/%231#": 50})
    canned.contributors(RULES[2], {"acme/1#": 7})


def test_units_throttles_tenants_and_threads(canned: Canned) -> None:
    _busy(canned)
    moment = canned.watch().last(5)
    assert moment.table == {"read_units": 120, "write_units": 300, "write_throttles": 7}
    assert moment.tenants == {
        "acme": {"read_units": 11, "write_units": 7},
        "red": {"read_units": 0, "write_units": 90},
    }
    # The namespaces of a thread count together, and its id is as the agent knows it.
    assert list(moment.threads.items()) == [("red/#1", 50), ("acme/1", 42)]
    assert moment.throttled == {"acme/1": 7}
    assert not moment.notes


def test_what_is_not_there_is_said_with_its_remedy(canned: Canned) -> None:
    canned.metrics()
    canned.insights("DISABLED", [])
    tenants, threads = canned.watch().last(5).notes
    assert "on_event=EmbeddedMetrics()" in tenants
    assert "Contributor Insights is off; deploy" in threads


def test_a_right_that_is_missing_hides_threads_only(canned: Canned) -> None:
    canned.metrics(("write_units", "x", [300.0]), ("tenant_write_units", "acme", [7.0]))
    canned.stubs[0].add_client_error("describe_contributor_insights", "AccessDeniedException")
    moment = canned.watch().last(5)
    assert moment.table == {"write_units": 300}
    assert "(AccessDeniedException)" in moment.notes[0]


@pytest.fixture
def watched(canned: Canned, sessions: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Canned:
    """Let the command have the canned clients."""
    make = sessions["session"].client

    def client(service: str, **options: Any) -> Any:
        return canned.cloudwatch if service == "cloudwatch" else make(service, **options)

    monkeypatch.setattr(sessions["session"], "client", client)
    monkeypatch.setattr(top, "Watch", lambda *_: canned.watch())
    return canned


@pytest.mark.engines("dynamodb-local")
def test_once_it_prints_tables(watched: Canned, run: Run) -> None:
    _busy(watched)
    ended = run("top", "--table", "threads", "--once")
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["120", "300", "0", "7"] in lines
    assert lines.index(["red", "0", "90"]) < lines.index(["acme", "11", "7"])
    assert ["acme/1", "42", "7"] in lines
    assert ["red/#1", "50", "0"] in lines


@pytest.mark.engines("dynamodb-local")
def test_for_scripts_it_prints_one_document(watched: Canned, run: Run) -> None:
    watched.metrics()
    watched.insights("DISABLED", [])
    found = run("top", "--table", "threads", "--json").json
    assert (found["minutes"], found["threads"], len(found["notes"])) == (5, {}, 2)


@pytest.mark.engines("dynamodb-local")
def test_one_minute_is_singular(watched: Canned, run: Run) -> None:
    watched.metrics()
    watched.insights("DISABLED", [])
    assert "the last minute\n" in run("top", "--table", "threads", "--minutes", "1", "--once").out


@pytest.mark.engines("dynamodb-local")
def test_it_goes_on_until_it_is_interrupted(
    watched: Canned, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(top, "time", SimpleNamespace(sleep=sleep, strftime=time.strftime))
    for _ in range(2):
        watched.metrics()
        watched.insights("DISABLED", [])
    ended = run("top", "--table", "threads", "--every", "7")
    assert waits == [7, 7]
    assert ended.out.count("the last 5 minutes") == 2
    assert ended.code == 130


def test_what_is_no_thread_is_named_as_what_it_is(canned: Canned) -> None:
    canned.metrics()
    canned.insights("ENABLED", [RULES[0]])
    canned.contributors(RULES[0], {"users/ada/%M#": 5, "users/%N#": 3, "node/%K#": 2, "users/ada/#": 1})
    assert canned.watch().last(5).threads == {
        "memories users/ada": 5,
        "register of users": 3,
        "node cache node": 2,
        "users/ada/": 1,
    }
