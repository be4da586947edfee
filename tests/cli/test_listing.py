"""`threads`: which threads a table has, and what their items say of them; and `directory`, which enters them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._operations.threads import set_thread
from langgraph.checkpoint.dynamodb.cli import Exit
from langgraph.checkpoint.dynamodb.cli.output import Output
from langgraph.store.dynamodb import DynamoDBStore
from tests.cli.conftest import OpenSaver, Run, Screen
from tests.infra.authorization import Gate
from tests.infra.conftest import for_table
from tests.infra.test_policies import POLICIES as DOCUMENTS
from tests.support.checkpoints import Conversation, all_items, noise, store, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")


def test_all_threads_are_listed_with_what_their_items_say(run: Run, table: str) -> None:
    ended = run("threads", "--table", table, "--json")
    assert ended.code == 0
    threads = {each["thread_id"]: each for each in ended.json}
    assert threads.keys() == {"chat", "forked", "waiting", "nested"}
    assert {name: each["step"] for name, each in threads.items()} == {
        "chat": 5,
        "forked": 4,
        "waiting": 0,
        "nested": 1,
    }
    assert {name for name, each in threads.items() if each["status"] == "waiting"} == {"waiting", "nested"}
    assert {each["status"] for each in threads.values()} == {"idle", "waiting"}
    active = [each["last_active"] for each in ended.json]
    assert active == sorted(active, reverse=True)
    assert active[-1] > "2026"


def test_a_list_of_the_whole_table_has_what_each_thread_stores(
    run: Run, table: str, client: DynamoDBClient, open_own: OpenSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a bill can be split. Namespaces count; what is no thread's does not."""
    sizes = Counter[str]()
    for item in all_items(client, table):
        sizes[item["PK"]["S"].partition("#")[0]] += item_bytes(item)
    scan = ("threads", "--table", table, "--limit", "0", "--json")
    assert {each["thread_id"]: each["stored_bytes"] for each in run(*scan).json} == dict(sizes)
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.cli.listing._ROUNDS_MAX", 1)
    part = run("threads", "--table", table, "--limit", "2", "--json")
    assert [each["stored_bytes"] for each in part.json] == [None, None]
    assert "in the part of the table that was read; there may be newer ones" in part.err
    saver = open_own()
    Conversation(saver, "odd/%M#").put(x=1)
    with DynamoDBStore(saver.storage.table.name, client=client) as memories:
        memories.put(("odd",), "key", {"large": noise(50_000).hex()})
    [odd] = run("threads", "--json").json
    assert 0 < odd["stored_bytes"] < 10_000


def test_threads_without_an_owner_are_the_newest_of_all(run: Run, open_own: OpenSaver) -> None:
    saver = open_own()
    for number in range(4):
        Conversation(saver, f"thread {number}").put(x=1)
    for number in (2, 3):
        saver.set_thread(f"thread {number}", owner="ada")
    ended = run("threads", "--without-owner", "--limit", "1", "--json")
    assert [each["thread_id"] for each in ended.json] == ["thread 1"]
    assert "Listed: 1 of 2 threads without an owner; --limit 0 lists all." in ended.err
    ended = run("threads", "--without-owner", "--limit", "0", "--json")
    assert [each["thread_id"] for each in ended.json] == ["thread 1", "thread 0"]
    assert "Listed" not in ended.err


