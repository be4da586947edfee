"""The operations that write: `put` and `put_writes`.

Dependencies are written first and the head last: its PutItem is the one commit point. A put that dies
before it leaves parts that nothing names; after it, the checkpoint is whole. A head carries the epoch of
its thread under which its parts were known to be safe, and a look at the thread item after the commit
tells whether a deletion came between. If so, the put is made again from parts that are safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from langgraph.checkpoint.dynamodb import _items as items
from langgraph.checkpoint.dynamodb._codec import Codec, metadata_json, seal_plain
from langgraph.checkpoint.dynamodb._content import Write, pack_body, pack_metadata, pack_writes, read_writes
from langgraph.checkpoint.dynamodb._delta import DELTA_COUNTERS, Ancestors
from langgraph.checkpoint.dynamodb._items import Part, Partition
from langgraph.checkpoint.dynamodb._limits import (
    ATTEMPTS_MAX,
    BODY_BYTES_MAX,
    HEAD_IDS_MAX,
    IDLE_TAIL_BYTES_MAX,
    INDEX_GROUP,
    MERGE_ATTEMPTS_MAX,
    METADATA_BYTES_MAX,
    RAW_BYTES_MAX,
    UPLOAD_SECONDS_MAX,
    WRITES_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._memory import Entry
from langgraph.checkpoint.dynamodb._reads import Segments, config_of, read_entry, read_segments, target
from langgraph.checkpoint.dynamodb._requests import CONDITION_FAILED, Table, error_code, unless_condition_failed
from langgraph.checkpoint.dynamodb._schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._segments import (
    Chunk,
    StoredValue,
    cut,
    digest,
    fold,
    new_id,
    split,
)
from langgraph.checkpoint.dynamodb._steps import Item, Op, gather, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError, ThreadBusyError


class Draft:
    """The parts of an item that is being made: new segments, and those of the parent that it reuses."""

    def __init__(self, table: Table, codec: Codec, at: Partition, known: Mapping[bytes, Chunk]) -> None:
        """Start with the segments that may be reused."""
        self.segments: dict[bytes, Item] = {}
        self.chunks: dict[bytes, Chunk] = {}
        self._table = table
        self._codec = codec
        self._at = at
        self._known = known
        self._ids = {chunk.digest: each for each, chunk in known.items()}

    def value(self, kind: str, data: bytes, before: StoredValue | None) -> StoredValue:
        """Store a serialized value, reusing what the parent has of it."""
        chunks = [] if before is None else [self._known[each] for each in before.segments if each in self._known]
        preamble, pieces, tail = split(data, chunks, self._ids.__contains__)
        return StoredValue(kind, preamble, tuple(map(self._piece, pieces)), tail, idle=False)

    def inherit(self, value: StoredValue) -> StoredValue:
        """Hold a value as the parent does; what keeps being carried along inline is sealed."""
        for each in value.segments:
            self.chunks[each] = self._known[each]
        if len(value.tail) <= IDLE_TAIL_BYTES_MAX:
            return value
        segments = (*value.segments, self._piece(value.tail))
        return StoredValue(value.kind, value.preamble, segments, b"", idle=True)

    def part(self, raw: bytes, bytes_max: int, refs: Sequence[bytes] = ()) -> Part:
        """Seal content into its item, or move it to segments where it is too large for that."""
        folded = fold(refs, HEAD_IDS_MAX, self._index)
        sealed = self._codec.seal(raw) if len(raw) <= RAW_BYTES_MAX else b""
        if 0 < len(sealed) <= bytes_max:
            return Part((), folded, sealed)
        ends = [*cut(raw, 0), len(raw)]
        pieces = [raw[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return Part(self.folded(tuple(map(self._piece, pieces))), folded, b"")

    def folded(self, ids: Sequence[bytes]) -> tuple[bytes, ...]:
        """Shorten a list of ids by index segments."""
        return fold(ids, INDEX_GROUP, self._index)

    def _index(self, content: bytes) -> bytes:
        return self._segment(content, seal_plain, index=True)

    def _piece(self, content: bytes) -> bytes:
        return self._segment(content, self._codec.seal, index=False)

    def _segment(self, content: bytes, seal: Any, *, index: bool) -> bytes:
        content_digest = digest(content)
        segment_id = self._ids.get(content_digest)
        if segment_id is None:
            segment_id = new_id(self._table.rng, index=index)
            self._ids[content_digest] = segment_id
            expires_at = self._table.expires_at(2)
            item = items.segment_item(self._at, segment_id, seal(content), self._table.clock())
            self.segments[segment_id] = items.with_expiry(item, expires_at)
            self.chunks[segment_id] = Chunk(content_digest, len(content), expires_at)
        elif segment_id not in self.chunks:
            self.chunks[segment_id] = self._known[segment_id]
        return segment_id


# put


@dataclass(frozen=True)
class _Put:
    """What one call of `put` was given."""

    at: Partition
    checkpoint: Checkpoint
    parent_id: str | None
    metadata: CheckpointMetadata
    new_versions: ChannelVersions


@dataclass(frozen=True)
class _Head:
    """A head that is ready to be committed, and what goes with it."""

    item: Item
    draft: Draft
    values: Mapping[str, StoredValue]
    started_at: float = field(default=0.0)


def put(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    """Store a checkpoint; when this returns, it is whole and stays so until it is deleted."""
    at, parent_id = target(config), get_checkpoint_id(config)
    checkpoint_id = checkpoint["id"]
    items.checkpoint_prefix(checkpoint_id)
    request = _Put(
        at,
        checkpoint,
        None if parent_id is None else str(parent_id),
        get_checkpoint_metadata(config, metadata),
        new_versions,
    )
    parent: Entry | None = None
    if request.parent_id is not None:
        parent = table.memory.checkpoint(at.pk, request.parent_id)
        parent = parent or (yield from read_entry(table, codec, at, request.parent_id))
    thread = table.memory.thread(at.root)
    epoch = parent.epoch if parent is not None else thread and thread.epoch
    for _ in range(ATTEMPTS_MAX):
        if epoch is None:
            epoch = yield from take_epoch(table, at)
        seen = yield from _attempt(table, codec, request, parent, epoch)
        if seen == epoch:
            return config_of(at, checkpoint_id)
        epoch = seen
        parent = None
        if request.parent_id is not None:
            table.memory.forget((at.pk, request.parent_id))
            parent = yield from read_entry(table, codec, at, request.parent_id)
    msg = (
        f"checkpoint {checkpoint_id!r} of thread {at.thread_id!r} could not be stored: the thread was deleted or"
        f" pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
    raise ThreadBusyError(msg)


def _attempt(
    table: Table, codec: Codec, request: _Put, parent: Entry | None, epoch: bytes
) -> Op[bytes | None]:
    """Store the checkpoint under an epoch; return the thread's epoch seen after the commit."""
    size = sum(value_size(value) for value in parent.values.values()) if parent is not None else 0
    started_at = table.clock()
    head = yield from work(lambda: _compose(table, codec, request, parent, epoch), size)
    if not (yield from _store_dependencies(table, request.at, head, epoch)):
        return None
    history_expires_at = yield from _renew_history(table, codec, request, parent, head)
    if table.clock() - started_at > UPLOAD_SECONDS_MAX:
        # What was uploaded may count as orphaned by now.
        return None
    yield from table.send("put_item", Item=head.item)
    seen = yield from look_at_thread(table, request.at, epoch)
    if seen == epoch:
        table.memory.remember_thread(request.at.root, epoch)
        entry = Entry(
            epoch,
            dict(request.checkpoint["channel_versions"]),
            head.values,
            head.draft.chunks,
            history_expires_at,
        )
        table.memory.remember_checkpoint(request.at.pk, request.checkpoint["id"], entry)
    return seen


