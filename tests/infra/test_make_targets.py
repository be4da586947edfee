"""`make deploy` and its companions: what they ask the AWS CLI for fits the templates, and what they say helps."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.infra.rendering import INFRA, load
from tests.support.programs import ran

# Stands for the AWS CLI: it writes its arguments down and answers what the test says, or with the table's name.
RECORDER = """\
#!{python}
import json, re, sys
with open({record!r}, "a") as record:
    record.write(json.dumps(sys.argv[1:]) + "\\n")
for pattern, answer in {answers!r}.items():
    if re.search(pattern, " ".join(sys.argv[1:])):
        print(answer, file=sys.stderr if answer.startswith("An error") else sys.stdout)
        sys.exit(254 if answer.startswith("An error") else 0)
print("the-table")
"""
# What CloudFormation and IAM say of a stack that nothing uses.
NOTHING_IN_THE_WAY = {
    "list-imports": "An error occurred (ValidationError) when calling the ListImports operation: Export"
    " 'blue-TableName' is not imported by any stack.",
    "list-entities-for-policy": "",
    "describe-stack-resource": "UPDATE_COMPLETE\tthe-table",
    r"Outputs\[\]\.ExportName": "blue-TableName\tblue-AgentPolicyArn",
    "PolicyArn'": "arn:aws:iam::123456789012:policy/agent",
}

Make = Callable[..., tuple[str, list[list[str]]]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Give a function that runs make with a recorder for the AWS CLI; it returns the output and the commands."""
    record, recorder = tmp_path / "commands", tmp_path / "aws"

    def run(
        *words: str, status: int = 0, answers: Mapping[str, str] = NOTHING_IN_THE_WAY, typed: str = ""
    ) -> tuple[str, list[list[str]]]:
        recorder.write_text(RECORDER.format(python=sys.executable, record=str(record), answers=answers))
        recorder.chmod(0o755)
        # The target's own prerequisites are the environments that these tests already run in.
        command = ("make", "--no-print-directory", f"AWS={recorder}", *words)
        done = ran(*command, status=status, cwd=INFRA.parent, input=typed)
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


@pytest.mark.parametrize(
    ("words", "stacks"),
    [
        (["deploy"], ["", "-observability"]),
        (["deploy-tenant", "TENANT=acme"], ["-tenant-acme"]),
        (["deploy-ecs-agent", "ECS_PARAMETERS=Image=agent:1"], ["-ecs-agent"]),
        (["deploy-gateway-ecs", "GATEWAY_PARAMETERS=VpcId=vpc-1"], ["-gateway-ecs"]),
        (
            ["deploy-gateway", "BUCKET=b", "PRINCIPALS={principals}", "GATEWAY_PARAMETERS=MemorySize=1769"],
            ["-gateway"],
        ),
        (["deploy-lambda-agent", "BUCKET=b", "LAMBDA_PARAMETERS=Driver=sync"], ["-lambda-agent"]),
    ],
)
def test_what_make_deploys_is_tagged_and_imports_from_the_tables_stack(
    make: Make, tmp_path: Path, words: list[str], stacks: list[str]
) -> None:
    """With TABLE_STACK, stacks beside a restored table keep their names. `deployments` compares with templates."""
    principals, package = tmp_path / "principals.yaml", tmp_path / "package"
    principals.write_text("bearer: {}\n")
    Path(f"{package}.zip").write_bytes(b"package")
    built = ["--assume-old", f"{package}.zip", f"GATEWAY_PACKAGE={package}", f"LAMBDA_PACKAGE={package}"]
    told = [word.format(principals=principals) for word in words]
    access = ["SERVICE_ROLE=the-role", "BOUNDARY=the-boundary"]
    _, commands = make(*built, *told, *access, "STACK=blue", "TABLE_STACK=green", "TAGS=team=agents cost=42")
    found = deployments(commands)
    assert list(found) == [f"blue{each}" for each in stacks]
    protected = [each[-1] for each in commands if "--enable-termination-protection" in each]
    # Neither tenants nor samples: agents know the address of a gateway.
    assert protected == [
        each for each in found if each.endswith(("blue", "-observability", "-gateway", "-gateway-ecs"))
    ]
    for given in found.values():
        assert given["--tags"] == ["team=agents", "cost=42"]
        assert given["--role-arn"] == ["the-role"]
        # Whatever makes roles bounds them, or the service role refuses it.
        template = load(given["--template-file"][0].removeprefix("infra/"))
        bounded = "PermissionsBoundaryArn=the-boundary" in given.get("--parameter-overrides", [])
        assert bounded is any(each["Type"] == "AWS::IAM::Role" for each in template["Resources"].values())
    if words != ["deploy"]:
        assert "TableStackName=green" in found[f"blue{stacks[0]}"]["--parameter-overrides"]


