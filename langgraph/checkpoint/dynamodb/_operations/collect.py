"""Delete checkpoints. Every deletion of a thread's items runs through here.

A deletion removes some of a thread's checkpoints while puts and reads continue. `protocol.py` says why this order is
safe. Every step may be repeated:

1. Claim the thread item, which keeps other deletions of the thread out.
2. Read the thread's items, make sure that the claim still holds, and choose the checkpoints to delete.
3. Remove the link to the parent from kept checkpoints whose parent is deleted.
4. Delete the chosen heads, the newest that is shown of each namespace last; then their writes. A thread with a ttl may
   begin anew meanwhile, so what it has is deleted as it was read.
5. End the thread's epoch. A put that relied on it finds out when it confirms, and starts again under the next one.
6. Read again what is left, strongly consistent, also in namespaces that were registered since. If the claim still
   holds, no other deletion can have passed over what was read: settle committed items that no deletion has settled.
   Then finalize, if the claim still holds.
7. Delete abandoned writes, and the segments that deleted items named and no remaining item names.
8. Delete the markers of namespaces that are empty now, and release the claim. If the thread is empty, delete the thread
   item, unless a put has begun the next epoch, and the lock item, if it was released.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest

from .. import errors, protocol
from .._format import items, pricing, schema, segments
from .._format.items import Item, Partition
from .._format.limits import ATTEMPTS_MAX, BATCH_WRITE_ITEMS_MAX, RESTAMPS_AT_ONCE
from .._runtime.requests import Query
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from ..protocol import Change, Thread, is_reusable
from . import needs, other_savers, overview, thread_item, thread_lock
from .reads import LoadedSegments
from .thread_item import Claim

# The inventory of a namespace, as a deletion reads it

# Everything but the data of segments, which is most of a thread's bytes.
_ATTRIBUTES = (
    schema.PARTITION_KEY,
    schema.SORT_KEY,
    schema.RUN_ID,
    schema.TTL_ATTRIBUTE,
    items.FORMAT,
    items.PARENT,
    items.STARTED_FROM,
    items.REBUILT_FROM,
    items.CREATED_AT,
    items.REGISTERED,
    schema.ALIVE_UNTIL,
    items.SHOWN_UNTIL,
    items.TTL_SECONDS,
    items.METADATA,
    *items.EPOCHS,
    *items.PARTS,
)


@dataclass
class Inventory:
    """All items of one namespace, without the data of segments."""

    partition: Partition
    heads: dict[str, Item] = field(default_factory=dict)
    writes: dict[str, list[Item]] = field(default_factory=dict)
    segments: dict[bytes, Item] = field(default_factory=dict)
    markers: list[Item] = field(default_factory=list)
    lock: Item | None = None
    committed: AbstractSet[str] = frozenset()
    """The checkpoints whose heads are committed."""
    read_at: float = 0.0
    """When the items were read, in epoch seconds."""
    indexes: LoadedSegments = field(init=False)
    sizes: dict[str, int] = field(default_factory=dict)
    """The size of each item in bytes, by its sort key, if it was asked for."""

    def __post_init__(self) -> None:
        """Start without index segments."""
        self.indexes = LoadedSegments(self.partition.pk)

    def add(self, item: Item) -> None:
        """Add an item of the namespace."""
        sk = items.sort_key(item)
        if sk.startswith(items.SEGMENTS):
            self.segments[items.segment_id_of(item)] = item
        elif sk.startswith(items.CHECKPOINTS):
            checkpoint_id = items.checkpoint_id_of(item)
            if items.is_head(item):
                self.heads[checkpoint_id] = item
            else:
                self.writes.setdefault(checkpoint_id, []).append(item)
        elif sk.startswith(items.NAMESPACES):
            self.markers.append(item)
        elif sk == items.LOCK:
            self.lock = item

    def items_of(self, checkpoint_ids: Iterable[str]) -> list[Item]:
        """Return the heads and writes items of some checkpoints."""
        found: list[Item] = []
        for each in checkpoint_ids:
            if each in self.heads:
                found.append(self.heads[each])
            found += self.writes.get(each, ())
        return found

    def named(self, checkpoint_ids: Iterable[str]) -> set[bytes]:
        """Return the ids of all segments that the items of some checkpoints name, directly or by index segments."""
        return segments.reach(items.named_ids(self.items_of(checkpoint_ids)), self.indexes.contents)

    def mark_committed(self, thread: Thread | None) -> None:
        """Set `committed` to the checkpoints whose heads are committed, going by the thread."""
        self.committed = {
            name for name, head in self.heads.items() if protocol.is_committed(head, items.BODY, thread)
        }

    @property
    def shown(self) -> set[str]:
        """The committed checkpoints that had not expired for readers."""
        return {each for each in self.committed if items.is_shown(self.heads[each], self.read_at)}

    @property
    def checkpoint_ids(self) -> set[str]:
        """The ids of all checkpoints with a head or writes."""
        return self.heads.keys() | self.writes.keys()


def scan_namespace(storage: Storage, partition: Partition, *, with_sizes: bool = False) -> Op[Inventory]:
    """Read the items of a namespace. For sizes, it transfers all data."""
    inventory = Inventory(partition, read_at=storage.clock())
    query = Query(partition.pk, attributes=() if with_sizes else _ATTRIBUTES)
    while not query.done:
        for item in (yield from storage.table.query_page(query)):
            if with_sizes:
                inventory.sizes[items.sort_key(item)] = pricing.item_bytes(item)
                item.pop(items.DATA, None)
            inventory.add(item)
    return inventory


def read_indexes(storage: Storage, inventory: Inventory) -> Op[None]:
    """Read the index segments that the items of a namespace name; `Inventory.named` needs them."""
    for head in inventory.heads.values():
        items.check_format(head)
    ids = items.named_ids(inventory.items_of(inventory.checkpoint_ids))
    for each in (yield from inventory.indexes.read_indexes(storage, ids)):
        # It has expired since the namespace was read, and DynamoDB has removed it.
        inventory.segments.pop(each, None)


# The deletion

Choice = Mapping[str, set[str]]
"""The checkpoints of a thread to delete, by partition key."""

Chooser = Callable[[Sequence[Inventory]], Choice]
"""Decides which checkpoints of a thread to delete, given the inventories of its namespaces, the root's first."""


