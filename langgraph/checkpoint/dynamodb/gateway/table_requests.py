"""Requests to the table for memories and cached nodes: of their partitions only, and of one principal's labels.

The store and the cache of a client make the requests that they would make to DynamoDB. The conditions that keep them
safe are in the requests themselves, and the service has nothing to add to them. It checks every key before it asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from langgraph.checkpoint.dynamodb._format import schema
from langgraph.checkpoint.dynamodb._format.items import Item, text
from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK, REGISTER_MARK, label_path
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.requests import CONDITION_FAILED, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import table_wire as wire
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden
from langgraph.checkpoint.dynamodb.gateway.wire import Message

T = TypeVar("T")

# Escaped labels, and a mark that no key of a thread has.
_PARTITION = re.compile(r"(?:(?:[^\0-%/]|%(?:[01][0-9A-F]|2[0-5F]))*/)*%[MNK]#")
# Who could set these could show an item in another one's list.
_INDEXED = frozenset((schema.OWNER, schema.LAST_ACTIVE, schema.ACTIVE_DAY))
# Words of expressions. Names of attributes are only reached by placeholders, whose names are checked.
_WORDS = {"SET", "REMOVE", "AND", "OR", "attribute_exists", "attribute_not_exists", "if_not_exists"}
_WORD = re.compile(r"(?<![\w#:])[A-Za-z_]\w*")


def check_labels(principal: Principal, request: Message) -> None:
    """Raise if a request to the table names memories or cached nodes that are not the principal's.

    Raises:
        ProblemError: It does.
    """
    keys = [(each.PK.S, each.SK.S) for each in wire.keys_in(request)]
    # A query that names nothing is no query, which is found later.
    if isinstance(request, wire.Query) and _queried(request):
        keys.append((_queried(request), ""))
    if not keys:
        return
    labels = _labels_of(principal)
    path = label_path(labels)
    # The register of a tenant's partitions has an entry for each second label. What an index lists is filtered.
    entry = (f"{label_path(labels[:1])}{REGISTER_MARK}", f"P#{label_path(labels[1:])}")
    is_index = isinstance(request, wire.Query) and request.IndexName is not None
    if not is_index and not all(pk.startswith(path) or (pk, sk) == entry for pk, sk in keys):
        raise forbidden(
            "this reaches memories or cached nodes that are not of these credentials; their namespaces begin with"
            f" {labels!r}"
        )


def _labels_of(principal: Principal) -> tuple[str, ...]:
    """Return the labels with which a principal's namespaces begin.

    Raises:
        ProblemError: The principal is bound to an owner of no tenant, whose name might be that of a tenant.
    """
    if principal.owner is not None and principal.tenant is None:
        raise forbidden(
            "memories and cached nodes of an owner are those of a tenant; give these credentials a tenant"
        )
    return tuple(each for each in (principal.tenant, principal.owner) if each is not None)


def visible_to(principal: Principal, items: list[Item]) -> list[Item]:
    """Return those of the items that an index lists which are of a principal's labels."""
    path = label_path(_labels_of(principal))
    # A projection may leave the key out, and then nothing says whose the item is.
    keys = [text(each, schema.PARTITION_KEY) or "" for each in items]
    return [each for each, pk in zip(items, keys, strict=True) if _is_partition(pk) and pk.startswith(path)]


def _queried(request: wire.Query) -> str:
    """Return the hash key that a query names; empty if it names none."""
    named = request.ExpressionAttributeValues.get(":pk")
    return "" if named is None else named.S


def _is_partition(pk: str) -> bool:
    return _PARTITION.fullmatch(pk) is not None


def carried_out(table: Table, method: str, request: wire.TableRequest, bytes_max: int) -> Op[dict[str, Any]]:
    """Make a request to the table and return the answer's document.

    Args:
        table: The table.
        method: The method of DynamoDB's client.
        request: The request.
        bytes_max: How many bytes of items one answer may have.

    Raises:
        CheckpointerInputError: A key is not one of memories or cached nodes, or DynamoDB refuses the request.
    """
    if not all(_is_partition(each.PK.S) for each in wire.keys_in(request)):
        raise CheckpointerInputError(
            "PK is not a key of memories or cached nodes; use the endpoints for threads"
        )
    _check_attributes(request)
    params = request.model_dump(exclude_none=True)
    if isinstance(request, wire.Query):
        _check_query(request)
        if request.IndexName is not None:
            return {"response": {"Items": (yield from _listed(table, params))}, "conflict": None}
    if isinstance(request, wire.BatchGetItem):
        response = yield from _asked(table, method, {"RequestItems": {table.name: params}})
        items, left = _fitting(response["Responses"].get(table.name, []), bytes_max)
        unprocessed = response.get("UnprocessedKeys", {}).get(table.name, {}).get("Keys", [])
        return {"items": items, "left": left + unprocessed}
    if isinstance(request, wire.BatchWriteItem):
        response = yield from _asked(table, method, {"RequestItems": {table.name: params["requests"]}})
        return {"left": response.get("UnprocessedItems", {}).get(table.name, [])}
    response = yield from _asked(table, method, {"TableName": table.name, **params})
    if isinstance(request, wire.Query):
        response = response | _page(response["Items"], _queried(request), bytes_max)
    shown = ("Item", "Items", "LastEvaluatedKey", "Attributes")
    return {
        "response": {name: response[name] for name in shown if name in response},
        "conflict": response.get("conflict"),
    }


