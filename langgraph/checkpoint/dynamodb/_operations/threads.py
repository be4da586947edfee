"""`set_thread` and `threads`: describe a thread, and list threads by their last activity.

The entry of a thread is its thread item, which two sparse indexes show: by owner, and by the day of its last activity
(docs/decisions/0011). `entries.py` seals and opens what it says. No list scans the table.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from .. import protocol
from .._format import codec, items, limits, schema
from .._format.items import Item, Partition
from .._format.moments import in_epoch_seconds
from .._runtime.requests import Pages
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from ..errors import CheckpointCorruptionError, CheckpointerError, CheckpointerInputError, ThreadBusyError
from . import overview, reads, thread_item
from .arguments import checked_filter, checked_id, shortened
from .entries import ThreadDescription, described, entry_of, is_of_tenant, owner_key, read_about
from .error_collector import OF_ONE_THREAD

logger = logging.getLogger("langgraph.checkpoint.dynamodb")

PAGE_THREADS_MAX = 1000
# A page with a status ends, full or not, once so many threads were looked up, a query each.
PAGE_LOOKUPS_MAX = 200
# How far back a list of all threads goes if it is not told, and how far it may. Each day is a query, and a page may
# have to read them all.
DAYS_LISTED = 30
_DAYS_MAX = 366
# The last second that has a day.
MOMENT_MAX = 253_402_300_799
# A cursor names a thread. JSON writes a byte of its key in up to three, as \u00e9 for the two of é, and Base64 makes
# three bytes four. The rest is the time.
_CURSOR_CHARACTERS_MAX = 4 * (3 * limits.PARTITION_KEY_BYTES_MAX + 64) // 3
STATUSES = ("idle", "waiting", "failed")


@dataclass(frozen=True)
class ThreadSummary:
    """A thread in a list."""

    thread_id: str
    owner: str | None
    """The owner; `None` if nobody named one."""
    title: str | None
    metadata: Mapping[str, Any]
    """The metadata that `set_thread` was given."""
    created_at: datetime | None
    """When the thread began: with its first put, or with the oldest checkpoint that the table had when the thread was
    entered later."""
    last_active: datetime | None
    """When it was last active, up to `ACTIVITY_SECONDS` too old."""
    status: str | None = None
    """`idle`, `waiting` for a human or `failed`, as of the newest checkpoint.

    `None` if it was not looked up, or cannot be read.
    """
    step: int | None = None
    """The newest checkpoint's step."""


@dataclass(frozen=True)
class ThreadPage:
    """A page of a list of threads."""

    threads: Sequence[ThreadSummary]
    cursor: str | None
    """Continues the list, as `before`; `None` at its end. It names a position in this list and nothing else."""


# Describing a thread


def set_thread(
    storage: Storage, thread_id: str, owner: Any, title: Any, metadata: Mapping[str, Any] | None
) -> Op[None]:
    """Set a thread's owner, title and metadata. Arguments that are `None` change nothing.

    Raises:
        PinnedEpochError: The epoch has ended that the storage is pinned to.
    """
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    # Refuse what cannot be stored before the thread is created for it.
    new = entry_of(storage, root, described(ThreadDescription(storage.owner), root, owner, title, metadata))
    entry, old = new, None
    for _ in range(limits.ATTEMPTS_MAX):
        old = yield from _describe(storage, root, entry, old)
        if old is None:
            return
        if schema.LAST_ACTIVE not in old:
            entry, old = new, None
            continue
        thread_item.check_pinned(storage, items.binary(old, items.EPOCH))
        known = read_about(storage.codec, old)
        about = described(known, root, owner, title, metadata)
        entry = entry_of(storage, root, about)
        # The key of the index is another one once the saver encrypts.
        if about == known and old.get(schema.OWNER) == entry.get(schema.OWNER):
            return
    raise ThreadBusyError(
        f"thread {thread_id!r} was changed or deleted {limits.ATTEMPTS_MAX} times while its owner or title was set;"
        " retry the call"
    )


