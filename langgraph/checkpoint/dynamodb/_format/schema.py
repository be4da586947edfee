"""The table's schema, as arguments of `create_table`. `infra/table.yaml` declares the same schema."""

from typing import Any

PARTITION_KEY = "PK"
SORT_KEY = "SK"
RUN_ID = "run_id"
TTL_ATTRIBUTE = "expires_at"
RUN_INDEX = "run_id-index"
OWNER = "owner"
ACTIVE_DAY = "active_day"
LAST_ACTIVE = "last_active"
ALIVE_UNTIL = "alive_until"
OWNER_INDEX = "owner-index"
DAY_INDEX = "day-index"
INDEXES = (RUN_INDEX, OWNER_INDEX, DAY_INDEX)
# The attributes that both indexes of the directory hold beside the keys. None of them changes with each put.
DIRECTORY_ATTRIBUTES = ("about", ALIVE_UNTIL, "created_at")

# The command that prints the template of such a table, wherever the package is installed.
TEMPLATE_COMMAND = "python -m langgraph.checkpoint.dynamodb template"
# The command that prints a document, followed by its name.
DOCS_COMMAND = "langgraph-dynamodb docs"
INDEX_REMEDY = (
    f"add it as the template that `{TEMPLATE_COMMAND}` prints declares it (`{DOCS_COMMAND} move-table`)"
)
"""The remedy for a missing index."""


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
