"""The managed policies of `infra/table.yaml`, proved by what the saver really sends."""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerConfigurationError
from tests.infra.authorization import Gate, actions_of, is_allowed, requests_of
from tests.infra.conftest import MakeSaver, contents, for_table, resources_of
from tests.infra.conversation import TOOL_RESULT_BYTES, aconverse, config_of, converse
from tests.infra.rendering import load, render
from tests.saver import test_conformance
from tests.support.checkpoints import Conversation, noise
from tests.support.sync_adapter import SyncAsAsync

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb import DynamoDBSaver

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

Saver: TypeAlias = BaseCheckpointSaver[Any]
SaverOf: TypeAlias = "Callable[..., DynamoDBSaver]"
Operation: TypeAlias = Callable[[Saver], Awaitable[object]]

STACK = render(load("table.yaml"))
POLICIES = {
    name: STACK.properties(f"{name}Policy")["PolicyDocument"]
    for name in ("Agent", "Runner", "Operator", "Reader")
}
DENIED = "AccessDeniedException"


def gate_of(policy: str, table_name: str) -> Gate:
    """A gate that lets through what one of the managed policies allows."""
    return Gate([for_table(POLICIES[policy], table_name)])


def both_sides(saver: Saver) -> list[Saver]:
    """The saver's async methods, and its sync ones under async names."""
    return [saver, SyncAsAsync(saver)]


async def listed(saver: Saver, thread_id: str | None, **options: Any) -> list[str]:
    """The ids of the checkpoints that `list` finds."""
    config = None if thread_id is None else config_of(thread_id)
    return [found.checkpoint["id"] async for found in saver.alist(config, **options)]


def remove_a_segment(client: DynamoDBClient, table_name: str, thread_id: str) -> None:
    """Damage a thread; whoever reads it has to look at the thread's own item to know that it is damage."""
    for item in contents(client, table_name):
        if item["PK"]["S"] == f"{thread_id}#" and item["SK"]["S"].startswith("S#"):
            client.delete_item(TableName=table_name, Key={"PK": item["PK"], "SK": item["SK"]})
            return
    pytest.fail(f"{thread_id} has no segment")


def talked_twice(saver: DynamoDBSaver) -> DynamoDBSaver:
    """Give a saver whose agent has had a run without an id, and one with one, of the same thread."""
    converse(saver, config_of("thread"))
    converse(saver, config_of("thread", run_id="run"))
    return saver


