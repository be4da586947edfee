"""The Terraform module says what the templates say: same table, same policies, same alarms.

No package registry has Terraform, so nothing here plans or applies it: the module is read as JSON, its references are
put in by hand, and the names of arguments are compared with those of the provider's documentation.
"""

from __future__ import annotations

import json
import re

from tests.infra.rendering import Node, load, render
from tools.terraform import MODULE, module

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
TABLE = render(load("table.yaml"), {"Encryption": "CUSTOMER", "KmsKeyArn": KEY})
OBSERVABILITY = render(load("observability.yaml"), {"TableStackName": "checkpoints"}, exports=TABLE.exports)
WRITTEN = json.loads(MODULE.read_text())
ALARM_ARGUMENTS = {
    "actions_enabled",
    "alarm_actions",
    "alarm_description",
    "alarm_name",
    "comparison_operator",
    "datapoints_to_alarm",
    "dimensions",
    "evaluation_periods",
    "extended_statistic",
    "metric_name",
    "metric_query",
    "namespace",
    "ok_actions",
    "period",
    "statistic",
    "threshold",
    "treat_missing_data",
    "unit",
}
TABLE_ARGUMENTS = {
    "attribute",
    "billing_mode",
    "deletion_protection_enabled",
    "dynamic",
    "global_secondary_index",
    "hash_key",
    "lifecycle",
    "name",
    "point_in_time_recovery",
    "range_key",
    "server_side_encryption",
    "table_class",
    "tags",
    "ttl",
}


def resolved(node: Node) -> Node:
    """A part of the module with its references put in: variables by their defaults, but for the key."""
    if isinstance(node, dict):
        return {name: resolved(each) for name, each in node.items()}
    if isinstance(node, list):
        return [resolved(each) for each in node]
    return re.sub(r"\$\{([^}]*)\}", _reference, node) if isinstance(node, str) else node


def _reference(match: re.Match[str]) -> str:
    known = {
        "aws_dynamodb_table.checkpoints.arn": TABLE.outputs["TableArn"],
        "aws_dynamodb_table.checkpoints.name": TABLE.outputs["TableName"],
        "data.aws_region.current.name": "us-east-1",
        '"amazonaws.com"': "amazonaws.com",
        "var.kms_key_arn": KEY,
    }
    name = match[1].removeprefix("var.")
    return known.get(match[1]) or str(WRITTEN["variable"].get(name, {"default": match[0]})["default"])


def test_the_module_is_what_the_templates_make() -> None:
    assert module() == WRITTEN, "write it anew: python -m tools.terraform"


def test_every_reference_leads_to_something() -> None:
    found = set(re.findall(r"\b(var|data|aws_\w+)\.([\w.]+)", MODULE.read_text()))
    places = {"var": WRITTEN["variable"], "data": WRITTEN["data"], **WRITTEN["resource"]}
    for kind, path in found - {("data", "aws_region.current.name")}:
        names = path.split(".")
        place = places[kind]
        assert names[0] in place, path
        if kind == "data":
            assert names[1] in place[names[0]], path


def test_table_and_index_are_those_of_the_template() -> None:
    table, properties = WRITTEN["resource"]["aws_dynamodb_table"]["checkpoints"], TABLE.properties("Table")
    assert table.keys() <= TABLE_ARGUMENTS
    assert {each["name"]: each["type"] for each in table["attribute"]} == {
        each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]
    }
    written = [table, *table["global_secondary_index"]]
    wanted = [properties, *properties["GlobalSecondaryIndexes"]]
    for mine, theirs in zip(written, wanted, strict=True):
        keys = [each["AttributeName"] for each in theirs["KeySchema"]]
        assert [mine["hash_key"], mine["range_key"]] == keys
    assert table["global_secondary_index"][0]["projection_type"] == "KEYS_ONLY"
    assert table["ttl"] == {
        "attribute_name": properties["TimeToLiveSpecification"]["AttributeName"],
        "enabled": True,
    }
    assert WRITTEN["variable"]["deletion_protection"]["default"] is True
    assert WRITTEN["variable"]["point_in_time_recovery_days"]["default"] == 35


def test_policies_are_those_of_the_template() -> None:
    policies = TABLE.of_type("AWS::IAM::ManagedPolicy")
    documents = WRITTEN["data"]["aws_iam_policy_document"]
    assert len(documents) == len(policies) == len(WRITTEN["resource"]["aws_iam_policy"])
    for name, properties in policies.items():
        document = resolved(documents[name.replace("Policy", "_policy").lower()])
        statements = [*document["statement"], document["dynamic"]["statement"]["content"]]
        assert [_as_iam(each) for each in statements] == [
            {**each, **{part: _as_list(each[part]) for part in ("Action", "Resource")}}
            for each in properties["PolicyDocument"]["Statement"]
        ]


def _as_list(node: Node) -> list[Node]:
    return node if isinstance(node, list) else [node]


def _as_iam(statement: Node) -> Node:
    conditions = {
        each["test"]: {each["variable"]: each["values"] if len(each["values"]) > 1 else each["values"][0]}
        for each in statement.get("condition", [])
    }
    said = {
        "Sid": statement["sid"],
        "Effect": statement["effect"],
        "Action": statement["actions"],
        "Resource": statement["resources"],
    }
    return said | ({"Condition": conditions} if conditions else {})


def test_alarms_are_those_of_the_template() -> None:
    wanted = OBSERVABILITY.of_type("AWS::CloudWatch::Alarm")
    written = WRITTEN["resource"]["aws_cloudwatch_metric_alarm"]
    assert len(written) == len(wanted)
    by_name = {each["alarm_name"].removeprefix("${var.table_name}-"): each for each in written.values()}
    assert by_name.keys() == wanted.keys()
    for name, properties in wanted.items():
        alarm = resolved(by_name[name])
        assert alarm.keys() <= ALARM_ARGUMENTS
        assert alarm["alarm_actions"] == alarm["ok_actions"]
        given = {each["Name"]: each["Value"] for each in properties.get("Dimensions", [])}
        assert alarm.get("dimensions", {}) == given
        for argument, key in (
            ("threshold", "Threshold"),
            ("period", "Period"),
            ("evaluation_periods", "EvaluationPeriods"),
            ("datapoints_to_alarm", "DatapointsToAlarm"),
            ("comparison_operator", "ComparisonOperator"),
            ("treat_missing_data", "TreatMissingData"),
            ("metric_name", "MetricName"),
            ("statistic", "Statistic"),
        ):
            assert str(alarm.get(argument)) == str(properties.get(key)), (name, argument)
        queries = {each["id"]: each for each in alarm.get("metric_query", [])}
        assert queries.keys() == {each["Id"] for each in properties.get("Metrics", [])}
        for query in properties.get("Metrics", []):
            mine = queries[query["Id"]]
            assert mine.get("expression") == query.get("Expression")
            if "MetricStat" in query:
                metric = query["MetricStat"]["Metric"]
                assert mine["metric"]["metric_name"] == metric["MetricName"]
                assert mine["metric"]["stat"] == query["MetricStat"]["Stat"]
                given = {each["Name"]: each["Value"] for each in metric.get("Dimensions", [])}
                assert mine["metric"].get("dimensions", {}) == given
