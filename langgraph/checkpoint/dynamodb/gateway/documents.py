"""Documents of checkpoints with opaque values, as answers have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import ormsgpack
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format.codec import rough_bytes
from langgraph.checkpoint.dynamodb._format.plain import as_json
from langgraph.checkpoint.dynamodb._format.wire import digest_of
from langgraph.checkpoint.dynamodb.gateway.opaque import OpaqueMetadata, OpaqueValue

Document: TypeAlias = dict[str, Any]


def value_document(value: OpaqueValue) -> Document:
    """Return the document of a value."""
    return {"type": value.type, "data": value.data}


def value_documents(have: Collection[bytes], bytes_max: int) -> Callable[[OpaqueValue], Document]:
    """Return a function that makes the documents of the values in one answer.

    Args:
        have: The digests of values that the client has.
        bytes_max: How many bytes of values fit. One value fits in any case.
    """
    size = 0

    def shown(value: OpaqueValue) -> Document:
        nonlocal size
        known = digest_of(value.data) if have else b""
        if known in have:
            return {"type": value.type, "same": known}
        if size and size + len(value.data) > bytes_max:
            return {"type": value.type, "left": True}
        size += len(value.data)
        return value_document(value)

    return shown


def size_of(found: CheckpointTuple) -> int:
    """Return how many bytes the values, writes and metadata of a checkpoint have, about."""
    metadata: Any = found.metadata
    typed = [metadata.typed] if isinstance(metadata, OpaqueMetadata) else []
    writes = [value for _, _, value in found.pending_writes or ()]
    values = [*found.checkpoint["channel_values"].values(), *writes, *typed]
    return rough_bytes(metadata) + sum(len(each.data) for each in values)


def place_document(found: CheckpointTuple) -> Document:
    """Return the ids of a checkpoint."""
    configurable = found.config["configurable"]
    parent = found.parent_config
    return {
        "thread_id": configurable["thread_id"],
        "checkpoint_ns": configurable["checkpoint_ns"],
        "checkpoint_id": configurable["checkpoint_id"],
        "parent_checkpoint_id": None if parent is None else parent["configurable"]["checkpoint_id"],
    }


def checkpoint_document(
    found: CheckpointTuple, channels: Collection[str] | None, have: Collection[bytes], bytes_max: int
) -> Document:
    """Return the document of a checkpoint.

    Args:
        found: The checkpoint, with opaque values.
        channels: The channels whose values are wanted; `None` for all.
        have: The digests of values that the client has.
        bytes_max: How many bytes of values and pending writes fit. One value fits in any case.
    """
    shown = value_documents(have, bytes_max)
    state = found.checkpoint["channel_values"]
    values = {name: shown(state[name]) for name in state if channels is None or name in channels}
    pending = [[task, channel, shown(value)] for task, channel, value in found.pending_writes or ()]
    rest = {name: each for name, each in found.checkpoint.items() if name != "channel_values"}
    return {
        **place_document(found),
        "checkpoint": as_json(rest),
        **_metadata_documents(found.metadata),
        "values": values,
        "pending_writes": pending,
    }


def _metadata_documents(metadata: Mapping[str, Any]) -> Document:
    """Return metadata, and its typed bytes if not all of it can be sent as it is."""
    sent = {name: each for name, each in as_json(metadata).items() if _fits({name: each})}
    if isinstance(metadata, OpaqueMetadata):
        return {"metadata": sent, "typed_metadata": value_document(metadata.typed)}
    if len(sent) < len(metadata):
        return {"metadata": sent, "typed_metadata": {"type": "json", "data": json.dumps(metadata).encode()}}
    return {"metadata": sent}


def _fits(entry: Document) -> bool:
    """Tell whether msgpack can hold an entry: not whole numbers of more than 64 bits, nor half a surrogate pair."""
    try:
        ormsgpack.packb(entry)
    except ormsgpack.MsgpackEncodeError:
        return False
    return True
