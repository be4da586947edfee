"""What the client seals, stored by the ordinary saver: LangGraph's promises hold, and a step costs what it adds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test
from langgraph.types import Command

from benchmarks.contestants import OURS
from benchmarks.runs import run_workload
from benchmarks.sealing import NEW_EACH_TIME, SEALED, OpaqueSerializer, SealedSaver, sealer
from benchmarks.workloads import chat
from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, DynamoDBSaver
from tests.saver.test_conformance import check_conformance
from tests.support import graphs
from tests.support.checkpoints import all_items, checkpoint_of, thread_config
from tests.support.session import Session, assert_same
from tests.support.sync_adapter import SyncAsAsync
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# An engine stores bytes, whoever made them.
pytestmark = pytest.mark.engines("dynamodb-local")

MakeSaver = Callable[..., DynamoDBSaver]
MakeSealed = Callable[[], SealedSaver]


@pytest.fixture
def make_sealed(make_saver: MakeSaver) -> MakeSealed:
    """Give what opens a client with the key, and a service, that remember nothing."""
    return lambda: SealedSaver(make_saver(serde=OpaqueSerializer()), sealer())


async def test_conformance_is_full(make_sealed: MakeSealed) -> None:
    @checkpointer_test(name="SealedSaver")
    async def saver_under_test() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        yield SyncAsAsync(make_sealed())

    await check_conformance(saver_under_test)


async def _run(session: Session) -> None:
    """Run to the end, each answer in a new process."""
    await session.invoke({"log": ["input"]})
    while (await session.state()).interrupts:
        await session.look()
        session.reopen()
        await session.invoke(Command(resume="yes"))
    await session.look()


@pytest.mark.parametrize("build", [graphs.journal, graphs.fan_out, graphs.subgraphs(None)])
async def test_a_graph_equals_one_in_memory(make_sealed: MakeSealed, build: graphs.Build) -> None:
    await assert_same(make_sealed, build, _run, "sync", "sync")


def test_nothing_of_a_value_is_readable(
    make_sealed: MakeSealed, client: DynamoDBClient, table_name: str
) -> None:
    saver, secret = make_sealed(), "the secret of the agent"
    metadata: Any = {"source": "loop", "step": 1, "note": secret}
    values = {"small": secret, "large": [secret] * 1_000}
    config = saver.put(thread_config(), checkpoint_of("1", values), metadata, {"small": 1, "large": 1})
    saver.put_writes(config, [("small", secret), ("large", [secret] * 1_000)], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert {**found.metadata}["note"] == secret
    stored = all_items(client, table_name)
    assert stored
    assert not [each for each in stored if "secret" in str(each)]


def test_what_the_service_copies_cannot_be_read(make_sealed: MakeSealed) -> None:
    saver = make_sealed()
    saver.put(thread_config("a"), checkpoint_of("1", {"x": "of a"}), {}, {"x": 1})
    # Whoever runs the service gives it to a thread of their own.
    saver.saver.copy_thread("a", "b")
    with pytest.raises(
        CheckpointCorruptionError, match=r"thread 'b' has data that was encrypted for another place"
    ):
        saver.get_tuple(thread_config("b"))
    saver.delete_thread("b")
    saver.copy_thread("a", "b")
    found = saver.get_tuple(thread_config("b"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": "of a"}


def test_a_step_costs_what_it_adds(engine: Engine) -> None:
    # A state whose sealed bytes fit into the head is stored with each step: that is what the first turns cost.
    turns = chat(14)
    plain, sealed, new = (run_workload(each, engine, turns) for each in (OURS, SEALED, NEW_EACH_TIME))
    late = [each.write_units_per_step(12, 14) for each in (plain, sealed, new)]
    assert late[1] < 1.5 * late[0]
    assert late[2] > 5 * late[0]
    assert sealed.read_units < 1.1 * plain.read_units