@dataclass
class _Namespace:
    """The state of a deletion in one namespace."""

    before: Inventory
    """The items when the deletion chose."""
    marker: Item | None
    """`None` for the root."""
    gone: set[str]
    """The checkpoints to delete."""
    after: Inventory = field(init=False)
    """The items once the epoch has ended."""
    freed: set[bytes] = field(default_factory=set)
    """The segments to delete."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left. A segment that nothing names keeps the marker: a put may be about to name it."""
        return not (self.after.checkpoint_ids or self.after.segments.keys() - self.freed)


def collect(storage: Storage, thread_id: str, choose: Chooser) -> Op[None]:
    """Delete chosen checkpoints of a thread, with their writes and the segments that only they name."""
    now = storage.clock()

    def unneeded(each: _Namespace) -> set[bytes]:
        before = each.before
        orphans = {name for name, item in before.segments.items() if protocol.is_orphan(item, now)}
        return before.named(each.gone) | (orphans - before.named(before.checkpoint_ids))

    yield from _collect(storage, thread_id, choose, unneeded)


def collect_all(storage: Storage, thread_id: str) -> Op[None]:
    """Delete everything of a thread. There is no need to read which segments its items name."""

    def everything(before: Sequence[Inventory]) -> Choice:
        return {each.partition.pk: each.checkpoint_ids for each in before}

    def unneeded(each: _Namespace) -> set[bytes]:
        return set(each.before.segments)

    yield from _collect(storage, thread_id, everything, unneeded, deletes_all=True)


def _collect(
    storage: Storage,
    thread_id: str,
    choose: Chooser,
    unneeded: Callable[[_Namespace], set[bytes]],
    *,
    deletes_all: bool = False,
) -> Op[None]:
    """Run the eight steps, given functions that choose the checkpoints and the segments to delete."""
    root, token = items.partition_of(thread_id), storage.rng.randbytes(8)
    try:
        for _ in range(ATTEMPTS_MAX):
            claim = yield from thread_item.acquire_claim(storage, root, token, resets=deletes_all)
            thread_item.check_pinned(storage, claim.thread.epoch)
            try:
                is_empty = yield from _delete(storage, claim, choose, unneeded, with_indexes=not deletes_all)
            except thread_item.BegunAnewError:
                continue
            yield from thread_item.release(storage, root, token, is_empty=is_empty)
            return
        raise errors.ThreadBusyError(
            f"thread {thread_id!r} began anew {ATTEMPTS_MAX} times while it was being deleted; retry the call"
        )
    except GeneratorExit:
        # The generator was closed: no driver is left to make requests.
        raise
    except BaseException as error:
        # Failed or interrupted: release the claim, so that a retry does not have to wait until it runs out.
        with suppress(Exception):
            yield from thread_item.release(storage.after(error), root, token, is_empty=False)
        raise
    finally:
        storage.cache.forget(root.pk)


