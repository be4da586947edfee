"""What `infra/table.yaml` becomes for each choice of its parameters, and which choices it refuses."""

import itertools
import json
import re
from pathlib import Path

import pytest

from infra.import_template import import_template
from langgraph.checkpoint.dynamodb.cli.shipped import parse_template
from langgraph.checkpoint.dynamodb.version import __version__
from tests.infra.rendering import INFRA, Node, StackRefusedError, load, render

TEMPLATE = load("table.yaml")
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def table(**parameters: str) -> dict[str, Node]:
    """The table's properties under these parameters."""
    return render(TEMPLATE, parameters).properties("Table")


INDEXES = ("run_id-index", "owner-index", "day-index")


def indexes(**parameters: str) -> list[dict[str, Node]]:
    """The indexes of the table under these parameters."""
    found: list[dict[str, Node]] = table(**parameters)["GlobalSecondaryIndexes"]
    assert tuple(each["IndexName"] for each in found) == INDEXES
    return found


def test_defaults_are_safe_and_on_demand() -> None:
    properties = table()
    assert properties["TableName"] == "langgraph-checkpoints"
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["TableClass"] == "STANDARD"
    assert properties["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True,
        "RecoveryPeriodInDays": "35",
    }
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": False}
    absent = {
        "ProvisionedThroughput",
        "OnDemandThroughput",
        "StreamSpecification",
        "WarmThroughput",
    }
    assert not any(absent & each.keys() for each in (properties, *indexes()))


def test_the_documented_command_removes_the_maximums_of_table_and_indexes() -> None:
    document = (INFRA.parent / "docs" / "cost.md").read_text()
    updates, warm = re.findall(r"--global-secondary-index-updates '(\[.*?\])'", document, re.DOTALL)
    assert [each["Update"]["IndexName"] for each in json.loads(warm)] == list(INDEXES)
    gone = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
    assert json.loads(updates) == [
        {"Update": {"IndexName": name, "OnDemandThroughput": gone}} for name in INDEXES
    ]
    assert "--on-demand-throughput " + ",".join(f"{name}=-1" for name in gone) in document


def test_table_outlives_its_stack_and_its_replacement() -> None:
    resource = render(TEMPLATE).resources["Table"]
    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resource["UpdateReplacePolicy"] == "Retain"


def test_empty_name_is_left_to_cloudformation() -> None:
    assert "TableName" not in table(TableName="")


@pytest.mark.parametrize("reads", ["0", "500"])
@pytest.mark.parametrize("writes", ["0", "200"])
def test_request_maximums_cap_the_table_and_its_indexes(reads: str, writes: str) -> None:
    maximums = {"MaxReadRequestUnits": reads, "MaxWriteRequestUnits": writes}
    expected = {name: units for name, units in maximums.items() if units != "0"} or None
    assert table(**maximums).get("OnDemandThroughput") == expected
    assert [each.get("OnDemandThroughput") for each in indexes(**maximums)] == [expected] * 3


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"Encryption": "AWS_OWNED"}, {"SSEEnabled": False}),
        ({"Encryption": "AWS_MANAGED"}, {"SSEEnabled": True, "SSEType": "KMS"}),
        (
            {"Encryption": "CUSTOMER", "KmsKeyArn": KEY_ARN},
            {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY_ARN},
        ),
    ],
)
def test_encryption(parameters: dict[str, str], expected: dict[str, Node]) -> None:
    assert table(**parameters)["SSESpecification"] == expected


def test_customer_key_can_be_used_through_dynamodb_only() -> None:
    stack = render(TEMPLATE, {"Encryption": "CUSTOMER", "KmsKeyArn": KEY_ARN})
    for policy in stack.of_type("AWS::IAM::ManagedPolicy").values():
        statement = policy["PolicyDocument"]["Statement"][-1]
        assert statement["Resource"] == KEY_ARN
        assert all(action.startswith("kms:") for action in statement["Action"])
        assert statement["Condition"] == {
            "StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}
        }


def test_policies_do_not_mention_kms_without_a_customer_key() -> None:
    for encryption in ("AWS_OWNED", "AWS_MANAGED"):
        assert "kms:" not in str(render(TEMPLATE, {"Encryption": encryption}).resources)


@pytest.mark.parametrize("days", ["0", "1", "35"])
def test_point_in_time_recovery_days(days: str) -> None:
    expected = (
        {"PointInTimeRecoveryEnabled": False}
        if days == "0"
        else {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": days}
    )
    assert table(PointInTimeRecoveryDays=days)["PointInTimeRecoverySpecification"] == expected


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])
def test_stream_and_its_export(view: str) -> None:
    stack = render(TEMPLATE, {"StreamViewType": view})
    assert stack.properties("Table")["StreamSpecification"] == {"StreamViewType": view}
    assert stack.exports["checkpoints-StreamArn"] == stack.outputs["StreamArn"]


