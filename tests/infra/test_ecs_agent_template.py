"""`infra/examples/ecs-agent/template.yaml`: what the sample's stack has, and what its document says of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.infra.rendering import INFRA, Stack, load, render
from tests.infra.test_gateway_templates import on_ecs
from tests.infra.test_parameters import GIVEN
from tools.engine import Engine

EXAMPLES = INFRA / "examples"

TABLE_STACK = render(load("table.yaml"))
TEMPLATE = load("examples/ecs-agent/template.yaml")


def ecs_agent(**parameters: str) -> Stack:
    """The stack of the sample."""
    return render(
        TEMPLATE, {**GIVEN["examples/ecs-agent/template.yaml"], **parameters}, exports=TABLE_STACK.exports
    )


@pytest.mark.parametrize(
    ("image", "stack"), [("gateway", on_ecs), ("examples/ecs-agent", ecs_agent)], ids=["gateway", "agent"]
)
def test_the_container_runs_as_the_user_that_the_image_has(image: str, stack: Callable[[], Stack]) -> None:
    [container] = stack().properties("TaskDefinition")["ContainerDefinitions"]
    user = container["User"]
    file = (INFRA / image / "Dockerfile").read_text()
    assert re.findall(r"^USER (\d+)$|useradd --uid (\d+) ", file, re.MULTILINE) == [("", user), (user, "")]
    assert user != "0"


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
