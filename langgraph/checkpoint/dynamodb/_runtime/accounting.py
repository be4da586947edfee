"""The accounting of requests to a table: their threads, units, bytes and segments. Used only where events are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._format import items
from .._format.items import Item
from .._format.labels import name_of, partition_labels
from .._format.pricing import item_bytes
from .._format.schema import PARTITION_KEY
from .events import Meter
from .steps import Call

READS = frozenset({"batch_get_item", "get_item", "query", "scan"})
_WRITES = frozenset({"batch_write_item", "delete_item", "put_item", "update_item"})
# An attribute that an update sets, and its value.
_SET = re.compile(r"(#\w+) (?:= )?(?:if_not_exists\(#\w+, )?(:\w+)")


def units_of(response: Mapping[str, Any]) -> float:
    """Return the units that a response reports."""
    reported = response.get("ConsumedCapacity", ())
    return sum(
        float(each["CapacityUnits"]) for each in ([reported] if isinstance(reported, Mapping) else reported)
    )


class TableAccounting:
    """Knows the requests of `Table`, and what DynamoDB says of them."""

    def __init__(self, *, labels_are_tenants: bool = True) -> None:
        """Take whether the first label of a namespace names a tenant."""
        self._labels_are_tenants = labels_are_tenants

    def prepared(self, call: Call) -> Call:
        """Return a request that also asks for the units it consumes."""
        if call.method not in READS | _WRITES:
            return call
        return replace(call, params={**call.params, "ReturnConsumedCapacity": "TOTAL"})

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads whose partitions a request names."""
        named = set(_partitions_of(call.params))
        # Keys of other savers, which a new thread is looked for under, have no "#".
        threads = (pk for pk in named if "#" in pk and partition_labels(pk) is None)
        return {items.parse_partition(pk).thread_id for pk in threads}

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return the first labels of the namespaces whose partitions a request names."""
        if not self._labels_are_tenants:
            return ()
        named = (partition_labels(pk) or () for pk in _partitions_of(call.params))
        return {name_of(labels[0]) for labels in named if labels}

    def bytes_written(self, call: Call) -> int:
        """Return how many bytes the items have that a request writes."""
        return sum(map(item_bytes, _written_by(call.params)))

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count units, bytes and segments, and attempts that a client made by itself."""
        if "ConsumedCapacity" in response:
            if call.method in READS:
                meter.read_units = (meter.read_units or 0.0) + units_of(response)
            else:
                meter.write_units = (meter.write_units or 0.0) + units_of(response)
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
        values = params.get("ExpressionAttributeValues", {})
        names = params.get("ExpressionAttributeNames", {})
        changed = _SET.findall(params["UpdateExpression"])
        yield {**params["Key"], **{names[name]: values[value] for name, value in changed}}
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
