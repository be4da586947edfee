"""Thread-level state: the epoch, the life, a deletion's claim, and the namespace markers.

These operations send the changes of `protocol.py`, which says what they mean and why they are safe.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from .. import errors, protocol
from .._format import items, limits, moments, schema
from .._format.items import Item, Partition, expires_before, later
from .._runtime.requests import Query
from .._runtime.steps import Op, Wait, gather
from .._runtime.storage import CachedThread, Facts, Storage
from ..protocol import Thread
from .other_savers import look_for_other_savers

logger = logging.getLogger("langgraph.checkpoint.dynamodb")


class PinnedEpochError(Exception):
    """The epoch of a thread has ended to which an operation is pinned, so it may not store anything more."""


class BegunAnewError(Exception):
    """A dead thread has begun anew, or a copy has, since a deletion read it. The deletion still has its claim."""


def check_pinned(storage: Storage, epoch: bytes) -> None:
    """Raise if an operation is pinned to another epoch than a thread has.

    Raises:
        PinnedEpochError: It is.
    """
    if storage.pinned is not None and not protocol.is_reusable(storage.pinned.epoch, epoch):
        raise PinnedEpochError


def read_thread(storage: Storage, partition: Partition) -> Op[Thread | None]:
    """Read the thread item of a namespace's thread, strongly consistent."""
    item = yield from storage.table.get(partition.root, items.THREAD)
    return None if item is None else Thread.parse(item)


# The epoch


def new_epoch(storage: Storage) -> bytes:
    """Return the first epoch of a thread that begins, or begins anew."""
    return protocol.first_epoch(storage.rng.randbytes(protocol.LIFE_BYTES))


def ensure_epoch(storage: Storage, partition: Partition) -> Op[CachedThread]:
    """Return the thread for a call to build on that goes on with nothing: it begins a thread that is not there or dead.

    The thread gets this saver's ttl and its directory entry in the same request. A pending epoch becomes active.
    Another saver's thread is not created a second time, so this looks for one first.

    Raises:
        CheckpointerConfigurationError: The thread is another saver's.
        ThreadBusyError: The thread was deleted at every attempt, or is a copy that is not complete.
    """
    yield from look_for_other_savers(storage, partition)
    key = items.thread_key(partition)
    for _ in range(limits.ATTEMPTS_MAX):
        # A new one each time: an epoch that ended must never confirm what was stored under it.
        epoch, now = new_epoch(storage), storage.clock()
        life = protocol.new_life(storage.ttl_seconds, now)
        entry = None if storage.entry is None else storage.entry()
        item = yield from storage.table.try_update(key, protocol.create_thread(epoch, life, now, entry))
        if item is None:
            if entry is not None:
                _tell_of_missing_owner(storage, partition, entry)
            seen = CachedThread(epoch, life, last_active=None if entry is None else int(now))
            return storage.cache.remember_thread(partition.root, seen)
        thread = checked_thread(partition, Thread.parse(item))
        if not thread.is_alive(now):
            is_listed = thread.last_active is not None
            begin = protocol.begin_anew(thread.epoch, epoch, life, now, is_listed=is_listed)
        elif thread.is_pending:
            begin = protocol.begin_epoch(thread, life, now, entry)
        else:
            return cached_thread(storage, partition, thread)
        begun = yield from storage.table.changed(key, begin)
        if begun is not None:
            return cached_thread(storage, partition, Thread.parse(begun))
    raise errors.ThreadBusyError(
        f"thread {partition.thread_id!r} was deleted {limits.ATTEMPTS_MAX} times while something was stored in it;"
        " retry the call"
    )


def checked_thread(partition: Partition, thread: Thread) -> Thread:
    """Return a thread that something may be stored in.

    Raises:
        ThreadBusyError: It is a copy that is not complete.
    """
    if thread.is_being_copied:
        raise errors.ThreadBusyError(
            f"thread {partition.thread_id!r} is a copy that is not complete; wait for copy_thread, or if it has died,"
            " repeat it or delete the thread"
        )
    return thread


