"""The type `memory`: LangGraph's in-memory saver, store and cache. What they hold ends with the process."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from langgraph.cache.base import BaseCache
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph.checkpoint.dynamodb.config.stores import IndexedOptions
from langgraph.checkpoint.dynamodb.config.types import (
    ComponentType,
    Options,
)


class MemoryOptions(Options):
    """No options."""


class MemoryStoreOptions(IndexedOptions):
    """The option of `InMemoryStore`."""


def _open(_: MemoryOptions) -> nullcontext[BaseCheckpointSaver[Any]]:
    return nullcontext(InMemorySaver())


def _open_store(options: MemoryStoreOptions) -> nullcontext[BaseStore]:
    return nullcontext(InMemoryStore(index=options.index_config()))


def _open_cache(_: MemoryOptions) -> nullcontext[BaseCache[Any]]:
    return nullcontext(InMemoryCache())


CHECKPOINTER = ComponentType(MemoryOptions, _open, _open, install="langgraph-checkpoint")
STORE = ComponentType(MemoryStoreOptions, _open_store, _open_store, install="langgraph-checkpoint numpy")
CACHE = ComponentType(MemoryOptions, _open_cache, _open_cache, install="langgraph-checkpoint")
