"""Templates in MiniStack, an emulator whose CloudFormation makes functions, their entrances and secrets as well.

Each one that it can make is made, updated, failed on purpose and destroyed. For each that it cannot, the test holds the
reason by which it refuses: where that no longer comes, the template belongs among the others. Of what it makes it runs
nothing here; the programs have tests of their own.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from tests.deployed.conftest import Client, Stacks
from tests.infra.rendering import INFRA, load
from tests.infra.stacks import FIRST_DOOR

# Behind all that a template makes; no stack exports the value.
BROKEN = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Fn::ImportValue": "nothing"}}}


class Trial(NamedTuple):
    """A template, its parameters, and what an update changes."""

    file: str
    given: Mapping[str, str]
    changed: Mapping[str, str]


TRIALS = {
    "access": Trial("access.yaml", {}, {"Prefix": "agents"}),
    "table": Trial(
        "table.yaml",
        {"TableName": "tried", "DeletionProtection": "false"},
        {"ContributorInsights": "THROTTLED_KEYS", "PointInTimeRecoveryDays": "7"},
    ),
    "observability": Trial("observability.yaml", {}, {"LatencyMilliseconds": "20"}),
    "saver-metrics": Trial("saver-metrics.yaml", {"Service": "smoke"}, {"TenantWriteUnits": "5000"}),
    "tenant": Trial("tenant.yaml", {"Tenant": "acme"}, {"Tenant": "globex"}),
    "tenant-role": Trial("tenant-role.yaml", {}, {}),
    "gateway": Trial("gateway.yaml", {}, {"MemorySize": "512"}),
    "gateway-first-door": Trial("gateway.yaml", FIRST_DOOR, {"MemorySize": "512", "RequestsPerSecond": "5"}),
    "ecs": Trial("ecs.yaml", {"DeletionProtection": "false"}, {"LogRetentionDays": "60"}),
    "lambda-agent": Trial("examples/lambda-agent/template.yaml", {}, {"MemorySize": "512", "Driver": "sync"}),
}
# Why it does not make the others.
CANNOT = {
    "observability": "metric math",
    "saver-metrics": "metric math",
    "ecs": "AWS::EC2::SecurityGroupIngress",
}


@pytest.fixture(scope="module")
def bases(stacks: Stacks) -> Iterator[None]:
    """Let there be the stacks that others import from."""
    given = {"TableName": "base", "DeletionProtection": "false"}
    assert stacks.create("base-table", load("table.yaml"), **given) == "CREATE_COMPLETE"
    assert stacks.create("base-tenant", load("tenant.yaml"), Tenant="acme") == "CREATE_COMPLETE"
    yield
    stacks.destroy("base-tenant")
    stacks.destroy("base-table")


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


@pytest.mark.usefixtures("bases")
@pytest.mark.parametrize("name", TRIALS)
def test_a_stack_is_made_updated_failed_and_destroyed_and_leaves_nothing(
    emulator: Client, stacks: Stacks, name: str
) -> None:
    before, (file, given, changed) = everything(emulator), TRIALS[name]
    template = load(file)
    state = stacks.create(name, template, **given)
    if name in CANNOT:
        why = state if "error" in state else stacks.reasons(name)
        assert re.search(CANNOT[name], why), f"{state}: {why}"
        stacks.destroy(name)
    else:
        assert state == "CREATE_COMPLETE", stacks.reasons(name)
        made = stacks.outputs(name)
        if changed:
            assert stacks.update(name, template, **{**given, **changed}) == "UPDATE_COMPLETE"
            assert stacks.outputs(name).keys() == made.keys()
        assert stacks.destroy(name) == "DELETE_COMPLETE"
        # What stands under a condition may not be there to wait for.
        resources = template["Resources"]
        behind = sorted(each for each in resources if "Condition" not in resources[each])
        broken = {**template, "Resources": {**resources, "Broken": {**BROKEN, "DependsOn": behind}}}
        assert stacks.create(f"broken-{name}", broken, **given) == "ROLLBACK_COMPLETE"
        stacks.destroy(f"broken-{name}")
    assert everything(emulator) == before


def test_tenants_and_gateway_follow_the_table_and_keep_policy_and_address(
    emulator: Client, stacks: Stacks
) -> None:
    """docs/move-table.md, "The whole list". The emulator has no imports, so the stack makes a table of its own."""
    table = load("table.yaml")
    for name in ("old", "new"):
        given = {"TableName": f"{name}-table", "DeletionProtection": "false"}
        assert stacks.create(name, table, **given) == "CREATE_COMPLETE"
    beside = {"followers": load("tenant.yaml"), "followers-gateway": load("gateway.yaml")}

    def outputs() -> dict[str, dict[str, str]]:
        return {name: stacks.outputs(name) for name in beside}

    for name, template in beside.items():
        assert stacks.create(name, template, TableStackName="old", Tenant="acme") == "CREATE_COMPLETE"
    before = outputs()
    for name, template in beside.items():
        assert stacks.update(name, template, TableStackName="new", Tenant="acme") == "UPDATE_COMPLETE"
    assert stacks.delete("old") == "DELETE_COMPLETE"
    assert outputs() == before
    assert before["followers-gateway"]["Url"]
    # The table outlives its stack.
    assert "old-table" in stacks.dynamodb.list_tables()["TableNames"]

    iam, arn = emulator("iam"), before["followers"]["TenantPolicyArn"]
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    assert "table/new-table" in str(document)
    assert "table/old-table" not in str(document)
    function = before["followers-gateway"]["FunctionName"]
    variables = emulator("lambda").get_function_configuration(FunctionName=function)["Environment"]
    assert variables["Variables"]["LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME"] == "new-table"
    for name in (*beside, "new"):
        stacks.destroy(name)
    stacks.dynamodb.delete_table(TableName="old-table")


def test_the_page_names_the_templates_that_are_only_read() -> None:
    page = (INFRA.parent / "docs" / "reliability.md").read_text(encoding="utf-8")
    table = page.split("why it is only read |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [*CANNOT]
