"""`list`: checkpoints of a namespace, a thread or the whole table, newest first, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import read_metadata
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    INDEX_GROUP,
    PAGE_ITEMS_FIRST,
    PAGE_ITEMS_MAX,
    SEGMENT_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, RUN_INDEX, SORT_KEY
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations.arguments import (
    checked_before,
    checked_filter,
    checked_limit,
    checkpoint_id_in,
    target,
)
from langgraph.checkpoint.dynamodb._operations.get import decode_tuple
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    History,
    Segments,
    find,
    load,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import namespaces
from langgraph.checkpoint.dynamodb._operations.unserved import Unserved
from langgraph.checkpoint.dynamodb._runtime.requests import Pages, Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, gather, work

T = TypeVar("T")

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
    """List the checkpoints that match; limit counts those that do. What cannot be listed is refused at once."""
    wanted = (checked_filter(metadata_filter), checked_before(before), checked_limit(limit))
    return select(table, codec, config, *wanted, decode_tuple)


def select(
    table: Table,
    codec: Codec,
    config: RunnableConfig | None,
    metadata_filter: Mapping[str, Any],
    before: str | None,
    limit: int | None,
    decode: Callable[[Partition, Codec, Group, Segments], T],
    after: tuple[str, str] | None = None,
) -> Stream[T]:
    """Give what `decode` makes of the checkpoints that match, newest first.

    `after` is the id and the namespace of the last checkpoint that an earlier list of this thread gave: the list goes
    on behind it.
    """
    selection = _Selection(table, codec, metadata_filter, before, limit, decode, after)
    if config is None:
        return selection.of_table()
    at, checkpoint_id = target(config), checkpoint_id_in(config)
    if config["configurable"].get("checkpoint_ns") is None:
        return selection.of_thread(at, checkpoint_id)
    return selection.of_namespaces([at], checkpoint_id)


class _Selection(Generic[T]):
    """What a list asks for, how much of it is still to come, and the segments read for it."""

    def __init__(
        self,
        table: Table,
        codec: Codec,
        metadata_filter: Mapping[str, Any],
        before: str | None,
        limit: int | None,
        decode: Callable[[Partition, Codec, Group, Segments], T],
        after: tuple[str, str] | None,
    ) -> None:
        self._decode = decode
        self._table = table
        self._codec = codec
        self._filter = metadata_filter
        self._before = before
        self._after = after
        self._left = limit
        self._segments: dict[str, Segments] = {}

    @property
    def _complete(self) -> bool:
        return self._left is not None and self._left <= 0

    def of_table(self) -> Stream[T]:
        """List every thread: by the index where the filter has a run id, by a scan otherwise.

        A namespace that cannot be read to its end does not keep the others from being listed.
        """
        seen: set[str] = set()
        unserved = Unserved()
        run_id = items.indexable_run_id(self._filter)
        pages = (
            heads_of_table()
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
                    with unserved.left_out(f"PK={pk!r}"):
                        yield from self.of_namespaces([items.parse_partition(pk)], None)
        unserved.raise_first()
        if not seen and not self._complete:
            yield from look_for_other_savers(self._table, None)

    def of_thread(self, root: Partition, checkpoint_id: str | None) -> Stream[T]:
        """List every namespace of a thread, merged."""
        within = yield from namespaces(self._table, root)
        yield from self.of_namespaces(within, checkpoint_id)

    def of_namespaces(self, within: Sequence[Partition], checkpoint_id: str | None) -> Stream[T]:
        """List namespaces of one thread, merged."""
        if self._complete:
            return
        if checkpoint_id is not None:
            found = yield from gather([find(self._table, at, checkpoint_id) for at in within])
            if not any(found):
                yield from look_for_other_savers(self._table, within[0])
            yield from self._emit([
                (at, group)
                for at, group in zip(within, found, strict=True)
                if group is not None and self._is_wanted(at, group.checkpoint_id)
            ])  # fmt: skip
            return
        first_page = _PAGE_ITEMS_UNLIMITED
        if self._left is not None:
            first_page = min(PAGE_ITEMS_MAX, max(PAGE_ITEMS_FIRST, 2 * self._left))
        merge = _Merge([self._history(at, first_page) for at in within])
        is_empty = self._before is None and self._after is None
        while not self._complete:
            groups = yield from merge.next_groups()
            if not groups:
                break
            is_empty = False
            yield from self._emit(groups)
        if is_empty:
            yield from look_for_other_savers(self._table, within[0])

    def _history(self, at: Partition, first_page: int) -> History:
        below, includes_below = self._start(at)
        return History(
            self._table,
            at,
            below=below,
            includes_below=includes_below,
            first_page=first_page,
            consistent=self._table.consistent_read,
        )

    def _is_wanted(self, at: Partition, checkpoint_id: str) -> bool:
        below, includes_below = self._start(at)
        return below is None or checkpoint_id < below or (includes_below and checkpoint_id == below)

    def _start(self, at: Partition) -> tuple[str | None, bool]:
        """Return the id below which a namespace's part of the list starts, and whether it starts at that id."""
        if self._after is None:
            return self._before, False
        checkpoint_id, namespace = self._after
        # Checkpoints with one id are listed in the order of their namespaces.
        return checkpoint_id, at.namespace > namespace

    def _emit(self, groups: Sequence[tuple[Partition, Group]]) -> Stream[T]:
        """Hand on the checkpoints that match, reading the segments of several at once."""
        start = 0
        while start < len(groups) and not self._complete:
            count = self._fitting(groups[start : start + _CHECKPOINTS_AT_ONCE])
            matching = yield from self._matching(groups[start : start + count])
            start += count
            for at in {at.pk: at for at, _ in matching}.values():
                ids = {each for other, group in matching if other.pk == at.pk for each in group.ids()}
                yield from read_segments(self._table, self._codec, at.pk, ids, self._known(at.pk))
            for at, group in matching:
                found = yield from self._read(at, group)
                if found is not None:
                    self._left = None if self._left is None else self._left - 1
                    yield Emit(found)
            self._forget()

    def _fitting(self, groups: Sequence[tuple[Partition, Group]]) -> int:
        """How many of the checkpoints have segments that may be in memory together; at least one."""
        ids: set[bytes] = set()
        for count, (_, group) in enumerate(groups):
            ids |= group.ids()
            # An index segment stands for a group of them.
            named = sum(INDEX_GROUP if is_index(each) else 1 for each in ids)
            if count and named * SEGMENT_BYTES_MAX > min(_SEGMENT_BYTES_KEPT, self._codec.bytes_max):
                return count
        return len(groups)

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
        if part is not None and not self._codec.opens:
            return True
        if part is not None and (yield from read_segments(self._table, self._codec, at.pk, part.ids, known)):
            # A deletion is under way, or the table is damaged: who reads the checkpoint as a whole finds out.
            return True
        metadata = read_metadata(self._codec, group.head, known.contents)
        return all(metadata.get(name) == value for name, value in self._filter.items())

    def _read(self, at: Partition, group: Group) -> Op[T | None]:
        """Decode a checkpoint; None where it was deleted meanwhile."""
        known = self._known(at.pk)
        try:
            loaded = yield from load(self._table, self._codec, group, known)
        except ChangedMeanwhileError:
            again = yield from find(self._table, at, group.checkpoint_id)
            matches = again is not None and (not self._filter or (yield from self._matches(at, again)))
            return (yield from self._read(at, again)) if again is not None and matches else None
        if loaded is None:
            return None
        return (
            yield from work(
                partial(self._decode, at, self._codec, loaded, known),
                sum(len(known.contents.get(each, b"")) for each in group.ids()),
            )
        )

    def _known(self, pk: str) -> Segments:
        return self._segments.setdefault(pk, Segments())

    def _forget(self) -> None:
        """Let go of the segments that were read where they are too many to keep for the next checkpoints."""
        size = sum(len(data) for known in self._segments.values() for data in known.contents.values())
        if size > _SEGMENT_BYTES_KEPT:
            self._segments.clear()


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
        # What is still to come of a namespace is older than the last that was read of it.
        bound = max(
            (queue[-1].checkpoint_id for history, queue in self._queues if not history.done), default=""
        )
        ready = [
            (history.at, group)
            for history, queue in self._queues
            for group in queue
            if group.checkpoint_id >= bound
        ]
        for _, queue in self._queues:
            queue[:] = [group for group in queue if group.checkpoint_id < bound]
        return sorted(ready, key=lambda each: each[1].checkpoint_id, reverse=True)


def heads_of_table(**part: int) -> Pages:
    """A scan of the table, or of the part that is given, for the keys of heads and writes."""
    return Pages({
        **part,
        "FilterExpression": "begins_with(#sk, :checkpoints)",
        "ProjectionExpression": "#pk, #sk",
        "ExpressionAttributeNames": {"#pk": PARTITION_KEY, "#sk": SORT_KEY},
        "ExpressionAttributeValues": {":checkpoints": {"S": items.CHECKPOINTS}},
    })  # fmt: skip
