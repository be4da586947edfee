"""The Terraform module of `infra/terraform`, made from the templates: `python -m tools.terraform` writes it anew.

Owns: how the table, the policies and the alarms of `table.yaml` and `observability.yaml` are said in Terraform's JSON.
What a template says once stays there: keys, index, actions, thresholds. The module's table is on-demand.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, TypeAlias

from infra.import_template import read_template

Node: TypeAlias = Any

INFRA = Path(__file__).parents[1] / "infra"
MODULE = INFRA / "terraform" / "main.tf.json"
TABLE = "aws_dynamodb_table.checkpoints"
# Parameters of the templates that are variables of the module, and Terraform's types.
VARIABLES = {
    "table": {
        "TableName": "string",
        "TableClass": "string",
        "DeletionProtection": "bool",
        "PointInTimeRecoveryDays": "number",
        "MaxReadRequestUnits": "number",
        "MaxWriteRequestUnits": "number",
        "KmsKeyArn": "string",
    },
    "observability": {
        "AlarmTopicArn": "string",
        "LatencyMilliseconds": "number",
        "ReadUnitsQuota": "number",
        "WriteUnitsQuota": "number",
        "QuotaPercent": "number",
    },
}
HAS_KEY = 'var.kms_key_arn != ""'


def module() -> dict[str, Node]:
    """Make the module from the templates.

    Returns:
        What `main.tf.json` holds.
    """
    table, alarms = read_template(INFRA / "table.yaml"), read_template(INFRA / "observability.yaml")
    policies = {
        _snake(name): resource["Properties"]
        for name, resource in table["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    return {
        "//": "Made from infra/table.yaml and infra/observability.yaml by `python -m tools.terraform`.",
        "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 5.80"}}},
        "variable": {
            _snake(name): _variable(template["Parameters"][name], kind)
            for template, names in ((table, VARIABLES["table"]), (alarms, VARIABLES["observability"]))
            for name, kind in names.items()
        },
        "data": {
            "aws_region": {"current": {}},
            "aws_iam_policy_document": {
                name: _document(each["PolicyDocument"]) for name, each in policies.items()
            },
        },
        "resource": {
            "aws_dynamodb_table": {"checkpoints": _table(table["Resources"]["Table"]["Properties"])},
            "aws_iam_policy": {
                name: {
                    "name_prefix": "${var.table_name}-" + name.removesuffix("_policy") + "-",
                    "description": each["Description"],
                    "policy": "${data.aws_iam_policy_document." + name + ".json}",
                }
                for name, each in policies.items()
            },
            "aws_cloudwatch_metric_alarm": {
                _snake(name): _alarm(name, resource["Properties"])
                for name, resource in alarms["Resources"].items()
                if resource["Type"] == "AWS::CloudWatch::Alarm"
            },
        },
        "output": {
            "table_name": {"value": "${" + TABLE + ".name}"},
            "table_arn": {"value": "${" + TABLE + ".arn}"},
            **{f"{name}_arn": {"value": "${aws_iam_policy." + name + ".arn}"} for name in policies},
        },
    }


def _variable(declared: Node, kind: str) -> Node:
    default = declared["Default"]
    return {
        "type": kind,
        "default": default == "true" if kind == "bool" else default,
        "description": declared["Description"].strip(),
    }


def _table(properties: Node) -> Node:
    maximum = {
        "for_each": "${var.max_read_request_units + var.max_write_request_units > 0 ? [1] : []}",
        # Terraform removes a maximum by -1.
        "content": {
            each: "${var." + each + " > 0 ? var." + each + " : -1}"
            for each in ("max_read_request_units", "max_write_request_units")
        },
    }
    keys = {each["KeyType"]: each["AttributeName"] for each in properties["KeySchema"]}
    return {
        "name": "${var.table_name}",
        "table_class": "${var.table_class}",
        "billing_mode": "PAY_PER_REQUEST",
        "hash_key": keys["HASH"],
        "range_key": keys["RANGE"],
        "attribute": [
            {"name": each["AttributeName"], "type": each["AttributeType"]}
            for each in properties["AttributeDefinitions"]
        ],
        "global_secondary_index": [_index(each, maximum) for each in properties["GlobalSecondaryIndexes"]],
        "dynamic": {"on_demand_throughput": maximum},
        "ttl": {"attribute_name": properties["TimeToLiveSpecification"]["AttributeName"], "enabled": True},
        "point_in_time_recovery": {
            "enabled": "${var.point_in_time_recovery_days > 0}",
            # The provider takes no 0.
            "recovery_period_in_days": "${var.point_in_time_recovery_days == 0 ? null : "
            "var.point_in_time_recovery_days}",
        },
        "server_side_encryption": {
            "enabled": "${" + HAS_KEY + "}",
            "kms_key_arn": "${" + HAS_KEY + " ? var.kms_key_arn : null}",
        },
        "deletion_protection_enabled": "${var.deletion_protection}",
        # What stands for DeletionPolicy: no plan that destroys the table is carried out.
        "lifecycle": {"prevent_destroy": True},
        "tags": {"Application": "langgraph-dynamodb"},
    }


def _index(index: Node, maximum: Node) -> Node:
    keys = {each["KeyType"]: each["AttributeName"] for each in index["KeySchema"]}
    projection = index["Projection"]
    said = {
        "name": index["IndexName"],
        "hash_key": keys["HASH"],
        "range_key": keys["RANGE"],
        "projection_type": projection["ProjectionType"],
        "dynamic": {"on_demand_throughput": maximum},
    }
    others = projection.get("NonKeyAttributes")
    return said | ({"non_key_attributes": others} if others else {})


def _document(document: Node) -> Node:
    plain, with_key = [], []
    for each in document["Statement"]:
        if "Fn::If" in each:
            with_key.append(_statement(each["Fn::If"][1]))
        else:
            plain.append(_statement(each))
    [content] = with_key
    for_each = "${" + HAS_KEY + " ? [var.kms_key_arn] : []}"
    return {"statement": plain, "dynamic": {"statement": {"for_each": for_each, "content": content}}}


def _statement(statement: Node) -> Node:
    actions, resources = (
        each if isinstance(each, list) else [each] for each in (statement["Action"], statement["Resource"])
    )
    said = {
        "sid": statement["Sid"],
        "effect": statement["Effect"],
        "actions": actions,
        "resources": [_value(each) for each in resources],
    }
    conditions = [
        {"test": test, "variable": variable, "values": value if isinstance(value, list) else [_value(value)]}
        for test, compared in statement.get("Condition", {}).items()
        for variable, value in compared.items()
    ]
    return said | ({"condition": conditions} if conditions else {})


def _alarm(name: str, properties: Node) -> Node:
    said = {
        _snake(key): _value(value)
        for key, value in properties.items()
        if key not in {"Metrics", "Dimensions"}
    }
    said["alarm_name"] = "${var.table_name}-" + name
    if "Dimensions" in properties:
        said["dimensions"] = _dimensions(properties["Dimensions"])
    if "Metrics" in properties:
        said["metric_query"] = [_query(each) for each in properties["Metrics"]]
    return said


def _query(query: Node) -> Node:
    said = {_snake(key): _value(value) for key, value in query.items() if key != "MetricStat"}
    if "MetricStat" in query:
        metric = query["MetricStat"]["Metric"]
        said["metric"] = {
            "namespace": metric["Namespace"],
            "metric_name": metric["MetricName"],
            "stat": query["MetricStat"]["Stat"],
            "period": query["MetricStat"]["Period"],
        }
        if "Dimensions" in metric:
            said["metric"]["dimensions"] = _dimensions(metric["Dimensions"])
    return said


def _dimensions(dimensions: Node) -> Node:
    return {each["Name"]: _value(each["Value"]) for each in dimensions}


def _value(node: Node) -> Node:
    """Say a value in Terraform: a function of the template as a reference."""
    if not isinstance(node, dict):
        return " ".join(node.split()) if isinstance(node, str) else node
    match list(node.items()):
        case [("Ref", name)]:
            return "${var." + _snake(name) + "}"
        case [("Fn::GetAtt", ["Table", "Arn"])]:
            return "${" + TABLE + ".arn}"
        case [("Fn::ImportValue", _)]:
            return "${" + TABLE + ".name}"
        case [("Fn::Sub", str(text))]:
            return re.sub(r"\$\{([\w.:]+)\}", _reference, " ".join(text.split()))
        case [("Fn::If", ["HasTopic", [{"Ref": "AlarmTopicArn"}], _])]:
            return '${var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]}'
    raise ValueError(f"there is no word for {node} in Terraform yet")


def _reference(match: re.Match[str]) -> str:
    known = {
        "Table.Arn": TABLE + ".arn",
        "AWS::Region": "data.aws_region.current.name",
        # The module is for the partition `aws`.
        "AWS::URLSuffix": '"amazonaws.com"',
    }
    return "${" + known.get(match[1], f"var.{_snake(match[1])}") + "}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=OK)(?=[A-Z])", "_", name).lower()


def main() -> int:
    """Write the module."""
    MODULE.write_text(json.dumps(module(), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
