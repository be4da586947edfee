"""Memories of other stores: read with their times, moved as they were, and compared."""

from __future__ import annotations

import sqlite3
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from psycopg.rows import dict_row

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.migrate import memories_of, move_memories, open_memories
from langgraph.checkpoint.dynamodb.migrate import stores as module
from langgraph.store.dynamodb import DynamoDBStore

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

VALUES: dict[tuple[str, ...], dict[str, Any]] = {
    ("users", "ada"): {"food": {"likes": "pizza", "times": [1, 2], "more": {"a": None, "b": True, "c": "ü"}}},
    ("users", "ada", "trips"): {"japan": {"days": 14}, "italy": {}},
    ("users", "bob"): {"food": {"likes": "rice"}},
}


@pytest.fixture
def target(client: DynamoDBClient, table_name: str) -> Iterator[DynamoDBStore]:
    """Give an empty store of ours."""
    with DynamoDBStore(table_name, client=client) as store:
        yield store


def fill(store: BaseStore, *, with_ttl: bool) -> None:
    """Put the memories into a store of another package, one of them with a ttl."""
    for namespace, memories in VALUES.items():
        for name, value in memories.items():
            store.put(namespace, name, value)
    if with_ttl:
        store.put(("users", "eve"), "mood", {"is": "hungry"}, ttl=90)


def stored(store: DynamoDBStore) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the values of a store of ours."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in store.export_items():
        found.setdefault(tuple(each["namespace"]), {})[each["key"]] = each["value"]
    return found


@contextmanager
def opened(kind: str, place: str) -> Iterator[Any]:
    """Open the store of another package that blocks."""
    if kind == "postgres":
        with psycopg.connect(place, autocommit=True, prepare_threshold=0, row_factory=dict_row) as connection:
            yield PostgresStore(connection)
    else:
        with closing(sqlite3.connect(place.removeprefix("sqlite:"), isolation_level=None)) as connection:
            yield SqliteStore(connection)


# LangGraph's SqliteStore, from Python 3.12 on.
@pytest.mark.filterwarnings("ignore:The default datetime adapter is deprecated:DeprecationWarning")
@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_memories_of_langgraphs_stores_move_with_their_times_and_ttls(
    kind: str, request: pytest.FixtureRequest, target: DynamoDBStore, tmp_path: Path
) -> None:
    place = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:{tmp_path / 'a.db'}"
    with opened(kind, place) as source:
        source.setup()
        fill(source, with_ttl=True)
        with open_memories(place) as records:
            moved = move_memories(records, target)
        assert (moved.read, moved.stored, moved.compared, moved.failed) == (5, 5, 5, {})
        assert stored(target) == {**VALUES, ("users", "eve"): {"mood": {"is": "hungry"}}}
        for namespace, memories in VALUES.items():
            for name in memories:
                theirs, ours = source.get(namespace, name), target.get(namespace, name)
                assert ours is not None
                assert (ours.created_at, ours.updated_at) == (
                    theirs.created_at.replace(tzinfo=timezone.utc) if kind == "sqlite" else theirs.created_at,
                    theirs.updated_at.replace(tzinfo=timezone.utc) if kind == "sqlite" else theirs.updated_at,
                )
        (mood,) = target.export_items(("users", "eve"))
        assert mood["ttl_minutes"] == 90
        assert timedelta(minutes=85) < datetime.fromisoformat(mood["expires_at"]) - datetime.now(timezone.utc)
        # Again: nothing is stored twice, and what came since is moved.
        source.put(("users", "bob"), "drink", {"likes": "tea"})
        with open_memories(place) as records:
            again = move_memories(records, target)
        assert (again.read, again.stored, again.compared, again.failed) == (6, 1, 6, {})


def test_memories_of_any_store_move(
    target: DynamoDBStore, monkeypatch: pytest.MonkeyPatch, make_saver: Callable[..., Any]
) -> None:
    store = InMemoryStore()
    fill(store, with_ttl=False)
    monkeypatch.setattr(module, "_PAGE_MEMORIES", 2)
    places: Any = types.ModuleType("places_of_tests")
    places.plain, places.managed = (lambda: store), (lambda: nullcontext(store))
    places.saver, places.asynchronous = make_saver, type("AsyncStore", (InMemoryStore,), {})
    monkeypatch.setitem(sys.modules, "places_of_tests", places)
    with open_memories("places_of_tests:plain") as records:
        moved = move_memories(records, target)
    assert (moved.read, moved.stored, moved.compared, moved.failed) == (4, 4, 4, {})
    assert stored(target) == VALUES
    with open_memories("places_of_tests:managed") as records:
        assert move_memories(records, target).stored == 0
    for name in ("saver", "asynchronous"):
        with (
            pytest.raises(CheckpointerConfigurationError, match="let it return a blocking BaseStore"),
            open_memories(f"places_of_tests:{name}"),
        ):
            pass
    # Ours keeps ttls.
    target.put(("users", "eve"), "mood", {"is": "hungry"}, ttl=90)
    assert [each["ttl_minutes"] for each in memories_of(target)] == [None] * 4 + [90]


