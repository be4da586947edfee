"""Templates in MiniStack, an emulator whose CloudFormation makes functions, their entrances and secrets as well.

Each one that it can make is made, updated, failed on purpose and destroyed. For each that it cannot, the test holds the
reason by which it refuses: where that no longer comes, the template belongs among the others. Of what it makes it runs
nothing here; the programs have tests of their own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.conftest import REQUIRE_LOCAL_VARIABLE
from tests.infra.rendering import INFRA, load
from tests.infra.test_gateway_templates import NETWORK, PACKAGE, TOKENS
from tools.engine import LOCAL_ENVIRONMENT
from tools.server import Server

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

PROGRAM = INFRA.parent / ".venv-ministack" / "bin" / "ministack"
SETTINGS = {
    "GATEWAY_PORT": "{port}",
    "BIND_HOST": "127.0.0.1",
    "MINISTACK_ACCOUNT_ID": "123456789012",
    "LOG_LEVEL": "ERROR",
    # Ports of their own, for services that no template here has.
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
}
TABLE_STACK = "langgraph-checkpoints"
PARAMETERS: dict[str, dict[str, str]] = {
    "table": {"DeletionProtection": "false"},
    "tenant": {"Tenant": "acme"},
    "gateway": PACKAGE,
    "gateway-http-api": PACKAGE | TOKENS,
    "lambda-agent": {"CodeBucket": "packages", "CodeKey": "key"},
}
FILES = {"gateway-http-api": "gateway.yaml", "lambda-agent": "examples/lambda-agent/template.yaml"}
UPDATES = {
    "table": {"ContributorInsights": "THROTTLED_KEYS", "PointInTimeRecoveryDays": "7"},
    "tenant": {"KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/1"},
    "gateway": {"MemorySize": "512"},
    "gateway-http-api": {"MemorySize": "512", "RequestsPerSecond": "5"},
    "lambda-agent": {"MemorySize": "512", "Driver": "sync"},
}
# Each refers to what there is not, behind all that the template makes.
BROKEN = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Fn::ImportValue": "nothing"}}}

Client = Callable[[str], Any]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Give a factory of clients of an emulator that has a package in a bucket, and the table's stack."""
    if not PROGRAM.exists():
        says = "MiniStack is not installed: `make infra-check` installs it"
        pytest.fail(says) if os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1" else pytest.skip(says)
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    server = Server("MiniStack", ("env", *settings, str(PROGRAM)))
    # Its types know each service by its own name only.
    any_client: Any = boto3.client
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(server.run())

        def make(service: str) -> Any:
            return stack.enter_context(
                contextlib.closing(
                    any_client(
                        service,
                        endpoint_url=address,
                        region_name=LOCAL_ENVIRONMENT["AWS_REGION"],
                        aws_access_key_id="local",
                        aws_secret_access_key="local",  # It takes any.
                    )
                )
            )

        package = io.BytesIO()
        with zipfile.ZipFile(package, "w") as archive:
            archive.writestr("handler.py", "def handler(event, context): ...\n")
        storage = make("s3")
        storage.create_bucket(Bucket="packages")
        storage.put_object(Bucket="packages", Key="key", Body=package.getvalue())
        assert create(make("cloudformation"), TABLE_STACK, load("table.yaml"), {}) == "CREATE_COMPLETE"
        yield make


def template_of(name: str) -> dict[str, Any]:
    """The template by the name that its parameters have here."""
    return load(FILES.get(name, f"{name}.yaml"))


def create(
    formation: CloudFormationClient, name: str, template: dict[str, Any], given: dict[str, str]
) -> str:
    """Make a stack; the state in which it ends."""
    formation.create_stack(StackName=name, **_request(template, given))
    return _ended(formation, name)


def update(
    formation: CloudFormationClient, name: str, template: dict[str, Any], given: dict[str, str]
) -> str:
    """Update a stack; the state in which it ends."""
    formation.update_stack(StackName=name, **_request(template, given))
    return _ended(formation, name)


def _request(template: dict[str, Any], given: dict[str, str]) -> dict[str, Any]:
    declared = template.get("Parameters", {})
    return {
        "TemplateBody": json.dumps(template),
        "Capabilities": ["CAPABILITY_IAM"],
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value} for key, value in given.items() if key in declared
        ],
    }


def _ended(formation: CloudFormationClient, name: str) -> str:
    while True:
        status: str = formation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
        if not status.endswith("IN_PROGRESS"):
            return status
        time.sleep(0.05)


def outputs_of(formation: CloudFormationClient, name: str) -> dict[str, str]:
    """What a stack puts out."""
    outputs = formation.describe_stacks(StackName=name)["Stacks"][0].get("Outputs", [])
    return {each["OutputKey"]: each["OutputValue"] for each in outputs}


