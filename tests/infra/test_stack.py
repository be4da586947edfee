"""`infra/table.yaml` in a CloudFormation that runs here, moto's: the table it makes is the one the saver needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import boto3
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import (
    TTL_ATTRIBUTE,
    table_schema,
)
from tests.infra.conftest import resources_of
from tests.infra.rendering import load, render
from tests.saver import test_conformance
from tests.support.local_stack import PARAMETERS
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("moto")


@pytest.fixture
def table_name(stack_outputs: dict[str, str]) -> str:
    """Give the table of the stack to every fixture that would make one with `setup()`'s schema."""
    return stack_outputs["TableName"]


@pytest.mark.search
async def test_conformance_is_full_on_the_stacks_table(make_saver: Callable[..., DynamoDBSaver]) -> None:
    """That `setup()` makes the same table is tested below, and there the suite runs with each option and side."""
    await test_conformance.test_conformance_is_full(make_saver, side=lambda saver: saver, options=dict)


def test_template_and_setup_make_the_same_table() -> None:
    """What `setup()` asks DynamoDB for is in the template, and the template names no other key or index."""
    properties = render(load("table.yaml"), {"TableName": "checkpoints"}).properties("Table")
    schema = table_schema("checkpoints")
    # `setup()` leaves insights as they are, and the template says that they are off.
    for index in properties["GlobalSecondaryIndexes"]:
        assert index.pop("ContributorInsightsSpecification") == {"Enabled": False}
    assert {name: properties[name] for name in schema} == schema
    assert properties["TimeToLiveSpecification"] == {"AttributeName": TTL_ATTRIBUTE, "Enabled": True}
    assert "LocalSecondaryIndexes" not in properties


def test_stack_makes_that_table(client: DynamoDBClient, stack_outputs: dict[str, str]) -> None:
    name = stack_outputs["TableName"]
    table = client.describe_table(TableName=name)["Table"]
    schema = table_schema(name)
    assert table["KeySchema"] == schema["KeySchema"]
    assert table["AttributeDefinitions"] == schema["AttributeDefinitions"]
    assert table["BillingModeSummary"]["BillingMode"] == schema["BillingMode"]
    indexes = {index["IndexName"]: index for index in table["GlobalSecondaryIndexes"]}
    for wanted in schema["GlobalSecondaryIndexes"]:
        index = indexes.pop(wanted["IndexName"])
        assert {key: index.get(key) for key in wanted} == wanted
    assert not indexes
    assert stack_outputs["TableArn"] == table["TableArn"]


def test_stack_makes_the_policies(engine: Engine, stack_outputs: dict[str, str]) -> None:
    iam = boto3.client("iam", **engine.client_options())
    for policy in ("Agent", "Operator", "Reader"):
        arn = stack_outputs[f"{policy}PolicyArn"]
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        resources = {arn for statement in document["Statement"] for arn in resources_of(statement)}
        assert {stack_outputs["TableArn"], PARAMETERS["KmsKeyArn"]} <= resources
    iam.close()