def find_epoch(storage: Storage, partition: Partition) -> Op[CachedThread]:
    """Return the thread, which may be dead, for a call to build on; create it if it is not there.

    The thread of writes exists in most cases, and a read costs a fifth of the conditional write of `ensure_epoch`. A
    pending epoch becomes active, and a dead thread does not begin anew by it.

    Raises:
        ThreadBusyError: Deletions interfered at every attempt, or the thread is a copy that is not complete.
    """
    for _ in range(limits.ATTEMPTS_MAX):
        thread = yield from read_thread(storage, partition)
        if thread is None or (thread.is_pending and thread.is_alive(storage.clock())):
            return (yield from ensure_epoch(storage, partition))
        checked_thread(partition, thread)
        if not thread.is_pending:
            return cached_thread(storage, partition, thread)
        # Only a thread that had a life is dead, so this gives it none.
        begin = protocol.begin_epoch(thread, thread.life, storage.clock(), None)
        yield from storage.table.changed(items.thread_key(partition), begin)
    raise errors.ThreadBusyError(
        f"thread {partition.thread_id!r} was pruned {limits.ATTEMPTS_MAX} times while something was stored in it;"
        " retry the call"
    )


def confirm_epoch(storage: Storage, partition: Partition, epoch: bytes) -> Op[CachedThread | None]:
    """Read the thread after a put or writes were stored under an epoch.

    They are acknowledged if it still has the epoch, and if they are kept as long as what is stored in it now.

    Returns:
        The thread as it is now; `None` if nothing can be built on it.

    Raises:
        ThreadBusyError: A copy of another thread has begun to fill it.
    """
    thread = yield from _read_and_touch(storage, partition, epoch)
    if thread is None or thread.is_pending:
        return None
    return cached_thread(storage, partition, checked_thread(partition, thread))


def is_confirmed(storage: Storage, thread: CachedThread, seen: CachedThread | None) -> bool:
    """Tell whether what was stored under a thread as it was known may be acknowledged, given how it is seen now.

    A thread may have died meanwhile.
    """
    return (
        seen is not None
        and (seen.life.alive_until is None or seen.life.alive_until > storage.clock())
        and protocol.is_reusable(thread.epoch, seen.epoch)
        and not expires_before(thread.life.kept_until, seen.life.kept_until)
    )


def cached_thread(storage: Storage, partition: Partition, thread: Thread) -> CachedThread:
    """Cache a thread and return its entry; log once if its ttl is not this saver's."""
    cache, ttl_seconds = storage.cache, thread.life.ttl_seconds
    if ttl_seconds != storage.ttl_seconds and not cache.facts.has_told_of_ttl:
        cache.facts.has_told_of_ttl = True
        logger.warning(
            "Thread %r was created with ttl_seconds=%s and keeps it; this saver has ttl_seconds=%s. A copy of the"
            " thread would take the saver's. This is logged once.",
            partition.thread_id,
            ttl_seconds,
            storage.ttl_seconds,
        )
    seen = CachedThread(thread.epoch, thread.life, last_active=thread.last_active)
    return cache.remember_thread(partition.root, seen)


# The directory


def _read_and_touch(storage: Storage, partition: Partition, epoch: bytes) -> Op[Thread | None]:
    """Read the thread item after a commit, and note in the directory that the thread is active, if that is due.

    A process that knows when the thread was active last needs no further request: the update returns the item.
    Otherwise operations of this process share one request: the answer is good for each commit that was acknowledged
    before the request was sent.
    """
    reads, root = storage.cache.thread_reads, partition.root
    known = storage.cache.thread(root)
    if known is not None and known.last_active is not None and protocol.is_reusable(known.epoch, epoch):
        change = _due_touch(storage, known, known.last_active)
        touched = None if change is None else (yield from _touch(storage, partition, known, change))
        if touched is not None:
            return touched
    now = storage.clock()
    read, leads, last = reads.join(root, now, now - limits.READ_WAIT_SECONDS_MAX)
    if not leads:
        yield (Wait(read, limits.READ_WAIT_SECONDS_MAX),)
        answers = read.result() if read.done() else ()
        if not answers:
            return (yield from _read_touched(storage, partition, epoch))
        return (yield from _touched(storage, partition, epoch, answers[0]))
    answer = list[Thread | None]()
    try:
        if last is not None:
            yield (Wait(last, limits.READ_WAIT_SECONDS_MAX),)
        reads.send(root, read)
        answer.append((yield from _read_touched(storage, partition, epoch)))
        return answer[0]
    finally:
        reads.end(root, read, answer)


