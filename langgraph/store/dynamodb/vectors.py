"""Exact search by similarity: every vector under a namespace is read, and compared here. Needs numpy.

A vector is stored with its length and its direction, as 16-bit floats: 1,024 dimensions take 2 KB. So a score differs
by less than a thousandth from that of the embeddings.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import DATA, Item, binary, damaged, partition_key
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime import requests
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.store.dynamodb.keys import VECTORS, Address, parse_vector, vectors_prefix
from langgraph.store.dynamodb.reads import LoadedMemory
from langgraph.store.dynamodb.search import Budget, read_under
from langgraph.store.dynamodb.similarity import Candidates, Distance, NewVector, best_scores
from langgraph.store.dynamodb.storage import StoreStorage

_DIRECTION = np.dtype("<f2")
_LENGTH = struct.Struct("<f")

Row: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]


class ExactVectors:
    """Vectors that are compared one by one."""

    def __init__(self, distance: Distance) -> None:
        """Compare vectors by a distance."""
        self._distance: Distance = distance

    def pack(self, embedding: Sequence[float], address: Address) -> NewVector:
        """Return an embedding as it is stored."""
        del address
        vector = np.asarray(embedding, np.float32)
        length = float(np.linalg.norm(vector))
        direction = vector / length if length else vector
        return NewVector(data=_LENGTH.pack(length) + direction.astype(_DIRECTION).tobytes())

    def query(self, embedding: Sequence[float]) -> ExactQuery:
        """Return what finds memories that are similar to an embedding."""
        return ExactQuery(np.asarray(embedding, np.float32), self._distance)


class ExactQuery:
    """Compares all vectors under a namespace with the embedding of a query."""

    def __init__(self, embedding: Row, distance: Distance) -> None:
        """Take the embedding."""
        self._query = embedding
        self._distance = distance

    def candidates(
        self, storage: StoreStorage, namespace: Sequence[str], needed: int, budget: Budget
    ) -> Op[Candidates]:
        """Score every memory under a namespace that has vectors."""
        del needed
        found = yield from read_under(storage, namespace, VECTORS, budget)
        scores = yield from work(partial(self._scores, storage.codec, found), sum(map(item_bytes, found)))
        scored = [
            ((partition_key(item), sk), revision, score)
            for (sk, revision), item, score in zip(map(parse_vector, found), found, scores, strict=True)
        ]
        return Candidates(best_scores(scored))

    def score_again(self, storage: StoreStorage, loaded: LoadedMemory) -> Op[float | None]:
        """Score a memory whose value was replaced since the vectors were read."""
        prefix = f"{vectors_prefix(loaded.address)}{loaded.memory.revision}#"
        query = requests.Query(loaded.address.pk, prefix=prefix, consistent=storage.consistent_read)
        found = yield from storage.table.query_all(query)
        return max(self._scores(storage.codec, found), default=None)

    def _scores(self, codec: Codec, found: Sequence[Item]) -> list[float]:
        if not found:
            return []
        opened = [self._open(codec, item) for item in found]
        directions = np.stack([direction for _, direction in opened])
        # Rounding to 16 bits has changed the lengths a little. A vector without length is similar to nothing.
        norms = np.linalg.norm(directions, axis=1)
        directions /= np.where(norms, norms, 1)[:, None]
        lengths = np.array([length for length, _ in opened], np.float32)
        if self._distance == "l2":
            scores = -np.linalg.norm(directions * lengths[:, None] - self._query, axis=1)
        elif self._distance == "inner_product":
            scores = directions @ self._query * lengths
        else:
            scores = directions @ self._query / (float(np.linalg.norm(self._query)) or 1.0)
        return [float(score) for score in scores]

    def _open(self, codec: Codec, item: Item) -> tuple[float, Row]:
        raw = codec.open(binary(item, DATA), item, DATA)
        expected = _LENGTH.size + len(self._query) * _DIRECTION.itemsize
        if len(raw) != expected:
            dimensions = (len(raw) - _LENGTH.size) // _DIRECTION.itemsize
            raise damaged(item, f"its vector has {dimensions} dimensions, not {len(self._query)}")
        (length,) = _LENGTH.unpack_from(raw)
        return length, np.frombuffer(raw, _DIRECTION, offset=_LENGTH.size).astype(np.float32)
