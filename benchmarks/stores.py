"""The backends that are compared: each an empty store of its own, opened by its configuration, and weighed.

A store is opened as often as asked for, like by so many processes. Postgres runs with its own defaults here, so that
what it acknowledges is on the disk; DynamoDB Local keeps its tables in memory.
"""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from benchmarks.contestants import AWS, AWS_GZIP, OURS, Contestant, new_bench, session_of
from benchmarks.gateway import service, serving
from benchmarks.meter import Meter
from benchmarks.network import distant, line_to
from benchmarks.stored import Stored
from langgraph.checkpoint.dynamodb import create_checkpointer
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from langgraph.store.dynamodb import DynamoDBStore
from tools.engine import Engine
from tools.postgres import Postgres

Saver: TypeAlias = BaseCheckpointSaver[Any]

_POSTGRES_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@dataclass(frozen=True)
class Servers:
    """What the backends that need a server run on."""

    engine: Engine
    postgres: Postgres


@contextmanager
def distant_servers(servers: Servers) -> Iterator[Servers]:
    """Yield the same servers at a distance."""
    address = urlsplit(servers.postgres.address)
    with distant(servers.engine) as engine, line_to(str(address.hostname), address.port or 5432) as near_end:
        yield Servers(engine, Postgres(f"{address.scheme}://{address.username}@{near_end}"))


@dataclass(frozen=True)
class Store:
    """An empty store of one backend."""

    open: Callable[[], AbstractContextManager[Saver]]
    aopen: Callable[[], AbstractAsyncContextManager[Saver]]
    # LangGraph's other kind of store: of memories.
    memories: Callable[[], AbstractContextManager[BaseStore]]
    weigh: Callable[[], Stored]
    # Counts what DynamoDB charges.
    meter: Meter | None = None


@dataclass(frozen=True)
class Backend:
    """A backend: its name, what makes an empty store of it, and what no measurement shows."""

    name: str
    # The package that its saver is in.
    package: str
    new: Callable[[Servers], AbstractContextManager[Store]]
    limits: str
    has_server: bool = True


@contextmanager
def _opened(section: dict[str, Any]) -> Iterator[Saver]:
    with create_checkpointer(section) as saver:
        if saver is None:
            raise AssertionError("The section does not say that it is not enabled.")
        yield saver


@asynccontextmanager
async def _aopened(section: dict[str, Any]) -> AsyncIterator[Saver]:
    async with create_checkpointer(section) as saver:
        if saver is None:
            raise AssertionError("The section does not say that it is not enabled.")
        yield saver


def _configured(
    kind: str,
    memories: Callable[[], AbstractContextManager[BaseStore]],
    weigh: Callable[[], Stored],
    **config: Any,
) -> Store:
    """A store whose configuration says all of it."""
    section = {"type": kind, "config": config}
    return Store(partial(_opened, section), partial(_aopened, section), memories, weigh)


def _shared(
    saver: Saver, memories: BaseStore, weigh: Callable[[], Stored], meter: Meter | None = None
) -> Store:
    """A store of which each opening is the same saver."""

    @asynccontextmanager
    async def aopened() -> AsyncIterator[Saver]:
        yield saver

    return Store(lambda: nullcontext(saver), aopened, lambda: nullcontext(memories), weigh, meter)


@contextmanager
def _memory(_: Servers) -> Iterator[Store]:
    saver = InMemorySaver()

    def weigh() -> Stored:
        return Stored(0, sum(map(_content_bytes, (saver.storage, saver.writes, saver.blobs))))

    yield _shared(saver, InMemoryStore(), weigh)


def _content_bytes(value: object) -> int:
    """The texts and bytes in nested collections, without what Python takes to hold them."""
    if isinstance(value, Mapping):
        return sum(_content_bytes(each) for pair in value.items() for each in pair)
    if isinstance(value, (list, tuple)):
        return sum(map(_content_bytes, value))
    return len(value) if isinstance(value, (str, bytes)) else 0


@contextmanager
def _set_up(opened: AbstractContextManager[Any]) -> Iterator[BaseStore]:
    with opened as memories:
        memories.setup()
        yield memories


@contextmanager
def _sqlite(_: Servers) -> Iterator[Store]:
    with TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder, "threads.db")

        def weigh() -> Stored:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return Stored(0, path.stat().st_size)

        def memories() -> AbstractContextManager[BaseStore]:
            return _set_up(SqliteStore.from_conn_string(str(path.with_name("memories.db"))))

        yield _configured("sqlite", memories, weigh, db_file=str(path))


@contextmanager
def _postgres(servers: Servers) -> Iterator[Store]:
    with servers.postgres.database() as url:

        def weigh() -> Stored:
            with psycopg.connect(url) as connection:
                sizes = [
                    connection.execute("SELECT pg_total_relation_size(%s::regclass)", (name,)).fetchone()
                    for name in _POSTGRES_TABLES
                ]
            return Stored(0, sum(int(size) for (size,) in filter(None, sizes)))

        def memories() -> AbstractContextManager[BaseStore]:
            return _set_up(PostgresStore.from_conn_string(url))

        yield _configured("postgres", memories, weigh, connection_string=url)


@contextmanager
def _amazon(servers: Servers, contestant: Contestant) -> Iterator[Store]:
    with new_bench(contestant, servers.engine) as bench:
        # Its store makes a table of its own.
        memories = import_module("langgraph_checkpoint_aws").DynamoDBStore(
            f"{bench.table_name}-memories",
            boto3_session=session_of(servers.engine),
            endpoint_url=servers.engine.endpoint_url,
        )
        memories.setup()
        yield _shared(bench.open(), memories, bench.stored, bench.meter)


@contextmanager
def _ours(servers: Servers) -> Iterator[Store]:
    engine = servers.engine
    with new_bench(OURS, engine) as bench:
        reach: dict[str, Any] = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        session = bench.meter.watch(session_of(engine))
        store = _configured(
            "dynamodb",
            lambda: DynamoDBStore(bench.table_name, session=session, **reach),
            bench.stored,
            table_name=bench.table_name,
            session=session,
            **reach,
        )
        yield replace(store, meter=bench.meter)


@contextmanager
def through_gateway(engine: Engine) -> Iterator[Store]:
    """Make a store of ours that is reached through a service."""
    with (
        new_bench(OURS, engine) as bench,
        serving(service(bench)) as address,
        HttpCheckpointSaver(address) as saver,
    ):
        yield _shared(saver, InMemoryStore(), bench.stored)


BACKENDS = (
    Backend(
        "memory",
        "langgraph-checkpoint",
        _memory,
        "ends with its process; the process's memory",
        has_server=False,
    ),
    Backend(
        "SQLite",
        "langgraph-checkpoint-sqlite",
        _sqlite,
        "one machine; one writer at a time; 1 GB per value",
        has_server=False,
    ),
    Backend(
        "Postgres",
        "langgraph-checkpoint-postgres",
        _postgres,
        "1 GB per value; the server's connections (a pool, or PgBouncer, for many processes) and its largest instance",
    ),
    Backend(
        AWS.name,
        AWS.name,
        partial(_amazon, contestant=AWS),
        "400 KB per checkpoint, and per write, without a bucket",
    ),
    Backend(
        f"{AWS.name}, gzip",
        AWS.name,
        partial(_amazon, contestant=AWS_GZIP),
        "400 KB per checkpoint, and per write, compressed, without a bucket",
    ),
    Backend(
        OURS.name,
        OURS.name,
        _ours,
        "1 GiB per checkpoint (`checkpoint_bytes_max`); 1,000 write units a second in one thread",
    ),
)
