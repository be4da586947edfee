"""`setup`, and `verify`: a damaged thread among sound ones, what died, and what a repair removes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._operations.verify import Verification
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.upkeep import _lines
from tests.cli.conftest import KEY, OpenSaver, Run, encrypting
from tests.support import graphs
from tests.support.checkpoints import Conversation, all_items, noise, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def shared(make_table: Callable[[], str], open_saver: OpenSaver, client: DynamoDBClient) -> str:
    """Give a table with four threads: one is sound, one damaged, one has orphans, one a forgotten namespace."""
    name = make_table()
    saver = open_saver(name)
    for thread in ("sound", "damaged", "orphans", "forgotten"):
        Conversation(saver, thread).put(large=noise(60_000))
    Conversation(saver, "forgotten", "child:1").put(small=1)
    items = {item["PK"]["S"] + item["SK"]["S"]: item for item in all_items(client, name)}
    segments = [item for key, item in items.items() if key.startswith("damaged#S#")]
    client.delete_item(TableName=name, Key={"PK": segments[0]["PK"], "SK": segments[0]["SK"]})
    client.delete_item(TableName=name, Key={"PK": {"S": "forgotten#"}, "SK": {"S": "N#child:1"}})
    old = str(int(time.time()) - ORPHAN_SECONDS - 100)
    orphan = {**segments[1], "PK": {"S": "orphans#"}, "created_at": {"N": old}}
    client.put_item(TableName=name, Item=orphan)
    client.put_item(TableName=name, Item={"PK": {"S": "CHECKPOINT_another savers"}, "SK": {"S": "#1"}})
    return name


def test_one_thread_is_verified_without_a_scan(run: Run) -> None:
    ended = run("verify", "sound")
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 1
    assert "Scanning" not in ended.err
    found = run("verify", "sound", "damaged", "--json")
    assert found.code == 8
    assert [each["sound"] for each in found.json["threads"]] == [True, False]
    assert run("verify").code == 2


def test_a_repair_removes_what_nothing_can_reach(
    run: Run, shared: str, client: DynamoDBClient, open_saver: OpenSaver
) -> None:
    before = len(all_items(client, shared))
    found = run("verify", "--all").fails(8, "2 threads failed verification").out.splitlines()
    assert found[0].startswith("verified: 4 threads, 5 checkpoints, 0 tasks, ")
    assert {line.split(":")[0] for line in found[1:]} == {"damaged", "orphans", "forgotten"}
    assert run("verify", "--all", "--repair").code == 7
    assert len(all_items(client, shared)) == before
    ended = run("verify", "--all", "--repair", "--yes").fails(8, "1 thread failed verification")
    assert {"orphans: repaired", "forgotten: repaired"} <= set(ended.out.splitlines())
    after = run("verify", "--all", "--json").json["threads"]
    assert [each["thread_id"] for each in after if not each["sound"]] == ["damaged"]
    assert sum(each["orphans"] for each in after) == 0
    saver = open_saver(shared)
    assert saver.get_tuple(thread_config("orphans")) is not None
    assert len(list(saver.list({"configurable": {"thread_id": "forgotten"}}))) == 2
    assert run("verify", "sound", "--repair").code == 0


def test_everything_that_is_found_is_said() -> None:
    found = Verification(
        "t",
        items=9,
        flaws=3,
        messages=["one"],
        unreadable=10,
        why_unreadable="the key is another",
        unknown_namespaces=["child:1"],
        orphans=1,
        orphan_bytes=10,
        abandoned=2,
        empty_namespaces=1,
        recent=4,
        passed_over=5,
        uncommitted=6,
        cut=8,
        expired=7,
    )
    assert _lines(found) == [
        "damaged: one",
        "damaged: 2 more like these",
        "cannot be opened: 10 segments and checkpoints, whose checksums are right; the first: the key is another",
        "unknown namespace: 'child:1'; --repair makes it known",
        "left over: 1 segment (10 bytes) that nothing names, writes of 2 tasks without a checkpoint, 1 empty namespace;"
        " --repair removes them",
        "5 checkpoints never acknowledged, which readers pass over",
        "6 whole checkpoints that may not have been acknowledged",
        "8 older checkpoints whose delta channels cannot be rebuilt since runs were deleted",
        "4 segments and tasks that a put under way may need",
        "7 expired checkpoints",
    ]


# Threads that are healthy, and a key that is not theirs


@pytest.fixture
def encrypted(make_table: Callable[[], str], open_saver: OpenSaver) -> str:
    """Give a table with encrypted threads: with large values, writes, a subgraph, and delta channels."""
    name = make_table()
    saver = open_saver(name, **encrypting())
    for thread in ("one", "two"):
        for namespace in ("", "child:1"):
            talk = Conversation(saver, thread, namespace)
            talk.put(large=noise(150_000))
            saver.put_writes(talk.config, [("large", noise(60_000, 1))], "task")
            talk.put(large=noise(150_000), small=1)
    graphs.journal(saver).invoke({}, thread_config("delta"))
    return name


@pytest.mark.parametrize("key", [KEY, "f" * 16, None])
def test_a_key_that_is_not_the_threads_is_no_damage(
    run: Run, encrypted: str, configure: Callable[..., None], key: str | None
) -> None:
    if key is not None:
        configure(encryption_key=key)
    ended = run("verify", "--all", "--table", encrypted)
    assert "damaged" not in ended.out
    assert "left over" not in ended.out
    if key == KEY:
        assert (ended.code, len(ended.out.splitlines())) == (0, 1)
        return
    assert ended.code == 4
    assert "3 threads could not be opened" in ended.err
    lines = ended.out.splitlines()[1:]
    assert sorted(line.split(":")[0] for line in lines) == ["delta", "one", "two"]
    assert all(": cannot be opened: " in line for line in lines)


def test_damage_is_found_without_the_key_too(run: Run, encrypted: str, client: DynamoDBClient) -> None:
    segments = [each for each in all_items(client, encrypted, begins="S#") if each["PK"]["S"] == "one#"]
    data = segments[0]["data"]["B"]
    broken = {**segments[0], "data": {"B": data[:-1] + bytes([data[-1] ^ 1])}}
    client.put_item(TableName=encrypted, Item=broken)
    ended = run("verify", "one", "two", "--table", encrypted).fails(8, "1 thread failed verification")
    damaged = [line for line in ended.out.splitlines() if ": damaged: " in line]
    assert {line.split(":")[0] for line in damaged} == {"one"}


# `setup`


@pytest.fixture
def name(client: DynamoDBClient) -> Iterator[str]:
    """Give the name of a table that is made by the test, and goes with it."""
    yield "set-up-by-command"
    client.delete_table(TableName="set-up-by-command")


def test_a_table_for_development_is_made(run: Run, name: str) -> None:
    assert run("threads", "--table", name).code == 4
    ended = run("setup", "--table", name)
    assert ended.out.startswith(f"table {name} is ready at http")
    again = run("setup", "--table", name, "--json").json
    assert again["table_name"] == name
    assert run("threads", "--table", name, "--json").json == []


def test_on_aws_it_says_how_to_deploy_and_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://dynamodb.eu-west-1.amazonaws.com"
    monkeypatch.setattr(CommandContext, "client", SimpleNamespace(meta=SimpleNamespace(endpoint_url=address)))
    run("setup", "--table", "agents").fails(7, "make deploy", "anyway?")
