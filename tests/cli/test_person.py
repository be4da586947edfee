"""`export --owner` and `delete --owner`: all that is a person's, and a report on what was not looked at."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb.cli import Exit
from langgraph.store.dynamodb import DynamoDBStore
from tests.cli.conftest import OpenSaver, Run, encrypting
from tests.support.change import change_storage
from tests.support.checkpoints import Conversation, all_items, stored_values, thread_config
from tests.support.programs import ran

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = [pytest.mark.engines("dynamodb-local"), pytest.mark.usefixtures("store")]

MEMORIES = ("--memories", "users/ada%251", "--memories", "profiles/{owner}")
NAMES = {"trip/1", "TRIP/1", "line\nbreak"}


@pytest.fixture
def saver(open_own: OpenSaver) -> DynamoDBSaver:
    """Give a saver on a table with three threads of Ada, a title of hers, and threads of others."""
    saver = open_own()
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
def store(own_table: str, saver: DynamoDBSaver, client: DynamoDBClient) -> Iterator[DynamoDBStore]:
    """Give a store on the same table, with memories of Ada and of Bob."""
    del saver
    with DynamoDBStore(own_table, client=client) as store:
        store.put(("users", "ada%1"), "food", {"likes": "pizza"})
        store.put(("users", "ada%1", "trips"), "japan", {"likes": "trains"})
        store.put(("profiles", "ada%1"), "name", {"is": "Ada"})
        store.put(("users", "ada%11"), "food", {"likes": "soup"})
        store.put(("users", "bob"), "food", {"likes": "rice"})
        yield store


PAGE = Path(__file__).parents[2] / "docs" / "retention.md"


def test_the_commands_of_the_page_export_and_erase_a_person_of_a_tenant(
    saver: DynamoDBSaver,
    store: DynamoDBStore,
    engine: Engine,
    own_table: str,
    write_config: Callable[..., str],
    tmp_path: Path,
) -> None:
    threads = {"acme/2", "acme/TRIP", "acme/trip", f"acme/{'n' * 300}", "acme/\u00fc\n.."}
    for name in threads:
        Conversation(saver, name).put(said=["hers"])
        saver.set_thread(name, owner="acme/ada")
    saver.set_thread("acme/titled", owner="acme/ada", title="Only a title")
    store.put(("acme", "users", "ada"), "food", {"likes": "pizza"})
    write_config(own_table)
    section = PAGE.read_text(encoding="utf-8").split("\n## Export, erase or delete a user's data\n")[1]
    [block] = re.findall(r"```sh\n(.*?)\n```", section, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Nobody is there to answer the last one.
    ran("/bin/sh", "-c", f"{block} --yes", cwd=tmp_path, env={**engine.environment(), "PATH": path})
    found = {each["thread_id"]: each for each in json.loads((tmp_path / "ada" / "threads.json").read_text())}
    assert found.keys() == {*threads, "acme/titled"}
    assert (found["acme/titled"]["title"], found["acme/titled"]["file"]) == ("Only a title", None)
    files = {each: (tmp_path / "ada" / found[each]["file"]).read_text().splitlines()[0] for each in threads}
    assert {name: json.loads(line)["thread_id"] for name, line in files.items()} == {
        each: each for each in threads
    }
    # Each has a file of its own where case does not count, too.
    assert len({each.name.lower() for each in (tmp_path / "ada").iterdir()}) == len(threads) + 2
    assert "pizza" in (tmp_path / "ada" / "memories.jsonl").read_text()
    assert saver.threads(owner="acme/ada").threads == []
    assert store.get(("acme", "users", "ada"), "food") is None
    assert stored_values(saver, thread_config("of bob")) == {"said": ["two"]}


def test_a_thread_that_cannot_be_exported_is_told_and_the_others_are_written(
    run: Run, saver: DynamoDBSaver, client: DynamoDBClient, own_table: str, tmp_path: Path
) -> None:
    folder = ("--to", str(tmp_path / "new" / "ada"))
    for item in all_items(client, own_table):
        if item["PK"]["S"].startswith("TRIP") and item["SK"]["S"].startswith("C#"):
            client.put_item(TableName=own_table, Item={"PK": item["PK"], "SK": item["SK"]})
    ended = run("export", "--owner", "ada%1", *folder, "--json")
    ended.fails(Exit.PROBLEMS, "1 thread could not be served")
    assert {*ended.json["exported"]} == {*NAMES, "only a title"} - {"TRIP/1"}
    assert ended.json["failed"].keys() == {"TRIP/1"}
    listed = json.loads((tmp_path / "new" / "ada" / "threads.json").read_text())
    assert {each["thread_id"] for each in listed if each["file"] is None} == {"TRIP/1", "only a title"}
    run("export", "--owner", "ada%1", *folder).fails(Exit.NOT_CONFIRMED, "is not empty. Replace")
    run("export", "--owner", "ad", "--to", str(tmp_path / "none")).fails(Exit.NOT_FOUND, "no thread of ad;")
    assert not (tmp_path / "none").exists()
    assert run("export", "--owner", "bob", "--to", str(tmp_path / "bob")).code == 0
    file = str(tmp_path / "new" / "ada" / "threads.json")
    run("export", "--owner", "ada%1", "--to", file).fails(Exit.USAGE, "cannot be a folder")
    for words in (["--owner", "ada%1"], ["x", "--owner", "ada%1", *folder], ["x", *folder], []):
        run("export", *words).fails(Exit.USAGE, "give a thread, or --owner with --to")


# Erasure


def test_everything_of_a_person_is_erased(
    run: Run, own_table: str, saver: DynamoDBSaver, store: DynamoDBStore, client: DynamoDBClient
) -> None:
    tried = run("delete", "--owner", "ada%1", *MEMORIES, "--dry-run", "--json").json
    assert (len(tried["would_delete"]), tried["memories"]) == (4, 3)
    run("delete", "--owner", "ada%1", *MEMORIES).fails(
        Exit.NOT_CONFIRMED, "Delete 4 threads and 3 memories from table"
    )
    ended = run("delete", "--owner", "ada%1", *MEMORIES, "--yes", "--json")
    assert ended.code == 0
    assert {*ended.json["deleted"]} == {*NAMES, "only a title"}
    assert ended.json["memories"] == 3
    assert ended.json["namespaces"] == ["users/ada%251", "profiles/ada%251"]
    assert "memories outside these namespaces" in ended.json["not_looked_at"]
    assert [each.value for each in store.search(())] == [{"likes": "rice"}, {"likes": "soup"}]
    assert stored_values(saver, thread_config("of bob")) == {"said": ["two"]}
    # Of the threads nothing is left but what a deletion always leaves: their epochs, without names.
    left = [each for each in all_items(client, own_table) if "trip" in each["PK"]["S"].lower()]
    assert {each["SK"]["S"] for each in left} <= {"T"}
    assert not [each for each in left if {"owner", "about"} & each.keys()]
    # Run again, there is nothing to erase, as with a thread that is not there.
    for option in ("--yes", "--dry-run"):
        again = run("delete", "--owner", "ada%1", *MEMORIES, option, "--json")
        assert (again.code, again.json["memories"]) == (Exit.NOT_FOUND, 0)
        assert "the directory has no thread of ada%1" in again.err


def test_nobody_is_erased_without_the_keys_of_the_directory(
    run: Run, saver: DynamoDBSaver, open_own: OpenSaver, configure: Callable[..., None]
) -> None:
    """Its index has digests of owners, so a name finds nothing, and zero threads would look like success."""
    for each in saver.threads().threads:
        saver.delete_thread(each.thread_id)
    encrypted = open_own(**encrypting())
    for name in ("of nobody new", "of carol"):
        Conversation(encrypted, name).put(said=["four"])
    encrypted.set_thread("of nobody new", title="Nobody's")
    encrypted.set_thread("of carol", owner="carol")
    carol = ("delete", "--owner", "carol", "--memories", "users/carol", "--yes")
    run(*carol).fails(Exit.CONFIGURATION, "the saver has no cipher")
    configure(owner_key="f" * 16)
    run(*carol).fails(Exit.CONFIGURATION, "configure the owner_key of the agents")
    assert stored_values(encrypted, thread_config("of carol")) == {"said": ["four"]}
    configure()
    assert run("delete", "--owner", "dave", "--yes").code == Exit.NOT_FOUND
    assert run(*carol).code == 0


def test_memories_that_are_put_meanwhile_are_deleted_too_and_told(
    run: Run, store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looked = DynamoDBStore.delete_namespace, list[tuple[str, ...]]()

    def delete_namespace(self: DynamoDBStore, namespace: tuple[str, ...]) -> int:
        deleted = real(self, namespace)
        looked.append(namespace)
        if looked == [("users", "ada%1")]:
            store.put(namespace, "late", {"likes": "tea"})
        return deleted

    monkeypatch.setattr(DynamoDBStore, "delete_namespace", delete_namespace)
    ended = run("delete", "--owner", "ada%1", *MEMORIES, "--yes", "--json")
    ended.fails(Exit.PROBLEMS, "memories were put under users/ada%251 meanwhile; stop the agent")
    assert ended.json["memories"] == 4
    assert store.search(("users", "ada%1")) == []


async def test_the_method_does_what_the_command_does(
    saver: DynamoDBSaver, store: DynamoDBStore, open_own: OpenSaver
) -> None:
    """Threads that have expired for readers, which DynamoDB may be days late to remove, included."""
    then = time.time() - 3600
    past = open_own(ttl_seconds=60)
    change_storage(past, clock=lambda: then)
    Conversation(past, "expired").put(said=["long ago"])
    past.set_thread("expired", owner="ada%1")
    assert saver.get_tuple(thread_config("expired")) is None
    report = await saver.adelete_owner("ada%1", memories=[("users", "{owner}")], store=store)
    assert ({*report.deleted}, report.failed) == ({*NAMES, "only a title", "expired"}, {})
    assert (report.memories, report.namespaces, report.put_meanwhile) == (2, [("users", "ada%1")], [])
    assert "memories outside these namespaces" in report.not_looked_at
    assert sorted(each.namespace[-1] for each in store.search(())) == ["ada%1", "ada%11", "bob"]


def test_a_thread_whose_entry_is_damaged_is_told(
    run: Run, own_table: str, saver: DynamoDBSaver, client: DynamoDBClient, tmp_path: Path
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
    for arguments in (("export", "--to", str(tmp_path)), ("delete", "--dry-run"), ("delete", "--yes")):
        ended = run(*arguments, "--owner", "ada%1", "--json")
        assert ended.code == Exit.PROBLEMS
        [(name, reason)] = ended.json["failed"].items()
        assert name == "only a title"
        assert "cannot be read" in reason
    assert "Item" in client.get_item(TableName=own_table, Key=key)
    assert saver.get_tuple(thread_config("trip/1")) is None
    assert run("delete", "only a title", "--yes").code == 0
    assert run("delete", "--owner", "ada%1", "--yes").code == Exit.NOT_FOUND
