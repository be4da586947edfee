"""`doctor`: what it finds on real engines, behind the template's policies, and what only AWS itself has."""

from __future__ import annotations

import contextlib
import email.utils
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb._format.schema import INDEXES, table_schema
from langgraph.checkpoint.dynamodb.cli import doctor
from langgraph.checkpoint.dynamodb.config.dynamodb import DynamoDBOptions
from tests.cli.conftest import Run
from tests.infra.authorization import Gate, actions_of
from tests.infra.conftest import for_table
from tests.infra.test_policies import POLICIES as DOCUMENTS
from tests.infra.test_tenants import policy_of
from tests.support.checkpoints import all_items

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")
DESCRIPTION = {
    "TableStatus": "ACTIVE",
    "TableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/a-table",
    **{
        name: table_schema("a-table")[name]
        for name in ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes")
    },
}

PROTECTED = DESCRIPTION | {"DeletionProtectionEnabled": True}


def refused(code: str = "AccessDeniedException", *, date: float | None = None) -> ClientError:
    headers = {} if date is None else {"date": email.utils.formatdate(date, usegmt=True)}
    metadata: Any = {"HTTPStatusCode": 400, "HTTPHeaders": headers}
    return ClientError({"Error": {"Code": code, "Message": code}, "ResponseMetadata": metadata}, "Any")


DENIED, INVALID = refused(), refused("ValidationException")


def answering(given: Any, answer: Any) -> Callable[..., Any]:
    def answered(*_: Any, **__: Any) -> Any:
        if isinstance(given, Exception):
            raise given
        return answer

    return answered


