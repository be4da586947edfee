"""One test for each defect found in other DynamoDB savers, none of which the public conformance suite catches.

Each docstring says what went wrong there and what has to hold here.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import writes_sort_key
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerError,
    DynamoDBSaver,
    _drivers,
)
from langgraph.checkpoint.dynamodb._limits import (
    BACKOFF_SECONDS_MAX,
    BACKOFF_SECONDS_TOTAL,
    CLAIM_SECONDS,
    ORPHAN_SECONDS,
)
from langgraph.checkpoint.dynamodb._memory import Memory
from langgraph.checkpoint.dynamodb._requests import Table
from langgraph.checkpoint.dynamodb._steps import Call, Op
from tests.support.samples import METADATA, checkpoint_of, config_of, everything_in, store, values_of
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

DATA_PLANE = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem"}
# Requests that one deletion or put of these tests makes at most; it bounds the loops that break each in turn.
REQUESTS_MAX = 60


def _noise(size: int, seed: int = 0) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


@pytest.fixture
def own_client(engine: Engine) -> Iterator[DynamoDBClient]:
    """Give a client that is the saver's alone, and that does not try anything twice by itself."""
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as dynamodb:
        yield dynamodb


@pytest.fixture
def traffic(own_client: DynamoDBClient) -> Traffic:
    """Give what the saver of the test sends."""
    return Traffic(own_client.meta.events)


@pytest.fixture
def saver(own_client: DynamoDBClient, table_name: str, traffic: Traffic) -> Iterator[DynamoDBSaver]:
    """Give a saver whose every request is recorded."""
    del traffic
    with DynamoDBSaver(table_name, client=own_client) as saver:
        yield saver


@pytest.mark.parametrize("response_is_lost", [False, True], ids=["not sent", "response lost"])
def test_defect_01_a_failed_put_leaves_no_checkpoint_without_its_payload(
    saver: DynamoDBSaver, traffic: Traffic, *, response_is_lost: bool
) -> None:
    """A peer wrote the row before the payload: when the payload failed, the row stayed, and the older state was read.

    Whichever request of a put fails: the checkpoint is there as a whole or not at all, and it is the put's
    last write that makes it appear.
    """
    old, new = {"big": _noise(100_000)}, {"big": _noise(100_000, seed=1)}
    for number in range(REQUESTS_MAX):
        thread_id = f"thread-{number}"
        parent = store(saver, config_of(thread_id), "1", old)
        traffic.break_request(number, response_is_lost=response_is_lost)
        try:
            store(saver, parent, "2", new)
        except EndpointConnectionError:
            head_was_written = "PutItem" in traffic.operations[: number + response_is_lost]
        else:
            break
        traffic.clear()
        found = saver.get_tuple(config_of(thread_id, checkpoint_id="2"))
        assert (found is not None) == head_was_written
        assert values_of(saver, config_of(thread_id)) == (new if head_was_written else old)
    assert len(traffic.requests) == number, "the last round is the one in which nothing was broken"
    writes = [each for each in traffic.operations if each in {"PutItem", "BatchWriteItem", "UpdateItem"}]
    assert "BatchWriteItem" in writes
    assert writes.index("PutItem") == len(writes) - 1


def test_defect_02_writes_come_back_in_the_order_in_which_a_run_applies_them(saver: DynamoDBSaver) -> None:
    """A peer sorted writes as text (0, 1, 10, 11, 2), by task id, and did not look at the task path.

    The order is LangGraph's `writes_sort_key`: the task path first, then the task, then the number.
    """
    config = store(saver, config_of(), "1", {"a": 1})
    paths = {"task-a": "~__pregel_pull, z", "task-c": "~__pregel_pull, b", "task-b": "~__pregel_pull, b"}
    for task_id, task_path in paths.items():
        saver.put_writes(config, [("channel", number) for number in range(12)], task_id, task_path)
    found = saver.get_tuple(config)
    assert found is not None
    expected = sorted(
        ((task_id, "channel", number) for task_id in paths for number in range(12)),
        key=lambda write: writes_sort_key(paths[write[0]], write[0], write[2]),
    )
    assert found.pending_writes == expected
    assert [write[0] for write in expected[::12]] == ["task-b", "task-c", "task-a"]


