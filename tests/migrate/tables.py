"""A table in use and one that is restored from it, in memory, where a process can end before any request."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._runtime.drivers import Runner
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.migrate.threads import config
from tests.support import graphs
from tests.support.change import change_storage
from tests.support.dynamodb_model import DynamoDBModel

LIVE, RESTORED = "live", "restored"
NOTHING: Any = ({}, (), [])
"""What a reader sees of a thread that is not there."""


class PowerCutError(BaseException):
    """The process ends here."""


class Tables:
    """A table in use and one that is restored from it, in memory, on a clock."""

    def __init__(self) -> None:
        """Start with both empty."""
        self.now = 1_700_000_000.0
        self.models = {name: DynamoDBModel(table_schema(name), lambda: self.now) for name in (LIVE, RESTORED)}
        self._pool = ThreadPoolExecutor(4)
        self._turn = threading.Lock()
        self._savers = 0
        self.restored: Any = None
        """What a reader saw of the thread at the point in time."""

    def copied(self) -> Tables:
        """The same again."""
        tables = Tables()
        for name, model in self.models.items():
            tables.models[name].load(model.items())
            # A copy is for one of very many runs of what the original has checked.
        tables.now, tables.restored, tables._savers = self.now, self.restored, self._savers
        return tables

    def restore(self) -> None:
        """Make the restored table what the one in use is now, item by item, as DynamoDB does."""
        for item in self.models[LIVE].items():
            self.models[RESTORED].handle("put_item", {"TableName": RESTORED, "Item": item})
        self.restored = self.seen()

    def saver(self, requests_left: int = 1_000_000, **options: Any) -> DynamoDBSaver:
        """A process's saver of the table in use; the process ends before the request that is one too many."""
        left = iter(range(requests_left))

        def send(call: Call) -> Any:
            with self._turn:
                if next(left, None) is None:
                    raise PowerCutError
                name = call.params.get("TableName") or next(iter(call.params["RequestItems"]))
                return self.models[name].handle(call.method, call.params)

        saver = DynamoDBSaver(LIVE, region_name="us-east-1", **options)
        clients: Any = SimpleNamespace(send=send, asend=None, pool=lambda: self._pool)
        saver.transport, saver.runner = clients, Runner(clients)
        # Ids that are drawn are the same in each copy, and others in each process.
        self._savers += 1
        change_storage(saver, clock=lambda: self.now, rng=random.Random(self._savers))
        return saver

    def seen(self, thread_id: str = "t") -> Any:
        """What a reader sees of a thread: its state, what it waits for, and those of its subgraphs."""
        graph = graphs.subgraphs(None)(self.saver())
        return _shown(graph.get_state(config(thread_id), subgraphs=True))


def deaths(
    start: Tables, run: Callable[[Tables, int], object], counts: Iterable[int]
) -> Iterator[tuple[int, Tables]]:
    """Let a process that starts from the same end after so many requests, until it gets to its end.

    Args:
        start: What it starts from; it runs in copies of it.
        run: Makes requests in the tables that it gets, as many as it is told at most.
        counts: After how many requests it ends, fewest first.

    Yields:
        How many requests it made, and what it left. Most requests change nothing: the same is yielded once.
    """
    seen = set[tuple[str, ...]]()
    for requests in counts:
        tables = start.copied()
        try:
            run(tables, requests)
        except PowerCutError:
            state = tuple(model.state() for model in tables.models.values())
            if state not in seen:
                seen.add(state)
                yield requests, tables
        else:
            return


def _shown(state: Any) -> Any:
    tasks = [
        (each.name, [asked.value for asked in each.interrupts], _shown(each.state) if each.state else None)
        for each in state.tasks
    ]
    return state.values, state.next, tasks
