"""The checkpointer of LangGraph's Agent Server: `langgraph.json` names it, and the environment configures it.

{"checkpointer": {"path": "langgraph.checkpoint.dynamodb.server:checkpointer"}}
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb.config.creation import acreate_checkpointer
from langgraph.checkpoint.dynamodb.config.places import Environment
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Give the checkpointer that the environment configures; the server opens one for each of its event loops.

    Yields:
        The saver: `LANGGRAPH_CHECKPOINTER_TYPE=dynamodb` and `LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME` are enough.

    Raises:
        CheckpointerConfigurationError: The environment configures none, or one that cannot be opened.
    """
    async with acreate_checkpointer() as saver:
        if saver is None:
            msg = (
                f"{Environment.prefix}ENABLED is false, and the Agent Server needs a checkpointer; set it to true, or"
                " take `checkpointer` out of langgraph.json for the server's own"
            )
            raise CheckpointerConfigurationError(msg)
        yield saver
