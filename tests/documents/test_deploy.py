"""docs/deploy.md: the commands of its blocks do what it says, and its programs name what the templates have."""

import ast
import contextlib
import re
from pathlib import Path

import boto3
import pytest

from tests.deployed.conftest import environment
from tests.infra.rendering import INFRA, load, render
from tests.support.local_stack import PARAMETERS
from tests.support.programs import ran
from tools.engine import Engine

# The AWS CLI with the CloudFormation of moto, which knows neither imports nor termination protection, nor the table of
# a stack that it could not make. The alarms' stack, which adds nothing here, is left out.
ON_MOTO = """\
#!/bin/sh
case "$*" in
*list-imports*) echo "Export is not imported by any stack." >&2 && exit 254 ;;
*describe-stack-resource*) printf 'DELETE_SKIPPED\\tred\\n' && exit ;;
*update-termination-protection* | *-observability*) exit 0 ;;
esac
exec {cli} "$@"
"""


@pytest.mark.search
@pytest.mark.engines("moto")
def test_the_way_out_of_a_first_deployment_that_failed(engine: Engine, aws_cli: Path, tmp_path: Path) -> None:
    """As docs/deploy.md has it, by the AWS CLI. With its defaults the template fails in moto after the table."""
    aws = tmp_path / "aws"
    aws.write_text(ON_MOTO.format(cli=aws_cli))
    aws.chmod(0o755)

    def run(line: str, *, status: int = 0) -> str:
        """Run a line of the document, or one that was printed."""
        line = re.sub(r"^make ", f"make --no-print-directory AWS={aws} ", line)
        # As a person types it.
        done = ran(
            "/bin/sh", "-c", line, status=status, cwd=INFRA.parent, env=environment(engine.endpoint_url)
        )
        return done.stdout + done.stderr

    # By other means than `make deploy`, which protects the table only once the stack is there.
    # moto does not know RetainExceptOnCreate, which is Retain when a stack is deleted.
    template = tmp_path / "table.yaml"
    template.write_text((INFRA / "table.yaml").read_text().replace("RetainExceptOnCreate", "Retain"))
    made = f"{aws} cloudformation deploy --stack-name red --template-file {template}"
    run(f"{made} --capabilities CAPABILITY_IAM --parameter-overrides TableName=red", status=255)
    # What one would try first meets the table, which is protected.
    run(f"{aws} cloudformation delete-stack --stack-name red")
    wanted = {"TableName": "red", **PARAMETERS}
    del wanted["DeletionProtection"]
    given = " ".join(f"{name}={value}" for name, value in wanted.items())
    deployed = f"make deploy STACK=red PARAMETERS='{given}'"
    assert "already exists" in run(deployed, status=2)
    assert "Deletion" in run(f"{aws} dynamodb delete-table --table-name red", status=255)

    section = (
        (INFRA.parent / "docs" / "deploy.md").read_text().split("### A first deployment that failed\n")[1]
    )
    (block,) = re.findall(r"```sh\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    destroy, *others = (line.partition("#")[0].strip() for line in block.splitlines())
    assert destroy == "make destroy STACK=langgraph-checkpoints"
    printed = run(f"{destroy.replace('langgraph-checkpoints', 'red')} CONFIRM=red")
    for_good = [line.strip() for line in printed.splitlines() if line.startswith("  ")]
    as_written = [line.replace(str(aws), "aws").replace("red", "langgraph-checkpoints") for line in for_good]
    assert as_written == others[:-1]
    for line in for_good:
        run(line)
    assert others[-1] == "make deploy STACK=langgraph-checkpoints"
    run(deployed)
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as client:
        assert client.describe_table(TableName="red")["Table"]["TableStatus"] == "ACTIVE"


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
    assert f"--platform {platforms[load('ecs.yaml')['Parameters']['Architecture']['Default']]} " in build
    assert re.search(rf"-t +{re.escape(image)} ", build)
    assert push.split() == ["docker", "push", image]


@pytest.mark.search
@pytest.mark.engines("moto")
def test_the_documented_commands_make_a_registry_and_log_in(engine: Engine, aws_cli: Path) -> None:
    """As far as moto goes: what needs a Docker engine is left out."""
    create, log_in, *_ = documented()
    for line in (create, log_in.partition(" | ")[0]):
        assert ran(aws_cli, *line.split()[1:], env=environment(engine.endpoint_url)).stdout


# They were written by their tools' documents. Neither tool runs here: no package registry has Terraform.
PROGRAMS = (INFRA.parent / "docs" / "deploy.md").read_text().split("## With Terraform, the CDK or SAM")[1]
SNIPPETS = dict(re.findall(r"```(hcl|python)\n(.*?)```", PROGRAMS.split("\n## ")[0], re.DOTALL))


def test_terraform_passes_parameters_and_takes_outputs_that_there_are() -> None:
    stacks = dict(re.findall(r'"aws_cloudformation_stack" "(\w+)" \{\n(.*?)\n\}', SNIPPETS["hcl"], re.DOTALL))
    assert list(stacks) == ["checkpoints", "observability"]
    exports: dict[str, str] = {}
    for body in stacks.values():
        [file] = re.findall(r"/([\w-]+\.yaml)", body)
        [parameters] = re.findall(r"parameters += \{ (.*) \}", body)
        given = dict(each.split(" = ") for each in parameters.replace('"', "").split(", "))
        # The name of the first stack, which Terraform reads from it.
        given = {
            key: value.removeprefix("aws_cloudformation_stack.").removesuffix(".name")
            for key, value in given.items()
        }
        stack = render(load(file), given, exports=exports)
        makes_policies = any(each["Type"].startswith("AWS::IAM") for each in stack.resources.values())
        assert ('["CAPABILITY_IAM"]' in body) is makes_policies
        exports |= stack.exports
    [output] = re.findall(r'outputs\["(\w+)"\]', SNIPPETS["hcl"])
    assert output in load("table.yaml")["Outputs"]


def test_the_cdk_passes_parameters_and_takes_resources_that_there_are() -> None:
    calls = [each for each in ast.walk(ast.parse(SNIPPETS["python"])) if isinstance(each, ast.Call)]
    [include] = [each for each in calls if ast.unparse(each.func) == "CfnInclude"]
    given = {str(each.arg): ast.literal_eval(each.value) for each in include.keywords}
    stack = render(load(given["template_file"]), given["parameters"])
    assert stack.properties("Table")["TableName"] == "agents"
    [resource] = [each for each in calls if ast.unparse(each.func).endswith(".get_resource")]
    assert stack.resources[ast.literal_eval(resource.args[0])]["Type"] == "AWS::IAM::ManagedPolicy"