def value_size(value: StoredValue) -> int:
    """About how many bytes a stored value has."""
    return len(value.tail) + 6000 * len(value.segments)


def _compose(table: Table, codec: Codec, request: _Put, parent: Entry | None, epoch: bytes) -> _Head:
    """Make the head and what it depends on."""
    reusable = parent.chunks if parent is not None and parent.epoch == epoch else {}
    draft = Draft(table, codec, request.at, reusable)
    values: dict[str, StoredValue] = {}
    channel_values = request.checkpoint["channel_values"]
    for name in dict.fromkeys((*request.checkpoint["channel_versions"], *channel_values)):
        before = None if parent is None else parent.values.get(name)
        if _is_inherited(request, parent, name):
            if before is not None and reusable.keys() >= set(before.segments):
                values[name] = draft.inherit(before)
            elif before is not None and parent is not None:
                values[name] = draft.value(before.kind, before.join(parent.contents), None)
        elif name in channel_values:
            kind, data = codec.dumps(channel_values[name], f"channel {name!r}")
            values[name] = draft.value(kind, data, before)
    rest = {name: value for name, value in request.checkpoint.items() if name != "channel_values"}
    kind, data = codec.dumps(rest, "the checkpoint")
    refs = [each for value in values.values() for each in draft.folded(value.segments)]
    body = draft.part(pack_body(kind, data, values), BODY_BYTES_MAX, refs)
    item = items.head_item(
        request.at,
        request.checkpoint["id"],
        parent_id=request.parent_id,
        metadata=_metadata(table, codec, draft, request.metadata),
        body=body,
        epoch=epoch,
        run_id=items.indexable_run_id(request.metadata),
    )
    return _Head(items.with_expiry(item, table.expires_at()), draft, values)


