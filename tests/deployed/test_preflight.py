"""`make preflight`: what it finds in an account, and that it changes nothing there.

MiniStack's simulator of IAM evaluates actions and resources, and no conditions.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from tests.deployed.conftest import Client, Run, Stacks, environment_of_role, use
from tests.deployed.test_smoke import STACK
from tests.infra.rendering import INFRA
from tests.infra.test_deployer import PREFLIGHT
from tools import preflight as program
from tools.checks import OK, PROBLEM, Result
from tools.preflight import CHECKS, Preflight

POLICY = json.loads((INFRA / "deployer.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def deployer(emulator: Client) -> dict[str, str]:
    """Give the environment of a role that has the deployer's policy."""
    plain = [{key: each[key] for key in each if key != "Condition"} for each in POLICY["Statement"]]
    return environment_of_role(emulator, "ada", {**POLICY, "Statement": plain})


@pytest.fixture
def account(deployer: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Give that environment, for this process too."""
    use(deployer, monkeypatch)
    return deployer


def made(name: str, stack: str = STACK, aws: str = sys.executable) -> Result:
    """Make one check; this Python stands for the AWS CLI."""
    return CHECKS[name].made(Preflight(stack, aws))


def test_an_account_that_is_ready(deployer: dict[str, str], run_program: Run) -> None:
    """And that nothing is changed there."""
    said = run_program(program.main, deployer, STACK, "--aws", sys.executable)
    assert said.status == 0, said.text
    assert said.verdicts() == dict.fromkeys(CHECKS, OK)
    assert "assumed-role/ada/ada in us-east-1" in said.text
    assert said.sent == set(PREFLIGHT.split())
    assert all(re.match(r"\w+:(Describe|Get|Simulate)", each) for each in said.sent)


def test_a_stack_of_another_name_is_not_in_the_policy(account: dict[str, str]) -> None:
    del account
    found = made("rights", "payroll")
    assert found.verdict == PROBLEM
    assert "cloudformation:CreateChangeSet" in found.says
    assert "deployer.json" in found.remedy


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


class Limits:
    """Lambda in a new account."""

    def get_account_settings(self) -> dict[str, Any]:
        """Answer as AWS does there."""
        return {"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}}


def test_a_new_account_has_no_concurrency_to_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "client", lambda _: Limits())
    found = made("concurrency")
    assert (found.verdict, found.says) == (
        PROBLEM,
        "a gateway reserves 50 executions at a time, and 0 are left",
    )
    assert "ReservedConcurrency=0" in found.remedy
