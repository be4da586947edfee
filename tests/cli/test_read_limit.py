"""`--max-read-units`: what a command reads stays within a rate, whichever part of it reads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from langgraph.checkpoint.dynamodb.cli.read_limit import ReadLimit
from langgraph.checkpoint.dynamodb.migrate import CapacityLimit
from tests.cli.conftest import Run
from tests.support.checkpoints import noise

pytestmark = pytest.mark.engines("dynamodb-local")


class Waits:
    """A clock that only waits move, for several OS threads."""

    def __init__(self) -> None:
        """Start at a time."""
        self.now = 100.0
        self._lock = threading.Lock()

    def __call__(self, seconds: float) -> None:
        """Wait."""
        with self._lock:
            self.now += seconds


def fill(client: Any, table_name: str) -> None:
    for number in range(3):
        item = {"PK": {"S": "thread#"}, "SK": {"S": f"S#{number}"}, "data": {"B": noise(100_000, number)}}
        client.put_item(TableName=table_name, Item=item)


def used(response: Any) -> float:
    found = response["ConsumedCapacity"]
    return sum(float(each["CapacityUnits"]) for each in (found if isinstance(found, list) else [found]))


def test_reads_stay_within_the_rate(own_client: Any, table_name: str) -> None:
    fill(own_client, table_name)
    waits = Waits()
    ReadLimit(CapacityLimit(10, clock=lambda: waits.now), wait=waits).apply(own_client)
    key = {"PK": {"S": "thread#"}, "SK": {"S": "T"}}
    units = [
        used(own_client.query(
            TableName=table_name,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": key["PK"]},
        )),
        used(own_client.get_item(TableName=table_name, Key=key)),
        used(own_client.batch_get_item(RequestItems={table_name: {"Keys": [key]}})),
        used(own_client.scan(TableName=table_name)),
    ]  # fmt: skip
    assert units[0] > 20
    own_client.get_item(TableName=table_name, Key=key)
    # The last one is not waited for yet.
    assert waits.now - 100 == pytest.approx(sum(units) / 10, abs=0.1)


def test_pages_side_by_side_do_not_start_together(own_client: Any, table_name: str) -> None:
    fill(own_client, table_name)
    waits = Waits()
    ReadLimit(CapacityLimit(10, clock=lambda: waits.now), wait=waits).apply(own_client)
    with ThreadPoolExecutor(4) as pool:
        parts = [
            pool.submit(own_client.scan, TableName=table_name, Segment=part, TotalSegments=4)
            for part in range(4)
        ]
        units = sum(used(each.result()) for each in parts)
    own_client.get_item(TableName=table_name, Key={"PK": {"S": "thread#"}, "SK": {"S": "T"}})
    assert waits.now - 100 >= units / 10 - 0.1


def test_writes_and_their_units_are_left_alone(own_client: Any, table_name: str) -> None:
    waits = Waits()
    ReadLimit(CapacityLimit(0.1, clock=lambda: waits.now), wait=waits).apply(own_client)
    for _ in range(3):
        item = {"PK": {"S": "thread#"}, "SK": {"S": "T"}}
        assert "ConsumedCapacity" not in own_client.put_item(TableName=table_name, Item=item)
    assert waits.now == 100


@pytest.mark.parametrize("command", ["threads", "cost", "verify --all", "prune --all --dry-run"])
def test_a_command_takes_it_and_says_how_long_a_scan_takes(run: Run, table: str, command: str) -> None:
    free = run(*command.split(), "--table", table, "--json")
    ended = run(*command.split(), "--table", table, "--max-read-units", "100000", "--json")
    assert ended.code == 0
    assert len(ended.json) == len(free.json)
    assert "At 100000 read units a second that takes 0 s or more." in ended.err


@pytest.mark.parametrize("rate", ["0", "-1", "much", "nan"])
def test_what_is_no_rate_is_refused(run: Run, table: str, rate: str) -> None:
    ended = run("threads", "--table", table, "--max-read-units", rate)
    assert ended.code == Exit.USAGE
    assert "--max-read-units" in ended.err


def test_an_endless_rate_is_refused(run: Run, table: str) -> None:
    ended = run("threads", "--table", table, "--max-read-units", "inf")
    assert ended.code == Exit.USAGE
    assert "inf units per second is not a rate; give a number above 0" in ended.err
