"""The floor of the price: each new byte compressed and written once, and nothing ever read back.

Every call of `put` and `put_writes` is one PutItem with what the thread has not stored before: new elements
of lists, new entries of dictionaries, new values, and of a checkpoint its metadata and itself without its
values. Nothing says where the rest is, so the thread cannot be read from the table; the graph is served from
memory. No saver can cost less with a request per call, and one that can be read has to cost more.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import boto3
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

_ZSTD_LEVEL = 3


class FloorSaver(BaseCheckpointSaver[int]):
    """Writes what is new, and remembers the newest checkpoint of each thread to run a graph on."""

    def __init__(
        self,
        table_name: str,
        *,
        session: boto3.Session,
        endpoint_url: str,
        serde: SerializerProtocol | None = None,
    ) -> None:
        """Take what the other savers take."""
        super().__init__(serde=serde)
        encrypted = serde if isinstance(serde, EncryptedSerializer) else None
        # What is encrypted cannot be compressed any more: it is compressed first, as our saver does.
        self._plain = encrypted.serde if encrypted else serde or JsonPlusSerializer()
        self._cipher = encrypted.cipher if encrypted else None
        self._client = session.client("dynamodb", endpoint_url=endpoint_url)
        self._table_name = table_name
        self._newest: dict[str, CheckpointTuple] = {}
        self._written: set[tuple[str, bytes]] = set()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the newest checkpoint from memory."""
        return self._newest.get(_partition(config))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write the checkpoint without its values, its metadata, and what is new in its values."""
        values = checkpoint["channel_values"]
        rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        parts = [self._dumps(rest), self._dumps(metadata)]
        changed = [values[channel] for channel in new_versions if channel in values]
        self._write(config, f"C#{checkpoint['id']}", [*parts, *self._new(config, changed)])
        stored: RunnableConfig = {
            "configurable": {
                "thread_id": config["configurable"]["thread_id"],
                "checkpoint_ns": config["configurable"].get("checkpoint_ns", ""),
                "checkpoint_id": checkpoint["id"],
            }
        }
        self._newest[_partition(config)] = CheckpointTuple(stored, checkpoint, metadata, None, [])
        return stored

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write the names of the channels and what is new in the values."""
        names = self._dumps([channel for channel, _ in writes])
        new = self._new(config, [value for _, value in writes])
        self._write(config, f"W#{config['configurable']['checkpoint_id']}#{task_id}", [names, *new])

    def _new(self, config: RunnableConfig, values: Iterable[object]) -> list[bytes]:
        """Return the pieces of some values that the thread has not stored before."""
        new = []
        for piece in (piece for value in values for piece in _pieces(value)):
            data = self._dumps(piece)
            key = (_partition(config), blake2b(data, digest_size=16).digest())
            if key not in self._written:
                self._written.add(key)
                new.append(data)
        return new

    def _dumps(self, value: object) -> bytes:
        return self._plain.dumps_typed(value)[1]

    def _write(self, config: RunnableConfig, sort_key: str, parts: Sequence[bytes]) -> None:
        data = zstd.compress(b"".join(parts), _ZSTD_LEVEL)
        if self._cipher is not None:
            _, data = self._cipher.encrypt(data)
        item: dict[str, Any] = {"PK": {"S": _partition(config)}, "SK": {"S": sort_key}, "data": {"B": data}}
        self._client.put_item(TableName=self._table_name, Item=item)


def _partition(config: RunnableConfig) -> str:
    configurable = config["configurable"]
    return f"{configurable['thread_id']}#{configurable.get('checkpoint_ns', '')}"


def _pieces(value: object) -> Iterable[object]:
    """Yield the parts of a value that a state keeps or replaces one by one."""
    if isinstance(value, list):
        return value
    return value.items() if isinstance(value, dict) else (value,)
