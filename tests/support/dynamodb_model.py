"""DynamoDB in memory: one table with the semantics the saver relies on, and nothing left to chance.

The model answers the requests of a boto3 client, parameter for parameter, one at a time. It never fails, delays or
lags of its own accord: a test that wants faults hands it `Faults`, whose hooks decide how old an eventual read
is, how far the index lags, and what a batch leaves unprocessed. A batch is not atomic, so a test that wants only some
of its effects names the others in `Faults.unprocessed` and throws the answer away.

Not modelled, and refused loudly: transactions, list indexes in paths, legacy parameters, parallel scans. Not modelled
and not noticed: reserved words in expressions, which the engines that the other tests use refuse.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import botocore.session
from botocore.exceptions import ClientError, ParamValidationError
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from tests.support.dynamodb_expressions import Path, apply_update, matches, project
from tests.support.dynamodb_grammar import Placeholders, parse_condition, parse_projection, parse_update
from tests.support.dynamodb_pages import Params, Response, query_page, scan_page
from tests.support.dynamodb_table import Faults, Key, Reads, Schema, Table, read_units
from tests.support.dynamodb_values import Item, Refusal, canonical, copied, item_bytes

BATCH_WRITES_MAX = 25
BATCH_KEYS_MAX = 100
BATCH_BYTES_MAX = 16 * 1024 * 1024

_NOT_MODELLED = frozenset(
    {
        "AttributesToGet", "AttributeUpdates", "ConditionalOperator", "Expected", "KeyConditions", "QueryFilter",
        "ReturnItemCollectionMetrics", "ScanFilter", "Segment", "TotalSegments",
    }
)  # fmt: skip


class DynamoDBModel:
    """One table, described by the keyword arguments of `create_table`, on a clock that counts seconds."""

    def __init__(
        self, table_schema: Schema, clock: Callable[[], float], *, ttl_attribute: str = "expires_at"
    ) -> None:
        """Create the table, empty and without faults."""
        self.check_parameters = True
        """Whether to refuse what boto3 would; a test of very many requests by code that is tested with it may not."""
        self._schema = table_schema
        self._clock = clock
        self._ttl_attribute = ttl_attribute
        self._table = Table(table_schema)
        self._handlers: Mapping[str, Callable[[Params, Reads], Response]] = {
            "put_item": self._put_item,
            "get_item": self._get_item,
            "update_item": self._update_item,
            "delete_item": self._delete_item,
            "query": self._query,
            "scan": self._scan,
            "batch_get_item": self._batch_get_item,
            "batch_write_item": self._batch_write_item,
            "describe_table": self._describe_table,
            "describe_time_to_live": self._describe_time_to_live,
        }

    @property
    def faults(self) -> Faults:
        """The hooks that decide what DynamoDB leaves open; a test replaces the ones it cares for."""
        return self._table.faults

    @property
    def sequence(self) -> int:
        """The number of writes so far: the moment at which a request begins."""
        return self._table.sequence

    def handle(self, method: str, params: Params, began_at: int | None = None) -> Response:
        """Answer one request.

        Args:
            method: The name of a boto3 client method.
            params: Its keyword arguments.
            began_at: The value of `sequence` when the request was sent, for a read that takes time: DynamoDB reads
                the items of a page one after the other and isolates none of them from the others.

        Returns:
            What the boto3 method returns, without ResponseMetadata.

        Raises:
            ClientError: Where DynamoDB answers with an error.
            ParamValidationError: Where boto3 refuses to send the request.
            NotImplementedError: Where the model does not know the request.
        """
        if method not in self._handlers:
            raise NotImplementedError(f"The model does not know {method}.")
        if not _NOT_MODELLED.isdisjoint(params):
            raise NotImplementedError(f"The model does not know {sorted(_NOT_MODELLED & params.keys())}.")
        if self.check_parameters:
            _check_parameters(method, params)
        try:
            answer: Response = copied(self._handlers[method](params, self._table.reads(began_at)))
            return answer
        except Refusal as refusal:
            response: Any = {"Error": {"Code": refusal.code, "Message": refusal.message}}
            if refusal.item is not None:
                response["Item"] = copied(refusal.item)
            raise ClientError(response, _operation_name(method)) from None

    def load(self, items: Iterable[Item]) -> None:
        """Hold these items, which `items` returned, and nothing else."""
        self._table.load(items)

    def items(self) -> list[Item]:
        """Return a copy of every item that is there, by key."""
        return [copied(item) for item in self._table.items()]

    def state(self) -> str:
        """Return all that is there as a text, which is the same for the same items."""
        return repr([sorted(item.items()) for item in self._table.items()])

    def expired(self) -> list[Item]:
        """Return the keys of the items whose time to live is over and that are still there."""
        now = self._clock()
        return [
            {name: item[name] for name in self._table.primary.key_names}
            for item in self._table.items()
            if "N" in item.get(self._ttl_attribute, {}) and float(item[self._ttl_attribute]["N"]) < now
        ]

    def expire(self, keys: Sequence[Item] | None = None) -> None:
        """Let DynamoDB delete items past their time: all of them, or the given ones, as it deletes them one by one."""
        for key in self.expired() if keys is None else keys:
            self._table.store(self._table.key_of(key), None)

    # Requests for one item.

    def _put_item(self, params: Params, _reads: Reads) -> Response:
        self._check_table(params["TableName"])
        _check_choice(params, "ReturnValues", ("NONE", "ALL_OLD"))
        item = {name: canonical(value) for name, value in params["Item"].items()}
        self._table.check_item(item, "Item size has exceeded the maximum allowed size")
        return self._change(params, self._table.key_of(item), lambda _placeholders: lambda _old: item)

    def _delete_item(self, params: Params, _reads: Reads) -> Response:
        self._check_table(params["TableName"])
        _check_choice(params, "ReturnValues", ("NONE", "ALL_OLD"))
        return self._change(
            params, self._table.only_key_of(params["Key"]), lambda _placeholders: lambda _old: None
        )

    def _update_item(self, params: Params, _reads: Reads) -> Response:
        self._check_table(params["TableName"])
        _check_choice(params, "ReturnValues", ("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"))
        key = self._table.only_key_of(params["Key"])

        def prepare(placeholders: Placeholders) -> Callable[[Item | None], Item | None]:
            if "UpdateExpression" not in params:
                return lambda old: params["Key"] if old is None else old
            update = parse_update(params["UpdateExpression"], placeholders)
            self._check_updatable(update.paths(), params.get("ReturnValues", "NONE"))

            def apply(old: Item | None) -> Item | None:
                new = apply_update(update, params["Key"] if old is None else old)
                self._table.check_item(new, "Item size to update has exceeded the maximum allowed size")
                return new

            touched.extend({path.names[0] for path in update.paths()})
            return apply

        touched: list[str] = []
        return self._change(params, key, prepare, touched)

    def _check_updatable(self, paths: list[Path], return_values: str) -> None:
        for path in paths:
            if path.names[0] in self._table.primary.key_names:
                raise Refusal(f"Cannot update attribute {path.names[0]}. This attribute is part of the key")
            if len(path.names) > 1 and return_values.startswith("UPDATED_"):
                # AWS returns the changed entries, DynamoDB Local the whole map.
                raise NotImplementedError("The model does not know UPDATED_* of paths within a map.")

    def _change(
        self,
        params: Params,
        key: Key,
        prepare: Callable[[Placeholders], Callable[[Item | None], Item | None]],
        touched: Collection[str] = (),
    ) -> Response:
        """Put, update or delete one item if the request's condition holds of it."""
        _check_choice(params, "ReturnValuesOnConditionCheckFailure", ("NONE", "ALL_OLD"))
        placeholders = Placeholders.of(params, "ConditionExpression", "UpdateExpression")
        condition = parse_condition(params, "ConditionExpression", placeholders)
        transform = prepare(placeholders)
        placeholders.check_all_used()
        old = self._table.latest(key)
        if condition is not None and not matches(condition, old or {}):
            returned = old if params.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else None
            raise Refusal("The conditional request failed", "ConditionalCheckFailedException", returned)
        new = transform(old)
        response = _returned(params.get("ReturnValues", "NONE"), old, new, touched)
        changes = [self._table.store(key, new)]
        return response | self._consumed(params, lambda: self._table.write_units(changes))

    def _get_item(self, params: Params, reads: Reads) -> Response:
        self._check_table(params["TableName"])
        paths = _projection_alone(params)
        consistent = params.get("ConsistentRead", False)
        version = self._table.read(self._table.only_key_of(params["Key"]), reads, consistent=consistent)
        item = version.item
        response = {} if item is None else {"Item": item if paths is None else project(paths, item)}
        return response | self._consumed(
            params, lambda: (read_units(version.size, consistent=consistent), {})
        )

    # Batches.

    def _batch_write_item(self, params: Params, _reads: Reads) -> Response:
        requests = self._only_table_of(params["RequestItems"])
        if len(requests) > BATCH_WRITES_MAX:
            raise Refusal("Too many items requested for the BatchWriteItem call")
        writes = [self._batch_write(request) for request in requests]
        _refuse_duplicates([key for key, _ in writes])
        if sum(item_bytes(item) for _, item in writes if item is not None) > BATCH_BYTES_MAX:
            raise Refusal("The batch exceeds the maximum allowed size")
        left = set(self.faults.unprocessed("batch_write_item", len(requests)))
        changes = [self._table.store(*write) for position, write in enumerate(writes) if position not in left]
        unprocessed = [copied(requests[position]) for position in sorted(left)]
        return {
            "UnprocessedItems": {self._table.name: unprocessed} if unprocessed else {},
            **self._consumed(params, lambda: self._table.write_units(changes), batch=True),
        }

    def _batch_write(self, request: Params) -> tuple[Key, Item | None]:
        if "DeleteRequest" in request:
            return self._table.only_key_of(request["DeleteRequest"]["Key"]), None
        item = {name: canonical(value) for name, value in request["PutRequest"]["Item"].items()}
        self._table.check_item(item, "Item size has exceeded the maximum allowed size")
        return self._table.key_of(item), item

    def _batch_get_item(self, params: Params, reads: Reads) -> Response:
        request = self._only_table_of(params["RequestItems"])
        keys = [self._table.only_key_of(key) for key in request["Keys"]]
        if len(keys) > BATCH_KEYS_MAX:
            raise Refusal("Too many items requested for the BatchGetItem call")
        _refuse_duplicates(keys)
        paths = _projection_alone(request)
        consistent = request.get("ConsistentRead", False)
        left = set(self.faults.unprocessed("batch_get_item", len(keys)))
        items, units, read_bytes = [], 0.0, 0
        for position, key in enumerate(keys):
            if position in left:
                continue
            version = self._table.read(key, reads.fresh(), consistent=consistent)
            if read_bytes + version.size > BATCH_BYTES_MAX:
                left.add(position)
                continue
            read_bytes += version.size
            units += read_units(version.size, consistent=consistent)
            if version.item is not None:
                items.append(version.item if paths is None else project(paths, version.item))
        unprocessed = {**request, "Keys": [request["Keys"][position] for position in sorted(left)]}
        return {
            "Responses": {self._table.name: items},
            "UnprocessedKeys": {self._table.name: unprocessed} if left else {},
            **self._consumed(params, lambda: (units, {}), batch=True),
        }

    # Pages.

    def _query(self, params: Params, reads: Reads) -> Response:
        self._check_table(params["TableName"])
        page = query_page(self._table, params, reads)
        return page.response | self._consumed(params, lambda: (page.units, page.index_units))

    def _scan(self, params: Params, reads: Reads) -> Response:
        self._check_table(params["TableName"])
        page = scan_page(self._table, params, reads)
        return page.response | self._consumed(params, lambda: (page.units, page.index_units))

    def _describe_time_to_live(self, _params: Params, _reads: Reads) -> Response:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": TTL_ATTRIBUTE}}

    def _describe_table(self, params: Params, _reads: Reads) -> Response:
        self._check_table(params["TableName"])
        described = ("TableName", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
        table = {name: self._schema[name] for name in described if name in self._schema}
        return {"Table": table | {"TableStatus": "ACTIVE", "ItemCount": len(self.items())}}

    def _consumed(
        self,
        params: Params,
        units_of: Callable[[], tuple[float, Mapping[str, float]]],
        *,
        batch: bool = False,
    ) -> Response:
        """Say what a request cost the table and its indexes, if it asks for that."""
        detail = params.get("ReturnConsumedCapacity", "NONE")
        if detail == "NONE":
            return {}
        units, index_units = units_of()
        consumed: Response = {
            "TableName": self._table.name,
            "CapacityUnits": units + sum(index_units.values()),
        }
        if detail == "INDEXES":
            consumed["Table"] = {"CapacityUnits": units}
            touched = {name: {"CapacityUnits": cost} for name, cost in index_units.items() if cost}
            if touched:
                consumed["GlobalSecondaryIndexes"] = touched
        return {"ConsumedCapacity": [consumed] if batch else consumed}

    # Validation.

    def _check_table(self, name: str) -> None:
        if name != self._table.name:
            raise Refusal("Cannot do operations on a non-existent table", "ResourceNotFoundException")

    def _only_table_of(self, request_items: Params) -> Any:
        if not request_items:
            raise Refusal("A batch cannot have a null or no requests set")
        for name in request_items:
            self._check_table(name)
        return request_items[self._table.name]


def _projection_alone(params: Params) -> list[Path] | None:
    placeholders = Placeholders.of(params, "ProjectionExpression")
    paths = parse_projection(params, placeholders)
    placeholders.check_all_used()
    return paths


def _check_choice(params: Params, name: str, choices: Collection[str]) -> None:
    if params.get(name, "NONE") not in choices:
        raise Refusal(f"{name} set to invalid value")


def _returned(return_values: str, old: Item | None, new: Item | None, touched: Collection[str]) -> Response:
    source = {"ALL_OLD": old, "UPDATED_OLD": old, "ALL_NEW": new, "UPDATED_NEW": new}.get(return_values)
    if source and return_values.startswith("UPDATED_"):
        source = {name: value for name, value in source.items() if name in touched}
    return {"Attributes": source} if source else {}


def _refuse_duplicates(keys: list[Key]) -> None:
    if len(set(keys)) != len(keys):
        raise Refusal("Provided list of item keys contains duplicates")


def _operation_name(method: str) -> str:
    return "".join(word.capitalize() for word in method.split("_"))


@functools.cache
def _service() -> ServiceModel:
    return botocore.session.Session().get_service_model("dynamodb")


def _check_parameters(method: str, params: Params) -> None:
    """Refuse what boto3 itself refuses to send."""
    shape: Any = _service().operation_model(_operation_name(method)).input_shape
    report = ParamValidator().validate(params, shape)
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())
