"""Tables with another schema than the saver's."""

from __future__ import annotations

import json
import shlex
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.dynamodb._format.schema import table_schema

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

OTHER_NAMES = {
    "other names": [("id", "S"), ("sort", "S")],
    "names in lower case": [("pk", "S"), ("sk", "S")],
    "another sort key": [("PK", "S"), ("sort", "S")],
    "no sort key": [("PK", "S")],
}
OTHER_TYPES = {
    "numbers": [("PK", "N"), ("SK", "N")],
    "a number as sort key": [("PK", "S"), ("SK", "N")],
}


def new_table_name() -> str:
    """Return a name that no table has."""
    return f"other-{uuid.uuid4().hex}"


def schema_of(table_name: str, keys: Sequence[tuple[str, str]], **options: Any) -> dict[str, Any]:
    """Return `create_table`'s arguments for a table with these keys, each with its type."""
    kinds = ("HASH", "RANGE")[: len(keys)]
    return {
        "TableName": table_name,
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind} for name, kind in keys],
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind} for (name, _), kind in zip(keys, kinds, strict=True)
        ],
        "BillingMode": "PAY_PER_REQUEST",
        **options,
    }


def without_indexes(name: str) -> dict[str, Any]:
    """Return the saver's schema without its indexes."""
    schema = table_schema(name)
    del schema["GlobalSecondaryIndexes"]
    schema["AttributeDefinitions"] = schema["AttributeDefinitions"][:2]
    return schema


def without_directory(name: str) -> dict[str, Any]:
    """Return the schema of a table from before the directory of threads, with its one index."""
    schema = table_schema(name)
    return {
        **without_indexes(name),
        "AttributeDefinitions": schema["AttributeDefinitions"][:3],
        "GlobalSecondaryIndexes": schema["GlobalSecondaryIndexes"][:1],
    }


def run_update_tables(client: DynamoDBClient, text: str) -> list[str]:
    """Run the `aws dynamodb update-table` commands that a text has, wait as it says, and return the indexes made."""
    made = []
    for line in text.splitlines():
        if not line.strip().startswith("aws dynamodb update-table "):
            continue
        words = shlex.split(line)
        places = [place for place, word in enumerate(words) if word.startswith("--")]
        given = {words[a]: words[a + 1 : b] for a, b in zip(places, [*places[1:], None], strict=True)}
        attributes: Any = [
            dict(pair.split("=") for pair in each.split(",")) for each in given["--attribute-definitions"]
        ]
        updates = json.loads(given["--global-secondary-index-updates"][0])
        [name] = given["--table-name"]
        client.update_table(
            TableName=name, AttributeDefinitions=attributes, GlobalSecondaryIndexUpdates=updates
        )
        made.append(updates[0]["Create"]["IndexName"])
        indexes = client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
        while {each["IndexStatus"] for each in indexes} != {"ACTIVE"}:
            time.sleep(0.05)
            indexes = client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
    return made
