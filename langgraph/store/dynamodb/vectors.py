"""Exact search by similarity: every vector under a namespace is read, and compared here. Needs numpy.

A vector is stored with its length and its direction, as 16-bit floats: 1,024 dimensions take 2 KB. So a score differs
by less than a thousandth from that of the embeddings.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from langgraph.checkpoint.dynamodb._format import limits, pricing
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import DATA, Item, binary, damaged, partition_key
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work

from .keys import VECTORS, parse_vector, vectors_prefix
from .partitions import BoundedReader
from .reads import LoadedMemory, get
from .resources import StoreStorage
from .similarity import Candidates, DimensionsError, Distance, NewVector, Scored, best_scores

_DIRECTION = np.dtype("<f2")
_LENGTH = struct.Struct("<f")

Row: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]


@dataclass(frozen=True)
class ExactVectors:
    """Vectors that are compared one by one."""

    distance: Distance

    def pack(self, embedding: Sequence[float]) -> NewVector:
        """Return an embedding as it is stored."""
        vector = np.asarray(embedding, np.float32)
        length = float(np.linalg.norm(vector))
        direction = vector / length if length else vector
        return NewVector(data=_LENGTH.pack(length) + direction.astype(_DIRECTION).tobytes())

    def candidates(self, reader: BoundedReader, needed: int, query: Sequence[float]) -> Op[Candidates]:
        """Score every memory that has vectors."""
        del needed
        found = yield from reader.read_all(VECTORS)
        compared = partial(self._scores, reader.storage.codec, found, query)
        scores = yield from work(compared, sum(map(pricing.item_bytes, found)))
        scored = [
            ((partition_key(item), sk), revision, score)
            for (sk, revision), item, score in zip(map(parse_vector, found), found, scores, strict=True)
        ]
        return Candidates(best_scores(scored))

    def score(self, storage: StoreStorage, loaded: LoadedMemory, query: Sequence[float]) -> Op[Scored | None]:
        """Score a memory that was stored since the vectors were read."""
        found: LoadedMemory | None = loaded
        missing: str | None = None
        for _ in range(limits.ATTEMPTS_MAX):
            if found is None or found.memory.revision == missing or not found.memory.vectors:
                break
            prefix = f"{vectors_prefix(found.address)}{found.memory.revision}#"
            new = Query(found.address.pk, prefix=prefix, consistent=storage.consistent_read)
            vectors = yield from storage.table.query_all(new)
            if vectors:
                return found, max(self._scores(storage.codec, vectors, query))
            # Another put has replaced the value since, and removed its vectors.
            missing = found.memory.revision
            [found] = yield from get(storage, [found.address])
        return None if found is None else (found, None)

    def _scores(self, codec: Codec, found: Sequence[Item], query: Sequence[float]) -> list[float]:
        if not found:
            return []
        target = np.asarray(query, np.float32)
        opened = [_open(codec, item, len(query)) for item in found]
        directions = np.stack([direction for _, direction in opened])
        # Rounding to 16 bits has changed the lengths a little. A vector without length is similar to nothing.
        norms = np.linalg.norm(directions, axis=1)
        directions /= np.where(norms, norms, 1)[:, None]
        lengths = np.array([length for length, _ in opened], np.float32)
        if self.distance == "l2":
            scores = -np.linalg.norm(directions * lengths[:, None] - target, axis=1)
        elif self.distance == "inner_product":
            scores = directions @ target * lengths
        else:
            scores = directions @ target / (float(np.linalg.norm(target)) or 1.0)
        return [float(score) for score in scores]


def _open(codec: Codec, item: Item, dims: int) -> tuple[float, Row]:
    """Return the length and the direction of a vector that was read."""
    raw = codec.open(binary(item, DATA), item, DATA)
    dimensions, rest = divmod(len(raw) - _LENGTH.size, _DIRECTION.itemsize)
    if dimensions < 1 or rest:
        raise damaged(item, f"its vector has {len(raw)} bytes")
    if dimensions != dims:
        raise DimensionsError(
            f"a vector under {partition_key(item)!r} has {dimensions} dimensions, and index has dims={dims}; after a"
            " change of the model, embed the memories anew: call export_items, delete_namespace and import_items"
        )
    (length,) = _LENGTH.unpack_from(raw)
    return length, np.frombuffer(raw, _DIRECTION, offset=_LENGTH.size).astype(np.float32)
