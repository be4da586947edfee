"""Requests as operations: conditional requests, paged queries, and batches that are sent until nothing is left.

Everything here sends to one table, and knows nothing of the meaning of its items.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from .. import errors, protocol
from .._format import limits, pricing
from .._format.items import Item, key, key_of
from .._format.schema import INDEX_REMEDY, PARTITION_KEY, SORT_KEY, TEMPLATE_COMMAND
from .attempts import backoff_seconds
from .failures import about_request, account_remedy, error_code, located, text_of
from .steps import Call, Op

T = TypeVar("T")

CONDITION_FAILED = "ConditionalCheckFailedException"


@dataclass(frozen=True)
class Table:
    """Builds the requests to one table."""

    name: str
    retry_seconds: float = limits.RETRY_SECONDS
    """For how many seconds unprocessed items of a batch are sent again."""
    rng: random.Random = field(default_factory=random.SystemRandom)
    """The source of jitter between attempts."""
    sends_once: bool = False
    """Whether requests other than scans and batches are not sent again after a transient error."""

    def send(self, method: str, *, delay_seconds: float = 0.0, **params: Any) -> Op[Any]:
        """Make one request and return its response; raise its error."""
        call = Call(method, {"TableName": self.name, **params}, delay_seconds, self.sends_once)
        outcomes = yield (call,)
        return self.checked(outcomes[0], params.get("IndexName"))

    def get(self, pk: str, sk: str) -> Op[Item | None]:
        """Read one item, strongly consistent."""
        response = yield from self.send("get_item", Key=key(pk, sk), ConsistentRead=True)
        item: Item | None = response.get("Item")
        return item

    def update(self, item_key: Item, change: protocol.Change, **params: Any) -> Op[Any]:
        """Change the item with a key and return the response; raise if the change's condition does not hold."""
        params = {"UpdateExpression": change.expression, **_condition(change), **params}
        return (yield from self.send("update_item", Key=item_key, **params))

    def changed(self, item_key: Item, change: protocol.Change, **params: Any) -> Op[Item | None]:
        """Change the item with a key, and return it as it is then; `None` if the change's condition does not hold."""
        try:
            response = yield from self.update(item_key, change, ReturnValues="ALL_NEW", **params)
        except Exception as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            return None
        item: Item = response["Attributes"]
        return item

    def try_update(self, item_key: Item, change: protocol.Change, **params: Any) -> Op[Item | None]:
        """Change the item with a key if the change's condition holds.

        Returns:
            `None` if it was changed. Otherwise the item that the condition failed on, empty if there is none.
        """
        return (yield from conflicting_item(self.update(item_key, change, **_OLD_ITEM, **params)))

    def try_put(self, item: Item, change: protocol.Change) -> Op[Item | None]:
        """Put an item if the change's condition holds; see `try_update`."""
        request = self.send("put_item", Item=item, **_condition(change), **_OLD_ITEM)
        return (yield from conflicting_item(request))

    def try_delete(self, item_key: Item, change: protocol.Change) -> Op[Item | None]:
        """Delete the item with a key if the change's condition holds; see `try_update`."""
        request = self.send("delete_item", Key=item_key, **_condition(change), **_OLD_ITEM)
        return (yield from conflicting_item(request))

    def query_all(self, query: Query) -> Op[list[Item]]:
        """Read a query to its end."""
        items: list[Item] = []
        while not query.done:
            items += yield from self.query_page(query)
        return items

    def query_page(self, query: Query, at_least: int = 0) -> Op[list[Item]]:
        """Read the query's next page, with room for `at_least` items."""
        response = yield from self.send("query", **query.params(at_least))
        query.advance(response)
        items: list[Item] = response["Items"]
        return items

    def scan_pages(self, parts: Sequence[Pages]) -> Op[list[Mapping[str, Any]]]:
        """Read the next page of several parts of a scan in parallel; return the responses."""
        outcomes = yield [Call("scan", {"TableName": self.name, **each.params()}) for each in parts]
        responses = [self.checked(each) for each in outcomes]
        for part, response in zip(parts, responses, strict=True):
            part.advance(response)
        return responses

    def batch_get(self, keys: Sequence[Item], *, consistent: bool) -> Op[list[Item]]:
        """Read items by their keys, leaving out those that do not exist."""
        items: list[Item] = []

        def requests(left: Sequence[Item]) -> list[Mapping[str, Any]]:
            return [
                {"RequestItems": {self.name: {"Keys": group, "ConsistentRead": consistent}}}
                for group in grouped(left, count_max=limits.BATCH_GET_ITEMS_MAX)
            ]

        def left_over(response: Any) -> list[Item]:
            items.extend(each for table in response["Responses"].values() for each in table)
            return [each for table in response.get("UnprocessedKeys", {}).values() for each in table["Keys"]]

        yield from self._until_processed("batch_get_item", keys, requests, left_over)
        return items

    def batch_write(self, puts: Iterable[Item] = (), deletes: Iterable[Item] = ()) -> Op[None]:
        """Put and delete items, in no particular order, until all are done."""
        writes = [{"PutRequest": {"Item": item}} for item in puts]
        writes += [{"DeleteRequest": {"Key": key_of(item)}} for item in deletes]

        def requests(left: Sequence[Any]) -> list[Mapping[str, Any]]:
            groups = grouped(left, _written_bytes, limits.BATCH_WRITE_BYTES_MAX, limits.BATCH_WRITE_ITEMS_MAX)
            return [{"RequestItems": {self.name: group}} for group in groups]

        def left_over(response: Any) -> list[Any]:
            return [each for table in response.get("UnprocessedItems", {}).values() for each in table]

        yield from self._until_processed("batch_write_item", writes, requests, left_over)

    def _until_processed(
        self,
        method: str,
        left: Sequence[Any],
        requests: Callable[[Sequence[Any]], list[Mapping[str, Any]]],
        left_over: Callable[[Any], list[Any]],
    ) -> Op[None]:
        """Send batches in parallel, and unprocessed items again, for a bounded time."""
        total, attempt, waited = len(left), 0, 0.0
        while left:
            if attempt > 0 and waited >= self.retry_seconds:
                failure = errors.CheckpointerUnavailableError(
                    f"table {self.name}: {len(left)} of {total} items of a {method} were still unprocessed"
                    f" after {waited:.0f} s of retries; raise the table's capacity or send less at once"
                )
                failure.attempts = attempt
                raise failure
            # The last attempt is when the time is up, and not a wait before that.
            delay = min(self.backoff(attempt), self.retry_seconds - waited)
            waited += delay
            attempt += 1
            outcomes = yield [Call(method, params, delay) for params in requests(left)]
            left = [each for outcome in outcomes for each in left_over(self.checked(outcome))]

    def backoff(self, attempt: int) -> float:
        """Return how many seconds to wait before an attempt, jittered; 0 before the first."""
        return backoff_seconds(attempt, self.rng)

    def checked(self, outcome: Any, index: str | None = None) -> Any:
        """Return the response of a request, to an index or to the table itself, or raise its error."""
        if isinstance(outcome, Exception):
            self._raise(outcome, index)
        return outcome

    def _raise(self, error: Exception, index: str | None) -> NoReturn:
        """Raise a request's error, as one of our exceptions if the set-up is wrong."""
        remedy = None if isinstance(error, errors.CheckpointerError) else _remedy(self.name, error, index)
        if remedy is not None:
            raise about_request(errors.CheckpointerConfigurationError(remedy), error) from error
        raise error