def _delete(
    storage: Storage,
    claim: Claim,
    choose: Chooser,
    unneeded: Callable[[_Namespace], set[bytes]],
    *,
    with_indexes: bool,
) -> Op[bool]:
    """Delete under a claim; return whether the thread is empty now."""
    namespaces = yield from _read_and_choose(storage, claim, choose)
    has_gone = any(each.gone for each in namespaces)
    loose = (
        namespaces if has_gone else [each for each in namespaces if _has_loose(each.before, claim.claimed_at)]
    )
    if with_indexes:
        yield from gather([read_indexes(storage, each.before) for each in loose])
    has_abandoned = any(abandoned_writes(each.before, claim.claimed_at) for each in namespaces)
    is_empty = not any(each.before.heads for each in namespaces)
    has_empty = any(
        each.marker and not (each.before.checkpoint_ids or each.before.segments) for each in namespaces
    )
    if not (has_gone or has_abandoned or is_empty or has_empty or any(map(unneeded, loose))):
        return False
    yield from _delete_checkpoints(storage, claim, namespaces)
    thread = yield from thread_item.end_epoch(storage, claim)
    read_at = storage.clock()
    since = yield from _read_again(storage, claim, namespaces)
    left = [*(each.after for each in namespaces), *since]
    left[0].mark_committed(thread)
    yield from thread_item.check_claim(storage, claim, has_deleted=True)
    yield from _restamp(storage, claim, left, thread)
    yield from thread_item.finalize(storage, claim, thread, is_empty=not any(each.heads for each in left))
    yield from gather([_delete_abandoned(storage, each, read_at) for each in namespaces])
    for each in namespaces:
        named = each.after.named(each.after.checkpoint_ids)
        each.freed = (unneeded(each) - named) & each.before.segments.keys()
        _check_freed(each)
    yield from storage.table.batch_write(
        deletes=[each.before.segments[name] for each in namespaces for name in sorted(each.freed)]
    )
    empty = [each.marker for each in namespaces if each.is_empty and each.marker is not None]
    yield from gather([thread_item.unregister_namespace(storage, each) for each in empty])
    is_empty = not since and all(each.is_empty for each in namespaces)
    lock = namespaces[0].after.lock
    if is_empty and lock is not None:
        yield from thread_lock.remove_free(storage, lock)
    return is_empty


def _check_freed(namespace: _Namespace) -> None:
    """Check that no item that was there once the epoch had ended names a segment that is to be deleted."""
    after = namespace.after
    named = segments.reach(items.named_ids(after.items_of(after.checkpoint_ids)), after.indexes.contents)
    unread = {
        each for each in named if segments.is_index(each)
    } & after.segments.keys() - after.indexes.contents.keys()
    loose = unread | (namespace.freed & named)
    protocol.check_rule("a deletion may remove segments that nothing names once the epoch has ended", loose)


# The steps


def _has_loose(before: Inventory, now: float) -> bool:
    """Tell whether a namespace has segments that are old, and that no item names itself."""
    named = items.named_ids(before.items_of(before.checkpoint_ids))
    return any(protocol.is_orphan(each, now) for name, each in before.segments.items() if name not in named)


def _read_and_choose(storage: Storage, claim: Claim, choose: Chooser) -> Op[list[_Namespace]]:
    markers = yield from thread_item.namespace_markers(storage, claim.root)
    within = [claim.root, *(thread_item.marked_namespace(claim.root, each) for each in markers)]
    before = yield from gather([scan_namespace(storage, partition) for partition in within])
    yield from thread_item.check_claim(storage, claim)
    for each in before:
        each.mark_committed(claim.thread)
    if not any(each.heads for each in before):
        yield from other_savers.look_for_other_savers(storage, claim.root)
    gone = choose(before)
    return [
        _Namespace(each, marker, gone[each.partition.pk])
        for each, marker in zip(before, (None, *markers), strict=True)
    ]


