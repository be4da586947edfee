"""`delete_thread`, `delete_for_runs` and `prune`: the choice of what goes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import read_body, read_metadata
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, RUN_INDEX
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id, checked_ids
from langgraph.checkpoint.dynamodb._operations.collect import Choice, collect, collect_all
from langgraph.checkpoint.dynamodb._operations.delta_history import Ancestors, delta_counters
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, own_segments
from langgraph.checkpoint.dynamodb._operations.unserved import Unserved
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError


def delete_thread(table: Table, codec: Codec, thread_id: str) -> Op[None]:
    """Delete a thread, with everything it ever stored."""
    yield from collect_all(table, codec, checked_id(thread_id, "thread_id"))


def delete_for_runs(table: Table, codec: Codec, run_ids: Sequence[str]) -> Op[None]:
    """Delete the checkpoints of runs, in every thread."""
    wanted = checked_ids(run_ids, "run_ids")
    indexed = [each for each in wanted if items.indexable_run_id({RUN_ID: each}) is not None]
    pages = yield from gather([
        table.query_all(
            Query(each, consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,))
        )
        for each in indexed
    ])  # fmt: skip
    threads = {items.parse_partition(items.partition_key(item)).thread_id for page in pages for item in page}

    def choose(before: Sequence[Inventory]) -> Op[Choice]:
        yield from ()
        return {
            each.at.pk: {name for name, head in each.heads.items() if items.text(head, RUN_ID) in wanted}
            for each in before
        }

    unserved = Unserved()
    for thread_id in sorted(threads):
        with unserved.left_out(f"thread {thread_id!r}"):
            yield from collect(table, codec, thread_id, choose)
    unserved.raise_first()


def prune(
    table: Table, codec: Codec, thread_ids: Sequence[str], strategy: str, keep_last: int | None
) -> Op[None]:
    """Keep only the newest checkpoints of each namespace of some threads, or none."""
    wanted = checked_ids(thread_ids, "thread_ids")
    count = _checked_count(strategy, keep_last)

    def choose(before: Sequence[Inventory]) -> Op[Choice]:
        return (yield from _choose_old(table, codec, before, count))

    unserved = Unserved()
    for thread_id in wanted:
        with unserved.left_out(f"thread {thread_id!r}"):
            if count == 0:
                yield from delete_thread(table, codec, thread_id)
            else:
                yield from collect(table, codec, thread_id, choose, adopt=True)
    unserved.raise_first()


def _checked_count(strategy: str, keep_last: int | None) -> int:
    if strategy == "keep_last":
        if type(keep_last) is not int or keep_last < 1:
            msg = (
                f"keep_last is {keep_last!r}; give the number of checkpoints to keep per namespace, 1 or more"
            )
            raise CheckpointerInputError(msg)
        return keep_last
    counts = {"keep_latest": 1, "delete": 0}
    if strategy not in counts:
        msg = (
            f"strategy {strategy!r} is unknown; use 'keep_latest', 'delete', or 'keep_last' with keep_last=N"
        )
        raise CheckpointerInputError(msg)
    if keep_last is not None:
        msg = f"keep_last={keep_last!r} goes with strategy='keep_last', not with {strategy!r}"
        raise CheckpointerInputError(msg)
    return counts[strategy]


def _choose_old(table: Table, codec: Codec, before: Sequence[Inventory], count: int) -> Op[Choice]:
    """All but the newest checkpoints and what their delta channels are rebuilt from."""
    kept = {each.at.pk: _newest(each, count) for each in before}
    root = before[0]
    chosen: Choice = {}
    for inventory in before:
        keep = kept[inventory.at.pk]
        started_from = yield from _started_from(table, codec, inventory, keep)
        if started_from in root.heads and started_from not in kept[root.at.pk]:
            keep = set()
        for checkpoint_id in sorted(keep):
            keep = keep | (yield from _rebuilt_from(table, codec, inventory, checkpoint_id))
        chosen[inventory.at.pk] = inventory.heads.keys() - keep
    return chosen


def _newest(inventory: Inventory, count: int) -> set[str]:
    """The newest checkpoints, so many that count, and all above and between them, whose puts may be under way.

    Where fewer count, as in threads of which an earlier release deleted something, whole ones do as well.
    """
    certain = sorted(inventory.counted, reverse=True)[:count]
    if len(certain) < count:
        whole = filter(inventory.is_whole, sorted(inventory.heads, reverse=True))
        certain += islice(whole, count)
    return {each for each in inventory.heads if each >= min(certain, default="")}


def _started_from(table: Table, codec: Codec, inventory: Inventory, keep: set[str]) -> Op[str | None]:
    """The root checkpoint that a namespace of one subgraph call started from; such a namespace goes with it.

    The namespace of a call has a task id behind a colon; the state of other subgraphs outlives their
    calls. The rule is that of LangGraph's own Postgres saver.
    """
    if ":" not in inventory.at.namespace or not keep:
        return None
    head = inventory.heads[max(keep)]
    known = yield from own_segments(table, codec, inventory, head)
    if known is None:
        return None
    parents = read_metadata(codec, head, known.contents).get("parents")
    started_from = parents.get("") if isinstance(parents, dict) else None
    return started_from if isinstance(started_from, str) else None


def _rebuilt_from(table: Table, codec: Codec, inventory: Inventory, checkpoint_id: str) -> Op[set[str]]:
    """The ancestors that a checkpoint's delta channels are rebuilt from."""
    head = inventory.heads[checkpoint_id]
    known = yield from own_segments(table, codec, inventory, head)
    counters = set() if known is None else delta_counters(read_metadata(codec, head, known.contents))
    if known is None or not counters:
        return set()
    stored = read_body(codec, head, known.contents).values
    ancestors = Ancestors(table, codec, inventory.at, below=checkpoint_id)
    try:
        path = yield from ancestors.back(head, counters - stored.keys())
    except CheckpointNotFoundError:
        # The way is cut already; nothing that is left is to be cut from it.
        return set(inventory.heads)
    return {each.group.checkpoint_id for each in path}
