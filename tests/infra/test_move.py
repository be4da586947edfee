"""docs/move-table.md, "The whole list", in an emulator: stacks that import from a table's are pointed at another one's.

An import makes the other table's stack on AWS. The emulator has no imports, so the stack makes a table of its own here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.infra.conftest import Client
from tests.infra.rendering import INFRA
from tests.infra.stacks import CODE, WHO

OLD, NEW = "langgraph-checkpoints", "green"
TENANT, GATEWAY = f"{OLD}-tenant-acme", f"{OLD}-gateway"


def _given(parameters: Mapping[str, str]) -> list[Any]:
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]


def _outputs(formation: Any, name: str) -> dict[str, str]:
    [stack] = formation.describe_stacks(StackName=name)["Stacks"]
    assert stack["StackStatus"].endswith("_COMPLETE"), stack
    assert "ROLLBACK" not in stack["StackStatus"], stack
    return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}


def _deploy(formation: Any, name: str, template: str, **parameters: str) -> dict[str, str]:
    """Create a stack, or update it; return its outputs."""
    names = {each["StackName"] for each in formation.describe_stacks()["Stacks"]}
    given = {
        "StackName": name,
        "TemplateBody": (INFRA / template).read_text(encoding="utf-8"),
        "Parameters": _given(parameters),
        "Capabilities": ["CAPABILITY_IAM"],
    }
    formation.update_stack(**given) if name in names else formation.create_stack(**given)
    done = "stack_update_complete" if name in names else "stack_create_complete"
    formation.get_waiter(done).wait(StackName=name, WaiterConfig={"Delay": 0.1})
    return _outputs(formation, name)


def test_tenants_and_gateway_follow_the_table_and_keep_policy_and_address(emulator: Client) -> None:
    formation, functions, iam = emulator("cloudformation"), emulator("lambda"), emulator("iam")
    beside = {
        TENANT: ("tenant.yaml", {"Tenant": "acme"}),
        GATEWAY: ("gateway.yaml", {**CODE, "Principals": WHO}),
    }
    for name in (OLD, NEW):
        _deploy(formation, name, "table.yaml", TableName=f"{name}-table", DeletionProtection="false")

    def deploy(table_stack: str) -> dict[str, dict[str, str]]:
        return {
            name: _deploy(formation, name, template, TableStackName=table_stack, **parameters)
            for name, (template, parameters) in beside.items()
        }

    before, after = deploy(OLD), deploy(NEW)
    assert after == before
    assert after[GATEWAY]["Url"]

    arn = after[TENANT]["TenantPolicyArn"]
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    assert f"table/{NEW}-table" in str(document)
    assert f"table/{OLD}-table" not in str(document)
    served = functions.get_function_configuration(FunctionName=after[GATEWAY]["FunctionName"])
    table = served["Environment"]["Variables"]["LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME"]
    assert table == f"{NEW}-table"

    formation.delete_stack(StackName=OLD)
    formation.get_waiter("stack_delete_complete").wait(StackName=OLD, WaiterConfig={"Delay": 0.1})
    assert _outputs(formation, GATEWAY) == after[GATEWAY]
    # The table outlives its stack.
    assert f"{OLD}-table" in emulator("dynamodb").list_tables()["TableNames"]
