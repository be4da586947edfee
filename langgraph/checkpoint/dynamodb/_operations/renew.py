"""How a thread lives on: a use is noted before anything is stored, and the state of a thread in use is kept whole.

1. Readers see a thread until `alive_until` of its thread item: one ttl after its last use.
2. Everything that is stored carries the thread's `kept_until` as its expiry: heads, writes, segments, markers.
3. A call that stores notes the use first, once in a tenth of the ttl. If the state is not kept for long enough then, it
   renews the state before, once in about a ttl: it announces a later `kept_until` at the thread item, keeps the state
   until then, and ends.
4. A put or writes that were stored with an earlier `kept_until` than the thread has when they confirm are stored again.
   So a renewal has seen them, or they have seen the renewal.
5. A call that goes on from an older checkpoint keeps that one, with what a run from it needs, as long.
6. From `alive_until` on the thread is dead. A call whose root checkpoint is still stored goes on with it, and brings it
   back whole. Any other begins it anew.

    step        segments ── head, kept until K ── read the thread: the same epoch, the same K ── acknowledged
    renewal     read ── K' announced ── the state until K' ── used, ended ── the step, as above

The state is what a run needs (`needs.py`): in each namespace the newest checkpoint, and the newest one before the
root's newest and its parent. Checkpoints above the newest that carry the later time already are passed. So whatever was
the state when something was stored is kept at least as long as that: a checkpoint that is shown can be gone on from.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from .. import protocol
from .._format import items
from .._format.items import Item, Partition, expires_before
from .._format.limits import ATTEMPTS_MAX, PAGE_ITEMS_FIRST, PUT_WAIT_SECONDS_MAX
from .._format.schema import TTL_ATTRIBUTE
from .._format.segments import reach
from .._runtime.cache import PUT, RENEWAL, CachedCheckpoint, CachedThread
from .._runtime.requests import Query
from .._runtime.steps import Op, Wait, gather
from .._runtime.storage import Storage
from ..errors import ThreadBusyError
from ..protocol import Thread
from .needs import Before, Needs
from .reads import AncestorReader, LoadedSegments, StoredCheckpoint, segment_items
from .thread_item import (
    cached_thread,
    checked_thread,
    ensure_epoch,
    extend,
    extend_segments,
    find_epoch,
    marked_namespace,
    namespace_markers,
    read_thread,
)

_SHARE = 10
"""A use is noted once this share of the ttl has passed since the last one. `protocol.KEPT_PERCENT` reckons with it."""


@dataclass(frozen=True)
class Use:
    """A call that is about to store something, and what it goes on from."""

    partition: Partition
    checkpoint_id: str | None
    """The checkpoint of the namespace: a put's parent, or the one that writes belong to."""
    root_id: str | None
    """The root checkpoint that the run is at."""
    is_put: bool = False

    @property
    def begins(self) -> bool:
        """Whether it is a put of a first root checkpoint."""
        return not self.partition.namespace and self.checkpoint_id is None


def use_thread(
    storage: Storage, use: Use, thread: CachedThread | None, entry: CachedCheckpoint | None
) -> Op[CachedThread | None]:
    """Return the thread as a call is to store in it, and note the use, if that is due.

    Args:
        storage: The storage.
        use: The call.
        thread: The thread as far as it is known; it is read, or begun, if it is not.
        entry: The checkpoint that the call goes on from, if it is cached.

    Returns:
        The thread; `None` if the epoch has ended that was known.

    Raises:
        ThreadBusyError: Other calls interfered at every attempt, or the thread is a copy that is not complete.
    """
    if thread is None:
        thread = yield from (ensure_epoch if use.begins else find_epoch)(storage, use.partition)
    if thread.life.ttl_seconds is None:
        return thread
    root = use.partition.root
    for other in _others(storage, use, thread):
        # Many tasks may end at once. What one of them notes need not be noted by the others.
        yield (Wait(other, PUT_WAIT_SECONDS_MAX),)
        thread = storage.cache.thread(root, thread.epoch) or thread
    is_due = _is_due(storage, thread)
    noted: CachedThread | None = thread
    if is_due:
        with storage.cache.working(RENEWAL, root, storage.clock()):
            noted = yield from _note(storage, use, thread)
    if noted is None or use.checkpoint_id is None:
        return noted
    entry = storage.cache.checkpoint(use.partition.pk, use.checkpoint_id) or entry
    if (yield from _is_short(storage, use, noted, entry)):
        yield from _renew_point(storage, use, noted)
        if entry is not None:
            entry = replace(entry, life=noted.life)
            storage.cache.remember_checkpoint(use.partition.pk, use.checkpoint_id, entry)
    return noted