async def is_refused_and_changes_nothing(
    operation: Operation, saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    """An operation is denied, by sync methods and async ones, and the table is as it was."""
    before = contents(client, table_name)
    for side in both_sides(saver):
        with pytest.raises(CheckpointerConfigurationError, match=DENIED):
            await operation(side)
    assert contents(client, table_name) == before


async def sees_the_damage(sides: list[Saver], thread_id: str) -> None:
    """The savers say that the thread is damaged, and not that they may not look."""
    for side in sides:
        with pytest.raises(CheckpointCorruptionError):
            await side.aget_tuple(config_of(thread_id))


# Which calls the saver makes does not depend on who answers them, so one engine does for the long tests.
async def test_agent_policy_is_what_the_saver_calls_and_no_more(saver_of: SaverOf, table_name: str) -> None:
    gate = gate_of("Agent", table_name)

    def make_saver(**options: Any) -> DynamoDBSaver:
        return saver_of(gate, **options)

    for side in (test_conformance._async_side, SyncAsAsync):  # noqa: SLF001
        await test_conformance.test_conformance_is_full(make_saver, side, dict)
    expected = f"The tool returned {TOOL_RESULT_BYTES} characters."
    savers = [make_saver(), make_saver()]
    for run_id, saver in zip(("r-1", "r-2"), savers, strict=True):
        # Each run has a saver of its own, so the second one has to read what the first one stored.
        assert converse(saver, config_of("sync", run_id=run_id))[-1].content == expected
        assert (await aconverse(saver, config_of("async", run_id=run_id)))[-1].content == expected
    # And the first one what the second one has added.
    assert savers[0].get_tuple(config_of("sync")) is not None
    saver.delete_for_runs(["r-1"])
    await saver.adelete_thread("async")

    assert not gate.refused
    assert gate.allowed_actions() == actions_of(POLICIES["Agent"])
    assert {request.resource.partition("/index/")[2] for request in gate.allowed} == {"", "run_id-index"}


async def test_agent_policy_refuses_scans_and_administration(saver_of: SaverOf, table_name: str) -> None:
    gate = gate_of("Agent", table_name)
    saver = saver_of(gate)
    for side in both_sides(saver):
        with pytest.raises(CheckpointerConfigurationError, match="dynamodb:Scan"):
            await listed(side, None)
    with pytest.raises(CheckpointerConfigurationError, match=DENIED):
        saver.setup()
    with pytest.raises(CheckpointerConfigurationError, match=DENIED):
        await saver.asetup()
    assert not gate.allowed


def written(saver: Saver, content: str) -> Awaitable[object]:
    """Writes of a task whose checkpoint has not come yet."""
    config: RunnableConfig = {
        "configurable": {"thread_id": "thread", "checkpoint_ns": "", "checkpoint_id": "1"}
    }
    return saver.aput_writes(config, [("messages", content)], "task")


RUNS: dict[str, Operation] = {
    "put": lambda saver: saver.aput(
        {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}},
        empty_checkpoint(),
        {"source": "update", "step": 9, "parents": {}},
        {},
    ),
    "put_writes": lambda saver: written(saver, random.Random(0).randbytes(30_000).hex()),
    "get_tuple": lambda saver: saver.aget_tuple(config_of("thread")),
    "list": lambda saver: listed(saver, "thread"),
    "get_delta_channel_history": lambda saver: saver.aget_delta_channel_history(
        config=config_of("thread"), channels=["messages"]
    ),
    "copy_thread": lambda saver: saver.acopy_thread("thread", f"copy-{uuid.uuid4().hex}"),
}
DELETIONS: dict[str, Operation] = {
    "delete_thread": lambda saver: saver.adelete_thread("thread"),
    "delete_for_runs": lambda saver: saver.adelete_for_runs(["run"]),
    "prune": lambda saver: saver.aprune(["thread"]),
    "prune to nothing": lambda saver: saver.aprune(["thread"], strategy="delete"),
}
NOT_FOR_RUNNERS: dict[str, Operation] = {
    **DELETIONS,
    "list all threads": lambda saver: listed(saver, None),
    "list by run": lambda saver: listed(saver, None, filter={"run_id": "run"}),
}


async def test_runner_policy_runs_agents_and_allows_no_more(
    make_saver: MakeSaver, saver_of: SaverOf, client: DynamoDBClient, table_name: str
) -> None:
    gate = gate_of("Runner", table_name)
    expected = f"The tool returned {TOOL_RESULT_BYTES} characters."
    savers = [saver_of(gate), saver_of(gate)]
    for run_id, saver in zip(("r-1", "r-2"), savers, strict=True):
        assert converse(saver, config_of("thread", run_id=run_id))[-1].content == expected
        assert (await aconverse(saver, config_of("async", run_id=run_id)))[-1].content == expected
        with saver.thread_lock("thread"):
            assert converse(saver, config_of("thread"))[-1].content == expected
        async with saver.athread_lock("async"):
            await aconverse(saver, config_of("async"))
    assert savers[0].get_tuple(config_of("thread")) is not None
    # What one process has in its cache in part, it reads by keys.
    growing = Conversation(savers[1], "growing")
    growing.put(big=noise(60_000))
    assert savers[0].get_tuple(growing.config) is not None
    growing.put(more=noise(60_000, 1))
    assert savers[0].get_tuple(growing.config) is not None
    # Somebody else deletes between two steps, so the next one begins the thread's epoch again.
    make_saver().prune(["thread"])
    assert converse(saver, config_of("thread"))[-1].content == expected
    # The look for another saver's threads goes without the index.
    assert {request.resource.partition("/index/")[2] for request in gate.refused} == {"run_id-index"}
    assert gate.allowed_actions() == actions_of(POLICIES["Runner"])

    gate.refused.clear()
    remove_a_segment(client, table_name, "thread")
    await sees_the_damage(both_sides(saver_of(gate)), "thread")
    assert not gate.refused