def test_defect_03_requests_do_not_grow_with_the_writes_or_the_checkpoints_of_a_page(
    saver: DynamoDBSaver, traffic: Traffic
) -> None:
    """A peer made 24 requests for 12 writes, 15 to read them back, and 21 to list five checkpoints.

    Here the writes of a call are one request, a checkpoint with its writes is one, and so is a short list.
    """
    config = config_of()
    for number in range(5):
        config = store(saver, config, str(number), {"a": number})
    traffic.clear()
    saver.put_writes(config, [("channel", number) for number in range(12)], "task")
    assert traffic.operations == ["UpdateItem"]
    traffic.clear()
    found = saver.get_tuple(config_of())
    assert found is not None
    assert len(found.pending_writes or ()) == 12
    assert traffic.operations == ["Query"]
    traffic.clear()
    assert len(list(saver.list(config_of(), limit=5))) == 5
    assert traffic.operations == ["Query"]


@pytest.mark.parametrize("separator", ["#", "%", "%23", "|", ":", " ", "\0", "$", "/"])
def test_defect_04_no_id_reaches_into_another_namespace_or_thread(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, separator: str
) -> None:
    """A peer joined ids by `#` as they were, so that reading namespace `x` gave the checkpoint of `x#y`.

    Ids are data: neither a read, a list nor a deletion takes one for a part or a prefix of another.
    """
    joined = f"x{separator}y"
    places = [("t", joined), (joined, ""), (f"t{separator}x", "y"), ("t", f"{joined}{separator}")]
    for thread_id, namespace in places:
        store(saver, config_of(thread_id, namespace), joined, {"at": [thread_id, namespace]})
    for config in (config_of("t", "x"), config_of("x"), config_of("t"), config_of("t", "y")):
        assert saver.get_tuple(config) is None
        assert list(saver.list(config)) == []
    assert saver.get_tuple(config_of("t", joined, "x")) is None
    for thread_id in ("x", f"t{separator}", f"x{separator}"):
        saver.delete_thread(thread_id)
    for thread_id, namespace in places:
        assert values_of(saver, config_of(thread_id, namespace)) == {"at": [thread_id, namespace]}
        assert values_of(saver, config_of(thread_id, namespace, joined)) == {"at": [thread_id, namespace]}
    for thread_id, _ in places:
        saver.delete_thread(thread_id)
    assert everything_in(client, table_name) == []


@dataclass
class Place:
    """A type of an application's state, which LangGraph's serializer revives only where it is allowed."""

    name: str


ALLOWED_PLACE = (Place.__module__, Place.__name__)


def test_defect_05_a_clone_reads_with_its_own_allowlist(saver: DynamoDBSaver) -> None:
    """A peer kept the serializer it was made with, so that a clone ignored the allowlist that it was given.

    A clone reads as its own serializer says, the stricter one as well as the more generous one.
    """
    config = store(saver, config_of(), "1", {"place": Place("here")})
    assert values_of(saver, config) == {"place": Place("here")}

    # This is how LangGraph makes its clones: `with_allowlist` copies the saver and replaces `serde`.
    strict = copy.copy(saver)
    strict.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert values_of(strict, config) == {"place": {"name": "here"}}

    generous = strict.with_allowlist([ALLOWED_PLACE])
    assert isinstance(generous, DynamoDBSaver)
    assert values_of(generous, config) == {"place": Place("here")}
    assert values_of(strict, config) == {"place": {"name": "here"}}


def test_defect_06_the_caller_s_metadata_is_added_and_replaces_nothing(saver: DynamoDBSaver) -> None:
    """A peer let `config["metadata"]` replace `source` and `step`, and left the configurable keys out.

    What LangGraph says of a checkpoint stays; what the caller says is added to it.
    """
    config: RunnableConfig = {
        "configurable": {"thread_id": "thread-1", "checkpoint_ns": "", "tenant": "acme", "step": -7},
        "metadata": {"source": "forged", "step": 99, "user": "ann"},
    }
    stored = saver.put(config, checkpoint_of("1", {}), {"source": "loop", "step": 3, "parents": {}}, {})
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata == {"source": "loop", "step": 3, "parents": {}, "tenant": "acme", "user": "ann"}
    assert [each.metadata for each in saver.list(config_of(), filter={"step": 3, "tenant": "acme"})] == [
        found.metadata
    ]


def test_defect_07_a_list_of_all_namespaces_is_newest_first(saver: DynamoDBSaver) -> None:
    """A peer listed one namespace after the other, so that the first result was not the newest checkpoint.

    Without a namespace in the config, checkpoints of all of them come in the order of their ids.
    """
    namespaces = ("b", "", "a", "a|b")
    ids = [f"{number:02}" for number in range(20)]
    for number, checkpoint_id in enumerate(ids):
        store(saver, config_of(namespace=namespaces[number % 4]), checkpoint_id, {})
    everywhere: RunnableConfig = {"configurable": {"thread_id": "thread-1"}}
    listed = [each.config["configurable"] for each in saver.list(everywhere)]
    assert [each["checkpoint_id"] for each in listed] == ids[::-1]
    assert [each["checkpoint_ns"] for each in listed] == [namespaces[int(each) % 4] for each in ids[::-1]]
    newest = saver.list(everywhere, limit=5)
    assert [each.config["configurable"]["checkpoint_id"] for each in newest] == ids[:-6:-1]