def test_a_scan_says_before_what_it_reads_and_costs_if_that_is_a_cent(
    run: Run, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("threads", "--table", table).err == ""
    monkeypatch.setattr("langgraph.checkpoint.dynamodb._format.pricing.READ_UNIT_DOLLARS", 1.0)
    ended = run("verify", "--all", "--table", table)
    assert ended.err.startswith(f"Scanning table {table}: up to ")
    assert " read units, about $" in ended.err
    assert "Then each thread is read as well" in ended.err
    assert "Scanning" not in ended.out


WIDE = (
    "6f1c2f0a-93c5-4a2e-8f5e-1d2c3b4a5f6e",
    "2026-11-28 19:13:54",
    "waiting",
    1234,
    None,
    "ada",
    "Two nights",
)


@pytest.mark.parametrize("columns", [20, 50, 80, 200])
def test_a_table_fits_a_terminal_without_breaking_words(
    columns: int, monkeypatch: pytest.MonkeyPatch, terminal: Callable[..., Screen]
) -> None:
    """Only an id may fold; a column without a value goes before that."""
    monkeypatch.setenv("COLUMNS", str(columns))
    header = ("thread", "last active", "status", "step", "problem", "owner", "title")
    screen = terminal()
    Output(as_json=False).table([], header, [WIDE, WIDE])
    shown = re.sub(r"\x1b\[\d*m", "", screen.getvalue())
    assert max(map(len, shown.splitlines())) <= columns
    words = shown.split()
    for each in ("waiting", "2026-11-28", "19:13:54", "1,234", "ada", "nights"):
        assert words.count(each) == 2
    assert ("problem" in words) == (columns == 200)
    assert (WIDE[0] in words) == (columns > 20)


def test_a_limit_shows_the_newest_threads_of_the_whole_table(run: Run, saver: DynamoDBSaver) -> None:
    # The order of partitions has nothing to do with that of time.
    names = [f"thread {number}" for number in range(12)]
    for name in names:
        Conversation(saver, name).put(small=1)
    Conversation(saver, names[0]).put(small=2)
    Conversation(saver, "only a subgraph", "child").put(small=1)
    ended = run("threads", "--limit", "3", "--json")
    assert [each["thread_id"] for each in ended.json] == [names[0], names[11], names[10]]
    assert "Listed: 3 of 13 threads; --limit 0 lists all." in ended.err
    ended = run("threads", "--limit", "0", "--json")
    assert len(ended.json) == 13
    assert "Listed:" not in ended.err
    assert "Listed:" not in run("threads", "--limit", "13").err


@pytest.mark.parametrize("options", [(), ("--without-owner",)], ids=["all", "without owner"])
def test_an_operator_may_list_though_not_ask_how_large_the_table_is(
    run: Run, table: str, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    gate = Gate([for_table(DOCUMENTS["Operator"], table)])
    session = gate.session()
    monkeypatch.setattr(boto3, "Session", lambda **_: session)
    ended = run("threads", *options, "--table", table, "--json")
    assert len(ended.json) == 4
    assert "its size is not known without dynamodb:DescribeTable" in ended.err
    assert {each.action for each in gate.refused} == {"dynamodb:DescribeTable"}


def test_a_damaged_thread_hides_no_other(
    run: Run, open_own: OpenSaver, own_table: str, client: DynamoDBClient
) -> None:
    saver = open_own()
    for thread in ("damaged", "whole"):
        store(saver, thread_config(thread), "1", {"text": "x"})
    (head,) = [each for each in all_items(client, own_table, begins="C#") if each["PK"]["S"] == "damaged#"]
    client.put_item(TableName=own_table, Item={**head, "parent": {"N": "1"}, "metadata": {"S": "no JSON"}})
    found = {each["thread_id"]: each for each in run("threads", "--json").json}
    assert found["whole"]["problem"] is None
    assert "damaged" in found["damaged"]["problem"]
    assert found["damaged"]["status"] is None


def in_directory(saver: DynamoDBSaver, owner: str, number: int) -> str:
    """Store a thread of an owner, and say what it is called."""
    name = f"{owner}-{number}"
    Conversation(saver, name).put(small=1)
    saver.set_thread(name, owner=owner, title=f"Talk {number}")
    return name


def test_an_owners_threads_need_no_scan(
    run: Run, saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.cli.listing._PAGE_THREADS", 2)
    names = {in_directory(saver, "ada", number) for number in range(5)}
    in_directory(saver, "bob", 1)
    newest: Any = saver.get_tuple(thread_config("ada-3"))
    saver.put_writes(newest.config, [("__interrupt__", "?")], "task")
    ended = run("threads", "--owner", "ada", "--json")
    assert {each["thread_id"] for each in ended.json} == names
    assert {each["owner"] for each in ended.json} == {"ada"}
    assert "Scanning" not in ended.err
    assert "Threads that are not in the directory are not listed." in ended.err
    ended = run("threads", "--owner", "ada", "--waiting", "--json")
    assert [(each["thread_id"], each["status"]) for each in ended.json] == [("ada-3", "waiting")]
    ended = run("threads", "--owner", "ada", "--limit", "3")
    assert len(ended.out.splitlines()) == 4
    assert "Talk" in ended.out
    assert "Listed: the newest 3; --limit 0 lists all." in ended.err
    for also in ((), ("--expired",)):
        assert len(run("threads", "--owner", "ada", "--limit", "0", "--json", *also).json) == 5
    run("threads", "--expired").fails(2, "--expired needs --owner or --since")


def test_recent_threads_of_all_owners_need_no_scan(run: Run, open_own: OpenSaver) -> None:
    saver = open_own()
    now = saver.storage.clock()
    in_directory(saver, "bob", 7)
    Conversation(saver, "ada-8").put(small=1)
    earlier = replace(saver.storage, clock=lambda: now - 3 * 86_400)
    saver.runner.run(set_thread(earlier, "ada-8", "ada", None, None))
    for age, expected in (("7d", ["bob-7", "ada-8"]), ("1d", ["bob-7"])):
        ended = run("threads", "--since", age, "--json")
        assert [each["thread_id"] for each in ended.json] == expected
        assert "Scanning" not in ended.err


def test_those_that_wait_are_found_by_a_scan_too(run: Run, table: str) -> None:
    ended = run("threads", "--table", table, "--waiting", "--json")
    assert {each["thread_id"] for each in ended.json} == {"waiting", "nested"}
    assert "Looked at 4 threads and found 2 waiting." in ended.err


# `directory`


@pytest.fixture
def unlisted(open_own: OpenSaver) -> DynamoDBSaver:
    """Give a table with threads of two owners and of nobody, from before there was a directory."""
    saver = open_own()
    for name, owner in (("one", "ada"), ("two", "ada"), ("three", "bob"), ("odd", {"no": "name"})):
        store(saver, thread_config(name), "1", {"text": name}, user_id=owner)
    Conversation(saver, "nobody's").put(small=1)
    return saver


def owned(saver: DynamoDBSaver, owner: str) -> set[str]:
    """Give the ids of an owner's threads."""
    return {each.thread_id for each in saver.threads(owner=owner).threads}


def test_every_thread_is_entered_and_what_cannot_be_is_told(run: Run, unlisted: DynamoDBSaver) -> None:
    ended = run("directory", "--yes", "--json")
    assert ended.code != 0
    assert set(ended.json["entered"]) == {"one", "two", "three", "nobody's"}
    assert (ended.json["with_owner"], ended.json["threads_without_owner"]) == (3, ["nobody's"])
    assert "owner is" in ended.json["failed"]["odd"]
    assert (owned(unlisted, "ada"), owned(unlisted, "bob")) == ({"one", "two"}, {"three"})
    talk: Any = unlisted.get_tuple(thread_config("nobody's"))
    [found] = [each for each in unlisted.threads().threads if each.thread_id == "nobody's"]
    stored: Any = stored_at(talk.checkpoint["id"])
    assert found.last_active == stored.replace(microsecond=0)


def test_threads_without_an_owner_are_told_until_they_have_one(run: Run, unlisted: DynamoDBSaver) -> None:
    ended = run("directory", "one", "nobody's", "--yes")
    assert ended.code == Exit.PROBLEMS
    assert ended.out.splitlines() == [
        "entered: 2 threads, 1 with owner, 1 without owner",
        "threads without owner: nobody's",
    ]
    assert "no checkpoint of 1 thread names an owner under 'user_id'" in ended.err
    unlisted.set_thread("nobody's", owner="bob")
    assert run("directory", "nobody's", "--yes").code == 0


def test_it_can_be_repeated_and_changes_no_entry(run: Run, unlisted: DynamoDBSaver) -> None:
    unlisted.set_thread("one", owner="bob", title="Mine")
    # A thread that was entered without an owner gets it.
    unlisted.set_thread("two", title="Trains")
    for _ in range(2):
        assert run("directory", "one", "two", "--yes").code == 0
    assert owned(unlisted, "bob") == {"one"}
    [found] = unlisted.threads(owner="ada").threads
    assert (found.thread_id, found.title) == ("two", "Trains")


def test_the_cost_is_said_first_and_nothing_is_written_unless_asked(
    run: Run, own_table: str, unlisted: DynamoDBSaver
) -> None:
    ended = run("directory", "--dry-run")
    assert f"would enter: 5 threads of table {own_table}, up to 15 write units\n" in ended.out
    dry = run("directory", "one", "two", "--dry-run", "--json").json
    assert dry == {"would_enter": ["one", "two"], "write_units": 6}
    ended = run("directory")
    assert ended.code != 0
    assert "up to 15 write units" in ended.err
    since = datetime.now(timezone.utc) - timedelta(days=1)
    assert unlisted.threads(since=since).threads == []
