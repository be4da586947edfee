"""The prefix of thread ids and owners in the table, which the ids that the agent uses do not have.

A tenant of the gateway owns the threads whose ids begin with its name and a slash. With the prefix set, a program that
knows nothing of tenants runs unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

_THREAD_ID = "thread_id"


class ThreadPrefix:
    """Adds a prefix to thread ids and owners in requests to the gateway, and removes it from those in responses."""

    def __init__(self, prefix: Any = "") -> None:
        """Take the prefix, slash included. An empty one leaves ids as they are.

        Raises:
            CheckpointerInputError: The prefix is not text.
        """
        if not isinstance(prefix, str):
            msg = f'thread_prefix is {prefix!r}; give text such as "acme/", or "" for none'
            raise CheckpointerInputError(msg)
        self._prefix: str = prefix

    def __bool__(self) -> bool:
        """Tell whether the prefix is not empty."""
        return bool(self._prefix)

    def added(self, thread_id: Any, name: str) -> str:
        """Return a thread's id, or an owner's name, with the prefix, as the table has it."""
        return self._prefix + checked_id(thread_id, name)

    @property
    def text(self) -> str:
        """The prefix itself."""
        return self._prefix

    def removed(self, name: str) -> str:
        """Return a thread's id, or an owner's name, without the prefix, as the agent knows it."""
        return name.removeprefix(self._prefix)

    def inside(self, config: Any) -> Any:
        """Return a config with the prefix, as the table has it. The operation refuses a config without a thread."""
        configurable = config.get("configurable") if isinstance(config, Mapping) else None
        if not self._prefix or not isinstance(configurable, Mapping) or configurable.get(_THREAD_ID) is None:
            return config
        thread_id = self.added(configurable[_THREAD_ID], _THREAD_ID)
        return {**config, "configurable": {**configurable, _THREAD_ID: thread_id}}

    def outside(self, config: RunnableConfig) -> RunnableConfig:
        """Return a config without the prefix, as the agent knows it."""
        configurable = config["configurable"]
        thread_id = self.removed(configurable[_THREAD_ID])
        return {**config, "configurable": {**configurable, _THREAD_ID: thread_id}}

    def has(self, thread_id: str) -> bool:
        """Tell whether a thread's id has the prefix."""
        return thread_id.startswith(self._prefix)

    def shown(self, found: CheckpointTuple) -> CheckpointTuple:
        """Return a checkpoint without the prefix, as the agent knows it."""
        parent = found.parent_config
        return found._replace(
            config=self.outside(found.config), parent_config=None if parent is None else self.outside(parent)
        )
