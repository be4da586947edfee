"""`export --owner` and `delete --owner`: all that is a person's, and a report on what was not looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver, ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb.cli import person
from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from langgraph.checkpoint.dynamodb.migrate import TableEndpoint, TtlChange, export_thread
from langgraph.checkpoint.dynamodb.migrate.stored_thread import StoredThread
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
        "threads that the directory does not have as ada%1's: `langgraph-dynamodb threads --without-owner` lists those"
        " without an owner",
        "memories outside these namespaces",
        "the node cache",
        "what agents store while this runs",
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


def test_one_memory_is_singular(run_on: Run, tmp_path: Path) -> None:
    bob = ("--owner", "bob", "--memories", "users/{owner}")
    assert "exported: 1 thread, 1 memory\n" in run_on("export", *bob, "--to", str(tmp_path)).out
    assert ", 1 memory\n" in run_on("delete", *bob, "--dry-run").out
    assert "deleted: 1 thread, 1 memory\n" in run_on("delete", *bob, "--yes").out


@pytest.mark.parametrize("command", ["export", "delete"])
def test_threads_without_an_owner_are_named_and_can_be_listed(
    run_on: Run, saver: DynamoDBSaver, tmp_path: Path, command: str
) -> None:
    saver.set_thread("of nobody", title="In the directory")
    Conversation(saver, "unlisted").put(said=["four"])
    options = ("--to", str(tmp_path)) if command == "export" else ("--yes",)
    ended = run_on(command, "--owner", "bob", *options)
    assert ended.code == 0
    assert "Threads without an owner are not looked at" in ended.err
    assert "`langgraph-dynamodb threads --without-owner` lists those without an owner" in ended.out
    listed = run_on("threads", "--without-owner", "--json").json
    assert {each["thread_id"] for each in listed} == {"of nobody", "unlisted"}


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


def test_a_thread_that_the_person_went_on_with_is_deleted_again(
    run_on: Run, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    command = ("delete", "--owner", "bob", "--done", str(tmp_path / "deleted"), "--yes", "--json")
    assert run_on(*command).json["deleted"] == ["of bob"]
    Conversation(saver, "of bob").put(said=["again"])
    saver.set_thread("of bob", owner="bob")
    ended = run_on(*command)
    assert (ended.code, ended.json["deleted"], ended.json["skipped"]) == (0, ["of bob"], 0)
    assert saver.get_tuple(thread_config("of bob")) is None
    assert (tmp_path / "deleted").read_text() == "of bob\n" * 2


@pytest.mark.parametrize("what", ["a checkpoint", "a title"])
def test_a_thread_that_an_agent_goes_on_with_is_told(
    run_on: Run, saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    erase = person.Person.erase_memories

    def late(self: person.Person) -> int:
        if what == "a title":
            saver.set_thread("TRIP/1", title="Still here")
        else:
            Conversation(saver, "TRIP/1").put(said=["still here"])
        return erase(self)

    monkeypatch.setattr(person.Person, "erase_memories", late)
    ended = run_on("delete", "--owner", "ada%1", *MEMORIES, "--yes", "--json")
    assert ended.code == Exit.PROBLEMS
    assert {*ended.json["deleted"]} == {*NAMES, "only a title"} - {"TRIP/1"}
    assert ended.json["failed"] == {
        "TRIP/1": "the thread continued after it was deleted; stop its agent, and delete it again"
    }


class _CutError(Exception):
    """The end of a process in the middle of `set-ttl`."""


def _interrupt_set_ttl(saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch, copy: str) -> None:
    """Leave a copy of thread `of bob`: one that is all there is of it, or a part beside it."""
    delete = StoredThread.delete

    def deleted(thread: StoredThread) -> None:
        delete(thread)
        raise _CutError

    def begun(_: StoredThread, to: StoredThread) -> None:
        Conversation(saver, to.thread_id).put(said=["a part"])
        raise _CutError

    with monkeypatch.context() as patch:
        patch.setattr(StoredThread, *(("delete", deleted) if copy == "whole" else ("copy_to", begun)))
        with pytest.raises(_CutError):
            TtlChange(TableEndpoint(saver), "of bob", 1000).run()


@pytest.mark.parametrize(("copy", "left"), [("whole", 1), ("partial", 2)])
def test_what_an_interrupted_set_ttl_leaves_is_the_persons(
    run_on: Run, saver: DynamoDBSaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: str, left: int
) -> None:
    _interrupt_set_ttl(saver, monkeypatch, copy)
    assert "of bob.set-ttl" not in [each.thread_id for each in saver.threads(owner="bob").threads]
    exported = run_on("export", "--owner", "bob", "--to", str(tmp_path), "--json").json
    assert (len(exported["exported"]), "of bob.set-ttl" in exported["exported"]) == (left, True)
    assert len([*tmp_path.glob("of bob.set-ttl-*.jsonl")]) == 1
    ended = run_on("delete", "--owner", "bob", "--yes", "--json")
    assert (ended.code, len(ended.json["deleted"])) == (0, left)
    assert saver.get_tuple(thread_config("of bob.set-ttl")) is None
    assert run_on("delete", "--owner", "bob", "--yes", "--json").json["deleted"] == []


def test_a_copy_that_set_ttl_makes_meanwhile_is_told(
    run_on: Run, saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase = person.Person.erase_memories

    def late(self: person.Person) -> int:
        Conversation(saver, "of bob").put(said=["two"])
        _interrupt_set_ttl(saver, monkeypatch, "partial")
        saver.delete_thread("of bob")
        return erase(self)

    monkeypatch.setattr(person.Person, "erase_memories", late)
    ended = run_on("delete", "--owner", "bob", "--yes", "--json")
    assert (ended.code, [*ended.json["failed"]]) == (Exit.PROBLEMS, ["of bob.set-ttl"])


def test_a_thread_whose_copy_could_not_be_named_has_none(run_on: Run, saver: DynamoDBSaver) -> None:
    name = "x" * 2047
    saver.set_thread(name, owner="cy")
    assert run_on("delete", "--owner", "cy", "--yes", "--json").json["deleted"] == [name]


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
    assert report["finished"]
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


def test_namespaces_under_each_other_are_one(run_on: Run, tmp_path: Path) -> None:
    deep = ("--memories", "users/{owner}/trips", *MEMORIES, "--memories", "users/{owner}")
    ended = run_on("export", "--owner", "ada%1", *deep, "--to", str(tmp_path), "--json").json
    assert (ended["namespaces"], ended["memories"]) == (["users/ada%251", "profiles/ada%251"], 3)


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
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["owner"], report["finished"]) == ("ada%1", False)
    first = len([*tmp_path.glob("*.jsonl")])
    ended = _export(run_on, tmp_path, "--json")
    assert (ended.code, ended.json["skipped"]) == (0, first)
    assert json.loads((tmp_path / "report.json").read_text())["finished"]


def test_a_whole_export_is_replaced_only_after_a_question(
    run_on: Run, saver: DynamoDBSaver, tmp_path: Path
) -> None:
    assert _export(run_on, tmp_path).code == 0
    own = tmp_path / "own.jsonl"
    own.write_text("not ours")
    saver.delete_thread("TRIP/1")
    asked = _export(run_on, tmp_path)
    assert asked.code == Exit.NOT_CONFIRMED
    assert "has a finished export already. Replace it?" in asked.err
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
    assert not json.loads((tmp_path / "report.json").read_text())["finished"]
    # It is not asked about, and tries again what is missing.
    assert _export(run_on, tmp_path, "--json").json["skipped"] == 2


def test_a_folder_with_somebody_elses_export_is_refused(run_on: Run, tmp_path: Path) -> None:
    assert _export(run_on, tmp_path).code == 0
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    ended = run_on("export", "--owner", "bob", "--to", str(tmp_path), "--yes")
    assert ended.code == Exit.USAGE
    assert "is an export of 'ada%1', not of 'bob'; give another folder" in ended.err
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_folder_with_other_files_is_refused(run_on: Run, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("not ours")
    ended = _export(run_on, tmp_path)
    assert ended.code == Exit.USAGE
    assert "has files, and no report of an export; give an empty folder" in ended.err
    assert [each.name for each in tmp_path.iterdir()] == ["own"]


def test_what_an_export_has_no_longer_is_removed(
    run_on: Run, saver: DynamoDBSaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(person.Person, "_export_memories", interrupted)
        assert _export(run_on, tmp_path).code == Exit.INTERRUPTED
    (left,) = tmp_path.glob("trip*.jsonl")
    part = left.with_name(f"{left.name}.part")
    part.write_text("cut short")
    (tmp_path / "memories.jsonl").write_text("of an earlier run")
    saver.delete_thread("trip/1")
    ended = run_on("export", "--owner", "ada%1", "--to", str(tmp_path), "--json")
    assert (ended.code, ended.json["skipped"]) == (0, 2)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["finished"]
    names = {each["file"] for each in report["threads"]} - {None}
    assert {each.name for each in tmp_path.iterdir()} == {"report.json", *names}
    assert not {left.name, part.name} & names


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


def test_a_thread_whose_ttl_is_damaged_is_erased_with_the_others(
    run_on: Run, own_table: str, saver: DynamoDBSaver, client: DynamoDBClient
) -> None:
    key = items.thread_key(items.partition_of("only a title"))
    client.update_item(
        TableName=own_table,
        Key=key,
        UpdateExpression="SET ttl_seconds = :ttl",
        ExpressionAttributeValues={":ttl": {"N": "40000000000"}},
        ConditionExpression="attribute_exists(epoch)",
    )
    shown = {each.thread_id for each in saver.threads(owner="ada%1").threads}
    assert shown == {*NAMES, "only a title"}
    ended = run_on("delete", "--owner", "ada%1", "--yes")
    assert ended.code == 0, ended.err
    assert not saver.threads(owner="ada%1").threads
    assert "Item" not in client.get_item(TableName=own_table, Key=key)


def test_a_thread_whose_entry_is_damaged_is_told(
    run_on: Run, own_table: str, saver: DynamoDBSaver, client: DynamoDBClient, tmp_path: Path
) -> None:
    """Nobody can say whether it is Ada's, so it is neither erased nor passed over."""
    key = items.thread_key(items.partition_of("only a title"))
    about = client.get_item(TableName=own_table, Key=key)["Item"]["about"]["B"]
    client.update_item(
        TableName=own_table,
        Key=key,
        UpdateExpression="SET about = :about",
        ExpressionAttributeValues={":about": {"B": about[:-1]}},
    )
    for arguments in (
        ("export", "--owner", "ada%1", "--to", str(tmp_path)),
        ("delete", "--owner", "ada%1", "--dry-run"),
        ("delete", "--owner", "ada%1", "--yes"),
    ):
        ended = run_on(*arguments, "--json")
        assert ended.code == Exit.PROBLEMS
        [(name, reason)] = ended.json["failed"].items()
        assert name == "only a title"
        assert "cannot be read" in reason
    assert "Item" in client.get_item(TableName=own_table, Key=key)
    assert saver.get_tuple(thread_config("trip/1")) is None
    assert not json.loads((tmp_path / "report.json").read_text())["finished"]
    assert run_on("delete", "only a title", "--yes").code == 0
    assert run_on("delete", "--owner", "ada%1", "--yes").code == 0