@pytest.mark.parametrize(("policy", "denied"), [("Agent", 0), ("Runner", 1)])
async def test_a_process_that_looks_for_other_savers_is_denied_at_its_cold_start_only(
    saver_of: SaverOf, table_name: str, policy: str, denied: int
) -> None:
    gate = gate_of(policy, table_name)
    for side in both_sides(saver_of(gate)):
        assert await side.aget_tuple(config_of("nobodys")) is None
        await RUNS["put"](side)
    assert gate.allowed
    assert len(gate.refused) == denied


@pytest.mark.parametrize("refused", NOT_FOR_RUNNERS.values(), ids=list(NOT_FOR_RUNNERS))
async def test_runner_is_refused_what_deletes_or_searches_before_anything_changes(
    make_saver: MakeSaver, saver_of: SaverOf, client: DynamoDBClient, table_name: str, refused: Operation
) -> None:
    talked_twice(make_saver())
    gate = gate_of("Runner", table_name)
    await is_refused_and_changes_nothing(refused, saver_of(gate), client, table_name)
    assert gate.refused


@pytest.mark.parametrize("deletion", DELETIONS.values(), ids=list(DELETIONS))
async def test_runner_policy_beside_the_operators_is_no_obstacle(
    make_saver: MakeSaver, saver_of: SaverOf, client: DynamoDBClient, table_name: str, deletion: Operation
) -> None:
    converse(make_saver(), config_of("thread", run_id="run"))
    before = contents(client, table_name)
    policies = [for_table(POLICIES[name], table_name) for name in ("Runner", "Operator")]
    gate = Gate(policies)
    await deletion(saver_of(gate))
    assert not gate.refused
    assert contents(client, table_name) != before


def test_a_batch_of_deletes_is_what_the_runners_policy_cannot_tell_from_one_of_puts() -> None:
    """IAM knows BatchWriteItem as one action, so this says what the document has to say."""
    key = {"PK": {"S": "thread#"}, "SK": {"S": "T"}}
    for write in ({"PutRequest": {"Item": key}}, {"DeleteRequest": {"Key": key}}):
        body = {"RequestItems": {STACK.outputs["TableArn"]: [write]}}
        [request] = requests_of("BatchWriteItem", body, {})
        assert is_allowed([POLICIES["Runner"]], request)


WRITES: dict[str, Operation] = {
    **{name: RUNS[name] for name in ("put", "put_writes", "copy_thread")},
    **DELETIONS,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
async def test_reader_cannot_write(
    make_saver: MakeSaver, saver_of: SaverOf, client: DynamoDBClient, table_name: str, write: Operation
) -> None:
    writer = talked_twice(make_saver())
    before = contents(client, table_name)
    gate = gate_of("Reader", table_name)
    await is_refused_and_changes_nothing(write, saver_of(gate), client, table_name)
    assert gate.refused
    # The same call goes through for whoever may write: it is the policy that stopped it.
    await write(writer)
    assert contents(client, table_name) != before


@pytest.mark.parametrize("policy", ["Agent", "Runner"])
async def test_agents_enter_threads_in_the_directory(
    make_saver: MakeSaver, saver_of: SaverOf, table_name: str, policy: str
) -> None:
    saver = saver_of(gate_of(policy, table_name), owner_from="user_id")
    config = config_of("thread")
    config["configurable"]["user_id"] = "ada"
    converse(saver, config)
    await saver.aset_thread("thread", title="Trains")
    [thread] = make_saver().threads(owner="ada").threads
    assert (thread.thread_id, thread.title) == ("thread", "Trains")


def test_policies_name_one_table_and_its_indexes() -> None:
    arn = STACK.outputs["TableArn"]
    for document in POLICIES.values():
        resources = {each for statement in document["Statement"] for each in resources_of(statement)}
        assert {each.removeprefix(arn).partition("/")[0] for each in resources} == {""}
