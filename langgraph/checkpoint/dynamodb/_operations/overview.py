"""Overviews of a table, its threads and their runs, without a serializer or a key. For tools, not for agents."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointMetadata
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from .._format import content, items, pricing
from .._format.items import Item, Partition
from .._format.schema import LAST_ACTIVE, PARTITION_KEY, RUN_ID, RUN_INDEX
from .._runtime.failures import error_code
from .._runtime.requests import Pages, Query
from .._runtime.steps import Call, Emit, Op, Stream, gather
from .._runtime.storage import Storage
from ..errors import CheckpointerConfigurationError
from .arguments import checked_id
from .list import heads_of_table
from .reads import LoadedSegments, NamespaceReader

# How many parts of a table are scanned in parallel. Each returns a page of up to 1 MB per round.
SCAN_SEGMENTS = 8
_INTERRUPTED = items.SPECIAL_WRITES[WRITES_IDX_MAP[INTERRUPT]]
_FAILED = items.SPECIAL_WRITES[WRITES_IDX_MAP[ERROR]]
_ANSWERED = items.SPECIAL_WRITES[WRITES_IDX_MAP[RESUME]]
# LangGraph stores an answer that names no task under this id (`NULL_TASK_ID` of its private constants).
_NO_TASK = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Extent:
    """The size of a table as DynamoDB reports it, updated every six hours."""

    items: int
    bytes: int


@dataclass(frozen=True)
class ScannedPage:
    """The result of one round of a scan: threads that no earlier round found, and the number of scanned items."""

    thread_ids: Sequence[str]
    scanned_items: int
    newest: Mapping[str, str]
    """By thread, the greatest sort key of its root in this round. Sort keys are in the order of checkpoint ids."""
    bytes: Mapping[str, int]
    """By the key of a thread's root partition, the bytes of the thread's items in this round, if they are asked for."""


def extent(storage: Storage) -> Op[Extent | None]:
    """Read the size of the table; return `None` if the caller has no permission."""
    outcomes = yield (Call("describe_table", {"TableName": storage.table.name}),)
    # No policy of the template allows DescribeTable.
    if error_code(outcomes[0]) == "AccessDeniedException":
        return None
    description = storage.table.checked(outcomes[0])["Table"]
    return Extent(description["ItemCount"], description["TableSizeBytes"])


def scan_threads(storage: Storage, *, with_bytes: bool = False) -> Stream[ScannedPage]:
    """Find every thread by a parallel scan, as far as the consumer asks.

    With bytes, the scan returns whole items. It reads as many units, and transfers the table.
    """
    seen: set[str] = set()
    scanned = (lambda **part: Pages(part)) if with_bytes else heads_of_table
    parts = [scanned(Segment=part, TotalSegments=SCAN_SEGMENTS) for part in range(SCAN_SEGMENTS)]
    while parts:
        responses = yield from storage.table.scan_pages(parts)
        parts = [each for each in parts if not each.done]
        whole = [item for each in responses for item in each["Items"]]
        found = [each for each in whole if items.sort_key(each).startswith(items.CHECKPOINTS)]
        new = _threads_of(found)
        scanned_items = sum(each["ScannedCount"] for each in responses)
        sizes = _bytes_of(whole) if with_bytes else {}
        yield Emit(
            ScannedPage([each for each in new if each not in seen], scanned_items, _newest_of(found), sizes)
        )
        seen.update(new)


def _newest_of(found: Iterable[Item]) -> dict[str, str]:
    newest: dict[str, str] = {}
    for item in found:
        partition = items.parse_partition(items.partition_key(item))
        if not partition.namespace:
            newest[partition.thread_id] = max(items.sort_key(item), newest.get(partition.thread_id, ""))
    return newest


def _bytes_of(found: Iterable[Item]) -> Counter[str]:
    """Add up the sizes of items by the part of the partition key that all namespaces of a thread share."""
    sizes = Counter[str]()
    for item in found:
        sizes["".join(items.partition_key(item).partition("#")[:2])] += pricing.item_bytes(item)
    return sizes


def threads_of_run(storage: Storage, run_id: str) -> Op[list[str]]:
    """Find the threads in which a run stored checkpoints, by the index."""
    query = Query(
        checked_id(run_id, "run_id"), consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,)
    )
    return _threads_of((yield from storage.table.query_all(query)))


def _threads_of(found: Iterable[Item]) -> list[str]:
    return list(dict.fromkeys(items.parse_partition(items.partition_key(item)).thread_id for item in found))


def is_stored(storage: Storage, thread_id: str) -> Op[bool]:
    """Tell whether the table has more of a thread than its epoch and its lock, which outlive a deletion.

    A thread that nobody stored a checkpoint for may be in the directory.
    """
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    kinds = (items.CHECKPOINTS, items.NAMESPACES, items.SEGMENTS)
    queries = [Query(root.pk, prefix=each, first_page=1, attributes=(PARTITION_KEY,)) for each in kinds]
    found = yield from gather([storage.table.query_page(each) for each in queries])
    if any(found):
        return True
    item = yield from storage.table.get(root.pk, items.THREAD)
    return item is not None and LAST_ACTIVE in item


@dataclass(frozen=True)
class Line:
    """A checkpoint in a history."""

    checkpoint_id: str
    parent_id: str | None
    metadata: CheckpointMetadata | None
    """`None` if they are encrypted with another key."""
    tasks: int
    """How many tasks have pending writes."""
    status: str
    """`idle`, `waiting` for a human or `failed`, as of this checkpoint."""
    expires_at: int | None


def lines(storage: Storage, partition: Partition) -> Stream[Line]:
    """List a namespace's checkpoints, newest first, without their values."""
    history = NamespaceReader(storage, partition, first_page=None, consistent=False)
    while not history.done:
        for checkpoint in (yield from history.page()):
            head = checkpoint.head
            yield Emit(
                Line(
                    checkpoint.checkpoint_id,
                    items.text(head, items.PARENT),
                    (yield from readable_metadata(storage, head)),
                    len(checkpoint.writes),
                    status_of(checkpoint.writes),
                    items.expires_at(head),
                )
            )


