"""Entries of the directory: a thread's owner, title and metadata, as attributes of its thread item.

`owner` is the key of an index. It is the owner's name, or a digest of it with a key if the codec encrypts. The part
before the first slash is the tenant. It stays readable, so that a policy can keep tenants apart. A thread can only have
an owner of its own tenant. `about` holds the name, the title and the metadata, sealed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, metadata_json
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ABOUT_BYTES_MAX
from langgraph.checkpoint.dynamodb._format.schema import OWNER
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id, checked_text
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class ThreadDescription:
    """The owner, title and metadata of a thread, as its users see them."""

    owner: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def owner_in(config: RunnableConfig, owner_from: str) -> Any:
    """Return the owner that a config names under a key; `None` if it names none."""
    places = (config.get("configurable"), config.get("metadata"))
    values = (place.get(owner_from) for place in places if isinstance(place, Mapping))
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
    name = checked_id(owner, "owner")
    if not root.thread_id.startswith(tenant_prefix(name)):
        msg = (
            f"owner {name!r} begins with {tenant_prefix(name)!r} and thread {root.thread_id!r} does not; a name before"
            " a slash is a tenant, so give an owner of the thread's tenant, or a name without a slash"
        )
        raise CheckpointerInputError(msg)
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
        msg = (
            "the saver encrypts, and has no owner_key, so the owner's name would be readable in the table; pass"
            " owner_key= with 16 to 64 secret bytes, the same in every process"
        )
        raise CheckpointerConfigurationError(msg)
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
    owner = {} if about.owner is None else {OWNER: {"S": owner_key(storage, about.owner)}}
    return {**owner, **sealed_about(storage, root, about)}


def sealed_about(storage: Storage, root: Partition, about: ThreadDescription) -> Item:
    """Return the attribute that tells what a thread is about, without the key of the index."""
    if about == ThreadDescription():
        return {}
    sealed = storage.codec.seal(_text_of(root, about), items.key(root.pk, items.THREAD), items.ABOUT)
    return {items.ABOUT: {"B": sealed}}


def _text_of(root: Partition, about: ThreadDescription) -> bytes:
    text = metadata_json({name: value for name, value in vars(about).items() if value})
    if text is None or len(text.encode()) > ABOUT_BYTES_MAX:
        msg = (
            f"owner, title and metadata of thread {root.thread_id!r} must be JSON of at most {ABOUT_BYTES_MAX} bytes"
            " together; keep only what a list of threads shows"
        )
        raise CheckpointerInputError(msg)
    return text.encode()


def read_about(codec: Codec, item: Item) -> ThreadDescription:
    """Open what the directory holds of a thread.

    Raises:
        CheckpointCorruptionError: It is damaged, or was stored for another thread.
    """
    if items.ABOUT not in item:
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
        msg = f"metadata is {metadata!r}; give a dict, or None to leave them as they are"
        raise CheckpointerInputError(msg)
    return ThreadDescription(
        about.owner if owner is None else checked_owner(owner, root),
        about.title if title is None else checked_text(title, "title") or None,
        about.metadata if metadata is None else dict(metadata),
    )