def _read_touched(storage: Storage, partition: Partition, epoch: bytes) -> Op[Thread | None]:
    thread = yield from read_thread(storage, partition)
    return (yield from _touched(storage, partition, epoch, thread))


def _touched(
    storage: Storage, partition: Partition, epoch: bytes, thread: Thread | None
) -> Op[Thread | None]:
    """Note in the directory that a thread is active, if that is due by its item, and return the item as it is then.

    What is cached does not count: it may be what another operation is about to note, and that may fail.
    """
    if thread is None or not thread.confirms(epoch):
        return thread
    change = yield from _activity(storage, partition, thread)
    if change is None:
        return thread
    touched = yield from _touch(storage, partition, thread, change)
    if touched is None:
        yield from _touch_kept(storage, partition, thread.epoch)
    return touched or thread


def _activity(storage: Storage, partition: Partition, thread: Thread) -> Op[protocol.Change | None]:
    """Return the change that enters a thread in the directory, or notes that it is active; `None` if none is due."""
    if thread.last_active is not None:
        return _due_touch(storage, thread, thread.last_active)
    if storage.entry is None:
        return None
    entry, now = storage.entry(), storage.clock()
    _tell_of_missing_owner(storage, partition, entry)
    began = yield from began_at(storage, partition)
    return protocol.list_thread(thread.epoch, entry, now, now if began is None else began)


def _due_touch(storage: Storage, thread: CachedThread | Thread, last_active: int) -> protocol.Change | None:
    """Return the change that notes that a thread in the directory is active; `None` if none is due."""
    now = storage.clock()
    due = now - activity_seconds(thread.life.ttl_seconds)
    return None if last_active > due else protocol.touch_thread(thread.epoch, now, due)


def began_at(storage: Storage, partition: Partition) -> Op[float | None]:
    """Return when a thread's oldest checkpoint was made, in epoch seconds.

    Return `None` if the thread has no checkpoint, or if LangGraph did not make the id, which tells the time. A time in
    the future is now.
    """
    root = items.partition_of(partition.thread_id)
    query = Query(
        root.pk,
        prefix=items.CHECKPOINTS,
        consistent=False,
        first_page=1,
        attributes=(schema.PARTITION_KEY, schema.SORT_KEY),
    )
    oldest = yield from storage.table.query_page(query)
    made = moments.stored_at(items.checkpoint_id_of(oldest[0])) if oldest else None
    return None if made is None else min(made.timestamp(), storage.clock())


def _tell_of_missing_owner(storage: Storage, partition: Partition, entry: Item) -> None:
    if schema.OWNER not in entry:
        tell_of_missing_owner(storage.cache.facts, partition.thread_id, storage.owner_from)


def tell_of_missing_owner(facts: Facts, thread_id: str, owner_from: str | None) -> None:
    """Log once that a thread enters the directory without an owner though the saver looks for one."""
    if owner_from is None or facts.has_told_of_missing_owner:
        return
    facts.has_told_of_missing_owner = True
    logger.warning(
        "Thread %r enters the directory without an owner: neither `configurable` nor the metadata of its checkpoint has"
        " the key %r, which owner_from names. `threads(owner=...)` and `delete --owner` do not find it. Name the owner"
        " with set_thread(owner=...); `langgraph-dynamodb threads --without-owner` lists such threads. This is logged"
        " once.",
        thread_id,
        owner_from,
    )


