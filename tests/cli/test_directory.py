"""`directory`: enter the threads of a table that has none in its directory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from tests.cli.conftest import Run
from tests.support.checkpoints import Conversation, store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def old(make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver]) -> tuple[str, DynamoDBSaver]:
    """Give a table with threads of two owners and of nobody, from before there was a directory."""
    table = make_table()
    saver = open_saver(table)
    for name, owner in (("one", "ada"), ("two", "ada"), ("three", "bob"), ("odd", {"no": "name"})):
        store(saver, thread_config(name), "1", {"text": name}, user_id=owner)
    Conversation(saver, "nobody's").put(small=1)
    return table, saver


def owned(saver: DynamoDBSaver, owner: str) -> set[str]:
    """Give the ids of an owner's threads."""
    return {each.thread_id for each in saver.threads(owner=owner).threads}


def test_every_thread_is_entered_and_what_cannot_be_is_told(run: Run, old: tuple[str, DynamoDBSaver]) -> None:
    table, saver = old
    ended = run("directory", "--table", table, "--yes", "--json")
    assert ended.code != 0
    assert set(ended.json["entered"]) == {"one", "two", "three", "nobody's"}
    assert (ended.json["with_owner"], ended.json["threads_without_owner"]) == (3, ["nobody's"])
    assert "owner is" in ended.json["failed"]["odd"]
    assert ended.err.startswith(f"Scanning table {table}")
    assert (owned(saver, "ada"), owned(saver, "bob")) == ({"one", "two"}, {"three"})
    talk = saver.get_tuple(thread_config("nobody's"))
    assert talk is not None
    [found] = [each for each in saver.threads().threads if each.thread_id == "nobody's"]
    stored = stored_at(talk.checkpoint["id"])
    assert stored is not None
    assert found.last_active == stored.replace(microsecond=0)


def test_a_thread_that_another_went_on_with_keeps_its_owner(run: Run, old: tuple[str, DynamoDBSaver]) -> None:
    table, saver = old
    store(saver, thread_config("one"), "2", {"text": "approved"})
    ended = run("directory", "one", "--table", table, "--yes", "--json")
    assert (ended.code, ended.json["with_owner"], ended.json["without_owner"]) == (0, 1, 0)
    assert owned(saver, "ada") == {"one"}


def test_threads_without_an_owner_are_told_until_they_have_one(
    run: Run, old: tuple[str, DynamoDBSaver]
) -> None:
    table, saver = old
    ended = run("directory", "one", "nobody's", "--table", table, "--yes")
    assert ended.code == Exit.PROBLEMS
    assert ended.out.splitlines() == [
        "entered: 2 threads, 1 with owner, 1 without owner",
        "threads without owner: nobody's",
    ]
    assert "no checkpoint of 1 thread names an owner under 'user_id'" in ended.err
    saver.set_thread("nobody's", owner="bob")
    assert run("directory", "nobody's", "--table", table, "--yes").code == 0


def test_the_key_of_the_owner_is_not_empty(run: Run, shared: str) -> None:
    ended = run("directory", "t", "--owner-from", "", "--table", shared, "--yes")
    assert ended.code == 2
    assert "--owner-from is empty; give a key of the metadata, such as user_id" in ended.err


def test_it_can_be_repeated_and_changes_no_entry(run: Run, old: tuple[str, DynamoDBSaver]) -> None:
    table, saver = old
    saver.set_thread("one", owner="bob", title="Mine")
    for _ in range(2):
        assert run("directory", "one", "two", "--table", table, "--yes").code == 0
    assert (owned(saver, "ada"), owned(saver, "bob")) == ({"two"}, {"one"})


def test_a_thread_that_was_entered_without_an_owner_gets_it(run: Run, old: tuple[str, DynamoDBSaver]) -> None:
    table, saver = old
    saver.set_thread("one", title="Mine")
    assert run("directory", "one", "--table", table, "--yes").code == 0
    [found] = saver.threads(owner="ada").threads
    assert (found.thread_id, found.title) == ("one", "Mine")


def test_what_was_entered_before_the_saver_encrypted_is_entered_as_it_does(
    run: Run,
    make_table: Callable[[], str],
    open_saver: Callable[..., DynamoDBSaver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = make_table()
    saver = open_saver(table)
    store(saver, thread_config("one"), "1", {"text": "x"})
    saver.set_thread("one", owner="ada")
    key = "0123456789abcdef"
    serde = EncryptedSerializer.from_pycryptodome_aes(key=key.encode())
    encrypting = open_saver(table, serde=serde, owner_key=key.encode(), allow_unencrypted=True)
    assert owned(encrypting, "ada") == set()
    for name in ("ENCRYPTION_KEY", "OWNER_KEY"):
        monkeypatch.setenv(f"LANGGRAPH_CHECKPOINTER_CONFIG__{name}__ENVIRONMENT", "THE_KEY")
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_CONFIG__ALLOW_UNENCRYPTED", "true")
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_TYPE", "dynamodb")
    monkeypatch.setenv("THE_KEY", key)
    assert run("directory", "one", "--table", table, "--yes").code == 0
    assert owned(encrypting, "ada") == {"one"}


def test_the_cost_is_said_first_and_nothing_is_written_unless_asked(
    run: Run, old: tuple[str, DynamoDBSaver]
) -> None:
    table, saver = old
    ended = run("directory", "--table", table, "--dry-run")
    assert f"would enter: 5 threads of table {table}, up to 15 write units, about $0.0000" in ended.out
    dry = run("directory", "one", "two", "--table", table, "--dry-run", "--json").json
    assert dry == {"would_enter": ["one", "two"], "write_units": 6}
    ended = run("directory", "--table", table)
    assert ended.code != 0
    assert "up to 15 write units" in ended.err
    since = datetime.now(timezone.utc) - timedelta(days=1)
    assert saver.threads(since=since).threads == []


def test_a_thread_that_does_not_exist_is_told(run: Run, old: tuple[str, DynamoDBSaver]) -> None:
    table, _ = old
    ended = run("directory", "absent", "--table", table, "--yes", "--json")
    assert (ended.code, ended.json["absent"]) == (3, ["absent"])
