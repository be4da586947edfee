"""The endpoints that a person names: what opens each, what is wrong with others, and the positions of writes."""

import itertools
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph_checkpoint_aws import DynamoDBSaver as AmazonSaver

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.migrate import (
    SaverEndpoint,
    Status,
    TableEndpoint,
    endpoint_of,
    migrate,
    open_endpoint,
)
from langgraph.checkpoint.dynamodb.migrate.record import (
    Ref,
    WritePosition,
    WriteRecord,
    calls_of,
    guessed_positions,
)
from tests.migrate.conftest import OTHERS
from tests.migrate.threads import statuses
from tests.support.checkpoints import store, thread_config
from tools.engine import MOTO, Engine

pytestmark = pytest.mark.engines("dynamodb-local")

# Places of writes

MIXED = [("a", 1), (INTERRUPT, "asked"), ("b", 2), (RESUME, ["answer"])]


def store_writes(store_: SaverEndpoint) -> RunnableConfig:
    """Store writes of every kind, in another order than that in which they are applied."""
    config = store(store_.saver, thread_config(), "1", {"a": 0})
    saver = store_.saver
    saver.put_writes(config, MIXED, "task-1", "~2")
    saver.put_writes(config, [("a", number) for number in range(12)], "task-2", "~1")
    saver.put_writes(config, [(ERROR, "failed")], "task-3", "~3")
    saver.put_writes(config, [("a", "without a path")], "task-4")
    return config


@pytest.mark.parametrize("kind", [each for each in OTHERS if each != "memory"])
def test_writes_keep_their_positions(
    open_other: Callable[[str], SaverEndpoint], table: TableEndpoint, kind: str, tmp_path: Path
) -> None:
    source = open_other(kind)
    store_writes(source)
    assert statuses(migrate(source, table, ["thread-1"])) == {"thread-1": Status.MOVED}
    [record] = table.records("thread-1", [Ref("1", "")])
    assert record is not None
    assert sorted(write.position for write in record.writes) == [
        WritePosition("", "task-4", 0),
        *(WritePosition("~1", "task-2", number) for number in range(12)),
        *(WritePosition("~2", "task-1", position) for position in (-4, -3, 0, 2)),
        WritePosition("~3", "task-3", -1),
    ]
    with open_endpoint(f"sqlite:{tmp_path / 'back.db'}", as_target=True) as back:
        assert statuses(migrate(table, back, ["thread-1"])) == {"thread-1": Status.MOVED}


def test_writes_keep_their_order_where_more_cannot_be_known() -> None:
    source, target = SaverEndpoint(InMemorySaver()), SaverEndpoint(InMemorySaver())
    config = store_writes(source)
    assert statuses(migrate(source, target, ["thread-1"])) == {"thread-1": Status.MOVED}
    one, other = (each.saver.get_tuple(config) for each in (source, target))
    assert one is not None
    assert other is not None
    assert one.pending_writes == other.pending_writes


@pytest.mark.parametrize("order", list(itertools.permutations(["1", "2", "3"])))
def test_guessed_places_are_in_the_given_order(order: tuple[str, ...]) -> None:
    writes = [(task, channel, 0) for task in order for channel in (RESUME, "a", "b")]
    positions = guessed_positions(writes)
    assert sorted(positions) == positions
    assert [(each.task_id, each.number) for each in positions] == [
        (task, position) for task in order for position in (-4, 0, 1)
    ]
    assert all(each.task_path == "" for each in positions) is (list(order) == sorted(order))


def test_a_position_that_nothing_leads_to_is_the_next_one() -> None:
    writes = [WriteRecord(WritePosition("", "task", position), "a", position) for position in (0, 5)]
    assert list(calls_of(writes)) == [("task", "", [("a", 0), ("a", 5)])]


def test_writes_that_come_in_meanwhile_are_read_again() -> None:
    class Busy(SaverEndpoint):
        reads = 0

        def stored_positions(self, thread_id: str, ref: Ref) -> Any:
            self.reads += 1
            found = [(WritePosition("~", "task", 0), "a"), (WritePosition("~", "task", 1), "b")]
            return found if self.reads == self.settles_at else found[:1]

        settles_at = 2

    saver = InMemorySaver()
    written = store(saver, thread_config(), "1", {})
    saver.put_writes(written, [("a", 1), ("b", 2)], "task")
    busy = Busy(saver)
    [record] = busy.records("thread-1", [Ref("1", "")])
    assert record is not None
    assert [write.position.task_path for write in record.writes] == ["~", "~"]
    busy.reads = 10
    [record] = busy.records("thread-1", [Ref("1", "")])
    assert record is not None
    assert [write.position.task_path for write in record.writes] == ["", ""]


