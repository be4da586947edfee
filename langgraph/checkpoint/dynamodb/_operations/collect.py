"""Delete checkpoints: the one way in which anything is ever deleted.

A deletion takes some of a thread's checkpoints out while puts and reads go on. `protocol.py` says why this order is
safe. Every step may be repeated:

1. Claim the thread item, which keeps other deletions of the thread out.
2. Read what the thread has, make sure that the claim still holds, and choose.
3. Take their parent from kept checkpoints whose parent goes.
4. Delete the chosen heads, the newest committed one of each namespace last; then their writes.
5. End the thread's epoch. A put that relied on it finds out when it confirms, and starts again under the next one.
6. Read again what is left, strongly, also in namespaces that were registered since. Restamp what is committed with the
   new epoch. Then finalize, if the claim still holds.
7. Delete writes without a head that nobody writes to any more, and the segments that what has gone named and nothing
   left names.
8. Delete the markers of namespaces that are empty now, and release the claim; with nothing left, delete the thread
   item, unless a put has begun the next epoch, and the lock's, unless somebody holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX, RESTAMPS_AT_ONCE
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, take_inventory
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import read_segments
from langgraph.checkpoint.dynamodb._operations.thread_lock import remove_free
from langgraph.checkpoint.dynamodb._operations.threads import (
    Claim,
    acquire_claim,
    check_claim,
    end_epoch,
    finalize,
    marked_namespace,
    namespace_markers,
    release,
    unregister_namespace,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import Thread

Choice = Mapping[str, set[str]]
"""The checkpoints of a thread that go, by partition key."""

Chooser = Callable[[Sequence[Inventory]], Choice]
"""Decides which checkpoints of a thread go, given what it has in each namespace, the root's first."""


@dataclass
class _Namespace:
    """What a deletion knows of one namespace."""

    before: Inventory
    """What was there when the deletion chose."""
    marker: Item | None
    """`None` for the root."""
    gone: set[str]
    """The checkpoints that it takes."""
    after: Inventory = field(init=False)
    """What is there once the epoch has ended."""
    freed: set[bytes] = field(default_factory=set)
    """The segments that it deletes."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left. A segment that nothing names yet keeps the marker: a put may be under way."""
        return not (self.after.checkpoint_ids or self.after.segments.keys() - self.freed)


def collect(table: Table, thread_id: str, choose: Chooser) -> Op[None]:
    """Delete chosen checkpoints of a thread, with everything that only they need."""
    now = table.clock()

    def unneeded(each: _Namespace) -> set[bytes]:
        before = each.before
        orphans = {name for name, item in before.segments.items() if protocol.is_orphan(item, now)}
        return before.named(each.gone) | (orphans - before.named(before.checkpoint_ids))

    yield from _collect(table, thread_id, choose, unneeded)


def collect_all(table: Table, thread_id: str) -> Op[None]:
    """Delete everything of a thread. What its items name needs no reading then."""

    def everything(before: Sequence[Inventory]) -> Choice:
        return {each.at.pk: each.checkpoint_ids for each in before}

    def unneeded(each: _Namespace) -> set[bytes]:
        return set(each.before.segments)

    yield from _collect(table, thread_id, everything, unneeded, with_indexes=False)


def _collect(
    table: Table,
    thread_id: str,
    choose: Chooser,
    unneeded: Callable[[_Namespace], set[bytes]],
    *,
    with_indexes: bool = True,
) -> Op[None]:
    """Go through the eight steps, given what decides over checkpoints and what over segments."""
    root, token = items.partition(thread_id), table.rng.randbytes(8)
    try:
        claim = yield from acquire_claim(table, root, token)
        is_empty = yield from _delete(table, claim, choose, unneeded, with_indexes=with_indexes)
        yield from release(table, root, token, is_empty=is_empty)
    except GeneratorExit:
        # Dropped: there is nobody any more who would make a request.
        raise
    except BaseException:
        # Failed or interrupted: whoever repeats the deletion need not wait for the claim to run out.
        with suppress(Exception):
            yield from release(table, root, token, is_empty=False)
        raise
    finally:
        table.memory.forget(root.pk)


