"""`delete_owner`: delete all threads of an owner, those that have expired for readers included.

The directory's index has them, and lags a little: so it is read again at the end, and each deleted thread is looked
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from .._format import items
from .._format.schema import OWNER
from .._runtime.cache import CachedThread
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from ..errors import CheckpointerConfigurationError
from ..protocol import Thread
from .arguments import checked_id
from .delete import delete_thread
from .entries import owner_keys
from .error_collector import OF_ONE_THREAD
from .overview import is_stored
from .thread_item import PinnedEpochError
from .threads import ThreadQuery, ThreadSummary, list_threads

_PAGE_THREADS = 100
# How many threads are deleted in parallel.
AT_ONCE = 4
# How many threads of the directory are tried to see whether the keys are right.
_THREADS_TRIED = 10
UNREADABLE = "its entry in the directory cannot be read; find out whose thread it is, and name it by its id"
_ANOTHERS = "it is another owner's by now"
_AGAIN = "the table has it again, or it was begun meanwhile; stop its agent, and repeat the deletion"


@dataclass(frozen=True)
class OwnerDeletion:
    """The outcome of `delete_owner`."""

    deleted: Sequence[str]
    """The threads that were deleted."""
    failed: dict[str, str]
    """The threads that may still be there, with the reason for each."""
    not_looked_at: Sequence[str]
    """Where the owner's data may be besides."""


def delete_owner(
    storage: Storage, owner: str, at_once: int = AT_ONCE, *, checks_keys: bool = True
) -> Op[OwnerDeletion]:
    """Delete the threads of an owner. Without threads, `checks_keys` looks into those of others.

    Raises:
        CheckpointerConfigurationError: There are none, and the keys are not those of the directory.
    """
    name = checked_id(owner, "owner")
    listed = yield from owned(storage, name)
    if not listed and checks_keys:
        yield from check_owner_keys(storage)
    # A thread whose entry can be read is listed only if the entry has this owner.
    failed = {each.thread_id: UNREADABLE for each in listed if each.owner is None}
    readable = [each.thread_id for each in listed if each.owner is not None]
    done = list[str]()
    for some in _groups(readable, at_once):
        errors = yield from gather([_deleted(storage, name, each) for each in some])
        done += [each for each, error in zip(some, errors, strict=True) if error is None]
        failed |= {each: error for each, error in zip(some, errors, strict=True) if error is not None}
    again = [each.thread_id for each in (yield from owned(storage, name))]
    left = list(dict.fromkeys([*done, *again]).keys() - failed.keys())
    for some in _groups(sorted(left), at_once):
        there = yield from gather([is_stored(storage, each) for each in some])
        failed |= {each: _AGAIN for each, is_there in zip(some, there, strict=True) if is_there}
    deleted = [each for each in done if each not in failed]
    return OwnerDeletion(deleted, failed, not_looked_at(name))


def not_looked_at(owner: str) -> list[str]:
    """Return where data of an owner may be besides the threads that the directory has."""
    return [
        f"threads that the directory does not have as {owner}'s: `langgraph-dynamodb threads --without-owner` lists"
        " those without an owner",
        "memories: `delete_namespace` of the store deletes them",
        "the node cache",
        "what agents store while this runs",
        "backups, exported files and logs",
    ]


def owned(storage: Storage, owner: str) -> Op[list[ThreadSummary]]:
    """Return all threads that the directory has of an owner, expired or not."""
    found, cursor = list[ThreadSummary](), None
    while True:
        query = ThreadQuery(owner=owner, limit=_PAGE_THREADS, before=cursor)
        page = yield from list_threads(storage, query, for_operators=True)
        found += page.threads
        cursor = page.cursor
        if cursor is None:
            return found


def check_owner_keys(storage: Storage) -> Op[None]:
    """Raise if the keys are not those of the directory, so that nobody's threads would be found.

    Without the key that encrypts it, reading an entry raises. With another `owner_key`, no owner has threads.

    Raises:
        CheckpointerConfigurationError: They are not.
    """
    page = yield from list_threads(storage, ThreadQuery(limit=_THREADS_TRIED), for_operators=True)
    for each in page.threads:
        own = () if each.owner is None else (yield from owned(storage, each.owner))
        if each.owner is not None and all(one.thread_id != each.thread_id for one in own):
            msg = (
                f"thread {each.thread_id!r} is not in the list of its owner, so the threads of others cannot be found"
                " either: configure the owner_key of the agents, and run `langgraph-dynamodb directory` if they have"
                " encrypted only since"
            )
            raise CheckpointerConfigurationError(msg)


def _deleted(storage: Storage, owner: str, thread_id: str) -> Op[str | None]:
    """Delete a thread; return why it could not be deleted.

    The index lags: by now its id may be another owner's thread, or become that before the deletion has its claim. So
    the deletion is pinned to the epoch of this owner's thread.
    """
    item = yield from storage.table.get(items.partition_of(thread_id).root, items.THREAD)
    if item is None or OWNER not in item:
        return None
    if items.text(item, OWNER) not in owner_keys(storage, owner):
        return _ANOTHERS
    try:
        state = Thread.parse(item)
        yield from delete_thread(replace(storage, pinned=CachedThread(state.epoch, state.life)), thread_id)
    except OF_ONE_THREAD as error:
        return str(error)
    except PinnedEpochError:
        return _AGAIN
    return None


def _groups(names: Iterable[str], at_once: int) -> Iterable[list[str]]:
    rest = iter(names)
    while some := list(islice(rest, at_once)):
        yield some