def _is_short(storage: Storage, use: Use, thread: CachedThread, entry: CachedCheckpoint | None) -> Op[bool]:
    """Tell whether the checkpoint that a call goes on from is not kept as long as what the call stores."""
    kept_until = None if entry is None else entry.life.kept_until
    if entry is None:
        after = storage.clock() - PUT_WAIT_SECONDS_MAX
        if storage.cache.under_way(PUT, use.partition.pk, after) is not None:
            # That stores the checkpoint, or a newer one.
            return False
        sk = items.checkpoint_prefix(use.checkpoint_id or "")
        head = yield from storage.table.get(use.partition.pk, sk)
        if head is None:
            return False
        kept_until = items.expires_at(head)
    return expires_before(kept_until, thread.life.kept_until)


def _others(storage: Storage, use: Use, thread: CachedThread) -> list[Future[None]]:
    """Return what this process is doing in a thread that has to end before a use is noted, if that is due.

    If the thread is dead, that is a put in the root. It may be that of the root checkpoint that the call names, which
    LangGraph puts in the background: what is stored tells whether the call goes on with the thread.
    """
    if not _is_due(storage, thread):
        return []
    root, now = use.partition.root, storage.clock()
    kinds = [RENEWAL]
    if (thread.life.alive_until or 0) <= now and not (use.is_put and not use.partition.namespace):
        kinds.insert(0, PUT)
    found = [storage.cache.under_way(kind, root, now - PUT_WAIT_SECONDS_MAX) for kind in kinds]
    return [each for each in found if each is not None]


def was_noted(storage: Storage, thread: CachedThread) -> bool:
    """Tell whether a use of the thread was noted so recently that what is known of its life is good enough."""
    return thread.life.ttl_seconds is None or not _is_due(storage, thread)


def _is_due(storage: Storage, thread: CachedThread | Thread) -> bool:
    ttl_seconds = thread.life.ttl_seconds or 0
    return (thread.life.alive_until or 0) < storage.clock() + ttl_seconds * (1 - 1 / _SHARE)


def _note(storage: Storage, use: Use, known: CachedThread) -> Op[CachedThread | None]:
    partition = use.partition
    for _ in range(ATTEMPTS_MAX):
        thread = yield from read_thread(storage, partition)
        now = storage.clock()
        if thread is None or thread.is_pending or not protocol.is_reusable(thread.epoch, known.epoch):
            return None
        checked_thread(partition, thread)
        if not _is_due(storage, thread):
            return cached_thread(storage, partition, thread)
        if not thread.is_alive(now) and not (yield from _goes_on(storage, use, thread, now)):
            yield from ensure_epoch(storage, partition)
            return None
        if thread.needs_renewal(now):
            yield from _renew(storage, use, thread)
            continue
        change = protocol.note_use(thread, now)
        item = yield from storage.table.changed(items.thread_key(partition), change)
        if item is not None:
            return cached_thread(storage, partition, Thread.parse(item))
    raise ThreadBusyError(
        f"the use of thread {partition.thread_id!r} could not be noted: other calls deleted from the thread or"
        f" wrote to it during each of {ATTEMPTS_MAX} attempts; retry the call"
    )


def _goes_on(storage: Storage, use: Use, thread: Thread, now: float) -> Op[bool]:
    """Tell whether a call goes on with a dead thread: its root checkpoint is stored, and all of the state is."""
    if use.root_id is None or not thread.may_live_on(now):
        return False
    head = yield from storage.table.get(use.partition.root, items.checkpoint_prefix(use.root_id))
    return head is not None and _is_there(storage, head, thread)


# Renewing


def _renew(storage: Storage, use: Use, thread: Thread) -> Op[None]:
    """Keep the state of a thread for longer, and note the use; the thread tells afterwards whether that was done.

    One that died is ended first. Whatever one has done may be repeated.
    """
    now, until, key = storage.clock(), thread.life.kept_until or 0, items.thread_key(use.partition)
    if thread.kept_before is None:
        until = protocol.kept_from(thread.life.ttl_seconds or 0, now)
        shorter = [until] if until <= (thread.life.kept_until or 0) else []
        protocol.check_rule(f"a thread kept until {thread.life.kept_until} may be kept for longer", shorter)
        if (yield from storage.table.try_update(key, protocol.begin_renewal(thread, until))) is not None:
            return
    root = items.partition_of(use.partition.thread_id)
    point = yield from _renew_namespace(storage, root, thread, until, Before(), passes_kept=True)
    if point is not None and (
        yield from _renew_others(storage, root, thread, until, Needs(point), passes_kept=True)
    ):
        yield from storage.table.try_update(key, protocol.end_renewal(thread, until, storage.clock()))


