"""What is stored, as it travels: items without their partition key, and segments as they are sealed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import check_sealed, parse_metadata, seal_plain
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY
from langgraph.checkpoint.dynamodb._format.segments import Chunk, is_index, reach
from langgraph.checkpoint.dynamodb._operations.draft import Needs
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointFormatError,
)
from langgraph.checkpoint.dynamodb.gateway import wire

# What was read


def checkpoint_document(
    at: Partition, group: Group, known: Segments, left_out: Iterable[bytes], bytes_max: int
) -> dict[str, Any]:
    """A checkpoint's items, and of its segments those that were read, are not left out, and fit.

    Args:
        at: The namespace.
        group: The items.
        known: Segments that were read for it, as they are stored.
        left_out: Segments that the client has already.
        bytes_max: How much the segments may take up together.
    """
    needed = sorted(reach(group.ids(), known.contents) - set(left_out))
    segments, size = [], 0
    for each in needed:
        if each in known.contents:
            segments.append(_segment_document(each, known))
            size += len(segments[-1]["data"])
        if size > bytes_max:
            break
    return {
        "thread_id": at.thread_id,
        "checkpoint_ns": at.namespace,
        "checkpoint_id": group.checkpoint_id,
        "items": [item_document(each) for each in group.members],
        "segments": segments,
        "complete": len(segments) == len(needed),
        "counts": known.counts,
    }


def item_document(item: Item) -> dict[str, Any]:
    """An item in DynamoDB's own form, but for its partition key, which the client knows."""
    return {name: value for name, value in item.items() if name != PARTITION_KEY}


def _segment_document(segment_id: bytes, known: Segments) -> dict[str, Any]:
    data = sealed(segment_id, known.contents[segment_id])
    chunk = known.chunks.get(segment_id)
    return {"id": segment_id, "data": data, "expires_at": None if chunk is None else chunk.expires_at}


def sealed(segment_id: bytes, content: bytes) -> bytes:
    """A segment that was read, as it is stored; an index was opened, and sealing it again gives the same."""
    return seal_plain(content, items.segment_sk(segment_id)) if is_index(segment_id) else content


def stored_segment_document(item: Item) -> dict[str, Any]:
    """A segment as it was read by itself."""
    return {
        "id": items.segment_id_of(item),
        "data": items.binary(item, items.DATA),
        "expires_at": items.expires_at(item),
    }


# What is to be stored


def needs_of(at: Partition, request: wire.NewSegments) -> Needs:
    """Return segments that are to be stored, and what is known of those that are named again.

    Raises:
        CheckpointerInputError: A segment is not what its client sealed, or there is no thread to store it under. Any
            epoch might commit it then: carried out twice, with a deletion in between, the request would commit under
            the new epoch what the deletion is about to remove.
    """
    if request.segments and request.thread is None:
        msg = "segments need a thread; put-segments without segments answers which"
        raise CheckpointerInputError(msg)
    needs = Needs()
    for each in request.segments:
        item = items.segment_item(at, each.id, each.data)
        with _as_sent():
            check_sealed(each.data, item)
        needs.segments[each.id] = item
        needs.chunks[each.id] = Chunk(b"", 0, b"", None)
    if isinstance(request, wire.Stored):
        needs.others_until = request.reused_until
        for again in request.reused:
            needs.chunks.setdefault(again.id, Chunk(b"", 0, b"", again.expires_at))
    return needs


def parts_of(key: Item, given: Mapping[str, bytes | None]) -> dict[str, Part]:
    """The parts of an item that is to be stored.

    Raises:
        CheckpointerInputError: One is not what its client sealed.
    """
    with _as_sent():
        return dict(_parsed(key, given))


def check_metadata(key: Item, text: str) -> None:
    """Refuse readable metadata that no reader could read.

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
    """Say of what is damaged that it came so, and not that it lies in the table."""
    try:
        yield
    except CheckpointCorruptionError as error:
        msg = "what was sent is not what its client sealed for this item; send it again, and look at who changes it"
        raise CheckpointerInputError(msg) from error
    except CheckpointFormatError as error:
        msg = "the client seals in a later format than this service knows; update langgraph-dynamodb in the service"
        raise CheckpointerInputError(msg) from error
