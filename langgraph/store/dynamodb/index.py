"""The configuration of vectors: which texts of a value are embedded, by what, and who compares them."""

from __future__ import annotations

import asyncio
import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.version import requirement

from .engine import EngineVectors
from .similarity import DISTANCES, Distance, NewVector, SimilarityQuery, Vectors
from .vector_engine import VectorEngine

Embedded: TypeAlias = Mapping[str, Sequence[float]]
"""Embeddings, by text."""

_WHOLE = "$"
# The squares of so large numbers, and their sum, are 32-bit floats.
_NUMBER_MAX = 1e16
_OPTIONS = ("dims", "embed", "fields", "distance_type", "search")


class StoreIndexConfig(IndexConfig, total=False):
    """LangGraph's `IndexConfig`, with the options that this store has beyond it."""

    distance_type: Distance
    """How vectors are compared; `"cosine"` by default."""
    search: Literal["exact"] | VectorEngine
    """Who compares them; `"exact"`, this process, by default."""


class Embedder:
    """Embeds texts of values, and queries."""

    def __init__(self, config: StoreIndexConfig) -> None:
        """Check the configuration.

        Args:
            config: LangGraph's options, `distance_type`, and `search`.

        Raises:
            CheckpointerInputError: It lacks `embed` or `dims`, or has an option that cannot be used.
        """
        given: object = config
        if not isinstance(given, Mapping):
            msg = f'index is {given!r}; give a dict with "embed" and "dims"'
            raise CheckpointerInputError(msg)
        unknown = [name for name in config if name not in _OPTIONS]
        if unknown:
            msg = f"index has no option {unknown[0]!r}; use one of {', '.join(_OPTIONS)}"
            raise CheckpointerInputError(msg)
        dims = config.get("dims")
        if type(dims) is not int or dims < 1:
            msg = f"index has dims={dims!r}; give the number of dimensions of the embeddings"
            raise CheckpointerInputError(msg)
        embed = config.get("embed")
        if embed is None:
            msg = 'index has no "embed"; give LangChain Embeddings, a function, or "provider:model"'
            raise CheckpointerInputError(msg)
        self.config = config
        self.dims = dims
        self.embeddings: Embeddings = ensure_embeddings(embed)
        self._fields = _paths(config.get("fields"), "index has fields=") or [_WHOLE]
        self.distance: Distance = config.get("distance_type", "cosine")
        if self.distance not in DISTANCES:
            msg = f"index has distance_type={self.distance!r}; give one of {', '.join(DISTANCES)}"
            raise CheckpointerInputError(msg)
        search: Any = config.get("search", "exact")
        self.search: Literal["exact"] | VectorEngine = search
        if search != "exact" and not isinstance(search, VectorEngine):
            msg = f'index has search={search!r}; give "exact", or an engine with put, delete and search'
            raise CheckpointerInputError(msg)

    def texts(self, value: Mapping[str, Any], paths: Literal[False] | Sequence[str] | None) -> list[str]:
        """Return the texts of a value to embed, at the configured fields or at the paths of a put."""
        if paths is False:
            return []
        wanted = self._fields if paths is None else _paths(paths, "index of a put is ")
        return [
            text
            for path in wanted
            for text in get_text_at_path(value, path if path == _WHOLE else tokenize_path(path))
            if text
        ]

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of values, by one call."""
        found = self.embeddings.embed_documents(list(texts)) if texts else []
        return _by_text(texts, found)

    async def aembed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of values, by one call."""
        found = await self.embeddings.aembed_documents(list(texts)) if texts else []
        return _by_text(texts, found)

    def embed_queries(self, queries: Sequence[str]) -> Embedded:
        """Embed queries: many models embed them in another way than documents."""
        return {each: self.embeddings.embed_query(each) for each in queries}

    async def aembed_queries(self, queries: Sequence[str]) -> Embedded:
        """Embed queries: many models embed them in another way than documents."""
        found = await asyncio.gather(*map(self.embeddings.aembed_query, queries))
        return dict(zip(queries, found, strict=True))

    def checked(self, embedding: Sequence[float]) -> Sequence[float]:
        """Return an embedding.

        Raises:
            CheckpointerConfigurationError: It has another number of dimensions, or something that is no number.
        """
        if len(embedding) != self.dims:
            msg = f"the embeddings have {len(embedding)} dimensions, and index has dims={self.dims}; give the same"
            raise CheckpointerConfigurationError(msg)
        return checked_numbers(embedding)


