"""Taking checkpoints out of a thread: the one way in which anything is ever deleted.

A collection takes some of a thread's checkpoints out while puts and reads go on. Its order makes that
safe, and every step may be repeated:

1. Claim the thread item, which keeps other collections of the thread out.
2. Read what the thread has, make sure that the claim still holds, and choose.
3. Cut kept checkpoints off parents that go.
4. Delete the chosen heads, of each namespace the newest that counts last; then their writes.
5. End the thread's epoch. A put that relied on it finds out when it looks, and starts again under the next one.
6. Read again what is left, strongly, also in namespaces that were entered since. Of the heads that count, list all but
   the newest of each namespace in its roster, and give that one the new epoch. Then settle, if the claim still holds.
7. Delete writes that nobody will find any more, and the segments that what has gone named and nothing left names.
8. Delete the entries of namespaces that are empty now, and release the claim; with nothing left, delete
   the thread item, unless a put has begun the next epoch, and the lock's, unless somebody holds it.

A head *counts* if no collection can be about to delete a segment of it: it has the thread's epoch, or one that ended
without a settlement, or it is in the roster of its namespace, as the last settled collection read it. Any other head
was never acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import TypeVar

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._format.schema import (
    PARTITION_KEY,
)
from langgraph.checkpoint.dynamodb._operations.adopt import adopt_checkpoints, adopt_entry, adopt_segments
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, rebuilt_from, take_inventory
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.thread_lock import remove_free
from langgraph.checkpoint.dynamodb._operations.threads import (
    Claim,
    adopt_thread,
    check_claim,
    end_epoch,
    entered,
    leave_namespace,
    namespace_entries,
    release,
    settle,
    take_claim,
)
from langgraph.checkpoint.dynamodb._operations.vouch import vouch
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather

K = TypeVar("K")

Choice = dict[str, set[str]]
"""The checkpoints of a thread that go, by partition key."""

Chooser = Callable[[Sequence[Inventory]], Choice]
"""Decides which checkpoints of a thread go, given what it has in each namespace, the root's first."""


def collect(table: Table, thread_id: str, choose: Chooser, *, adopt: bool = False) -> Op[None]:
    """Take chosen checkpoints out of a thread, with everything that only they need.

    With `adopt`, what is left gets the saver's ttl where it would live for longer.
    """

    def unneeded(before: Inventory, after: Inventory, gone: set[str]) -> set[bytes]:
        freed = before.named(gone) | (long_ago(table, before.segments) - before.named(before.checkpoint_ids))
        return freed - after.named(after.checkpoint_ids)

    yield from _collect(table, thread_id, choose, unneeded, adopt=adopt and table.ttl_seconds is not None)


def collect_all(table: Table, thread_id: str) -> Op[None]:
    """Take everything out of a thread. What its items name needs no reading then."""

    def everything(before: Sequence[Inventory]) -> Choice:
        return {each.at.pk: each.checkpoint_ids for each in before}

    def unneeded(before: Inventory, after: Inventory, gone: set[str]) -> set[bytes]:
        del gone
        return before.segments.keys() - after.named(after.checkpoint_ids)

    yield from _collect(table, thread_id, everything, unneeded, with_indexes=False)


def _collect(
    table: Table,
    thread_id: str,
    choose: Chooser,
    unneeded: Callable[[Inventory, Inventory, set[str]], set[bytes]],
    *,
    with_indexes: bool = True,
    adopt: bool = False,
) -> Op[None]:
    """The eight steps, given what decides over checkpoints and what over segments."""
    root, token = items.partition(thread_id), table.rng.randbytes(8)
    try:
        claim = yield from take_claim(table, root, token)
        yield from _collect_claimed(table, claim, choose, unneeded, with_indexes=with_indexes, adopt=adopt)
    except GeneratorExit:
        # Dropped: there is nobody any more who would make a request.
        raise
    except BaseException:
        # Failed or interrupted: whoever repeats the deletion need not wait for the claim to run out.
        with suppress(Exception):
            yield from release(table, root, token, nothing_left=False)
        raise
    finally:
        table.memory.forget(root.pk)


