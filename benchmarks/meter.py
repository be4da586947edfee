"""Counts what DynamoDB is asked and what it charges, for any saver that takes a boto3 session.

The meter knows events of botocore and nothing of savers: it asks the engine to report the capacity of every
request and adds the reports up, for the whole run and for the operation that is going on. No price is
computed here, so what the tables print is what the engine said.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import boto3
    from botocore.model import OperationModel

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
READS = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})


@dataclass
class Tally:
    """Requests and capacity units of one operation, or of many."""

    # By the kind of request.
    calls: dict[str, int] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)

    @property
    def write_units(self) -> float:
        """What the requests that write cost."""
        return sum(units for call, units in self.units.items() if call in WRITES)

    @property
    def read_units(self) -> float:
        """What the requests that read cost."""
        return sum(units for call, units in self.units.items() if call in READS)

    @property
    def requests(self) -> int:
        """Requests of every kind, those that failed included."""
        return sum(self.calls.values())

    def add(self, call: str, units: float, count: int = 1) -> None:
        """Add requests of one kind; what they cost counts as writing or reading by the name of the call."""
        self.calls[call] = self.calls.get(call, 0) + count
        self.units[call] = self.units.get(call, 0.0) + units

    def include(self, other: Tally) -> None:
        """Add all of another tally."""
        for call, count in other.calls.items():
            self.add(call, other.units[call], count)


def total(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of some tallies."""
    result = Tally()
    for tally in tallies:
        result.include(tally)
    return result


class Meter:
    """Tallies for the clients of one or more sessions."""

    def __init__(self, listen: Callable[[str, float], None] | None = None) -> None:
        """Start at zero; `listen` is told the name and the capacity units of every request."""
        self.total = Tally()
        self._lap = Tally()
        self._listen = listen
        # A context variable, because a saver may send the requests of one operation from several threads;
        # each of them runs in a copy of the operation's context.
        self._operation: ContextVar[Tally | None] = ContextVar("operation", default=None)
        self._lock = threading.Lock()

    def watch(self, session: boto3.Session) -> boto3.Session:
        """Count the requests of every DynamoDB client that the session makes from now on."""
        session.events.register("provide-client-params.dynamodb", self._ask_for_capacity)
        session.events.register("after-call.dynamodb", self._record)
        return session

    def watch_async(self, client: Any) -> None:  # noqa: ANN401 - the types of aiobotocore are not installed.
        """Count those of a client of aiobotocore, which calls plain functions too."""
        client.meta.events.register("provide-client-params.dynamodb", self._ask_for_capacity)
        client.meta.events.register("after-call.dynamodb", self._record)

    def lap(self) -> Tally:
        """Return what was sent since the last call."""
        with self._lock:
            lap, self._lap = self._lap, Tally()
        return lap

    @contextmanager
    def operation(self) -> Iterator[Tally]:
        """Yield a tally that receives, beside the total, what is sent inside the block."""
        tally = Tally()
        token = self._operation.set(tally)
        try:
            yield tally
        finally:
            self._operation.reset(token)

    @staticmethod
    def _ask_for_capacity(params: dict[str, Any], model: OperationModel, **_: object) -> None:
        if model.name in WRITES | READS:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def _record(self, parsed: Mapping[str, Any], model: OperationModel, **_: object) -> None:
        reported = parsed.get("ConsumedCapacity", [])
        # A batch reports a list with one entry per table, every other call a single entry.
        reports = [reported] if isinstance(reported, dict) else reported
        units = sum(report["CapacityUnits"] for report in reports)
        operation = self._operation.get()
        with self._lock:
            self.total.add(model.name, units)
            self._lap.add(model.name, units)
            if operation is not None:
                operation.add(model.name, units)
            if self._listen is not None:
                self._listen(model.name, units)