# Places of threads


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the name of a module with functions to name."""
    module = types.ModuleType("functions_of_the_tests")
    vars(module).update(make=InMemorySaver, number=lambda: 7, needs=len)
    vars(module).update(opened=lambda: nullcontext(InMemorySaver()))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


@pytest.mark.parametrize("function", ["make", "opened"])
def test_a_saver_of_a_function(functions: str, function: str) -> None:
    with open_endpoint(f"{functions}:{function}") as found:
        assert isinstance(found.saver, InMemorySaver)
    assert "" not in sys.path


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nothing", "names no place of threads"),
        ("postgresql:", "names no place of threads"),
        ("functions_of_the_tests:other", "cannot be imported"),
        ("no_such_module:make", "cannot be imported"),
        ("functions_of_the_tests:number", "returned a int"),
        ("functions_of_the_tests:needs", r"tests:needs\(\) failed: TypeError: len\(\) takes exactly one"),
        ("postgresql://user:secret@host/database?nonsense=1", "is not a Postgres connection string"),
        ("postgresql://user:a@b:secret@host/database", "is not a Postgres connection string"),
        ("postgresql://user:secret@127.0.0.1:1/none", "a database that cannot be reached: "),
        ("sqlite:/no/such/file.db", "there is no SQLite database"),
    ],
)
def test_what_is_wrong_with_an_endpoint_is_said(functions: str, place: str, message: str) -> None:
    del functions
    with (
        pytest.raises((CheckpointerInputError, CheckpointerConfigurationError), match=message) as error,
        open_endpoint(place),
    ):
        pass
    assert "secret" not in str(error.value)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.sqlite", None)
    with (
        pytest.raises(CheckpointerConfigurationError, match="pip install langgraph-checkpoint-sqlite"),
        open_endpoint("sqlite:threads.db"),
    ):
        pass


# SQLite


def test_a_file_that_is_no_database_of_threads(tmp_path: Path) -> None:
    empty, text = tmp_path / "empty.db", tmp_path / "text.db"
    empty.touch()
    text.write_text("This is no database, but some text that is longer than the header of one.")
    for path, message in ((empty, "has no table 'checkpoints'"), (text, "is not a SQLite database")):
        with pytest.raises(CheckpointerConfigurationError, match=message), open_endpoint(f"sqlite:{path}"):
            pass
    with (
        pytest.raises(CheckpointerConfigurationError, match="the folder of the SQLite database"),
        open_endpoint(f"sqlite:{tmp_path}/none/new.db", as_target=True),
    ):
        pass


def test_a_database_file_is_opened_by_its_path_or_address(tmp_path: Path) -> None:
    with open_endpoint(f"sqlite:{tmp_path}/new.db", as_target=True) as made:
        store(made.saver, thread_config(), "1", {"a": "b" * 100})
    for place in (f"sqlite:{tmp_path}/new.db", f"sqlite://{tmp_path}/new.db"):
        with open_endpoint(place) as found:
            assert list(found.thread_ids()) == ["thread-1"]


# Postgres


def test_threads_of_postgres_come_page_by_page(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.migrate.endpoints._PAGE_THREADS", 2)
    with open_endpoint(postgres_url, as_target=True) as found:
        for number in range(5):
            store(found.saver, thread_config(f"thread-{number}"), "1", {"a": [b"x" * 100]})
        assert list(found.thread_ids()) == [f"thread-{number}" for number in range(5)]


def test_a_database_without_threads_is_told_from_one_with_none(postgres_url: str) -> None:
    with (
        open_endpoint(postgres_url) as found,
        pytest.raises(CheckpointerConfigurationError, match='relation "checkpoints" does not exist'),
    ):
        next(iter(found.thread_ids()))


def test_one_connection_of_ones_own_stays_open(postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(postgres_url) as saver:
        saver.setup()
        found = endpoint_of(saver)
        found.close()
        assert list(found.thread_ids()) == []
        assert isinstance(saver.conn, psycopg.Connection)
        assert not saver.conn.closed


# AWS


def test_what_lies_in_a_bucket_is_moved(
    amazon_table: str, engine: Engine, table: TableEndpoint, request: pytest.FixtureRequest
) -> None:
    moto = request.getfixturevalue("_start_engine")(MOTO)
    if not isinstance(moto, Engine):
        pytest.skip(str(moto))
    client = boto3.client("s3", endpoint_url=moto.endpoint_url, region_name=engine.region_name)
    client.create_bucket(Bucket="threads")
    client.close()
    bucket = {"bucket_name": "threads", "key_prefix": "a", "endpoint_url": moto.endpoint_url}
    saver = AmazonSaver(
        amazon_table,
        region_name=engine.region_name,
        endpoint_url=engine.endpoint_url,
        enable_checkpoint_compression=True,
        s3_offload_config=bucket,
    )
    source = endpoint_of(saver)
    store(source.saver, thread_config(), "1", {"large": list(range(300_000))})
    reports = list(migrate(source, table, source.thread_ids()))
    assert statuses(reports) == {"thread-1": Status.MOVED}


def test_savers_for_event_loops_are_refused() -> None:
    class AsyncSqliteSaver(SqliteSaver):
        def __init__(self) -> None:
            pass

    with pytest.raises(CheckpointerConfigurationError, match="AsyncSqliteSaver is an async saver"):
        endpoint_of(AsyncSqliteSaver())
