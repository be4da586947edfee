"""Looking over a table and its threads: what there is, without a serializer or a key. For tools, not for agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointMetadata
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, parse_metadata
from langgraph.checkpoint.dynamodb._format.content import read_metadata
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, RUN_INDEX
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, take_inventory
from langgraph.checkpoint.dynamodb._operations.list import heads_of_table
from langgraph.checkpoint.dynamodb._operations.reads import History, Segments, read_segments
from langgraph.checkpoint.dynamodb._operations.threads import namespaces, read_thread
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Emit, Op, Stream, gather
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointFormatError,
)

# How many parts of a table are read side by side: each gives a page of up to 1 MB per round.
SCAN_SEGMENTS = 8
_INTERRUPTED = items.SPECIAL_WRITES[WRITES_IDX_MAP[INTERRUPT]]
_FAILED = items.SPECIAL_WRITES[WRITES_IDX_MAP[ERROR]]


@dataclass(frozen=True)
class Extent:
    """How large DynamoDB says a table is; it counts every six hours."""

    items: int
    bytes: int


@dataclass(frozen=True)
class ScannedPage:
    """What a round of a scan gave: threads that no earlier one had, and how many items were looked at."""

    thread_ids: Sequence[str]
    scanned_items: int
    newest: Mapping[str, str]
    """By thread, the greatest sort key that the round gave of its root: keys are in the order of checkpoint ids."""


@dataclass
class Overview:
    """A thread as a list shows it. Counts are of all its namespaces, the rest is of the root's newest checkpoint."""

    thread_id: str
    namespaces: int = 0
    checkpoints: int = 0
    items: int = 0
    bytes: int = 0
    checkpoint_id: str | None = None
    step: int | None = None
    source: str | None = None
    waiting: bool = False
    expires_at: int | None = None
    problem: str | None = field(default=None)
    """What keeps the thread from being read."""


def extent(table: Table) -> Op[Extent | None]:
    """How large the table is; None where the caller may not ask."""
    outcomes = yield (Call("describe_table", {"TableName": table.name}),)
    # No policy of the template allows it.
    if error_code(outcomes[0]) == "AccessDeniedException":
        return None
    description = table.checked(outcomes[0])["Table"]
    return Extent(description["ItemCount"], description["TableSizeBytes"])


def scan_threads(table: Table) -> Stream[ScannedPage]:
    """Find every thread by a parallel scan, as far as the consumer asks."""
    seen: set[str] = set()
    parts = [heads_of_table(Segment=part, TotalSegments=SCAN_SEGMENTS) for part in range(SCAN_SEGMENTS)]
    while parts:
        responses = yield from table.scan_pages(parts)
        parts = [each for each in parts if not each.done]
        found = [item for each in responses for item in each["Items"]]
        new = _threads_of(found)
        scanned_items = sum(each["ScannedCount"] for each in responses)
        yield Emit(ScannedPage([each for each in new if each not in seen], scanned_items, _newest_of(found)))
        seen.update(new)


def _newest_of(found: Iterable[Item]) -> dict[str, str]:
    newest: dict[str, str] = {}
    for item in found:
        at = items.parse_partition(items.partition_key(item))
        if not at.namespace:
            newest[at.thread_id] = max(items.sort_key(item), newest.get(at.thread_id, ""))
    return newest


def threads_of_run(table: Table, run_id: str) -> Op[list[str]]:
    """The threads in which a run stored something, by the index."""
    query = Query(
        checked_id(run_id, "run_id"), consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,)
    )
    return _threads_of((yield from table.query_all(query)))


def _threads_of(found: Iterable[Item]) -> list[str]:
    return list(dict.fromkeys(items.parse_partition(items.partition_key(item)).thread_id for item in found))


def is_stored(table: Table, thread_id: str) -> Op[bool]:
    """Whether the table has anything of a thread but its epoch and its lock, which outlive a deletion."""
    root = items.partition(checked_id(thread_id, "thread_id"))
    kinds = (items.CHECKPOINTS, items.NAMESPACES, items.SEGMENTS)
    found = yield from gather([table.query_page(_first(root, each)) for each in kinds])
    return any(found)


