"""How a thread lives on: a use is noted before anything is stored, and the state of a thread in use is kept whole.

1. Readers see a thread until `alive_until` of its thread item: one ttl after its last use.
2. Heads, writes and segments carry the thread's `kept_until` as their expiry. The thread item and the markers of its
   namespaces outlive them.
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
root's newest, its parent, and the one that may be stored yet. Checkpoints above the newest that carry the later time
already are passed. So whatever was the state when something was stored is kept at least as long as that: a checkpoint
that is shown can be gone on from.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from .. import errors, protocol
from .._format import items
from .._format.items import Item, Partition, expires_before
from .._format.limits import ATTEMPTS_MAX, PUT_WAIT_SECONDS_MAX
from .._format.segments import reach
from .._runtime.requests import Query
from .._runtime.steps import Op, Wait, gather
from .._runtime.storage import PUT, RENEWAL, CachedCheckpoint, CachedThread, Storage
from ..protocol import Thread
from . import thread_item
from .needs import Before, Needs
from .reads import AncestorReader, LoadedSegments, NamespaceReader, StoredCheckpoint, segment_items

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
    put_id: str | None = None
    """The checkpoint that it puts, if it puts one."""

    @property
    def begins(self) -> bool:
        """Whether it is a put of a first root checkpoint."""
        return not self.partition.namespace and self.checkpoint_id is None

    @property
    def puts_root(self) -> bool:
        """Whether it is a put of a root checkpoint."""
        return not self.partition.namespace and self.put_id is not None

    @property
    def coming_root_id(self) -> str | None:
        """The root checkpoint that may be stored yet: with durability `exit`, what its subgraphs store comes first."""
        return self.put_id if self.puts_root else self.root_id


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
        thread = yield from (thread_item.ensure_epoch if use.begins else thread_item.find_epoch)(
            storage, use.partition
        )
    root = use.partition.root
    for other in _others(storage, use, thread):
        # Many tasks may end at once. What one of them notes need not be noted by the others.
        yield (Wait(other, PUT_WAIT_SECONDS_MAX),)
        thread = storage.cache.thread(root, thread.epoch) or thread
    noted: CachedThread | None = thread
    if is_due(storage, thread):
        with storage.cache.working(RENEWAL, root, storage.clock()):
            noted = yield from _note(storage, use, thread)
    kept_until = None if noted is None else noted.life.kept_until
    if noted is None or kept_until is None or use.checkpoint_id is None:
        return noted
    entry = storage.cache.checkpoint(use.partition.pk, use.checkpoint_id) or entry
    if (yield from _is_short(storage, use, kept_until, entry)):
        yield from _renew_point(storage, use, noted)
        storage.cache.remember_kept(use.partition.pk, use.checkpoint_id, kept_until)
    return noted


def _is_short(storage: Storage, use: Use, kept_until: int, entry: CachedCheckpoint | None) -> Op[bool]:
    """Tell whether the checkpoint that a call goes on from is not kept as long as what the call stores."""
    if entry is not None:
        return expires_before(entry.life.kept_until, kept_until)
    if storage.cache.under_way(PUT, use.partition.pk, storage.clock() - PUT_WAIT_SECONDS_MAX) is not None:
        # That stores the checkpoint, or a newer one.
        return False
    sk = items.checkpoint_prefix(use.checkpoint_id or "")
    head = yield from storage.table.get(use.partition.pk, sk)
    return head is not None and expires_before(items.expires_at(head), kept_until)


def _others(storage: Storage, use: Use, thread: CachedThread) -> list[Future[None]]:
    """Return what this process is doing in a thread that has to end before a use is noted, if that is due.

    If the thread is dead, that is a put in the root. It may be that of the root checkpoint that the call names, which
    LangGraph puts in the background: what is stored tells whether the call goes on with the thread.
    """
    if not is_due(storage, thread):
        return []
    root, now = use.partition.root, storage.clock()
    kinds = [RENEWAL]
    if (thread.life.alive_until or 0) <= now and not use.puts_root:
        kinds.insert(0, PUT)
    found = [storage.cache.under_way(kind, root, now - PUT_WAIT_SECONDS_MAX) for kind in kinds]
    return [each for each in found if each is not None]


def is_due(storage: Storage, thread: CachedThread | Thread) -> bool:
    """Tell whether a use of a thread was last noted so long ago that another one is to be noted."""
    life = thread.life
    if life.ttl_seconds is None or life.alive_until is None:
        return False
    return life.alive_until < storage.clock() + life.ttl_seconds * (1 - 1 / _SHARE)


def _note(storage: Storage, use: Use, known: CachedThread) -> Op[CachedThread | None]:
    partition = use.partition
    for _ in range(ATTEMPTS_MAX):
        thread = yield from thread_item.read_thread(storage, partition)
        now = storage.clock()
        if thread is None or thread.is_pending or not protocol.is_reusable(thread.epoch, known.epoch):
            return None
        thread_item.checked_thread(partition, thread)
        if not is_due(storage, thread):
            return thread_item.cached_thread(storage, partition, thread)
        if not thread.is_alive(now) and not (yield from _goes_on(storage, use, thread, now)):
            yield from thread_item.ensure_epoch(storage, partition)
            return None
        if thread.needs_renewal(now):
            yield from _renew(storage, use, thread)
            continue
        change = protocol.note_use(thread, now)
        item = yield from storage.table.changed(items.thread_key(partition), change)
        if item is not None:
            return thread_item.cached_thread(storage, partition, Thread.parse(item))
    raise errors.ThreadBusyError(
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
    renewal = _Renewal(storage, items.partition_of(use.partition.thread_id), thread, until, passes_kept=True)
    point = yield from renewal.renew_namespace(renewal.root, Before())
    if point is not None and (yield from renewal.renew_others(Needs(point, use.coming_root_id))):
        yield from storage.table.try_update(key, protocol.end_renewal(thread, until, storage.clock()))


def _renew_point(storage: Storage, use: Use, known: CachedThread) -> Op[None]:
    """Keep a checkpoint that a run goes on from, with what the run needs, as long as the state of its thread.

    In most cases it is part of the state, and has been renewed. One of history expires as it was stored otherwise.
    """
    thread = yield from thread_item.read_thread(storage, use.partition)
    if thread is None or not protocol.is_reusable(thread.epoch, known.epoch):
        return
    root = items.partition_of(use.partition.thread_id)
    renewal = _Renewal(storage, root, thread, thread.life.kept_until or 0, passes_kept=False)
    heads = []
    for partition, checkpoint_id in dict.fromkeys(((use.partition, use.checkpoint_id), (root, use.root_id))):
        query = Query(partition.pk, prefix=items.checkpoint_prefix(checkpoint_id or ""))
        found = (yield from storage.table.query_all(query)) if checkpoint_id else []
        if found and items.is_head(found[0]) and _is_there(storage, found[0], thread):
            yield from renewal.renew_checkpoint(partition, StoredCheckpoint(found[0], found[1:]))
            heads += [] if partition.namespace else found[:1]
    if heads:
        yield from renewal.renew_others(Needs(heads))


def _is_there(storage: Storage, head: Item, thread: Thread) -> bool:
    return protocol.is_committed(head, items.BODY, thread) and not items.is_expired(head, storage.clock())


@dataclass(frozen=True)
class _Renewal:
    """Keeps parts of a thread until a later time."""

    storage: Storage
    root: Partition
    thread: Thread
    until: int
    """In epoch seconds."""
    passes_kept: bool
    """Whether the newest checkpoint is that which is not kept until then yet. While the state of a thread is being
    renewed, others store above it."""

    def renew_others(self, needs: Needs) -> Op[bool]:
        """Renew what runs from root checkpoints need in other namespaces; return whether all is as it was read."""
        markers = yield from thread_item.namespace_markers(self.storage, self.root)
        living = [each for each in markers if needs.has_call(items.text(each, items.STARTED_FROM))]
        renewed = yield from gather([self._renew_marked(each, needs.before()) for each in living])
        return all(renewed)

    def _renew_marked(self, marker: Item, before: Before) -> Op[bool]:
        within, marked_until = (
            thread_item.marked_namespace(self.root, marker),
            protocol.findable_until(self.until),
        )
        if expires_before(items.expires_at(marker), marked_until):
            change = protocol.register_again(marked_until, thread_item.new_registration(self.storage, marker))
            other = yield from self.storage.table.try_update(items.key_of(marker), change)
            if other is None:
                known = CachedThread(self.thread.epoch, self.thread.life)
                self.storage.cache.remember_namespace(self.root.pk, known, within.namespace, marked_until)
        return (yield from self.renew_namespace(within, before)) is not None

    def renew_namespace(self, partition: Partition, before: Before) -> Op[list[Item] | None]:
        """Renew the newest committed checkpoint, and those that `before` picks.

        Returns:
            The heads of the newest ones, down to the renewed one; `None` if something has changed since it was read.
        """
        newest, has_newest = list[Item](), False
        reader = NamespaceReader(self.storage, partition, as_ancestors=True)
        while not (reader.done or (has_newest and before.is_done)):
            for each in (yield from reader.next_page()):
                if not _is_there(self.storage, each.head, self.thread):
                    continue
                if not before.picks(each.checkpoint_id) and has_newest:
                    continue
                is_short = expires_before(items.expires_at(each.head), self.until)
                if not (yield from self.renew_checkpoint(partition, each)):
                    return None
                if not has_newest:
                    newest.append(each.head)
                    self.storage.cache.remember_kept(partition.pk, each.checkpoint_id, self.until)
                    has_newest = is_short or not self.passes_kept
        # Writes may come before their head, so those of none belong to the newest state.
        return newest if (yield from self._renew_items(partition, reader.headless)) else None

    def renew_checkpoint(self, partition: Partition, checkpoint: StoredCheckpoint) -> Op[bool]:
        """Renew a checkpoint with what it needs, the head last; return whether all of it is as it was read."""
        if not (yield from self._renew_items(partition, checkpoint.writes)):
            return False
        yield from self._extend_ancestors(partition, checkpoint.head)
        return (yield from self._renew_items(partition, [checkpoint.head]))

    def _renew_items(self, partition: Partition, some: Sequence[Item]) -> Op[bool]:
        """Renew heads or writes with their segments, but for those that have lost one; tell if all are as read."""
        now = self.storage.clock()
        short = [
            each
            for each in some
            if not items.is_expired(each, now, as_ancestor=True) and not self._is_kept(each)
        ]
        whole = (yield from self._extend_named(partition, short)) if short else []
        renewed = yield from gather([self._renew_item(each) for each in whole])
        return all(renewed)

    def _is_kept(self, item: Item) -> bool:
        """Tell whether an item is kept until then, for readers too."""
        return not expires_before(items.expires_at(item), self.until) and items.SHOWN_UNTIL not in item

    def _renew_item(self, item: Item) -> Op[bool]:
        renew = protocol.renew(item, self.until)
        other = yield from self.storage.table.try_update(items.key_of(item), renew)
        return other is None or (bool(other) and self._is_kept(other))

    def _extend_named(self, partition: Partition, members: Sequence[Item]) -> Op[list[Item]]:
        """Extend the segments that heads and writes name, where they would expire first.

        Returns:
            Those of the items that have lost no segment. The others must not outlive what they have lost.
        """
        storage, until, loaded = self.storage, self.until, LoadedSegments(partition.pk)
        yield from loaded.read_indexes(storage, items.named_ids(members))
        reached = {items.sort_key(each): reach(items.named_ids([each]), loaded.contents) for each in members}
        wanted = {each for ids in reached.values() for each in ids}
        cached = storage.cache.segments(partition.pk, self.thread.epoch, wanted)
        expiries = {each: segment.chunk.expires_at for each, segment in cached.items()}
        read = yield from segment_items(storage.table, partition.pk, wanted - cached.keys())
        expiries |= {items.segment_id_of(each): items.expires_at(each) for each in read}
        short = {each for each, expires_at in expiries.items() if expires_before(expires_at, until)}
        gone = (wanted - expiries.keys()) | (
            yield from thread_item.extend_segments(storage, partition, short, until)
        )
        for each in (cached.keys() & short) - gone:
            cached[each].chunk.expires_at = until
        whole = [each for each in members if gone.isdisjoint(reached[items.sort_key(each)])]
        expiries |= dict.fromkeys(short - gone, until)
        loose = [each for each in items.named_ids(whole) if expires_before(expiries.get(each, 0), until)]
        protocol.check_rule("what is renewed may name segments that are kept as long", loose)
        return whole

    def _extend_ancestors(self, partition: Partition, head: Item) -> Op[None]:
        """Extend the ancestors that a head's delta channels are rebuilt from, if the head is not kept until then.

        They are kept as long as the head, since this comes before the head is. Readers do not see them for longer.
        """
        last, table, until = items.text(head, items.REBUILT_FROM), self.storage.table, self.until
        if last is None or not expires_before(items.expires_at(head), until):
            return
        ancestors = AncestorReader(self.storage, partition, below=items.checkpoint_id_of(head))
        path = yield from ancestors.back(head, last)
        if last and (not path or path[-1].checkpoint_id != last):
            # One of them is missing. Reading the delta channels raises the error.
            return
        members = [item for each in path for item in each.members]
        short = [each for each in members if expires_before(items.expires_at(each), until)]
        whole = yield from self._extend_named(partition, short)
        writes = [each for each in whole if not items.is_head(each)]
        yield from gather([thread_item.extend(self.storage, items.key_of(each), until) for each in writes])
        heads = [each for each in whole if items.is_head(each)]
        changes = [(items.key_of(each), protocol.extend_ancestor(each, until)) for each in heads]
        yield from gather([table.try_update(key, change) for key, change in changes])
