"""`delete_owner`: delete all threads of an owner, those that have expired for readers included, and memories.

The directory's index has the threads, and lags a little: so it is read again at the end, and each deleted thread is
looked for. Memories are deleted by their store, which may have another table, and twice, to see whether some were put
meanwhile.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from .._format import items, schema
from .._format.labels import label_of
from .._runtime.steps import Op, gather
from .._runtime.storage import CachedThread, Storage
from ..errors import CheckpointerConfigurationError, CheckpointerInputError
from ..protocol import Thread
from . import arguments, entries, overview, thread_item
from .delete import delete_thread
from .error_collector import OF_ONE_THREAD
from .threads import ThreadQuery, ThreadSummary, list_threads

_PAGE_THREADS = 100
# How many threads are deleted in parallel.
AT_ONCE = 4
# How many threads of the directory are tried to see whether the keys are right.
_THREADS_TRIED = 10
UNREADABLE = "its entry in the directory cannot be read; find out whose thread it is, and name it by its id"
_ANOTHERS = "it is another owner's by now"
# The label of a namespace that stands for the owner's name, without the tenant.
_OWNER = "{owner}"
# What an agent stores in a thread that was deleted meanwhile has no entry, so that no list of an owner has it.
_AGAIN = (
    "the table has it again, or it was begun meanwhile; stop its agent, repeat the deletion, and if that does not name"
    " the thread, delete it by its id"
)


class MemoryStore(Protocol):
    """A store whose memories can be deleted by their namespaces, such as `DynamoDBStore` and `HttpStore`."""

    def delete_namespace(self, namespace_prefix: Sequence[str]) -> int:
        """Delete every memory under a namespace; return how many there were."""

    async def adelete_namespace(self, namespace_prefix: Sequence[str]) -> int:
        """Delete every memory under a namespace; return how many there were."""


@dataclass(frozen=True)
class DeletedThreads:
    """The outcome of `delete_owner` for threads."""

    deleted: Sequence[str]
    """The threads that were deleted."""
    failed: dict[str, str]
    """The threads that may still be there, with the reason for each."""


@dataclass(frozen=True)
class OwnerDeletion(DeletedThreads):
    """The outcome of `delete_owner`."""

    memories: int
    """How many memories were deleted."""
    namespaces: Sequence[tuple[str, ...]]
    """Where they were."""
    put_meanwhile: Sequence[tuple[str, ...]]
    """The namespaces in which an agent put memories while they were deleted, and may still put some."""
    not_looked_at: Sequence[str]
    """Where the owner's data may be besides."""


def delete_owner(
    storage: Storage, owner: str, parallel: int = AT_ONCE, *, checks_keys: bool = True
) -> Op[DeletedThreads]:
    """Delete the threads of an owner. Without threads, `checks_keys` looks into those of others.

    Raises:
        CheckpointerConfigurationError: There are none, and the keys are not those of the directory.
    """
    name = arguments.checked_id(owner, "owner")
    if type(parallel) is not int or parallel < 1:
        raise CheckpointerInputError(f"parallel is {parallel!r}; give a whole number, 1 or more")
    listed = yield from owned(storage, name)
    if not listed and checks_keys:
        yield from check_owner_keys(storage)
    # A thread whose entry can be read is listed only if the entry has this owner.
    failed = {each.thread_id: UNREADABLE for each in listed if each.owner is None}
    readable = [each.thread_id for each in listed if each.owner is not None]
    done = list[str]()
    for some in _groups(readable, parallel):
        errors = yield from gather([_deleted(storage, name, each) for each in some])
        done += [each for each, error in zip(some, errors, strict=True) if error is None]
        failed |= {each: error for each, error in zip(some, errors, strict=True) if error is not None}
    again = [each.thread_id for each in (yield from owned(storage, name))]
    left = list(dict.fromkeys([*done, *again]).keys() - failed.keys())
    for some in _groups(sorted(left), parallel):
        there = yield from gather([overview.is_stored(storage, each) for each in some])
        failed |= {each: _AGAIN for each, is_there in zip(some, there, strict=True) if is_there}
    deleted = [each for each in done if each not in failed]
    return DeletedThreads(deleted, failed)


