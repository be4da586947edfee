"""`export --owner` and `delete --owner`: all that is a person's, and a report on what was not looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver, ThreadBusyError
from langgraph.checkpoint.dynamodb.cli import person
from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from langgraph.checkpoint.dynamodb.migrate import export_thread
from langgraph.store.dynamodb import DynamoDBStore
from tests.cli.conftest import Run
from tests.support.checkpoints import Conversation, all_items, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

MEMORIES = ("--memories", "users/{owner}", "--memories", "profiles/{owner}")
NAMES = {"trip/1", "TRIP/1", "line\nbreak"}


@pytest.fixture
def own_table(make_table: Callable[[], str]) -> str:
    """Give a table of the test's own."""
    return make_table()


@pytest.fixture
def saver(own_table: str, open_saver: Callable[..., DynamoDBSaver]) -> DynamoDBSaver:
    """Give a saver on a table with three threads of Ada, a title of hers, and threads of others."""
    saver = open_saver(own_table)
    for name in NAMES:
        talk = Conversation(saver, name)
        talk.put(said=["one"])
        saver.put_writes(talk.config, [("said", "pending")], "task")
        saver.set_thread(name, owner="ada%1")
    saver.set_thread("only a title", owner="ada%1", title="Mine")
    Conversation(saver, "of bob").put(said=["two"])
    saver.set_thread("of bob", owner="bob")
    Conversation(saver, "of nobody").put(said=["three"])
    return saver


@pytest.fixture
def store(
    own_table: str, saver: DynamoDBSaver, engine: Engine, sessions: dict[str, Any]
) -> Iterator[DynamoDBStore]:
    """Give a store on the same table, with memories of Ada and of Bob."""
    del saver
    with DynamoDBStore(own_table, endpoint_url=engine.endpoint_url, session=sessions["session"]) as store:
        store.put(("users", "ada%1"), "food", {"likes": "pizza"})
        store.put(("users", "ada%1", "trips"), "japan", {"likes": "trains"})
        store.put(("profiles", "ada%1"), "name", {"is": "Ada"})
        store.put(("users", "ada%11"), "food", {"likes": "soup"})
        store.put(("users", "bob"), "food", {"likes": "rice"})
        yield store


@pytest.fixture
def run_on(run: Run, own_table: str, store: DynamoDBStore) -> Run:
    """Give what runs a command on the table."""
    del store
    return lambda *arguments, **options: run(*arguments, "--table", own_table, **options)


# Erasure


def test_everything_of_a_person_is_erased(
    run_on: Run, own_table: str, saver: DynamoDBSaver, store: DynamoDBStore, client: DynamoDBClient
) -> None:
    tried = run_on("delete", "--owner", "ada%1", *MEMORIES, "--dry-run", "--json").json
    assert (len(tried["would_delete"]), tried["memories"]) == (4, 3)
    asked = run_on("delete", "--owner", "ada%1", *MEMORIES)
    assert asked.code == Exit.NOT_CONFIRMED
    assert "Delete 4 threads and 3 memories from table" in asked.err
    ended = run_on("delete", "--owner", "ada%1", *MEMORIES, "--yes", "--json")
    assert ended.code == 0
    assert {*ended.json["deleted"]} == {*NAMES, "only a title"}
    assert ended.json["memories"] == 3
    assert ended.json["namespaces"] == ["users/ada%251", "profiles/ada%251"]
    assert ended.json["not_looked_at"] == [
        "threads that the directory does not have as ada%1's",
        "memories outside these namespaces",
        "the node cache",
        "backups, exported files and logs",
    ]
    assert [each.value for each in store.search(())] == [{"likes": "rice"}, {"likes": "soup"}]
    assert stored_values(saver, thread_config("of bob")) == {"said": ["two"]}
    # Of the threads nothing is left but what a deletion always leaves: their epochs, without names.
    left = [each for each in all_items(client, own_table) if "trip" in each["PK"]["S"].lower()]
    assert {each["SK"]["S"] for each in left} <= {"T"}
    assert not [each for each in left if {"owner", "about"} & each.keys()]
    # Run again, there is nothing to erase, and that is no error.
    again = run_on("delete", "--owner", "ada%1", *MEMORIES, "--yes", "--json")
    assert (again.code, again.json["memories"]) == (0, 0)


