"""Graphs with a DeltaChannel: only its writes are stored, and what it is rebuilt from must stay or be missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Durability

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointNotFoundError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.verify import verify_thread
from tests.support import graphs
from tests.support.checkpoints import all_items, thread_config
from tests.support.operations import Side, both_sides
from tests.support.session import Session, assert_same, canonical, run_to_the_end

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The first of the graphs runs on every engine; how the others are rebuilt is the same for all.
pytestmark = pytest.mark.engines("dynamodb-local")

MakeSaver = Callable[..., DynamoDBSaver]

every_durability = pytest.mark.parametrize(
    ("side", "durability"),
    [
        ("sync", "async"),
        ("async", "exit"),
        *[
            pytest.param(*others, marks=pytest.mark.search)
            for others in [("sync", "sync"), ("sync", "exit"), ("async", "async")]
        ],
    ],
)


def _histories(saver: BaseCheckpointSaver[Any], session_stored: list[Any]) -> list[Any]:
    return [
        saver.get_delta_channel_history(config=each.config, channels=["log", "rounds", "nothing"])
        for each in session_stored
    ]


@every_durability
async def test_delta_graph_equals_in_memory(
    make_saver: MakeSaver, side: Side, durability: Durability
) -> None:
    async def scenario(session: Session) -> None:
        await run_to_the_end(session)
        session.reopen()
        await session.invoke({"log": ["again"]})
        await session.look()
        histories = _histories(session.saver, await session.stored())
        session.seen.append(canonical(histories))

    actual = await assert_same(make_saver, graphs.journal, scenario, side, durability)
    assert any(
        isinstance(each.checkpoint["channel_values"].get("log"), _DeltaSnapshot)
        for each in await actual.stored()
    ), "no snapshot lies in the middle"


@pytest.mark.search
@every_durability
async def test_forks_of_a_delta_graph_equal_in_memory(
    make_saver: MakeSaver, side: Side, durability: Durability
) -> None:
    async def scenario(session: Session) -> None:
        await run_to_the_end(session)
        for past in (await session.history())[1::4]:
            session.reopen()
            fork = await session.update(past.config, {"log": ["fork"]}, as_node="write")
            session.seen.append(canonical((await session.state(fork)).values))
            await session.invoke(None, fork)
            await session.invoke({"log": ["once more"]}, past.config)
            await session.look()

    await assert_same(make_saver, graphs.journal, scenario, side, durability)


async def test_copy_of_a_delta_thread_goes_on_by_itself(make_saver: MakeSaver) -> None:
    session = Session(graphs.journal, make_saver, "async", "async")
    await session.invoke({"log": ["input"]})
    await session.invoke(Command(resume="yes"))
    expected = await session.state()

    await make_saver().acopy_thread("thread", "copy")
    await make_saver().adelete_thread("thread")

    session.reopen()
    session.config = thread_config("copy")
    assert (await session.state()).values == expected.values
    await session.invoke(Command(resume="yes"))
    assert (await session.state()).values["log"][: len(expected.values["log"])] == expected.values["log"]


@both_sides
@pytest.mark.parametrize(
    "checkpoint_id", ["", "1f000000-0000-6000-8000-000000000000"], ids=["empty", "unknown"]
)
async def test_a_first_run_may_name_a_checkpoint_that_was_never_stored(
    make_saver: MakeSaver, side: Side, checkpoint_id: str
) -> None:
    """The runtime names it as the parent of the first checkpoint; nothing was lost, so nothing is an error."""

    async def scenario(session: Session) -> None:
        await session.invoke({"log": ["input"]}, thread_config("thread", "", checkpoint_id))
        await session.look()
        session.reopen()
        await session.invoke(Command(resume="yes"))
        await session.look()

    await assert_same(make_saver, graphs.journal, scenario, side, "sync")


async def test_an_application_may_have_metadata_of_the_same_names(make_saver: MakeSaver) -> None:
    saver, config = make_saver(), thread_config("thread", "sub:1")
    metadata: Any = {"counters_since_delta_snapshot": 5, "parents": 3, "step": "first"}
    for step in range(3):
        config = saver.put(config, {**empty_checkpoint(), "id": f"{step}"}, metadata, {})
    saver.prune(["thread"])
    assert [each.metadata for each in saver.list(thread_config("thread", "sub:1"))] == [metadata]
    assert saver.get_delta_channel_history(config=config, channels=["log"]) == {"log": {"writes": []}}


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_who_writes_the_table_splices_in_no_other_branch(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, is_encrypted: bool
) -> None:
    """A prune needs no key, so the links between heads are readable. The sealed bodies confirm them."""
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef") if is_encrypted else None
    saver = make_saver(serde=serde, cache_bytes=0)
    graph, config = graphs.journal(saver), thread_config("thread")
    graph.invoke({"log": ["input"]}, config)
    kept = graph.get_state(config).config
    graph.update_state([*graph.get_state_history(config)][2].config, {"log": ["abandoned"]}, as_node="write")
    graph.update_state(kept, {"log": ["kept"]}, as_node="write")
    expected = graph.get_state(config).values
    heads = [each for each in all_items(client, table_name, begins="C#") if items.BODY in each]
    # The edits that change what the saver stored, the removals among them.
    edits = [
        {name: each for name, each in {**head, link: other}.items() if each is not None}
        for head in heads
        for link in (items.PARENT, items.REBUILT_FROM)
        for other in (None, *({"S": items.checkpoint_id_of(each)} for each in heads))
        if other != head.get(link)
    ]
    told = 0
    for edited in edits:
        client.put_item(TableName=table_name, Item=edited)
        try:
            assert graph.get_state(config).values == expected
        except (CheckpointCorruptionError, CheckpointNotFoundError):
            told += 1
        # A deletion may have cut this one. It hides history, and changes no state.
        is_cut = items.PARENT not in edited and items.REBUILT_FROM not in edited
        verified = saver.runner.run(verify_thread(saver.storage, "thread"), "verify")
        assert verified.flaws or is_cut
        client.put_item(TableName=table_name, Item=next(each for each in heads if each["SK"] == edited["SK"]))
    assert told > 0
