"""Checkpointer and store of LangGraph's Agent Server, as `langgraph.json` names and the environment configures them.

{
  "checkpointer": {"path": "langgraph.checkpoint.dynamodb.server:checkpointer"},
  "store": {"path": "langgraph.checkpoint.dynamodb.server:store"}
}
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from .config import create_checkpointer, create_store

logger = logging.getLogger(__name__)

_ADAPTER_MODULE = "langgraph_api._checkpointer._adapter"
_ADAPTER = "_CustomCheckpointerAdapter"


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer that the environment configures. The server opens one for each of its event loops.

    Yields:
        The saver. `LANGGRAPH_CHECKPOINTER_TYPE=dynamodb` and `LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME` are enough.

    Raises:
        CheckpointerConfigurationError: The environment configures no checkpointer, or one that cannot be opened.
    """
    async with create_checkpointer() as saver:
        _hand_on_delta_channels()
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """Open the store that the environment configures. The server opens one for each of its event loops.

    Yields:
        The store. `LANGGRAPH_STORE_TYPE=dynamodb` and `LANGGRAPH_STORE_CONFIG__TABLE_NAME` are enough.

    Raises:
        CheckpointerConfigurationError: The environment configures no store, or one that cannot be opened.
    """
    async with create_store() as opened:
        yield opened


def _hand_on_delta_channels() -> None:
    """Make the server's adapter ask the saver for delta channels.

    The adapter lacks these methods (langgraph-api 0.16). The ones that it inherits read one ancestor after the other,
    and if one is missing, they return the rest of the channel without an error.
    """
    module = sys.modules.get(_ADAPTER_MODULE)
    if module is None:
        return
    adapter: Any = getattr(module, _ADAPTER, None)
    if adapter is None:
        logger.warning(
            "This release of the Agent Server has no %s. If it wraps the checkpointer in another class, it may read"
            " delta channels slowly, and give no error when a part of one is missing.",
            _ADAPTER,
        )
        return
    for name in ("get_delta_channel_history", "aget_delta_channel_history"):
        # A release whose adapter has its own method keeps it.
        if getattr(adapter, name) is getattr(BaseCheckpointSaver, name):
            setattr(adapter, name, _handed_on(name))


def _handed_on(name: str) -> Callable[..., Any]:
    """Return a method of the adapter that calls the method of the saver with this name."""

    def method(adapter: Any, **arguments: Any) -> Any:
        return getattr(adapter._inner, name)(**arguments)  # noqa: SLF001 - the adapter has no public way to the saver.

    return method
