"""`set_thread`, `threads` and `runs`: describe a thread, list threads by their last activity, list a thread's runs.

The entry of a thread is its thread item, which two sparse indexes show: by owner, and by the day of its last activity
(docs/decisions/0021). Puts enter a thread and note that it is active (`threads.py`). No list scans the table.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds, stored_at
from langgraph.checkpoint.dynamodb._format.schema import (
    ACTIVE_DAY,
    DAY_INDEX,
    LAST_ACTIVE,
    OWNER,
    OWNER_INDEX,
    PARTITION_KEY,
    RUN_ID,
    SORT_KEY,
)
from langgraph.checkpoint.dynamodb._operations.arguments import checked_filter, checked_id
from langgraph.checkpoint.dynamodb._operations.entries import (
    About,
    described,
    entry_of,
    is_of_tenant,
    owner_key,
    read_about,
    sealed_about,
)
from langgraph.checkpoint.dynamodb._operations.overview import has_failed, is_waiting, readable_metadata
from langgraph.checkpoint.dynamodb._operations.reads import NamespaceReader, StoredCheckpoint
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch, find_epoch
from langgraph.checkpoint.dynamodb._runtime.requests import Pages
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerInputError,
    CheckpointNotFoundError,
    ThreadBusyError,
)

PAGE_THREADS_MAX = 1000
# How far back a list of all threads goes if it is not told: each day is a query.
DAYS_LISTED = 30
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
    """When the thread was entered in the directory."""
    last_active: datetime | None
    """When it was last active, up to the saver's `activity_seconds`."""
    status: str | None = None
    """`idle`, `waiting` for a human or `failed`, as of the newest checkpoint; `None` if it was not looked up."""
    step: int | None = None
    """The newest checkpoint's step."""


@dataclass(frozen=True)
class ThreadPage:
    """A page of a list of threads."""

    threads: Sequence[ThreadSummary]
    cursor: str | None
    """Continues the list, as `before`; `None` at its end. It names a position in this list and nothing else."""


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


# Describing a thread


def set_thread(
    storage: LocalStorage, thread_id: str, owner: Any, title: Any, metadata: Mapping[str, Any] | None
) -> Op[None]:
    """Say whose thread it is and what it is about. Arguments that are `None` stay as they were."""
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    asked = described(About(), root, owner, title, metadata)
    # Refuse what cannot be stored before the thread is created for it.
    new = entry_of(storage, root, asked)
    for _ in range(ATTEMPTS_MAX):
        thread = yield from ensure_epoch(replace(storage, entry=lambda: new), root)
        old = yield from storage.table.get(root.pk, items.THREAD)
        if old is None:
            continue
        if LAST_ACTIVE not in old:
            change = protocol.list_thread(thread.epoch, new, storage.clock(), storage.clock())
        else:
            about = described(read_about(storage.codec, old), root, owner, title, metadata)
            if about == read_about(storage.codec, old):
                return
            change = protocol.describe_thread(thread.epoch, entry_of(storage, root, about), old)
        if (yield from storage.table.try_update(items.thread_key(root), change)) is None:
            return
    msg = (
        f"Thread {thread_id!r} was changed or deleted {ATTEMPTS_MAX} times while its owner or title was set. Retry the"
        " call."
    )
    raise ThreadBusyError(msg)


def carry_entry(
    read: LocalStorage, storage: LocalStorage, source: Partition, target: Partition, epoch: bytes
) -> Op[None]:
    """Enter a copy of a thread in the directory as its original is, unless the copy is another tenant's."""
    item = yield from read.table.get(source.root, items.THREAD)
    last_active = None if item is None else items.number(item, LAST_ACTIVE)
    if item is None or last_active is None:
        return
    about = read_about(read.codec, item)
    if not is_of_tenant(target, about):
        return
    # An owner's key is the same for every thread, so this needs no key for digests.
    owner = {OWNER: item[OWNER]} if OWNER in item else {}
    entry = {**owner, **sealed_about(storage, target, about)}
    created_at = items.number(item, items.CREATED_AT) or last_active
    change = protocol.list_thread(epoch, entry, last_active, created_at)
    yield from storage.table.try_update(items.thread_key(target), change)


