"""Stored items and segments as they travel: items without their partition key, segments sealed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from typing_extensions import override

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, Ids, check_sealed, parse_metadata, seal_plain
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import OWNER, PARTITION_KEY
from langgraph.checkpoint.dynamodb._format.segments import Chunk, is_index, reach
from langgraph.checkpoint.dynamodb._operations.entries import tenant_prefix
from langgraph.checkpoint.dynamodb._operations.item_builder import SegmentRefs
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments, StoredCheckpoint
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointFormatError,
)
from langgraph.checkpoint.dynamodb.gateway import wire

T = TypeVar("T")

# What was read


def fitting(
    things: Iterable[T], size_of: Callable[[T], int], bytes_max: int, *, at_least: int = 0
) -> list[T]:
    """Return the first things that fit into an answer together, but at least so many."""
    found, size = list[T](), 0
    for each in things:
        size += size_of(each)
        if size > bytes_max and len(found) >= at_least:
            break
        found.append(each)
    return found


class OpaqueCodec(Codec):
    """A codec that leaves everything sealed, since the service has no key."""

    opens = False

    @override
    def open(self, sealed: bytes, item: Item, name: str, ids: Ids = ((), ())) -> bytes:
        """Return the sealed bytes themselves."""
        return sealed


def checkpoint_document(
    partition: Partition,
    checkpoint: StoredCheckpoint,
    loaded: LoadedSegments,
    left_out: Iterable[bytes],
    bytes_max: int,
) -> dict[str, Any]:
    """Return the document of a checkpoint: those of its items that fit, and of its loaded segments.

    The head and one writes item always come, so that a client that asks again for what is left gets on.

    Args:
        partition: The namespace.
        checkpoint: The items.
        loaded: Segments that were read for it, as they are stored.
        left_out: Segments that the client has already.
        bytes_max: How many bytes the items and segments may take together.
    """
    members = fitting(checkpoint.members, item_bytes, bytes_max, at_least=2)
    room = bytes_max - sum(map(item_bytes, members))
    needed = sorted(reach(checkpoint.ids(), loaded.contents) - set(left_out))
    there = (_segment_document(each, loaded) for each in needed if each in loaded.contents)
    segments = fitting(there, lambda each: len(each["data"]), room)
    return {
        "thread_id": partition.thread_id,
        "checkpoint_ns": partition.namespace,
        "checkpoint_id": checkpoint.checkpoint_id,
        "items": [item_document(each) for each in members],
        "left": [items.task_id_of(each) for each in checkpoint.members[len(members) :]],
        "segments": segments,
        "complete": len(segments) == len(needed),
        "committed": loaded.is_committed,
    }


def item_document(item: Item) -> dict[str, Any]:
    """Return an item in DynamoDB's own form, without its partition key, which the client knows."""
    return {name: value for name, value in item.items() if name != PARTITION_KEY}


def _segment_document(segment_id: bytes, loaded: LoadedSegments) -> dict[str, Any]:
    data = sealed(segment_id, loaded.contents[segment_id])
    chunk = loaded.chunks.get(segment_id)
    return {"id": segment_id, "data": data, "expires_at": None if chunk is None else chunk.expires_at}


def sealed(segment_id: bytes, content: bytes) -> bytes:
    """Return a segment as it is stored. An index segment was opened; sealing it again yields the same bytes."""
    return seal_plain(content, items.segment_sk(segment_id)) if is_index(segment_id) else content


def stored_segment_document(item: Item) -> dict[str, Any]:
    """Return the document of a segment that was read by itself."""
    return {
        "id": items.segment_id_of(item),
        "data": items.binary(item, items.DATA),
        "expires_at": items.expires_at(item),
    }


# What is to be stored


def segment_refs_of(partition: Partition, request: wire.NewSegments) -> SegmentRefs:
    """Return the segments that are to be stored, and what is known of those that are reused.

    Raises:
        CheckpointerInputError: A segment is not what its client sealed, or there is no thread to store it under.
            Without one, any epoch might commit it: carried out twice, with a deletion in between, the request would
            commit under the new epoch what the deletion is about to remove.
    """
    if request.segments and request.thread is None:
        msg = "segments need a thread; put-segments without segments returns it"
        raise CheckpointerInputError(msg)
    refs = SegmentRefs()
    for each in request.segments:
        item = items.segment_item(partition, each.id, each.data)
        with _as_sent():
            check_sealed(each.data, item)
        refs.segments[each.id] = item
        refs.chunks[each.id] = Chunk(b"", 0, b"", None)
    if isinstance(request, wire.Stored):
        refs.others_until = request.reused_until
        for again in request.reused:
            refs.chunks.setdefault(again.id, Chunk(b"", 0, b"", again.expires_at))
    return refs


def parts_of(key: Item, given: Mapping[str, bytes | None]) -> dict[str, Part]:
    """Return the parts of an item that is to be stored.

    Raises:
        CheckpointerInputError: One is not what its client sealed.
    """
    with _as_sent():
        return dict(_parsed(key, given))


def entry_item(partition: Partition, entry: wire.Entry) -> Item:
    """Return what the directory gets of a thread, as attributes of its thread item.

    Raises:
        CheckpointerInputError: It is not what its client sealed, or the owner is of another tenant than the thread.
    """
    item: Item = {}
    if entry.owner is not None:
        if not partition.thread_id.startswith(tenant_prefix(entry.owner)):
            msg = "entry.owner is of another tenant than the thread; a name before a slash is a tenant"
            raise CheckpointerInputError(msg)
        item[OWNER] = {"S": items.owner_key(entry.owner)}
    if entry.about is not None:
        with _as_sent():
            check_sealed(entry.about, items.thread_key(partition))
        item[items.ABOUT] = {"B": entry.about}
    return item


def check_metadata(key: Item, text: str) -> None:
    """Refuse readable metadata that no reader could parse.

    Raises:
        CheckpointerInputError: The text is not that of a JSON object.
    """
    with _as_sent():
        parse_metadata(key, text)


def _parsed(key: Item, given: Mapping[str, bytes | None]) -> Iterator[tuple[str, Part]]:
    for name, data in given.items():
        part = items.parse_part({**key, name: {"B": data}}, name) if data is not None else None
        if part is not None:
            if part.sealed:
                check_sealed(part.sealed, key)
            yield name, part


@contextmanager
def _as_sent() -> Iterator[None]:
    """Turn errors about damaged items into errors about the request: the item came that way and is not in the table."""
    try:
        yield
    except CheckpointCorruptionError as error:
        msg = "the data has changed since its client sealed it for this item; send it again, and check any proxy"
        raise CheckpointerInputError(msg) from error
    except CheckpointFormatError as error:
        msg = "the client seals in a newer format than this service knows; update langgraph-dynamodb in the service"
        raise CheckpointerInputError(msg) from error
