"""Templates in MiniStack, an emulator whose CloudFormation makes functions, their entrances and secrets as well.

Each one that it can make is made, updated, failed on purpose and destroyed, as `make smoke-stacks` does it in an
account. For each that it cannot, the test holds the reason by which it refuses: where that no longer comes, the
template belongs among the others. Of what it makes it runs nothing here; the programs have tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from infra.import_template import read_template
from infra.smoke import LEFT_OUT, OK, PROBLEM
from infra.smoke_stacks import TRIALS, Stacks
from tests.infra.conftest import Client, page_verdicts
from tests.infra.rendering import INFRA
from tests.infra.test_gateway_templates import NETWORK, PACKAGE

ACCOUNT = {
    **PACKAGE,
    **NETWORK,
    "BrokerRoleArn": "arn:aws:iam::123456789012:role/service",
    "SubnetIds": "subnet-1",
}
# Why it does not make the others.
CANNOT = {
    "observability": "metric math",
    "saver-metrics": "metric math",
    "gateway-ecs": "AWS::EC2::SecurityGroupIngress",
    "ecs-agent": "VPC|vpc|subnet|operand",
}


@pytest.fixture(scope="module")
def client(emulator: Client) -> Client:
    """Give a factory of clients of the emulator."""
    return emulator


@pytest.fixture(scope="module")
def stacks(client: Client) -> Iterator[Stacks]:
    """Give the stacks of one run, with those that others import from."""
    run = Stacks(client("cloudformation"), client("dynamodb"), ACCOUNT, is_emulator=True, poll_seconds=0.05)
    with run.bases():
        yield run


def everything(client: Client) -> dict[str, set[str]]:
    """What there is of the kinds that these templates make."""
    tables = client("dynamodb").list_tables()["TableNames"]
    functions = client("lambda").list_functions()["Functions"]
    iam = client("iam")
    secrets = client("secretsmanager").list_secrets()["SecretList"]
    logs = client("logs").describe_log_groups()["logGroups"]
    return {
        "tables": set(tables),
        "functions": {each["FunctionName"] for each in functions},
        "roles": {each["RoleName"] for each in iam.list_roles()["Roles"]},
        "policies": {each["PolicyName"] for each in iam.list_policies(Scope="Local")["Policies"]},
        "interfaces": {each["ApiId"] for each in client("apigatewayv2").get_apis()["Items"]},
        "secrets": {each["Name"] for each in secrets if "DeletedDate" not in each},
        "logs": {each["logGroupName"] for each in logs},
    }


@pytest.mark.parametrize("name", TRIALS)
def test_a_stack_is_made_updated_failed_and_destroyed_and_leaves_nothing(
    client: Client, stacks: Stacks, name: str
) -> None:
    before = everything(client)
    result = stacks.tried(name)
    if name in CANNOT:
        assert result.verdict == LEFT_OUT
        assert any(each in result.says for each in CANNOT[name].split("|")), result.says
    else:
        assert (result.verdict, "updated" in result.says) == (OK, bool(TRIALS[name].changed)), result.says
    assert everything(client) == before


def test_what_nobody_gave_is_left_out(stacks: Stacks) -> None:
    alone = replace(stacks, given={})
    assert alone.tried("lambda-agent").says == "nobody gave CodeBucket, CodeKey"


class Misreported:
    """A CloudFormation that answers one state in place of another."""

    def __init__(self, formation: Any, state: str, instead: str) -> None:
        """Take the real one, and the state that is answered in place of another."""
        self._formation, self._state, self._instead = formation, state, instead

    def __getattr__(self, name: str) -> Any:
        """Return a method of the real one."""
        return getattr(self._formation, name)

    def describe_stacks(self, **named: str) -> Any:
        """Describe a stack, in the state that is answered."""
        found = self._formation.describe_stacks(**named)
        for each in found["Stacks"]:
            each["StackStatus"] = each["StackStatus"].replace(self._instead, self._state)
        return found


@pytest.mark.parametrize(
    ("state", "instead", "says"),
    [
        ("CREATE_FAILED", "CREATE_COMPLETE", "the creation ended as CREATE_FAILED"),
        ("UPDATE_ROLLBACK_COMPLETE", "UPDATE_COMPLETE", "the update ended as UPDATE_ROLLBACK_COMPLETE"),
        ("ROLLBACK_FAILED", "ROLLBACK_COMPLETE", "a creation that failed ended as ROLLBACK_FAILED"),
    ],
)
def test_what_ends_otherwise_is_a_problem(stacks: Stacks, state: str, instead: str, says: str) -> None:
    formation: Any = Misreported(stacks.formation, state, instead)
    result = replace(stacks, formation=formation, is_emulator=False).tried("tenant")
    assert result.verdict == PROBLEM
    assert says in result.says


def test_the_page_has_what_the_emulator_makes() -> None:
    made = page_verdicts("Stacks on MiniStack")
    assert made == {name: LEFT_OUT if name in CANNOT else OK for name in TRIALS}


@pytest.mark.search
def test_another_cursor_key_reaches_the_function_only_by_its_version(client: Client, stacks: Stacks) -> None:
    template, given = read_template(INFRA / "gateway.yaml"), {**ACCOUNT, **TRIALS["gateway"].given}
    assert stacks.create("rotated", template, given) == "CREATE_COMPLETE"
    made = stacks.outputs("rotated")

    def key() -> str:
        found = client("lambda").get_function_configuration(FunctionName=made["FunctionName"])
        return str(found["Environment"]["Variables"]["LANGGRAPH_GATEWAY_CURSOR_KEY"])

    first, second = key(), "second" * 8
    stored = client("secretsmanager").put_secret_value(SecretId=made["CursorKeyArn"], SecretString=second)
    # What once was the whole of the advice: success, and the old key.
    assert stacks.update("rotated", template, given | {"MemorySize": "512"}) == "UPDATE_COMPLETE"
    assert key() == first
    rotated = given | {"MemorySize": "512", "CursorKeyVersion": stored["VersionId"]}
    assert stacks.update("rotated", template, rotated) == "UPDATE_COMPLETE"
    assert key() == second
    stacks.destroy("rotated")