def _is_inherited(request: _Put, parent: Entry | None, name: str) -> bool:
    """Whether a channel's value is the parent's: its version is, and it was not given as new.

    A delta channel's snapshot is inherited by checkpoints that do not have it among their values.
    """
    versions = request.checkpoint["channel_versions"]
    return (
        parent is not None
        and name not in request.new_versions
        and name in versions
        and name in parent.versions
        and versions[name] == parent.versions[name]
        and (name in parent.values or name not in request.checkpoint["channel_values"])
    )


def _metadata(table: Table, codec: Codec, draft: Draft, metadata: CheckpointMetadata) -> Item:
    text = None if table.encrypt_metadata else metadata_json(metadata)
    if text is not None and len(text.encode()) <= METADATA_BYTES_MAX:
        return {items.METADATA: {"S": text}}
    raw = pack_metadata(*codec.dumps(metadata, "the metadata"))
    return {items.SEALED_METADATA: draft.part(raw, METADATA_BYTES_MAX).attribute()}


def _store_dependencies(table: Table, at: Partition, head: _Head, epoch: bytes) -> Op[bool]:
    """Write what the head names; False where a reused segment has gone."""
    expires_at = items.number(head.item, TTL_ATTRIBUTE)
    entry = _namespace_entry(table, at, epoch, expires_at)
    yield from table.batch_write(puts=[*head.draft.segments.values(), *entry])
    if entry:
        table.memory.remember_thread(at.root, epoch).namespaces[at.namespace] = table.expires_at(2)
    short = [each for each, chunk in head.draft.chunks.items() if lives_shorter(chunk.expires_at, expires_at)]
    renewed = yield from gather([renew(table, items.key(at.pk, items.segment_sk(each))) for each in short])
    for each in short:
        chunk = head.draft.chunks[each]
        head.draft.chunks[each] = Chunk(chunk.digest, chunk.length, table.expires_at(2))
    return all(renewed)


def _namespace_entry(table: Table, at: Partition, epoch: bytes, expires_at: int | None) -> list[Item]:
    """The entry that names the namespace within its thread, unless this process wrote it under the epoch."""
    known = table.memory.thread(at.root)
    entered = known.namespaces if known is not None and known.epoch == epoch else {}
    if not at.namespace or not lives_shorter(entered.get(at.namespace, 0), expires_at):
        return []
    return [items.namespace_item(at, epoch, table.expires_at(2))]


