"""`make smoke`: what it says of a deployment on this machine, as far as engines here go, and that it leaves nothing.

MiniStack applies policies, so the roles are tried there, by whoever has the deployer's policy and no other. It knows
neither `dynamodb:LeadingKeys` nor `iam:PermissionsBoundary`. A tenant's policy is judged by the tests' own evaluator.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import boto3
import pytest

from infra import smoke as program
from infra.checks import LEFT_OUT, OK, PROBLEM, Result
from infra.smoke import CHECKS, Smoke, run
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from tests.deployed.conftest import Client, Run, Stacks, environment, environment_of_role, use, verdicts
from tests.infra.authorization import Gate
from tests.infra.rendering import ACCOUNT_ID, INFRA, REGION, Node, load
from tests.infra.stacks import TABLE_STACK, stack_of
from tests.infra.test_access import POLICIES, SMOKE
from tests.support.checkpoints import all_items, store, thread_config
from tests.support.gateway_service import gateway_service
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb import DynamoDBSaver

PAGE = INFRA.parent / "docs" / "deploy.md"
QUICK = [name for name, check in CHECKS.items() if not check.is_slow]
STACK = "langgraph-checkpoints"
SCAN = {
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "dynamodb:Scan",
            "Resource": f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{STACK}",
        }
    ]
}


@pytest.mark.search
@pytest.mark.engines("dynamodb-local")
def test_a_table_on_dynamodb_local_that_is_in_use(
    engine: Engine, saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, run_program: Run
) -> None:
    store(saver, thread_config("somebody"), "1", {"a": 1})
    before, tables = all_items(client, table_name), client.list_tables()["TableNames"]
    said = run_program(program.main, environment(engine.endpoint_url), "--table", table_name, "--slow")
    assert said.status == 0, said.text
    left_out = {"roles", "tenants", "gateway", "alarm", "restored"}
    assert verdicts(said.text) == {
        name: LEFT_OUT if name in left_out else OK for name in [*CHECKS, "cleaned-up"]
    }
    assert "81 tests passed, none was skipped" in said.text
    assert all_items(client, table_name) == before
    assert client.list_tables()["TableNames"] == tables


@pytest.mark.engines("dynamodb-local")
def test_the_gateway(
    local: Engine,
    make_saver: Callable[..., DynamoDBSaver],
    client: DynamoDBClient,
    table_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del local
    with gateway_service(make_saver()) as address:
        found = results(Smoke(table_name, gateway_url=address), "gateway")
    assert {check: each.verdict for check, each in found.items()} == {"gateway": OK, "cleaned-up": OK}
    assert address in found["gateway"].says
    assert all_items(client, table_name) == []
    # It is gone now.
    monkeypatch.setattr(program, "GATEWAY_RETRY_SECONDS", 0.1)
    found = results(Smoke(table_name, gateway_url=address), "gateway")
    assert found["gateway"].verdict == PROBLEM
    assert "set GATEWAY_TOKEN to a token" in found["gateway"].remedy


@pytest.fixture(scope="module")
def deployed(emulator: Client, stacks: Stacks) -> Iterator[dict[str, str]]:
    """Give the environment of a deployer: the policy of access.yaml, and table, alarms and a tenant deployed."""
    topic = emulator("sns").create_topic(Name="oncall")["TopicArn"]
    table, tenant, alarms = STACK, f"{STACK}-tenant-acme", f"{STACK}-observability"
    assert stacks.create(table, load("table.yaml"), DeletionProtection="false") == "CREATE_COMPLETE"
    given = {"TableStackName": STACK, "Tenant": "acme"}
    assert stacks.create(tenant, load("tenant.yaml"), **given) == "CREATE_COMPLETE"
    # The emulator makes none of our alarms, which all compute.
    stacks.create(alarms, {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    emulator("cloudwatch").put_metric_alarm(
        AlarmName=f"{alarms}-Errors",
        MetricName="Errors",
        Namespace="LangGraph",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[topic],
    )
    everywhere = {"Effect": "Allow", "Action": ["iam:AttachRolePolicy", "iam:CreateRole"], "Resource": "*"}
    attach = {"Version": "2012-10-17", "Statement": [everywhere]}
    iam, document = emulator("iam"), json.dumps(POLICIES["Boundary"])
    boundary = iam.create_policy(PolicyName="boundary", PolicyDocument=document)["Policy"]["Arn"]
    own = environment_of_role(emulator, "deployer", POLICIES["DeployerPolicy"], attach)
    yield {**own, "BOUNDARY": boundary}
    iam.delete_policy(PolicyArn=boundary)
    emulator("cloudwatch").delete_alarms(AlarmNames=[f"{alarms}-Errors"])
    for name in (tenant, alarms, table):
        stacks.destroy(name)


def test_a_deployment_on_ministack_by_whoever_has_the_deployers_policy(
    emulator: Client, deployed: dict[str, str], run_program: Run
) -> None:
    roles = emulator("iam").list_roles()["Roles"]
    said = run_program(program.main, deployed, STACK, "--boundary", deployed["BOUNDARY"])
    assert said.status == 0, said.text
    left_out = {"expiry", "tenants", "gateway", "alarm"}
    assert verdicts(said.text) == {
        name: LEFT_OUT if name in left_out else OK for name in [*QUICK, "cleaned-up"]
    }
    page = PAGE.read_text(encoding="utf-8").split("$ make smoke\n")[1].split("```")[0]
    assert verdicts(page).items() <= verdicts(said.text).items()
    assert "the reader 6, not BatchWriteItem" in said.text
    assert "it knows no dynamodb:LeadingKeys" in said.text
    # The policy names all requests.
    some = {"iam:CreateRole", "cloudwatch:SetAlarmState", "sts:AssumeRole"}
    assert some <= said.sent <= set(SMOKE.split())
    assert all_items(emulator("dynamodb"), STACK) == []
    assert [each["RoleName"] for each in emulator("iam").list_roles()["Roles"]] == [
        each["RoleName"] for each in roles
    ]
    # It set an alarm off, and back.
    assert emulator("cloudwatch").describe_alarms(StateValue="ALARM")["MetricAlarms"] == []


def test_a_role_that_may_not_be_created_is_a_problem(
    emulator: Client, deployed: dict[str, str], run_program: Run
) -> None:
    iam = emulator("iam")
    denied = {"Effect": "Deny", "Action": "iam:CreateRole", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName="deployer", PolicyName="none", PolicyDocument=document)
    said = run_program(program.main, deployed, STACK, "--only", "roles", "--only", "lock")
    iam.delete_role_policy(RoleName="deployer", PolicyName="none")
    assert said.status == 1
    assert verdicts(said.text) == {"lock": OK, "roles": PROBLEM, "cleaned-up": OK}
    assert "to do: run this with the DeployerPolicyArn of infra/access.yaml" in said.text


def test_a_stack_that_is_not_there(deployed: dict[str, str], run_program: Run) -> None:
    with pytest.raises(SystemExit, match="There is no stack langgraph-checkpoints-other with a table here"):
        run_program(program.main, deployed, "langgraph-checkpoints-other")


@pytest.fixture
def local(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Give an engine that this process's own clients reach."""
    use(environment(engine.endpoint_url), monkeypatch)
    return engine


