"""The interface of an engine that compares vectors beside the table, such as S3 Vectors or OpenSearch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Vector:
    """A vector for an engine to keep."""

    id: str
    """Unique. A new value of a memory has new ids."""
    namespace: tuple[str, ...]
    embedding: Sequence[float]


@runtime_checkable
class VectorEngine(Protocol):
    """Keeps vectors and finds similar ones. The methods block, and may be called from several OS threads.

    An engine may be late, and may keep vectors that were deleted or have expired: the store returns a memory only if
    its present value has the vector. It must not drop a vector that it was given.
    """

    def put(self, vectors: Sequence[Vector]) -> None:
        """Keep vectors. A call may be repeated."""

    def delete(self, ids: Sequence[str]) -> None:
        """Forget vectors. Some may not be there."""

    def search(
        self, namespace: tuple[str, ...], embedding: Sequence[float], limit: int
    ) -> Sequence[tuple[str, float]]:
        """Return up to `limit` ids and scores of vectors under a namespace, the most similar ones first.

        Args:
            namespace: The labels that the namespaces begin with, whole ones; `()` for all.
            embedding: The query.
            limit: How many to return. Fewer mean that there are no more.
        """