class OwnerMemories:
    """The namespaces of an owner's memories: each of them once, and none that is under another one."""

    def __init__(
        self, owner: str, memories: Iterable[Sequence[str]], store: MemoryStore | None, prefix: str = ""
    ) -> None:
        """Put the owner into the place of a template's label.

        Args:
            owner: The owner, as the caller knows it.
            memories: The templates of namespaces.
            store: The store that has the memories.
            prefix: What a client of the gateway puts in front of each owner. It may have the tenant already.

        Raises:
            CheckpointerInputError: The owner is no name, a namespace has no label that is the owner's, so that it may
                have the memories of others, or there is no store to delete them.
        """
        name = arguments.checked_id(owner, "owner")
        # An owner of a tenant begins with the tenant's name and a slash.
        tenant = entries.tenant_prefix(prefix + name)[len(prefix) :]
        label = label_of(name.removeprefix(tenant) or name)
        found = dict[tuple[str, ...], None]()
        for labels in memories:
            each = tuple(label if name == _OWNER else name for name in labels)
            if isinstance(labels, str) or not {label_of(owner), label} & {*each}:
                msg = f"namespace {labels!r} of memories has no label {label!r}; give one such as ('users', '{_OWNER}')"
                raise CheckpointerInputError(msg)
            found[each] = None
        if found and store is None:
            raise CheckpointerInputError("memories needs store=, the store that has them")
        self.owner = owner
        self.store = store
        self.namespaces = [each for each in found if not any(each[:end] in found for end in range(len(each)))]

    def report(self, threads: DeletedThreads, counts: Sequence[tuple[int, int]]) -> OwnerDeletion:
        """Return the outcome, given how many memories of each namespace went at first, and when looked at again."""
        again = [each for each, (_, count) in zip(self.namespaces, counts, strict=True) if count]
        return OwnerDeletion(
            threads.deleted,
            threads.failed,
            sum(map(sum, counts)),
            self.namespaces,
            again,
            not_looked_at(self.owner, self.namespaces),
        )


def not_looked_at(owner: str, namespaces: Collection[tuple[str, ...]]) -> list[str]:
    """Return where data of an owner may be besides the threads that the directory has, and these memories."""
    return [
        f"threads that the directory does not have as {owner}'s: `langgraph-dynamodb threads --without-owner` lists"
        " those without an owner",
        "memories outside these namespaces" if namespaces else "memories: no namespace of theirs was given",
        "the node cache",
        "what agents store while this runs",
        "backups, exported files and logs",
    ]


def owned(storage: Storage, owner: str) -> Op[list[ThreadSummary]]:
    """Return all threads that the directory has of an owner, expired or not, encrypted or not."""
    found = yield from _owned_under(storage, owner, None)
    for key in sorted(entries.owner_keys(storage, owner) - {entries.owner_key(storage, owner)}):
        found += yield from _owned_under(storage, owner, key)
    return found


def _owned_under(storage: Storage, owner: str, key: str | None) -> Op[list[ThreadSummary]]:
    found, cursor = list[ThreadSummary](), None
    while True:
        query = ThreadQuery(owner=owner, limit=_PAGE_THREADS, before=cursor)
        page = yield from list_threads(storage, query, for_operators=True, key=key)
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
                " either: configure the owner_key of the agents"
            )
            raise CheckpointerConfigurationError(msg)


def _deleted(storage: Storage, owner: str, thread_id: str) -> Op[str | None]:
    """Delete a thread; return why it could not be deleted.

    The index lags: by now its id may be another owner's thread, or become that before the deletion has its claim. So
    the deletion is pinned to the epoch of this owner's thread.
    """
    item = yield from storage.table.get(items.partition_of(thread_id).root, items.THREAD)
    if item is None or schema.OWNER not in item:
        return None
    try:
        if entries.read_about(storage.codec, item).owner != owner:
            return _ANOTHERS
        state = Thread.parse(item)
        yield from delete_thread(replace(storage, pinned=CachedThread(state.epoch, state.life)), thread_id)
    except OF_ONE_THREAD as error:
        return str(error)
    except thread_item.PinnedEpochError:
        # Somebody else has deleted it. The end of the erasure tells whether it has begun again.
        return None
    return None


def _groups(names: Iterable[str], at_once: int) -> Iterable[list[str]]:
    rest = iter(names)
    while some := list(islice(rest, at_once)):
        yield some
