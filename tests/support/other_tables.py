"""Tables with another schema than the saver's."""

import uuid
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.dynamodb._format.schema import table_schema

OTHER_NAMES = {
    "other names": [("id", "S"), ("sort", "S")],
    "names in lower case": [("pk", "S"), ("sk", "S")],
    "another sort key": [("PK", "S"), ("sort", "S")],
    "no sort key": [("PK", "S")],
}
OTHER_TYPES = {"numbers": [("PK", "N"), ("SK", "N")], "a number as sort key": [("PK", "S"), ("SK", "N")]}


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
