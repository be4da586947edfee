"""The type `memory`: LangGraph's in-memory saver, store and cache. What they hold ends with the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.cache.base import BaseCache
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph.checkpoint.dynamodb.config.stores import IndexedOptions
from langgraph.checkpoint.dynamodb.config.types import (
    CacheType,
    CheckpointerType,
    Options,
    StoreType,
    in_threads,
)


class MemoryOptions(Options):
    """No options."""


class MemoryStoreOptions(IndexedOptions):
    """The option of `InMemoryStore`."""


@contextmanager
def _open(options: MemoryOptions) -> Iterator[BaseCheckpointSaver[Any]]:
    del options
    yield InMemorySaver()


@contextmanager
def _open_store(options: MemoryStoreOptions) -> Iterator[BaseStore]:
    yield InMemoryStore(index=options.index_config())


@contextmanager
def _open_cache(options: MemoryOptions) -> Iterator[BaseCache[Any]]:
    del options
    yield InMemoryCache()


CHECKPOINTER = CheckpointerType(MemoryOptions, _open, in_threads(_open), install="langgraph-checkpoint")
STORE = StoreType(
    MemoryStoreOptions, _open_store, in_threads(_open_store), install="langgraph-checkpoint numpy"
)
CACHE = CacheType(MemoryOptions, _open_cache, in_threads(_open_cache), install="langgraph-checkpoint")
