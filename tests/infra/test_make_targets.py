"""`make deploy` and its companions: what they ask the AWS CLI for fits the templates, and what they say helps."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from tests.infra.rendering import INFRA, load
from tools.engine import Engine

# Stands for the AWS CLI: it writes its arguments down and answers with the table's name.
RECORDER = """\
#!{python}
import json, sys
with open({record!r}, "a") as record:
    record.write(json.dumps(sys.argv[1:]) + "\\n")
print("the-table")
"""
TEMPLATE_BYTES_MAX = 51_200

Make = Callable[..., tuple[str, list[list[str]]]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Give a function that runs make with a recorder for the AWS CLI; it returns the output and the commands."""
    record, recorder = tmp_path / "commands", tmp_path / "aws"
    recorder.write_text(RECORDER.format(python=sys.executable, record=str(record)))
    recorder.chmod(0o755)

    def run(*words: str, status: int = 0) -> tuple[str, list[list[str]]]:
        # The target's own prerequisites are the environments that these tests already run in.
        command = ["make", "--no-print-directory", f"AWS={recorder}", *words]
        done = subprocess.run(  # noqa: S603  # Our own Makefile.
            command, cwd=INFRA.parent, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        commands = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
        return done.stdout + done.stderr, commands

    return run


def options(command: list[str]) -> dict[str, list[str]]:
    """The words after each option of a command."""
    found: dict[str, list[str]] = {}
    for word in command:
        if word.startswith("--"):
            found[word] = []
        elif found:
            found[list(found)[-1]].append(word)
    return found


def deployments(commands: list[list[str]]) -> dict[str, dict[str, list[str]]]:
    """The options of each `cloudformation deploy`, by stack; its parameters must exist in its template."""
    by_stack = {}
    for command in commands:
        if command[:2] == ["cloudformation", "deploy"]:
            given = options(command)
            [template] = given["--template-file"]
            names = {word.split("=", 1)[0] for word in given.get("--parameter-overrides", [])}
            assert names <= load(str(Path(template).relative_to("infra")))["Parameters"].keys()
            assert given["--capabilities"] == ["CAPABILITY_IAM"]
            by_stack[given["--stack-name"][0]] = given
    return by_stack


def test_deploy_makes_the_table_and_then_its_alarms(make: Make) -> None:
    output, commands = make(
        "deploy", "STACK=blue", "PARAMETERS=TableName=blue BillingMode=PROVISIONED", "TAGS=team=agents"
    )
    stacks = deployments(commands)
    assert list(stacks) == ["blue", "blue-observability"]
    assert stacks["blue"]["--parameter-overrides"] == ["TableName=blue", "BillingMode=PROVISIONED"]
    assert stacks["blue"]["--tags"] == ["team=agents"]
    assert stacks["blue-observability"]["--parameter-overrides"] == ["TableStackName=blue"]
    assert "the-table" in output


def test_deploy_without_parameters_takes_the_defaults(make: Make) -> None:
    _, commands = make("deploy")
    assert "--parameter-overrides" not in deployments(commands)["langgraph-checkpoints"]


def test_deploy_of_a_tenant_needs_its_name(make: Make) -> None:
    _, commands = make("deploy-tenant", "TENANT=acme")
    stacks = deployments(commands)
    assert stacks["langgraph-checkpoints-tenant-acme"]["--parameter-overrides"] == [
        "TableStackName=langgraph-checkpoints",
        "Tenant=acme",
    ]
    output, _ = make("deploy-tenant", status=2)
    assert "make deploy-tenant TENANT=name" in output


@pytest.mark.parametrize("tenant", ["acme_corp", "acme.com", "a" * 128, "-", "7"])
def test_every_tenant_that_the_template_takes_has_a_stack_of_its_own(make: Make, tenant: str) -> None:
    """A stack's name takes letters, digits and hyphens, and 128 of them."""
    _, commands = make("deploy-tenant", f"TENANT={tenant}")
    [(name, given)] = deployments(commands).items()
    assert re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,127}", name)
    assert f"Tenant={tenant}" in given["--parameter-overrides"]
    _, commands = make("deploy-tenant", f"TENANT={tenant}".replace("_", "-").replace(".", "-"))
    assert len(deployments(commands)) == (1 if tenant.replace("-", "").isalnum() or tenant == "-" else 2)