each_protected = pytest.mark.parametrize(
    ("target", "given", "stack"),
    [
        ("deploy", "PARAMETERS=TableName=blue", "langgraph-checkpoints"),
        ("deploy-gateway-ecs", "GATEWAY_PARAMETERS=VpcId=vpc-1", "langgraph-checkpoints-gateway-ecs"),
    ],
)


@each_protected
@pytest.mark.parametrize("own", ["", " DeletionProtection=false"])
def test_protection_comes_after_the_creation(
    make: Make, target: str, given: str, stack: str, own: str
) -> None:
    """Else nothing could take back a creation that failed; and whoever wants none gets none."""
    answers = {f"describe-stacks --stack-name {stack} ": "An error occurred: does not exist"}
    _, commands = make(target, f"{given}{own}", answers=answers)
    first, second = (
        dict(word.split("=", 1) for word in options(command)["--parameter-overrides"])
        for command in commands
        if command[:2] == ["cloudformation", "deploy"] and stack in command
    )
    assert first == {**second, "DeletionProtection": "false"}
    assert second["DeletionProtection"] == ("false" if own else "true")


@each_protected
def test_the_next_run_repairs_what_an_interrupted_one_left(
    make: Make, target: str, given: str, stack: str
) -> None:
    """Whether it created nothing, did not wait, or created the stack and protected nothing."""
    absent = {f"describe-stacks --stack-name {stack} ": "An error occurred: does not exist"}
    failing = {"overrides DeletionProtection=true": "An error occurred: Rate exceeded"}
    _, before = make(target, given, answers={**absent, **failing}, status=2)
    for state, first in {
        "CREATE_COMPLETE": None,
        "UPDATE_COMPLETE": None,
        "CREATE_IN_PROGRESS": "wait stack-create-complete",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": "wait stack-update-complete",
        "REVIEW_IN_PROGRESS": "deploy",
    }.items():
        _, commands = make(target, given, answers={f"describe-stacks --stack-name {stack} ": state})
        own = [" ".join(each[1:]) for each in commands[len(before) :] if stack in each]
        done = [each for each in own if each.startswith(("deploy", "wait"))]
        assert "--parameter-overrides DeletionProtection=true" in done.pop()
        # A table that is there is never without protection, not even for a while.
        assert done == [] if first is None else len(done) == 1 and done[0].startswith(first)
        before = commands


@each_protected
def test_a_stack_that_cannot_be_looked_at_is_not_taken_for_a_new_one(
    make: Make, target: str, given: str, stack: str
) -> None:
    """Or one failed question would switch the protection of a table in use off and on."""
    answers = {f"describe-stacks --stack-name {stack} ": "An error occurred (Throttling): Rate exceeded"}
    output, commands = make(target, given, status=2, answers=answers)
    assert "Rate exceeded" in output
    assert not [each for each in commands if each[1] == "deploy"]


