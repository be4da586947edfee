"""`memories`: namespaces as text, and what is listed, shown, deleted, exported and imported."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.sqlite import SqliteStore

from langgraph.checkpoint.dynamodb.cli import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.memories import labels_text, parse_labels
from langgraph.store.dynamodb import DynamoDBStore
from tests.cli.conftest import Run
from tests.support.checkpoints import all_items

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")

ADA = ("users", "ada/1 %")
AS_TEXT = "users/ada%2F1 %25"


@pytest.fixture
def store(client: DynamoDBClient, own_table: str) -> Iterator[DynamoDBStore]:
    """Give a store on the table, with two memories of Ada and one of Bob."""
    with DynamoDBStore(own_table, client=client) as store:
        store.put(ADA, "food", {"likes": "pizza", "text": "eats"})
        store.put((*ADA, "trips"), "japan", {"likes": "trains"})
        store.put(("users", "bob"), "food", {"likes": "rice"})
        yield store


@pytest.fixture
def memories(run: Run, store: DynamoDBStore) -> Run:
    """Give what runs a command of `memories` on the table."""
    del store
    return functools.partial(run, "memories")


# Namespaces as text


@given(st.lists(st.text(min_size=1).filter(lambda text: not set(".\0") & set(text)), min_size=1).map(tuple))
def test_every_namespace_can_be_written(labels: tuple[str, ...]) -> None:
    text = labels_text(labels)
    assert parse_labels(text) == labels
    assert text.isprintable() or not "".join(labels).isprintable()
    assert "\n" not in text


@pytest.mark.parametrize("text", ["users//ada", "users/ada%2", "a%zz", "%FF", "a.b"])
def test_what_is_no_namespace_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="cannot be used") as caught:
        parse_labels(text)
    assert caught.value.code is Exit.USAGE


# Reading


def test_namespaces_are_listed_so_that_they_can_be_given_again(memories: Run) -> None:
    ended = memories("list")
    assert ended.out.splitlines() == [AS_TEXT, f"{AS_TEXT}/trips", "users/bob"]
    assert memories("list", AS_TEXT, "--json").json == [[*ADA], [*ADA, "trips"]]
    ended = memories("list", "users", "--limit", "1")
    assert ended.out.splitlines() == [AS_TEXT]
    assert "Listed: 1 namespace, and there are more" in ended.err


def test_a_memory_is_shown(memories: Run, store: DynamoDBStore) -> None:
    found: Any = store.get(ADA, "food")
    shown = memories("get", AS_TEXT, "food", "--json").json
    assert shown == {
        "namespace": [*ADA],
        "key": "food",
        "value": {"likes": "pizza", "text": "eats"},
        "created_at": found.created_at.isoformat(),
        "updated_at": found.updated_at.isoformat(),
        "revision": found.revision,
    }
    text = memories("get", AS_TEXT, "food").out
    assert '"likes": "pizza"' in text
    assert f"revision: {found.revision}" in text
    memories("get", AS_TEXT, "drink").fails(Exit.NOT_FOUND, f"there is no memory 'drink' in {AS_TEXT}")


def test_a_look_renews_no_ttl(memories: Run, store: DynamoDBStore, own_table: str, client: Any) -> None:
    store.put(ADA, "mood", {"is": "hungry"}, ttl=5)
    before = all_items(client, own_table)
    memories("get", AS_TEXT, "mood")
    memories("search", AS_TEXT)
    assert all_items(client, own_table) == before


def test_memories_are_searched(memories: Run) -> None:
    newest = memories("search", "users", "--json").json
    assert [each["value"]["likes"] for each in newest] == ["rice", "trains", "pizza"]
    assert "japan" in memories("search", f"{AS_TEXT}/trips").out
    ended = memories("search", AS_TEXT, "--limit", "1")
    assert "Listed: 1 memory, and there are more" in ended.err


def test_similarity_needs_the_configured_index(
    memories: Run, run: Run, store: DynamoDBStore, own_table: str, write_config: Callable[..., str]
) -> None:
    memories("search", "users", "--query", "food").fails(Exit.CONFIGURATION, "an index under `store:`")
    index = {"dims": 2, "embed_function": "tests.cli.test_memories:embed", "fields": ["text"]}
    file = write_config(own_table, "store", index=index)
    # An import embeds texts.
    store.put(("users", "eve"), "long", {"text": "aaaaaa"})
    store.put(("users", "eve"), "short", {"text": "a"})
    exported = memories("export", "users/eve").out
    store.delete_namespace(("users", "eve"))
    assert run("memories", "import", "-", "--yes", "--config", file, stdin=exported).code == 0
    found = run("memories", "search", "users/eve", "--query", "aaaaaaaa", "--json", "--config", file).json
    assert [each["key"] for each in found] == ["long", "short"]
    assert found[0]["score"] > found[1]["score"]


def embed(texts: list[str]) -> list[list[float]]:
    """Embed texts by their lengths, under a name that a configuration has."""
    return [[1.0, float(len(each))] for each in texts]


# Changing


def test_a_memory_is_deleted_after_a_question(memories: Run, store: DynamoDBStore) -> None:
    assert memories("delete", AS_TEXT, "food").code == Exit.NOT_CONFIRMED
    assert memories("delete", AS_TEXT, "food", "--dry-run").out.startswith("would delete: memory 'food'")
    assert store.get(ADA, "food") is not None
    assert memories("delete", AS_TEXT, "food", "--yes").code == 0
    assert store.get(ADA, "food") is None
    assert memories("delete", AS_TEXT, "food", "--yes").code == Exit.NOT_FOUND


def test_all_under_a_namespace_are_deleted(memories: Run, store: DynamoDBStore) -> None:
    for number in range(30):
        store.put((*ADA, "many"), f"{number:03}", {"number": number})
    assert memories("delete", AS_TEXT).code == Exit.USAGE
    assert memories("delete", AS_TEXT, "food", "--all").code == Exit.USAGE
    assert memories("delete", "", "--all").code == Exit.USAGE
    assert "would delete: 32 memories under" in memories("delete", AS_TEXT, "--all", "--dry-run").out
    ended = memories("delete", AS_TEXT, "--all")
    assert "Delete 32 memories under" in ended.err
    assert memories("delete", AS_TEXT, "--all", "--yes", "--json").json["deleted"] == 32
    assert [each.namespace for each in store.search(())] == [("users", "bob")]


def test_a_memory_that_cannot_be_read_is_counted_and_deleted(
    memories: Run, store: DynamoDBStore, own_table: str, client: DynamoDBClient
) -> None:
    [damaged] = [each for each in all_items(client, own_table) if each["SK"]["S"] == "M#trips/#japan"]
    for change in ({"value": {"B": b"xx"}}, {"expires_at": {"S": "never"}}):
        client.put_item(TableName=own_table, Item={**damaged, **change})
        store.put(ADA, "food", {"likes": "pizza"})
        assert "would delete: 2 memories under" in memories("delete", AS_TEXT, "--all", "--dry-run").out
        assert "deleted: 2 memories under" in memories("delete", AS_TEXT, "--all", "--yes").out
        assert store.search(ADA) == []


# Files


def test_memories_go_to_a_file_and_back(
    memories: Run, run: Run, make_table: Callable[[], str], store: DynamoDBStore, tmp_path: Path
) -> None:
    file, other = tmp_path / "ada.jsonl", make_table()
    assert memories("export", AS_TEXT, str(file)).out == f"exported: 2 memories, to {file}\n"
    assert memories("export", AS_TEXT, str(file)).code == Exit.NOT_CONFIRMED
    assert memories("export", "", str(file), "--yes", "--json").json["memories"] == 3
    dry = ("memories", "import", str(file), "--table", other, "--dry-run")
    assert run(*dry).out == "would store: 3 memories\n"
    assert run(*dry, "--json").json == {"would_store": 3}
    assert run("memories", "list", "--table", other).out == ""
    assert run("memories", "import", str(file), "--table", other).code == Exit.NOT_CONFIRMED
    imported = run("memories", "import", str(file), "--table", other, "--yes").out
    assert imported == "memories: 3 read, 3 stored, 3 compared, 0 newer, 0 expired\n"
    mine = memories("get", AS_TEXT, "food", "--json").json
    theirs = run("memories", "get", AS_TEXT, "food", "--table", other, "--json").json
    assert {**mine, "revision": ""} == {**theirs, "revision": ""}
    again = run("memories", "import", str(file), "--table", other, "--yes", "--json").json
    assert (again["read"], again["stored"], again["compared"], again["failed"]) == (3, 0, 3, [])
    assert len([*store.export_items()]) == 3


def test_standard_output_is_the_file(memories: Run, store: DynamoDBStore) -> None:
    ended = memories("export", AS_TEXT)
    header, *records, end = map(json.loads, ended.out.splitlines())
    assert header == {"format": "langgraph-memories", "version": 1}
    assert records == [*store.export_items(ADA)]
    assert end.keys() == {"end"}
    assert memories("export", AS_TEXT, "--json").code == Exit.USAGE


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (lambda lines: lines[:-1], "cut short", Exit.DAMAGED),
        (lambda lines: [*lines[:1], *lines[2:]], "was changed", Exit.DAMAGED),
        (lambda lines: ['{"format": "langgraph-thread"}', *lines[1:]], "of the format", Exit.USAGE),
        (lambda lines: [lines[0], '{"namespace": ["a"], "key": "b"}', *lines[1:]], "no value", Exit.USAGE),
    ],
    ids=["cut", "a line less", "another format", "no value"],
)
def test_a_file_is_checked_to_its_end_before_anything_is_stored(
    memories: Run, run: Run, make_table: Callable[[], str], change: Any, says: str, code: Exit
) -> None:
    lines = memories("export", AS_TEXT).out.splitlines()
    other = make_table()
    changed = "".join(f"{each}\n" for each in change(lines))
    run("memories", "import", "-", "--table", other, "--yes", stdin=changed).fails(code, says)
    assert run("memories", "list", "--table", other).out == ""


# From other stores


def _sqlite(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        store = SqliteStore(connection)
        store.setup()
        for number in range(3):
            store.put(("users", "ada"), f"{number}", {"number": number})
    return f"sqlite:{path}"


def test_memories_are_moved(
    run: Run, make_table: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, place = make_table(), _sqlite(tmp_path / "a.db")
    command = ("memories", "import", "--table", table)
    assert run(*command, "--from", place, "--dry-run").out == "would store: 3 memories\n"
    assert run(*command, "--from", place).code == Exit.NOT_CONFIRMED
    assert run("memories", "list", "--table", table).out == ""
    for arguments in ((), ("a file", "--from", place)):
        run(*command, *arguments).fails(Exit.USAGE, "give a file, or --from")
    monkeypatch.setenv("LANGGRAPH_MIGRATE_FROM", place)
    assert run(*command, "--yes").out == "memories: 3 read, 3 stored, 3 compared, 0 newer, 0 expired\n"
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("UPDATE store SET prefix = ? WHERE key = '1'", ("x" * 3000,))
    ended = run(*command, "--yes", "--json")
    assert ended.code == Exit.PROBLEMS
    assert (ended.json["read"], ended.json["stored"], ended.json["compared"]) == (3, 0, 2)
    assert [each["key"] for each in ended.json["failed"]] == ["1"]
    ended = run(*command, "--yes")
    assert "1 memory could not be stored" in ended.err
    assert "x 1: " in ended.out


# Which store


def test_without_a_store_in_the_configuration_the_savers_table_and_key_are_used(
    run: Run,
    own_table: str,
    store: DynamoDBStore,
    write_config: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_OF_TESTS", "0123456789abcdef")
    key = {"environment": "KEY_OF_TESTS"}
    file = write_config(own_table, encryption_key=key, ttl_seconds=60, retry_seconds=7)
    store.put(("users", "eve"), "food", {"likes": "figs"})
    exported = run("memories", "export", "users/eve", "--table", own_table).out
    store.delete(("users", "eve"), "food")
    assert run("memories", "import", "-", "--yes", "--config", file, stdin=exported).code == 0
    assert "figs" in run("memories", "get", "users/eve", "food", "--config", file).out
    # Without the key, the value cannot be read.
    assert run("memories", "get", "users/eve", "food", "--table", own_table).code == Exit.CONFIGURATION
    (tmp_path / "agent.yaml").write_text("store: {type: memory}\n")
    run("memories", "list", "--config", file).fails(
        Exit.CONFIGURATION, "type memory is configured for the store, which has no table"
    )