def _first(at: Partition, prefix: str) -> Query:
    return Query(at.pk, prefix=prefix, first_page=1, attributes=(PARTITION_KEY,))


def overview(table: Table, thread_id: str) -> Op[Overview]:
    """Look over one thread; damage is noted and not raised, for a list is to show the others too."""
    found = Overview(thread_id)
    try:
        root = items.partition(checked_id(thread_id, "thread_id"))
        within = yield from namespaces(table, root)
        newest, *_ = yield from gather([_look_over(table, at, found) for at in within])
        _describe(found, newest, table.clock())
    except (CheckpointCorruptionError, CheckpointFormatError) as error:
        found.problem = str(error)
    return found


def _look_over(table: Table, at: Partition, found: Overview) -> Op[list[Item]]:
    """Count what a namespace has, and return its newest head with its writes."""
    newest: list[Item] = []
    query = Query(at.pk, consistent=False)
    while not query.done:
        for item in (yield from table.query_page(query)):
            found.items += 1
            found.bytes += item_bytes(item)
            if not items.sort_key(item).startswith(items.CHECKPOINTS):
                continue
            if items.is_head(item):
                newest = [item]
                found.checkpoints += not items.is_expired(item, table.clock())
            elif newest and items.checkpoint_id_of(item) == items.checkpoint_id_of(newest[0]):
                newest.append(item)
    found.namespaces += bool(newest)
    return newest


def _describe(found: Overview, newest: Sequence[Item], now: float) -> None:
    """Note what the newest checkpoint says; one that has expired leaves none to its namespace."""
    if not newest or items.is_expired(newest[0], now):
        return
    head, *writes = newest
    items.check_format(head)
    found.checkpoint_id = items.checkpoint_id_of(head)
    found.expires_at = items.ends_at(head)
    text = items.text(head, items.METADATA)
    metadata = {} if text is None else parse_metadata(head, text)
    found.step, found.source = metadata.get("step"), metadata.get("source")
    found.waiting = any(is_waiting(each) for each in writes)


def measure_thread(table: Table, thread_id: str) -> Op[list[Inventory]]:
    """What each namespace of a thread has, measured, and which of its checkpoints count; the root's first."""
    root = items.partition(checked_id(thread_id, "thread_id"))
    within = yield from namespaces(table, root)
    thread = yield from read_thread(table, root)
    inventories = yield from gather([take_inventory(table, at, measured=True) for at in within])
    for each in inventories:
        each.mark_committed(thread)
    return inventories


@dataclass(frozen=True)
class Line:
    """A checkpoint as a history shows it."""

    checkpoint_id: str
    parent_id: str | None
    metadata: CheckpointMetadata | None
    """None where it is encrypted and the key is another one."""
    tasks: int
    """How many tasks have pending writes."""
    waiting: bool
    failed: bool
    expires_at: int | None


def lines(table: Table, codec: Codec, at: Partition) -> Stream[Line]:
    """A namespace's checkpoints, newest first, without what they hold."""
    history = History(table, at, first_page=None, consistent=False)
    while not history.done:
        for group in (yield from history.page()):
            head = group.head
            yield Emit(
                Line(
                    group.checkpoint_id,
                    items.text(head, items.PARENT),
                    (yield from _metadata(table, codec, head)),
                    len(group.writes),
                    any(map(is_waiting, group.writes)),
                    any(_FAILED in each for each in group.writes),
                    items.ends_at(head),
                )
            )


def _metadata(table: Table, codec: Codec, head: Item) -> Op[CheckpointMetadata | None]:
    known = Segments()
    part = items.parse_part(head, items.SEALED_METADATA)
    try:
        if part is not None:
            yield from read_segments(table, codec, items.partition_key(head), part.own, known)
        return read_metadata(codec, head, known.contents)
    except CheckpointerConfigurationError:
        return None


def is_waiting(writes: Item) -> bool:
    """Whether a task has asked for a human's answer and has not gone on since."""
    return _INTERRUPTED in writes and items.WRITES not in writes