def test_a_report_says_that_memories_were_not_looked_at(run_on: Run, store: DynamoDBStore) -> None:
    ended = run_on("delete", "--owner", "ada%1", "--yes")
    assert ended.out.startswith("deleted: 4 threads, 0 memories\n")
    assert "memories; --memories says which namespaces are the owner's" in ended.out
    assert len(store.search(("users", "ada%1"))) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("delete", "--owner", "ada", "--memories", "users"), "has no {owner} in it"),
        (("delete", "--owner", "ada", "--memories", "users//{owner}"), "cannot be used"),
        (("delete", "of bob", "--memories", "users/{owner}"), "--memories needs --owner"),
        (("delete", "of bob", "--owner", "ada"), "give only one of"),
        (("export", "--owner", "ada"), "give --owner with --to FOLDER"),
        (("export", "of bob", "--owner", "ada", "--to", "x"), "give --owner with --to FOLDER"),
        (("export",), "give a thread, or --owner"),
        (("export", "of bob", "-", "--memories", "users/{owner}"), "give a thread, or --owner"),
        (("export", "of bob", "-", "--to", "x"), "give a thread, or --owner"),
    ],
    ids=[
        "everybody", "empty", "no owner", "both", "no folder", "thread", "nothing", "no owner to export", "to",
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(run_on: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run_on(*arguments)
    assert ended.code == Exit.USAGE
    assert says in ended.err


def test_what_is_new_meanwhile_is_told(
    run_on: Run, saver: DynamoDBSaver, store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase = person.Person.erase_memories

    def late(self: person.Person) -> int:
        erased = erase(self)
        saver.set_thread("late", owner="ada%1")
        store.put(("users", "ada%1"), "late", {})
        return erased

    monkeypatch.setattr(person.Person, "erase_memories", late)
    ended = run_on("delete", "--owner", "ada%1", *MEMORIES, "--yes")
    assert ended.code == Exit.PROBLEMS
    assert "late: the thread was begun while the others were deleted" in ended.out
    saver.delete_thread("late")
    store.put(("users", "ada%1"), "late", {})
    monkeypatch.setattr(person.Person, "erase_memories", lambda _: 0)
    ended = run_on("delete", "--owner", "ada%1", *MEMORIES, "--yes")
    assert ended.code == Exit.PROBLEMS
    assert "memories were put under users/ada%251 meanwhile" in ended.err


def test_namespaces_of_a_tenants_user(run_on: Run, saver: DynamoDBSaver, store: DynamoDBStore) -> None:
    saver.set_thread("acme/trip", owner="acme/eve")
    store.put(("acme", "users", "eve"), "food", {})
    store.put(("acme", "users", "acme/eve"), "food", {})
    for template, namespace in {
        "{tenant}/users/{user}": "acme/users/eve",
        "{tenant}/users/{owner}": "acme/users/acme%2Feve",
    }.items():
        ended = run_on("delete", "--owner", "acme/eve", "--memories", template, "--yes", "--json").json
        assert (ended["namespaces"], ended["memories"]) == ([namespace], 1)
    ended = run_on("delete", "--owner", "eve", "--memories", "{tenant}/{user}")
    assert ended.code == Exit.USAGE
    assert "owner 'eve' has no tenant" in ended.err
    assert run_on("delete", "--owner", "acme/eve", "--memories", "{tenant}/users").code == Exit.USAGE


# Export


def _export(run_on: Run, folder: Path, *more: str) -> Any:
    return run_on("export", "--owner", "ada%1", *MEMORIES, "--to", str(folder), *more)


def test_everything_of_a_person_is_exported(
    run: Run,
    run_on: Run,
    make_table: Callable[[], str],
    open_saver: Callable[..., DynamoDBSaver],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "ada"
    ended = _export(run_on, folder, "--json")
    assert (ended.code, ended.json["memories"], ended.json["folder"]) == (0, 3, str(folder))
    report = json.loads((folder / "report.json").read_text())
    assert report["is_whole"]
    assert report["not_looked_at"] == ended.json["not_looked_at"]
    titles = {each["thread_id"]: (each["title"], each["file"]) for each in report["threads"]}
    assert titles.keys() == {*NAMES, "only a title"}
    assert titles["only a title"] == ("Mine", None)
    written = {each.name for each in folder.iterdir()}
    assert written == {"report.json", "memories.jsonl"} | {titles[each][1] for each in NAMES}
    # What was exported can be stored elsewhere.
    other = make_table()
    for name in NAMES:
        run("import", str(folder / str(titles[name][1])), "--table", other, "--yes")
        assert stored_values(open_saver(other), thread_config(name)) == {"said": ["one"]}
        found = open_saver(other).get_tuple(thread_config(name))
        assert found is not None
        assert found.pending_writes == [("task", "said", "pending")]
    stored = run(
        "memories", "import", str(folder / "memories.jsonl"), "--table", other, "--yes", "--json"
    ).json
    assert stored == {"stored": 3, "left": 0}


def test_an_export_that_was_interrupted_goes_on(
    run_on: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[str] = []

    def interrupted(source: Any, thread_id: str, file: Any) -> Any:
        counts.append(thread_id)
        if len(counts) == 2:
            raise KeyboardInterrupt
        return export_thread(source, thread_id, file)

    monkeypatch.setattr(person, "export_thread", interrupted)
    ended = _export(run_on, tmp_path, "--parallel", "1")
    assert ended.code == Exit.INTERRUPTED
    assert not (tmp_path / "report.json").exists()
    first = len([*tmp_path.glob("*.jsonl")])
    ended = _export(run_on, tmp_path, "--json")
    assert (ended.code, ended.json["skipped"]) == (0, first)
    assert json.loads((tmp_path / "report.json").read_text())["is_whole"]


def test_a_whole_export_is_replaced_only_after_a_question(
    run_on: Run, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("not ours")
    assert _export(run_on, tmp_path).code == 0
    saver.delete_thread("TRIP/1")
    asked = _export(run_on, tmp_path)
    assert asked.code == Exit.NOT_CONFIRMED
    assert "has a whole export already. Replace it?" in asked.err
    before = len([*tmp_path.iterdir()])
    ended = _export(run_on, tmp_path, "--yes", "--json")
    assert (ended.json["skipped"], len([*tmp_path.iterdir()])) == (0, before - 1)
    assert own.read_text() == "not ours"


def test_without_memories_there_is_no_file_of_them(run_on: Run, tmp_path: Path) -> None:
    ended = run_on("export", "--owner", "bob", "--to", str(tmp_path))
    assert ended.code == 0
    assert "exported: 1 thread, 0 memories" in ended.out
    assert not (tmp_path / "memories.jsonl").exists()


def test_a_thread_that_cannot_be_exported_makes_no_whole_export(
    run_on: Run, own_table: str, client: DynamoDBClient, tmp_path: Path
) -> None:
    for each in all_items(client, own_table):
        if each["PK"]["S"] == "trip/1#" and "body" in each:
            client.put_item(TableName=own_table, Item={**each, "body": {"B": b"damage"}})
    ended = _export(run_on, tmp_path)
    assert ended.code == Exit.PROBLEMS
    assert "trip/1: " in ended.out
    assert not json.loads((tmp_path / "report.json").read_text())["is_whole"]
    # It is not asked about, and tries again what is missing.
    assert _export(run_on, tmp_path, "--json").json["skipped"] == 2


def test_a_folder_that_cannot_be_used(run_on: Run, tmp_path: Path) -> None:
    for report in ("[]", "[" * 100_000):
        (tmp_path / "report.json").write_text(report)
        ended = _export(run_on, tmp_path)
        assert ended.code == Exit.USAGE
        assert "give another folder" in ended.err
    assert _export(run_on, tmp_path / "report.json").code == Exit.USAGE


def test_a_thread_that_is_busy_is_told_once(
    run_on: Run, saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(self: DynamoDBSaver, thread_id: str) -> None:
        del self
        msg = f"{thread_id} is busy"
        raise ThreadBusyError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(DynamoDBSaver, "delete_thread", busy)
        ended = run_on("delete", "--owner", "bob", "--yes", "--json")
    assert ended.code == Exit.PROBLEMS
    assert ended.json["failed"] == {"of bob": "of bob is busy"}
    assert [each.thread_id for each in saver.threads(owner="bob").threads] == ["of bob"]
