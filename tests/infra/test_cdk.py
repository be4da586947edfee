"""The construct of `infra/cdk`, synthesized: what it makes is what the templates make."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.infra.rendering import INFRA, Stack, load, render
from tests.infra.test_snippets import as_text, skip_without

PYTHON = INFRA.parent / ".venv-cdk" / "bin" / "python"
PROGRAM = f"""
import aws_cdk
from aws_cdk import aws_iam
from checkpoints import Checkpoints

app = aws_cdk.App(outdir="out")
stack = aws_cdk.Stack(app, "Agents")
made = Checkpoints(stack, "Checkpoints", table={{"TableName": "agents"}}, alarms={{}}, folder={str(INFRA)!r})
service = aws_iam.ServicePrincipal("lambda.amazonaws.com")
aws_iam.Role(stack, "Agent", assumed_by=service, managed_policies=[made.runner_policy])
app.synth()
"""


def synthesized(path: Path, **exports: str) -> Stack:
    """A stack that the CDK wrote, without the CDK's own rule about the bucket that it uploads to."""
    template = json.loads(path.read_text())
    del template["Rules"]["CheckBootstrapVersion"]
    return render(template, {}, stack_name="Agents", exports=exports)


def differences(made: Stack, wanted: Stack) -> list[str]:
    """The resources that are not as they should be."""
    return [
        name
        for name in wanted.resources
        if name not in made.resources or as_text(made.properties(name)) != as_text(wanted.properties(name))
    ]


@pytest.mark.search
def test_the_construct_makes_the_table_and_alarms_of_the_templates(tmp_path: Path) -> None:
    skip_without(PYTHON, "the AWS CDK for Python is not installed: `make infra-check` does it where Node is")
    environment = {
        **os.environ,
        "PYTHONPATH": str(INFRA / "cdk"),
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    done = subprocess.run(  # noqa: S603  # A program of our own.
        [PYTHON, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wanted = render(load("table.yaml"), {"TableName": "agents"}, stack_name="Agents")
    made = synthesized(tmp_path / "out" / "Agents.template.json")
    assert not differences(made, wanted)
    assert made.exports == wanted.exports
    [role] = made.of_type("AWS::IAM::Role").values()
    assert role["ManagedPolicyArns"] == [wanted.outputs["RunnerPolicyArn"]]
    (alarms,) = (tmp_path / "out").glob("*Observability*.template.json")
    given = {"TableStackName": "Agents"}
    watched = render(load("observability.yaml"), given, stack_name="Agents", exports=wanted.exports)
    assert not differences(synthesized(alarms, **wanted.exports), watched)