def test_defect_08_the_limit_counts_what_the_filter_lets_through(saver: DynamoDBSaver) -> None:
    """Peers gave the limit to DynamoDB, before their filter: one result was asked for, and none came.

    The limit counts checkpoints that match, however far back they are.
    """
    for number in range(40):
        store(saver, config_of(), f"{number:02}", {}, kind="rare" if number in (0, 2) else "common")

    def ids(limit: int) -> list[str]:
        found = saver.list(config_of(), filter={"kind": "rare"}, limit=limit)
        return [each.config["configurable"]["checkpoint_id"] for each in found]

    assert ids(1) == ["02"]
    assert ids(2) == ["02", "00"]
    assert ids(5) == ["02", "00"]


def test_defect_09_what_does_not_fit_into_a_page_is_read_too(
    saver: DynamoDBSaver, traffic: Traffic, client: DynamoDBClient, table_name: str
) -> None:
    """A peer read the first megabyte of a query only: of six large checkpoints three came back.

    Every page is read: by a list, by the copy and by the deletion of a thread.
    """
    # Values below the size of a segment stay in the head, and a head holds up to 32 KiB of them.
    values = {f"channel-{number}": _noise(3900, number) for number in range(8)}
    ids = [f"{number:02}" for number in range(60)]
    for checkpoint_id in ids:
        # Another first byte makes every value of this checkpoint new.
        store(
            saver,
            config_of(),
            checkpoint_id,
            {name: checkpoint_id.encode() + v for name, v in values.items()},
        )
    assert sum(len(item["body"]["B"]) for item in everything_in(client, table_name) if "body" in item) > 2**20

    traffic.clear()
    listed = list(saver.list(config_of()))
    assert [each.config["configurable"]["checkpoint_id"] for each in listed] == ids[::-1]
    assert all(
        each.checkpoint["channel_values"]["channel-7"]
        == each.config["configurable"]["checkpoint_id"].encode() + values["channel-7"]
        for each in listed
    )
    assert traffic.operations.count("Query") > 1

    saver.copy_thread("thread-1", "copy")
    assert len(list(saver.list(config_of("copy")))) == len(ids)
    saver.delete_thread("thread-1")
    saver.delete_thread("copy")
    assert everything_in(client, table_name) == []


