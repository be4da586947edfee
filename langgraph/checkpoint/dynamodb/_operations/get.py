"""`get_tuple`, and what a child needs to know of its parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import Body, pending_writes, read_body, read_metadata
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._operations.arguments import checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    Segments,
    config_of,
    find,
    find_newest,
    load,
)
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, Lifetime
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError


def entry_of(group: Group, body: Body, known: Segments) -> Entry:
    """What a child needs to know of a checkpoint."""
    return Entry(
        epoch=items.binary(group.head, items.EPOCH),
        # A copy: LangGraph counts versions in the very checkpoint that it is given.
        versions=dict(body.checkpoint.get("channel_versions", {})),
        values=body.values,
        chunks=known.chunks,
        sources=body.sources,
        ttl_seconds=items.ttl_of(group.head),
        # With a ttl, that of the ancestors is not known without reading them; a put that needs to know does.
        lifetime=Lifetime(items.ends_at(group.head), None if items.expires_at(group.head) is None else 0),
        counts=known.counts,
    )


def _tuple(
    at: Partition, codec: Codec, group: Group, body: Body, contents: Mapping[bytes, bytes]
) -> CheckpointTuple:
    values = {
        name: codec.loads(value.kind, value.join(contents), group.head) for name, value in body.values.items()
    }
    parent_id = items.text(group.head, items.PARENT)
    return CheckpointTuple(
        config=config_of(at, group.checkpoint_id),
        checkpoint=cast("Any", {**body.checkpoint, "channel_values": values}),
        metadata=read_metadata(codec, group.head, contents),
        parent_config=None if parent_id is None else config_of(at, parent_id),
        pending_writes=pending_writes(codec, group.writes, contents),
    )


def get_tuple(table: Table, codec: Codec, config: RunnableConfig) -> Op[CheckpointTuple | None]:
    """Read the checkpoint that a config names, or the newest of its namespace."""
    at = target(config)
    read = yield from read_checkpoint(table, codec, at, checkpoint_id_in(config))
    if read is None:
        return None
    found, entry = yield from work(partial(decode, at, codec, *read), read_bytes(*read))
    table.memory.remember_checkpoint(at.pk, read[0].checkpoint_id, entry)
    return found


def read_checkpoint(
    table: Table,
    codec: Codec,
    at: Partition,
    checkpoint_id: str | None,
    load_some: Callable[[Table, Codec, Group, Segments], Op[Group | None]] | None = None,
) -> Op[tuple[Group, Segments] | None]:
    """The items of a checkpoint, or of the newest one that counts, and the segments that they name, or some of them."""
    below: str | None = None
    for _ in range(ATTEMPTS_MAX):
        group = yield from _one(table, at, checkpoint_id, below)
        if group is None:
            if below is None:
                yield from look_for_other_savers(table, at)
            return None
        known = Segments.of(group.head)
        try:
            loaded = yield from (load_some or load)(table, codec, group, known)
        except ChangedMeanwhileError:
            continue
        if loaded is None and checkpoint_id is not None:
            return None
        if loaded is None:
            below = group.checkpoint_id
            continue
        return loaded, known
    msg = f"checkpoints of thread {at.thread_id!r} were deleted while they were being read, {ATTEMPTS_MAX} times"
    raise CheckpointNotFoundError(msg)


def _one(table: Table, at: Partition, checkpoint_id: str | None, below: str | None) -> Op[Group | None]:
    if checkpoint_id is not None:
        return (yield from find(table, at, checkpoint_id, consistent=table.consistent_read))
    return (yield from find_newest(table, at, below=below, consistent=table.consistent_read))


def read_bytes(group: Group, known: Segments) -> int:
    """About how many bytes a checkpoint has that was read."""
    return sum(map(len, known.contents.values())) + group.sealed_bytes()


def decode(at: Partition, codec: Codec, group: Group, known: Segments) -> tuple[CheckpointTuple, Entry]:
    """A checkpoint as LangGraph wants it, and what a child needs to know of it, given its segments."""
    body = read_body(codec, group.head, known.contents)
    return _tuple(at, codec, group, body, known.contents), entry_of(group, body, known)


def decode_tuple(at: Partition, codec: Codec, group: Group, known: Segments) -> CheckpointTuple:
    """A checkpoint as LangGraph wants it, given its segments."""
    return _tuple(at, codec, group, read_body(codec, group.head, known.contents), known.contents)


def read_entry(table: Table, codec: Codec, at: Partition, checkpoint_id: str) -> Op[Entry | None]:
    """What a child needs to know of a stored checkpoint, with the plaintexts of its segments."""
    for _ in range(ATTEMPTS_MAX):
        head = yield from table.get(at.pk, items.checkpoint_prefix(checkpoint_id))
        if head is None or items.is_expired(head, table.clock()):
            return None
        items.check_format(head)
        known = Segments.of(head)
        try:
            group = yield from load(table, codec, Group(head), known)
        except ChangedMeanwhileError:
            continue
        if group is None:
            return None
        entry = entry_of(group, read_body(codec, head, known.contents), known)
        return replace(entry, contents=known.contents)
    return None
