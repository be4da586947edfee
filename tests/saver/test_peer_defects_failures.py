"""Defects found in other DynamoDB savers, as in `test_peer_defects_answers`: what a failure leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerError,
    CheckpointerUnavailableError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format.limits import (
    BACKOFF_SECONDS_MAX,
    CLAIM_SECONDS,
    ORPHAN_SECONDS,
    RETRY_SECONDS,
)
from langgraph.checkpoint.dynamodb._runtime import drivers
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from tests.support.change import change_storage
from tests.support.checkpoints import (
    METADATA,
    all_items,
    checkpoint_of,
    noise,
    store,
    stored_values,
    thread_config,
)
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

# Requests that one deletion or put of these tests makes at most; it bounds the loops that break each in turn.
REQUESTS_MAX = 60


@pytest.mark.parametrize("response_is_lost", [False, True], ids=["not sent", "response lost"])
def test_defect_01_a_failed_put_leaves_no_checkpoint_without_its_payload(
    saver: DynamoDBSaver, traffic: Traffic, *, response_is_lost: bool
) -> None:
    """A peer wrote the row before the payload: when the payload failed, the row stayed, and the older state was read.

    Whichever request of a put fails: the checkpoint is there as a whole or not at all, and it is the put's
    last write that makes it appear.
    """
    old, new = {"big": noise(100_000)}, {"big": noise(100_000, seed=1)}
    for number in range(REQUESTS_MAX):
        thread_id = f"thread-{number}"
        parent = store(saver, thread_config(thread_id), "1", old)
        traffic.break_request(number, response_is_lost=response_is_lost)
        try:
            store(saver, parent, "2", new)
        except CheckpointerUnavailableError:
            head_was_written = "PutItem" in traffic.operations[: number + response_is_lost]
        else:
            break
        traffic.clear()
        found = saver.get_tuple(thread_config(thread_id, checkpoint_id="2"))
        assert (found is not None) == head_was_written
        assert stored_values(saver, thread_config(thread_id)) == (new if head_was_written else old)
    assert len(traffic.requests) == number, "the last round is the one in which nothing was broken"
    writes = [each for each in traffic.operations if each in {"PutItem", "BatchWriteItem", "UpdateItem"}]
    assert "BatchWriteItem" in writes
    assert writes.index("PutItem") == len(writes) - 1


# Defect 12


def _hold_back(client: DynamoDBClient, operation: str, times: int) -> None:
    """Let the engine see only the first item of so many batches, and report the others as unprocessed."""
    left = iter(range(times))

    def shorten(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if next(left, None) is None:
            return
        ((table_name, batch),) = params["RequestItems"].items()
        if operation == "BatchGetItem":
            first, rest = {**batch, "Keys": batch["Keys"][:1]}, {**batch, "Keys": batch["Keys"][1:]}
        else:
            first, rest = batch[:1], batch[1:]
        params["RequestItems"] = {table_name: first}
        context["held_back"] = {table_name: rest}

    def report(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if "held_back" in context:
            name = "UnprocessedKeys" if operation == "BatchGetItem" else "UnprocessedItems"
            parsed[name] = context["held_back"]

    client.meta.events.register(f"before-parameter-build.dynamodb.{operation}", shorten)
    client.meta.events.register(f"after-call.dynamodb.{operation}", report)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the seconds that the blocking driver would have waited; it does not."""
    waits: list[float] = []
    monkeypatch.setattr(drivers, "time", SimpleNamespace(sleep=waits.append))
    return waits