@pytest.mark.parametrize("special", [ERROR, INTERRUPT, RESUME])
def test_defect_10_a_special_write_takes_no_regular_write_s_place(saver: DynamoDBSaver, special: str) -> None:
    """A peer numbered every write by its position, so that an interrupt replaced the first write of its task.

    Special writes have places of their own, where the last one stays; of regular ones the first stays.
    """
    config = store(saver, config_of(), "1", {})
    saver.put_writes(config, [("channel", "first"), ("channel", "second")], "task")
    saver.put_writes(config, [(special, "earlier")], "task")
    saver.put_writes(config, [(special, "later")], "task")
    saver.put_writes(config, [("channel", "repeated"), ("channel", "repeated"), ("channel", "third")], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [
        ("task", special, "later"),
        ("task", "channel", "first"),
        ("task", "channel", "second"),
        ("task", "channel", "third"),
    ]


def test_defect_11_one_saver_serves_one_event_loop_after_the_other(
    engine: Engine, table_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A peer kept its async client, so that the second `asyncio.run` ended with "Event loop is closed".

    A saver of module level, as a Lambda function has it, works on every loop that comes, with native async.
    """
    saver = DynamoDBSaver(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name)

    async def step(number: int) -> int:
        config = config_of(checkpoint_id=str(number - 1) if number else None)
        checkpoint = checkpoint_of(str(number), {"number": number, "big": _noise(50_000)})
        await saver.aput(config, checkpoint, METADATA, checkpoint["channel_versions"])
        return len([each async for each in saver.alist(config_of())])

    assert [asyncio.run(step(number)) for number in range(3)] == [1, 2, 3]
    assert "in threads" not in caplog.text


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
    monkeypatch.setattr(_drivers, "time", SimpleNamespace(sleep=waits.append))
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
    values = {"big": _noise(150_000)}
    store(saver, config_of(), "1", values)
    written = len(waits)
    assert written > 0
    assert values_of(saver, config_of()) == values
    read = len(waits)
    assert read > written
    _hold_back(own_client, "BatchWriteItem", 3)
    saver.delete_thread("thread-1")
    assert len(waits) > read
    assert everything_in(client, table_name) == []


def test_defect_12_a_put_whose_batch_is_never_processed_fails_and_stores_no_checkpoint(
    saver: DynamoDBSaver, own_client: DynamoDBClient, waits: list[float]
) -> None:
    """The pauses have an end, and then the put fails: what was not written is not passed over."""
    _hold_back(own_client, "BatchWriteItem", 1_000_000)
    with pytest.raises(CheckpointerError, match=r"\d+ of \d+ items of a batch_write_item .* unprocessed"):
        store(saver, config_of(), "1", {"big": _noise(1_000_000)})
    assert sum(set(waits)) <= BACKOFF_SECONDS_TOTAL
    assert saver.get_tuple(config_of()) is None


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


@pytest.mark.parametrize("method", ["batch_write_item", "batch_get_item"])
def test_defect_12_the_pauses_grow_have_an_end_and_the_error_says_how_much_was_left(method: str) -> None:
    """The operation is stepped by hand, so that a minute of pauses takes none."""
    table = Table("the-table", Memory(0))
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
    assert max(pauses[:3]) < min(pauses[-4:])
    assert BACKOFF_SECONDS_TOTAL - BACKOFF_SECONDS_MAX <= sum(pauses) <= BACKOFF_SECONDS_TOTAL


def test_defect_12_a_batch_of_which_nothing_at_all_was_read_is_sent_again() -> None:
    """The answer then names no table among its responses."""
    key = {"PK": {"S": "p"}, "SK": {"S": "s"}}
    operation = Table("the-table", Memory(0)).batch_get([key], consistent=True)
    (call,) = next(operation)
    assert isinstance(call, Call)
    again = operation.send([{"Responses": {}, "UnprocessedKeys": call.params["RequestItems"]}])
    assert [each.params for each in again if isinstance(each, Call)] == [call.params]


# Defect 13


class _State(TypedDict):
    messages: Annotated[list[str], operator.add]


def _agent(saver: DynamoDBSaver) -> Any:
    """Build an agent that calls a tool, asks a person, and answers."""

    def model(state: _State) -> dict[str, list[str]]:
        return {"messages": [f"call {len(state['messages'])}"]}

    def tool(state: _State) -> dict[str, list[str]]:
        del state
        return {"messages": ["x" * 20_000, str(interrupt("go on?"))]}

    def route(state: _State) -> str:
        return "tool" if len(state["messages"]) < 3 else END

    builder = StateGraph(_State)
    builder.add_node("model", model)
    builder.add_node("tool", tool)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", route, ["tool", END])
    builder.add_edge("tool", "model")
    return builder.compile(checkpointer=saver)


def test_defect_13_an_agent_needs_permissions_for_items_only(
    engine: Engine, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer's constructor wrote the life-cycle rules of a bucket, which takes an administrator's permissions.

    The constructor asks for nothing, and an agent's run, its history, its forks and its deletion are requests
    for items of one table, and of no other service.
    """
    session = boto3.Session()
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    traffic = Traffic(session.events)
    saver = DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url, ttl_seconds=3600)
    assert traffic.requests == []
    with saver:
        agent = _agent(saver)
        config = config_of()
        assert "__interrupt__" in agent.invoke({"messages": ["hello"]}, config)
        answer = agent.invoke(Command(resume="yes"), config)
        assert answer["messages"][-2:] == ["yes", "call 4"]
        history = list(agent.get_state_history(config))
        agent.update_state(history[2].config, {"messages": ["another way"]})
        saver.copy_thread("thread-1", "copy")
        saver.prune(["copy"])
        saver.delete_thread("copy")
        saver.delete_thread("thread-1")
    assert {request.service for request in traffic.requests} == {"dynamodb"}
    assert set(traffic.operations) <= DATA_PLANE
    tables = {request.params.get("TableName") for request in traffic.requests} - {None}
    batches = {name for request in traffic.requests for name in request.params.get("RequestItems", ())}
    assert tables | batches == {table_name}


# Defect 14


def _kinds(items: list[dict[str, Any]]) -> Counter[str]:
    """How many items of each kind there are."""
    return Counter(item["SK"]["S"].split("#")[0] for item in items)


def _fill(saver: DynamoDBSaver) -> None:
    for namespace in ("", "sub"):
        config = config_of(namespace=namespace)
        for number, size in enumerate((70_000, 100)):
            config = store(saver, config, str(number), {"big": _noise(20_000, number)})
            saver.put_writes(config, [("channel", _noise(size, number))], "task")


@pytest.mark.parametrize(
    ("operation", "argument", "kept", "retry_seconds"),
    # A pruned namespace keeps the head of its newest checkpoint, with the writes of one task. What a prune left
    # behind could belong to a put that is going on, so it is removed once it is old.
    [("delete_thread", "thread-1", 0, CLAIM_SECONDS), ("prune", ["thread-1"], 2 * 2, ORPHAN_SECONDS)],
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
    expected = _kinds(everything_in(client, table_name))
    assert expected["C"] == kept
    assert bool(expected) == bool(kept)
    saver.delete_thread("thread-1")
    for number in range(REQUESTS_MAX):
        _fill(saver)
        traffic.break_request(number)
        try:
            delete()
        except EndpointConnectionError:
            pass
        else:
            break
        traffic.clear()
        # A deletion that failed keeps others out until its claim has run out.
        saver._table = replace(saver._table, clock=_later(saver._table.clock, retry_seconds + 1))
        delete()
        assert _kinds(everything_in(client, table_name)) == expected, f"request {number}"
        saver.delete_thread("thread-1")
    assert len(traffic.requests) == number, "the last round is the one in which nothing was broken"


def _later(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    return lambda: clock() + seconds


# Defects 15 and 16


def test_defect_15_a_payload_that_is_missing_is_an_error(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    """A peer read a checkpoint whose payload had gone as no checkpoint at all, and the thread began anew.

    It is an error that names the item, by whichever way the checkpoint is asked for; never an older state.
    """
    parent = store(saver, config_of(), "1", {"small": 1})
    config = store(saver, parent, "2", {"big": _noise(50_000)})
    saver.put_writes(parent, [("channel", _noise(100_000))], "task")
    assert values_of(saver, config_of()) == {"big": _noise(50_000)}
    segments = [each for each in everything_in(client, table_name) if each["SK"]["S"].startswith("S#")]
    for segment in segments:
        client.delete_item(TableName=table_name, Key={"PK": segment["PK"], "SK": segment["SK"]})

    asked: list[Callable[[], Any]] = [
        lambda: saver.get_tuple(config_of()),
        lambda: saver.get_tuple(config),
        lambda: saver.get_tuple(parent),
        lambda: list(saver.list(config_of())),
        lambda: list(saver.list(config_of(), limit=1)),
    ]
    for ask in asked:
        with pytest.raises(CheckpointCorruptionError, match=r"PK='thread-1#' SK='C#[12]#.*missing.*restore"):
            ask()
    with pytest.raises(CheckpointCorruptionError, match="SK='C#2#'"):
        DynamoDBSaver(table_name, client=client).put(config, checkpoint_of("3", {"small": 2}), METADATA, {})


def _consistency(traffic: Traffic, operation: str) -> set[bool]:
    return {
        request.params.get("ConsistentRead", False)
        for request in traffic.requests
        if request.operation == operation
    }


@pytest.mark.parametrize("consistent_read", [None, False], ids=["default", "eventually"])
def test_defect_16_checkpoints_are_read_strongly_consistent_unless_that_is_switched_off(
    own_client: DynamoDBClient, table_name: str, traffic: Traffic, *, consistent_read: bool | None
) -> None:
    """A peer read eventually consistent: the next message found the state before the last, and forked the thread.

    Heads are read strongly consistent by default; the option gives that up for what a person asks to read,
    and never for what a put relies on.
    """
    options: dict[str, Any] = {} if consistent_read is None else {"consistent_read": consistent_read}
    writer = DynamoDBSaver(table_name, client=own_client, **options)
    first = store(writer, config_of(), "1", {"a": 1})
    traffic.clear()
    writer.get_tuple(config_of())
    writer.get_tuple(first)
    list(writer.list(config_of()))
    assert traffic.operations == ["Query"] * 3
    assert _consistency(traffic, "Query") == {consistent_read is None}

    # A saver that knows nothing yet reads the parent of what it is to store.
    traffic.clear()
    fresh = DynamoDBSaver(table_name, client=own_client, **options)
    fresh.put(first, checkpoint_of("2", {"a": 1}), METADATA, {})
    assert traffic.operations.count("GetItem") >= 2
    assert _consistency(traffic, "GetItem") == {True}
    writer.delete_thread("thread-1")
    assert _consistency(traffic, "Query") == {True}