def everything(client: Client) -> dict[str, set[str]]:
    """What there is of the kinds that these templates make."""
    tables = client("dynamodb").list_tables()["TableNames"]
    functions = client("lambda").list_functions()["Functions"]
    iam = client("iam")
    secrets = client("secretsmanager").list_secrets()["SecretList"]
    logs = client("logs").describe_log_groups()["logGroups"]
    return {
        "tables": set(tables),
        "functions": {each["FunctionName"] for each in functions},
        "roles": {each["RoleName"] for each in iam.list_roles()["Roles"]},
        "policies": {each["PolicyName"] for each in iam.list_policies(Scope="Local")["Policies"]},
        "interfaces": {each["ApiId"] for each in client("apigatewayv2").get_apis()["Items"]},
        "secrets": {each["Name"] for each in secrets if "DeletedDate" not in each},
        "logs": {each["logGroupName"] for each in logs},
    }


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_stack_is_made_updated_and_destroyed_and_leaves_nothing_but_its_table(
    client: Client, name: str
) -> None:
    formation, template = client("cloudformation"), template_of(name)
    given = {**PARAMETERS[name], "TableName": f"table-of-{name}", "TableStackName": TABLE_STACK}
    before = everything(client)
    assert create(formation, name, template, given) == "CREATE_COMPLETE"
    made = outputs_of(formation, name)
    assert set(template["Outputs"]) - made.keys() <= {"StreamArn", "ClientPolicyArn"}
    assert everything(client) != before
    assert update(formation, name, template, given | UPDATES[name]) == "UPDATE_COMPLETE"
    assert outputs_of(formation, name) == made
    formation.delete_stack(StackName=name)
    with contextlib.suppress(ClientError):
        assert _ended(formation, name) == "DELETE_COMPLETE"
    kept = before | ({"tables": before["tables"] | {"table-of-table"}} if name == "table" else {})
    assert everything(client) == kept


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_creation_that_fails_takes_back_all_that_it_made(client: Client, name: str) -> None:
    """The table as well, unless it is protected: then the next attempt would meet its name."""
    formation, template = client("cloudformation"), template_of(name)
    conditional = {each for each, resource in template["Resources"].items() if "Condition" in resource}
    behind = sorted(template["Resources"].keys() - conditional)
    template["Resources"]["Broken"] = {**BROKEN, "DependsOn": behind}
    given = {**PARAMETERS[name], "TableName": f"table-of-broken-{name}", "TableStackName": TABLE_STACK}
    before = everything(client)
    assert create(formation, f"broken-{name}", template, given) == "ROLLBACK_COMPLETE"
    assert everything(client) == before
    formation.delete_stack(StackName=f"broken-{name}")


def test_another_cursor_key_reaches_the_function_only_by_its_version(client: Client) -> None:
    formation, template = client("cloudformation"), template_of("gateway")
    given = {**PARAMETERS["gateway"], "TableStackName": TABLE_STACK}
    assert create(formation, "rotated", template, given) == "CREATE_COMPLETE"
    made = outputs_of(formation, "rotated")

    def key() -> str:
        found = client("lambda").get_function_configuration(FunctionName=made["FunctionName"])
        return str(found["Environment"]["Variables"]["LANGGRAPH_GATEWAY_CURSOR_KEY"])

    first, second = key(), "second" * 8
    stored = client("secretsmanager").put_secret_value(SecretId=made["CursorKeyArn"], SecretString=second)
    # What once was the whole of the advice: success, and the old key.
    assert update(formation, "rotated", template, given | {"MemorySize": "512"}) == "UPDATE_COMPLETE"
    assert key() == first
    rotated = given | {"MemorySize": "512", "CursorKeyVersion": stored["VersionId"]}
    assert update(formation, "rotated", template, rotated) == "UPDATE_COMPLETE"
    assert key() == second
    formation.delete_stack(StackName="rotated")


CANNOT = {
    "observability": ({}, "metric math"),
    "regulated": ({}, "AWS::CloudTrail::Trail"),
    "gateway-ecs": (NETWORK, "AWS::EC2::SecurityGroupIngress"),
    "ecs-agent": (
        {"Image": "agent:1", "VpcId": "vpc-1", "SubnetIds": "subnet-1", "ClientCidr": "10.0.0.0/16"},
        "VPC|vpc|subnet|operand",
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_the_emulator_cannot_make_it_refuses_for_the_known_reason(client: Client, name: str) -> None:
    formation = client("cloudformation")
    given, reason = CANNOT[name]
    template = load({"ecs-agent": "examples/ecs-agent/template.yaml"}.get(name, f"{name}.yaml"))
    try:
        state = create(formation, name, template, {**given, "TableStackName": TABLE_STACK})
    except ClientError as error:
        said = str(error)
    else:
        assert state == "ROLLBACK_COMPLETE"
        events = formation.describe_stack_events(StackName=name)["StackEvents"]
        said = " ".join(each.get("ResourceStatusReason", "") for each in events)
        formation.delete_stack(StackName=name)
    assert any(each in said for each in reason.split("|")), said