def enter_thread(storage: LocalStorage, thread_id: str, owner_from: str) -> Op[None]:
    """Enter a thread that has checkpoints in the directory, as a put with that option would have, unless it is there.

    Raises:
        CheckpointNotFoundError: The thread has no checkpoint in its root namespace, or has expired.
        CheckpointerInputError: The owner in its metadata cannot be used.
    """
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    found = yield from NamespaceReader(storage, root).page()
    if not found:
        msg = f"thread {thread_id!r} of table {storage.table.name} has no checkpoint, or has expired"
        raise CheckpointNotFoundError(msg)
    metadata: Mapping[str, Any] = (yield from readable_metadata(storage, found[0].head)) or {}
    entry = entry_of(storage, root, described(About(), root, metadata.get(owner_from), None, None))
    now = datetime.fromtimestamp(storage.clock(), timezone.utc)
    last_active = min(stored_at(found[0].checkpoint_id) or now, now).timestamp()
    thread = yield from find_epoch(storage, root)
    change = protocol.list_thread(thread.epoch, entry, last_active, last_active)
    yield from storage.table.try_update(items.thread_key(root), change)


# Listing


@dataclass(frozen=True)
class _Position:
    """The place of a thread in a list."""

    last_active: int
    thread_id: str

    def cursor(self) -> str:
        text = json.dumps([self.last_active, self.thread_id], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def parse(cls, cursor: Any) -> _Position:
        try:
            last_active, thread_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
            items.partition_of(thread_id)
            protocol.day_of(last_active)
            if type(last_active) is int:
                return cls(last_active, thread_id)
        except (TypeError, AttributeError, ValueError, OverflowError, OSError, binascii.Error):
            pass
        msg = f"before is {cursor!r}; give the cursor of an earlier page of this list, or None"
        raise CheckpointerInputError(msg)


@dataclass
class _Listing:
    """The arguments of a list, and the threads found so far."""

    storage: LocalStorage
    owner: str | None
    status: str | None
    metadata: Mapping[str, Any]
    limit: int
    looks_up: bool
    since: int
    found: list[tuple[_Position, ThreadSummary]] = field(default_factory=list)

    def partitions(self, before: _Position | None) -> Iterator[tuple[str, str, str]]:
        """Yield the index, hash attribute and hash key of each query: one for an owner, one a day for all threads."""
        if self.owner is not None:
            yield OWNER_INDEX, OWNER, owner_key(self.storage, self.owner)
            return
        at = self.storage.clock() if before is None else before.last_active
        day = datetime.fromtimestamp(at, timezone.utc).date()
        while day.isoformat() >= protocol.day_of(self.since):
            yield DAY_INDEX, ACTIVE_DAY, day.isoformat()
            day -= timedelta(days=1)

    def page(self, before: _Position | None) -> Op[ThreadPage]:
        """Read until the page is full, or to the end of the list."""
        start = before
        for index, hash_name, hash_key in self.partitions(before):
            pages = self._pages(index, hash_name, hash_key, start)
            start = None
            while not pages.done:
                response = yield from self.storage.table.send("query", **pages.params())
                pages.advance(response)
                yield from self._add(response["Items"])
                if len(self.found) >= self.limit:
                    # All threads may have older days.
                    has_ended = "LastEvaluatedKey" not in response and self.owner is not None
                    return self._page(is_last=has_ended and len(self.found) == self.limit)
        return self._page(is_last=True)

    def _page(self, *, is_last: bool) -> ThreadPage:
        found = self.found[: self.limit]
        return ThreadPage([each for _, each in found], None if is_last else found[-1][0].cursor())

    def _pages(self, index: str, hash_name: str, hash_key: str, start: _Position | None) -> Pages:
        params: dict[str, Any] = {
            "IndexName": index,
            "KeyConditionExpression": "#hash = :hash AND #active >= :since",
            "ExpressionAttributeNames": {"#hash": hash_name, "#active": LAST_ACTIVE},
            "ExpressionAttributeValues": {":hash": {"S": hash_key}, ":since": {"N": str(self.since)}},
            "ScanIndexForward": False,
        }
        if start is not None:
            params["ExclusiveStartKey"] = {
                hash_name: {"S": hash_key},
                LAST_ACTIVE: {"N": str(start.last_active)},
                PARTITION_KEY: {"S": items.partition_of(start.thread_id).pk},
                SORT_KEY: {"S": items.THREAD},
            }
        return Pages(params, self.limit)

    def _add(self, entries: Sequence[Item]) -> Op[None]:
        """Add the threads among entries of an index that are to be shown."""
        new = [each for each in map(self._summary, entries) if each is not None]
        if self.looks_up:
            looked_up = yield from gather([look_up(self.storage, each) for _, each in new])
            new = [(position, summary) for (position, _), summary in zip(new, looked_up, strict=True)]
        self.found += [each for each in new if self.status is None or each[1].status == self.status]

    def _summary(self, item: Item) -> tuple[_Position, ThreadSummary] | None:
        """Return a thread as its entry tells it; `None` if it is not to be shown."""
        root = items.parse_partition(items.partition_key(item))
        last_active, ttl_seconds = items.number(item, LAST_ACTIVE) or 0, items.ttl_of(item)
        has_expired = ttl_seconds is not None and last_active + ttl_seconds <= self.storage.clock()
        if has_expired or items.COPY in item:
            return None
        about = read_about(self.storage.codec, item)
        if not is_of_tenant(root, about) or (self.owner is not None and about.owner != self.owner):
            return None
        if any(about.metadata.get(name) != value for name, value in self.metadata.items()):
            return None
        summary = ThreadSummary(
            root.thread_id,
            about.owner,
            about.title,
            about.metadata,
            in_epoch_seconds(items.number(item, items.CREATED_AT)),
            in_epoch_seconds(last_active),
        )
        return _Position(last_active, root.thread_id), summary


def list_threads(
    storage: LocalStorage,
    owner: Any,
    status: str | None,
    metadata: Mapping[str, Any] | None,
    limit: Any,
    before: str | None,
    with_status: bool,
    since: datetime | None,
) -> Op[ThreadPage]:
    """List the threads of an owner, or all threads, newest activity first. Arguments are checked at the first step."""
    name = None if owner is None else checked_id(owner, "owner")
    if status is not None and status not in STATUSES:
        msg = f"status is {status!r}; give {', '.join(map(repr, STATUSES))}, or None for all"
        raise CheckpointerInputError(msg)
    if type(limit) is not int or not 1 <= limit <= PAGE_THREADS_MAX:
        msg = f"limit is {limit!r}; give a whole number from 1 to {PAGE_THREADS_MAX:,}"
        raise CheckpointerInputError(msg)
    listing = _Listing(
        storage,
        name,
        status,
        checked_filter(metadata),
        limit,
        with_status or status is not None,
        _oldest(storage, name, since),
    )
    return (yield from listing.page(None if before is None else _Position.parse(before)))


def _oldest(storage: LocalStorage, owner: str | None, since: Any) -> int:
    """Return the time in epoch seconds at which a list ends."""
    if since is None:
        return 0 if owner is not None else int(storage.clock()) - DAYS_LISTED * 24 * 3600
    if not isinstance(since, datetime) or since.tzinfo is None:
        msg = f"since is {since!r}; give a datetime with a time zone, or None"
        raise CheckpointerInputError(msg)
    return max(0, int(since.timestamp()))


def look_up(storage: LocalStorage, summary: ThreadSummary) -> Op[ThreadSummary]:
    """Return a thread with the status and step of its newest checkpoint, by one eventually consistent query."""
    root = items.partition_of(summary.thread_id)
    found = yield from NamespaceReader(storage, root, consistent=False).page()
    if not found:
        return replace(summary, status="idle")
    metadata = yield from readable_metadata(storage, found[0].head)
    return replace(summary, status=_status_of(found[0]), step=(metadata or {}).get("step"))


def _status_of(checkpoint: StoredCheckpoint) -> str:
    if any(map(has_failed, checkpoint.writes)):
        return "failed"
    return "waiting" if any(map(is_waiting, checkpoint.writes)) else "idle"


# Runs


def list_runs(storage: LocalStorage, thread_id: str) -> Op[list[RunSummary]]:
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
            run = runs.get(run_id) or RunSummary(run_id, here, here, 0, _status_of(checkpoint))
            runs[run_id] = replace(run, first_checkpoint_id=here, checkpoints=run.checkpoints + 1)
    return list(runs.values())
