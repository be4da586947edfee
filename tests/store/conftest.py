"""Stores on a fresh table, embeddings that count letters, and an engine of vectors."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest

from langgraph.store.dynamodb import DynamoDBStore, Vector
from langgraph.store.dynamodb.resources import StoreStorage
from tests.conftest import Closed
from tests.support.harness import Harness
from tests.support.traffic import Traffic

MakeStore: TypeAlias = Callable[..., DynamoDBStore]
"""What the fixture `make_store` gives."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIMS = len(LETTERS)


class CountedEmbeddings:
    """Embeds a text by its letters, and notes each call."""

    def __init__(self) -> None:
        """Start without calls."""
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts."""
        self.calls.append(list(texts))
        return [[float(text.count(letter)) for letter in LETTERS] for text in texts]


class DictEngine:
    """Keeps vectors in a dict and compares them by their product."""

    def __init__(self) -> None:
        """Start empty."""
        self.kept: dict[str, Vector] = {}
        self.forgets = True

    def put(self, vectors: Sequence[Vector]) -> None:
        """Keep vectors."""
        self.kept |= {each.id: each for each in vectors}

    def delete(self, ids: Sequence[str]) -> None:
        """Forget vectors, unless the engine is one that keeps too much."""
        for each in ids if self.forgets else ():
            self.kept.pop(each, None)

    def search(
        self, namespace: tuple[str, ...], embedding: Sequence[float], limit: int
    ) -> Sequence[tuple[str, float]]:
        """Return the best."""
        scored = [
            (each.id, sum(one * other for one, other in zip(each.embedding, embedding, strict=True)))
            for each in self.kept.values()
            if each.namespace[: len(namespace)] == namespace
        ]
        return sorted(scored, key=lambda each: -each[1])[:limit]


def storage_of(harness: Harness, ahead_seconds: float = 0.0) -> StoreStorage:
    """The storage of a process that remembers nothing, and whose clock may be ahead."""
    base = harness.process().storage
    clock = base.clock if not ahead_seconds else lambda: harness.now + ahead_seconds
    return StoreStorage(codec=base.codec, table=base.table, clock=clock, rng=base.rng)


@pytest.fixture
def embeddings() -> CountedEmbeddings:
    """Give embeddings that count letters."""
    return CountedEmbeddings()


@pytest.fixture
def make_store(reach: dict[str, Any], table_name: str, closed: Closed) -> MakeStore:
    """Give a factory of stores on the table; it takes the store's keywords, and they are closed after the test."""
    return lambda **options: closed(
        DynamoDBStore(table_name, **(({} if "client" in options else reach) | options))
    )


@pytest.fixture
def store(make_store: MakeStore) -> DynamoDBStore:
    """Give a store without vectors."""
    return make_store()


@pytest.fixture
def watched(own_client: Any, traffic: Traffic, make_store: MakeStore) -> DynamoDBStore:
    """Give a store whose every request is in `traffic`."""
    del traffic
    return make_store(client=own_client)
