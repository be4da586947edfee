"""The table's schema, as arguments of `create_table`. `infra/table.yaml` declares the same schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

PARTITION_KEY = "PK"
SORT_KEY = "SK"
RUN_ID = "run_id"
TTL_ATTRIBUTE = "expires_at"
RUN_INDEX = "run_id-index"
OWNER = "owner"
ACTIVE_DAY = "active_day"
LAST_ACTIVE = "last_active"
OWNER_INDEX = "owner-index"
DAY_INDEX = "day-index"
INDEXES = (RUN_INDEX, OWNER_INDEX, DAY_INDEX)
DIRECTORY_INDEXES = (OWNER_INDEX, DAY_INDEX)
# The attributes that both indexes of the directory hold beside the keys. None of them changes with each put.
DIRECTORY_ATTRIBUTES = ("about", "copy", "created_at", "listed_until", "ttl_seconds")

# The command that prints the template of such a table, wherever the package is installed.
TEMPLATE_COMMAND = "python -m langgraph.checkpoint.dynamodb template"
# The command that prints a document, followed by its name.
DOCS_COMMAND = "langgraph-dynamodb docs"


def table_schema(table_name: str) -> dict[str, Any]:
    """Return the keyword arguments that make `create_table` create the saver's table.

    Args:
        table_name: The table's name or ARN.

    Returns:
        Arguments for `create_table` of the low-level client, with on-demand billing.
    """
    return {
        "TableName": table_name,
        "AttributeDefinitions": [
            {"AttributeName": PARTITION_KEY, "AttributeType": "S"},
            {"AttributeName": SORT_KEY, "AttributeType": "S"},
            {"AttributeName": RUN_ID, "AttributeType": "S"},
            {"AttributeName": OWNER, "AttributeType": "S"},
            {"AttributeName": ACTIVE_DAY, "AttributeType": "S"},
            {"AttributeName": LAST_ACTIVE, "AttributeType": "N"},
        ],
        "KeySchema": [
            {"AttributeName": PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": SORT_KEY, "KeyType": "RANGE"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": RUN_INDEX,
                "KeySchema": [
                    {"AttributeName": RUN_ID, "KeyType": "HASH"},
                    {"AttributeName": SORT_KEY, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
            _directory_index(OWNER_INDEX, OWNER),
            _directory_index(DAY_INDEX, ACTIVE_DAY),
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def _directory_index(name: str, hash_name: str) -> dict[str, Any]:
    """Return an index that lists threads, the one that was active last at the end."""
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": hash_name, "KeyType": "HASH"},
            {"AttributeName": LAST_ACTIVE, "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(DIRECTORY_ATTRIBUTES)},
    }


def index_remedy(table_name: str, names: Iterable[str] = DIRECTORY_INDEXES) -> str:
    """Return how to add indexes to a table that lacks them: the commands, and what to wait for after each.

    Args:
        table_name: The table's name or ARN.
        names: The missing indexes; by default those that a table from before the directory lacks.

    Returns:
        Text of several lines that ends without a line break.
    """
    commands = [
        f"  {line}"
        for name in names
        for line in (_create_index(table_name, name), _until_active(table_name, name))
    ]
    return "\n".join(
        (
            "add what is missing, one index after the other, since DynamoDB makes one at a time; for a table of a"
            f" stack, see `{DOCS_COMMAND} move-table` first:",
            *commands,
        )
    )


def _create_index(table_name: str, name: str) -> str:
    schema = table_schema(table_name)
    [index] = [each for each in schema["GlobalSecondaryIndexes"] if each["IndexName"] == name]
    keys = {each["AttributeName"] for each in index["KeySchema"]}
    attributes = " ".join(
        f"AttributeName={each['AttributeName']},AttributeType={each['AttributeType']}"
        for each in schema["AttributeDefinitions"]
        if each["AttributeName"] in keys
    )
    return (
        f"aws dynamodb update-table --table-name {table_name} --attribute-definitions {attributes}"
        f" --global-secondary-index-updates '{json.dumps([{'Create': index}])}'"
    )


def _until_active(table_name: str, name: str) -> str:
    status = f"Table.GlobalSecondaryIndexes[?IndexName=='{name}'].IndexStatus"
    return (
        f'until [ "$(aws dynamodb describe-table --table-name {table_name} --query "{status}" --output text)"'
        " = ACTIVE ]; do sleep 30; done"
    )