def _read_again(storage: Storage, claim: Claim, namespaces: Sequence[_Namespace]) -> Op[list[Inventory]]:
    """Read each namespace again; return the inventories of namespaces that were registered since."""
    after = yield from gather([_scan_with_indexes(storage, each.before.partition) for each in namespaces])
    for each, inventory in zip(namespaces, after, strict=True):
        each.after = inventory
    known = {each.before.partition for each in namespaces}
    registered = {thread_item.marked_namespace(claim.root, each) for each in after[0].markers}
    new = sorted(registered - known, key=lambda partition: partition.pk)
    return (yield from gather([_scan_with_indexes(storage, partition) for partition in new]))


def _scan_with_indexes(storage: Storage, partition: Partition) -> Op[Inventory]:
    inventory = yield from scan_namespace(storage, partition)
    yield from read_indexes(storage, inventory)
    return inventory


def _restamp(storage: Storage, claim: Claim, left: Sequence[Inventory], thread: Thread) -> Op[None]:
    """Settle committed items, once in their lives, so that readers report damage to them.

    The newest checkpoint of the root gets the thread's epoch each time: the next put builds on it.
    """
    newest = max(left[0].committed, default=None)

    def change_of(item: Item) -> Change | None:
        is_newest = (
            items.partition_key(item) == left[0].partition.pk and items.checkpoint_id_of(item) == newest
        )
        return protocol.restamp(item, thread, is_next_parent=is_newest and items.is_head(item))

    stale = [
        (each, item)
        for each in left
        for item in each.items_of(sorted(each.checkpoint_ids))
        if change_of(item) is not None
    ]
    for start in range(0, len(stale), RESTAMPS_AT_ONCE):
        some = stale[start : start + RESTAMPS_AT_ONCE]
        yield from gather([_restamp_item(storage, claim, each, item, change_of) for each, item in some])


def _restamp_item(
    storage: Storage,
    claim: Claim,
    inventory: Inventory,
    item: Item,
    change_of: Callable[[Item], Change | None],
) -> Op[None]:
    """Restamp an item, or the item that has replaced it since it was read.

    A slow put may replace its own head, or another process's, although its epoch has ended. The deletion has relied on
    the replaced head, so it keeps the segments that the new one names.
    """
    for _ in range(ATTEMPTS_MAX):
        change = change_of(item)
        if change is None:
            return
        other = yield from storage.table.try_update(items.key_of(item), change)
        if not other:
            return
        item = other
        yield from thread_item.check_claim(storage, claim, has_deleted=True)
        inventory.add(item)
        ids = items.named_ids([item])
        yield from inventory.indexes.read_indexes(storage, ids)
    raise errors.ThreadBusyError(
        f"{items.name_of(item)} was stored {ATTEMPTS_MAX} times while its thread was being deleted; retry the call"
    )


def _delete_checkpoints(storage: Storage, claim: Claim, namespaces: Sequence[_Namespace]) -> Op[None]:
    # Kept checkpoints too: they are cached under the epoch that ends now, so a put that reused them would run twice.
    for each in namespaces:
        for checkpoint_id in each.before.checkpoint_ids:
            storage.cache.forget((each.before.partition.pk, checkpoint_id))
    yield from gather([_cut_parents(storage, each) for each in namespaces])
    # The root's first: a checkpoint of it that is there has what a run from it needs in the others.
    for some in (namespaces[:1], namespaces[1:]):
        yield from _delete_heads(storage, claim, some)
    writes = (each.before.writes.get(name, ()) for each in namespaces for name in sorted(each.gone))
    yield from _delete_items(storage, claim, [item for some in writes for item in some])


def _delete_items(storage: Storage, claim: Claim, some: Sequence[Item]) -> Op[None]:
    """Delete heads or writes. If the thread can begin anew, its next life may have stored them again by now."""
    if claim.thread.can_die:
        yield from gather([_delete_item(storage, claim, each) for each in some])
    else:
        yield from storage.table.batch_write(deletes=some)


