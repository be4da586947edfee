"""The type `memory`: LangGraph's in-memory saver, whose threads end with the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from langgraph.checkpoint.dynamodb.config.types import CheckpointerType, Options


class MemoryOptions(Options):
    """No options."""


@contextmanager
def _open(options: MemoryOptions) -> Iterator[BaseCheckpointSaver[Any]]:
    del options
    yield InMemorySaver()


@asynccontextmanager
async def _aopen(options: MemoryOptions) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    del options
    yield InMemorySaver()


TYPE = CheckpointerType(MemoryOptions, _open, _aopen, install="langgraph-checkpoint")