def lives_shorter(expires_at: int | None, than: int | None) -> bool:
    """Whether something expires before something else does; None never expires."""
    return expires_at is not None and (than is None or expires_at < than)


def renew(table: Table, at: Item, lifetimes: int = 2) -> Op[bool]:
    """Let an item live for some more ttls; False where it does not exist any more. Never makes an item."""
    expires_at = table.expires_at(lifetimes)
    expression = "REMOVE #expiry" if expires_at is None else "SET #expiry = :expiry"
    response = yield from unless_condition_failed(
        table.update(
            at,
            expression,
            condition="attribute_exists(#pk)",
            names={"#expiry": TTL_ATTRIBUTE, "#pk": PARTITION_KEY},
            values={} if expires_at is None else {":expiry": {"N": str(expires_at)}},
        )
    )
    return response is not None


def _renew_history(
    table: Table, codec: Codec, request: _Put, parent: Entry | None, head: _Head
) -> Op[int | None]:
    """Keep what the checkpoint's delta channels are rebuilt from alive; return when the first of it expires."""
    expires_at = items.number(head.item, TTL_ATTRIBUTE)
    counters = request.metadata.get(DELTA_COUNTERS)
    if expires_at is None or table.ttl_seconds is None or parent is None or not counters:
        return expires_at
    oldest = parent.history_expires_at
    if oldest is None or oldest - table.clock() >= table.ttl_seconds / 2:
        return expires_at if oldest is None else min(oldest, expires_at)
    channels = counters.keys() - head.values.keys()
    ancestors = Ancestors(table, codec, request.at, below=request.checkpoint["id"])
    try:
        path = yield from ancestors.back(head.item, channels)
    except CheckpointNotFoundError:
        # Whoever reads the checkpoint's delta channels is told; the checkpoint itself can be stored.
        return expires_at
    pk = request.at.pk
    heads = [each.group.head for each in path]
    rest = {items.sort_key(item) for each in path for item in each.group.writes}
    rest |= {items.segment_sk(each) for ancestor in path for each in ancestor.group.all_ids(ancestors.known.contents)}
    yield from gather([renew(table, items.key(pk, sk)) for sk in sorted(rest)])
    yield from gather([renew(table, items.key(pk, items.sort_key(item)), 1) for item in heads])
    return expires_at


def take_epoch(table: Table, at: Partition) -> Op[bytes]:
    """The thread's epoch, made if the thread has none."""
    expires_at = table.expires_at(2)
    response = yield from table.update(
        items.key(at.root, items.THREAD),
        "SET #epoch = if_not_exists(#epoch, :epoch)"
        + (" REMOVE #expiry" if expires_at is None else ", #expiry = :expiry"),
        names={"#epoch": items.EPOCH, "#expiry": TTL_ATTRIBUTE},
        values={
            ":epoch": {"B": table.rng.randbytes(8)},
            **({} if expires_at is None else {":expiry": {"N": str(expires_at)}}),
        },
        ReturnValues="ALL_NEW",
    )
    return bytes(response["Attributes"][items.EPOCH]["B"])


def look_at_thread(table: Table, at: Partition, epoch: bytes) -> Op[bytes | None]:
    """The thread's epoch now, None where the thread has none; keeps the thread item alive."""
    thread = yield from table.get(at.root, items.THREAD)
    if thread is None:
        return None
    seen = items.binary(thread, items.EPOCH)
    if seen == epoch and lives_shorter(items.number(thread, TTL_ATTRIBUTE), table.expires_at()):
        yield from renew(table, items.key(at.root, items.THREAD))
    return seen


# put_writes


