"""The prefix of thread ids: what the table puts in front of the ids that the agent knows.

A tenant of the gateway has the threads whose ids begin with its name and a slash. With the prefix set, a program that
knows nothing of tenants runs as it is.
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
    """Puts a prefix in front of thread ids on the way to the gateway, and takes it away on the way back."""

    def __init__(self, prefix: Any = "") -> None:
        """Take the prefix, slash included; none leaves ids as they are.

        Raises:
            CheckpointerInputError: It is no text.
        """
        if not isinstance(prefix, str):
            msg = f'thread_prefix is {prefix!r}; give text such as "acme/", or "" for none'
            raise CheckpointerInputError(msg)
        self._prefix: str = prefix

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._prefix)

    def added(self, thread_id: Any, name: str) -> str:
        """The id of a thread as the table has it."""
        return self._prefix + checked_id(thread_id, name)

    def inside(self, config: Any) -> Any:
        """A config as the table has it. One that names no thread is left for the operation to refuse."""
        configurable = config.get("configurable") if isinstance(config, Mapping) else None
        if not self._prefix or not isinstance(configurable, Mapping) or configurable.get(_THREAD_ID) is None:
            return config
        thread_id = self.added(configurable[_THREAD_ID], _THREAD_ID)
        return {**config, "configurable": {**configurable, _THREAD_ID: thread_id}}

    def outside(self, config: RunnableConfig) -> RunnableConfig:
        """A config as the agent knows it."""
        configurable = config["configurable"]
        thread_id = configurable[_THREAD_ID].removeprefix(self._prefix)
        return {**config, "configurable": {**configurable, _THREAD_ID: thread_id}}

    def has(self, found: CheckpointTuple) -> bool:
        """Whether a checkpoint's thread is one of those that the agent knows."""
        thread_id: str = found.config["configurable"][_THREAD_ID]
        return thread_id.startswith(self._prefix)

    def shown(self, found: CheckpointTuple) -> CheckpointTuple:
        """A checkpoint as the agent knows it."""
        parent = found.parent_config
        return found._replace(
            config=self.outside(found.config), parent_config=None if parent is None else self.outside(parent)
        )
