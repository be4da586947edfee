"""What it costs to encrypt in the client: the ordinary saver stores values that were sealed before.

`python -m benchmarks.sealing` runs the conversation, and other workloads by their names, on DynamoDB Local.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver, DeltaChannelHistory, get_checkpoint_metadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks.contestants import OURS, Contestant
from benchmarks.report import table
from benchmarks.runs import run_workload
from benchmarks.workloads import ALL, CHAT
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES
from langgraph.checkpoint.dynamodb.http.sealing import Place, Sealer, Typed
from tools.engine import DYNAMODB_LOCAL, find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple

_SERDE = JsonPlusSerializer()
# The part of metadata that the service has to read: it says what a prune keeps, and what is deleted by run.
_READABLE = ("parents", "counters_since_delta_snapshot", "run_id")


@dataclass(frozen=True)
class Opaque:
    """A serialized value as the service has it. It is made when it is stored, if the parent does not have it."""

    typed: Callable[[], Typed]


class OpaqueSerializer(SerializerProtocol):
    """The serializer of the service: it passes values through, and serializes what the saver adds."""

    def dumps_typed(self, obj: object) -> Typed:
        """Return a value as the client has serialized it."""
        return obj.typed() if isinstance(obj, Opaque) else _SERDE.dumps_typed(obj)

    def loads_typed(self, data: Typed) -> object:
        """Return a value as it is stored."""
        return Opaque(lambda: data) if "+sealed:" in data[0] else _SERDE.loads_typed(data)


class SealedSaver(BaseCheckpointSaver[str]):
    """Stands for a client that seals, and for the service: it gives an ordinary saver sealed values."""

    def __init__(self, saver: DynamoDBSaver, sealer: Sealer) -> None:
        """Take a saver that has an `OpaqueSerializer`."""
        super().__init__()
        self.saver, self.sealer = saver, sealer

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return what the saver would."""
        version: str = self.saver.get_next_version(current, channel)
        return version

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Seal the values and the metadata."""
        values = checkpoint["channel_values"].items()
        sealed = {name: Opaque(partial(self._seal, _place(config, name), value)) for name, value in values}
        whole: Mapping[str, Any] = {**get_checkpoint_metadata(config, metadata)}
        readable: Any = {name: whole[name] for name in _READABLE if name in whole}
        readable["sealed"] = self._seal(_place(config, "", checkpoint["id"]), whole)
        return self.saver.put(_keys(config), {**checkpoint, "channel_values": sealed}, readable, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Seal the values of the writes."""
        checkpoint_id = config["configurable"]["checkpoint_id"]
        sealed = [
            (name, Opaque(partial(self._seal, _place(config, name, checkpoint_id, task_id), value)))
            for name, value in writes
        ]
        self.saver.put_writes(_keys(config), sealed, task_id, task_path)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Open a checkpoint."""
        found = self.saver.get_tuple(config)
        return None if found is None else self._opened(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Open checkpoints, and compare their metadata, which the service cannot read."""
        wanted = (filter or {}).items()
        opened = map(self._opened, self.saver.list(config, before=before))
        return islice((each for each in opened if wanted <= {**each.metadata}.items()), limit)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read one ancestor after the other, since writes are bound to their checkpoint."""
        return super().get_delta_channel_history(config=config, channels=channels)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Read a thread, and store it sealed for the other thread."""
        for found in reversed([*self.list({"configurable": {"thread_id": source_thread_id}})]):
            keys = (found.parent_config or found.config)["configurable"]
            parent = {"checkpoint_id": keys["checkpoint_id"]} if found.parent_config else {}
            config: Any = {
                "configurable": {
                    "thread_id": target_thread_id,
                    "checkpoint_ns": keys["checkpoint_ns"],
                    **parent,
                }
            }
            new = {
                name: found.checkpoint["channel_versions"][name]
                for name in found.checkpoint["channel_values"]
            }
            stored = self.put(config, found.checkpoint, found.metadata, new)
            for task_id, writes in groupby(found.pending_writes or (), key=lambda write: write[0]):
                self.put_writes(stored, [(name, value) for _, name, value in writes], task_id)

    def delete_thread(self, thread_id: str) -> None:
        """Delete as the saver does."""
        self.saver.delete_thread(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete as the saver does."""
        self.saver.delete_for_runs(run_ids)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete as the saver does."""
        self.saver.prune(thread_ids, strategy=strategy)

    def _opened(self, found: CheckpointTuple) -> CheckpointTuple:
        config, checkpoint_id = found.config, found.checkpoint["id"]
        metadata: Any = found.metadata
        return found._replace(
            checkpoint={
                **found.checkpoint,
                "channel_values": {
                    name: self._open(_place(config, name), value.typed())
                    for name, value in found.checkpoint["channel_values"].items()
                },
            },
            metadata=self._open(_place(config, "", checkpoint_id), metadata["sealed"]),
            pending_writes=[
                (task_id, name, self._open(_place(config, name, checkpoint_id, task_id), value.typed()))
                for task_id, name, value in found.pending_writes or ()
            ],
        )

    def _seal(self, place: Place, value: object) -> Typed:
        return self.sealer.seal(place, _SERDE.dumps_typed(value))

    def _open(self, place: Place, value: Iterable[Any]) -> Any:  # noqa: ANN401 - whatever was stored.
        kind, data = value
        return _SERDE.loads_typed(self.sealer.open(place, (kind, data)))


def _place(config: RunnableConfig, channel: str, checkpoint_id: str = "", task_id: str = "") -> Place:
    keys = config["configurable"]
    return Place(keys["thread_id"], keys.get("checkpoint_ns", ""), channel, checkpoint_id, task_id)


def _keys(config: RunnableConfig) -> RunnableConfig:
    """Return a configuration without the part that belongs into the metadata."""
    names = {"thread_id", "checkpoint_ns", "checkpoint_id"}
    return {"configurable": {name: value for name, value in config["configurable"].items() if name in names}}


def sealer(pieces_bytes_max: int = CACHE_BYTES) -> Sealer:
    """Return what seals with LangGraph's cipher."""
    cipher = EncryptedSerializer.from_pycryptodome_aes(key=bytes(range(32))).cipher
    return Sealer(cipher, pieces_bytes_max=pieces_bytes_max)


def _open_sealed(table_name: str, *, seals: Callable[[], Sealer] = sealer, **options: Any) -> SealedSaver:
    return SealedSaver(DynamoDBSaver(table_name, **{**options, "serde": OpaqueSerializer()}), seals())


SEALED = Contestant("sealed in the client", _open_sealed, OURS.schema)
# As LangGraph's serializer encrypts, in which nothing is found again.
NEW_EACH_TIME = Contestant(
    "new bytes each time", partial(_open_sealed, seals=partial(sealer, 0)), OURS.schema
)


def main(names: Sequence[str]) -> None:
    """Print the write units of each workload."""
    contestants = (OURS, SEALED, NEW_EACH_TIME)
    with find(DYNAMODB_LOCAL).run() as engine:
        rows = [
            (name, *(round(run_workload(each, engine, ALL[name]).write_units) for each in contestants))
            for name in names
        ]
    print(table(["write units", *(each.name for each in contestants)], rows))


if __name__ == "__main__":
    main(sys.argv[1:] or [CHAT.name])