def results(subject: Smoke, *names: str) -> dict[str, Result]:
    """Make some checks in this process."""
    return {each.check: each for each in run(subject, [CHECKS[name] for name in names])}


@pytest.mark.engines("dynamodb-local")
def test_what_is_wrong_is_a_problem_with_a_remedy(local: Engine, client: DynamoDBClient) -> None:
    name = f"without-expiry-{id(local)}"
    schema = table_schema(name)
    schema["GlobalSecondaryIndexes"] = schema["GlobalSecondaryIndexes"][:1]
    schema["AttributeDefinitions"] = schema["AttributeDefinitions"][:3]
    client.create_table(**schema)
    found = results(Smoke(name), "doctor", "expiry", "directory", "saver")
    client.delete_table(TableName=name)
    assert {check: each.verdict for check, each in found.items()} == {
        "doctor": PROBLEM,
        "expiry": PROBLEM,
        "directory": PROBLEM,
        "saver": OK,
        "cleaned-up": OK,
    }
    assert all(each.remedy for each in found.values() if each.verdict == PROBLEM)
    assert "owner-index" in found["doctor"].says
    assert "time to live is DISABLED" in found["expiry"].says


@pytest.mark.parametrize(
    ("change", "verdict", "says"),
    [
        (lambda documents: documents, OK, "refused to acme the threads of others"),
        (lambda documents: [*documents, SCAN], PROBLEM, "may do what it must not: Scan"),
        (lambda _: [], LEFT_OUT, "denies the role everything"),
    ],
    ids=["right", "too much", "nothing"],
)
def test_a_tenant(
    deployed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[list[Node]], list[Node]],
    verdict: str,
    says: str,
) -> None:
    document = stack_of("tenant.yaml").properties("TenantPolicy")["PolicyDocument"]
    # Without this denial, whatever else allows a scan opens the table.
    kept = [
        each for each in document["Statement"] if verdict == OK or each["Sid"] != "NothingWithoutPartition"
    ]
    documents = change(
        [TABLE_STACK.properties("AgentPolicy")["PolicyDocument"], {**document, "Statement": kept}]
    )

    use(deployed, monkeypatch)
    monkeypatch.setattr(program, "assumed", lambda _: Gate(documents).session())
    found = results(Smoke(STACK, STACK), "tenants")
    assert found["tenants"].verdict == verdict, found
    assert says in found["tenants"].says
    assert found["cleaned-up"].verdict == OK


def test_a_check_that_fails_in_a_way_that_nobody_foresaw_keeps_no_other_from_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CheckpointerError("broken")

    subject = Smoke("no-such-table")
    removed: list[str] = []
    subject.cleanup.callback(removed.append, "a role")
    monkeypatch.setattr(subject, "saver", fail)
    found = results(subject, "saver", "roles")
    assert (found["saver"].verdict, found["saver"].says) == (PROBLEM, "CheckpointerError: broken")
    assert found["roles"].verdict == LEFT_OUT
    assert found["cleaned-up"].verdict == PROBLEM
    assert removed == ["a role"]


@pytest.mark.engines("moto")
@pytest.mark.search
def test_a_restore_on_moto(local: Engine, client: DynamoDBClient, table_name: str) -> None:
    found = results(Smoke(table_name), "restored")
    assert (found["restored"].verdict, found["restored"].says) == (PROBLEM, "point-in-time recovery is off")
    client.update_continuous_backups(
        TableName=table_name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    tables = client.list_tables()["TableNames"]
    found = results(Smoke(table_name), "restored")
    assert found["restored"].verdict == OK, found
    assert client.list_tables()["TableNames"] == tables
    with contextlib.closing(boto3.client("iam", **local.client_options())) as iam:
        assert iam.list_roles()["Roles"] == []
