"""The rights of the caller: every action is tried, by a request that cannot change anything."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._format.items import key, partition_of
from .._format.schema import ACTIVE_DAY, DAY_INDEX, OWNER, OWNER_INDEX, PARTITION_KEY, RUN_ID, RUN_INDEX
from .._runtime.failures import error_code
from .._runtime.requests import CONDITION_FAILED, Query

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_DENIED = ("AccessDenied", "AccessDeniedException")
INDEX_QUERY = "Query on the index"
OWNER_QUERY = f"Query on {OWNER_INDEX}"
DAY_QUERY = f"Query on {DAY_INDEX}"
_ON_TABLE = frozenset({"BatchGetItem", "GetItem", "Query"})
_READS = _ON_TABLE | {INDEX_QUERY, OWNER_QUERY}
_STORES = frozenset({"BatchWriteItem", "PutItem", "UpdateItem"})
_CHANGES = frozenset({"BatchWriteItem", "DeleteItem", "UpdateItem"})
# The policies of infra/table.yaml and infra/tenant.yaml. A test compares them.
POLICIES = {
    "agent": _READS | _CHANGES | _STORES,
    "runner": _ON_TABLE | _STORES,
    "operator": _READS | _CHANGES | {DAY_QUERY, "Scan"},
    "reader": _READS | {DAY_QUERY},
    "tenant": _ON_TABLE | {OWNER_QUERY} | _CHANGES | _STORES,
}


def try_actions(client: DynamoDBClient, table_name: str, thread_id: str) -> Mapping[str, Any]:
    """Try each action, and return its response or error.

    Nothing is written: a request that writes has a condition that cannot hold, or deletes an item that is not there.
    The requests take about six units together.
    """
    # Nobody has this key, so nobody's item is read or changed.
    item_key = key(partition_of(thread_id).pk, f"doctor {secrets.token_hex(8)}")
    never = {
        "ConditionExpression": "attribute_exists(#pk)",
        "ExpressionAttributeNames": {"#pk": PARTITION_KEY},
    }
    query = Query(item_key[PARTITION_KEY]["S"], prefix=item_key["SK"]["S"], consistent=False).params()
    of_run = Query("-", consistent=False, first_page=1, index=(RUN_INDEX, RUN_ID)).params()
    # An owner's name begins with the tenant as a thread id does.
    of_owner = Query(thread_id, consistent=False, first_page=1, index=(OWNER_INDEX, OWNER)).params()
    of_day = Query("-", consistent=False, first_page=1, index=(DAY_INDEX, ACTIVE_DAY)).params()
    on_table = {"TableName": table_name}
    requests: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "GetItem": (client.get_item, {**on_table, "Key": item_key}),
        "BatchGetItem": (client.batch_get_item, {"RequestItems": {table_name: {"Keys": [item_key]}}}),
        "Query": (client.query, {**on_table, **query}),
        INDEX_QUERY: (client.query, {**on_table, **of_run}),
        OWNER_QUERY: (client.query, {**on_table, **of_owner}),
        DAY_QUERY: (client.query, {**on_table, **of_day}),
        "PutItem": (client.put_item, {**on_table, "Item": item_key, **never}),
        "UpdateItem": (client.update_item, {**on_table, "Key": item_key, **never}),
        "DeleteItem": (client.delete_item, {**on_table, "Key": item_key, **never}),
        "BatchWriteItem": (
            client.batch_write_item,
            {"RequestItems": {table_name: [{"DeleteRequest": {"Key": item_key}}]}},
        ),
        "Scan": (client.scan, {**on_table, "Limit": 1, "ProjectionExpression": PARTITION_KEY}),
    }
    return {action: asked(request, **params) for action, (request, params) in requests.items()}


def is_unclear(outcome: Any) -> bool:
    """Tell whether a request failed for another reason than its condition."""
    return isinstance(outcome, Exception) and error_code(outcome) != CONDITION_FAILED


def asked(request: Callable[..., Any], **params: Any) -> Any:
    """Make a request and return its response, or the error that it raised."""
    try:
        return request(**params)
    except Exception as error:  # noqa: BLE001 - the error is the result.
        return error


def is_denied(outcome: Any) -> bool:
    """Tell whether the caller has no right to a request."""
    return error_code(outcome) in _DENIED
