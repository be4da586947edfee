"""`put`: storing a checkpoint.

Dependencies are written first and the head last: its PutItem is the one commit point. A put that dies
before it leaves parts that nothing names; after it, the checkpoint is whole. A head carries the epoch of
its thread under which its parts were known to be safe, and a look at the thread item after the commit
tells whether a deletion came between. If so, the put is made again from parts that are safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, metadata_json, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import (
    delta_counters,
    pack_body,
    pack_metadata,
    started_from,
)
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BODY_BYTES_MAX,
    INLINE_STATE_BYTES_MAX,
    METADATA_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID
from langgraph.checkpoint.dynamodb._format.segments import StoredValue
from langgraph.checkpoint.dynamodb._operations.access import Access, DirectAccess
from langgraph.checkpoint.dynamodb._operations.arguments import checkpoint_id_in, id_of, target
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head
from langgraph.checkpoint.dynamodb._operations.draft import Draft
from langgraph.checkpoint.dynamodb._operations.reads import config_of
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import is_reusable


@dataclass(frozen=True)
class Request:
    """What one call of `put` was given, as it was then: its caller may change any of it while requests are made."""

    at: Partition
    checkpoint_id: str
    parent_id: str | None
    # The checkpoint without its values.
    rest: tuple[str, bytes]
    # As readable JSON, or packed to be sealed.
    metadata: str | bytes
    delta_channels: AbstractSet[str]
    started_from: str | None
    run_id: str | None
    versions: Mapping[str, Any]
    new_channels: AbstractSet[str]
    values: Mapping[str, Any]
    store_writes: Callable[[], Op[Any]] | None = None
    # Serialized once, however many attempts it takes, and before the first request; but for what the parent is
    # remembered to hold, which is asked for only where the whole thread was deleted meanwhile.
    serialized: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def dumps(self, codec: Codec, channel: str) -> tuple[str, bytes]:
        """A channel's value as it was when it was first asked for."""
        if channel not in self.serialized:
            self.serialized[channel] = codec.dumps(self.values[channel], f"channel {channel!r}")
        return self.serialized[channel]

    def dumps_all(self, codec: Codec) -> None:
        """Take every value as it is now."""
        for channel in self.values:
            self.dumps(codec, channel)


@dataclass(frozen=True)
class _Composed:
    """A head that is ready to be committed, and how it holds the values."""

    head: Head
    values: Mapping[str, StoredValue]
    sources: Mapping[str, str]

    def entry(self, request: Request, committed: Committed) -> Entry:
        """What is to be remembered of the checkpoint once it counts."""
        return Entry(
            committed.under.epoch,
            request.versions,
            self.values,
            self.head.needs.chunks,
            self.sources,
            committed.under.ttl_seconds,
            committed.lifetime,
        )


