"""The directory in the table: entries as they are stored, in the order in which lists show them.

The entry of a thread is its thread item, which two sparse indexes show: by owner, and by the day of its last activity
(docs/decisions/0011). Puts enter a thread and note that it is active (`threads.py`). No list scans the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb._format.schema import (
    ACTIVE_DAY,
    DAY_INDEX,
    LAST_ACTIVE,
    OWNER,
    OWNER_INDEX,
    PARTITION_KEY,
    SORT_KEY,
)
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.entries import (
    ThreadDescription,
    described,
    entry_of,
    is_of_tenant,
    owner_key,
    read_about,
    sealed_about,
)
from langgraph.checkpoint.dynamodb._operations.overview import readable_metadata, status_of
from langgraph.checkpoint.dynamodb._operations.reads import NamespaceReader, StoredCheckpoint
from langgraph.checkpoint.dynamodb._operations.threads import began_at, ensure_epoch, find_epoch
from langgraph.checkpoint.dynamodb._runtime.requests import Pages
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError

# How far back a list of all threads may go: each day is a query, and a page may have to read them all.
_DAYS_MAX = 366


@dataclass(frozen=True)
class ThreadPosition:
    """The place of a thread in a list."""

    last_active: int
    thread_id: str

    @classmethod
    def of(cls, entry: Item) -> ThreadPosition:
        """Return the place of an entry."""
        thread_id = items.parse_partition(items.partition_key(entry)).thread_id
        return cls(items.number(entry, LAST_ACTIVE) or 0, thread_id)


def read_entries(
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
        msg = (
            f"since is more than {_DAYS_MAX} days ago; each day is a query, so give a later time, or an owner"
        )
        raise CheckpointerInputError(msg)
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
        yield OWNER_INDEX, OWNER, owner
        return
    # A position may come from anywhere. No thread was active a day after now.
    latest = storage.clock() + 24 * 3600
    at = storage.clock() if before is None else min(before.last_active, latest)
    day = datetime.fromtimestamp(at, timezone.utc).date()
    while day.isoformat() >= protocol.day_of(since):
        yield DAY_INDEX, ACTIVE_DAY, day.isoformat()
        day -= timedelta(days=1)


def _pages(partition: tuple[str, str, str], since: int, start: ThreadPosition | None, count: int) -> Pages:
    index, hash_name, hash_key = partition
    params: dict[str, Any] = {
        "IndexName": index,
        "KeyConditionExpression": "#hash = :hash AND #active >= :since",
        "ExpressionAttributeNames": {"#hash": hash_name, "#active": LAST_ACTIVE},
        "ExpressionAttributeValues": {":hash": {"S": hash_key}, ":since": {"N": str(since)}},
        "ScanIndexForward": False,
    }
    if start is not None:
        params["ExclusiveStartKey"] = {
            hash_name: {"S": hash_key},
            LAST_ACTIVE: {"N": str(start.last_active)},
            PARTITION_KEY: {"S": items.partition_of(start.thread_id).pk},
            SORT_KEY: {"S": items.THREAD},
        }
    return Pages(params, count)


def describe(storage: Storage, root: Partition, entry: Item, old: Item | None) -> Op[Item | None]:
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
        thread = yield from ensure_epoch(replace(storage, entry=lambda: entry), root)
        found = yield from storage.table.get(root.pk, items.THREAD)
        if found is None or LAST_ACTIVE in found:
            return found or {}
        now, began = storage.clock(), (yield from began_at(storage, root))
        change = protocol.list_thread(thread.epoch, entry, now, now if began is None else began)
    else:
        change = protocol.describe_thread(items.binary(old, items.EPOCH), entry, old)
    return (yield from storage.table.try_update(items.thread_key(root), change))


@dataclass(frozen=True)
class Newest:
    """The newest checkpoint of a thread."""

    status: str
    """`idle`, `waiting` for a human or `failed`."""
    step: int | None = None


def look_up(storage: Storage, thread_id: str) -> Op[Newest]:
    """Read the status and step of a thread's newest checkpoint."""
    found = yield from NamespaceReader(storage, items.partition_of(thread_id), consistent=False).page()
    if not found:
        return Newest("idle")
    metadata = yield from readable_metadata(storage, found[0].head)
    return Newest(status_of(found[0]), (metadata or {}).get("step"))