class Index(Embedder):
    """Embeds texts and queries, and knows who compares the embeddings."""

    def __init__(self, config: StoreIndexConfig, *, is_encrypted: bool) -> None:
        """Check the configuration.

        Args:
            config: As for `Embedder`.
            is_encrypted: Whether the store encrypts values.

        Raises:
            CheckpointerInputError: As for `Embedder`.
            CheckpointerConfigurationError: What the search needs is not installed, or it cannot keep encrypted values.
        """
        super().__init__(config)
        self.engine = self.search if isinstance(self.search, VectorEngine) else None
        self.vectors = self._vectors()
        if is_encrypted and self.search != "exact":
            msg = (
                f"index has search={self.search!r}, which keeps embeddings that are not encrypted, and serde encrypts;"
                ' leave "search" out of index, to compare encrypted vectors exactly'
            )
            raise CheckpointerConfigurationError(msg)

    def _vectors(self) -> Vectors:
        if self.engine is not None:
            return EngineVectors(self.engine)
        return exact_vectors(self.distance)

    def pack(self, embedding: Sequence[float]) -> NewVector:
        """Return an embedding as it is stored."""
        return self.vectors.pack(self.checked(embedding))

    def query(self, embedding: Sequence[float]) -> SimilarityQuery:
        """Return the query for memories that are similar to an embedding."""
        return SimilarityQuery(self.vectors, self.checked(embedding))


def checked_numbers(embedding: Sequence[float]) -> Sequence[float]:
    """Return an embedding.

    Raises:
        CheckpointerConfigurationError: It has something that is no finite number.
    """
    for each in embedding:
        # No order has a place for what is not a number, and one such score would mix up all others.
        if not _is_finite(each):
            msg = f"embed returned an embedding with {each!r}; it must have finite numbers, up to {_NUMBER_MAX:g}"
            raise CheckpointerConfigurationError(msg)
    return embedding


def exact_vectors(distance: Distance) -> Vectors:
    """Return vectors that this process compares.

    Raises:
        CheckpointerConfigurationError: numpy is not installed.
    """
    try:
        exact = importlib.import_module("langgraph.store.dynamodb.vectors")
    except ImportError as error:
        msg = f"index needs numpy; pip install {requirement('vectors')}"
        raise CheckpointerConfigurationError(msg) from error
    return cast("Vectors", exact.ExactVectors(distance))


def _is_finite(number: Any) -> bool:
    try:
        return math.fabs(number) <= _NUMBER_MAX
    except (TypeError, OverflowError):
        return False


def _by_text(texts: Sequence[str], embeddings: Iterable[Sequence[float]]) -> Embedded:
    found = list(embeddings)
    if len(found) != len(texts):
        msg = f"embed returned {len(found)} embeddings for {len(texts)} texts; it must return one for each"
        raise CheckpointerConfigurationError(msg)
    return dict(zip(texts, found, strict=True))


def _paths(paths: object, said: str) -> list[str]:
    """Return paths in a value, without any for `None`. The letters of a single text would pass for paths."""
    if paths is None:
        return []
    if not isinstance(paths, (list, tuple)) or not all(isinstance(each, str) for each in paths):
        msg = f"{said}{paths!r}; give a list of paths"
        raise CheckpointerInputError(msg)
    return list(paths)
