"""`list`: stream the checkpoints of a namespace, a thread or the whole table, newest first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from .._format import content, items, limits, segments
from .._format.items import Partition
from .._format.schema import PARTITION_KEY, RUN_ID, RUN_INDEX, SORT_KEY
from .._runtime.requests import Pages, Query
from .._runtime.steps import Emit, Op, Stream, gather, work
from .._runtime.storage import Storage
from . import arguments, get, other_savers, thread_item
from .error_collector import ErrorCollector
from .reads import ChangedMeanwhileError, LoadedSegments, NamespaceReader, StoredCheckpoint, find, load

# Sorts before every id that LangGraph makes.
_OLDEST = "\x01"

Matches: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]

# The first page of a list without a limit; its consumer may stop at any time.
_PAGE_ITEMS_UNLIMITED = 16
# How many checkpoints have their segments read together.
_CHECKPOINTS_AT_ONCE = 16
# Checkpoints of a list share segments, so up to this many bytes of segments are kept while listing.
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024


class Position(NamedTuple):
    """The last checkpoint of an earlier list, behind which a list continues."""

    thread_id: str
    namespace: str
    checkpoint_id: str


def has_values(metadata: Mapping[str, Any], metadata_filter: Mapping[str, Any]) -> bool:
    """Tell whether metadata have the keys and values of a filter."""
    return all(metadata.get(name) == value for name, value in metadata_filter.items())


def list_checkpoints(
    storage: Storage,
    config: RunnableConfig | None,
    metadata_filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Stream[CheckpointTuple]:
    """List the checkpoints that match, up to a limit. Invalid arguments raise here, before the first step."""
    selection = Selection(
        storage=storage,
        metadata_filter=arguments.checked_filter(metadata_filter),
        before=arguments.checked_before(before),
        left=arguments.checked_limit(limit),
    )
    return selection.of(arguments.listed_config(config))


@dataclass(kw_only=True)
class Selection:
    """A list of the checkpoints that match, newest first, and the segments that were read for it."""

    storage: Storage
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    before: str | None = None
    left: int | None = None
    """How many checkpoints are left of its limit."""
    after: Position | None = None
    """The place behind which the list continues."""
    prefix: str = ""
    """A list without a thread reads only threads whose ids begin so."""
    matches: Matches = has_values
    """Compares metadata with the filter; by default each key must have the same value."""
    errors: ErrorCollector = field(default_factory=ErrorCollector)
    """Gets the errors of a list without a thread, which raises them at its end."""
    ends_behind: Callable[[Position], bool] = lambda _: False
    """May end the list at a place up to which everything was compared, also if nothing matched."""
    segments: dict[str, LoadedSegments] = field(default_factory=dict)

    def of(self, config: RunnableConfig | None) -> Stream[CheckpointTuple]:
        """List the checkpoints of a namespace, a thread, or of the whole table."""
        if config is None:
            return self.of_table()
        partition, checkpoint_id = arguments.target(config), arguments.checkpoint_id_in(config)
        if config["configurable"].get("checkpoint_ns") is None:
            return self.of_thread(partition, checkpoint_id)
        return self.of_namespaces([partition], checkpoint_id)

    @property
    def _complete(self) -> bool:
        return self.left is not None and self.left <= 0

    def of_table(self) -> Stream[CheckpointTuple]:
        """List every thread: by the index if the filter has a run id, otherwise by a scan.

        An error in one namespace does not keep the others from being listed: it is raised at the end.
        """
        run_id = items.indexable_run_id(self.metadata_filter)
        start = "" if self.after is None else items.partition_of(*self.after[:2]).pk
        if run_id is None:
            seen = {start} - {""}
            for pk in seen:
                yield from self._of_partition(pk)
            pages = heads_of_table(after=start)
            while not pages.done and not self._complete:
                for item in (yield from self.storage.table.scan_pages([pages]))[0]["Items"]:
                    pk = items.partition_key(item)
                    if pk not in seen:
                        seen.add(pk)
                        yield from self._of_partition(pk)
        else:
            query = Query(run_id, consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,))
            found = yield from self.storage.table.query_all(query)
            # In the order of their keys, in which a list can be continued: that of the index is not.
            for pk in sorted({items.partition_key(item) for item in found}):
                if pk >= start:
                    yield from self._of_partition(pk)
        self.errors.raise_first()

    def _of_partition(self, pk: str) -> Stream[CheckpointTuple]:
        if self.after is not None and items.partition_of(*self.after[:2]).pk != pk:
            self.after = None
        self.segments.clear()
        if pk.startswith(items.escape(self.prefix, "prefix")):
            name, partition = f"PK={pk!r}", items.parse_partition(pk)
            with self.errors.capture(name):
                yield from self.of_namespaces([partition], None)
            # What is older than what cannot be read is left out, too: it would look like the newest.
            if name in self.errors and self.ends_behind(
                Position(partition.thread_id, partition.namespace, _OLDEST)
            ):
                self.left = 0

    def of_thread(self, root: Partition, checkpoint_id: str | None) -> Stream[CheckpointTuple]:
        """List every namespace of a thread, merged."""
        within = yield from thread_item.namespaces(self.storage, root)
        yield from self.of_namespaces(within, checkpoint_id)

    def of_namespaces(
        self, within: Sequence[Partition], checkpoint_id: str | None
    ) -> Stream[CheckpointTuple]:
        """List namespaces of one thread, merged."""
        if self._complete:
            return
        if checkpoint_id is not None:
            found = yield from gather([find(self.storage, partition, checkpoint_id) for partition in within])
            if not any(found):
                yield from other_savers.look_for_other_savers(self.storage, within[0])
            yield from self._emit([
                (partition, checkpoint)
                for partition, checkpoint in zip(within, found, strict=True)
                if checkpoint is not None and self._is_wanted(partition, checkpoint.checkpoint_id)
            ])  # fmt: skip
            return
        first_page = _PAGE_ITEMS_UNLIMITED
        if self.left is not None:
            first_page = min(limits.PAGE_ITEMS_MAX, max(limits.PAGE_ITEMS_FIRST, 2 * self.left))
        merge = _Merge([self._history(partition, first_page) for partition in within])
        is_empty = self.before is None and self.after is None
        while not self._complete:
            checkpoints = yield from merge.next_checkpoints()
            if not checkpoints:
                break
            is_empty = False
            yield from self._emit(checkpoints)
        if is_empty:
            yield from other_savers.look_for_other_savers(self.storage, within[0])

    def _history(self, partition: Partition, first_page: int) -> NamespaceReader:
        below, includes_below = self._start(partition)
        return NamespaceReader(
            self.storage,
            partition,
            below=below,
            includes_below=includes_below,
            first_page=first_page,
        )

    def _is_wanted(self, partition: Partition, checkpoint_id: str) -> bool:
        below, includes_below = self._start(partition)
        return below is None or checkpoint_id < below or (includes_below and checkpoint_id == below)

    def _start(self, partition: Partition) -> tuple[str | None, bool]:
        """Return the id below which the list of a namespace starts, and whether it includes that id."""
        if self.after is None:
            return self.before, False
        # Checkpoints with one id are listed in the order of their namespaces.
        return self.after.checkpoint_id, partition.namespace > self.after.namespace

    def _emit(self, checkpoints: Sequence[tuple[Partition, StoredCheckpoint]]) -> Stream[CheckpointTuple]:
        """Emit the checkpoints that match, reading the segments of several at once."""
        start = 0
        while start < len(checkpoints) and not self._complete:
            count = self._fitting(checkpoints[start : start + _CHECKPOINTS_AT_ONCE])
            matching = yield from self._matching(checkpoints[start : start + count])
            start += count
            for partition in {partition.pk: partition for partition, _ in matching}.values():
                ids = {
                    each
                    for other, checkpoint in matching
                    if other.pk == partition.pk
                    for each in checkpoint.ids()
                }
                yield from self._known(partition.pk).read(self.storage, ids)
            for partition, checkpoint in matching:
                found = yield from self._read(partition, checkpoint)
                if found is not None:
                    self.left = None if self.left is None else self.left - 1
                    yield Emit(found)
            partition, last = checkpoints[start - 1]
            if self.ends_behind(Position(partition.thread_id, partition.namespace, last.checkpoint_id)):
                self.left = 0
            if self._kept_bytes() > _SEGMENT_BYTES_KEPT:
                # They are too many to keep for the next checkpoints.
                self.segments.clear()

    def _fitting(self, checkpoints: Sequence[tuple[Partition, StoredCheckpoint]]) -> int:
        """Return how many of the checkpoints have segments that fit into memory together; at least one."""
        room = min(_SEGMENT_BYTES_KEPT, self.storage.codec.bytes_max) - self._kept_bytes()
        new: set[bytes] = set()
        for count, (partition, checkpoint) in enumerate(checkpoints):
            new |= checkpoint.ids() - self._known(partition.pk).contents.keys()
            # An index segment names up to a group of segments.
            named = sum(limits.INDEX_GROUP if segments.is_index(each) else 1 for each in new)
            if count and named * limits.LARGE_SEGMENT_BYTES_MIN > room:
                return count
        return len(checkpoints)

    def _matching(
        self, checkpoints: Sequence[tuple[Partition, StoredCheckpoint]]
    ) -> Op[list[tuple[Partition, StoredCheckpoint]]]:
        """Return the checkpoints whose metadata match, up to the limit."""
        matching: list[tuple[Partition, StoredCheckpoint]] = []
        for partition, checkpoint in checkpoints:
            if not self.metadata_filter or (yield from self._matches(partition, checkpoint)):
                matching.append((partition, checkpoint))
        return matching if self.left is None else matching[: self.left]

    def _matches(self, partition: Partition, checkpoint: StoredCheckpoint) -> Op[bool]:
        loaded = self._known(partition.pk)
        part = items.parse_part(checkpoint.head, items.SEALED_METADATA)
        if part is not None and (yield from loaded.read(self.storage, part.ids)):
            # A deletion is under way, or the table is damaged. Reading the whole checkpoint tells which.
            return True
        metadata = content.read_metadata(self.storage.codec, checkpoint.head, loaded.contents)
        return self.matches(cast("Mapping[str, Any]", metadata), self.metadata_filter)

    def _read(self, partition: Partition, checkpoint: StoredCheckpoint) -> Op[CheckpointTuple | None]:
        """Read and decode a checkpoint; return `None` if it was deleted meanwhile."""
        loaded = self._known(partition.pk)
        try:
            whole = yield from load(self.storage, checkpoint, loaded)
        except ChangedMeanwhileError:
            again = yield from find(self.storage, partition, checkpoint.checkpoint_id)
            matches = again is not None and (
                not self.metadata_filter or (yield from self._matches(partition, again))
            )
            return (yield from self._read(partition, again)) if again is not None and matches else None
        if whole is None:
            return None
        size = sum(len(loaded.contents.get(each, b"")) for each in checkpoint.ids())
        found, _ = yield from work(partial(get.decoded, partition, self.storage.codec, whole, loaded), size)
        return found

    def _known(self, pk: str) -> LoadedSegments:
        return self.segments.setdefault(pk, LoadedSegments(pk))

    def _kept_bytes(self) -> int:
        return sum(len(data) for known in self.segments.values() for data in known.contents.values())


class _Merge:
    """The histories of several namespaces merged into one, newest first."""

    def __init__(self, histories: Sequence[NamespaceReader]) -> None:
        self._queues: list[tuple[NamespaceReader, list[StoredCheckpoint]]] = [
            (history, []) for history in histories
        ]

    def next_checkpoints(self) -> Op[list[tuple[Partition, StoredCheckpoint]]]:
        """Return the next checkpoints whose order the pages read so far determine; none at the end."""
        empty = [(history, queue) for history, queue in self._queues if not queue and not history.done]
        pages = yield from gather([history.page() for history, _ in empty])
        for (_, queue), page in zip(empty, pages, strict=True):
            queue += page
        self._queues = [(history, queue) for history, queue in self._queues if queue or not history.done]
        # Checkpoints of a namespace that are still to be read are older than the last one that was.
        bound = max(
            (queue[-1].checkpoint_id for history, queue in self._queues if not history.done), default=""
        )
        ready = [
            (history.partition, checkpoint)
            for history, queue in self._queues
            for checkpoint in queue
            if checkpoint.checkpoint_id >= bound
        ]
        for _, queue in self._queues:
            queue[:] = [checkpoint for checkpoint in queue if checkpoint.checkpoint_id < bound]
        return sorted(ready, key=lambda each: each[1].checkpoint_id, reverse=True)


def heads_of_table(after: str = "", **part: int) -> Pages:
    """Return a scan of the table behind a partition, or of a part of it, for the keys of heads and writes items."""
    start = {"ExclusiveStartKey": items.key(after, items.AFTER_CHECKPOINTS)} if after else {}
    return Pages({
        **part,
        **start,
        "FilterExpression": "begins_with(#sk, :checkpoints)",
        "ProjectionExpression": "#pk, #sk",
        "ExpressionAttributeNames": {"#pk": PARTITION_KEY, "#sk": SORT_KEY},
        "ExpressionAttributeValues": {":checkpoints": {"S": items.CHECKPOINTS}},
    })  # fmt: skip
