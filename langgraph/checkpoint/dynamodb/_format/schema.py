"""The table's schema, as arguments of `create_table`. `infra/table.yaml` declares the same schema."""

from __future__ import annotations

from typing import Any

PARTITION_KEY = "PK"
SORT_KEY = "SK"
RUN_ID = "run_id"
TTL_ATTRIBUTE = "expires_at"
RUN_INDEX = "run_id-index"

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
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
