"""`make preflight`: what it finds in an account, and that it changes nothing there.

MiniStack's simulator of IAM evaluates actions and resources, and no conditions.
"""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from infra import preflight as program
from infra.checks import OK, PROBLEM, Result
from infra.preflight import CHECKS, Preflight
from tests.deployed.conftest import Client, Run, Stacks, environment_of_role, use, verdicts
from tests.deployed.test_smoke import STACK
from tests.infra.rendering import INFRA, load
from tests.infra.test_access import DEPLOYER, PREFLIGHT
from tests.infra.test_access import STACK as STACK_OF_ACCESS

SERVICE_ROLE = "arn:aws:iam::123456789012:role/langgraph-access-ServiceRole-1"
BOUNDARY = "arn:aws:iam::123456789012:policy/langgraph-access-Boundary-1"


@pytest.fixture(scope="module")
def deployer(emulator: Client) -> dict[str, str]:
    """Give the environment of a role that has the deployer's policy, for that service role."""
    text = json.dumps(DEPLOYER["Statement"]).replace(STACK_OF_ACCESS.outputs["ServiceRoleArn"], SERVICE_ROLE)
    plain = [{key: each[key] for key in each if key != "Condition"} for each in json.loads(text)]
    return environment_of_role(emulator, "ada", {**DEPLOYER, "Statement": plain})


@pytest.fixture
def account(deployer: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Give that environment, for this process too."""
    use(deployer, monkeypatch)
    return deployer


def made(name: str, stack: str = STACK, *given: str, service_role: str = SERVICE_ROLE) -> Result:
    """Make one check; this Python stands for the AWS CLI."""
    return CHECKS[name].made(Preflight(stack, sys.executable, given, service_role, BOUNDARY))


def test_an_account_that_is_ready(deployer: dict[str, str], run_program: Run) -> None:
    """And that nothing is changed there."""
    given = ["--service-role", SERVICE_ROLE, "--boundary", BOUNDARY]
    said = run_program(program.main, deployer, STACK, *given, "--aws", sys.executable)
    assert said.status == 0, said.text
    assert verdicts(said.text) == dict.fromkeys(CHECKS, OK)
    assert "assumed-role/ada/ada in us-east-1" in said.text
    assert said.sent == set(PREFLIGHT.split())
    assert all(re.match(r"\w+:(Describe|Get|Simulate)", each) for each in said.sent)


def test_a_stack_of_another_name_is_not_in_the_policy(account: dict[str, str]) -> None:
    del account
    found = made("rights", "payroll")
    assert found.verdict == PROBLEM
    assert "cloudformation:CreateChangeSet" in found.says
    assert "access.yaml" in found.remedy


def test_without_a_service_role_its_rights_are_needed_too(account: dict[str, str]) -> None:
    del account
    found = made("rights", service_role="")
    assert found.verdict == PROBLEM
    assert "dynamodb:UpdateTable" in found.says


def test_a_name_that_is_taken(stacks: Stacks, account: dict[str, str]) -> None:
    del account
    stacks.dynamodb.create_table(
        TableName=STACK,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    found = made("names")
    assert (found.verdict, found.says) == (PROBLEM, f"there is a table {STACK} without the stack {STACK}")
    # The stack fails, as the table is there; what is left of it is in the way.
    broken = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Fn::ImportValue": "no"}}}
    assert stacks.create(STACK, {"Resources": {"Broken": broken}}) == "ROLLBACK_COMPLETE"
    found = made("names")
    assert (found.verdict, found.says) == (PROBLEM, f"the stack {STACK} is ROLLBACK_COMPLETE")
    assert "make destroy" in found.remedy
    stacks.delete(STACK)
    stacks.dynamodb.delete_table(TableName=STACK)
    assert made("names").verdict == OK


def test_it_goes_by_the_parameters_that_are_passed(stacks: Stacks, account: dict[str, str]) -> None:
    del account, stacks
    assert f"no table {STACK}-2" in made("names", STACK, f"TableName={STACK}-2").says
    assert "a gateway reserves 7" in made("concurrency", STACK, "ReservedConcurrency=7").says


def test_every_parameter_that_it_names_is_one_of_a_template() -> None:
    text = Path(program.__file__).read_text(encoding="utf-8")
    named = {*re.findall(r"(?<![\w(])([A-Z][a-z]+[A-Z]\w+)(?==\w| empty)", text)}
    templates = (load(str(each.relative_to(INFRA))) for each in INFRA.rglob("*.yaml"))
    assert len(named) > 1
    assert named <= {name for each in templates for name in each["Parameters"]}


def test_a_new_account_has_no_concurrency_to_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}}
    monkeypatch.setattr(program, "client", lambda _: SimpleNamespace(get_account_settings=lambda: limits))
    found = made("concurrency")
    assert found.verdict == PROBLEM
    assert found.says == "a gateway reserves 50 executions at a time, and 0 are left"
    assert "ReservedConcurrency=0" in found.remedy
