"""`make smoke`: what it says of a deployment on this machine, as far as engines here go, and that it leaves nothing."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from infra.smoke import LeftOutError, ProblemError, Smoke, denied_tenant, expiry, throttled
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.infra.conftest import contents, page_verdicts
from tests.infra.rendering import INFRA, load, render, resolve
from tests.support.checkpoints import store, thread_config
from tests.support.local_stack import create_stack
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb import DynamoDBSaver

COST = re.compile(r"([\d,]+) requests, ([\d,.]+) write and ([\d,.]+) read units .*: \$0\.\d{4} on demand")


def smoke(engine: Engine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it as `make smoke` does."""
    return subprocess.run(  # noqa: S603  # Our own program.
        [sys.executable, "-m", "infra.smoke", *words, "--endpoint-url", engine.endpoint_url],
        cwd=INFRA.parent,
        env=engine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def verdicts(said: str) -> dict[str, str]:
    """The verdict on each check that was printed, in order."""
    return {
        check: verdict for verdict, check in re.findall(r"^(ok|problem|left out) +([a-z ]+):", said, re.M)
    }


@pytest.mark.search
@pytest.mark.engines("dynamodb-local")
def test_a_table_on_dynamodb_local(engine: Engine, client: DynamoDBClient, table_name: str) -> None:
    done = smoke(engine, "--table", table_name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done.stdout) == {
        "conformance": "ok",
        "killed and resumed": "ok",
        "expiry": "ok",
        "denied tenant": "left out",
        "restored": "left out",
        "backup restored": "left out",
        "throttled": "ok",
        "cleaned up": "ok",
    }
    assert page_verdicts("A table on DynamoDB Local") == verdicts(done.stdout)
    assert "that this client refused" in done.stdout
    assert contents(client, table_name) == []
    assert table_name in done.stdout.splitlines()[0]
    found = COST.search(done.stdout)
    assert found is not None
    assert all(float(number.replace(",", "")) > 100 for number in found.groups())


@pytest.fixture
def recoverable_stack(engine: Engine, client: DynamoDBClient) -> Iterator[str]:
    """Give a stack of `table.yaml`, with the recovery that moto's CloudFormation does not switch on."""
    name = f"smoke-{uuid.uuid4().hex[:8]}"
    with contextlib.closing(boto3.client("cloudformation", **engine.client_options())) as cloudformation:
        create_stack(cloudformation, name, name)
        client.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        yield name
        cloudformation.delete_stack(StackName=name)


@pytest.mark.search
@pytest.mark.engines("moto")
def test_a_stack_on_moto(engine: Engine, client: DynamoDBClient, recoverable_stack: str) -> None:
    tables = client.list_tables()["TableNames"]
    done = smoke(engine, recoverable_stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done.stdout) == {
        "conformance": "ok",
        "killed and resumed": "ok",
        "expiry": "left out",
        "denied tenant": "left out",
        "restored": "ok",
        "backup restored": "ok",
        "throttled": "ok",
        "cleaned up": "ok",
    }
    assert page_verdicts("A table on moto") == verdicts(done.stdout)
    assert "this endpoint does not take the tenants' template" in done.stdout
    assert client.list_tables()["TableNames"] == tables
    assert_no_role_is_left(engine)


def assert_no_role_is_left(engine: Engine) -> None:
    """What the check of tenants makes is gone again; moto keeps a stack's policies when it deletes the stack."""
    with contextlib.closing(boto3.client("iam", **engine.client_options())) as iam:
        assert not [role for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("smoke-")]
        assert not [
            policy for policy in iam.list_policies(Scope="Local")["Policies"] if policy["AttachmentCount"]
        ]
    with contextlib.closing(boto3.client("cloudformation", **engine.client_options())) as cloudformation:
        stacks = cloudformation.list_stacks(StackStatusFilter=["CREATE_COMPLETE"])["StackSummaries"]
        assert not [stack for stack in stacks if "-smoke-" in stack["StackName"]]


# moto leaves holes in the list of statements where CloudFormation leaves elements out, and applies no policy. So the
# template is resolved before, and what a role may read is said here.
@pytest.mark.engines("moto")
@pytest.mark.parametrize(
    ("without_policy", "other", "outcome"),
    [
        (False, False, None),
        (False, True, ProblemError("a tenant could read another tenant's thread")),
        (True, True, LeftOutError("this endpoint takes policies and applies none")),
    ],
    ids=["refused", "not refused", "not applied"],
)
def test_a_tenant_that_is_not_refused_is_a_problem_where_policies_are_applied(
    engine: Engine,
    recoverable_stack: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_policy: bool,
    other: bool,
    outcome: Exception | None,
) -> None:
    exports = render(load("table.yaml"), stack_name=recoverable_stack).exports
    parameters = {"TableStackName": recoverable_stack, "Tenant": "smoke"}
    resolved = resolve(load("tenant.yaml"), parameters, stack_name="tenant", exports=exports)
    declared = {name: {"Type": "String"} for name in (*parameters, "KmsKeyArn")}
    outputs = {"TenantPolicyArn": {"Value": {"Ref": "TenantPolicy"}}}
    template = tmp_path / "tenant.json"
    template.write_text(json.dumps({**resolved, "Parameters": declared, "Outputs": outputs}))
    monkeypatch.setattr("infra.smoke.TENANT_TEMPLATE", template)
    # Not to be assumed yet, without a policy, then for each policy: not allowed yet, its own thread, another's.
    answers = iter([None, without_policy, False, True, other, True, other])
    monkeypatch.setattr("infra.smoke._may_read", lambda *_: next(answers))

    run = Smoke(
        recoverable_stack, recoverable_stack, tmp_path / "usage", engine.endpoint_url, waits=lambda _: None
    )
    try:
        if outcome is None:
            assert denied_tenant(run).startswith("refused another tenant's thread")
            assert next(answers, "none is left") == "none is left"
        else:
            with pytest.raises(type(outcome), match=str(outcome)):
                denied_tenant(run)
    finally:
        run.cleanup.close()
    assert_no_role_is_left(engine)


def test_a_table_that_is_in_use_is_left_alone(
    engine: Engine, saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    store(saver, thread_config("somebody"), "1", {"a": 1})
    before = contents(client, table_name)
    done = smoke(engine, "--table", table_name)
    assert done.returncode == 1
    assert "is in use" in done.stderr
    assert contents(client, table_name) == before


@pytest.fixture
def without_expiry(client: DynamoDBClient) -> Iterator[str]:
    """Give a table that does not remove what expires."""
    name = f"smoke-{uuid.uuid4().hex[:8]}"
    client.create_table(**table_schema(name))
    yield name
    client.delete_table(TableName=name)


@pytest.mark.engines("dynamodb-local")
def test_what_is_wrong_is_a_problem(
    engine: Engine, without_expiry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Smoke(without_expiry, None, tmp_path / "usage", engine.endpoint_url)
    with pytest.raises(ProblemError, match="time to live is DISABLED"):
        expiry(run)
    monkeypatch.setattr("infra.smoke._throttles", lambda *_, by_client: 0)
    with pytest.raises(ProblemError, match="no request was throttled"):
        throttled(run)
