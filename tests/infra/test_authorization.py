"""The policy evaluator itself: it must refuse where IAM refuses, or what it proves of the policies is worth nothing."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.infra.authorization import Gate, Request, actions_of, is_allowed, requests_of
from tests.infra.rendering import Node

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/t"
KEYS, TAG, TENANT = "dynamodb:LeadingKeys", "aws:PrincipalTag/tenant", "${aws:PrincipalTag/tenant}/*"


def policy(condition: Node = None, *, effect: str = "Allow") -> Node:
    """A policy of one statement on the table t."""
    statement = {"Effect": effect, "Action": "dynamodb:Get*", "Resource": TABLE, "Condition": condition or {}}
    return {"Version": "2012-10-17", "Statement": [statement]}


def get_item(*keys: str, tag: str | None = None) -> Request:
    """A request of these partition keys, by a caller with this session tag."""
    context = {KEYS: keys} if keys else {}
    return Request("dynamodb:GetItem", TABLE, context | ({} if tag is None else {TAG: [tag]}))


EVERY = {"ForAllValues:StringLike": {KEYS: ["a/*"]}}
SOME = {"ForAnyValue:StringNotLike": {KEYS: ["a/*"]}}
TEXT = {"ForAllValues:StringLike": {KEYS: ["[ab]?/*"]}}
VARIABLE = {"ForAllValues:StringLike": {KEYS: [TENANT]}}
ONE: list[Node] = [{operator: {TAG: "a"}} for operator in ("StringLike", "StringEquals")]


@pytest.mark.parametrize(
    ("policies", "request_", "allowed"),
    [
        # Nothing is allowed by default, and a denial wins.
        ([], get_item("a"), False),
        ([policy()], get_item("a"), True),
        ([policy(), policy(effect="Deny")], get_item("a"), False),
        # Action and resource have to match as a whole.
        ([policy()], Request("dynamodb:PutItem", TABLE, {}), False),
        ([policy()], Request("dynamodb:GetItem", f"{TABLE}/index/run_id-index", {}), False),
        ([policy()], Request("dynamodb:GetItem", TABLE[:-1], {}), False),
        # Every key has to match, and only Null catches that there is none.
        ([policy(EVERY)], get_item("a/1", "a/2"), True),
        ([policy(EVERY)], get_item("a/1", "b/2"), False),
        ([policy(EVERY)], get_item("xa/1"), False),
        ([policy(EVERY)], get_item(), True),
        ([policy(EVERY | {"Null": {KEYS: "false"}})], get_item(), False),
        # One foreign key is denied, and none is not.
        ([policy(), policy(SOME, effect="Deny")], get_item("a/1", "a/2"), True),
        ([policy(), policy(SOME, effect="Deny")], get_item("a/1", "b/2"), False),
        ([policy(), policy(SOME, effect="Deny")], get_item(), True),
        # Wildcards match line ends, and brackets are text.
        ([policy(TEXT)], get_item("[ab]x/\n"), True),
        ([policy(TEXT)], get_item("ax/"), False),
        # A variable is text, and matches nothing where it is missing.
        ([policy(VARIABLE)], get_item("a/1", tag="a"), True),
        ([policy(VARIABLE)], get_item("b/1", tag="a"), False),
        ([policy(VARIABLE)], get_item("b/1", tag="*"), False),
        ([policy(VARIABLE)], get_item("/1"), False),
        # A condition on a key that is missing fails.
        *(([policy(each)], get_item("x", tag="a"), True) for each in ONE),
        *(([policy(each)], get_item("x", tag="b"), False) for each in ONE),
        *(([policy(each)], get_item("x"), False) for each in ONE),
    ],
)
def test_decisions_are_those_of_iam(policies: list[Node], request_: Request, allowed: bool) -> None:
    assert is_allowed(policies, request_) is allowed


def test_attributes_of_an_update_are_those_that_it_names() -> None:
    condition = {"ForAllValues:StringNotEquals": {"dynamodb:Attributes": ["claim"]}}
    [statement] = policy(condition)["Statement"]
    document = {"Statement": [{**statement, "Action": "dynamodb:UpdateItem"}]}
    body = {"TableName": "t", "Key": {"PK": {"S": "k"}, "SK": {"S": "s"}}}
    placed = {"UpdateExpression": "SET #c = :claim", "ExpressionAttributeValues": {":claim": {"S": "x"}}}
    for changes, allowed in (
        ({}, True),
        ({**placed, "ExpressionAttributeNames": {"#c": "epoch"}}, True),
        ({**placed, "ExpressionAttributeNames": {"#c": "claim"}}, False),
        ({"UpdateExpression": "REMOVE claim"}, False),
        ({"ConditionExpression": "attribute_exists(claim)"}, False),
    ):
        [request] = requests_of("UpdateItem", {**body, **changes}, {})
        assert is_allowed([document], request) is allowed


def test_what_it_does_not_know_is_an_error() -> None:
    with pytest.raises(KeyError):
        is_allowed([policy({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})], get_item("a"))
    statement = {"Effect": "Allow", "NotAction": "dynamodb:Scan", "Action": "*", "Resource": "*"}
    with pytest.raises(AssertionError):
        is_allowed([{"Statement": [statement]}], get_item("a"))


KEY = {"PK": {"S": "k"}, "SK": {"S": "s"}}
OTHER = {"PK": {"S": "other"}, "SK": {"S": "s"}}
INDEX = f"{TABLE}/index/run_id-index"


@pytest.mark.parametrize(
    ("operation", "body", "resource", "keys"),
    [
        *((each, {"Key": KEY}, TABLE, ["k"]) for each in ("GetItem", "UpdateItem", "DeleteItem")),
        ("PutItem", {"Item": KEY}, TABLE, ["k"]),
        (
            "Query",
            {
                "KeyConditionExpression": "#p = :p AND begins_with(SK, :s)",
                "ExpressionAttributeNames": {"#p": "PK"},
                "ExpressionAttributeValues": {":p": {"S": "k"}, ":s": {"S": "C#"}},
            },
            TABLE,
            ["k"],
        ),
        (
            "Query",
            {
                "IndexName": "run_id-index",
                "KeyConditionExpression": "run_id = :r",
                "ExpressionAttributeValues": {":r": {"S": "run"}},
            },
            INDEX,
            ["run"],
        ),
        ("Scan", {}, TABLE, []),
        ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [KEY, OTHER]}}}, TABLE, ["k", "other"]),
        (
            "BatchWriteItem",
            {"RequestItems": {"t": [{"PutRequest": {"Item": KEY}}, {"DeleteRequest": {"Key": OTHER}}]}},
            TABLE,
            ["k", "other"],
        ),
    ],
)
def test_a_call_is_a_request_for_all_its_partitions(
    operation: str, body: Node, resource: str, keys: list[str]
) -> None:
    [request] = requests_of(operation, {"TableName": "t", **body}, {})
    assert (request.action, request.resource) == (f"dynamodb:{operation}", resource)
    assert list(request.leading_keys) == keys


def test_actions_of_a_policy_are_those_of_dynamodb_that_it_allows() -> None:
    statements = [
        {"Effect": "Allow", "Action": ["dynamodb:Query", "kms:Decrypt"]},
        {"Effect": "Allow", "Action": "dynamodb:GetItem"},
        {"Effect": "Deny", "Action": "dynamodb:*"},
    ]
    assert actions_of({"Statement": statements}) == {"dynamodb:Query", "dynamodb:GetItem"}


def test_gate_refuses_before_anything_is_sent() -> None:
    gate = Gate([policy()])
    session = boto3.Session()
    gate.guard(session)
    # Nothing listens on port 9, so a request that were sent would fail otherwise.
    client = session.client("dynamodb", endpoint_url="http://127.0.0.1:9", region_name="us-east-1")
    with pytest.raises(ClientError, match="not authorized to perform: dynamodb:Scan"):
        client.scan(TableName="t")
    client.close()
    assert [request.action for request in gate.refused] == ["dynamodb:Scan"]
    assert not gate.allowed
