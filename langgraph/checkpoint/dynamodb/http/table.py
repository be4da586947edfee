"""Requests to a table through the gateway, for the store and the node cache.

Their operations make the requests that they would make to DynamoDB, and each is one document of the same name. The
gateway carries it out if its keys are those of memories and cached nodes that the credentials reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.requests import CONDITION_FAILED
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, result
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.http.service import ask
from langgraph.checkpoint.dynamodb.http.transport import Transport

_REQUEST_ITEMS = "RequestItems"


class ConditionFailedError(Exception):
    """The condition of a request did not hold. It has the form of DynamoDB's own error."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        """Take the item that the condition failed on, empty if there is none."""
        super().__init__("The conditional request failed")
        self.response = {"Error": {"Code": CONDITION_FAILED}, "Item": item}


class TableTransport(Transport):
    """Sends requests to a table through a gateway."""

    def send(self, call: Call) -> Any:
        """Make a request to the table and wait for its response."""
        return BlockingDriver(super().send, self.pool).run(ask_table(call))

    async def asend(self, call: Call) -> Any:
        """Make a request to the table on the running event loop and wait for its response."""
        return await AsyncDriver(super().asend).run(ask_table(call))


def ask_table(call: Call) -> Op[Any]:
    """Make a request to the table by requests to the gateway; return the table's response.

    Raises:
        ConditionFailedError: The request's condition did not hold.
    """
    params = {name: value for name, value in call.params.items() if name not in ("TableName", _REQUEST_ITEMS)}
    endpoint = call.method.replace("_", "-")
    if call.method == "about":
        outcomes = yield (call,)
        return result(outcomes[0])
    if _REQUEST_ITEMS not in call.params:
        answer = yield from ask(endpoint, params)
        if answer["conflict"] is not None:
            raise ConditionFailedError(answer["conflict"])
        response = {name: value for name, value in answer["response"].items() if value is not None}
        return _with_units(response, [answer])
    [(table_name, wanted)] = call.params[_REQUEST_ITEMS].items()
    answers: list[Any] = []
    if call.method == "batch_get_item":
        # Ask at once for what did not fit into an answer. Only what the table did not process waits for its turn.
        while not answers or (answers[-1]["items"] and answers[-1]["left"]):
            keys = answers[-1]["left"] if answers else wanted["Keys"]
            answers += [(yield from ask(endpoint, {**wanted, "Keys": keys}))]
        left = answers[-1]["left"]
        response = {
            "Responses": {table_name: [item for answer in answers for item in answer["items"]]},
            "UnprocessedKeys": {table_name: {"Keys": left}} if left else {},
        }
        return _with_units(response, answers)
    answer = yield from ask(endpoint, {"requests": wanted})
    left = answer["left"]
    return _with_units({"UnprocessedItems": {table_name: left} if left else {}}, [answer])


def _with_units(response: dict[str, Any], answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add to the table's response the units of its requests, if the gateway tells them."""
    units = [each["units"] for each in answers if "units" in each]
    if units:
        total = sum((each["read"] or 0.0) + (each["write"] or 0.0) for each in units)
        response["ConsumedCapacity"] = {"CapacityUnits": total}
    return response


def check_binding(serde: object, bound_to: str | None) -> None:
    """Raise if a serializer encrypts and the table's name is missing, to which encrypted values are bound.

    Raises:
        CheckpointerInputError: The name is missing.
    """
    if isinstance(serde, EncryptedSerializer) and bound_to is None:
        msg = "bound_to is missing; with a serializer that encrypts, give the name of the gateway's table"
        raise CheckpointerInputError(msg)