def _renew_point(storage: Storage, use: Use, known: CachedThread) -> Op[None]:
    """Keep a checkpoint that a run goes on from, with what the run needs, as long as the state of its thread.

    In most cases it is part of the state, and has been renewed. One of history expires as it was stored otherwise.
    """
    thread = yield from read_thread(storage, use.partition)
    if thread is None or not protocol.is_reusable(thread.epoch, known.epoch):
        return
    until, root = thread.life.kept_until or 0, items.partition_of(use.partition.thread_id)
    heads = []
    for partition, checkpoint_id in dict.fromkeys(((use.partition, use.checkpoint_id), (root, use.root_id))):
        query = Query(partition.pk, prefix=items.checkpoint_prefix(checkpoint_id or ""))
        found = (yield from storage.table.query_all(query)) if checkpoint_id else []
        if found and items.is_head(found[0]) and _is_there(storage, found[0], thread):
            point = StoredCheckpoint(found[0], found[1:])
            yield from _renew_checkpoint(storage, partition, thread, point, until)
            heads += [] if partition.namespace else [point.head]
    if heads:
        yield from _renew_others(storage, root, thread, until, Needs(heads), passes_kept=False)


def _is_there(storage: Storage, head: Item, thread: Thread) -> bool:
    return protocol.is_committed(head, items.BODY, thread) and not items.is_expired(head, storage.clock())


def _renew_others(
    storage: Storage, root: Partition, thread: Thread, until: int, needs: Needs, *, passes_kept: bool
) -> Op[bool]:
    """Renew what runs from root checkpoints need in other namespaces; return whether all of it is as it was read."""

    def renew_marked(marker: Item) -> Op[bool]:
        marked_until, within = protocol.findable_until(until), marked_namespace(root, marker)
        if expires_before(items.expires_at(marker), marked_until):
            yield from extend(storage, items.key_of(marker), marked_until)
        heads = yield from _renew_namespace(
            storage, within, thread, until, needs.before(), passes_kept=passes_kept
        )
        return heads is not None

    markers = yield from namespace_markers(storage, root)
    living = [each for each in markers if needs.has_call(items.text(each, items.STARTED_FROM))]
    renewed = yield from gather([renew_marked(each) for each in living])
    return all(renewed)


def _renew_namespace(
    storage: Storage, partition: Partition, thread: Thread, until: int, before: Before, *, passes_kept: bool
) -> Op[list[Item] | None]:
    """Renew the newest committed checkpoint, and those that `before` picks.

    Args:
        storage: The storage.
        partition: The namespace.
        thread: The thread.
        until: Until when they are to be kept, in epoch seconds.
        before: Picks what else is needed.
        passes_kept: Whether the newest is that which is not kept until then yet. While a renewal is under way, others
            store above it.

    Returns:
        The heads of the newest ones, down to the renewed one; `None` if something has changed since it was read.
    """
    newest, has_newest, writes = list[Item](), False, list[Item]()
    query = Query(
        partition.pk,
        between=(items.CHECKPOINTS, items.AFTER_CHECKPOINTS),
        descending=True,
        first_page=PAGE_ITEMS_FIRST,
    )
    while not query.done:
        for item in (yield from storage.table.query_page(query)):
            if not items.is_head(item):
                writes.append(item)
                continue
            # Writes sort behind their head. They may come before it, so those of none belong to the newest state.
            name = items.checkpoint_id_of(item)
            own = [each for each in writes if items.checkpoint_id_of(each) == name]
            early = [] if has_newest else [each for each in writes if each not in own]
            writes = []
            if not (yield from _renew_items(storage, partition, thread, early, until)):
                return None
            if not _is_there(storage, item, thread):
                continue
            if not before.picks(name) and has_newest:
                continue
            is_short = expires_before(items.expires_at(item), until)
            checkpoint = StoredCheckpoint(item, own)
            if not (yield from _renew_checkpoint(storage, partition, thread, checkpoint, until)):
                return None
            if not has_newest:
                newest.append(item)
                storage.cache.remember_kept(partition.pk, name, until)
                has_newest = is_short or not passes_kept
            if has_newest and before.is_done:
                return newest
    is_done = has_newest or (yield from _renew_items(storage, partition, thread, writes, until))
    return newest if is_done else None


