"""The managed policies of `infra/table.yaml`, proved by what the saver really sends."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerConfigurationError
from langgraph.store.dynamodb import DynamoDBStore
from tests.infra.authorization import Gate, actions_of
from tests.infra.conftest import Behind, MakeSaver, contents, for_table, resources_of
from tests.infra.conversation import TOOL_RESULT_BYTES, aconverse, config_of, converse
from tests.infra.stacks import TABLE_STACK
from tests.infra.test_tenants import EVERYTHING, LARGE, policy_of
from tests.support.checkpoints import Conversation, noise
from tests.support.sync_adapter import SyncAsAsync

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

Saver: TypeAlias = BaseCheckpointSaver[Any]
Operation: TypeAlias = Callable[[Saver], Awaitable[object]]

POLICIES = {
    name: TABLE_STACK.properties(f"{name}Policy")["PolicyDocument"]
    for name in ("Agent", "Runner", "Operator", "Reader")
}
TENANT = "acme"
DOCUMENTS = {**POLICIES, "Tenant": policy_of(TENANT)}
DENIED = "AccessDeniedException"


def gate_of(policy: str, table_name: str) -> Gate:
    """A gate that lets through what one of the policies allows."""
    return Gate([for_table(DOCUMENTS[policy], table_name)])


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


async def sees_the_damage(sides: list[Saver], thread_id: str) -> None:
    """The savers say that the thread is damaged, and not that they may not look."""
    for side in sides:
        with pytest.raises(CheckpointCorruptionError):
            await side.aget_tuple(config_of(thread_id))


NOT_FOR_RUNNERS: dict[str, Operation] = {
    "delete_thread": lambda saver: saver.adelete_thread("thread"),
    "delete_for_runs": lambda saver: saver.adelete_for_runs(["run"]),
    "prune": lambda saver: saver.aprune(["thread"]),
    "prune to nothing": lambda saver: saver.aprune(["thread"], strategy="delete"),
    "list all threads": lambda saver: listed(saver, None),
    "list by run": lambda saver: listed(saver, None, filter={"run_id": "run"}),
}


async def test_runner_policy_runs_agents_and_allows_no_more(
    make_saver: MakeSaver, behind: Behind, client: DynamoDBClient, table_name: str
) -> None:
    gate = gate_of("Runner", table_name)
    expected = f"The tool returned {TOOL_RESULT_BYTES} characters."
    savers = [behind(gate), behind(gate)]
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
    await sees_the_damage(both_sides(behind(gate)), "thread")
    assert not gate.refused


@pytest.mark.parametrize(("policy", "denied"), [("Agent", 0), ("Runner", 1), ("Tenant", 2)])
async def test_a_process_that_looks_for_other_savers_is_denied_at_its_cold_start_only(
    behind: Behind, table_name: str, policy: str, denied: int
) -> None:
    gate = gate_of(policy, table_name)
    for side in both_sides(behind(gate)):
        assert await side.aget_tuple(config_of(f"{TENANT}/nobodys")) is None
        config: RunnableConfig = {"configurable": {"thread_id": f"{TENANT}/thread", "checkpoint_ns": ""}}
        await side.aput(config, empty_checkpoint(), {"source": "update", "step": 9, "parents": {}}, {})
    assert gate.allowed
    assert len(gate.refused) == denied


@pytest.mark.parametrize("refused", NOT_FOR_RUNNERS.values(), ids=list(NOT_FOR_RUNNERS))
async def test_runner_is_refused_what_deletes_or_searches_before_anything_changes(
    make_saver: MakeSaver, behind: Behind, client: DynamoDBClient, table_name: str, refused: Operation
) -> None:
    for metadata in ({}, {"run_id": "run"}):
        converse(make_saver(), config_of("thread", **metadata))
    before = contents(client, table_name)
    for side in both_sides(behind(gate_of("Runner", table_name))):
        with pytest.raises(CheckpointerConfigurationError, match=DENIED):
            await refused(side)
    assert contents(client, table_name) == before


def test_policies_name_one_table_and_its_indexes_and_deny_nothing_beside_others() -> None:
    arn = TABLE_STACK.outputs["TableArn"]
    for document in POLICIES.values():
        assert {statement["Effect"] for statement in document["Statement"]} == {"Allow"}
        resources = {each for statement in document["Statement"] for each in resources_of(statement)}
        assert {each.removeprefix(arn).partition("/")[0] for each in resources} == {""}


def two_hours_later(store: DynamoDBStore) -> DynamoDBStore:
    """Let a store take what there is for old: what is new is deleted in another way."""
    object.__setattr__(store.storage, "clock", lambda: time.time() + 7200)
    return store


def test_an_operator_erases_memories_that_are_old(behind: Behind, table_name: str) -> None:
    """`test_requests` has what is new, and that it may do nothing else."""
    for user in ("ada", "bo"):
        behind(Gate([EVERYTHING]), DynamoDBStore).put((TENANT, user), "large", LARGE)
    gate = gate_of("Operator", table_name)
    assert two_hours_later(behind(gate, DynamoDBStore)).delete_namespace(()) == 2
    assert not gate.refused


def test_a_reader_does_not_renew_ttls(behind: Behind, table_name: str) -> None:
    namespace = (TENANT, "ada")
    behind(Gate([EVERYTHING]), DynamoDBStore).put(namespace, "food", {}, ttl=1000)
    gate = gate_of("Reader", table_name)
    with pytest.raises(CheckpointerConfigurationError, match=DENIED):
        two_hours_later(behind(gate, DynamoDBStore)).get(namespace, "food")
    store = two_hours_later(behind(gate, DynamoDBStore, ttl={"refresh_on_read": False}))
    assert store.get(namespace, "food", refresh_ttl=False) is not None
    assert store.search(namespace)
