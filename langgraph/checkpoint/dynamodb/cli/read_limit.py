"""A limit on the read units of a command, so that a scan leaves agents on the same table theirs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.model import OperationModel
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb.migrate import CapacityLimit

# A page of a scan has up to 1 MB, read eventually consistent. Several are asked for side by side, so each is counted
# before it is sent; the response says how much it really was, which may end the others' wait.
_SCAN_UNITS = 128.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class ReadLimit:
    """Delays the reads of a client so that they stay within a budget."""

    budget: CapacityLimit
    wait: Callable[[float], object] = time.sleep

    def apply(self, client: DynamoDBClient) -> None:
        """Delay every read that the client makes from now on, whichever part of the command asks for it."""
        for operation in ("BatchGetItem", "GetItem", "Query", "Scan"):
            client.meta.events.register(f"before-parameter-build.dynamodb.{operation}", self._before)
            client.meta.events.register(f"after-call.dynamodb.{operation}", self._after)

    def _before(self, params: dict[str, Any], model: OperationModel, **_: object) -> None:
        while seconds := self.budget.reserve(_reserved(model)):
            self.wait(min(seconds, _LOOK_SECONDS))
        params["ReturnConsumedCapacity"] = "TOTAL"

    def _after(self, parsed: dict[str, Any], model: OperationModel, **_: object) -> None:
        consumed = parsed.get("ConsumedCapacity", [])
        units = sum(
            each["CapacityUnits"] for each in ([consumed] if isinstance(consumed, dict) else consumed)
        )
        self.budget.spend(units - _reserved(model))


def _reserved(model: OperationModel) -> float:
    return _SCAN_UNITS if model.name == "Scan" else 0.0
