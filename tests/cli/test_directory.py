"""`directory`: enter the threads of a table that has none in its directory."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb.cli import Exit
from tests.cli.conftest import OpenSaver, Run
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
    assert (owned(saver, "ada"), owned(saver, "bob")) == ({"one", "two"}, {"three"})
    talk = saver.get_tuple(thread_config("nobody's"))
    assert talk is not None
    [found] = [each for each in saver.threads().threads if each.thread_id == "nobody's"]
    stored = stored_at(talk.checkpoint["id"])
    assert stored is not None
    assert found.last_active == stored.replace(microsecond=0)


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


def test_it_can_be_repeated_and_changes_no_entry(run: Run, saver: DynamoDBSaver) -> None:
    saver.set_thread("one", owner="bob", title="Mine")
    # A thread that was entered without an owner gets it.
    saver.set_thread("two", title="Trains")
    for _ in range(2):
        assert run("directory", "one", "two", "--yes").code == 0
    assert owned(saver, "bob") == {"one"}
    [found] = saver.threads(owner="ada").threads
    assert (found.thread_id, found.title) == ("two", "Trains")


def test_the_cost_is_said_first_and_nothing_is_written_unless_asked(
    run: Run, own_table: str, saver: DynamoDBSaver
) -> None:
    ended = run("directory", "--dry-run")
    assert f"would enter: 5 threads of table {own_table}, up to 15 write units\n" in ended.out
    dry = run("directory", "one", "two", "--dry-run", "--json").json
    assert dry == {"would_enter": ["one", "two"], "write_units": 6}
    ended = run("directory")
    assert ended.code != 0
    assert "up to 15 write units" in ended.err
    since = datetime.now(timezone.utc) - timedelta(days=1)
    assert saver.threads(since=since).threads == []
