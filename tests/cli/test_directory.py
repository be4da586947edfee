"""`directory`: enter the threads of a table that has none in its directory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from tests.cli.conftest import OpenSaver, Run, encrypting
from tests.support.checkpoints import Conversation, store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def saver(open_own: OpenSaver) -> DynamoDBSaver:
    """Give a table with threads of two owners and of nobody, from before there was a directory."""
    saver = open_own()
    for name, owner in (("one", "ada"), ("two", "ada"), ("three", "bob"), ("odd", {"no": "name"})):
        store(saver, thread_config(name), "1", {"text": name}, user_id=owner)
    Conversation(saver, "nobody's").put(small=1)
    return saver


def owned(saver: DynamoDBSaver, owner: str) -> set[str]:
    """Give the ids of an owner's threads."""
    return {each.thread_id for each in saver.threads(owner=owner).threads}


def test_every_thread_is_entered_and_what_cannot_be_is_told(run: Run, saver: DynamoDBSaver) -> None:
    ended = run("directory", "--yes", "--json")
    assert ended.code != 0
    assert set(ended.json["entered"]) == {"one", "two", "three", "nobody's"}
    assert (ended.json["with_owner"], ended.json["threads_without_owner"]) == (3, ["nobody's"])
    assert "owner is" in ended.json["failed"]["odd"]
    assert ended.err.startswith("Scanning table cli-")
    assert (owned(saver, "ada"), owned(saver, "bob")) == ({"one", "two"}, {"three"})
    talk = saver.get_tuple(thread_config("nobody's"))
    assert talk is not None
    [found] = [each for each in saver.threads().threads if each.thread_id == "nobody's"]
    stored = stored_at(talk.checkpoint["id"])
    assert stored is not None
    assert found.last_active == stored.replace(microsecond=0)


def test_a_thread_that_another_went_on_with_keeps_its_owner(run: Run, saver: DynamoDBSaver) -> None:
    store(saver, thread_config("one"), "2", {"text": "approved"})
    ended = run("directory", "one", "--yes", "--json")
    assert (ended.code, ended.json["with_owner"], ended.json["without_owner"]) == (0, 1, 0)
    assert owned(saver, "ada") == {"one"}


def test_threads_without_an_owner_are_told_until_they_have_one(run: Run, saver: DynamoDBSaver) -> None:
    ended = run("directory", "one", "nobody's", "--yes")
    assert ended.code == Exit.PROBLEMS
    assert ended.out.splitlines() == [
        "entered: 2 threads, 1 with owner, 1 without owner",
        "threads without owner: nobody's",
    ]
    assert "no checkpoint of 1 thread names an owner under 'user_id'" in ended.err
    saver.set_thread("nobody's", owner="bob")
    assert run("directory", "nobody's", "--yes").code == 0


def test_the_key_of_the_owner_is_not_empty(run: Run) -> None:
    run("directory", "t", "--owner-from", "", "--yes").fails(
        2, "--owner-from is empty; give a key of the metadata, such as user_id"
    )


def test_it_can_be_repeated_and_changes_no_entry(run: Run, saver: DynamoDBSaver) -> None:
    saver.set_thread("one", owner="bob", title="Mine")
    for _ in range(2):
        assert run("directory", "one", "two", "--yes").code == 0
    assert (owned(saver, "ada"), owned(saver, "bob")) == ({"two"}, {"one"})


def test_a_thread_that_was_entered_without_an_owner_gets_it(run: Run, saver: DynamoDBSaver) -> None:
    saver.set_thread("one", title="Mine")
    assert run("directory", "one", "--yes").code == 0
    [found] = saver.threads(owner="ada").threads
    assert (found.thread_id, found.title) == ("one", "Mine")


def test_what_was_entered_before_the_saver_encrypted_is_entered_as_it_does(
    run: Run, saver: DynamoDBSaver, open_own: OpenSaver, configure: Callable[..., None]
) -> None:
    saver.set_thread("one", owner="ada")
    encrypted = open_own(allow_unencrypted=True, **encrypting())
    assert owned(encrypted, "ada") == set()
    configure(allow_unencrypted="true")
    assert run("directory", "one", "--yes").code == 0
    assert owned(encrypted, "ada") == {"one"}


def test_the_cost_is_said_first_and_nothing_is_written_unless_asked(
    run: Run, own_table: str, saver: DynamoDBSaver
) -> None:
    ended = run("directory", "--dry-run")
    assert f"would enter: 5 threads of table {own_table}, up to 15 write units, about $0.0000" in ended.out
    dry = run("directory", "one", "two", "--dry-run", "--json").json
    assert dry == {"would_enter": ["one", "two"], "write_units": 6}
    ended = run("directory")
    assert ended.code != 0
    assert "up to 15 write units" in ended.err
    since = datetime.now(timezone.utc) - timedelta(days=1)
    assert saver.threads(since=since).threads == []


def test_a_thread_that_does_not_exist_is_told(run: Run, saver: DynamoDBSaver) -> None:
    ended = run("directory", "absent", "--yes", "--json")
    assert (ended.code, ended.json["absent"]) == (3, ["absent"])