def put(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    """Store a checkpoint; when this returns, it is whole and stays so until it is deleted."""
    request = take(table, codec, config, checkpoint, metadata, new_versions)
    return (yield from store(DirectAccess(table, codec), request))


def take(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Request:
    """What a call of `put` was given; of the values only which they are."""
    at, parent_id = target(config), checkpoint_id_in(config)
    checkpoint_id = id_of(checkpoint)
    items.checkpoint_prefix(checkpoint_id)
    metadata = get_checkpoint_metadata(config, metadata)
    rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    return Request(
        at,
        checkpoint_id,
        parent_id,
        codec.dumps(rest, "the checkpoint"),
        _serialized_metadata(table, codec, metadata),
        delta_counters(metadata),
        started_from(at, metadata),
        items.indexable_run_id(metadata),
        dict(checkpoint["channel_versions"]),
        set(new_versions),
        dict(checkpoint["channel_values"]),
    )


def store(access: Access, request: Request) -> Op[RunnableConfig]:
    """Store what a call of `put` was given; what its `store_writes` stores is there when the checkpoint is."""
    table, codec = access.table, access.codec
    at, checkpoint_id = request.at, request.checkpoint_id
    thread, parent = table.memory.thread(at.root), None
    if request.parent_id is not None:
        parent = table.memory.checkpoint(at.pk, request.parent_id)
    if parent is None and (request.parent_id is not None or thread is None):
        # Requests come before the head is composed.
        yield from work(partial(request.dumps_all, codec), rough_bytes(request.values))
    if parent is None and request.parent_id is not None:
        parent = yield from access.entry(at, request.parent_id)
        parent = parent or (yield from _newest_parts(access, at))
    if parent is not None:
        # What it holds is safe under its own epoch.
        thread = ThreadEntry(parent.epoch, parent.ttl_seconds)
    if thread is None:
        yield from access.look_for_other_savers(at)
    for _ in range(ATTEMPTS_MAX):
        committed = yield from _attempt(access, request, parent, thread)
        if committed.is_confirmed:
            return config_of(at, checkpoint_id)
        thread = committed.thread
        request, parent = yield from _read_again(access, request)
    msg = (
        f"checkpoint {checkpoint_id!r} of thread {at.thread_id!r} could not be stored: the thread was deleted or"
        f" pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
    raise ThreadBusyError(msg)


def _newest_parts(access: Access, at: Partition) -> Op[Entry | None]:
    """What the newest checkpoint has that can be reused, where the parent was never stored; nothing is inherited."""
    entry = yield from access.newest_entry(at)
    return entry and replace(entry, versions={}, sources={})


def _read_again(access: Access, request: Request) -> Op[tuple[Request, Entry | None]]:
    """What to start from after a deletion came between: the parent as it is now, or else the put's own head.

    Where the parent has gone and the head that was committed has stayed, that head may be all that still
    holds what it inherited. The deletion took the link to the parent from it, which is not brought back.
    """
    if request.parent_id is None:
        return request, None
    access.table.memory.forget((request.at.pk, request.parent_id))
    parent = yield from access.entry(request.at, request.parent_id)
    if parent is not None:
        return request, parent
    if not request.delta_channels:
        request = replace(request, parent_id=None)
    return request, (yield from access.entry(request.at, request.checkpoint_id))


def _attempt(
    access: Access, request: Request, parent: Entry | None, thread: ThreadEntry | None
) -> Op[Committed]:
    """Store the checkpoint under a thread's epoch, or that which the thread has if it is not known."""
    memory, started_at = access.table.memory, access.table.clock()
    epoch = None if thread is None else thread.epoch
    # What cannot be serialized fails here, before anything is stored.
    compose = partial(_compose, access.table, access.codec, request, parent, epoch)
    composed = yield from work(compose, _size(request, parent))
    committed = yield from access.commit(composed.head, thread, started_at, request.store_writes)
    if committed.is_confirmed:
        entry = composed.entry(request, committed)
        memory.remember_checkpoint(request.at.pk, request.checkpoint_id, entry)
    return committed


def _size(request: Request, parent: Entry | None) -> int:
    """About how many bytes there are to serialize or to copy."""
    if parent is not None:
        return sum(map(parent.value_bytes, parent.values.values()))
    return rough_bytes(request.values)


def _compose(
    table: Table, codec: Codec, request: Request, parent: Entry | None, epoch: bytes | None
) -> _Composed:
    """Compose the head and what it depends on; reuse what is safe under the epoch."""
    base = parent if parent is not None and is_reusable(parent.epoch, epoch) else None
    sk = items.checkpoint_prefix(request.checkpoint_id)
    draft = Draft(table, codec, request.at, sk, base)
    values = _store_values(codec, draft, request, parent, {} if base is None else base.chunks)
    metadata = _metadata(draft, sk, request.metadata)
    sources = _sources(request, parent, values)
    packed = pack_body(*request.rest, values, metadata, sources)
    body = draft.part(items.BODY, packed, BODY_BYTES_MAX, values.values())
    item = items.head_item(
        request.at,
        request.checkpoint_id,
        texts={
            items.PARENT: request.parent_id,
            items.STARTED_FROM: request.started_from,
            items.REBUILT_FROM: next(iter(sources.values()), None),
            RUN_ID: request.run_id,
        },
        metadata=metadata,
        body=body,
    )
    parent_lifetime = None if parent is None else parent.lifetime
    head = Head(request.at, item, draft, bool(request.delta_channels), parent_lifetime)
    return _Composed(head, values, sources)


def _sources(request: Request, parent: Entry | None, values: Mapping[str, StoredValue]) -> dict[str, str]:
    """The ancestor that has the stored value of each delta channel that the checkpoint itself does not store.

    The oldest comes first; "" is the very first checkpoint, also where it is not known which one it is.
    """
    counted = request.delta_channels - values.keys()
    if request.parent_id is None or not counted:
        return {}
    older: Mapping[str, str] = {} if parent is None else parent.sources
    stored = set() if parent is None else counted & parent.values.keys() & parent.versions.keys()
    return {
        **dict.fromkeys(sorted(counted - stored - older.keys()), ""),
        **{name: source for name, source in older.items() if name in counted - stored},
        **dict.fromkeys(sorted(stored), request.parent_id),
    }


def _store_values(
    codec: Codec, draft: Draft, request: Request, parent: Entry | None, reusable: Collection[bytes]
) -> dict[str, StoredValue]:
    """Decide how the checkpoint holds each channel's value."""
    inherited: dict[str, StoredValue] = {}
    serialized: dict[str, tuple[str, bytes]] = {}
    names = dict.fromkeys((*request.versions, *request.values))
    for name in names:
        if parent is not None and _is_inherited(request, parent, name):
            before = parent.values.get(name)
            if before is not None and all(each in reusable for each in before.segments):
                inherited[name] = before
            elif before is not None:
                serialized[name] = (before.kind, before.join(parent.contents))
        elif name in request.values:
            serialized[name] = request.dumps(codec, name)
    size = sum(len(data) for _, data in serialized.values())
    if parent is not None:
        size += sum(map(parent.value_bytes, inherited.values()))
    codec.check_size(size, items.key(request.at.pk, items.checkpoint_prefix(request.checkpoint_id)))
    inline = size <= INLINE_STATE_BYTES_MAX
    stored: dict[str, StoredValue] = {}
    for name in names:
        if name in inherited:
            stored[name] = draft.inherit(inherited[name], inline=inline)
        elif name in serialized:
            before = None if parent is None else parent.values.get(name)
            stored[name] = draft.value(*serialized[name], before, inline=inline)
    return stored


def _is_inherited(request: Request, parent: Entry, name: str) -> bool:
    """Whether a channel's value is the parent's: its version is, and it was not given as new.

    A delta channel's snapshot is inherited by checkpoints that do not have it among their values.
    """
    return (
        name not in request.new_channels
        and name in request.versions
        and name in parent.versions
        and request.versions[name] == parent.versions[name]
        and (name in parent.values or name not in request.values)
    )


def _serialized_metadata(table: Table, codec: Codec, metadata: CheckpointMetadata) -> str | bytes:
    """Metadata as readable JSON, or packed where they are to be sealed."""
    sealed = codec.encrypts if table.encrypt_metadata is None else table.encrypt_metadata
    text = None if sealed else metadata_json(metadata)
    if text is not None and len(text.encode()) <= METADATA_BYTES_MAX:
        return text
    return pack_metadata(*codec.dumps(metadata, "the metadata"))


def _metadata(draft: Draft, sk: str, metadata: str | bytes) -> Item:
    if isinstance(metadata, str):
        return {items.METADATA: {"S": metadata}}
    part = draft.part(items.SEALED_METADATA, metadata, METADATA_BYTES_MAX)
    return {items.SEALED_METADATA: part.attribute(sk)}
