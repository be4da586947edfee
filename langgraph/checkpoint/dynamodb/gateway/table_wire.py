"""The messages of requests to the table, for memories and cached nodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from langgraph.checkpoint.dynamodb.gateway.answers import Answer
from langgraph.checkpoint.dynamodb.gateway.wire import Bytes, Count, Message

# Requests to the table, for memories and cached nodes: DynamoDB's own, without the table's name


class KeyText(Message):
    """A text of a key."""

    S: Annotated[str, Field(min_length=1, max_length=2048)]


class TableKey(Message):
    """The key of an item."""

    PK: KeyText
    SK: KeyText


class AttributeValue(Message):
    """An attribute in DynamoDB's own form: one of the three types."""

    S: str | None = None
    N: str | None = None
    B: Bytes | None = None


class TableItem(TableKey):
    """An item: its key, and any other attributes."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    __pydantic_extra__: dict[str, AttributeValue]


class GetItem(Message):
    """Read an item."""

    Key: TableKey
    ConsistentRead: bool = False


class BatchGetItem(Message):
    """Read items. An answer has as many as fit."""

    Keys: Annotated[list[TableKey], Field(min_length=1, max_length=100)]
    ConsistentRead: bool = False


class Query(Message):
    """Read a page of a partition; or all keys that an index lists, as far as the credentials reach them."""

    KeyConditionExpression: Literal[
        "#pk = :pk", "#pk = :pk AND begins_with(#sk, :a)", "#pk = :pk AND #sk BETWEEN :a AND :b"
    ]
    ExpressionAttributeNames: dict[str, str]
    ExpressionAttributeValues: dict[str, KeyText]
    ProjectionExpression: str | None = None
    ConsistentRead: bool = False
    ScanIndexForward: bool = True
    Limit: Count | None = None
    ExclusiveStartKey: TableKey | None = None
    IndexName: Literal["run_id-index"] | None = None


class PutItem(Message):
    """Store an item."""

    Item: TableItem


class DeleteItem(Message):
    """Delete an item under a condition."""

    Key: TableKey
    ConditionExpression: str
    ExpressionAttributeNames: dict[str, str]
    ExpressionAttributeValues: dict[str, AttributeValue]
    ReturnValuesOnConditionCheckFailure: Literal["ALL_OLD"]


class UpdateItem(DeleteItem):
    """Change an item under a condition."""

    UpdateExpression: str
    ReturnValues: Literal["ALL_OLD"] | None = None


class ItemToPut(Message):
    """An item to store."""

    Item: TableItem


class ItemToDelete(Message):
    """The key of an item to delete."""

    Key: TableKey


class WriteRequest(Message):
    """One write of a batch: one of the two."""

    PutRequest: ItemToPut | None = None
    DeleteRequest: ItemToDelete | None = None


class BatchWriteItem(Message):
    """Store and delete items."""

    requests: Annotated[list[WriteRequest], Field(min_length=1, max_length=25)]


TableRequest: TypeAlias = GetItem | BatchGetItem | Query | PutItem | DeleteItem | UpdateItem | BatchWriteItem


def keys_in(request: Message) -> list[TableKey]:
    """Return the keys of items that a request to the table names."""
    if isinstance(request, BatchGetItem):
        return request.Keys
    if isinstance(request, BatchWriteItem):
        puts: list[TableKey] = [each.PutRequest.Item for each in request.requests if each.PutRequest]
        return puts + [each.DeleteRequest.Key for each in request.requests if each.DeleteRequest]
    if isinstance(request, PutItem):
        return [request.Item]
    return [request.Key] if isinstance(request, (GetItem, DeleteItem)) else []


# Answers


class TableResponse(Message):
    """The fields of DynamoDB's response."""

    Item: dict[str, AttributeValue] | None = None
    Items: list[dict[str, AttributeValue]] | None = None
    LastEvaluatedKey: dict[str, AttributeValue] | None = None
    Attributes: dict[str, AttributeValue] | None = None


class TableAnswer(Answer):
    """The response of DynamoDB to one request."""

    response: TableResponse
    conflict: dict[str, AttributeValue] | None = Field(
        description="The item on which the condition failed, empty if there is none; null: it held."
    )


class BatchGetItemAnswer(Answer):
    """Items, and the keys of those that did not fit or that DynamoDB did not read."""

    items: list[dict[str, AttributeValue]]
    left: list[dict[str, AttributeValue]]


class BatchWriteItemAnswer(Answer):
    """The writes that DynamoDB did not make."""

    left: list[dict[str, Any]]