def carry_entry(
    read: Storage,
    storage: Storage,
    source: Partition,
    target: Partition,
    epoch: bytes,
    ends_at: int | None,
) -> Op[None]:
    """Enter a copy of a thread in the directory as its original is, unless the copy is another tenant's.

    Args:
        read: The storage of the original.
        storage: The storage of the copy.
        source: The original.
        target: The copy.
        epoch: The epoch of the copy.
        ends_at: When the copy's checkpoints expire, in epoch seconds; `None` for never.
    """
    item = yield from read.table.get(source.root, items.THREAD)
    last_active = None if item is None else items.number(item, LAST_ACTIVE)
    if item is None or last_active is None:
        return
    about = read_about(read.codec, item)
    if not is_of_tenant(target, about):
        return
    # An owner's key is the same for every thread, so this needs no key for digests. With one, the copy is listed as
    # this saver lists threads: the original may be from before it encrypted.
    owner = {OWNER: item[OWNER]} if OWNER in item else {}
    if about.owner is not None and storage.owner_key is not None:
        owner = {OWNER: {"S": owner_key(storage, about.owner)}}
    entry = {**owner, **sealed_about(storage, target, about)}
    created_at = items.number(item, items.CREATED_AT) or last_active
    yield from _enter(storage, target, epoch, (entry, last_active, created_at, ends_at))


def enter_thread(storage: Storage, thread_id: str, owner_from: str) -> Op[str | None]:
    """Enter a thread that has checkpoints in the directory, as puts with that option would have.

    The newest checkpoint whose metadata name an owner counts: an approver or an operator may have gone on with a thread
    without naming its owner. A thread that is there already stays as it is. But it gets the owner if it has none, and
    one that was entered before the saver encrypted is listed as the saver lists threads now.

    Returns:
        The thread's owner; `None` if it has none.

    Raises:
        CheckpointNotFoundError: The thread has no checkpoint in its root namespace, or has expired.
        CheckpointerInputError: The owner in its metadata cannot be used.
    """
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    history = NamespaceReader(storage, root)
    found = yield from history.page()
    if not found:
        msg = f"thread {thread_id!r} of table {storage.table.name} has no checkpoint, or has expired"
        raise CheckpointNotFoundError(msg)
    newest = found[0]
    entered = yield from storage.table.get(root.pk, items.THREAD)
    owner: Any = None if entered is None else read_about(storage.codec, entered).owner
    if owner is None:
        owner = yield from _named_owner(storage, found, history, owner_from)
    new = described(ThreadDescription(), root, owner, None, None)
    now = datetime.fromtimestamp(storage.clock(), timezone.utc)
    last_active = min(stored_at(newest.checkpoint_id) or now, now).timestamp()
    began = yield from began_at(storage, root)
    created_at = last_active if began is None else began
    thread = yield from find_epoch(storage, root)
    listed = (entry_of(storage, root, new), last_active, created_at, items.ends_at(newest.head))
    there = yield from _enter(storage, root, thread.epoch, listed)
    if there is None:
        return new.owner
    known = read_about(storage.codec, there)
    about = replace(known, owner=known.owner or new.owner)
    entry = entry_of(storage, root, about)
    if entry.get(OWNER) != there.get(OWNER):
        change = protocol.describe_thread(items.binary(there, items.EPOCH), entry, there)
        yield from storage.table.try_update(items.thread_key(root), change)
    return about.owner


def _named_owner(
    storage: Storage, page: Sequence[StoredCheckpoint], history: NamespaceReader, owner_from: str
) -> Op[Any]:
    """Return the owner that the newest checkpoint names of those that name one, as the metadata have it."""
    while True:
        for each in page:
            metadata: Mapping[str, Any] = (yield from readable_metadata(storage, each.head)) or {}
            if metadata.get(owner_from) is not None:
                return metadata[owner_from]
        if history.done:
            return None
        page = yield from history.page()


def _enter(
    storage: Storage, root: Partition, epoch: bytes, listed: tuple[Item, float, float, int | None]
) -> Op[Item | None]:
    """Enter a thread in the directory, unless it is there, when it returns its item, or has been deleted.

    A prune may have ended the epoch since it was read: what it kept is entered under the next one.
    """
    until = listed[-1]
    for _ in range(ATTEMPTS_MAX):
        change = protocol.list_thread(epoch, *listed)
        found = yield from storage.table.try_update(items.thread_key(root), change)
        if not found:
            return None
        epoch = items.binary(found, items.EPOCH)
        if LAST_ACTIVE in found:
            if until is not None:
                longer = protocol.list_longer(epoch, until)
                yield from storage.table.try_update(items.thread_key(root), longer)
            return found
    return None