def _collect_claimed(
    table: Table,
    claim: Claim,
    choose: Chooser,
    unneeded: Callable[[Inventory, Inventory, set[str]], set[bytes]],
    *,
    with_indexes: bool,
    adopt: bool,
) -> Op[None]:
    entries = yield from namespace_entries(table, claim.root)
    within = [claim.root, *(entered(claim.root, entry) for entry in entries)]
    before = yield from gather([take_inventory(table, at, with_indexes=with_indexes) for at in within])
    yield from check_claim(table, claim)
    for each in before:
        each.count(claim.epochs)
    if not any(each.heads for each in before):
        yield from look_for_other_savers(table, claim.root)
    gone = choose(before)
    yield from _delete_checkpoints(table, before, gone)
    epoch = yield from end_epoch(table, claim)
    after = yield from gather([take_inventory(table, at) for at in within])
    known = [entered(claim.root, entry) for entry in after[0].entries]
    since = yield from gather([take_inventory(table, at) for at in known if at not in within])
    for each in (*after, *since):
        each.count(claim.epochs | {epoch})
    if adopt:
        yield from gather([adopt_checkpoints(table, each, epoch) for each in (*after, *since)])
    yield from gather([vouch(table, each, claim, epoch) for each in (*after, *since)])
    begin = any(each.heads for each in (*after, *since))
    yield from settle(table, claim, begin=begin and not adopt)
    pairs = list(zip(before, after, strict=True))
    abandoned = yield from gather([_delete_abandoned(table, old, new) for old, new in pairs])
    freed = [
        unneeded(old, new, gone[old.at.pk] | also) & old.segments.keys()
        for (old, new), also in zip(pairs, abandoned, strict=True)
    ]
    yield from table.batch_write(
        deletes=[old.segments[each] for old, ids in zip(before, freed, strict=True) for each in sorted(ids)]
    )
    if adopt:
        yield from gather([adopt_segments(table, each, epoch) for each in (*after, *since)])
        namespaces = zip(entries, after[1:], freed[1:], strict=True)
        yield from gather([adopt_entry(table, entry, new, epoch, ids) for entry, new, ids in namespaces])
        yield from adopt_thread(table, claim, begin=begin)
    # Segments that nothing names yet keep the namespace's entry, or nobody would find them again.
    empty = [
        not (new.checkpoint_ids or new.segments.keys() - ids) for new, ids in zip(after, freed, strict=True)
    ]
    left = [entry for entry, is_empty in zip(entries, empty[1:], strict=True) if is_empty]
    yield from gather([leave_namespace(table, entry) for entry in left])
    nothing_left = all(empty) and not since
    if nothing_left and after[0].lock is not None:
        yield from remove_free(table, after[0].lock)
    yield from release(table, claim.root, claim.token, nothing_left=nothing_left)


# The steps


def _delete_checkpoints(table: Table, before: Sequence[Inventory], gone: Choice) -> Op[None]:
    # Also what stays: it is remembered under the epoch that ends now, and a put that relied on it would be made twice.
    for each in before:
        for checkpoint_id in each.checkpoint_ids:
            table.memory.forget((each.at.pk, checkpoint_id))
    yield from gather([_orphan(table, each, gone[each.at.pk]) for each in before])
    yield from _delete_heads(table, before, gone)
    yield from table.batch_write(
        deletes=[
            item for each in before for name in sorted(gone[each.at.pk]) for item in each.writes.get(name, ())
        ]
    )


def _delete_abandoned(table: Table, before: Inventory, after: Inventory) -> Op[set[str]]:
    """Delete abandoned writes that nobody has written to since they were read; return whose they are."""
    gone: set[str] = set()
    for checkpoint_id in sorted(abandoned_writes(table, before) & abandoned_writes(table, after)):
        writes = after.writes.pop(checkpoint_id)
        deleted = yield from gather([_delete_unchanged(table, item) for item in writes])
        left = [item for item, is_gone in zip(writes, deleted, strict=True) if not is_gone]
        if left:
            after.writes[checkpoint_id] = left
        else:
            gone.add(checkpoint_id)
    return gone


def _delete_unchanged(table: Table, writes: Item) -> Op[bool]:
    names, at = {"#created": items.CREATED_AT}, items.key(items.partition_key(writes), items.sort_key(writes))
    created_at = writes.get(items.CREATED_AT)
    if created_at is None:
        return (yield from table.delete_if(at, "attribute_not_exists(#created)", names, {}))
    return (yield from table.delete_if(at, "#created = :created", names, {":created": created_at}))


def abandoned_writes(table: Table, inventory: Inventory) -> set[str]:
    """Checkpoints that have writes but no head, and will have none: nothing was written for long."""
    return {
        each
        for each, writes in inventory.writes.items()
        if each not in inventory.heads and len(long_ago(table, dict(enumerate(writes)))) == len(writes)
    }


def long_ago(table: Table, some: Mapping[K, Item]) -> set[K]:
    """The items that were written so long ago that nothing can be under way with them."""
    oldest = table.clock() - ORPHAN_SECONDS
    return {each for each, item in some.items() if (items.number(item, items.CREATED_AT) or 0) < oldest}


def _orphan(table: Table, inventory: Inventory, gone: set[str]) -> Op[None]:
    """Take their parent from kept checkpoints whose parent goes.

    One with delta channels that are rebuilt from its ancestors keeps it: who reads them is to find the way
    cut, and not a shorter one.
    """
    for checkpoint_id, head in inventory.heads.items():
        if checkpoint_id in gone or items.text(head, items.PARENT) not in gone:
            continue
        if rebuilt_from(head) is None:
            names = {"#parent": items.PARENT, "#pk": PARTITION_KEY}
            yield from table.update_if(head, "REMOVE #parent", "attribute_exists(#pk)", names, {})


def _delete_heads(table: Table, before: Sequence[Inventory], gone: Choice) -> Op[None]:
    """Delete heads, the newest that counts of each namespace, and then those above it, after all others.

    A deletion that dies half-way then leaves the newest state readable, or none; never an older one. Above the
    newest head that counts there are few, and only such as readers may pass over.
    """
    others: list[Item] = []
    last: list[list[Item]] = []
    for inventory in before:
        chosen = sorted(gone[inventory.at.pk] & inventory.heads.keys())
        newest = max(inventory.counted & set(chosen) or chosen, default="")
        others += [inventory.heads[each] for each in chosen if each < newest]
        last.append([inventory.heads[each] for each in chosen if each >= newest])
    yield from table.batch_write(deletes=others)
    for one_of_each in zip_longest(*last):
        yield from table.batch_write(deletes=filter(None, one_of_each))
