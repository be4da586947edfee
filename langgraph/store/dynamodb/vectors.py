"""Vectors as they are stored, and their similarity to a query. Needs numpy, from the extra `vectors`.

A vector is stored with length 1, as 16-bit floats: 1,024 dimensions take 2 KB. So a score differs by less than a
thousandth from the cosine of the embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import DATA, Item, binary, damaged

_STORED = np.dtype("<f2")


def pack(embedding: Sequence[float]) -> bytes:
    """Return an embedding as it is stored."""
    return _unit(embedding).astype(_STORED).tobytes()


class QueryScorer:
    """Compares vectors with the embedding of a query, by the cosine of their angle."""

    def __init__(self, embedding: Sequence[float]) -> None:
        """Take the embedding."""
        self._query = _unit(embedding)

    def scores(self, codec: Codec, found: Sequence[Item]) -> list[float]:
        """Return the similarity of each stored vector to the query."""
        if not found:
            return []
        rows = np.stack([self._vector(codec, item) for item in found])
        # Rounding to 16 bits has changed the lengths a little. A vector without length is similar to nothing.
        lengths = np.linalg.norm(rows, axis=1)
        scores: list[float] = (rows @ self._query / np.where(lengths, lengths, 1)).tolist()
        return scores

    def _vector(self, codec: Codec, item: Item) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        raw = codec.open(binary(item, DATA), item, DATA)
        if len(raw) != len(self._query) * _STORED.itemsize:
            raise damaged(
                item, f"its vector has {len(raw) // _STORED.itemsize} dimensions, not {len(self._query)}"
            )
        return np.frombuffer(raw, _STORED).astype(np.float32)


def _unit(embedding: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = np.asarray(embedding, np.float32)
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