def _delete(
    table: Table,
    claim: Claim,
    choose: Chooser,
    unneeded: Callable[[_Namespace], set[bytes]],
    *,
    with_indexes: bool,
) -> Op[bool]:
    """Delete under a claim; return whether nothing is left of the thread."""
    namespaces = yield from _read_and_choose(table, claim, choose, with_indexes=with_indexes)
    yield from _delete_checkpoints(table, namespaces)
    thread = yield from end_epoch(table, claim)
    read_at = table.clock()
    since = yield from _read_again(table, claim, namespaces)
    left = [*(each.after for each in namespaces), *since]
    yield from _restamp(table, left, thread)
    yield from finalize(table, claim, thread, is_empty=not any(each.heads for each in left))
    yield from gather([_delete_abandoned(table, each, read_at) for each in namespaces])
    for each in namespaces:
        named = each.after.named(each.after.checkpoint_ids)
        each.freed = (unneeded(each) - named) & each.before.segments.keys()
    yield from table.batch_write(
        deletes=[each.before.segments[name] for each in namespaces for name in sorted(each.freed)]
    )
    empty = [each.marker for each in namespaces if each.is_empty and each.marker is not None]
    yield from gather([unregister_namespace(table, each) for each in empty])
    is_empty = not since and all(each.is_empty for each in namespaces)
    lock = namespaces[0].after.lock
    if is_empty and lock is not None:
        yield from remove_free(table, lock)
    return is_empty


# The steps


def _read_and_choose(
    table: Table, claim: Claim, choose: Chooser, *, with_indexes: bool
) -> Op[list[_Namespace]]:
    markers = yield from namespace_markers(table, claim.root)
    within = [claim.root, *(marked_namespace(claim.root, each) for each in markers)]
    before = yield from gather([take_inventory(table, at, with_indexes=with_indexes) for at in within])
    yield from check_claim(table, claim)
    for each in before:
        each.mark_committed(claim.thread)
    if not any(each.heads for each in before):
        yield from look_for_other_savers(table, claim.root)
    gone = choose(before)
    return [
        _Namespace(each, marker, gone[each.at.pk])
        for each, marker in zip(before, (None, *markers), strict=True)
    ]


def _read_again(table: Table, claim: Claim, namespaces: Sequence[_Namespace]) -> Op[list[Inventory]]:
    """Read what is left in each namespace; return what is in namespaces that were registered since."""
    after = yield from gather([take_inventory(table, each.before.at) for each in namespaces])
    for each, inventory in zip(namespaces, after, strict=True):
        each.after = inventory
    known = {each.before.at for each in namespaces}
    registered = {marked_namespace(claim.root, each) for each in after[0].markers}
    new = sorted(registered - known, key=lambda at: at.pk)
    return (yield from gather([take_inventory(table, at) for at in new]))


def _restamp(table: Table, left: Iterable[Inventory], thread: Thread) -> Op[None]:
    """Give what is committed the new epoch. So the next put goes on from it, and damage to it is told."""
    stale = [
        (each, item)
        for each in left
        for item in each.items_of(sorted(each.checkpoint_ids))
        if protocol.restamp(item, thread) is not None
    ]
    for start in range(0, len(stale), RESTAMPS_AT_ONCE):
        some = stale[start : start + RESTAMPS_AT_ONCE]
        yield from gather([_restamp_item(table, each, item, thread) for each, item in some])


