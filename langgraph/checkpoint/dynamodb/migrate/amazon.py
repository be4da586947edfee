"""langgraph-checkpoint-aws's DynamoDB saver as an endpoint: thread ids and positions of writes from its table."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from .record import Ref, WritePosition
from .saver_endpoint import SaverEndpoint, each_once

_CHECKPOINTS = "CHECKPOINT_"
_WRITES = "WRITES_"


class AmazonEndpoint(SaverEndpoint):
    """The table of langgraph-checkpoint-aws's saver, and its bucket if it has one."""

    saver: Any
    mover: Any
    knows_positions = True

    def keep_values(self) -> None:
        """Return and accept values with the objects in them as they are stored, from now on."""
        super().keep_values()
        # The saver passed its serializer on when it was made.
        self.mover.repo = copy.copy(self.saver.repo)
        self.mover.repo.serializer = copy.copy(self.saver.serializer)
        self.mover.repo.serializer.serde = self.mover.serde

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, by a scan of the table."""
        pages = self.saver.client.get_paginator("scan").paginate(
            TableName=self.saver.table_name,
            FilterExpression="begins_with(#pk, :prefix)",
            ProjectionExpression="#pk",
            ExpressionAttributeNames={"#pk": "PK"},
            ExpressionAttributeValues={":prefix": {"S": _CHECKPOINTS}},
        )
        found = (item["PK"]["S"] for page in pages for item in page["Items"])
        return each_once(each.removeprefix(_CHECKPOINTS) for each in found)

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        found = self._query(_CHECKPOINTS + thread_id, "id", "ns")
        return sorted(Ref(item["id"]["S"], item["ns"]["S"]) for item in found)

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in the order in which the saver returns them."""
        pk = f"{_WRITES}{thread_id}#{ref.namespace}#{ref.checkpoint_id}"
        return [
            (
                WritePosition(
                    item.get("task_path", {"S": ""})["S"], item["task_id"]["S"], int(item["idx"]["N"])
                ),
                item["channel"]["S"],
            )
            for item in self._query(pk, "task_path", "task_id", "idx", "channel")
        ]

    def _query(self, pk: str, *attributes: str) -> list[dict[str, Any]]:
        names = {f"#a{position}": name for position, name in enumerate(attributes)}
        pages = self.saver.client.get_paginator("query").paginate(
            TableName=self.saver.table_name,
            KeyConditionExpression="PK = :pk",
            ProjectionExpression=", ".join(names),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":pk": {"S": pk}},
        )
        return [item for page in pages for item in page["Items"]]