# A failed condition then returns the item with the error, which saves a second request.
_OLD_ITEM: Mapping[str, Any] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _condition(change: protocol.Change) -> dict[str, Any]:
    # DynamoDB refuses empty conditions, and maps of names or values.
    params = {
        "ConditionExpression": change.condition,
        "ExpressionAttributeNames": change.names,
        "ExpressionAttributeValues": change.values,
    }
    return {name: value for name, value in params.items() if value}


def conflicting_item(request: Op[Any]) -> Op[Item | None]:
    """Make a conditional request that asks for the old item.

    Returns:
        `None` if the condition held. Otherwise the item that it failed on, empty if there is none.
    """
    try:
        yield from request
    except Exception as error:
        if error_code(error) != CONDITION_FAILED:
            raise
        response: Any = getattr(error, "response", {})
        item: Item = response.get("Item", {})
        return item
    return None


class Pages:
    """The parameters of a query or a scan, and how far it has been read."""

    def __init__(self, params: Mapping[str, Any], first_page: int | None = None) -> None:
        """Start before the first page, of up to `first_page` items; later ones grow. `None`: as many as fit."""
        self._params = dict(params)
        self._limit = first_page
        self.done = False

    def params(self, at_least: int = 0) -> Mapping[str, Any]:
        """Return the keyword arguments of the request for the next page."""
        if self._limit is None:
            return self._params
        return {**self._params, "Limit": min(limits.PAGE_ITEMS_MAX, max(self._limit, at_least))}

    def advance(self, response: Mapping[str, Any]) -> None:
        """Note where a page ended."""
        last = response.get("LastEvaluatedKey")
        self.done = last is None
        self._params["ExclusiveStartKey"] = last
        if self._limit is not None:
            self._limit = min(limits.PAGE_ITEMS_MAX, self._limit * limits.PAGE_ITEMS_GROWTH)


