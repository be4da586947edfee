"""The type `memory`: LangGraph's in-memory saver, store and cache. What they hold ends with the process."""

from __future__ import annotations

from contextlib import nullcontext

from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from .stores import IndexedOptions
from .types import ComponentType, Options


class MemoryOptions(Options):
    """No options."""


class MemoryStoreOptions(IndexedOptions):
    """The option of `InMemoryStore`."""


def _store(options: MemoryStoreOptions) -> nullcontext[InMemoryStore]:
    return nullcontext(InMemoryStore(index=options.index_config()))


CHECKPOINTER = ComponentType(MemoryOptions, lambda _: nullcontext(InMemorySaver()), "langgraph-checkpoint")
STORE = ComponentType(MemoryStoreOptions, _store, "langgraph-checkpoint numpy")
CACHE = ComponentType(MemoryOptions, lambda _: nullcontext(InMemoryCache()), "langgraph-checkpoint")
