"""What `infra/table.yaml` becomes for each choice of its parameters, and which choices it refuses."""

import json
import re
from pathlib import Path

import pytest

from infra.import_template import import_template
from langgraph.checkpoint.dynamodb._format.schema import INDEXES, TTL_ATTRIBUTE, table_schema
from langgraph.checkpoint.dynamodb.cli.printed import parse_template
from langgraph.checkpoint.dynamodb.version import __version__
from tests.infra.rendering import INFRA, Node, load, render
from tests.infra.stacks import KEY_ARN, stack_of

TEMPLATE = load("table.yaml")


def table(**parameters: str) -> dict[str, Node]:
    """The table's properties under these parameters."""
    return render(TEMPLATE, parameters).properties("Table")


def test_template_and_setup_make_the_same_table() -> None:
    """What `setup()` asks DynamoDB for is in the template, and the template names no other key or index."""
    properties = table(TableName="checkpoints")
    schema = table_schema("checkpoints")
    # `setup()` leaves insights as they are, and the template says that they are off: CloudFormation leaves on what a
    # template does not mention any more.
    for each in (properties, *properties["GlobalSecondaryIndexes"]):
        assert each.pop("ContributorInsightsSpecification") == {"Enabled": False}
    assert {name: properties[name] for name in schema} == schema
    assert properties["TimeToLiveSpecification"] == {"AttributeName": TTL_ATTRIBUTE, "Enabled": True}
    assert "LocalSecondaryIndexes" not in properties


def test_a_table_is_protected_and_can_be_restored_by_default() -> None:
    properties = table()
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


def test_the_documented_command_removes_the_maximums_of_table_and_indexes() -> None:
    document = (INFRA.parent / "docs" / "cost.md").read_text()
    [updates] = re.findall(r"--global-secondary-index-updates '(\[.*?\])'", document, re.DOTALL)
    gone = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
    assert json.loads(updates) == [
        {"Update": {"IndexName": name, "OnDemandThroughput": gone}} for name in INDEXES
    ]
    assert "--on-demand-throughput " + ",".join(f"{name}=-1" for name in gone) in document


def test_a_table_is_warm_with_its_indexes_for_a_launch() -> None:
    wanted = {"ReadUnitsPerSecond": "12000", "WriteUnitsPerSecond": "40000"}
    warm = table(WarmReadUnits="12000", WarmWriteUnits="40000")
    assert [each["WarmThroughput"] for each in (warm, *warm["GlobalSecondaryIndexes"])] == [wanted] * 4
    assert "WarmThroughput" not in str(table())


def test_roles_of_another_account_may_do_what_agents_may() -> None:
    roles = [f"arn:aws:iam::210987654321:role/{name}" for name in ("agents", "others")]
    stack = render(TEMPLATE, {"ResourcePolicyPrincipals": ",".join(roles)})
    [statement] = stack.properties("Table")["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert statement["Principal"] == {"AWS": roles}
    own = stack.properties("AgentPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == own[0]["Action"]
    assert statement["Resource"] == [own[0]["Resource"], *own[1]["Resource"]]
    assert "ResourcePolicy" not in table()


def test_table_outlives_its_stack_and_its_replacement() -> None:
    resource = render(TEMPLATE).resources["Table"]
    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resource["UpdateReplacePolicy"] == "Retain"


def test_customer_key_can_be_used_through_dynamodb_only() -> None:
    stacks = (
        render(TEMPLATE, {"Encryption": "CUSTOMER", "KmsKeyArn": KEY_ARN}),
        stack_of("tenant.yaml", KmsKeyArn=KEY_ARN),
    )
    policies = [each for stack in stacks for each in stack.of_type("AWS::IAM::ManagedPolicy").values()]
    assert len(policies) == 5
    for policy in policies:
        statement = policy["PolicyDocument"]["Statement"][-1]
        assert statement["Resource"] == KEY_ARN
        assert all(action.startswith("kms:") for action in statement["Action"])
        assert statement["Condition"] == {
            "StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}
        }


def test_policies_do_not_mention_kms_without_a_customer_key() -> None:
    for encryption in ("AWS_OWNED", "AWS_MANAGED"):
        assert "kms:" not in str(render(TEMPLATE, {"Encryption": encryption}).resources)


@pytest.mark.parametrize("path", sorted(INFRA.rglob("*.yaml")), ids=lambda path: str(path.relative_to(INFRA)))
def test_each_template_says_its_release_and_leaves_room_below_what_is_taken_without_a_bucket(
    path: Path,
) -> None:
    """`doctor` compares the release. CloudFormation takes 51,200 bytes."""
    assert load(str(path.relative_to(INFRA)))["Outputs"]["TemplateVersion"]["Value"] == __version__
    assert len(path.read_bytes()) <= 0.8 * 51_200


def test_what_is_chosen_is_there_and_else_is_not() -> None:
    """`test_parameters` has the choices that exclude each other."""
    chosen = render(TEMPLATE, {"MaxWriteRequestUnits": "100", "StreamViewType": "NEW_IMAGE"})
    for stack, is_chosen in ((chosen, True), (render(TEMPLATE), False)):
        assert ("OnDemandThroughput" in stack.properties("Table")) == is_chosen
        assert ("StreamArn" in stack.outputs) == is_chosen


def test_the_copy_that_adds_one_index_first_is_whole() -> None:
    """docs/move-table.md, "Add an index", says which lines to delete."""
    text = (INFRA / "table.yaml").read_text(encoding="utf-8")
    start, end = text.index("        - IndexName: day-index\n"), text.index("      BillingMode:")
    lines = (text[:start] + text[end:]).splitlines(keepends=True)
    copy = "".join(each for each in lines if "AttributeName: active_day, AttributeType" not in each)
    properties = render(parse_template(copy)).properties("Table")
    assert [each["IndexName"] for each in properties["GlobalSecondaryIndexes"]] == list(INDEXES[:2])
    keyed = [properties["KeySchema"], *(each["KeySchema"] for each in properties["GlobalSecondaryIndexes"])]
    named = {each["AttributeName"] for keys in keyed for each in keys}
    assert {each["AttributeName"] for each in properties["AttributeDefinitions"]} == named


def test_template_for_an_import_is_the_same_table_and_nothing_else() -> None:
    reduced = json.loads(import_template())
    for parameters in (
        {},
        {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
        {"Encryption": "CUSTOMER", "KmsKeyArn": KEY_ARN},
    ):
        stack = render(reduced, parameters)
        assert stack.resources == {"Table": render(TEMPLATE, parameters).resources["Table"]}
        assert not stack.outputs
    # CloudFormation imports only what it would keep when the stack is deleted.
    assert reduced["Resources"]["Table"]["DeletionPolicy"].startswith("Retain")