def _describe(storage: Storage, root: Partition, entry: Item, old: Item | None) -> Op[Item | None]:
    """Enter a thread in the directory, or replace the entry that it has.

    Args:
        storage: The storage.
        root: The thread.
        entry: The new entry.
        old: The thread item whose entry is replaced; `None` enters a thread that is not in the directory.

    Returns:
        `None` if it was done. Otherwise the thread item, empty if there is none: it has another entry than `old`.

    Raises:
        ThreadBusyError: The thread was deleted at every attempt.
    """
    if old is None:
        thread = yield from thread_item.ensure_epoch(replace(storage, entry=lambda: entry), root)
        found = yield from storage.table.get(root.pk, items.THREAD)
        if found is None or schema.LAST_ACTIVE in found:
            return found or {}
        now, began = storage.clock(), (yield from thread_item.began_at(storage, root))
        change = protocol.list_thread(thread.epoch, entry, now, now if began is None else began)
    else:
        change = protocol.describe_thread(items.binary(old, items.EPOCH), entry, old)
    return (yield from storage.table.try_update(items.thread_key(root), change))


# Reading entries in the order in which lists show them


@dataclass(frozen=True)
class ThreadPosition:
    """The place of a thread in a list."""

    last_active: int
    thread_id: str

    @classmethod
    def of(cls, entry: Item) -> ThreadPosition:
        """Return the place of an entry."""
        thread_id = items.parse_partition(items.partition_key(entry)).thread_id
        return cls(items.number(entry, schema.LAST_ACTIVE) or 0, thread_id)


def _read_entries(
    storage: Storage, owner: str | None, since: int, before: ThreadPosition | None, count: int
) -> Op[tuple[Sequence[Item], bool]]:
    """Read entries until there are as many as wanted, or to the end of the list.

    Args:
        storage: The storage.
        owner: The owner's key in the index; `None` for all threads, by one query for each day.
        since: The last activity at which the list ends, in epoch seconds.
        before: The entry behind which to begin; `None` for the newest.
        count: How many entries are wanted. There may be more, by up to a page.

    Returns:
        The entries as they are stored, newest activity first, and whether the list ends with them.

    Raises:
        CheckpointerInputError: A list of all threads would go back too many days.
    """
    if before is not None and before.last_active < since:
        # DynamoDB refuses a query that would begin behind its end.
        return [], True
    if owner is None and since < storage.clock() - _DAYS_MAX * 24 * 3600:
        raise CheckpointerInputError(
            f"since is more than {_DAYS_MAX} days ago; each day is a query, so give a later time, or an owner"
        )
    found: list[Item] = []
    start = before
    for index, hash_name, hash_key in _partitions(storage, owner, since, before):
        pages = _pages((index, hash_name, hash_key), since, start, count)
        start = None
        while not pages.done:
            response = yield from storage.table.send("query", **pages.params())
            pages.advance(response)
            found += response["Items"]
            if len(found) >= count:
                # All threads may have older days.
                is_last = owner is not None and "LastEvaluatedKey" not in response
                return found, is_last
    return found, True


def _partitions(
    storage: Storage, owner: str | None, since: int, before: ThreadPosition | None
) -> Iterator[tuple[str, str, str]]:
    """Yield the index, hash attribute and hash key of each query: one for an owner, one a day for all threads."""
    if owner is not None:
        yield schema.OWNER_INDEX, schema.OWNER, owner
        return
    # A position may come from anywhere. No thread was active a day after now.
    latest = storage.clock() + 24 * 3600
    # By a clock that is ahead, one may have been active tomorrow already.
    at = storage.clock() + limits.SKEW_SECONDS if before is None else min(before.last_active, latest)
    day = datetime.fromtimestamp(at, timezone.utc).date()
    while day.isoformat() >= protocol.day_of(since):
        yield schema.DAY_INDEX, schema.ACTIVE_DAY, day.isoformat()
        day -= timedelta(days=1)


def _pages(partition: tuple[str, str, str], since: int, start: ThreadPosition | None, count: int) -> Pages:
    index, hash_name, hash_key = partition
    params: dict[str, Any] = {
        "IndexName": index,
        "KeyConditionExpression": "#hash = :hash AND #active >= :since",
        "ExpressionAttributeNames": {"#hash": hash_name, "#active": schema.LAST_ACTIVE},
        "ExpressionAttributeValues": {":hash": {"S": hash_key}, ":since": {"N": str(since)}},
        "ScanIndexForward": False,
    }
    if start is not None:
        params["ExclusiveStartKey"] = {
            hash_name: {"S": hash_key},
            schema.LAST_ACTIVE: {"N": str(start.last_active)},
            schema.PARTITION_KEY: {"S": items.partition_of(start.thread_id).pk},
            schema.SORT_KEY: {"S": items.THREAD},
        }
    return Pages(params, count)


@dataclass(frozen=True)
class Newest:
    """The newest checkpoint of a thread."""

    status: str | None
    """`idle`, `waiting` for a human or `failed`; `None` if it cannot be read."""
    step: int | None = None
    checkpoint_id: str | None = None
    """Its id; `None` if the thread has none."""


