"""The savers that are compared, and the meter between a saver and its caller.

Every measurement takes a fresh contestant with an empty table of its own, so nothing that one measurement
stored or remembered shows in another. A peer is imported when it is opened: not all of them fit into one
environment.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
from langgraph.checkpoint.base import BaseCheckpointSaver, V

from benchmarks.floor import FloorSaver
from benchmarks.meter import Meter, Tally
from benchmarks.stored import Stored, stored
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from tools.engine import Engine


@dataclass(frozen=True)
class Contestant:
    """A saver, how to open it and the table it wants."""

    name: str
    open: Callable[..., BaseCheckpointSaver[Any]]
    schema: dict[str, Any]


def _open_aws(
    table_name: str,
    *,
    session: boto3.Session,
    endpoint_url: str,
    serde: SerializerProtocol | None = None,
    gzip: bool = False,
) -> BaseCheckpointSaver[Any]:
    peer: Any = import_module("langgraph_checkpoint_aws").DynamoDBSaver(
        table_name, session=session, endpoint_url=endpoint_url, enable_checkpoint_compression=gzip
    )
    if serde is not None:
        # Its constructor takes no serializer.
        peer.serde = peer.serializer.serde = serde
    saver: BaseCheckpointSaver[Any] = peer
    return saver


def _open_amazon(
    table_name: str, *, session: boto3.Session, endpoint_url: str, serde: SerializerProtocol | None = None
) -> BaseCheckpointSaver[Any]:
    library: Any = import_module("langgraph_checkpoint_dynamodb")
    # Its constructor takes neither a session nor a serializer: it makes its clients from boto3's default session.
    boto3.DEFAULT_SESSION = session
    table = library.DynamoDBTableConfig(table_name=table_name)
    saver: BaseCheckpointSaver[Any] = library.DynamoDBSaver(
        library.DynamoDBConfig(table_config=table, endpoint_url=endpoint_url)
    )
    if serde is not None:
        saver.serde = serde
    return saver


# What the documentation of both peers asks for: two string keys and nothing else.
_KEYS_ONLY = {
    "AttributeDefinitions": [
        {"AttributeName": "PK", "AttributeType": "S"},
        {"AttributeName": "SK", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}

OURS = Contestant("langgraph-dynamodb", DynamoDBSaver, table_schema("any"))
FLOOR = Contestant("lower bound", FloorSaver, _KEYS_ONLY)
AWS = Contestant("langgraph-checkpoint-aws", _open_aws, _KEYS_ONLY)
AWS_GZIP = Contestant("langgraph-checkpoint-aws, gzip", partial(_open_aws, gzip=True), _KEYS_ONLY)
# It wants an older boto3 than the others do; `benchmarks.amazon` runs it in an environment of its own.
AMAZON = Contestant("langgraph-checkpoint-amazon-dynamodb", _open_amazon, _KEYS_ONLY)


class MeteredSaver(BaseCheckpointSaver[V]):
    """Passes every call on and keeps a tally of each, in the order in which they began."""

    def __init__(self, saver: BaseCheckpointSaver[V], meter: Meter) -> None:
        """Take the saver to watch and the meter of the session that it was opened with."""
        super().__init__(serde=saver.serde)
        self.operations: list[tuple[str, Tally]] = []
        self._saver: BaseCheckpointSaver[V] = saver
        self._meter = meter

    def tallies(self, operation: str) -> list[Tally]:
        """Return the tallies of one kind of operation."""
        return [tally for name, tally in self.operations if name == operation]

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        with self._meter.operation() as tally:
            self.operations.append((operation, tally))
            yield

    def get_next_version(self, current: V | None, channel: None) -> V:
        """Return what the saver would."""
        return self._saver.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Measure `get_tuple`."""
        with self._measured("get_tuple"):
            return self._saver.get_tuple(config)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Measure `put`."""
        with self._measured("put"):
            return self._saver.put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Measure `put_writes`."""
        with self._measured("put_writes"):
            self._saver.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Measure `delete_thread`."""
        with self._measured("delete_thread"):
            self._saver.delete_thread(thread_id)


def session_of(engine: Engine) -> boto3.Session:
    """Return a session with the credentials of an engine."""
    return boto3.Session(
        aws_access_key_id=engine.access_key_id,
        aws_secret_access_key=engine.secret_access_key,
        region_name=engine.region_name,
    )


class Bench:
    """One contestant on an empty table; `reopen` gives a saver that remembers nothing, like a new process."""

    def __init__(
        self, contestant: Contestant, engine: Engine, serde: SerializerProtocol | None = None
    ) -> None:
        """Create the table and opens the saver, by default with the serializer that it brings."""
        self.meter = Meter()
        self._contestant = contestant
        self._engine = engine
        self._options: dict[str, Any] = {} if serde is None else {"serde": serde}
        self._table_name = f"bench-{uuid4().hex}"
        # A client of its own, so that what the benchmark does to the table is not counted.
        self._admin = session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url)
        self._admin.create_table(**{**contestant.schema, "TableName": self._table_name})
        self.saver = self.reopen()

    def reopen(self) -> MeteredSaver[Any]:
        """Return a new saver on the same table, that keeps a tally of each call."""
        return MeteredSaver(self.open(), self.meter)

    def open(self) -> BaseCheckpointSaver[Any]:
        """Return a new saver on the same table; what it is charged goes to the meter's total."""
        session = self.meter.watch(session_of(self._engine))
        options = {**self._options, "session": session, "endpoint_url": self._engine.endpoint_url}
        return self._contestant.open(self._table_name, **options)

    def stored(self, sort_keys: str = "") -> Stored:
        """Return what is in the table now, of what has a sort key that begins so."""
        return stored(self._admin, self._table_name, sort_keys)

    def close(self) -> None:
        """Delete the table."""
        self._admin.delete_table(TableName=self._table_name)
