"""The managed policies of `infra/table.yaml`, proved by what the saver really sends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    DynamoDBSaver,
)
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import MakeSaver
from tests.infra.authorization import EVERYTHING, Gate, listed
from tests.infra.conftest import Behind, for_table
from tests.infra.stacks import TABLE_STACK
from tests.infra.test_tenants import LARGE, policy_of
from tests.support.calls import TENANT
from tests.support.checkpoints import all_items
from tests.support.conversation import config_of, converse

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")


POLICIES = {
    name: TABLE_STACK.properties(f"{name}Policy")["PolicyDocument"]
    for name in ("Agent", "Runner", "Operator", "Reader")
}
DOCUMENTS = {**POLICIES, "Tenant": policy_of(TENANT)}
DENIED = "AccessDeniedException"


def gate_of(policy: str, table_name: str) -> Gate:
    """A gate that lets through what one of the policies allows."""
    return Gate([for_table(DOCUMENTS[policy], table_name)])


# Each before anything changes, so they need not begin anew.
NOT_FOR_RUNNERS: list[Callable[[DynamoDBSaver], object]] = [
    lambda saver: saver.delete_thread("thread"),
    lambda saver: saver.delete_for_runs(["run"]),
    lambda saver: saver.prune(["thread"]),
    lambda saver: saver.prune(["thread"], strategy="delete"),
    lambda saver: list(saver.list(None)),
    lambda saver: list(saver.list(None, filter={"run_id": "run"})),
]


def test_a_runner_is_told_of_damage_and_not_that_it_may_not_look(
    behind: Behind, client: DynamoDBClient, table_name: str
) -> None:
    """`test_requests` has that the policy allows what runs agents, and no more."""
    gate = gate_of("Runner", table_name)
    converse(behind(gate), config_of("thread"))
    gate.refused.clear()
    segments = [each for each in all_items(client, table_name, begins="S#") if each["PK"]["S"] == "thread#"]
    client.delete_item(TableName=table_name, Key={"PK": segments[0]["PK"], "SK": segments[0]["SK"]})
    with pytest.raises(CheckpointCorruptionError):
        behind(gate).get_tuple(config_of("thread"))
    assert not gate.refused


@pytest.mark.parametrize(("policy", "denied"), [("Agent", 0), ("Runner", 1), ("Tenant", 2)])
def test_a_process_that_looks_for_other_savers_is_denied_at_its_cold_start_only(
    behind: Behind, table_name: str, policy: str, denied: int
) -> None:
    gate = gate_of(policy, table_name)
    saver = behind(gate)
    for thread_id in (f"{TENANT}/thread", f"{TENANT}/other"):
        assert saver.get_tuple(config_of(thread_id)) is None
        converse(saver, config_of(thread_id))
    assert gate.allowed
    assert len(gate.refused) == denied


def test_runner_is_refused_what_deletes_or_searches_before_anything_changes(
    make_saver: MakeSaver, behind: Behind, client: DynamoDBClient, table_name: str
) -> None:
    for metadata in ({}, {"run_id": "run"}):
        converse(make_saver(), config_of("thread", **metadata))
    before, saver = all_items(client, table_name), behind(gate_of("Runner", table_name))
    for refused in NOT_FOR_RUNNERS:
        with pytest.raises(CheckpointerConfigurationError, match=DENIED):
            refused(saver)
    assert all_items(client, table_name) == before


def test_policies_name_one_table_and_its_indexes_and_deny_nothing_beside_others() -> None:
    arn = TABLE_STACK.outputs["TableArn"]
    for document in POLICIES.values():
        assert {statement["Effect"] for statement in document["Statement"]} == {"Allow"}
        resources = {each for statement in document["Statement"] for each in listed(statement["Resource"])}
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