def test_defect_12_what_a_batch_leaves_unprocessed_is_sent_again(
    saver: DynamoDBSaver,
    own_client: DynamoDBClient,
    client: DynamoDBClient,
    table_name: str,
    waits: list[float],
) -> None:
    """Peers dropped what DynamoDB reported as unprocessed, or sent it again without end and without a pause.

    It is sent again after a pause until it is done: writes, reads and deletes alike.
    """
    _hold_back(own_client, "BatchWriteItem", 3)
    _hold_back(own_client, "BatchGetItem", 3)
    reader = DynamoDBSaver(table_name, client=own_client)
    values = {"big": noise(150_000)}
    parent = store(saver, thread_config(), "1", values)
    assert stored_values(reader, thread_config()) == values
    # What it has not read before, it reads by its keys.
    values["more"] = noise(150_000, 1)
    store(saver, parent, "2", values)
    written = len(waits)
    assert written > 0
    assert stored_values(reader, thread_config()) == values
    read = len(waits)
    assert read > written
    _hold_back(own_client, "BatchWriteItem", 3)
    saver.delete_thread("thread-1")
    assert len(waits) > read
    assert all_items(client, table_name) == []


def test_defect_12_a_put_whose_batch_is_never_processed_fails_and_stores_no_checkpoint(
    saver: DynamoDBSaver, own_client: DynamoDBClient, waits: list[float]
) -> None:
    """The pauses have an end, and then the put fails: what was not written is not passed over."""
    _hold_back(own_client, "BatchWriteItem", 1_000_000)
    with pytest.raises(CheckpointerError, match=r"\d+ of \d+ items of a batch_write_item .* unprocessed"):
        store(saver, thread_config(), "1", {"big": noise(1_000_000)})
    assert sum(set(waits)) <= RETRY_SECONDS
    assert saver.get_tuple(thread_config()) is None


def _answer_all(operation: Op[Any], answer: Callable[[Call], Any]) -> Any:
    """Step an operation to its end with made-up answers; one that would go on for ever returns nothing."""
    calls = next(operation)
    for _ in range(REQUESTS_MAX):
        calls = operation.send([answer(call) for call in calls if isinstance(call, Call)])


class _StuckTable:
    """Answers batches for a table that processes some items and then nothing more."""

    def __init__(self, processed: list[Any]) -> None:
        self._processed = processed
        self.delays: list[float] = []

    def __call__(self, call: Call) -> dict[str, Any]:
        self.delays.append(call.delay_seconds)
        ((name, batch),) = call.params["RequestItems"].items()
        if call.method == "batch_get_item":
            left = {"Keys": [each for each in batch["Keys"] if each not in self._processed]}
            return {"Responses": {name: self._processed}, "UnprocessedKeys": {name: left}}
        left_writes = [each for each in batch if each["PutRequest"]["Item"] not in self._processed]
        return {"UnprocessedItems": {name: left_writes}}


@pytest.mark.parametrize("retry_seconds", [RETRY_SECONDS, 20])
@pytest.mark.parametrize("method", ["batch_write_item", "batch_get_item"])
def test_defect_12_the_pauses_grow_have_an_end_and_the_error_says_how_much_was_left(
    method: str, retry_seconds: float
) -> None:
    """The operation is stepped by hand, so that a minute of pauses takes none."""
    table = Table("the-table", retry_seconds=retry_seconds)
    keys = [{"PK": {"S": "p"}, "SK": {"S": str(number)}} for number in range(25)]
    stuck = _StuckTable(keys[:10])
    operation: Op[Any] = (
        table.batch_write(puts=keys)
        if method == "batch_write_item"
        else table.batch_get(keys, consistent=True)
    )
    with pytest.raises(CheckpointerError, match=f"the-table: 15 of 25 items of a {method}.*capacity"):
        _answer_all(operation, stuck)
    first, *pauses = stuck.delays
    assert first == 0
    assert all(0 < each <= BACKOFF_SECONDS_MAX for each in pauses)
    # The last one takes what is left of the time.
    assert max(pauses[:3]) < min(pauses[-5:-1])
    assert retry_seconds - BACKOFF_SECONDS_MAX <= sum(pauses) <= retry_seconds


def test_defect_12_a_batch_of_which_nothing_at_all_was_read_is_sent_again() -> None:
    """The answer then names no table among its responses."""
    key = {"PK": {"S": "p"}, "SK": {"S": "s"}}
    operation = Table("the-table").batch_get([key], consistent=True)
    (call,) = next(operation)
    assert isinstance(call, Call)
    again = operation.send([{"Responses": {}, "UnprocessedKeys": call.params["RequestItems"]}])
    assert [each.params for each in again if isinstance(each, Call)] == [call.params]