def look_up(storage: Storage, thread_id: str) -> Op[Newest]:
    """Read the status, step and id of a thread's newest checkpoint."""
    found = yield from reads.NamespaceReader(storage, items.partition_of(thread_id), consistent=False).page()
    if not found:
        return Newest("idle")
    metadata = yield from overview.readable_metadata(storage, found[0].head)
    return Newest(overview.status_of(found[0].writes), (metadata or {}).get("step"), found[0].checkpoint_id)


# Listing


def _cursor_of(position: ThreadPosition) -> str:
    text = json.dumps([position.last_active, position.thread_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def _unpacked(cursor: Any) -> Any:
    if len(cursor) > _CURSOR_CHARACTERS_MAX:
        raise ValueError("it is longer than any cursor")
    return json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))


def _parse_cursor(cursor: Any) -> ThreadPosition:
    try:
        last_active, thread_id = _unpacked(cursor)
        items.partition_of(thread_id)
        if type(last_active) is int and 0 <= last_active <= MOMENT_MAX:
            return ThreadPosition(last_active, thread_id)
    except (TypeError, AttributeError, ValueError, RecursionError):
        pass
    raise CheckpointerInputError(
        f"before is {shortened(cursor)}; give the cursor of an earlier page of this list, or None"
    )


@dataclass
class _ThreadList:
    """The arguments of a list, and the threads found so far."""

    storage: Storage
    query: ThreadQuery
    owner: str | None
    metadata: Mapping[str, Any]
    since: int
    for_operators: bool
    key: str | None = None
    """The owner's key in the index; `None`: the one under which the saver enters threads."""
    found: list[tuple[ThreadPosition, ThreadSummary]] = field(default_factory=list)
    has_read: bool = False
    """Whether any entry could be read."""
    looked_up: int = 0
    """How many threads were looked up for their status."""
    damage: CheckpointerError | None = None

    def page(self, position: ThreadPosition | None) -> Op[ThreadPage]:
        """Read one thread more than the page has, which tells whether the list goes on, or to its end.

        With a status, the page also ends after a number of look-ups, behind the last thread that was looked up.
        """
        key = self.key
        if key is None and self.owner is not None:
            key = owner_key(self.storage, self.owner)
        is_first = position is None
        limit = self.query.limit
        is_last, count = False, min(limit + 1, PAGE_THREADS_MAX)
        while not is_last and len(self.found) <= limit and self.looked_up < PAGE_LOOKUPS_MAX:
            if self.query.status is not None:
                count = min(count, PAGE_LOOKUPS_MAX - self.looked_up)
            entries, is_last = yield from _read_entries(self.storage, key, self.since, position, count)
            count = min(2 * count, PAGE_THREADS_MAX)
            position = ThreadPosition.of(entries[-1]) if entries else position
            yield from self._add(entries)
        if is_first and self.damage is not None and not self.has_read and self.key is None:
            # It may be all entries, and the saver the one that cannot read them.
            raise self.damage
        shown = self.found[:limit]
        if len(self.found) > limit:
            position = shown[-1][0]
        elif is_last:
            position = None
        return ThreadPage([each for _, each in shown], None if position is None else _cursor_of(position))

    def _add(self, entries: Sequence[Item]) -> Op[None]:
        """Add the threads among entries of an index that are to be shown."""
        new = [
            (ThreadPosition.of(each), summary)
            for each in entries
            if (summary := self._summary(each)) is not None
        ]
        status = self.query.status
        if self.query.with_status or status is not None:
            self.looked_up += len(new) if status is not None else 0
            newest = yield from gather([self._newest(summary.thread_id) for _, summary in new])
            new = [
                (position, replace(summary, status=each.status, step=each.step))
                for (position, summary), each in zip(new, newest, strict=True)
            ]
        self.found += [each for each in new if status is None or each[1].status == status]

    def _newest(self, thread_id: str) -> Op[Newest]:
        """Look up a thread, and log what is wrong with it: one thread hides no other."""
        try:
            return (yield from look_up(self.storage, thread_id))
        except OF_ONE_THREAD as error:
            logger.warning("A list of threads does not know the status of thread %r: %s", thread_id, error)
            return Newest(None)

    def _summary(self, item: Item) -> ThreadSummary | None:
        """Return a thread as its entry tells it; `None` if it is not to be shown."""
        root = items.parse_partition(items.partition_key(item))
        last_active = items.number(item, schema.LAST_ACTIVE) or 0
        if not self.for_operators and _has_expired(item, self.storage.clock()):
            return None
        try:
            about = read_about(self.storage.codec, item)
        except OF_ONE_THREAD as error:
            # Its owner is not known: somebody may have forged the entry, or has another key.
            if self.for_operators:
                # Damage does not keep them from the thread, but the wrong key does.
                self.damage = self.damage or (error if isinstance(error, codec.UnreadableError) else None)
                return ThreadSummary(root.thread_id, None, None, {}, None, in_epoch_seconds(last_active))
            logger.warning("Thread %r is left out of a list: %s", root.thread_id, error)
            self.damage = self.damage or error
            return None
        self.has_read = True
        if not is_of_tenant(root, about) or (self.owner is not None and about.owner != self.owner):
            return None
        if not _has(about.metadata, self.metadata):
            return None
        return ThreadSummary(
            root.thread_id,
            about.owner,
            about.title,
            about.metadata,
            in_epoch_seconds(_readable(items.number, item, items.CREATED_AT)),
            in_epoch_seconds(last_active),
        )


