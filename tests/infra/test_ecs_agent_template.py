"""`infra/examples/ecs-agent/template.yaml`: what the sample's stack has, and what its document says of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.infra.rendering import INFRA, Stack, load, render
from tools.engine import Engine

if TYPE_CHECKING:
    pass

EXAMPLES = INFRA / "examples"

TABLE_STACK = render(load("table.yaml"))
TEMPLATE = load("examples/ecs-agent/template.yaml")
NETWORK = {
    "TableStackName": "checkpoints",
    "Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/agent:1",
    "VpcId": "vpc-1",
    "SubnetIds": "subnet-1,subnet-2",
    "ClientCidr": "10.0.0.0/16",
}


def ecs_agent(**parameters: str) -> Stack:
    """The stack of the sample."""
    return render(TEMPLATE, {**NETWORK, **parameters}, exports=TABLE_STACK.exports)


def test_template_gives_the_task_the_agent_policy_and_its_table() -> None:
    stack = ecs_agent()
    assert stack.properties("TaskRole")["ManagedPolicyArns"] == [TABLE_STACK.outputs["AgentPolicyArn"]]
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    assert container["Environment"] == [
        {"Name": "TABLE_NAME", "Value": TABLE_STACK.outputs["TableName"]},
        {"Name": "POWERTOOLS_SERVICE_NAME", "Value": "checkpoints"},
    ]
    assert container["LogConfiguration"]["Options"]["awslogs-group"] == "checkpoints-AgentLogs"
    assert stack.properties("Service")["NetworkConfiguration"]["AwsvpcConfiguration"]["Subnets"] == [
        "subnet-1",
        "subnet-2",
    ]


def test_the_container_runs_as_the_user_that_the_image_has() -> None:
    stack = ecs_agent()
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    image = (EXAMPLES / "ecs-agent" / "Dockerfile").read_text()
    assert re.findall(r"^USER (\d+)$|useradd --uid (\d+) ", image, re.MULTILINE) == [
        ("", container["User"]),
        (container["User"], ""),
    ]
    assert container["User"] != "0"


def documented() -> list[str]:
    """The commands of docs/deploy.md that make an image and deploy it, in their order."""
    text = (INFRA.parent / "docs" / "deploy.md").read_text(encoding="utf-8")
    section = text.split("## ECS\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line.partition("  #")[0] for line in block.replace("\\\n", "").splitlines()]


def test_the_documented_image_is_the_one_that_is_deployed_and_fits_the_tasks() -> None:
    create, log_in, build, push, deploy, _ = documented()
    (image,) = re.findall(r"Image=(\S+)", deploy)
    registry, _, name = image.partition(":")[0].partition("/")
    assert create.split()[-1] == name
    assert log_in.split()[-1] == registry
    platforms = {"X86_64": "linux/amd64", "ARM64": "linux/arm64"}
    assert f"--platform {platforms[TEMPLATE['Parameters']['Architecture']['Default']]} " in build
    assert re.search(rf"-t +{re.escape(image)} ", build)
    assert push.split() == ["docker", "push", image]


@pytest.mark.search
@pytest.mark.engines("moto")
def test_the_documented_commands_make_a_registry_and_log_in(engine: Engine, aws_cli: Path) -> None:
    """As far as moto goes: what needs a Docker engine is left out."""
    create, log_in, *_ = documented()
    for line in (create, log_in.partition(" | ")[0]):
        done = subprocess.run(  # noqa: S603  # A line of the document.
            [str(aws_cli), *line.split()[1:]],
            env={**engine.environment(), "AWS_ENDPOINT_URL": engine.endpoint_url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout
