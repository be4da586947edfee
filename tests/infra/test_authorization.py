"""The policy evaluator itself: it must refuse where IAM refuses, or what it proves of the policies is worth nothing."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.infra.authorization import Gate, Request, actions_of, is_allowed, requests_of
from tests.infra.rendering import Node

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/t"


def policy(condition: Node = None, *, effect: str = "Allow") -> Node:
    """A policy of one statement on the table t."""
    statement = {"Effect": effect, "Action": "dynamodb:Get*", "Resource": TABLE, "Condition": condition or {}}
    return {"Version": "2012-10-17", "Statement": [statement]}


def get_item(*keys: str, **context: str) -> Request:
    """A request of these partition keys, with these condition keys (underscores for colons and slashes)."""
    names = {"tag": "aws:PrincipalTag/tenant"}
    leading = {"dynamodb:LeadingKeys": keys} if keys else {}
    return Request(
        "dynamodb:GetItem", TABLE, leading | {names[key]: [value] for key, value in context.items()}
    )


def test_nothing_is_allowed_by_default_and_a_denial_wins() -> None:
    assert not is_allowed([], get_item("a"))
    assert is_allowed([policy()], get_item("a"))
    assert not is_allowed([policy(), policy(effect="Deny")], get_item("a"))


def test_action_and_resource_have_to_match_as_a_whole() -> None:
    assert not is_allowed([policy()], Request("dynamodb:PutItem", TABLE, {}))
    assert not is_allowed([policy()], Request("dynamodb:GetItem", TABLE + "/index/run_id-index", {}))
    assert not is_allowed([policy()], Request("dynamodb:GetItem", TABLE[:-1], {}))


def test_every_key_has_to_match_and_null_catches_none() -> None:
    every = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["a/*"]}}
    assert is_allowed([policy(every)], get_item("a/1", "a/2"))
    assert not is_allowed([policy(every)], get_item("a/1", "b/2"))
    assert not is_allowed([policy(every)], get_item("xa/1"))
    assert is_allowed([policy(every)], get_item())
    assert not is_allowed([policy(every | {"Null": {"dynamodb:LeadingKeys": "false"}})], get_item())


def test_one_foreign_key_is_denied_and_none_is_not() -> None:
    denial = policy({"ForAnyValue:StringNotLike": {"dynamodb:LeadingKeys": ["a/*"]}}, effect="Deny")
    assert is_allowed([policy(), denial], get_item("a/1", "a/2"))
    assert not is_allowed([policy(), denial], get_item("a/1", "b/2"))
    assert is_allowed([policy(), denial], get_item())


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


def test_wildcards_match_line_ends_and_brackets_are_text() -> None:
    condition = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["[ab]?/*"]}}
    assert is_allowed([policy(condition)], get_item("[ab]x/\n"))
    assert not is_allowed([policy(condition)], get_item("ax/"))


def test_variable_is_text_and_matches_nothing_when_it_is_missing() -> None:
    condition = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["${aws:PrincipalTag/tenant}/*"]}}
    assert is_allowed([policy(condition)], get_item("a/1", tag="a"))
    assert not is_allowed([policy(condition)], get_item("b/1", tag="a"))
    assert not is_allowed([policy(condition)], get_item("b/1", tag="*"))
    assert not is_allowed([policy(condition)], get_item("/1"))


@pytest.mark.parametrize("operator", ["StringLike", "StringEquals"])
def test_condition_on_a_missing_key_fails(operator: str) -> None:
    condition = {operator: {"aws:PrincipalTag/tenant": "a"}}
    assert is_allowed([policy(condition)], get_item("x", tag="a"))
    assert not is_allowed([policy(condition)], get_item("x", tag="b"))
    assert not is_allowed([policy(condition)], get_item("x"))


def test_what_it_does_not_know_is_an_error() -> None:
    with pytest.raises(KeyError):
        is_allowed([policy({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})], get_item("a"))
    statement = {"Effect": "Allow", "NotAction": "dynamodb:Scan", "Action": "*", "Resource": "*"}
    with pytest.raises(AssertionError):
        is_allowed([{"Statement": [statement]}], get_item("a"))


@pytest.mark.parametrize(
    ("operation", "body", "keys"),
    [
        ("GetItem", {"Key": {"PK": {"S": "k"}, "SK": {"S": "s"}}}, ["k"]),
        ("UpdateItem", {"Key": {"PK": {"S": "k"}, "SK": {"S": "s"}}}, ["k"]),
        ("DeleteItem", {"Key": {"PK": {"S": "k"}, "SK": {"S": "s"}}}, ["k"]),
        ("PutItem", {"Item": {"PK": {"S": "k"}, "other": {"S": "s"}}}, ["k"]),
        (
            "Query",
            {
                "KeyConditionExpression": "#p = :p AND begins_with(SK, :s)",
                "ExpressionAttributeNames": {"#p": "PK"},
                "ExpressionAttributeValues": {":p": {"S": "k"}, ":s": {"S": "C#"}},
            },
            ["k"],
        ),
        ("Scan", {}, []),
    ],
)
def test_leading_keys_of_a_call(operation: str, body: Node, keys: list[str]) -> None:
    [request] = requests_of(operation, {"TableName": "t", **body}, {})
    assert request.action == f"dynamodb:{operation}"
    assert request.resource == TABLE
    assert list(request.leading_keys) == keys


def test_leading_keys_of_batches_are_all_their_keys() -> None:
    keys = [{"PK": {"S": name}, "SK": {"S": "s"}} for name in ("a", "b")]
    [reads] = requests_of("BatchGetItem", {"RequestItems": {TABLE: {"Keys": keys}}}, {})
    writes = [{"PutRequest": {"Item": keys[0]}}, {"DeleteRequest": {"Key": keys[1]}}]
    [both] = requests_of("BatchWriteItem", {"RequestItems": {"t": writes}}, {})
    for request in (reads, both):
        assert request.resource == TABLE
        assert list(request.leading_keys) == ["a", "b"]


def test_query_of_an_index_is_about_the_index_and_its_hash_key() -> None:
    body = {
        "TableName": "t",
        "IndexName": "run_id-index",
        "KeyConditionExpression": "run_id = :r",
        "ExpressionAttributeValues": {":r": {"S": "run"}},
    }
    [request] = requests_of("Query", body, {})
    assert request.resource == TABLE + "/index/run_id-index"
    assert list(request.leading_keys) == ["run"]


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