def _readable(read: Callable[..., int | None], *arguments: Any) -> int | None:
    """Read a number of an entry; return `None` if it is damaged."""
    try:
        return read(*arguments)
    except CheckpointCorruptionError as error:
        logger.warning("A list of threads shows what can be read of an entry: %s", error)
        return None


def _has_expired(item: Item, now: float) -> bool:
    """Tell whether readers do not see a thread any more, or a copy not yet.

    One whose life is damaged is shown, so that it can be deleted.
    """
    alive_until = _readable(items.number, item, schema.ALIVE_UNTIL)
    return alive_until is not None and alive_until <= now


def _wanted(metadata: Any) -> dict[str, Any]:
    """Return the metadata that listed threads must have as the directory stores them: a tuple is a list."""
    wanted = checked_filter(metadata)
    text = codec.metadata_json(wanted)
    if text is None:
        raise CheckpointerInputError(
            f"metadata is {shortened(wanted)}, which no thread can have; give a dict that JSON can represent"
        )
    return dict(json.loads(text))


def _has(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in metadata and metadata[name] == value for name, value in wanted.items())


@dataclass(frozen=True, kw_only=True)
class ThreadQuery:
    """The arguments of a list of threads, as `threads` of a saver takes them."""

    owner: str | None = None
    status: str | None = None
    metadata: Mapping[str, Any] | None = None
    limit: int = 20
    before: str | None = None
    with_status: bool = False
    since: datetime | None = None

    def wanted_metadata(self) -> dict[str, Any]:
        """Check the arguments, and return the metadata that the threads must have.

        Raises:
            CheckpointerInputError: One of them cannot be used; the message names it.
        """
        limit: Any = self.limit
        since: Any = self.since
        if self.status is not None and self.status not in STATUSES:
            raise CheckpointerInputError(
                f"status is {self.status!r}; give {', '.join(map(repr, STATUSES))}, or None for all"
            )
        if type(limit) is not int or not 1 <= limit <= PAGE_THREADS_MAX:
            raise CheckpointerInputError(
                f"limit is {limit!r}; give a whole number from 1 to {PAGE_THREADS_MAX:,}"
            )
        if since is not None and (not isinstance(since, datetime) or since.tzinfo is None):
            raise CheckpointerInputError(f"since is {since!r}; give a datetime with a time zone, or None")
        if self.before is not None:
            _parse_cursor(self.before)
        return _wanted(self.metadata)


def list_threads(
    storage: Storage, query: ThreadQuery, *, for_operators: bool = False, key: str | None = None
) -> Op[ThreadPage]:
    """List the threads of an owner, or all threads, newest activity first. Arguments are checked at the first step.

    Users do not see threads whose entry is damaged. Operators who erase a person's data need them; they have no owner.
    They also need those under another `key` of the owner, from before the saver encrypted.
    """
    name = storage.owner if query.owner is None else checked_id(query.owner, "owner")
    wanted = query.wanted_metadata()
    since = _oldest(storage, name, query.since)
    listing = _ThreadList(storage, query, name, wanted, since, for_operators, key)
    return (yield from listing.page(None if query.before is None else _parse_cursor(query.before)))


def _oldest(storage: Storage, owner: str | None, since: datetime | None) -> int:
    """Return the time in epoch seconds at which a list ends."""
    if since is None:
        return 0 if owner is not None else int(storage.clock()) - DAYS_LISTED * 24 * 3600
    return min(max(0, int(since.timestamp())), MOMENT_MAX)
