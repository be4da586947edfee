"""Search by an engine outside the table: its vectors are kept with the values, and its answers are checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from langgraph.checkpoint.dynamodb._format.items import Item, key, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.labels import MEMORIES_MARK
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

from .budget import Budget
from .keys import VECTORS, Address, is_vector_under, parse_vector
from .reads import LoadedMemory
from .similarity import Candidates, NewVector, Scored, best_scores
from .storage import StoreStorage
from .vector_engine import Vector, VectorEngine

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

    def candidates(
        self,
        storage: StoreStorage,
        namespace: tuple[str, ...],
        needed: int,
        query: Sequence[float],
        budget: Budget,
    ) -> Op[Candidates]:
        """Ask the engine for the most similar vectors."""
        del storage, budget
        # A memory may have several vectors, and some may be of values that were replaced.
        limit = 4 * needed + 100
        call = partial(self.engine.search, namespace, query, limit)
        found = yield from work(call, _OFF_THE_LOOP)
        scored = []
        for vector_id, score in found:
            item = _key_of(vector_id)
            _check_found(vector_id, item, score, namespace)
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
        msg = (
            f"the engine of index returned {vector_id!r}, which is not under the namespace {tuple(namespace)};"
            " its search must compare whole labels"
        )
        raise CheckpointerInputError(msg)
    if math.isnan(score):
        raise CheckpointerInputError(f"the engine of index returned {vector_id!r} with the score {score}")