def _delete_item(storage: Storage, claim: Claim, item: Item) -> Op[None]:
    """Delete an item as it was read, or as it is now if the thread has not begun anew."""
    for _ in range(ATTEMPTS_MAX):
        other = yield from storage.table.try_delete(items.key_of(item), protocol.delete_as_read(item))
        if not other:
            return
        item = other
        found = yield from storage.table.get(claim.root.pk, items.THREAD)
        if found is None or not is_reusable(Thread.parse_for_deletion(found).epoch, claim.thread.epoch):
            raise thread_item.overtaken(storage, claim, found or {})
    raise errors.ThreadBusyError(
        f"{items.name_of(item)} was stored {ATTEMPTS_MAX} times while it was being deleted; retry the call"
    )


def _delete_abandoned(storage: Storage, namespace: _Namespace, read_at: float) -> Op[None]:
    """Delete writes that were abandoned when they were read, unless they have been changed since.

    Their age is taken at the time of the read, not now: their head may have been stored since.
    """
    after = namespace.after
    for checkpoint_id in sorted(
        abandoned_writes(namespace.before, read_at) & abandoned_writes(after, read_at)
    ):
        writes = after.writes.pop(checkpoint_id)
        kept = yield from gather([_delete_untouched(storage, item) for item in writes])
        if any(kept):
            after.writes[checkpoint_id] = [
                item for item, is_kept in zip(writes, kept, strict=True) if is_kept
            ]
        else:
            namespace.gone.add(checkpoint_id)


def _delete_untouched(storage: Storage, writes: Item) -> Op[bool]:
    """Delete a task's writes unless they have changed; return whether they still exist."""
    other = yield from storage.table.try_delete(items.key_of(writes), protocol.delete_untouched(writes))
    return bool(other)


def abandoned_writes(inventory: Inventory, now: float) -> set[str]:
    """Return the checkpoints that have writes but no head, and will get none: the writes are too old."""
    return {
        name
        for name, writes in inventory.writes.items()
        if name not in inventory.heads and all(protocol.is_orphan(each, now) for each in writes)
    }


def _cut_parents(storage: Storage, namespace: _Namespace) -> Op[None]:
    """Remove the link to the parent from kept checkpoints whose parent is deleted, unless a run needs it.

    A checkpoint whose delta channels are rebuilt from its ancestors keeps the link. Reading them must fail at the gap,
    not return a shorter history.
    """
    for checkpoint_id, head in namespace.before.heads.items():
        if checkpoint_id in namespace.gone or items.text(head, items.PARENT) not in namespace.gone:
            continue
        is_root = not namespace.before.partition.namespace
        if items.text(head, items.REBUILT_FROM) is not None or (
            is_root and (yield from _replays_parent(storage, head))
        ):
            continue
        yield from storage.table.try_update(items.key_of(head), protocol.cut_parent(head))


def _replays_parent(storage: Storage, head: Item) -> Op[bool]:
    """Tell whether a run from a root checkpoint needs the id of its parent; it may if its metadata cannot be read."""
    if not needs.may_replay_parent(head):
        return False
    metadata = yield from overview.readable_metadata(storage, head)
    return metadata is None or metadata.get("source") in needs.REPLAYS_PARENT


def _delete_heads(storage: Storage, claim: Claim, namespaces: Sequence[_Namespace]) -> Op[None]:
    """Delete heads: in each namespace those below the newest that is shown, then it and those above it one by one.

    A deletion that dies half-way then leaves the newest state readable, or none, and never an older one. Above the
    newest that is shown there are few heads, and readers pass over all of them. Those that are rebuilt from others go
    before these.
    """
    others: list[Item] = []
    last: list[list[Item]] = []
    for each in namespaces:
        heads = each.before.heads
        chosen = sorted(each.gone & heads.keys(), reverse=True)
        newest = max(each.before.shown or chosen, default="")
        others += [heads[name] for name in chosen if name < newest]
        last.append([heads[name] for name in reversed(chosen) if name >= newest])
    rebuilt = [each for each in others if items.REBUILT_FROM in each]
    for start in range(0, len(rebuilt), BATCH_WRITE_ITEMS_MAX):
        yield from _delete_items(storage, claim, rebuilt[start : start + BATCH_WRITE_ITEMS_MAX])
    yield from _delete_items(storage, claim, [each for each in others if items.REBUILT_FROM not in each])
    for one_of_each in zip_longest(*last):
        yield from _delete_items(storage, claim, list(filter(None, one_of_each)))
