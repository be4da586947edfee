"""Templates in MiniStack, an emulator whose CloudFormation makes functions, their entrances and secrets as well.

Each one that it can make is made, updated, failed on purpose and destroyed. For each that it cannot, the test holds the
reason by which it refuses: where that no longer comes, the template belongs among the others. Of what it makes it runs
nothing here; the programs have tests of their own.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from tests.infra.conftest import Client
from tests.infra.rendering import INFRA, Template, load
from tests.infra.stacks import GIVEN

WHO = "principals: {agent: {iam: 'arn:aws:iam::123456789012:role/agent', rights: [read, write]}}"
ACCOUNT = {
    **GIVEN["gateway.yaml"],
    **GIVEN["gateway-ecs.yaml"],
    "BrokerRoleArn": "arn:aws:iam::123456789012:role/service",
    "SubnetIds": "subnet-1",
    "TableStackName": "base-table",
    "TenantsStackName": "base-tenant",
}
# Behind all that a template makes; no stack exports the value.
BROKEN = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Fn::ImportValue": "nothing"}}}


class Trial(NamedTuple):
    """A template, its parameters, and what an update changes."""

    file: str
    given: Mapping[str, str]
    changed: Mapping[str, str]


TRIALS = {
    "table": Trial(
        "table.yaml",
        {"TableName": "tried", "DeletionProtection": "false"},
        {"ContributorInsights": "THROTTLED_KEYS", "PointInTimeRecoveryDays": "7"},
    ),
    "observability": Trial("observability.yaml", {}, {"LatencyMilliseconds": "20"}),
    "saver-metrics": Trial("saver-metrics.yaml", {"Service": "smoke"}, {"TenantWriteUnits": "5000"}),
    "tenant": Trial("tenant.yaml", {"Tenant": "acme"}, {"Tenant": "globex"}),
    "tenant-role": Trial("tenant-role.yaml", {}, {}),
    "gateway": Trial("gateway.yaml", {"Principals": WHO}, {"MemorySize": "512"}),
    "gateway-http-api": Trial(
        "gateway.yaml",
        {
            "Principals": WHO,
            "Entrance": "HTTP_API",
            "JwtIssuer": "https://issuer.example",
            "JwtAudiences": "agents",
        },
        {"MemorySize": "512", "RequestsPerSecond": "5"},
    ),
    "gateway-ecs": Trial("gateway-ecs.yaml", {"DeletionProtection": "false"}, {"LogRetentionDays": "60"}),
    "lambda-agent": Trial("examples/lambda-agent/template.yaml", {}, {"MemorySize": "512", "Driver": "sync"}),
    "ecs-agent": Trial("examples/ecs-agent/template.yaml", {}, {"LogRetentionDays": "60"}),
}
# Why it does not make the others.
CANNOT = {
    "observability": "metric math",
    "saver-metrics": "metric math",
    "gateway-ecs": "AWS::EC2::SecurityGroupIngress",
    "ecs-agent": "VPC|vpc|subnet|operand",
}


class Stacks:
    """The stacks of one emulator."""

    def __init__(self, client: Client) -> None:
        """Take the factory of its clients."""
        self.formation, self.dynamodb = client("cloudformation"), client("dynamodb")

    def create(self, name: str, template: Template, given: Mapping[str, str]) -> str:
        """Make a stack; return the state in which it ends, or why it is refused."""
        try:
            self.formation.create_stack(**_request(name, template, given))
        except ClientError as error:
            return str(error)
        return self._ended(name)

    def update(self, name: str, template: Template, given: Mapping[str, str]) -> str:
        """Update a stack; return the state in which it ends."""
        self.formation.update_stack(**_request(name, template, given))
        return self._ended(name)

    def destroy(self, name: str) -> str:
        """Delete a stack, and the table that it keeps; return the state in which it ends."""
        kept = self.outputs(name).get("TableName")
        self.formation.delete_stack(StackName=name)
        state = self._ended(name)
        if kept in self.dynamodb.list_tables()["TableNames"]:
            self.dynamodb.delete_table(TableName=kept)
        return state

    def outputs(self, name: str) -> dict[str, str]:
        """What a stack puts out; nothing if there is none."""
        try:
            [stack] = self.formation.describe_stacks(StackName=name)["Stacks"]
        except ClientError:
            return {}
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def reasons(self, name: str) -> str:
        """Why the resources of a stack failed."""
        events = self.formation.describe_stack_events(StackName=name)["StackEvents"]
        return " ".join(each.get("ResourceStatusReason", "") for each in events)

    def _ended(self, name: str) -> str:
        for _ in range(1200):
            try:
                [stack] = self.formation.describe_stacks(StackName=name)["Stacks"]
            except ClientError:
                # A stack that is gone has no description by its name.
                return "DELETE_COMPLETE"
            if not stack["StackStatus"].endswith("IN_PROGRESS"):
                return str(stack["StackStatus"])
            time.sleep(0.05)
        return "not ended"


def _request(name: str, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
    return {
        "StackName": name,
        "TemplateBody": json.dumps(template),
        "Capabilities": ["CAPABILITY_IAM"],
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in {**ACCOUNT, **given}.items()
            if key in template.get("Parameters", {})
        ],
    }


@pytest.fixture(scope="module")
def stacks(emulator: Client) -> Iterator[Stacks]:
    """Give the stacks of the emulator, with those that others import from."""
    made = Stacks(emulator)
    bases = {"base-table": {"TableName": "base", "DeletionProtection": "false"}, "base-tenant": {}}
    for base, given in bases.items():
        assert made.create(base, load(f"{base.removeprefix('base-')}.yaml"), given) == "CREATE_COMPLETE"
    yield made
    for base in reversed(bases):
        made.destroy(base)


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


@pytest.mark.parametrize("name", TRIALS)
def test_a_stack_is_made_updated_failed_and_destroyed_and_leaves_nothing(
    emulator: Client, stacks: Stacks, name: str
) -> None:
    before, (file, given, changed) = everything(emulator), TRIALS[name]
    template = load(file)
    state = stacks.create(name, template, given)
    if name in CANNOT:
        why = state if "error" in state else stacks.reasons(name)
        assert re.search(CANNOT[name], why), f"{state}: {why}"
        stacks.destroy(name)
    else:
        assert state == "CREATE_COMPLETE", stacks.reasons(name)
        made = stacks.outputs(name)
        if changed:
            assert stacks.update(name, template, {**given, **changed}) == "UPDATE_COMPLETE"
            assert stacks.outputs(name).keys() == made.keys()
        assert stacks.destroy(name) == "DELETE_COMPLETE"
        # What stands under a condition may not be there to wait for.
        resources = template["Resources"]
        behind = sorted(each for each in resources if "Condition" not in resources[each])
        broken = {**template, "Resources": {**resources, "Broken": {**BROKEN, "DependsOn": behind}}}
        assert stacks.create(f"broken-{name}", broken, given) == "ROLLBACK_COMPLETE"
        stacks.destroy(f"broken-{name}")
    assert everything(emulator) == before


def test_the_page_names_the_templates_that_the_emulator_makes() -> None:
    page = (INFRA.parent / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (created, updated, deleted|only read)", page, re.MULTILINE))
    assert rows == {name: "only read" if name in CANNOT else "created, updated, deleted" for name in TRIALS}