# Defect 14


def _kinds(items: list[dict[str, Any]]) -> Counter[str]:
    """How many items of each kind there are."""
    return Counter(item["SK"]["S"].split("#")[0] for item in items)


def _fill(saver: DynamoDBSaver) -> None:
    for namespace in ("", "sub"):
        config = thread_config(namespace=namespace)
        for number, size in enumerate((70_000, 100)):
            config = store(saver, config, str(number), {"big": noise(20_000, number)})
            saver.put_writes(config, [("channel", noise(size, number))], "task")


@pytest.mark.parametrize(
    ("operation", "argument", "kept", "retry_seconds"),
    # A pruned namespace keeps the head of its newest checkpoint, with the writes of one task. What a prune left
    # behind could belong to a put that is going on, so it is removed once it is old.
    [
        ("delete_thread", "thread-1", 0, CLAIM_SECONDS),
        pytest.param("prune", ["thread-1"], 2 * 2, ORPHAN_SECONDS, marks=pytest.mark.search),
    ],
)
def test_defect_14_a_deletion_that_fails_says_so_and_can_be_completed(
    saver: DynamoDBSaver,
    traffic: Traffic,
    client: DynamoDBClient,
    table_name: str,
    operation: str,
    argument: Any,
    kept: int,
    retry_seconds: int,
) -> None:
    """A peer only logged that a payload could not be deleted, and then deleted the row: an orphan for ever.

    Whichever request of a deletion fails, the caller is told, and the same call made again leaves nothing
    behind: nothing of a deleted thread, and of a pruned one what the kept checkpoints need.
    """
    delete: Callable[[], None] = partial(getattr(saver, operation), argument)
    _fill(saver)
    delete()
    expected = _kinds(all_items(client, table_name))
    assert expected["C"] == kept
    assert bool(expected) == bool(kept)
    saver.delete_thread("thread-1")
    for number in range(REQUESTS_MAX):
        _fill(saver)
        traffic.break_request(number)
        try:
            delete()
        except CheckpointerUnavailableError:
            pass
        else:
            break
        traffic.clear()
        # A deletion that failed keeps others out until its claim has run out.
        change_storage(saver, clock=_later(saver.storage.clock, retry_seconds + 1))
        delete()
        assert _kinds(all_items(client, table_name)) == expected, f"request {number}"
        saver.delete_thread("thread-1")
    assert len(traffic.requests) == number, "the last round is the one in which nothing was broken"


def _later(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    return lambda: clock() + seconds


# Defect 15


def test_defect_15_a_payload_that_is_missing_is_an_error(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    """A peer read a checkpoint whose payload had gone as no checkpoint at all, and the thread began anew.

    It is an error that names the item, by whichever way the checkpoint is asked for; never an older state.
    """
    parent = store(saver, thread_config(), "1", {"small": 1})
    config = store(saver, parent, "2", {"big": noise(50_000)})
    saver.put_writes(parent, [("channel", noise(100_000))], "task")
    assert stored_values(saver, thread_config()) == {"big": noise(50_000)}
    reader = DynamoDBSaver(table_name, client=client)
    segments = [each for each in all_items(client, table_name) if each["SK"]["S"].startswith("S#")]
    for segment in segments:
        client.delete_item(TableName=table_name, Key={"PK": segment["PK"], "SK": segment["SK"]})

    asked: list[Callable[[], Any]] = [
        lambda: reader.get_tuple(thread_config()),
        lambda: reader.get_tuple(config),
        lambda: reader.get_tuple(parent),
        lambda: list(reader.list(thread_config())),
        lambda: list(reader.list(thread_config(), limit=1)),
    ]
    for ask in asked:
        with pytest.raises(CheckpointCorruptionError, match=r"PK='thread-1#' SK='C#[12]#.*missing.*restore"):
            ask()
    with pytest.raises(CheckpointCorruptionError, match="SK='C#2#'"):
        DynamoDBSaver(table_name, client=client).put(config, checkpoint_of("3", {"small": 2}), METADATA, {})