def test_a_memory_that_moves_on_while_it_is_read_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(InMemoryStore):
        def search(self, *arguments: Any, offset: int = 0, **options: Any) -> Any:
            # As in a store that lists the newest first, of which one was put after the first page.
            return super().search(*arguments, offset=max(0, offset - 1), **options)

    store = Busy()
    fill(store, with_ttl=False)
    monkeypatch.setattr(module, "_PAGE_MEMORIES", 3)
    assert len([*memories_of(store)]) == 4


# The move


def _record(key: str, value: Any, **more: Any) -> dict[str, Any]:
    time = "2026-01-02T03:04:05+00:00"
    return {
        "namespace": ["users", "ada"],
        "key": key,
        "value": value,
        "created_at": time,
        "updated_at": time,
        "ttl_minutes": None,
        "expires_at": None,
        **more,
    }


def test_what_cannot_be_moved_keeps_nothing_else(target: DynamoDBStore) -> None:
    records = [
        _record("dotted", {}, namespace=["a.b"]),
        _record("long", {}, namespace=["x" * 3000]),
        _record("bytes", {"data": b"x"}),
        _record("number", {"n": 2**70}),
        _record("gone", {}, ttl_minutes=1, expires_at="2026-01-02T03:05:05+00:00"),
        _record("ends", {}, expires_at="soon"),
        _record("number of a day", {}, expires_at=20_000),
        _record("good", {"likes": "pizza"}),
    ]
    moved = move_memories(records, target)
    assert (moved.read, moved.stored, moved.compared, moved.expired) == (8, 1, 1, 1)
    assert {key for _, key in moved.failed} == {
        "dotted",
        "long",
        "bytes",
        "number",
        "ends",
        "number of a day",
    }
    assert stored(target) == {("users", "ada"): {"good": {"likes": "pizza"}}}


@pytest.mark.parametrize("time", ["2026-01-02T03:04:05.12Z", "2026-01-02 03:04:05", "2026-01-02"])
def test_a_memory_of_another_program_has_its_times(target: DynamoDBStore, time: str) -> None:
    for _ in range(2):
        record = _record("food", {}, created_at=time, updated_at=time, expires_at="2999-01-01T00:00:00Z")
        assert move_memories([record], target).compared == 1


def test_what_is_newer_in_the_target_stays(target: DynamoDBStore) -> None:
    target.put(("users", "ada"), "food", {"likes": "salad"})
    moved = move_memories([_record("food", {"likes": "pizza"})], target)
    assert (moved.stored, moved.newer, moved.compared, moved.failed) == (0, 1, 0, {})
    assert stored(target) == {("users", "ada"): {"food": {"likes": "salad"}}}


def test_what_differs_is_told(target: DynamoDBStore, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [_record("one", {"n": 1}), _record("two", {"n": 2}), _record("three", {"n": 3})]
    move_memories(records, target)
    # 1 and 1.0 are equal in Python, and no other than the source's.
    changed = [_record("one", {"n": 1.0}), _record("two", {"n": 2}, created_at="2026-01-01T00:00:00+00:00")]
    moved = move_memories(changed, target)
    assert {key for _, key in moved.failed} == {"one", "two"}
    ends = iter([False, True])
    monkeypatch.setattr(module, "_has_expired", lambda _: next(ends))
    monkeypatch.setattr(target, "import_items", lambda _: 0)
    moved = move_memories([_record("late", {})], target)
    assert (moved.expired, moved.failed) == (1, {})


# What is wrong with a place


def test_a_place_that_has_no_memories_says_so(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("this is no database, however long the text may be")
    for place, says in {
        f"sqlite:{tmp_path / 'none.db'}": "there is no SQLite database",
        f"sqlite:{tmp_path / 'empty.db'}": "has no table 'store'",
        f"sqlite:{tmp_path / 'text.db'}": "is not a SQLite database",
        postgres_url: "relation .store. does not exist",
        "postgresql://ada:pass@word:5x@host/threads": "the connection string of Postgres cannot be read",
        "postgresql://ada:hunter2@127.0.0.1:1/a": "the memories of Postgres cannot be read",
        "no_such_module:store": "cannot be imported",
    }.items():
        with pytest.raises(CheckpointerConfigurationError, match=says) as caught, open_memories(place):
            pass
        assert "hunter2" not in str(caught.value)
        assert "word:5x" not in str(caught.value)


def test_a_package_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with (
        pytest.raises(CheckpointerConfigurationError, match=r'"psycopg\[binary\]"'),
        open_memories("postgresql://localhost/a"),
    ):
        pass
