"""Entries of the directory: a thread's owner, title and metadata, as attributes of its thread item.

`owner` is the key of an index. It is the owner's name, or a digest of it with a key if the codec encrypts. The part
before the first slash is the tenant. It stays readable, so that a policy can keep tenants apart. A thread can only have
an owner of its own tenant. `about` holds the name, the title and the metadata, sealed.

Puts enter a thread and note that it is active (`threads.py`). A copy, and an operator, enter a thread that has
checkpoints already.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from hashlib import blake2b
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, get_checkpoint_metadata

from .. import errors, protocol
from .._format import items, limits, moments, schema
from .._format.codec import Codec, metadata_json
from .._format.items import Item, Partition
from .._runtime.requests import Query
from .._runtime.steps import Op
from .._runtime.storage import Storage
from . import arguments, overview, reads
from .thread_item import began_at, find_epoch

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class ThreadDescription:
    """The owner, title and metadata of a thread, as its users see them."""

    owner: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def owner_in(config: RunnableConfig, metadata: CheckpointMetadata, owner_from: str) -> Any:
    """Return the owner that a checkpoint names under a key; `None` if it names none.

    LangGraph keeps what a config says in the checkpoint's metadata, where moves and copies find it too. Only values
    that metadata cannot hold, such as UUIDs, are in the config alone.

    Raises:
        CheckpointerInputError: LangGraph would store another name.
    """
    places = (
        get_checkpoint_metadata(config, metadata),
        config.get("configurable"),
        config.get("metadata"),
        metadata,
    )
    values = [place.get(owner_from) for place in places if isinstance(place, Mapping)]
    for each in values:
        if isinstance(each, str) and "\0" in each:
            raise errors.CheckpointerInputError(
                f"owner {each!r} has a NUL character, which LangGraph removes from metadata, so the thread would be"
                " listed as another owner's; give a name without one"
            )
    return next((each for each in values if each is not None), None)


def with_owner(storage: Storage, root: Partition, owner: Any) -> Storage:
    """Return a storage that enters a new thread in the directory with an owner, or with that of the storage.

    Raises:
        CheckpointerConfigurationError: See `owner_key`.
        CheckpointerInputError: The owner is not a name, is too long, or is of another tenant than the thread.
    """
    about = ThreadDescription(storage.owner if owner is None else checked_owner(owner, root))
    # What cannot be stored is refused now. It is sealed where the thread is entered, which few puts do.
    _text_of(root, about)
    if about.owner is not None:
        owner_key(storage, about.owner)
    return replace(storage, entry=partial(entry_of, storage, root, about))


def checked_owner(owner: Any, root: Partition) -> str:
    """Return the name of a thread's owner as text.

    Raises:
        CheckpointerInputError: It is not a name, or it is of another tenant than the thread.
    """
    name = arguments.checked_id(owner, "owner")
    if not root.thread_id.startswith(tenant_prefix(name)):
        raise errors.CheckpointerInputError(
            f"owner {name!r} begins with {tenant_prefix(name)!r} and thread {root.thread_id!r} does not; a name before"
            " a slash is a tenant, so give an owner of the thread's tenant, or a name without a slash"
        )
    return name


def tenant_prefix(name: str) -> str:
    """Return the beginning of a name up to its first slash; empty if there is none.

    The owner `/x` has the prefix `/`, and so only threads that begin with it, though events name no tenant for them.
    """
    tenant, slash, _ = name.partition("/")
    return tenant + slash if slash else ""


def owner_key(storage: Storage, owner: str) -> str:
    """Return the key under which the index has an owner's threads.

    Raises:
        CheckpointerConfigurationError: The codec encrypts, and the saver has no key for owners.
        CheckpointerInputError: DynamoDB cannot store the name.
    """
    whole = items.owner_key(owner)
    if not storage.codec.encrypts:
        return whole
    if storage.owner_key is None:
        raise errors.CheckpointerConfigurationError(
            "the saver encrypts, and has no owner_key, so the owner's name would be readable in the table; pass"
            " owner_key= with 16 to 64 secret bytes, the same in every process"
        )
    return _digested(owner, storage.owner_key)


def owner_keys(storage: Storage, owner: str) -> set[str]:
    """Return every key that the index may have for an owner, whether or not those who entered the threads encrypt."""
    whole = {items.owner_key(owner)}
    return whole if storage.owner_key is None else whole | {_digested(owner, storage.owner_key)}


def _digested(owner: str, key: bytes) -> str:
    digest = blake2b(owner.encode(), key=key, digest_size=_DIGEST_BYTES).hexdigest()
    return items.owner_key(tenant_prefix(owner) + digest)


def entry_of(storage: Storage, root: Partition, about: ThreadDescription) -> Item:
    """Return the attributes that enter a thread in the directory.

    Raises:
        CheckpointerConfigurationError: See `owner_key`.
        CheckpointerInputError: They are too large, or not JSON.
    """
    owner = {} if about.owner is None else {schema.OWNER: {"S": owner_key(storage, about.owner)}}
    return {**owner, **sealed_about(storage, root, about)}


def sealed_about(storage: Storage, root: Partition, about: ThreadDescription) -> Item:
    """Return the attribute that tells what a thread is about, without the key of the index."""
    if about == ThreadDescription():
        return {}
    sealed = storage.codec.seal(
        _text_of(root, about), items.key(root.pk, items.THREAD), items.ABOUT, beside=0
    )
    return {items.ABOUT: {"B": sealed}}


def _text_of(root: Partition, about: ThreadDescription) -> bytes:
    text = metadata_json({name: value for name, value in vars(about).items() if value})
    if text is None or len(text.encode()) > limits.ABOUT_BYTES_MAX:
        raise errors.CheckpointerInputError(
            f"owner, title and metadata of thread {root.thread_id!r} must be JSON of at most"
            f" {limits.ABOUT_BYTES_MAX} bytes together; keep only what a list of threads shows"
        )
    return text.encode()


def read_about(codec: Codec, item: Item) -> ThreadDescription:
    """Open what the directory holds of a thread.

    Raises:
        CheckpointCorruptionError: It is damaged, or was stored for another thread, or only its owner is left of it.
    """
    if schema.OWNER not in item and items.ABOUT not in item:
        return ThreadDescription()
    return ThreadDescription(**json.loads(codec.open(items.binary(item, items.ABOUT), item, items.ABOUT)))


def is_of_tenant(root: Partition, about: ThreadDescription) -> bool:
    """Tell whether a thread may have its owner. Whoever writes to the table could enter it under any name."""
    return about.owner is None or root.thread_id.startswith(tenant_prefix(about.owner))


def described(
    about: ThreadDescription, root: Partition, owner: Any, title: Any, metadata: Any
) -> ThreadDescription:
    """Return what a thread is about after a change; `None` leaves an argument as it was.

    Raises:
        CheckpointerInputError: The owner is not a name, the title no text or the metadata no dict.
    """
    if metadata is not None and not isinstance(metadata, Mapping):
        raise errors.CheckpointerInputError(
            f"metadata is {metadata!r}; give a dict, or None to leave them as they are"
        )
    return ThreadDescription(
        about.owner if owner is None else checked_owner(owner, root),
        about.title if title is None else arguments.checked_text(title, "title") or None,
        about.metadata if metadata is None else dict(metadata),
    )


# Entering threads that have checkpoints already


def description_of(storage: Storage, root: Partition, owner_from: str | None) -> Op[ThreadDescription]:
    """Read what the directory has of a thread; if that is no owner, the one that its checkpoints name under a key.

    The oldest checkpoint whose metadata name an owner counts, as the first put of a thread does.

    Raises:
        CheckpointerInputError: The owner in the metadata cannot be used.
    """
    item = yield from storage.table.get(root.pk, items.THREAD)
    return (yield from _description_in(storage, root, owner_from, item or {}))


def _description_in(
    storage: Storage, root: Partition, owner_from: str | None, item: Item
) -> Op[ThreadDescription]:
    is_there = not items.is_expired(item, storage.clock())
    known = read_about(storage.codec, item) if is_there else ThreadDescription()
    if known.owner is not None or owner_from is None:
        return known
    query = Query(root.pk, prefix=items.CHECKPOINTS, consistent=False, first_page=1)
    while not query.done:
        for each in (yield from storage.table.query_page(query)):
            is_gone = not items.is_head(each) or items.is_expired(each, storage.clock(), as_ancestor=True)
            metadata = None if is_gone else (yield from overview.readable_metadata(storage, each))
            owner = (metadata or {}).get(owner_from)
            if owner is not None:
                return replace(known, owner=checked_owner(owner, root))
    return known


def carried_entry(
    read: Storage, storage: Storage, source: Partition, target: Partition, item: Item
) -> Op[tuple[Item, float, float] | None]:
    """Return how a copy of a thread enters the directory: as its original is, unless the copy is another tenant's.

    An original without an owner there has the one that its checkpoints name, if the saver looks for owners, or else
    that of the storage.

    Args:
        read: The storage of the original.
        storage: The storage of the copy.
        source: The original.
        target: The copy.
        item: The thread item of the original.

    Returns:
        The entry, the last activity and the creation, in epoch seconds; `None` if the original is not in the directory.
    """
    if schema.LAST_ACTIVE not in item and storage.owner_from is None and storage.owner is None:
        return None
    root = items.partition_of(source.thread_id)
    about = yield from _description_in(read, root, storage.owner_from, item)
    about = replace(about, owner=about.owner or storage.owner)
    if not is_of_tenant(target, about):
        return None
    # An owner's key is the same for every thread, so this needs no key for digests. With one, the copy is listed as
    # this saver lists threads: the original may be from before it encrypted.
    owner = {schema.OWNER: item[schema.OWNER]} if schema.OWNER in item else {}
    if about.owner is not None and (storage.owner_key is not None or not owner):
        owner = {schema.OWNER: {"S": owner_key(storage, about.owner)}}
    entry = {**owner, **sealed_about(storage, target, about)}
    last_active = items.number(item, schema.LAST_ACTIVE) or storage.clock()
    created_at = items.number(item, items.CREATED_AT) or (yield from began_at(read, source)) or last_active
    return entry, last_active, created_at


def enter_thread(storage: Storage, thread_id: str, owner_from: str) -> Op[str | None]:
    """Enter a thread that has checkpoints in the directory, as puts with that option would have.

    A thread that is there already stays as it is. But it gets the owner if it has none, and one that was entered before
    the saver encrypted is listed as the saver lists threads now.

    Returns:
        The thread's owner; `None` if it has none.

    Raises:
        CheckpointNotFoundError: The thread has no checkpoint in its root namespace, or has expired.
        CheckpointerInputError: The owner in its metadata cannot be used.
    """
    root = items.partition_of(arguments.checked_id(thread_id, "thread_id"))
    found = yield from reads.NamespaceReader(storage, root).page()
    if not found:
        raise errors.CheckpointNotFoundError(
            f"thread {thread_id!r} of table {storage.table.name} has no checkpoint, or has expired"
        )
    newest = found[0]
    new = ThreadDescription((yield from description_of(storage, root, owner_from)).owner)
    now = datetime.fromtimestamp(storage.clock(), timezone.utc)
    last_active = min(moments.stored_at(newest.checkpoint_id) or now, now).timestamp()
    began = yield from began_at(storage, root)
    created_at = last_active if began is None else began
    thread = yield from find_epoch(storage, root)
    listed = (entry_of(storage, root, new), last_active, created_at)
    there = yield from _enter(storage, root, thread.epoch, listed)
    if there is None:
        return new.owner
    known = read_about(storage.codec, there)
    about = replace(known, owner=known.owner or new.owner)
    entry = entry_of(storage, root, about)
    if entry.get(schema.OWNER) != there.get(schema.OWNER):
        change = protocol.describe_thread(items.binary(there, items.EPOCH), entry, there)
        yield from storage.table.try_update(items.thread_key(root), change)
    return about.owner


def _enter(
    storage: Storage, root: Partition, epoch: bytes, listed: tuple[Item, float, float]
) -> Op[Item | None]:
    """Enter a thread in the directory, unless it is there, when it returns its item, or has been deleted.

    A prune may have ended the epoch since it was read: what it kept is entered under the next one.
    """
    for _ in range(limits.ATTEMPTS_MAX):
        change = protocol.list_thread(epoch, *listed)
        found = yield from storage.table.try_update(items.thread_key(root), change)
        if not found:
            return None
        epoch = items.binary(found, items.EPOCH)
        if schema.LAST_ACTIVE in found:
            return found
    return None