def _renew_checkpoint(
    storage: Storage, partition: Partition, thread: Thread, checkpoint: StoredCheckpoint, until: int
) -> Op[bool]:
    """Renew a checkpoint with what it needs, the head last; return whether all of it is as it was read."""
    if not (yield from _renew_items(storage, partition, thread, checkpoint.writes, until)):
        return False
    yield from _extend_ancestors(storage, partition, thread.epoch, checkpoint.head, until)
    return (yield from _renew_items(storage, partition, thread, [checkpoint.head], until))


def _renew_items(
    storage: Storage, partition: Partition, thread: Thread, some: Sequence[Item], until: int
) -> Op[bool]:
    """Renew heads or writes with their segments, but for those that have lost one; tell whether all are as read."""
    now = storage.clock()
    short = [
        each
        for each in some
        if not items.is_expired(each, now, as_ancestor=True) and not _is_kept(each, until)
    ]
    if not short:
        return True
    whole = yield from _extend_named(storage, partition, thread.epoch, short, until)
    renewed = yield from gather([_renewed(storage, each, until) for each in whole])
    return all(renewed)


def _is_kept(item: Item, until: int) -> bool:
    """Tell whether an item is kept until then, for readers too."""
    return not expires_before(items.expires_at(item), until) and items.SHOWN_UNTIL not in item


def _renewed(storage: Storage, item: Item, until: int) -> Op[bool]:
    other = yield from storage.table.try_update(items.key_of(item), protocol.renew(item, until))
    return other is None or (bool(other) and _is_kept(other, until))


# What heads and writes need


def _extend_named(
    storage: Storage, partition: Partition, epoch: bytes, members: Sequence[Item], until: int
) -> Op[list[Item]]:
    """Extend the segments that heads and writes name, where they would expire first.

    Returns:
        Those of the items that have lost no segment. The others must not outlive what they have lost.
    """
    loaded = LoadedSegments(partition.pk)
    yield from loaded.read_indexes(storage, items.named_ids(members))
    reached = {items.sort_key(each): reach(items.named_ids([each]), loaded.contents) for each in members}
    wanted = {each for ids in reached.values() for each in ids}
    cached = storage.cache.segments(partition.pk, epoch, wanted)
    expiries = {each: segment.chunk.expires_at for each, segment in cached.items()}
    read = yield from segment_items(storage.table, partition.pk, wanted - cached.keys())
    expiries |= {items.segment_id_of(each): items.number(each, TTL_ATTRIBUTE) for each in read}
    short = [each for each, expires_at in expiries.items() if expires_before(expires_at, until)]
    gone = (wanted - expiries.keys()) | (yield from extend_segments(storage, partition, short, until))
    for each in (cached.keys() & set(short)) - gone:
        cached[each].chunk.expires_at = until
    whole = [each for each in members if gone.isdisjoint(reached[items.sort_key(each)])]
    expiries |= dict.fromkeys(set(short) - gone, until)
    loose = [each for each in items.named_ids(whole) if expires_before(expiries.get(each, 0), until)]
    protocol.check_rule("what is renewed may name segments that are kept as long", loose)
    return whole


def _extend_ancestors(
    storage: Storage, partition: Partition, epoch: bytes, head: Item, until: int
) -> Op[None]:
    """Extend the ancestors that a head's delta channels are rebuilt from, if the head is not kept until then.

    They are kept as long as the head, since this comes before the head is. Readers do not see them for longer.
    """
    last = items.text(head, items.REBUILT_FROM)
    if last is None or not expires_before(items.expires_at(head), until):
        return
    ancestors = AncestorReader(storage, partition, below=items.checkpoint_id_of(head))
    path = yield from ancestors.back(head, last)
    if last and (not path or path[-1].checkpoint_id != last):
        # One of them is missing. Reading the delta channels raises the error.
        return
    short = [
        each
        for checkpoint in path
        for each in checkpoint.members
        if expires_before(items.expires_at(each), until)
    ]
    whole = yield from _extend_named(storage, partition, epoch, short, until)
    writes = [each for each in whole if not items.is_head(each)]
    yield from gather([extend(storage, items.key_of(each), until) for each in writes])
    changes = [
        (items.key_of(each), protocol.extend_ancestor(each, until)) for each in whole if items.is_head(each)
    ]
    yield from gather([storage.table.try_update(key, change) for key, change in changes])