def examination(
    table: Any = DESCRIPTION,
    expiry: Any = "DISABLED",
    recovery: Any = "ENABLED",
    item: Any = None,
    ttl: int | None = None,
) -> doctor.Examination:
    """An examination of a table whose client gives these answers, or raises them."""
    recovered = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": recovery}}
    answers = {
        "describe_table": (table, {"Table": table}),
        "describe_time_to_live": (expiry, {"TimeToLiveDescription": {"TimeToLiveStatus": expiry}}),
        "describe_continuous_backups": (recovery, {"ContinuousBackupsDescription": recovered}),
        "get_item": (item, {}),
    }
    methods: dict[str, Any] = {name: answering(*answer) for name, answer in answers.items()}
    meta = SimpleNamespace(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com", region_name="eu-west-1")
    client: Any = SimpleNamespace(meta=meta, **methods)
    options = DynamoDBOptions(table_name="a-table", ttl_seconds=ttl)
    return doctor.Examination(client, options, "thread", clock=lambda: 1_000_000.0)


def found(check: str, seen: doctor.Examination) -> doctor.Finding:
    (finding,) = [each for each in seen.findings() if each.check == check]
    return finding


# On engines


def test_a_table_for_development_has_no_problem(run: Run, table: str, client: DynamoDBClient) -> None:
    before = all_items(client, table)
    ended = run("doctor", "--table", table, "--json")
    assert ended.code == 0
    verdicts = {each["check"]: each["verdict"] for each in ended.json}
    assert {name for name, each in verdicts.items() if each != "ok"} == {"recovery"}
    assert verdicts["recovery"] == "warning"
    assert verdicts.keys() == {"libraries", "table", "schema", "expiry", "recovery", "clock", "rights: agent"}
    assert all_items(client, table) == before


def test_a_table_that_is_not_there_is_a_problem(run: Run) -> None:
    ended = run("doctor", "--table", "not-there", "--json")
    assert ended.code == 8
    checks = {each["check"]: each for each in ended.json}
    assert checks["table"]["verdict"] == "problem"
    assert "deploy the template" in checks["table"]["remedy"]
    assert checks["schema"]["verdict"] == "unknown"
    assert checks["rights: agent"]["verdict"] == "unknown"
    assert "error: " in ended.err
    shown = run("doctor", "--table", "not-there").out
    assert "problem  table" in shown
    assert "table: deploy the template" in shown


def test_an_endpoint_without_an_answer_is_a_problem(run_at: Run) -> None:
    ended = run_at("doctor", "--table", "a-table", "--json", "--endpoint-url", "http://127.0.0.1:9")
    assert ended.code == 8
    (table,) = [each for each in ended.json if each["check"] == "table"]
    assert "check --endpoint-url" in table["remedy"]
    assert ended.json[-1] == table


def test_without_a_region_there_is_no_client(run_at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boto3, "Session", boto3.session.Session)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    ended = run_at("doctor", "--table", "a-table", "--json")
    assert ended.code == 8
    (client,) = ended.json
    assert "no AWS region" in client["remedy"]


def test_a_table_of_another_kind_is_told_what_it_lacks(run: Run, client: DynamoDBClient) -> None:
    client.create_table(
        TableName="of-another-kind",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    expiry: Any = {"Enabled": True, "AttributeName": "ttl"}
    client.update_time_to_live(TableName="of-another-kind", TimeToLiveSpecification=expiry)
    checks = {each["check"]: each for each in run("doctor", "--table", "of-another-kind", "--json").json}
    schema = checks["schema"]
    assert schema["verdict"] == "problem"
    assert "key schema: id HASH, not PK HASH, SK RANGE" in schema["says"]
    assert all(f"{name}: absent, not on" in schema["says"] for name in INDEXES)
    assert "add it as the template" in schema["remedy"]
    assert "on ttl, not on expires_at" in checks["expiry"]["says"]
    client.delete_table(TableName="of-another-kind")


# Rights


def test_the_policies_are_those_of_the_templates() -> None:
    documents = {name.lower(): document for name, document in DOCUMENTS.items()} | {"tenant": policy_of("a")}
    for name, document in documents.items():
        index = {doctor.INDEX_QUERY, doctor.OWNER_QUERY, doctor.DAY_QUERY} & doctor.POLICIES[name]
        assert {f"dynamodb:{each}" for each in doctor.POLICIES[name] - index} == actions_of(document)
    assert doctor.POLICIES.keys() == documents.keys()


@pytest.fixture
def guarded(engine: Engine) -> Iterator[Callable[[Any], DynamoDBClient]]:
    """Give a factory of clients that may do what a policy allows."""
    with contextlib.ExitStack() as stack:

        def guard(document: Any) -> DynamoDBClient:
            client = Gate([document]).session().client("dynamodb", **engine.client_options())
            return stack.enter_context(contextlib.closing(client))

        yield guard


@pytest.mark.parametrize(
    ("role", "other", "says"),
    [
        ("Agent", "operator", "not allowed: Query on day-index, Scan"),
        ("Operator", "agent", "not allowed: PutItem"),
        ("Reader", "agent", "not allowed: BatchWriteItem, DeleteItem, PutItem, UpdateItem"),
    ],
)
def test_the_policy_that_one_has_is_whole_and_what_others_need_is_named(
    guarded: Callable[[Any], DynamoDBClient], table: str, role: str, other: str, says: str
) -> None:
    outcomes = doctor.try_actions(guarded(for_table(DOCUMENTS[role], table)), table, "doctor")
    assert doctor.rights(outcomes, role.lower()).verdict == "ok"
    wanted = doctor.rights(outcomes, other)
    assert (wanted.verdict, wanted.says) == ("problem", says)
    assert f"{other.capitalize()}PolicyArn" in wanted.remedy


def test_a_tenants_rights_are_tried_in_a_thread_of_its_own(
    guarded: Callable[[Any], DynamoDBClient], table: str
) -> None:
    client = guarded(for_table(policy_of("acme"), table))
    own = doctor.try_actions(client, table, "acme/doctor")
    assert doctor.rights(own, "tenant").verdict == "ok"
    assert doctor.rights(own, "agent").verdict == "problem"
    assert doctor.rights(doctor.try_actions(client, table, "doctor"), "tenant").verdict == "problem"


# What only AWS has


@pytest.mark.parametrize(
    ("check", "answers", "verdict", "says"),
    [
        ("table", {"table": DENIED}, "unknown", "not allowed"),
        ("table", {"table": DESCRIPTION | {"TableStatus": "CREATING"}}, "problem", "CREATING"),
        ("schema", {}, "ok", "those of the template"),
        ("expiry", {}, "warning", "off"),
        ("expiry", {"ttl": 60}, "problem", "off"),
        ("expiry", {"expiry": DENIED}, "unknown", "may not"),
        ("expiry", {"expiry": INVALID}, "problem", "ValidationException"),
        ("recovery", {"table": PROTECTED}, "ok", "protection is on, point-in-time recovery enabled"),
        ("recovery", {}, "warning", "protection is off, point-in-time recovery enabled"),
        ("recovery", {"table": PROTECTED, "recovery": "DISABLED"}, "warning", "recovery disabled"),
        ("recovery", {"table": PROTECTED, "recovery": DENIED}, "unknown", "recovery unknown"),
        ("clock", {}, "unknown", "no response"),
        ("clock", {"item": refused(date=1_000_002.0)}, "ok", "2 s behind"),
        ("clock", {"item": refused(date=999_940.0)}, "warning", "60 s ahead of"),
        ("clock", {"item": refused(date=999_000.0)}, "problem", "1000 s ahead of"),
        ("table", {"table": refused("ThrottlingException")}, "problem", "ThrottlingException"),
    ],
)
def test_what_is_found_on_aws(check: str, answers: dict[str, Any], verdict: str, says: str) -> None:
    finding = found(check, examination(**answers))
    assert finding.verdict == verdict
    assert says in finding.says
    assert finding.remedy or finding.verdict in ("ok", "unknown")


@pytest.mark.parametrize(
    ("index", "verdict", "says"),
    [
        ({"IndexStatus": "CREATING"}, "problem", "run_id-index is CREATING; wait until it is ACTIVE"),
        ({"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}, "problem", "on id HASH, not on run_id"),
        ({"IndexStatus": "UPDATING"}, "ok", "those of the template"),
        # It holds each checkpoint a second time, and each put pays for it.
        ({"Projection": {"ProjectionType": "ALL"}}, "warning", "run_id-index projects ALL"),
    ],
)
def test_what_is_found_of_an_index(index: dict[str, Any], verdict: str, says: str) -> None:
    indexes: Any = DESCRIPTION["GlobalSecondaryIndexes"]
    changed = [each | (index if each["IndexName"] == "run_id-index" else {}) for each in indexes]
    finding = found("schema", examination(DESCRIPTION | {"GlobalSecondaryIndexes": changed}))
    assert finding.verdict == verdict
    assert says in f"{finding.says}; {finding.remedy}"


def test_libraries_that_do_not_fit_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["botocore<1.5,>=1.4"])
    finding = found("libraries", examination())
    assert finding.verdict == "problem"
    assert re.search(
        r"^aiobotocore \S+ needs botocore <1\.5,>=1\.4, and botocore \S+ is installed$", finding.says
    )
    assert finding.remedy.startswith('run `pip install --upgrade "aiobotocore[boto3]"`')