def readable_metadata(storage: Storage, head: Item) -> Op[CheckpointMetadata | None]:
    """Read the metadata of a checkpoint; return `None` if they are encrypted with another key."""
    loaded = LoadedSegments(items.partition_key(head))
    part = items.parse_part(head, items.SEALED_METADATA)
    try:
        if part is not None:
            yield from loaded.read(storage, part.own)
        return content.read_metadata(storage.codec, head, loaded.contents)
    except CheckpointerConfigurationError:
        return None


def status_of(writes: Iterable[Item]) -> str:
    """Return the status of a thread by its checkpoint's pending writes: `idle`, `waiting` for a human or `failed`.

    If one of several parallel tasks has failed and another waits, the thread is `failed`: the run raised, and an answer
    would run the failed task again. Once a retry has finished that task, the thread is `waiting`.

    LangGraph keeps a task's error and question when it runs the task again, without their order. The answer tells the
    order: without one, the task failed, ran again and waits. With one, it went on after its question and failed.

    Two cases look the same and are told wrongly; LangGraph's `get_state` shows both writes in each case. A task
    counts as waiting if it failed before it came to its question again, and the answer named the question or there
    was none. A task counts as failed if it failed, and asks again after an answer.
    """
    given = list(writes)
    is_answered = any(_ANSWERED in each and items.task_id_of(each) == _NO_TASK for each in given)
    states = {_state_of(each, is_answered=is_answered) for each in given if items.WRITES not in each}
    return next((each for each in ("failed", "waiting") if each in states), "idle")


def _state_of(task: Item, *, is_answered: bool) -> str | None:
    """Return what an unfinished task has come to, by its writes; `None` if it runs."""
    asks = _INTERRUPTED in task
    if _FAILED in task and (not asks or _ANSWERED in task or is_answered):
        return "failed"
    return "waiting" if asks else None


# Runs


@dataclass(frozen=True)
class RunSummary:
    """A run of a thread."""

    run_id: str
    first_checkpoint_id: str
    last_checkpoint_id: str
    checkpoints: int
    """How many checkpoints of the run there are, in the root namespace."""
    status: str
    """`idle`, `waiting` for a human or `failed`, as of its last checkpoint."""


def list_runs(storage: Storage, thread_id: str) -> Op[list[RunSummary]]:
    """List the runs of a thread, the one with the newest checkpoint first."""
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    runs: dict[str, RunSummary] = {}
    history = NamespaceReader(storage, root, first_page=None, consistent=False)
    while not history.done:
        for checkpoint in (yield from history.page()):
            run_id = items.text(checkpoint.head, RUN_ID)
            if run_id is None:
                continue
            here = checkpoint.checkpoint_id
            run = runs.get(run_id) or RunSummary(run_id, here, here, 0, status_of(checkpoint.writes))
            runs[run_id] = replace(run, first_checkpoint_id=here, checkpoints=run.checkpoints + 1)
    return list(runs.values())
