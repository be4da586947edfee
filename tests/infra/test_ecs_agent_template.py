"""`infra/ecs.yaml` with the sample agent: what its stack has, and what its document says of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.infra.rendering import INFRA, load
from tests.infra.stacks import stack_of
from tools.engine import Engine

TEMPLATE = "ecs.yaml"


def test_the_sample_agent_has_no_principals_and_no_path_of_the_gateway() -> None:
    stack = stack_of(TEMPLATE, PrincipalsSecretArn="")
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    assert container["Secrets"] == []
    assert "SecretPolicy" not in stack.resources
    [condition] = stack.properties("AgentsRule")["Conditions"]
    assert condition["PathPatternConfig"]["Values"] == ["/threads/*"]
    assert stack.properties("LoadBalancer")["Scheme"] == "internal"


@pytest.mark.parametrize("image", ["gateway", "examples/ecs-agent"])
def test_the_container_runs_as_the_user_that_the_image_has(image: str) -> None:
    [container] = stack_of(TEMPLATE).properties("TaskDefinition")["ContainerDefinitions"]
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
    assert f"--platform {platforms[load(TEMPLATE)['Parameters']['Architecture']['Default']]} " in build
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
