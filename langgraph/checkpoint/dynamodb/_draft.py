"""The parts of items that are being made: what becomes new segments, and what is reused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from langgraph.checkpoint.dynamodb import _items as items
from langgraph.checkpoint.dynamodb._codec import Codec, seal_plain
from langgraph.checkpoint.dynamodb._items import Part, Partition
from langgraph.checkpoint.dynamodb._limits import (
    HEAD_IDS_MAX,
    IDLE_TAIL_BYTES_MAX,
    INDEX_GROUP,
    PREAMBLE_BYTES,
    RAW_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._requests import Table
from langgraph.checkpoint.dynamodb._segments import (
    Chunk,
    Piece,
    StoredValue,
    cut,
    fold,
    new_id,
    piece,
    split,
)
from langgraph.checkpoint.dynamodb._steps import Item


class Draft:
    """The parts of an item that is being made: new segments, and those of the parent that it reuses."""

    def __init__(
        self, table: Table, codec: Codec, at: Partition, sk: str, known: Mapping[bytes, Chunk]
    ) -> None:
        """Start with the sort key of the item, and the segments that may be reused."""
        self.segments: dict[bytes, Item] = {}
        self.chunks: dict[bytes, Chunk] = {}
        self._table = table
        self._codec = codec
        self._at = at
        self._sk = sk
        self._known = known
        self._ids = {chunk.digest: each for each, chunk in known.items()}

    def value(self, kind: str, data: bytes, before: StoredValue | None, *, inline: bool) -> StoredValue:
        """Store a serialized value, reusing what the parent has of it."""
        if inline:
            return StoredValue(kind, data[:PREAMBLE_BYTES], (), data[PREAMBLE_BYTES:])
        chunks = (
            [] if before is None else [self._known[each] for each in before.segments if each in self._known]
        )
        preamble, pieces, tail = split(data, chunks)
        value = StoredValue(kind, preamble, tuple(map(self._piece, pieces)), tail)
        # A channel that was given the value that it has is as idle as one that was given none.
        return self.inherit(value, inline=False) if value == before else value

    def inherit(self, value: StoredValue, *, inline: bool) -> StoredValue:
        """Hold a value as the parent does, but seal what would be carried along with every step."""
        for each in value.segments:
            self.chunks[each] = self._known[each]
        if inline or len(value.tail) <= IDLE_TAIL_BYTES_MAX:
            return value
        return StoredValue(value.kind, value.preamble, (*value.segments, self._piece(piece(value.tail))), b"")

    def part(self, raw: bytes, bytes_max: int, refs: Sequence[bytes] = ()) -> Part:
        """Seal content into its item, or move it to segments where it is too large for that."""
        folded = fold(refs, HEAD_IDS_MAX, self._index)
        sealed = self._codec.seal(raw, self._sk) if len(raw) <= RAW_BYTES_MAX else b""
        if 0 < len(sealed) <= bytes_max:
            return Part((), folded, sealed)
        ends = [*cut(raw, 0, len(raw)), len(raw)]
        pieces = [piece(raw[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
        return Part(self.folded(tuple(map(self._piece, pieces))), folded, b"")

    def folded(self, ids: Sequence[bytes]) -> tuple[bytes, ...]:
        """Shorten a list of ids by index segments."""
        return fold(ids, INDEX_GROUP, self._index)

    def _index(self, content: bytes) -> bytes:
        return self._segment(piece(content), seal_plain, index=True)

    def _piece(self, content: Piece) -> bytes:
        return self._segment(content, self._codec.seal, index=False)

    def _segment(self, content: Piece, seal: Callable[[bytes, str], bytes], *, index: bool) -> bytes:
        segment_id = self._ids.get(content.digest)
        if segment_id is None:
            segment_id = new_id(self._table.rng, index=index)
            self._ids[content.digest] = segment_id
            expires_at = self._table.expires_at(2)
            sealed = seal(content.content, items.segment_sk(segment_id))
            item = items.segment_item(self._at, segment_id, sealed, self._table.clock())
            self.segments[segment_id] = items.with_expiry(item, expires_at)
            self.chunks[segment_id] = Chunk.of(content, expires_at)
        elif segment_id not in self.chunks:
            self.chunks[segment_id] = self._known[segment_id]
        return segment_id
