"""The sync methods of a saver under async names.

The conformance suite calls the async methods only, and takes a capability for supported if its async method is
overridden. This is what lets it test the sync methods as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)


class SyncAsAsync(BaseCheckpointSaver[Any]):
    """Answers every async method with the sync method of the saver it wraps."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        """Wrap a saver, whose async methods are then never called.

        Args:
            saver: The saver under test.
        """
        super().__init__(serde=saver.serde)
        self._saver = saver

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `BaseCheckpointSaver.get_tuple`."""
        return self._saver.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `BaseCheckpointSaver.list`."""
        for checkpoint in self._saver.list(config, filter=filter, before=before, limit=limit):
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `BaseCheckpointSaver.put`."""
        return self._saver.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See `BaseCheckpointSaver.put_writes`."""
        self._saver.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `BaseCheckpointSaver.delete_thread`."""
        self._saver.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `BaseCheckpointSaver.delete_for_runs`."""
        self._saver.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `BaseCheckpointSaver.copy_thread`."""
        self._saver.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See `BaseCheckpointSaver.prune`."""
        self._saver.prune(thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `BaseCheckpointSaver.get_delta_channel_history`."""
        return self._saver.get_delta_channel_history(config=config, channels=channels)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """See `BaseCheckpointSaver.get_next_version`."""
        return self._saver.get_next_version(current, channel)
