"""`cost`: what is stored, what a step takes as the engine counts it; and what a prune really frees."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from benchmarks.meter import Meter
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes, read_units, write_units
from langgraph.checkpoint.dynamodb.cli import output
from tests.cli.conftest import Run, config
from tests.support import dynamodb_values, graphs
from tests.support.checkpoints import Conversation, all_items, noise

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


def test_items_are_as_large_as_dynamodb_says(table: str, client: DynamoDBClient) -> None:
    stored = all_items(client, table)
    assert [item_bytes(each) for each in stored] == [dynamodb_values.item_bytes(each) for each in stored]


@pytest.mark.parametrize("number", ["0", "-12.5", "1763800000", "100", "0.001"])
def test_all_kinds_of_values_are_measured(number: str) -> None:
    item: Any = {"n": {"N": number}, "flag": {"BOOL": True}, "set": {"BS": [b"12345678"]}, "é": {"S": "é"}}
    assert item_bytes(item) == dynamodb_values.item_bytes(item)


def test_units_are_counted_up() -> None:
    assert [write_units(each) for each in (0, 1024, 1025)] == [1, 1, 2]
    assert [read_units(each) for each in (1, 4096, 4097)] == [0.5, 0.5, 1.0]
    assert read_units(4097, consistent=True) == 2.0


def test_a_threads_items_segments_and_steps(run: Run, table: str, client: DynamoDBClient) -> None:
    found = run("cost", "chat", "--table", table, "--json").json
    own = [each for each in all_items(client, table) if each["PK"]["S"] == "chat#"]
    assert found["total"]["items"] == len(own)
    assert found["total"]["bytes"] == sum(map(item_bytes, own))
    assert found["items"]["checkpoints"]["items"] == found["steps"] == 7
    segments = found["segments"]
    assert (
        sum(each["items"] for each in segments.values())
        == found["items"].get("segments", {"items": 0})["items"]
    )
    assert "mean of 7 steps: " in run("cost", "chat", "--table", table).out


def test_the_whole_table_is_measured_after_a_word_on_what_that_costs(run: Run, table: str) -> None:
    ended = run("cost", "--table", table, "--json")
    assert ended.json["threads"] == 4
    assert "Scanning table" in ended.err
    assert {"checkpoints", "pending writes", "namespace entries", "thread items"} <= ended.json[
        "items"
    ].keys()


def test_steps_cost_what_the_engine_counted(run: Run, make_table: Callable[[], str], engine: Engine) -> None:
    table, meter = make_table(), Meter()
    session = meter.watch(boto3.session.Session())
    with DynamoDBSaver(table, session=session, endpoint_url=engine.endpoint_url) as saver:
        for turn in range(4):
            graphs.agent(saver).invoke({"messages": [("user", f"turn {turn}")]}, config("metered"))
    found = run("cost", "metered", "--table", table, "--json").json
    counted = round(found["mean_step"]["write_units"] * found["steps"])
    # The thread's own item, and what a process does once.
    assert counted <= meter.total.write_units <= counted + 3


def test_a_prune_frees_what_was_said(
    run: Run, make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver]
) -> None:
    table = make_table()
    saver = open_saver(table)
    conversation = Conversation(saver, "pruned")
    rng = random.Random(1)
    for step in range(6):
        conversation.put(large=noise(40_000, step), log=[rng.random() for _ in range(200 * step)])
    before = run("cost", "pruned", "--table", table, "--json").json
    freed = run("prune", "pruned", "--table", table, "--keep-last", "2", "--dry-run", "--json").json
    saver.prune(["pruned"], strategy="keep_last", keep_last=2)
    after = run("cost", "pruned", "--table", table, "--json").json
    # One head lost its parent.
    assert freed["checkpoints"] == 4
    assert before["total"]["items"] - freed["items"] == after["total"]["items"]
    difference = before["total"]["bytes"] - freed["bytes"] - after["total"]["bytes"]
    assert 0 <= difference < 100


def test_what_is_not_there_is_not_found_and_an_empty_table_costs_nothing(
    run: Run, make_table: Callable[[], str]
) -> None:
    table = make_table()
    ended = run("cost", "nobody", "--table", table)
    assert ended.code == 3
    assert "nobody could not be read: the table has no such thread" in ended.err
    assert run("cost", "--table", table, "--json").json["total"]["items"] == 0
    assert "all" in run("cost", "--table", table).out


def test_a_damaged_thread_is_told_and_the_others_are_counted(
    run: Run, make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver], client: DynamoDBClient
) -> None:
    table = make_table()
    saver = open_saver(table)
    for thread in ("whole", "unreadable", "incomplete"):
        Conversation(saver, thread).put(large=noise(40_000))
    key = {"PK": {"S": "unreadable#"}, "SK": {"S": "S#damaged"}}
    client.put_item(TableName=table, Item=key)
    segment = next(each for each in all_items(client, table, begins="S#") if each["PK"]["S"] == "incomplete#")
    client.delete_item(TableName=table, Key={"PK": segment["PK"], "SK": segment["SK"]})
    ended = run("cost", "--table", table, "--json")
    assert ended.code == 8
    assert "1 segment that checkpoints name cannot be found" in ended.err
    assert "unreadable could not be read: item PK='unreadable#'" in ended.err
    assert (ended.json["threads"], ended.json["missing_segments"]) == (2, 1)
    assert ended.json["failed"].keys() == {"unreadable"}
    assert run("show", "incomplete", "--table", table).code == 5


def test_it_can_be_read_in_sixty_columns(run: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(output, "_PIPE_COLUMNS", 60)
    ended = run("cost", "nested", "--table", table)
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 60
    # No number is broken.
    assert len([line for line in lines if re.search(r" 0\.\d{6}$", line)]) >= 4