def put_writes(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Op[None]:
    """Store a task's writes: special ones replace, of regular ones the first with an index stays."""
    at, checkpoint_id = target(config), get_checkpoint_id(config)
    if checkpoint_id is None:
        msg = 'config["configurable"]["checkpoint_id"] is missing; give the checkpoint that the writes belong to'
        raise CheckpointerInputError(msg)
    key = items.key(at.pk, items.writes_sk(str(checkpoint_id), task_id))
    regular, special = yield from work(lambda: _serialize(codec, writes, task_path))
    condition, old = "attribute_not_exists(#writes)", None
    for _ in range(MERGE_ATTEMPTS_MAX):
        if not regular and not special:
            return
        draft = Draft(table, codec, at, {})
        groups = {items.SPECIAL_WRITES[index]: [write] for index, write in special.items()}
        if regular:
            groups[items.WRITES] = [regular[index] for index in sorted(regular)]
        parts = yield from work(
            lambda draft=draft, groups=groups: {
                name: draft.part(pack_writes(group), WRITES_BYTES_MAX) for name, group in groups.items()
            }
        )
        yield from _enter_namespace(table, at)
        yield from table.batch_write(puts=draft.segments.values())
        try:
            yield from _update_writes(table, key, parts, condition if regular else None, old)
        except Exception as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            # The task has a group of writes already: add to it what it lacks.
            old = _old_item(error)
        else:
            return
        stored = yield from _stored_writes(table, codec, at, old)
        missing = regular.keys() - stored.keys()
        regular = {**regular, **stored} if missing else {}
        condition = "#writes = :old" if stored else "attribute_not_exists(#writes)"
    msg = (
        f"writes of task {task_id!r} of thread {at.thread_id!r} could not be stored: other calls for the same task"
        f" interfered {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )
    raise ThreadBusyError(msg)


def _serialize(
    codec: Codec, writes: Sequence[tuple[str, Any]], task_path: str
) -> tuple[dict[int, Write], dict[int, Write]]:
    """The regular and the special writes by their index; within a call the last one to a special index wins."""
    regular, special = dict[int, Write](), dict[int, Write]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        kind, data = codec.dumps(value, f"the write to channel {channel!r}")
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return regular, special


def _enter_namespace(table: Table, at: Partition) -> Op[None]:
    """Make sure that the thread knows the namespace: writes may come before its first checkpoint."""
    known = table.memory.thread(at.root)
    epoch = b"" if known is None else known.epoch
    entry = _namespace_entry(table, at, epoch, table.expires_at())
    if entry:
        yield from table.send("put_item", Item=entry[0])
        table.memory.remember_thread(at.root, epoch).namespaces[at.namespace] = table.expires_at(2)


def _update_writes(
    table: Table, key: Item, parts: Mapping[str, Part], condition: str | None, old: Item | None
) -> Op[None]:
    sets = ["#created = :created"]
    names = {"#created": items.CREATED_AT}
    values: Item = {":created": {"N": str(int(table.clock()))}}
    for position, (name, part) in enumerate(parts.items()):
        sets.append(f"#p{position} = :p{position}")
        names[f"#p{position}"] = name
        values[f":p{position}"] = part.attribute()
    expires_at = table.expires_at(2)
    if expires_at is not None:
        # The first call's expiry stays: its segments live no longer.
        sets.append("#expiry = if_not_exists(#expiry, :expiry)")
        names["#expiry"] = TTL_ATTRIBUTE
        values[":expiry"] = {"N": str(expires_at)}
    if condition is not None:
        names["#writes"] = items.WRITES
    if condition is not None and old is not None and items.WRITES in old:
        values[":old"] = old[items.WRITES]
    yield from table.update(
        key,
        "SET " + ", ".join(sets),
        condition=condition,
        names=names,
        values=values,
        **({} if condition is None else {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
    )


def _old_item(error: Any) -> Item:
    """The item that a failed condition was checked against; empty where there was none."""
    item: Item = error.response.get("Item", {})
    return item


def _stored_writes(table: Table, codec: Codec, at: Partition, old: Item) -> Op[dict[int, Write]]:
    """The regular writes that a task has already."""
    part = items.parse_part(old, items.WRITES)
    if part is None:
        return {}
    known = Segments()
    missing = yield from read_segments(table, codec, at.pk, part.own, known)
    if missing:
        raise items.damaged(old, "segments of its writes are missing")
    return {each.index: each for each in read_writes(codec, old, items.WRITES, known.contents)}
