"""The sync methods of a saver under async names.

The conformance suite calls the async methods only, and takes a capability for supported if its async method is
overridden. This is what lets it test the sync methods as well.
"""

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

METHODS = (
    "get_tuple",
    "put",
    "put_writes",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
    "get_delta_channel_history",
)


class SyncAsAsync(BaseCheckpointSaver[Any]):
    """Answers every async method with the sync method of the saver it wraps, whose async ones are never called."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        """Wrap a saver."""
        super().__init__(serde=saver.serde)
        self._saver = saver

    def get_next_version(self, current: Any, channel: None) -> Any:
        """See `BaseCheckpointSaver.get_next_version`."""
        return self._saver.get_next_version(current, channel)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """See `BaseCheckpointSaver.list`."""
        for checkpoint in self._saver.list(config, **options):
            yield checkpoint


def _under_an_async_name(name: str) -> Any:
    async def call(self: SyncAsAsync, *arguments: Any, **options: Any) -> Any:
        return getattr(self._saver, name)(*arguments, **options)

    return call


for _name in METHODS:
    setattr(SyncAsAsync, f"a{_name}", _under_an_async_name(_name))