def _touch(
    storage: Storage, partition: Partition, thread: CachedThread | Thread, change: protocol.Change
) -> Op[Thread | None]:
    """Change a thread in the directory; return its item, or `None` if another call has changed it meanwhile."""
    # Other puts of this process, side by side with this one, need not touch the thread too.
    now = CachedThread(thread.epoch, thread.life, last_active=int(storage.clock()))
    storage.cache.remember_thread(partition.root, now)
    item = yield from storage.table.changed(items.thread_key(partition), change)
    return None if item is None else Thread.parse(item)


def _touch_kept(storage: Storage, partition: Partition, epoch: bytes) -> Op[None]:
    """Touch a thread whose epoch a deletion has ended since it was read: the deletion may keep what was committed."""
    for _ in range(limits.ATTEMPTS_MAX):
        thread = yield from read_thread(storage, partition)
        if thread is None or protocol.is_reusable(epoch, thread.epoch):
            return
        epoch = thread.epoch
        change = yield from _activity(storage, partition, thread)
        if (
            change is None
            or (yield from storage.table.try_update(items.thread_key(partition), change)) is None
        ):
            return


def activity_seconds(ttl_seconds: int | None) -> int:
    """Return how old a thread's last activity may be in the directory before a put renews it."""
    return limits.ACTIVITY_SECONDS if ttl_seconds is None else min(limits.ACTIVITY_SECONDS, ttl_seconds // 10)


# A deletion's claim


@dataclass(frozen=True)
class Claim:
    """A deletion's claim on a thread, with the thread as it was when it was claimed."""

    root: Partition
    token: bytes
    thread: Thread
    claimed_at: float
    """In epoch seconds."""


def acquire_claim(storage: Storage, root: Partition, token: bytes, *, resets: bool) -> Op[Claim]:
    """Claim the thread for a deletion, waiting for one that is under way.

    Args:
        storage: The storage.
        root: The thread.
        token: The token of the claim.
        resets: Whether to give a thread item whose epoch or claim is damaged new ones. Only the deletion of the whole
            thread may: what is committed is not known then.

    Raises:
        CheckpointCorruptionError: The thread item is damaged.
        ThreadBusyError: Another deletion did not end in time.
    """
    waited, attempt = 0.0, 0
    while waited <= limits.BACKOFF_SECONDS_TOTAL:
        delay = storage.table.backoff(attempt)
        waited += delay
        attempt += 1
        claimed_at = storage.clock()
        thread = yield from _try_claim(storage, root, token, delay, resets=resets)
        if thread is not None:
            return Claim(root, token, thread, claimed_at)
    raise errors.ThreadBusyError(
        f"thread {root.thread_id!r} is being deleted or pruned by another call, for over"
        f" {limits.BACKOFF_SECONDS_TOTAL:.0f} s; retry later, since a call that died releases it after"
        f" {limits.CLAIM_SECONDS} s"
    )


def _try_claim(
    storage: Storage, root: Partition, token: bytes, delay_seconds: float, *, resets: bool
) -> Op[Thread | None]:
    """Claim the thread item and return it.

    Return `None` if another deletion holds it, or if it had to be created or reset.

    Raises:
        PinnedEpochError: The thread to which the deletion is pinned is gone.
    """
    now = storage.clock()
    claim = protocol.claim_thread(token, now)
    item = yield from storage.table.changed(items.thread_key(root), claim, delay_seconds=delay_seconds)
    if item is None:
        found = yield from storage.table.get(root.pk, items.THREAD)
        if found is None:
            if storage.pinned is not None:
                # An item without an owner would keep owners from the id.
                raise PinnedEpochError
            create = protocol.create_pending_thread(new_epoch(storage), now)
            yield from storage.table.try_update(items.thread_key(root), create)
        else:
            yield from _parsed_or_reset(storage, root, found, resets=resets)
        return None
    thread = yield from _parsed_or_reset(storage, root, item, resets=resets)
    if thread is None:
        return None
    if expires_before(thread.expires_at, int(now) + limits.ORPHAN_SECONDS):
        # DynamoDB would remove it while the deletion runs, and the claim with it.
        extend = protocol.extend_claimed_thread(token, now + limits.ORPHAN_SECONDS)
        other = yield from storage.table.try_update(items.thread_key(root), extend)
        if other is not None and (not other or Thread.parse_for_deletion(other).claim != token):
            return None
    return thread


def _parsed_or_reset(storage: Storage, root: Partition, item: Item, *, resets: bool) -> Op[Thread | None]:
    """Parse a thread item for a deletion, or reset it if it is damaged and may be reset: return `None` then."""
    try:
        return Thread.parse_for_deletion(item)
    except errors.CheckpointCorruptionError as error:
        if not resets:
            raise
        logger.warning("%s. Thread %r is deleted all the same.", error, root.thread_id)
    reset = protocol.reset_thread(item, new_epoch(storage))
    yield from storage.table.try_update(items.thread_key(root), reset)
    return None


def check_claim(storage: Storage, claim: Claim, *, has_deleted: bool = False) -> Op[None]:
    """Make sure that no other deletion has ended an epoch since the thread was claimed.

    If one has, what this deletion considers committed may not be. Whatever was read before this is seen by a deletion
    that takes over later. Makes no request while the claim cannot have run out, whatever clock one goes by.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    if storage.clock() - claim.claimed_at <= limits.CLAIM_SECONDS / 2:
        return
    item = yield from storage.table.get(claim.root.pk, items.THREAD)
    if item is not None and Thread.parse_for_deletion(item).claim == claim.token:
        return
    if has_deleted:
        raise overtaken(storage, claim, {})
    raise errors.ThreadBusyError(
        f"deleting from thread {claim.root.thread_id!r} took longer than its claim of {limits.CLAIM_SECONDS} s, and"
        " another deletion took over before anything was deleted; retry the call"
    )


def end_epoch(storage: Storage, claim: Claim) -> Op[Thread]:
    """End the thread's epoch and extend the claim; return the thread with its new, pending epoch.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    new, now = protocol.next_epoch(claim.thread.epoch), storage.clock()
    change = protocol.end_epoch(claim.token, claim.thread.epoch, new, now)
    item = yield from storage.table.try_update(items.thread_key(claim.root), change)
    if item is None:
        return claim.thread.ended(new)
    thread = Thread.parse_for_deletion(item) if item else None
    if thread is not None and thread.was_ended(claim.token, claim.thread.epoch):
        # The request took effect, but its response was lost and it was sent again.
        return thread
    raise overtaken(storage, claim, item)


def finalize(storage: Storage, claim: Claim, thread: Thread, *, is_empty: bool) -> Op[None]:
    """Finalize: from here on only the new epoch says what is committed. Comes before any segment is deleted.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    stays_pending = is_empty or not thread.has_ttl
    change = protocol.finalize(claim.token, thread.epoch, stays_pending=stays_pending)
    item = yield from storage.table.try_update(items.thread_key(claim.root), change)
    if item is not None:
        raise overtaken(storage, claim, item)


def overtaken(storage: Storage, claim: Claim, item: Item) -> Exception:
    """Return the error for a deletion whose change the thread item, which is given, did not take."""
    # One that stood still for longer must not delete what has come since.
    is_held = storage.clock() - claim.claimed_at <= limits.CLAIM_SECONDS
    if item and is_held and Thread.parse_for_deletion(item).claim == claim.token:
        return BegunAnewError()
    msg = (
        f"deleting from thread {claim.root.thread_id!r} took longer than its claim of {limits.CLAIM_SECONDS} s, and"
        " another deletion took over. The checkpoints are deleted; what only they needed goes with the next prune or"
        " deletion of the thread."
    )
    return errors.ThreadBusyError(msg)


def release(storage: Storage, root: Partition, token: bytes, *, is_empty: bool) -> Op[None]:
    """Release the claim. If the thread is empty, remove its item instead, unless a put has begun its epoch."""
    if (
        is_empty
        and (yield from storage.table.try_delete(items.thread_key(root), protocol.remove_thread(token)))
        is None
    ):
        return
    yield from storage.table.try_update(items.thread_key(root), protocol.release_thread(token))


# Namespaces


def namespace_markers(storage: Storage, partition: Partition) -> Op[list[Item]]:
    """Read the markers of a thread's namespaces. The root namespace has none."""
    return (yield from storage.table.query_all(Query(partition.root, prefix=items.NAMESPACES)))


def namespaces(storage: Storage, partition: Partition) -> Op[list[Partition]]:
    """Read the namespaces of a thread, the root first."""
    markers = yield from namespace_markers(storage, partition)
    return [items.partition_of(partition.thread_id), *(marked_namespace(partition, each) for each in markers)]


def marked_namespace(partition: Partition, marker: Item) -> Partition:
    """Return the namespace that a marker stands for."""
    return items.partition_of(partition.thread_id, items.namespace_of(marker))


def ensure_registered(
    storage: Storage, partition: Partition, thread: CachedThread, started_from: str | None
) -> Op[None]:
    """Register a namespace, unless this process has done so under the thread's epoch.

    Comes before anything is stored in the namespace: a deletion finds it only through its marker.
    """
    if not partition.namespace:
        return
    kept_until = thread.life.kept_until
    known = storage.cache.thread(partition.root, thread.epoch)
    marked_until = 0 if known is None else known.namespaces.get(partition.namespace, 0)
    if expires_before(marked_until, protocol.findable_until(kept_until)):
        expires_at = yield from register_namespace(storage, partition, kept_until, started_from)
        storage.cache.remember_namespace(partition.root, thread, partition.namespace, expires_at)


def register_namespace(
    storage: Storage, partition: Partition, kept_until: int | None, started_from: str | None
) -> Op[int | None]:
    """Create or refresh a namespace's marker and return its expiry. Never shortens an existing expiry.

    Raises:
        ThreadBusyError: Other processes kept refreshing it.
    """
    expires_at = protocol.findable_until(kept_until)
    other: Item = {}
    for _ in range(limits.ATTEMPTS_MAX):
        token = new_registration(storage, other)
        marker = items.namespace_item(partition, token, expires_at, started_from)
        found = yield from storage.table.try_put(marker, protocol.register(token, expires_at))
        if found is None or found == marker:
            return expires_at
        # The other marker lives longer, or is newer by the clock of who put it.
        expires_at, other = later(expires_at, items.expires_at(found)), found
    raise errors.ThreadBusyError(
        f"namespace {partition.namespace!r} of thread {partition.thread_id!r} is being registered by other processes"
        f" ({limits.ATTEMPTS_MAX} attempts); retry the call"
    )


def new_registration(storage: Storage, marker: Item) -> bytes:
    """Return the token of a registration of a namespace, after the one that its marker has, if it has one."""
    after = bytes(marker.get(items.REGISTERED, {}).get("B", b""))
    return protocol.registration(storage.clock(), storage.rng.randbytes(2), after)


def unregister_namespace(storage: Storage, marker: Item) -> Op[None]:
    """Delete a namespace's marker, unless the namespace has been registered again."""
    yield from storage.table.try_delete(items.key_of(marker), protocol.unregister(marker))


# Expiry


def extend(storage: Storage, item_key: Item, expires_at: int | None) -> Op[bool]:
    """Extend an item's expiry, never shortening it; return whether the item exists."""
    other = yield from storage.table.try_update(item_key, protocol.extend(expires_at))
    return other is None or bool(other)


def extend_segments(
    storage: Storage, partition: Partition, ids: Iterable[bytes], expires_at: int | None
) -> Op[set[bytes]]:
    """Extend the expiry of segments; return the ids of those that no longer exist."""
    wanted = sorted(ids)
    keys = [items.key(partition.pk, items.segment_sk(each)) for each in wanted]
    extended = yield from gather([extend(storage, key, expires_at) for key in keys])
    return {each for each, is_there in zip(wanted, extended, strict=True) if not is_there}