def _asked(table: Table, method: str, params: Mapping[str, Any]) -> Op[dict[str, Any]]:
    """Make a request; return its response, or the item on which its condition failed as `conflict`."""
    outcomes = yield (Call(method, params),)
    outcome = outcomes[0]
    if error_code(outcome) == CONDITION_FAILED:
        return {"conflict": outcome.response.get("Item", {})}
    if error_code(outcome) == "ValidationException" or type(outcome).__name__ == "ParamValidationError":
        raise CheckpointerInputError(
            f"DynamoDB refuses the {method}; compare it with the one that HttpStore sends"
        )
    response: dict[str, Any] = table.checked(outcome)
    return response


def _listed(table: Table, params: Mapping[str, Any]) -> Op[list[Item]]:
    """Read all that an index lists. Where a page ends is not told: it may be another one's key."""
    found: list[Item] = []
    params = {"TableName": table.name, **params}
    while True:
        response = yield from _asked(table, "query", params)
        found += response["Items"]
        if "LastEvaluatedKey" not in response:
            return found
        params = {**params, "ExclusiveStartKey": response["LastEvaluatedKey"]}


def fitting(
    things: Iterable[T], size_of: Callable[[T], int], bytes_max: int, *, at_least: int = 0
) -> list[T]:
    """Return the first things that fit into an answer together, but at least so many."""
    found, size = list[T](), 0
    for each in things:
        size += size_of(each)
        if size > bytes_max and len(found) >= at_least:
            break
        found.append(each)
    return found


def _fitting(items: list[Item], bytes_max: int) -> tuple[list[Item], list[Item]]:
    """Return the items that fit into an answer, at least one, and the keys of the others."""
    found = fitting(items, item_bytes, bytes_max, at_least=1)
    names = (schema.PARTITION_KEY, schema.SORT_KEY)
    return found, [{name: item[name] for name in names} for item in items[len(found) :]]


def _page(items: list[Item], pk: str, bytes_max: int) -> dict[str, Any]:
    """Return the items of a query that fit into an answer, and where they end; nothing if all fit."""
    found = fitting(items, item_bytes, bytes_max, at_least=1)
    if len(found) == len(items) or schema.SORT_KEY not in found[-1]:
        return {}
    last = {schema.PARTITION_KEY: {"S": pk}, schema.SORT_KEY: found[-1][schema.SORT_KEY]}
    return {"Items": found, "LastEvaluatedKey": last}


def _check_query(request: wire.Query) -> None:
    """Refuse a query of anything but a partition of memories or cached nodes, or of what an index lists of them."""
    names, pk = request.ExpressionAttributeNames, _queried(request)
    if request.IndexName is not None:
        is_right = names.get("#pk") == schema.RUN_ID and pk.startswith((REGISTER_MARK, CACHE_MARK))
        is_right = is_right and request.ExclusiveStartKey is None and not request.ConsistentRead
    else:
        is_right = names.get("#pk") == schema.PARTITION_KEY and _is_partition(pk)
        is_right = is_right and (request.ExclusiveStartKey is None or pk == request.ExclusiveStartKey.PK.S)
    if not is_right or names.get("#sk", schema.SORT_KEY) != schema.SORT_KEY:
        raise CheckpointerInputError(
            "the query does not read memories or cached nodes; compare it with those that HttpStore sends"
        )


def _check_attributes(request: wire.TableRequest) -> None:
    """Refuse a request that would set an attribute of an index, but for the lists of partitions."""
    for item in _items_in(request):
        run_id = item.get(schema.RUN_ID)
        is_listed = run_id is None or str(run_id.get("S")).startswith((REGISTER_MARK, CACHE_MARK))
        if _INDEXED & item.keys() or not is_listed:
            names = ", ".join(sorted({*_INDEXED, schema.RUN_ID}))
            raise CheckpointerInputError(
                f"only items of threads have any of {names}; remove it from the item"
            )
    if isinstance(request, wire.DeleteItem):
        expressions = [request.ConditionExpression]
        if isinstance(request, wire.UpdateItem):
            expressions.append(request.UpdateExpression)
        words = {word for each in expressions for word in _WORD.findall(each)}
        named = set(request.ExpressionAttributeNames.values())
        if words - _WORDS or named & {*_INDEXED, schema.RUN_ID}:
            raise CheckpointerInputError(
                "an expression names an attribute of an index, or one without a placeholder"
            )


def _items_in(request: wire.TableRequest) -> Iterator[dict[str, Any]]:
    if isinstance(request, wire.PutItem):
        yield request.Item.model_dump(exclude_none=True)
    if isinstance(request, wire.BatchWriteItem):
        for each in request.requests:
            if each.PutRequest is not None:
                yield each.PutRequest.Item.model_dump(exclude_none=True)
