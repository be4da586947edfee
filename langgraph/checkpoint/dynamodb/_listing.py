"""`list`: checkpoints of a namespace, a thread or the whole table, newest first, as a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb import _items as items
from langgraph.checkpoint.dynamodb._codec import Codec
from langgraph.checkpoint.dynamodb._content import read_metadata
from langgraph.checkpoint.dynamodb._items import Partition
from langgraph.checkpoint.dynamodb._limits import PAGE_ITEMS_FIRST
from langgraph.checkpoint.dynamodb._reads import (
    Group,
    History,
    MissingSegmentsError,
    Segments,
    checkpoint_id_in,
    decode_tuple,
    find,
    load,
    read_segments,
    target,
    was_acknowledged,
)
from langgraph.checkpoint.dynamodb._requests import Query, Table
from langgraph.checkpoint.dynamodb._schema import PARTITION_KEY, RUN_ID, RUN_INDEX, SORT_KEY
from langgraph.checkpoint.dynamodb._steps import Emit, Op, Stream, gather, work
from langgraph.checkpoint.dynamodb._threads import namespaces

# The first page of a list without a limit; its consumer may stop at any time.
_PAGE_ITEMS_UNLIMITED = 16
# How many checkpoints are read together.
_CHECKPOINTS_AT_ONCE = 16
# Segments are shared by the checkpoints of a list, so they are kept, up to this many bytes of them.
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024


def list_checkpoints(
    table: Table,
    codec: Codec,
    config: RunnableConfig | None,
    metadata_filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Stream[CheckpointTuple]:
    """List the checkpoints that match; limit counts those that do."""
    before_id = None if before is None else checkpoint_id_in(before)
    selection = _Selection(table, codec, metadata_filter or {}, before_id, limit)
    if config is None:
        yield from selection.of_table()
    else:
        at, checkpoint_id = target(config), checkpoint_id_in(config)
        if (config["configurable"]).get("checkpoint_ns") is None:
            within = yield from namespaces(table, at)
        else:
            within = [at]
        yield from selection.of_namespaces(within, checkpoint_id)


class _Selection:
    """What a list asks for, how much of it is still to come, and the segments read for it."""

    def __init__(
        self,
        table: Table,
        codec: Codec,
        metadata_filter: Mapping[str, Any],
        before: str | None,
        limit: int | None,
    ) -> None:
        self._table = table
        self._codec = codec
        self._filter = metadata_filter
        self._before = before
        self._left = limit
        self._segments: dict[str, Segments] = {}

    @property
    def _complete(self) -> bool:
        return self._left is not None and self._left <= 0

    def of_table(self) -> Stream[CheckpointTuple]:
        """List every thread: by the index where the filter has a run id, by a scan otherwise."""
        seen: set[str] = set()
        run_id = items.indexable_run_id(self._filter)
        pages = (
            _Scan()
            if run_id is None
            else Query(run_id, consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,))
        )
        while not pages.done and not self._complete:
            method = "scan" if run_id is None else "query"
            response = yield from self._table.send(method, **pages.params())
            pages.advance(response)
            for item in response["Items"]:
                pk = items.partition_key(item)
                if pk not in seen:
                    seen.add(pk)
                    self._segments.clear()
                    yield from self.of_namespaces([items.parse_partition(pk)], None)

    def of_namespaces(
        self, within: Sequence[Partition], checkpoint_id: str | None
    ) -> Stream[CheckpointTuple]:
        """List namespaces of one thread, merged."""
        if self._complete:
            return
        if checkpoint_id is not None:
            found = yield from gather([find(self._table, at, checkpoint_id) for at in within])
            yield from self._emit([
                (at, group)
                for at, group in zip(within, found, strict=True)
                if group is not None and (self._before is None or group.checkpoint_id < self._before)
            ])  # fmt: skip
            return
        first_page = (
            max(PAGE_ITEMS_FIRST, 2 * self._left) if self._left is not None else _PAGE_ITEMS_UNLIMITED
        )
        merge = _Merge([
            History(
                self._table,
                at,
                below=self._before,
                first_page=first_page,
                consistent=self._table.consistent_read,
            )
            for at in within
        ])  # fmt: skip
        while not self._complete:
            groups = yield from merge.next_groups()
            if not groups:
                return
            yield from self._emit(groups)

    def _emit(self, groups: Sequence[tuple[Partition, Group]]) -> Stream[CheckpointTuple]:
        """Hand on the checkpoints that match, reading the segments of several at once."""
        for start in range(0, len(groups), _CHECKPOINTS_AT_ONCE):
            matching = yield from self._matching(groups[start : start + _CHECKPOINTS_AT_ONCE])
            for at in {at.pk: at for at, _ in matching}.values():
                ids = {each for other, group in matching if other.pk == at.pk for each in group.ids()}
                yield from read_segments(self._table, self._codec, at.pk, ids, self._known(at.pk))
            for at, group in matching:
                found = yield from self._read(at, group)
                if found is not None:
                    self._left = None if self._left is None else self._left - 1
                    yield Emit(found)
            if self._complete:
                return

    def _matching(self, groups: Sequence[tuple[Partition, Group]]) -> Op[list[tuple[Partition, Group]]]:
        """The checkpoints whose metadata match, up to the limit."""
        matching: list[tuple[Partition, Group]] = []
        for at, group in groups:
            if not self._filter or (yield from self._matches(at, group)):
                matching.append((at, group))
        return matching if self._left is None else matching[: self._left]

    def _matches(self, at: Partition, group: Group) -> Op[bool]:
        known = self._known(at.pk)
        part = items.parse_part(group.head, items.SEALED_METADATA)
        if part is not None:
            missing = yield from read_segments(self._table, self._codec, at.pk, part.ids, known)
            if missing:
                # A deletion is under way; if it was not, reading the checkpoint says what is wrong.
                return (yield from was_acknowledged(self._table, MissingSegmentsError(group.head, missing)))
        metadata = read_metadata(self._codec, group.head, known.contents)
        return all(metadata.get(name) == value for name, value in self._filter.items())

    def _read(self, at: Partition, group: Group) -> Op[CheckpointTuple | None]:
        """Decode a checkpoint; None where it was deleted meanwhile."""
        known = self._known(at.pk)
        try:
            yield from load(self._table, self._codec, group, known)
        except MissingSegmentsError as error:
            if not (yield from was_acknowledged(self._table, error)):
                return None
            again = yield from find(self._table, at, group.checkpoint_id)
            return None if again is None else (yield from self._read(at, again))
        return (
            yield from work(
                lambda: decode_tuple(at, self._codec, group, known),
                sum(len(known.contents.get(each, b"")) for each in group.ids()),
            )
        )

    def _known(self, pk: str) -> Segments:
        known = self._segments.setdefault(pk, Segments())
        if sum(map(len, known.contents.values())) > _SEGMENT_BYTES_KEPT:
            known = self._segments[pk] = Segments()
        return known


class _Merge:
    """Several namespaces' histories as one, newest first."""

    def __init__(self, histories: Sequence[History]) -> None:
        self._queues: list[tuple[History, list[Group]]] = [(history, []) for history in histories]

    def next_groups(self) -> Op[list[tuple[Partition, Group]]]:
        """The next checkpoints in order, as many as the pages read so far decide; none at the end."""
        empty = [(history, queue) for history, queue in self._queues if not queue and not history.done]
        pages = yield from gather([history.page() for history, _ in empty])
        for (_, queue), page in zip(empty, pages, strict=True):
            queue += page
        self._queues = [(history, queue) for history, queue in self._queues if queue or not history.done]
        ready: list[tuple[Partition, Group]] = []
        while self._queues and all(queue for _, queue in self._queues):
            history, queue = max(self._queues, key=lambda each: each[1][0].checkpoint_id)
            ready.append((history.at, queue.pop(0)))
            self._queues = [each for each in self._queues if each[1] or not each[0].done]
        return ready


class _Scan:
    """A scan of the whole table for partition keys of heads."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {
            "FilterExpression": "begins_with(#sk, :checkpoints)",
            "ProjectionExpression": "#pk",
            "ExpressionAttributeNames": {"#pk": PARTITION_KEY, "#sk": SORT_KEY},
            "ExpressionAttributeValues": {":checkpoints": {"S": items.CHECKPOINTS}},
        }
        self.done = False

    def params(self) -> Mapping[str, Any]:
        return self._params

    def advance(self, response: Mapping[str, Any]) -> None:
        last = response.get("LastEvaluatedKey")
        self.done = last is None
        self._params = {**self._params, "ExclusiveStartKey": last}