@pytest.mark.parametrize(
    "tenant",
    [
        "acme_corp",
        "role",
        *(pytest.param(each, marks=pytest.mark.search) for each in ("acme.com", "a" * 128, "-", "7")),
    ],
)
def test_every_tenant_that_the_template_takes_has_a_stack_of_its_own(make: Make, tenant: str) -> None:
    """A stack's name takes letters, digits and hyphens, and 128 of them."""
    _, commands = make("deploy-tenant", f"TENANT={tenant}")
    [(name, given)] = deployments(commands).items()
    assert re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,127}", name)
    assert f"Tenant={tenant}" in given["--parameter-overrides"]
    # The page on permissions names the stacks of the broker, and of all tenants.
    page = (INFRA.parent / "docs" / "permissions.md").read_text(encoding="utf-8")
    assert name not in re.findall(r"--stack-name ([\w-]+)", page)
    _, commands = make("deploy-tenant", f"TENANT={tenant}".replace("_", "-").replace(".", "-"))
    assert len(deployments(commands)) == (1 if tenant.replace("-", "").isalnum() or tenant == "-" else 2)


def changes(commands: list[list[str]]) -> list[tuple[str, ...]]:
    """What each command did that changes a stack, and to which."""
    asking = ("describe", "list", "wait", "deploy")
    return [
        (
            *(word for word in command[1:] if word.endswith("protection") or word == "delete-stack"),
            command[-1],
        )
        for command in commands
        if not command[1].startswith(asking)
    ]


@pytest.mark.parametrize(("words", "typed"), [(["CONFIRM=blue"], ""), ([], "blue\n")])
def test_destroy_deletes_the_stack_that_was_named_and_tells_of_the_table_it_keeps(
    make: Make, words: list[str], typed: str
) -> None:
    output, commands = make("destroy", "STACK=blue", *words, typed=typed)
    unprotect = ("update-termination-protection", "--no-enable-termination-protection")
    changed = [(*unprotect, "blue-observability"), ("delete-stack", "blue-observability")]
    assert changes(commands) == [*changed, (*unprotect, "blue"), ("delete-stack", "blue")]
    assert not any(command[0] == "dynamodb" for command in commands)
    assert "The table the-table is kept" in output
    assert "delete-table --table-name the-table" in output


@pytest.mark.parametrize(("words", "typed"), [([], ""), ([], "yes\n"), (["CONFIRM=bleu"], "")])
def test_destroy_deletes_nothing_unless_the_stack_is_named(make: Make, words: list[str], typed: str) -> None:
    output, commands = make("destroy", "STACK=blue", *words, status=2, typed=typed)
    assert changes(commands) == []
    assert "make destroy STACK=blue CONFIRM=blue" in output


def test_destroy_deletes_nothing_while_others_use_the_stack(make: Make) -> None:
    """CloudFormation would refuse it too, but only once the alarms are gone."""
    answers = {
        "list-imports.*AgentPolicyArn": "blue-lambda-agent\tblue-tenant-acme",
        "list-imports.*TableName": "blue-observability\tblue-lambda-agent",
        **NOTHING_IN_THE_WAY,
        "list-entities-for-policy": "batch-role",
    }
    output, commands = make("destroy", "STACK=blue", "CONFIRM=blue", status=2, answers=answers)
    assert changes(commands) == []
    assert output.count("blue-lambda-agent imports from it") == 1
    assert output.count("blue-tenant-acme imports from it") == 1
    # A gateway's stack is protected as well.
    assert "--no-enable-termination-protection --stack-name blue-lambda-agent" in output
    assert "blue-observability imports" not in output
    assert "batch-role has one of its policies" in output
    # They are all there is in the way.
    without = {name: answer for name, answer in answers.items() if name in NOTHING_IN_THE_WAY}
    without["list-entities-for-policy"] = ""
    without = {"list-imports.*TableName": "blue-observability", **without}
    _, commands = make("destroy", "STACK=blue", "CONFIRM=blue", answers=without)
    assert ("delete-stack", "blue") in changes(commands)


@pytest.mark.parametrize("question", ["list-imports", "list-entities-for-policy", "describe-stack-resource"])
def test_destroy_deletes_nothing_where_it_cannot_look(make: Make, question: str) -> None:
    answers = {**NOTHING_IN_THE_WAY, question: "An error occurred (AccessDenied): you may not ask that"}
    output, commands = make("destroy", "STACK=blue", "CONFIRM=blue", status=2, answers=answers)
    assert changes(commands) == []
    assert "you may not ask that" in output
