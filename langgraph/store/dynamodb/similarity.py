"""Search by similarity: the interface between a search and what compares vectors.

A vector is an item of the table in every case, so renewals, sweeps and DynamoDB's expiry treat all vectors alike. The
vector itself is in the item, and compared here, or an engine beside the table has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError

from .budget import Budget
from .reads import LoadedMemory
from .storage import StoreStorage

Scored: TypeAlias = tuple[LoadedMemory, float | None]
"""A memory and its score."""
Scores: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]
"""The best score of each value, by the memory's key and the value's revision."""
Distance: TypeAlias = Literal["cosine", "l2", "inner_product"]
DISTANCES: Sequence[Distance] = ("cosine", "l2", "inner_product")


class DimensionsError(CheckpointerConfigurationError):
    """The embeddings of memories have another number of dimensions than the query."""


@dataclass(frozen=True)
class NewVector:
    """The content of a vector's item."""

    data: bytes | None = None
    """Sealed with the item, if there is any."""
    embedding: Sequence[float] = ()
    """For an engine outside the table."""


@dataclass(frozen=True)
class Candidates:
    """The memories that are most similar to a query."""

    scores: Scores
    """The best score of each value, by the memory's key and the value's revision. A higher score is more similar."""
    limit: int | None = None
    """`None` if every vector was compared. Otherwise how many vectors one search can return, and it has."""


class Vectors(Protocol):
    """How vectors are stored and compared."""

    def pack(self, embedding: Sequence[float]) -> NewVector:
        """Return an embedding as it is stored."""

    def candidates(
        self,
        storage: StoreStorage,
        namespace: tuple[str, ...],
        needed: int,
        query: Sequence[float],
        budget: Budget,
    ) -> Op[Candidates]:
        """Find at least so many memories under a namespace that are most similar to an embedding, if there are."""

    def score(self, storage: StoreStorage, loaded: LoadedMemory, query: Sequence[float]) -> Op[Scored | None]:
        """Score a memory that has vectors and was stored after the candidates were found.

        Returns:
            The memory as it is now, which may have another value, with its score; `None` for the memory if it is gone,
            and for the score if that cannot be told.
        """


@dataclass(frozen=True)
class SimilarityQuery:
    """An embedding to compare memories with, and what compares them."""

    vectors: Vectors
    embedding: Sequence[float]


def best_scores(
    scored: Sequence[tuple[tuple[str, str], str, float]],
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the best score of each memory's values, by its key and the revision: a put may have left vectors."""
    best: dict[tuple[str, str], dict[str, float]] = {}
    for place, revision, score in scored:
        revisions = best.setdefault(place, {})
        revisions[revision] = max(score, revisions.get(revision, score))
    return best
