"""The accounting of requests to a table: their threads, units, bytes and segments. Used only where events are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY
from langgraph.checkpoint.dynamodb._runtime.events import Meter
from langgraph.checkpoint.dynamodb._runtime.steps import Call

_READS = frozenset({"batch_get_item", "get_item", "query", "scan"})
_WRITES = frozenset({"batch_write_item", "delete_item", "put_item", "update_item"})


class TableAccounting:
    """Knows the requests of `Table`, and what DynamoDB says of them."""

    def prepared(self, call: Call) -> Call:
        """Return a request that also asks for the units it consumes."""
        if call.method not in _READS | _WRITES:
            return call
        return Call(call.method, {**call.params, "ReturnConsumedCapacity": "TOTAL"}, call.delay_seconds)

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads whose partitions a request names."""
        named = set(_partitions_of(call.params))
        # Keys of other savers, which a new thread is looked for under, have no "#".
        return {items.parse_partition(pk).thread_id for pk in named if "#" in pk}

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count units, bytes and segments, and attempts that a client made by itself."""
        reported = response.get("ConsumedCapacity", ())
        for each in (reported,) if isinstance(reported, Mapping) else reported:
            if call.method in _READS:
                meter.read_units = (meter.read_units or 0.0) + each["CapacityUnits"]
            else:
                meter.write_units = (meter.write_units or 0.0) + each["CapacityUnits"]
        meter.retries += response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
        meter.bytes_read += sum(map(item_bytes, _items_in(response)))
        for item in _written_by(call.params):
            meter.bytes_written += item_bytes(item)
            if items.sort_key(item).startswith(items.SEGMENTS):
                meter.written.add(items.segment_id_of(item))
            else:
                meter.named |= items.named_ids([item])


def _partitions_of(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the partition keys that a request names. A query of the index names none."""
    for name in ("Key", "Item"):
        if name in params:
            yield items.partition_key(params[name])
    if "KeyConditionExpression" in params and "IndexName" not in params:
        yield params["ExpressionAttributeValues"][":pk"]["S"]
    for request in params.get("RequestItems", {}).values():
        wanted = request["Keys"] if isinstance(request, Mapping) else map(_key_of_write, request)
        for each in wanted:
            yield each[PARTITION_KEY]["S"]


def _key_of_write(request: Mapping[str, Any]) -> Item:
    key: Item = request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]
    return key


def _written_by(params: Mapping[str, Any]) -> Iterator[Item]:
    if "Item" in params:
        yield params["Item"]
    if "UpdateExpression" in params:
        # A value has the name of its attribute's placeholder.
        values = params.get("ExpressionAttributeValues", {})
        names = params.get("ExpressionAttributeNames", {})
        changed = [(name, f":{short[1:]}") for short, name in names.items()]
        yield {**params["Key"], **{name: values[each] for name, each in changed if each in values}}
    for request in params.get("RequestItems", {}).values():
        for each in () if isinstance(request, Mapping) else request:
            if "PutRequest" in each:
                yield each["PutRequest"]["Item"]


def _items_in(response: Mapping[str, Any]) -> Iterator[Item]:
    yield from response.get("Items", ())
    if "Item" in response:
        yield response["Item"]
    for found in response.get("Responses", {}).values():
        yield from found
