"""Search by similarity: which texts are embedded, how vectors are stored, and what compares them.

A vector is an item of the table in every case, so renewals, sweeps and DynamoDB's expiry treat all vectors alike. The
vector itself is in the item, and compared by `vectors.py`, or an engine beside the table has it, whose answers are
checked.
"""

import asyncio
import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from langgraph.checkpoint.dynamodb._format.items import Item, key, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.labels import MEMORIES_MARK
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.version import requirement

from .keys import VECTORS, Address, is_vector_under, parse_vector
from .partitions import BoundedReader
from .reads import LoadedMemory
from .resources import StoreStorage, Vector, VectorEngine

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

    def candidates(self, reader: BoundedReader, needed: int, query: Sequence[float]) -> Op[Candidates]:
        """Find at least so many memories that are most similar to an embedding, if there are, where a search reads."""

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


# The engine's calls are blocking, so a driver moves them off its event loop.
_OFF_THE_LOOP = 1 << 30
# How many there are in the sort key of a vector.
_MARKS = 4


@dataclass(frozen=True)
class EngineVectors:
    """Vectors that an engine compares."""

    engine: VectorEngine

    def pack(self, embedding: Sequence[float]) -> NewVector:
        """Return an embedding for the engine. The item is empty."""
        return NewVector(embedding=embedding)

    def candidates(self, reader: BoundedReader, needed: int, query: Sequence[float]) -> Op[Candidates]:
        """Ask the engine for the most similar vectors."""
        # A memory may have several vectors, and some may be of values that were replaced.
        limit = 4 * needed + 100
        call = partial(self.engine.search, reader.namespace, query, limit)
        found = yield from work(call, _OFF_THE_LOOP)
        scored = []
        for vector_id, score in found:
            item = _key_of(vector_id)
            _check_found(vector_id, item, score, reader.namespace)
            sk, revision = parse_vector(item)
            scored.append(((partition_key(item), sk), revision, float(score)))
        return Candidates(best_scores(scored), limit if len(found) >= limit else None)

    def score(self, storage: StoreStorage, loaded: LoadedMemory, query: Sequence[float]) -> Op[Scored | None]:
        """The engine may be late: until it has the new value, the memory has no score."""
        del storage, query
        yield from ()
        return loaded, None


def keep(
    storage: StoreStorage, address: Address, items: Sequence[Item], new: Sequence[NewVector]
) -> Op[None]:
    """Give the vectors of a value to the engine, if there is one."""
    engine = storage.engine
    if engine is not None and items:
        vectors = [
            Vector(_id_of(item), address.namespace, each.embedding)
            for item, each in zip(items, new, strict=True)
        ]
        yield from work(partial(engine.put, vectors), _OFF_THE_LOOP)


def remove(storage: StoreStorage, keys: Iterable[Item]) -> Op[None]:
    """Delete segments and vectors by their keys, from the engine too if there is one."""
    keys = list(keys)
    yield from storage.table.batch_write(deletes=keys)
    ids = [_id_of(each) for each in keys if sort_key(each).startswith(VECTORS)]
    if storage.engine is not None and ids:
        yield from work(partial(storage.engine.delete, ids), _OFF_THE_LOOP)


def _id_of(item: Item) -> str:
    return partition_key(item) + sort_key(item)


def _key_of(vector_id: str) -> Item:
    # No label has the mark, since escaping never makes it.
    pk, mark, sk = vector_id.partition(MEMORIES_MARK)
    if not mark or not sk.startswith(VECTORS) or sk.count("#") != _MARKS:
        msg = f"the engine of index returned {vector_id!r}; its search must return ids that were passed to its put"
        raise CheckpointerInputError(msg)
    return key(pk + mark, sk)


def _check_found(vector_id: str, item: Item, score: float, namespace: Sequence[str]) -> None:
    """Raise for a memory of another namespace, which may be another user's, and for a score without an order."""
    if not is_vector_under(item, namespace):
        raise CheckpointerInputError(
            f"the engine of index returned {vector_id!r}, which is not under the namespace {tuple(namespace)};"
            " its search must compare whole labels"
        )
    if math.isnan(score):
        raise CheckpointerInputError(f"the engine of index returned {vector_id!r} with the score {score}")


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
            CheckpointerInputError: It lacks `embed` or `dims`, or has an option that cannot be used or loaded.
        """
        given: object = config
        if not isinstance(given, Mapping):
            raise CheckpointerInputError(f'index is {given!r}; give a dict with "embed" and "dims"')
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
        try:
            self.embeddings: Embeddings = ensure_embeddings(embed)
        except Exception as error:
            raise CheckpointerInputError(
                f"index has embed={embed!r}, which cannot be loaded: {error}"
            ) from error
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
            raise CheckpointerConfigurationError(
                f"index has search={self.search!r}, which keeps embeddings that are not encrypted, and serde encrypts;"
                ' leave "search" out of index, to compare encrypted vectors exactly'
            )

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
        raise CheckpointerInputError(f"{said}{paths!r}; give a list of paths")
    return list(paths)
