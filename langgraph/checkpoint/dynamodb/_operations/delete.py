"""`delete_thread`, `delete_for_runs` and `prune`: choose the checkpoints to delete. `collect` deletes them."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .. import errors, protocol
from .._format import items, pricing, schema
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from . import arguments, collect, overview, thread_item
from .error_collector import ErrorCollector
from .needs import Needs

Age = Callable[[str], bool]
"""Tells by a checkpoint's id whether it is old."""


def is_of_any_age(checkpoint_id: str) -> bool:
    """Tell that a checkpoint is old, whichever it is."""
    del checkpoint_id
    return True


def delete_thread(storage: Storage, thread_id: str) -> Op[None]:
    """Delete a thread with everything that it ever stored."""
    yield from collect.collect_all(storage, arguments.checked_id(thread_id, "thread_id"))


def delete_for_runs(storage: Storage, run_ids: Sequence[str], prefix: str = "") -> Op[None]:
    """Delete the checkpoints of runs, in every thread whose id begins with a prefix."""
    wanted = arguments.checked_ids(run_ids, "run_ids")
    indexed = [each for each in wanted if items.indexable_run_id({schema.RUN_ID: each}) is not None]
    found = yield from gather([overview.threads_of_run(storage, each) for each in indexed])
    threads = {each for some in found for each in some}

    def choose(before: Sequence[collect.Inventory]) -> collect.Choice:
        return {
            each.partition.pk: {
                name for name, head in each.heads.items() if items.text(head, schema.RUN_ID) in wanted
            }
            for each in before
        }

    collector = ErrorCollector()
    for thread_id in sorted(each for each in threads if each.startswith(prefix)):
        with collector.capture(f"thread {thread_id!r}"):
            yield from collect.collect(storage, thread_id, choose)
    collector.raise_first()


def prune(storage: Storage, thread_ids: Sequence[str], strategy: str, keep_last: int | None) -> Op[None]:
    """Keep only the newest checkpoints of each namespace of some threads, or none."""
    wanted = arguments.checked_ids(thread_ids, "thread_ids")
    count = checked_count(strategy, keep_last)
    collector = ErrorCollector()
    for thread_id in wanted:
        with collector.capture(f"thread {thread_id!r}"):
            if count == 0:
                yield from delete_thread(storage, thread_id)
            else:
                yield from prune_thread(storage, thread_id, count)
    collector.raise_first()


def prune_thread(storage: Storage, thread_id: str, count: int, is_old: Age = is_of_any_age) -> Op[None]:
    """Prune a thread: keep the newest `count` checkpoints of each namespace, and those that are not old."""

    def choose(before: Sequence[collect.Inventory]) -> collect.Choice:
        return choose_old(before, count, is_old)

    yield from collect.collect(storage, arguments.checked_id(thread_id, "thread_id"), choose)


@dataclass(frozen=True)
class Forecast:
    """The checkpoints that a prune of a thread would delete, and about its cost."""

    checkpoints: int
    write_units: int
    read_units: int


def foresee_prune(storage: Storage, thread_id: str, count: int, is_old: Age) -> Op[Forecast]:
    """Tell what a prune would delete now. Nothing is changed."""
    root = items.partition_of(arguments.checked_id(thread_id, "thread_id"))
    within = yield from thread_item.namespaces(storage, root)
    thread = yield from thread_item.read_thread(storage, root)
    before = yield from gather([collect.scan_namespace(storage, each, with_sizes=True) for each in within])
    yield from gather([collect.read_indexes(storage, each) for each in before])
    for each in before:
        each.mark_committed(thread)
    chosen = choose_old(before, count, is_old)
    writes = 0
    if thread is not None:
        ended = thread.ended(protocol.next_epoch(thread.epoch))
        writes = sum(_write_units(each, chosen[each.partition.pk], ended) for each in before)
    reads = sum(_read_units(each, chosen[each.partition.pk]) for each in before)
    # The claim, the end of the epoch and the release update the thread item, which an index may hold, too; and the
    # newest checkpoint gets the new epoch.
    return Forecast(sum(map(len, chosen.values())), writes + 7, reads + 2)


