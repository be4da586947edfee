"""The configuration of vectors: which texts of a value are embedded, and by what."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.store.dynamodb.search import Scorer

Embedded: TypeAlias = Mapping[str, Sequence[float]]
"""Embeddings, by text."""

_WHOLE = "$"
_OPTIONS = ("dims", "embed", "fields")


class Index:
    """Embeds texts of values, and queries. Vectors are compared by numpy, which is loaded here."""

    def __init__(self, config: IndexConfig) -> None:
        """Check the configuration.

        Raises:
            CheckpointerInputError: It lacks `embed` or `dims`, or has an unknown option.
            CheckpointerConfigurationError: numpy is not installed.
        """
        unknown = [name for name in config if name not in _OPTIONS]
        if unknown:
            msg = f"index has the option {unknown[0]!r}; there are {', '.join(_OPTIONS)}"
            raise CheckpointerInputError(msg)
        dims = config.get("dims")
        if type(dims) is not int or dims < 1:
            msg = f"index has dims={dims!r}; give the number of dimensions of the embeddings"
            raise CheckpointerInputError(msg)
        embed = config.get("embed")
        if embed is None:
            msg = 'index has no "embed"; give LangChain Embeddings, a function, or "provider:model"'
            raise CheckpointerInputError(msg)
        self.dims = dims
        self._embeddings: Embeddings = ensure_embeddings(embed)
        self._fields = list(config.get("fields") or [_WHOLE])
        try:
            self._vectors = importlib.import_module("langgraph.store.dynamodb.vectors")
        except ImportError as error:
            msg = 'index needs numpy; install "langgraph-dynamodb[vectors]"'
            raise CheckpointerConfigurationError(msg) from error

    def texts(self, value: Mapping[str, Any], paths: Literal[False] | Sequence[str] | None) -> list[str]:
        """Return the texts of a value to embed, at the configured fields or at the paths of a put."""
        if paths is False:
            return []
        wanted = self._fields if paths is None else paths
        return [
            text
            for path in wanted
            for text in get_text_at_path(value, path if path == _WHOLE else tokenize_path(path))
            if text
        ]

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of values, by one call."""
        return dict(zip(texts, self._embeddings.embed_documents(list(texts)), strict=True)) if texts else {}

    async def aembed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of values, by one call."""
        return (
            dict(zip(texts, await self._embeddings.aembed_documents(list(texts)), strict=True))
            if texts
            else {}
        )

    def embed_queries(self, queries: Sequence[str]) -> Embedded:
        """Embed queries: many models embed them in another way than documents."""
        return {each: self._embeddings.embed_query(each) for each in queries}

    async def aembed_queries(self, queries: Sequence[str]) -> Embedded:
        """Embed queries: many models embed them in another way than documents."""
        found = await asyncio.gather(*map(self._embeddings.aembed_query, queries))
        return dict(zip(queries, found, strict=True))

    def pack(self, embedding: Sequence[float]) -> bytes:
        """Return an embedding as it is stored."""
        return cast("bytes", self._vectors.pack(self._checked(embedding)))

    def scorer(self, embedding: Sequence[float]) -> Scorer:
        """Return what compares stored vectors with a query."""
        return cast("Scorer", self._vectors.QueryScorer(self._checked(embedding)))

    def _checked(self, embedding: Sequence[float]) -> Sequence[float]:
        if len(embedding) != self.dims:
            msg = f"the embeddings have {len(embedding)} dimensions, and index has dims={self.dims}; give the same"
            raise CheckpointerConfigurationError(msg)
        return embedding
