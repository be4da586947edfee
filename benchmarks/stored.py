"""What a table holds, by DynamoDB's published rules for the size of an item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Stored:
    """How many items a table holds and how large they are together."""

    items: int
    bytes: int

    def __sub__(self, other: Stored) -> Stored:
        """Return how much more it is."""
        return Stored(self.items - other.items, self.bytes - other.bytes)


def stored(client: DynamoDBClient, table_name: str) -> Stored:
    """Return how much a table holds."""
    sizes = [item_bytes(item) for item in scan(client, table_name)]
    return Stored(len(sizes), sum(sizes))


def scan(client: DynamoDBClient, table_name: str) -> Iterator[dict[str, Any]]:
    """Yield every item of a table; a tool for benchmarks, never for an application."""
    start: dict[str, Any] = {}
    while True:
        page = client.scan(TableName=table_name, ConsistentRead=True, **start)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the size of an item: names and values, without the overhead that storage is billed for."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    [(kind, content)] = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "B":
        return len(content)
    if kind == "N":
        return len(content.lstrip("-0.").replace(".", "")) // 2 + 2
    if kind == "L":
        return 3 + sum(1 + _value_bytes(element) for element in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_bytes(element) for name, element in content.items())
    if kind in {"SS", "NS", "BS"}:
        return sum(_value_bytes({kind[0]: element}) for element in content)
    return 1
