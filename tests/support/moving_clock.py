"""A DynamoDB in memory behind whole savers, with one clock, which a graph's nodes can move."""

import threading
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.dynamodb_model import DynamoDBModel
from tests.support.harness import TABLE


class DeadError(BaseException):
    """The process has died: none of its requests is sent any more."""


class Engine:
    """One table, and its clock."""

    def __init__(self) -> None:
        """Start with an empty table, at some time."""
        self.now = 1_800_000_000.0
        self.lock = threading.RLock()
        self.model = DynamoDBModel(table_schema(TABLE), lambda: self.now)
        self.requests_left: int | None = None
        """How many more requests are sent before the process dies; `None` if it does not."""

    def advance(self, seconds: float) -> None:
        """Let time pass. DynamoDB removes nothing meanwhile."""
        self.now += seconds

    def expire(self) -> None:
        """Let DynamoDB remove all that has expired."""
        with self.lock:
            self.model.expire()

    def saver(self, *, ahead_seconds: float = 0.0, **options: Any) -> DynamoDBSaver:
        """Make a saver, whose clock may be ahead of the engine's."""
        client: Any = _Client(self)
        saver = DynamoDBSaver(TABLE, client=client, **options)
        parts = vars(saver)
        parts["_storage"] = replace(parts["_storage"], clock=lambda: self.now + ahead_seconds)
        return saver


class _Client:
    """Sends requests to the engine, one at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, method: str) -> Any:
        def send(**params: Any) -> Any:
            with self._engine.lock:
                if self._engine.requests_left is not None:
                    self._engine.requests_left -= 1
                    if self._engine.requests_left < 0:
                        raise DeadError
                return self._engine.model.handle(method, params)

        return send