@pytest.mark.parametrize(
    "words",
    [
        ["deploy"],
        ["deploy-tenant", "TENANT=acme"],
        ["deploy-ecs-agent", "ECS_PARAMETERS=Image=agent:1"],
    ],
)
def test_every_stack_has_the_tags(make: Make, words: list[str]) -> None:
    _, commands = make(*words, "TAGS=team=agents cost=42")
    stacks = deployments(commands)
    assert [given["--tags"] for given in stacks.values()] == [["team=agents", "cost=42"]] * len(stacks)


def test_the_lambda_package_is_one_of_its_platform_and_version() -> None:
    """What was built for another one before is not deployed."""
    command = ["make", "--no-print-directory", "-n", "deploy-lambda-agent", "BUCKET=b"]
    printed = {
        platform: subprocess.run(  # noqa: S603  # Our own Makefile.
            [*command, f"LAMBDA_PLATFORM={platform}"],
            cwd=INFRA.parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for platform in ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
    }
    for platform, output in printed.items():
        assert f"build/lambda-agent-3.13-{platform}.zip" in output
        assert "chmod -R a+rX" in output


def test_deploy_of_the_ecs_example(make: Make) -> None:
    network = ["Image=agent:1", "VpcId=vpc-1", "SubnetIds=subnet-1,subnet-2", "ClientCidr=10.0.0.0/16"]
    _, commands = make("deploy-ecs-agent", f"ECS_PARAMETERS={' '.join(network)}")
    given = deployments(commands)["langgraph-checkpoints-ecs-agent"]["--parameter-overrides"]
    assert given == ["TableStackName=langgraph-checkpoints", *network]


def test_destroy_deletes_importers_first_and_tells_of_the_table_it_keeps(make: Make) -> None:
    output, commands = make("destroy", "STACK=blue")
    deleted = [options(command)["--stack-name"] for command in commands if command[1] == "delete-stack"]
    assert deleted == [["blue-observability"], ["blue"]]
    assert not any(command[0] == "dynamodb" for command in commands)
    assert "The table the-table is kept" in output
    assert "delete-table --table-name the-table" in output


@pytest.mark.parametrize("template", sorted(str(path.relative_to(INFRA)) for path in INFRA.rglob("*.yaml")))
def test_templates_are_small_enough_to_be_sent_without_a_bucket(template: str) -> None:
    assert (INFRA / template).stat().st_size <= TEMPLATE_BYTES_MAX


def deploy_local(engine: Engine, stack: str) -> subprocess.CompletedProcess[str]:
    """Run what `make deploy-local ENDPOINT=...` runs."""
    return subprocess.run(  # noqa: S603  # Our own program, in the interpreter of the tests.
        [sys.executable, "-m", "infra.deploy_local", stack],
        cwd=INFRA.parent,
        env={**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": engine.endpoint_url},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.engines("moto")
def test_deploy_local_makes_the_table_and_says_how_to_use_it(engine: Engine) -> None:
    done = deploy_local(engine, "deployed-locally")
    assert done.returncode == 0, done.stderr
    assert f"AWS_ENDPOINT_URL_DYNAMODB={engine.endpoint_url} TABLE_NAME=deployed-locally" in done.stdout
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as client:
        assert client.describe_table(TableName="deployed-locally")["Table"]["TableStatus"] == "ACTIVE"
    # The table's name is taken now, so a second deployment says so and leaves it alone.
    again = deploy_local(engine, "deployed-locally")
    assert again.returncode == 1
    assert "already exists" in again.stderr


@pytest.mark.engines("dynamodb-local")
def test_deploy_local_explains_that_dynamodb_local_has_no_cloudformation(engine: Engine) -> None:
    done = deploy_local(engine, "deployed-locally")
    assert done.returncode == 1
    assert "DynamoDB Local has none" in done.stderr
    assert "Traceback" not in done.stderr