@pytest.mark.parametrize("mode", ["THROTTLED_KEYS", "ACCESSED_AND_THROTTLED_KEYS"])
def test_contributor_insights_rank_the_keys_of_table_and_index(mode: str) -> None:
    expected = {"Enabled": True, "Mode": mode}
    assert table(ContributorInsights=mode)["ContributorInsightsSpecification"] == expected
    for each in indexes(ContributorInsights=mode):
        assert each["ContributorInsightsSpecification"] == expected


def test_contributor_insights_are_switched_off_and_not_left_out() -> None:
    """CloudFormation leaves on what a template does not mention any more."""
    assert table()["ContributorInsightsSpecification"] == {"Enabled": False}
    assert all(each["ContributorInsightsSpecification"] == {"Enabled": False} for each in indexes())


def test_deletion_protection_and_table_class() -> None:
    properties = table(DeletionProtection="false", TableClass="STANDARD_INFREQUENT_ACCESS")
    assert properties["DeletionProtectionEnabled"] is False
    assert properties["TableClass"] == "STANDARD_INFREQUENT_ACCESS"


def test_outputs_are_exported_under_the_stacks_name() -> None:
    stack = render(TEMPLATE, stack_name="blue")
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/langgraph-checkpoints"
    assert stack.outputs == {
        "TableName": "langgraph-checkpoints",
        "TableArn": arn,
        "TemplateVersion": __version__,
        "AgentPolicyArn": "arn:aws:iam::123456789012:policy/blue-AgentPolicy",
        "RunnerPolicyArn": "arn:aws:iam::123456789012:policy/blue-RunnerPolicy",
        "OperatorPolicyArn": "arn:aws:iam::123456789012:policy/blue-OperatorPolicy",
        "ReaderPolicyArn": "arn:aws:iam::123456789012:policy/blue-ReaderPolicy",
    }
    del stack.outputs["TemplateVersion"]
    assert stack.exports == {f"blue-{name}": value for name, value in stack.outputs.items()}


@pytest.mark.parametrize("path", sorted(INFRA.rglob("*.yaml")), ids=lambda path: str(path.relative_to(INFRA)))
def test_each_template_says_the_release_that_doctor_compares(path: Path) -> None:
    assert load(str(path.relative_to(INFRA)))["Outputs"]["TemplateVersion"]["Value"] == __version__


def test_every_combination_of_choices_is_rendered_or_refused_by_a_rule() -> None:
    """No choice of one parameter breaks the rendering of another; the rules alone decide."""
    rendered = 0
    for encryption, key, maximum, stream, insights, days in itertools.product(
        ("AWS_OWNED", "AWS_MANAGED", "CUSTOMER"),
        ("", KEY_ARN),
        ("0", "100"),
        ("NONE", "NEW_IMAGE"),
        ("OFF", "THROTTLED_KEYS"),
        ("0", "7"),
    ):
        parameters = {
            "Encryption": encryption,
            "KmsKeyArn": key,
            "MaxWriteRequestUnits": maximum,
            "StreamViewType": stream,
            "ContributorInsights": insights,
            "PointInTimeRecoveryDays": days,
        }
        valid = (encryption == "CUSTOMER") == bool(key)
        if not valid:
            with pytest.raises(StackRefusedError):
                render(TEMPLATE, parameters)
            continue
        stack = render(TEMPLATE, parameters)
        properties = stack.properties("Table")
        assert ("OnDemandThroughput" in properties) == (maximum != "0")
        assert ("StreamArn" in stack.outputs) == (stream != "NONE")
        rendered += 1
    assert rendered == 48


@pytest.mark.parametrize(
    ("parameters", "advice"),
    [
        ({"Encryption": "CUSTOMER"}, "Pass the key's ARN"),
        ({"KmsKeyArn": KEY_ARN}, "leave KmsKeyArn empty"),
        ({"Encryption": "AWS_MANAGED", "KmsKeyArn": KEY_ARN}, "leave KmsKeyArn empty"),
        ({"Encryption": "CUSTOMER", "KmsKeyArn": "alias/mine"}, "must be the ARN of a key"),
        ({"TableName": "a b"}, "must be 3 to 255 letters"),
        ({"TableName": "ab"}, "must be 3 to 255 letters"),
        ({"PointInTimeRecoveryDays": "36"}, "1 to 35 days, or 0"),
        ({"PointInTimeRecoveryDays": "-1"}, "1 to 35 days, or 0"),
        ({"MaxReadRequestUnits": "-1"}, "0 for no maximum"),
        ({"TableClass": "FREE"}, "must be one of"),
        ({"Colour": "blue"}, "do not exist in the template"),
    ],
)
def test_wrong_parameters_are_refused_with_advice(parameters: dict[str, str], advice: str) -> None:
    with pytest.raises(StackRefusedError, match=advice):
        render(TEMPLATE, parameters)


def test_every_parameter_says_what_it_is() -> None:
    assert all(declaration["Description"] for declaration in TEMPLATE["Parameters"].values())


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