def _restamp_item(table: Table, inventory: Inventory, item: Item, thread: Thread) -> Op[None]:
    """Restamp an item, also one that has taken its place since it was read.

    A put that stands still may replace its own head, or another process's, though its epoch has ended. The deletion
    has counted on the head that was there, so it keeps what the new one needs.
    """
    for _ in range(ATTEMPTS_MAX):
        change = protocol.restamp(item, thread)
        if change is None:
            return
        other = yield from table.try_update(items.key_of(item), change)
        if not other:
            return
        item = other
        inventory.add(item)
        ids = items.named_ids([item])
        yield from read_segments(table, None, inventory.at.pk, ids, inventory.indexes)
    msg = f"{items.name_of(item)} was stored {ATTEMPTS_MAX} times while its thread was being deleted. Retry the call."
    raise ThreadBusyError(msg)


def _delete_checkpoints(table: Table, namespaces: Sequence[_Namespace]) -> Op[None]:
    # Also what stays: it is remembered under the epoch that ends now, and a put that relied on it would be made twice.
    for each in namespaces:
        for checkpoint_id in each.before.checkpoint_ids:
            table.memory.forget((each.before.at.pk, checkpoint_id))
    yield from gather([_cut_parents(table, each) for each in namespaces])
    yield from _delete_heads(table, namespaces)
    writes = (each.before.writes.get(name, ()) for each in namespaces for name in sorted(each.gone))
    yield from table.batch_write(deletes=[item for some in writes for item in some])


def _delete_abandoned(table: Table, namespace: _Namespace, read_at: float) -> Op[None]:
    """Delete writes that were abandoned when they were read, unless somebody has written to them since.

    Their age is counted up to the reading and not up to now: their head may have come since.
    """
    after = namespace.after
    for checkpoint_id in sorted(
        abandoned_writes(namespace.before, read_at) & abandoned_writes(after, read_at)
    ):
        writes = after.writes.pop(checkpoint_id)
        kept = yield from gather([_delete_untouched(table, item) for item in writes])
        if any(kept):
            after.writes[checkpoint_id] = [
                item for item, is_kept in zip(writes, kept, strict=True) if is_kept
            ]
        else:
            namespace.gone.add(checkpoint_id)


def _delete_untouched(table: Table, writes: Item) -> Op[bool]:
    """Delete a task's writes; return whether they are still there."""
    other = yield from table.try_delete(items.key_of(writes), protocol.delete_untouched(writes))
    return bool(other)


def abandoned_writes(inventory: Inventory, now: float) -> set[str]:
    """Return checkpoints that have writes but no head, and will have none: nothing was written for long."""
    return {
        name
        for name, writes in inventory.writes.items()
        if name not in inventory.heads and all(protocol.is_orphan(each, now) for each in writes)
    }


def _cut_parents(table: Table, namespace: _Namespace) -> Op[None]:
    """Take their parent from kept checkpoints whose parent goes.

    One with delta channels that are rebuilt from its ancestors keeps it: who reads them must find the way cut, and not
    a shorter one.
    """
    for checkpoint_id, head in namespace.before.heads.items():
        if checkpoint_id in namespace.gone or items.text(head, items.PARENT) not in namespace.gone:
            continue
        if items.text(head, items.REBUILT_FROM) is None:
            yield from table.try_update(items.key_of(head), protocol.cut_parent())


def _delete_heads(table: Table, namespaces: Sequence[_Namespace]) -> Op[None]:
    """Delete heads: the newest committed one of each namespace after all others, and then those above it one by one.

    A deletion that dies half-way then leaves the newest state readable, or none; never an older one. Above the newest
    committed head there are few, and only such as readers may pass over.
    """
    others: list[Item] = []
    last: list[list[Item]] = []
    for each in namespaces:
        heads = each.before.heads
        chosen = sorted(each.gone & heads.keys())
        newest = max(each.before.committed & set(chosen) or chosen, default="")
        others += [heads[name] for name in chosen if name < newest]
        last.append([heads[name] for name in chosen if name >= newest])
    yield from table.batch_write(deletes=others)
    for one_of_each in zip_longest(*last):
        yield from table.batch_write(deletes=filter(None, one_of_each))
