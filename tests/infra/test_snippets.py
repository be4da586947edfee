"""The programs of docs/terraform.md, "From CDK, SAM or Terraform", run as far as they can be on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.import_template import read_template
from tests.conftest import REQUIRE_LOCAL_VARIABLE
from tests.infra.rendering import INFRA, Node, load, render

ROOT = INFRA.parent
SECTION = (ROOT / "docs" / "terraform.md").read_text().split("## From CDK, SAM or Terraform")[1]
SNIPPETS = dict(re.findall(r"```(\w+)\n(.*?)```", SECTION.split("\n##")[0], re.DOTALL))
TEMPLATE = load("table.yaml")
PACKAGES = ROOT / ".venv-node" / "node_modules"
HCL = ROOT / ".venv-infra" / "bin" / "python"
# What the provider's resource takes, by its documentation.
STACK_ARGUMENTS = {
    "capabilities",
    "disable_rollback",
    "iam_role_arn",
    "name",
    "notification_arns",
    "on_failure",
    "parameters",
    "policy_body",
    "policy_url",
    "tags",
    "template_body",
    "template_url",
    "timeout_in_minutes",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the template, as a reader has it."""
    shutil.copy(INFRA / "table.yaml", tmp_path)
    return tmp_path


def skip_without(path: Path, says: str) -> None:
    """Skip where something is not installed, which CI has to have."""
    if not path.exists():
        pytest.fail(says) if os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1" else pytest.skip(says)


def test_there_is_one_program_of_each_kind() -> None:
    assert SNIPPETS.keys() == {"js", "yaml", "hcl"}


def test_cdk_makes_the_table_of_the_template(folder: Path) -> None:
    skip_without(PACKAGES, "the AWS CDK is not installed: `make infra-check` does it where npm is")
    program = SNIPPETS["js"] + "\nstack.node.root.synth();\n"
    environment = {**os.environ, "NODE_PATH": str(PACKAGES), "CDK_OUTDIR": str(folder / "out")}
    node = shutil.which("node") or "node"
    done = subprocess.run(  # noqa: S603  # A program of our own document.
        [node, "-"], input=program, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    template = json.loads((folder / "out" / "Agents.template.json").read_text())
    # The CDK's own rule about the bucket that it uploads to.
    del template["Rules"]["CheckBootstrapVersion"]
    made = render(template, {}, stack_name="Agents")
    given = {"TableName": "agents", "MaxWriteRequestUnits": "4000"}
    wanted = render(TEMPLATE, given, stack_name="Agents")
    assert made.resources.keys() - wanted.resources.keys() <= {"CDKMetadata", _role_of(template)}
    assert wanted.resources.keys() <= made.resources.keys()
    for name in wanted.resources:
        assert as_text(made.properties(name)) == as_text(wanted.properties(name))
    assert made.properties(_role_of(template))["ManagedPolicyArns"] == [wanted.outputs["RunnerPolicyArn"]]


def _role_of(template: Node) -> str:
    [name] = [name for name, each in template["Resources"].items() if each["Type"] == "AWS::IAM::Role"]
    return str(name)


def as_text(value: Node) -> Node:
    """CloudFormation compares numbers as text."""
    if isinstance(value, dict):
        return {key: as_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_text(each) for each in value]
    return str(value)


@pytest.mark.search
def test_sam_takes_the_template_as_a_nested_stack(folder: Path) -> None:
    path = folder / "template.yaml"
    path.write_text(SNIPPETS["yaml"])
    (folder / "agent").mkdir()
    done = _lint(folder)
    assert done.returncode == 0, done.stdout
    nested = read_template(path)["Resources"]["Checkpoints"]["Properties"]
    assert (folder / nested["Location"]).exists()
    assert render(TEMPLATE, nested["Parameters"]).outputs["TableName"] == "agents"
    named = re.findall(r"Checkpoints\.Outputs\.(\w+)", SNIPPETS["yaml"])
    assert named
    assert set(named) <= TEMPLATE["Outputs"].keys()

    # The linter knows the resources of the transform.
    path.write_text(SNIPPETS["yaml"].replace("Timeout: 120", "Time: 120"))
    assert "Time" in _lint(folder).stdout


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).with_name("cfn-lint")
    return subprocess.run(  # noqa: S603  # Our own environment.
        [linter, "--include-checks", "I", "--template", "template.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_terraform_names_what_the_template_and_the_provider_have() -> None:
    skip_without(
        HCL, "nothing here reads Terraform's language: `make infra-check` installs checkov, which does"
    )
    parse = "import hcl2, json, sys; json.dump(hcl2.load(sys.stdin), sys.stdout)"
    done = subprocess.run(  # noqa: S603  # Our own environment.
        [HCL, "-c", parse], input=SNIPPETS["hcl"], capture_output=True, text=True, check=True
    )
    resources = json.loads(done.stdout)["resource"]
    stack = resources[0]["aws_cloudformation_stack"]["checkpoints"]
    attachment = resources[1]["aws_iam_role_policy_attachment"]["agent"]
    assert {name for name in stack if not name.startswith("__")} <= STACK_ARGUMENTS
    assert stack["capabilities"] == [["CAPABILITY_IAM"]]
    [parameters] = stack["parameters"]
    assert render(TEMPLATE, parameters).properties("Table")["TableName"] == "agents"
    assert stack["template_body"] == ['${file("${path.module}/table.yaml")}']
    [output] = re.findall(r"\.outputs\[\"?(\w+)", str(attachment["policy_arn"]))
    assert output in TEMPLATE["Outputs"]