def _read_units(inventory: collect.Inventory, gone: set[str]) -> int:
    """Return about what it costs to read everything, and again without the checkpoints that are gone by then."""
    deleted = sum(inventory.sizes[items.sort_key(each)] for each in inventory.items_of(gone))
    stored = sum(inventory.sizes.values())
    return round(sum(pricing.read_units(each, consistent=True) for each in (stored, stored - deleted)))


def _write_units(inventory: collect.Inventory, gone: set[str], ended: protocol.Thread) -> int:
    """Return about what it costs to delete checkpoints, and to settle the others once the thread's epoch has ended."""
    kept = inventory.checkpoint_ids - gone
    freed = (inventory.named(gone) - inventory.named(kept)) & inventory.segments.keys()
    settled = (
        each
        for each in inventory.items_of(kept)
        if protocol.restamp(each, ended, is_next_parent=False) is not None
    )
    changed = [*inventory.items_of(gone), *settled, *(inventory.segments[each] for each in freed)]
    indexed = sum(schema.RUN_ID in inventory.heads[each] for each in gone & inventory.heads.keys())
    return sum(pricing.write_units(inventory.sizes[items.sort_key(each)]) for each in changed) + indexed


def checked_count(strategy: str, keep_last: int | None) -> int:
    if strategy == "keep_last":
        if type(keep_last) is not int or not 1 <= keep_last <= arguments.COUNT_MAX:
            raise errors.CheckpointerInputError(
                f"keep_last is {keep_last!r}; give the number of checkpoints to keep per namespace,"
                f" from 1 to {arguments.COUNT_MAX:,}"
            )
        return keep_last
    # LangGraph's Agent Server says "delete_all".
    counts = {"keep_latest": 1, "delete": 0, "delete_all": 0}
    if strategy not in counts:
        raise errors.CheckpointerInputError(
            f"strategy {strategy!r} is unknown; use 'keep_latest', 'delete', or 'keep_last' with keep_last=N"
        )
    if keep_last is not None:
        raise errors.CheckpointerInputError(
            f"keep_last={keep_last!r} goes with strategy='keep_last', not with {strategy!r}"
        )
    return counts[strategy]


def choose_old(
    before: Sequence[collect.Inventory], count: int, is_old: Age = is_of_any_age
) -> collect.Choice:
    """Choose all old checkpoints but those that are kept, and what runs from these need.

    Kept are the newest `count` of the root, and in each other namespace the newest `count` too; all that are not old;
    and all that delta channels of kept ones are rebuilt from: readers see these, and may go on from them.
    """
    root = before[0]
    started = {items.namespace_of(each): items.text(each, items.STARTED_FROM) for each in root.markers}
    keep = _kept(root, count, is_old)
    needs = Needs(root.heads[each] for each in sorted(keep))
    chosen = {root.partition.pk: root.heads.keys() - keep}
    for inventory in before[1:]:
        keep = set()
        if needs.has_call(started.get(inventory.partition.namespace)):
            before_kept = needs.before()
            needed = {each for each in sorted(inventory.shown, reverse=True) if before_kept.picks(each)}
            keep = _kept(inventory, count, is_old, needed)
        chosen[inventory.partition.pk] = inventory.heads.keys() - keep
    return chosen


def _kept(
    inventory: collect.Inventory, count: int, is_old: Age, needed: AbstractSet[str] = frozenset()
) -> set[str]:
    kept = _newest(inventory, count) | {name for name in inventory.heads if not is_old(name)} | needed
    return kept | _ancestors(inventory, kept)


def _newest(inventory: collect.Inventory, count: int) -> set[str]:
    """Return the newest that readers see, and all others above and between them: their puts may be under way."""
    newest = sorted(inventory.shown, reverse=True)[:count]
    return {each for each in inventory.heads if each >= min(newest, default="")}


def _ancestors(inventory: collect.Inventory, keep: set[str]) -> set[str]:
    """Return the checkpoints that delta channels of kept ones are rebuilt from, and all between them."""
    passed: set[tuple[str, str]] = set()
    for each in sorted(keep):
        oldest = items.text(inventory.heads[each], items.REBUILT_FROM)
        on_the_way: str | None = each
        while oldest is not None and on_the_way in inventory.heads and (on_the_way, oldest) not in passed:
            passed.add((on_the_way, oldest))
            on_the_way = (
                None if on_the_way == oldest else items.text(inventory.heads[on_the_way], items.PARENT)
            )
    return {each for each, _ in passed}
