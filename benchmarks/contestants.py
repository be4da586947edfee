"""The savers for DynamoDB that are compared, and runs of workloads, each on an empty table with a meter."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

from benchmarks.meter import Meter, Tally, total
from benchmarks.stored import Stored, stored
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from benchmarks.workloads import Workload
    from tools.engine import Engine


@dataclass(frozen=True)
class Contestant:
    """A saver, how to open it and the table it wants."""

    name: str
    open: Callable[..., BaseCheckpointSaver[Any]]
    schema: dict[str, Any]


def _open_aws(
    table_name: str, *, serde: SerializerProtocol | None = None, gzip: bool = False, **reach: Any
) -> BaseCheckpointSaver[Any]:
    # Imported here, because only the environment of the benchmarks has it.
    peer: Any = import_module("langgraph_checkpoint_aws").DynamoDBSaver(
        table_name, enable_checkpoint_compression=gzip, **reach
    )
    if serde is not None:
        # Its constructor takes no serializer.
        peer.serde = peer.serializer.serde = serde
    saver: BaseCheckpointSaver[Any] = peer
    return saver


# What AWS's documentation asks for: two string keys and nothing else.
_KEYS_ONLY = {
    "AttributeDefinitions": [
        {"AttributeName": "PK", "AttributeType": "S"},
        {"AttributeName": "SK", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}

OURS = Contestant("langgraph-dynamodb", DynamoDBSaver, table_schema("any"))
AWS = Contestant("langgraph-checkpoint-aws", _open_aws, _KEYS_ONLY)
AWS_GZIP = Contestant("langgraph-checkpoint-aws, gzip", partial(_open_aws, gzip=True), _KEYS_ONLY)


def session_of(engine: Engine) -> boto3.Session:
    """Return a session with the credentials of an engine."""
    return boto3.Session(
        aws_access_key_id=engine.access_key_id,
        aws_secret_access_key=engine.secret_access_key,
        region_name=engine.region_name,
    )


class Bench:
    """A contestant on an empty table. Each `open` gives a saver that remembers nothing, like a new process."""

    def __init__(self, contestant: Contestant, engine: Engine, table_name: str) -> None:
        """Take a table for the contestant."""
        self.meter = Meter()
        self.table_name = table_name
        self._contestant = contestant
        self._reach: dict[str, Any] = {"endpoint_url": engine.endpoint_url}
        self._engine = engine

    def open(self, **options: Any) -> Any:  # noqa: ANN401 - only ours has all methods that are measured.
        """Return a new saver, whose requests are counted."""
        session = self.meter.watch(session_of(self._engine))
        return self._contestant.open(self.table_name, session=session, **self._reach, **options)

    def stored(self) -> Stored:
        """Return what is in the table now."""
        # A client of its own, so that this is not counted.
        client = session_of(self._engine).client("dynamodb", **self._reach)
        return stored(client, self.table_name)


@contextmanager
def new_bench(contestant: Contestant, engine: Engine) -> Iterator[Bench]:
    """Make an empty table for a contestant, for the duration of the context."""
    client = session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url)
    name = f"bench-{uuid4().hex}"
    client.create_table(**{**contestant.schema, "TableName": name})
    try:
        yield Bench(contestant, engine, name)
    finally:
        client.delete_table(TableName=name)


@dataclass(frozen=True)
class Run:
    """What a workload cost, as far as the saver got."""

    turns: Sequence[Tally]
    # What is in the table at the end; nothing where that was not counted.
    stored: Stored
    # Why the saver could not go on; empty where it came to the end.
    failure: str = ""

    @property
    def cost(self) -> Tally:
        """What all turns cost."""
        return total(self.turns)

    def mean_write_units(self, first: int, last: int) -> float:
        """Return the write units of a turn, on average from one to another."""
        return total(self.turns[first - 1 : last]).write_units / (last + 1 - first)


def run_workload(contestant: Contestant, engine: Engine, workload: Workload) -> Run:
    """Run a workload on an empty table until it ends or DynamoDB refuses a request."""
    print(f"{contestant.name}: {workload.name}", file=sys.stderr, flush=True)
    options = {"serde": workload.serde()} if workload.serde else {}
    with new_bench(contestant, engine) as bench:
        turns, failure = list[Tally](), ""
        try:
            for _ in workload.run(bench.open(**options), "thread"):
                turns.append(bench.meter.lap())
        except Exception as error:
            failure = _refusal(error)
            if not failure:
                raise
        return Run(turns, bench.stored() if workload.weighed else Stored(0, 0), failure)


def _refusal(error: BaseException | None) -> str:
    """Return what DynamoDB said when it refused a request, also where a saver raised something of its own."""
    while error is not None and not isinstance(error, ClientError):
        error = error.__cause__
    return "" if error is None else str(error.response["Error"]["Message"])
