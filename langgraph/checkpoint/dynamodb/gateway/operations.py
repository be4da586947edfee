"""The saver's operations on what came over the wire."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver


class Operations:
    """One method for each endpoint: it takes the request's model and gives the answer's document."""

    def __init__(self, saver: DynamoDBSaver) -> None:
        """Take the saver whose table is served."""
        self._table = saver._table
        self._driver = saver._async

    async def delete_thread(self, request: wire.DeleteThread) -> dict[str, Any]:
        """Delete a thread."""
        await self._driver.run(delete_thread(self._table, request.thread_id))
        return {}

    async def delete_for_runs(self, request: wire.DeleteForRuns) -> dict[str, Any]:
        """Delete the checkpoints of runs."""
        await self._driver.run(delete_for_runs(self._table, request.run_ids))
        return {}

    async def prune(self, request: wire.Prune) -> dict[str, Any]:
        """Remove old checkpoints."""
        await self._driver.run(prune(self._table, request.thread_ids, request.strategy, request.keep_last))
        return {}
