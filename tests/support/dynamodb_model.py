"""DynamoDB in memory: one table with the semantics the package relies on, and nothing left to chance.

The model answers the requests of a boto3 client, parameter for parameter, one at a time. It never fails, delays or
lags of its own accord: a test that wants faults hands it `Faults`, whose hooks decide how old an eventual read
is, how far the index lags, and what a batch leaves unprocessed. A batch is not atomic, so a test that wants only some
of its effects names the others in `Faults.unprocessed` and throws the answer away.

What the package does not send is not modelled, and refused loudly. Not modelled and not noticed: reserved words in
expressions, which the engines that the other tests use refuse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from tests.support.dynamodb_expressions import (
    Condition,
    Logic,
    Placeholders,
    Test,
    parse_condition,
    parse_projection,
    parse_update,
)
from tests.support.dynamodb_table import Faults, Key, Reads, Schema, Table, View
from tests.support.dynamodb_values import AttributeValue, Item, Refusal, canonical, copied, item_bytes

BATCH_WRITES_MAX = 25
BATCH_KEYS_MAX = 100
BATCH_BYTES_MAX = 16 * 1024 * 1024
PAGE_BYTES_MAX = 1024 * 1024

Params: TypeAlias = Mapping[str, Any]
Response: TypeAlias = dict[str, Any]

_PLACEHOLDERS = frozenset({"ExpressionAttributeNames", "ExpressionAttributeValues"})
_CONDITIONAL = _PLACEHOLDERS | {"TableName", "ConditionExpression", "ReturnValuesOnConditionCheckFailure"}
# The parameters that the model knows, by the method.
_KNOWN: Mapping[str, frozenset[str]] = {
    "get_item": frozenset({"TableName", "Key", "ConsistentRead"}),
    "put_item": _CONDITIONAL | {"Item"},
    "delete_item": _CONDITIONAL | {"Key"},
    "update_item": _CONDITIONAL | {"Key", "UpdateExpression", "ReturnValues"},
    "query": _PLACEHOLDERS
    | {"TableName", "IndexName", "ConsistentRead", "KeyConditionExpression", "ProjectionExpression"}
    | {"ScanIndexForward", "Limit", "ExclusiveStartKey"},
    "scan": _PLACEHOLDERS | {"TableName", "ConsistentRead", "FilterExpression", "ProjectionExpression"},
    "batch_get_item": frozenset({"RequestItems"}),
    "batch_write_item": frozenset({"RequestItems"}),
    "describe_time_to_live": frozenset({"TableName"}),
}


class DynamoDBModel:
    """One table, described by the keyword arguments of `create_table`, on a clock that counts seconds."""

    def __init__(self, table_schema: Schema, clock: Callable[[], float]) -> None:
        """Create the table, empty and without faults."""
        self._clock = clock
        self._table = Table(table_schema)

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
            NotImplementedError: Where the model does not know the request.
        """
        unknown = params.keys() - _KNOWN.get(method, frozenset())
        if method not in _KNOWN or unknown:
            raise NotImplementedError(f"The model does not know {method} with {sorted(unknown)}.")
        try:
            if "TableName" in params:
                self._check_table(params["TableName"])
            answer: Response = getattr(self, f"_{method}")(params, self._table.reads(began_at))
        except Refusal as refusal:
            response: Any = {"Error": {"Code": refusal.code, "Message": refusal.message}}
            if refusal.item is not None:
                response["Item"] = copied(refusal.item)
            raise ClientError(response, method) from None
        copy: Response = copied(answer)
        return copy

    def load(self, items: Iterable[Item]) -> None:
        """Hold these items, which `items` returned, and nothing else."""
        self._table.load(items)

    def items(self) -> list[Item]:
        """Return a copy of every item that is there, by key."""
        return [copied(item) for item in self._table.items()]

    def expired(self) -> list[Item]:
        """Return the keys of the items whose time to live is over and that are still there."""
        now = self._clock()
        return [
            {name: item[name] for name in self._table.primary.key_names}
            for item in self._table.items()
            if "N" in item.get(TTL_ATTRIBUTE, {}) and float(item[TTL_ATTRIBUTE]["N"]) < now
        ]

    def expire(self, keys: Sequence[Item] | None = None) -> None:
        """Let DynamoDB delete items past their time: all of them, or the given ones, as it deletes them one by one."""
        for key in self.expired() if keys is None else keys:
            self._table.store(self._table.key_of(key), None)

    # Requests for one item.

    def _put_item(self, params: Params, _reads: Reads) -> Response:
        item = self._checked_item(params["Item"])
        return self._change(params, self._table.key_of(item), lambda _old: item)

    def _delete_item(self, params: Params, _reads: Reads) -> Response:
        return self._change(params, self._table.only_key_of(params["Key"]), lambda _old: None)

    def _update_item(self, params: Params, _reads: Reads) -> Response:
        key, placeholders = self._table.only_key_of(params["Key"]), _placeholders_of_change(params)
        update = parse_update(params["UpdateExpression"], placeholders)
        for name in update.names:
            if name in self._table.primary.key_names:
                raise Refusal(f"Cannot update attribute {name}. This attribute is part of the key")

        def apply(old: Item | None) -> Item:
            new = update.apply(params["Key"] if old is None else old)
            self._table.check_item(new, "Item size to update has exceeded the maximum allowed size")
            return new

        return self._change(params, key, apply, placeholders)

    def _change(
        self,
        params: Params,
        key: Key,
        transform: Callable[[Item | None], Item | None],
        placeholders: Placeholders | None = None,
    ) -> Response:
        """Put, update or delete one item if the request's condition holds of it."""
        returns = _choice(params, "ReturnValues", "ALL_NEW")
        returns_old = _choice(params, "ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        placeholders = placeholders or _placeholders_of_change(params)
        condition = parse_condition(params, "ConditionExpression", placeholders)
        placeholders.check_all_used()
        old = self._table.latest(key)
        if condition is not None and not condition.holds(old or {}):
            returned = old if returns_old else None
            raise Refusal("The conditional request failed", "ConditionalCheckFailedException", returned)
        new = transform(old)
        self._table.store(key, new)
        returned = {"NONE": None, "ALL_OLD": old, "ALL_NEW": new}[returns]
        return {"Attributes": returned} if returned else {}

    def _get_item(self, params: Params, reads: Reads) -> Response:
        consistent = params.get("ConsistentRead", False)
        item = self._table.read(self._table.only_key_of(params["Key"]), reads, consistent=consistent).item
        return {} if item is None else {"Item": item}

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
        for position, write in enumerate(writes):
            if position not in left:
                self._table.store(*write)
        unprocessed = [requests[position] for position in sorted(left)]
        return {"UnprocessedItems": {self._table.name: unprocessed} if unprocessed else {}}

    def _batch_write(self, request: Params) -> tuple[Key, Item | None]:
        if "DeleteRequest" in request:
            return self._table.only_key_of(request["DeleteRequest"]["Key"]), None
        item = self._checked_item(request["PutRequest"]["Item"])
        return self._table.key_of(item), item

    def _batch_get_item(self, params: Params, reads: Reads) -> Response:
        request = self._only_table_of(params["RequestItems"])
        if unknown := request.keys() - {"Keys", "ConsistentRead"}:
            raise NotImplementedError(f"The model does not know batch_get_item with {sorted(unknown)}.")
        keys = [self._table.only_key_of(key) for key in request["Keys"]]
        if len(keys) > BATCH_KEYS_MAX:
            raise Refusal("Too many items requested for the BatchGetItem call")
        _refuse_duplicates(keys)
        consistent = request.get("ConsistentRead", False)
        left = set(self.faults.unprocessed("batch_get_item", len(keys)))
        items, read_bytes = [], 0
        for position, key in enumerate(keys):
            if position in left:
                continue
            version = self._table.read(key, reads.fresh(), consistent=consistent)
            if read_bytes + version.size > BATCH_BYTES_MAX:
                left.add(position)
                continue
            read_bytes += version.size
            if version.item is not None:
                items.append(version.item)
        unprocessed = {**request, "Keys": [request["Keys"][position] for position in sorted(left)]}
        return {
            "Responses": {self._table.name: items},
            "UnprocessedKeys": {self._table.name: unprocessed} if left else {},
        }

    # Pages.

    def _query(self, params: Params, reads: Reads) -> Response:
        view, consistent = self._table.view(params.get("IndexName")), params.get("ConsistentRead", False)
        if view.index_name and consistent:
            raise Refusal("Consistent reads are not supported on global secondary indexes")
        placeholders = Placeholders(params, "KeyConditionExpression", "ProjectionExpression")
        condition = parse_condition(params, "KeyConditionExpression", placeholders)
        if condition is None:
            raise Refusal("KeyConditionExpression must be specified in the request")
        hash_value, range_test = self._key_condition(condition, view)
        names = None
        if "ProjectionExpression" in params:
            names = parse_projection(params["ProjectionExpression"], placeholders)
            if view.projected is not None and not view.projected.issuperset(names):
                raise Refusal(f"Global secondary index {view.index_name} does not project all of {names}")
        placeholders.check_all_used()
        start = self._start_key(params, view, hash_value, range_test)
        descending = not params.get("ScanIndexForward", True)
        found, found_bytes = [], 0
        response: Response = {}
        for version in self._table.entries(
            view, hash_value, range_test, reads, consistent=consistent, descending=descending
        ):
            entry = version.item or {}
            if start and not (view.order(entry) < start if descending else view.order(entry) > start):
                continue
            found.append(entry if names is None else {name: entry[name] for name in names if name in entry})
            found_bytes += version.size
            if len(found) == params.get("Limit") or found_bytes >= PAGE_BYTES_MAX:
                response["LastEvaluatedKey"] = {name: entry[name] for name in self._start_names(view)}
                break
        return response | {"Items": found, "Count": len(found), "ScannedCount": len(found)}

    def _scan(self, params: Params, _reads: Reads) -> Response:
        """Read everything in one page, which is as much as a test that scans has."""
        placeholders = Placeholders(params, "FilterExpression", "ProjectionExpression")
        condition = parse_condition(params, "FilterExpression", placeholders)
        names = parse_projection(params["ProjectionExpression"], placeholders)
        placeholders.check_all_used()
        items = [each for each in self._table.items() if condition is None or condition.holds(each)]
        return {"Items": [{name: item[name] for name in names if name in item} for item in items]}

    def _key_condition(self, condition: Condition, view: View) -> tuple[AttributeValue, Test | None]:
        """Split a key condition into the value of the hash key and the test of the range key."""
        parts = condition.parts if isinstance(condition, Logic) else (condition,)
        tests = {part.name: part for part in parts if isinstance(part, Test)}
        if len(tests) != len(parts) or (isinstance(condition, Logic) and condition.operator != "AND"):
            raise Refusal("Invalid operator used in KeyConditionExpression")
        if not {view.hash_name} <= tests.keys() <= {view.hash_name, view.range_name}:
            raise Refusal("Query condition missed key schema element")
        for name, test in tests.items():
            if not test.values:
                raise Refusal(f"Invalid operator used in KeyConditionExpression: {test.operator}")
            for value in test.values:
                self._table.check_key_value(name, value, is_hash=name == view.hash_name)
        if tests[view.hash_name].operator != "=":
            raise Refusal("Query key condition not supported")
        return tests[view.hash_name].values[0], tests.get(view.range_name)

    def _start_key(
        self, params: Params, view: View, hash_value: AttributeValue, range_test: Test | None
    ) -> tuple[Any, ...] | None:
        """Return the place of the entry behind which a page begins."""
        start: Item | None = params.get("ExclusiveStartKey")
        if start is None:
            return None
        if start.keys() != self._start_names(view):
            raise Refusal("The provided starting key is invalid")
        if start[view.hash_name] != hash_value or (range_test and not range_test.holds(start)):
            raise Refusal("The provided starting key does not match the range key predicate")
        return view.order(start)

    def _start_names(self, view: View) -> set[str]:
        return {view.hash_name, view.range_name, *self._table.primary.key_names}

    def _describe_time_to_live(self, _params: Params, _reads: Reads) -> Response:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": TTL_ATTRIBUTE}}

    # Validation.

    def _check_table(self, name: str) -> None:
        if name != self._table.name:
            raise Refusal("Cannot do operations on a non-existent table", "ResourceNotFoundException")

    def _checked_item(self, given: Item) -> Item:
        item = {name: canonical(value) for name, value in given.items()}
        self._table.check_item(item, "Item size has exceeded the maximum allowed size")
        return item

    def _only_table_of(self, request_items: Params) -> Any:
        if not request_items:
            raise Refusal("A batch cannot have a null or no requests set")
        for name in request_items:
            self._check_table(name)
        return request_items[self._table.name]


def _placeholders_of_change(params: Params) -> Placeholders:
    return Placeholders(params, "ConditionExpression", "UpdateExpression")


def _choice(params: Params, name: str, *others: str) -> str:
    """Return what is to be returned."""
    chosen: str = params.get(name, "NONE")
    if chosen not in ("NONE", "ALL_OLD", *others):
        raise Refusal(f"{name} set to invalid value")
    return chosen


def _refuse_duplicates(keys: list[Key]) -> None:
    if len(set(keys)) != len(keys):
        raise Refusal("Provided list of item keys contains duplicates")