class Query(Pages):
    """A query of one partition, or of the index."""

    def __init__(
        self,
        pk: str,
        *,
        prefix: str | None = None,
        between: tuple[str, str] | None = None,
        descending: bool = False,
        consistent: bool = True,
        first_page: int | None = None,
        attributes: Sequence[str] = (),
        index: tuple[str, str] | None = None,
    ) -> None:
        """Describe the query.

        Args:
            pk: The partition key's value.
            prefix: The prefix of the sort keys.
            between: The first and the last sort key, both included.
            descending: Whether to read from the last sort key down.
            consistent: Whether to read strongly; an index cannot.
            first_page: How many items the first page may have; later ones grow. None: as many as fit.
            attributes: The attributes to return; empty for all.
            index: The name of the index to query and of its hash key.
        """
        hash_name = PARTITION_KEY if index is None else index[1]
        super().__init__(
            {
                "KeyConditionExpression": "#pk = :pk",
                "ExpressionAttributeNames": {"#pk": hash_name},
                "ExpressionAttributeValues": {":pk": {"S": pk}},
                "ScanIndexForward": not descending,
                "ConsistentRead": consistent,
            },
            first_page,
        )
        if prefix is not None:
            self._restrict("begins_with(#sk, :a)", prefix)
        if between is not None:
            self._restrict("#sk BETWEEN :a AND :b", *between)
        if attributes:
            names = {f"#a{position}": name for position, name in enumerate(attributes)}
            self._params["ProjectionExpression"] = ", ".join(names)
            self._params["ExpressionAttributeNames"].update(names)
        if index is not None:
            self._params["IndexName"] = index[0]

    def _restrict(self, condition: str, *values: str) -> None:
        self._params["KeyConditionExpression"] += f" AND {condition}"
        self._params["ExpressionAttributeNames"]["#sk"] = SORT_KEY
        for name, value in zip((":a", ":b"), values, strict=False):
            self._params["ExpressionAttributeValues"][name] = {"S": value}


def grouped(
    things: Iterable[T],
    size_of: Callable[[T], int] = lambda _: 0,
    bytes_max: int = 0,
    count_max: float = math.inf,
) -> Iterator[list[T]]:
    """Divide what is sent into groups that fit into one request each; if all fit, one group, if an empty one."""
    group: list[T] = []
    size = 0
    for each in things:
        added = size_of(each)
        if group and (size + added > bytes_max or len(group) >= count_max):
            yield group
            group, size = [], 0
        group.append(each)
        size += added
    yield group


def _written_bytes(request: Mapping[str, Any]) -> int:
    return pricing.item_bytes(request["PutRequest"]["Item"]) if "PutRequest" in request else 0


# DynamoDB's messages, and one of moto's, if an index is missing or not ready.
_NO_INDEX = re.compile("(?:the specified|backfilling global secondary|Invalid) index: ")

# DynamoDB's messages if a request does not fit the keys of the table, or of the index that it names.
_OTHER_KEYS = (
    "does not match the schema",
    "Type mismatch for key",
    "The number of conditions on the keys is invalid",
    "Query condition missed key schema element",
    "Query key condition not supported",
    "Missing the key",
    "Condition parameter type does not match schema type",
    "One of the required keys was not given a value",
)


def _remedy(table_name: str, error: Exception, index: str | None) -> str | None:
    """Return what to do about an error of the set-up; `None` for other errors."""
    code, where, message = error_code(error), located(table_name, error), text_of(error)
    has_other_keys = code == "ValidationException" and any(each in message for each in _OTHER_KEYS)
    if index is not None and (has_other_keys or _NO_INDEX.search(message)):
        return (
            f"table {where} has no index {index} that can be queried: it is missing, still being built, or has other"
            f" keys ({message}). `langgraph-dynamodb doctor` tells which. If the table was not made for this saver, use"
            f" one of the template that `{TEMPLATE_COMMAND}` prints, or one made by setup(). If the index is being"
            f" built, wait until it is ACTIVE. Otherwise delete it if it has other keys, and {INDEX_REMEDY}"
        )
    if code == "ResourceNotFoundException":
        return (
            f"table {where} does not exist in this account and region ({message});"
            f" deploy the template that `{TEMPLATE_COMMAND}` prints, or call setup() for development, and check"
            " table_name and region_name"
        )
    if has_other_keys:
        return (
            f"table {where} has another key schema than {PARTITION_KEY} and {SORT_KEY} as strings"
            f" ({message}); use a table of the template that `{TEMPLATE_COMMAND}` prints, or one made by setup()"
        )
    return account_remedy(table_name, error)
