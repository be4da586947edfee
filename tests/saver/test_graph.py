"""Real graphs on the saver, and the same graphs on LangGraph's InMemorySaver: nothing that can be seen differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command, Durability

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import NO_SECOND_OPINION
from tests.support import graphs
from tests.support.operations import Side, both_sides
from tests.support.session import Session, assert_same, canonical

pytestmark = NO_SECOND_OPINION

MakeSaver = Callable[..., DynamoDBSaver]

every_durability = pytest.mark.parametrize(
    ("side", "durability"),
    [
        ("sync", "sync"),
        pytest.param("sync", "exit", marks=pytest.mark.search),
        pytest.param("async", "async", marks=pytest.mark.search),
        ("async", "exit"),
    ],
)


def _question(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {number}", id=f"question-{number}")]}


async def _two_turns(session: Session) -> None:
    await session.invoke(_question(1))
    await session.look()
    session.reopen()
    await session.invoke(_question(2))
    await session.look()


@every_durability
async def test_tool_loop_over_two_turns_in_two_processes(
    make_saver: MakeSaver, side: Side, durability: Durability
) -> None:
    await assert_same(make_saver, graphs.agent, _two_turns, side, durability)


@both_sides
async def test_static_breakpoint_stops_before_each_tool(make_saver: MakeSaver, side: Side) -> None:
    async def scenario(session: Session) -> None:
        await session.invoke(_question(1))
        for _ in range(2):
            assert (await session.state()).next == ("tools",)
            await session.look()
            session.reopen()
            await session.invoke(None)
        assert (await session.state()).next == ()
        await session.look()

    await assert_same(make_saver, graphs.agent_with_breakpoint, scenario, side)


@both_sides
async def test_a_copy_of_the_newest_checkpoint_after_a_breakpoint_is_of_one_step(
    make_saver: MakeSaver, side: Side
) -> None:
    """The loop changes the versions of the checkpoint that it resumed from in place."""

    async def scenario(session: Session) -> None:
        await session.invoke(_question(1))
        while (await session.state()).next:
            await session.invoke(None)
            newest = await session.state()
            copied = await session.update(newest.config, None, as_node="__copy__")
            assert (await session.state(copied)).values == newest.values
        await session.look()

    def build(saver: graphs.Saver) -> graphs.Graph:
        graph = graphs.agent_with_breakpoint(saver)
        graph.interrupt_before_nodes = ["model", "tools"]
        return graph

    await assert_same(make_saver, build, scenario, side)


@every_durability
@pytest.mark.parametrize("checkpointer", [None, True], ids=["per-call", "per-thread"])
async def test_nested_subgraphs_keep_their_namespaces(
    make_saver: MakeSaver, side: Side, durability: Durability, checkpointer: bool | None
) -> None:
    async def scenario(session: Session) -> None:
        for turn in range(2):
            await session.invoke({"count": turn})
            assert (await session.state()).interrupts
            await session.look()
            session.reopen()
            await session.invoke(Command(resume=f"yes {turn}"))
            await session.look()

    session = await assert_same(make_saver, graphs.subgraphs(checkpointer), scenario, side, durability)

    namespaces = {each.config["configurable"]["checkpoint_ns"] for each in await session.stored()}
    depths = {namespace.count("|") for namespace in namespaces if namespace}
    assert depths == {0, 1}, "a namespace of each depth is stored"


@every_durability
async def test_parallel_branches_and_sends(make_saver: MakeSaver, side: Side, durability: Durability) -> None:
    async def scenario(session: Session) -> None:
        await session.invoke({"log": ["input"]})
        await session.look()

    await assert_same(make_saver, graphs.fan_out, scenario, side, durability)


@every_durability
async def test_two_interrupts_are_resumed_by_one_command(
    make_saver: MakeSaver, side: Side, durability: Durability
) -> None:
    async def scenario(session: Session) -> None:
        await session.invoke({"log": []})
        await session.look()
        session.reopen()
        interrupts = (await session.state()).interrupts
        assert len(interrupts) == 2
        await session.invoke(Command(resume={each.id: f"yes to {each.value}" for each in interrupts}))
        await session.look()

    await assert_same(make_saver, graphs.approvals, scenario, side, durability)


@every_durability
async def test_resume_after_failure_does_not_repeat_what_succeeded(
    make_saver: MakeSaver, side: Side, durability: Durability
) -> None:
    runs: list[str] = []

    async def scenario(session: Session) -> None:
        runs.clear()
        # One at a time, so that what the first branch wrote is on its way before the second fails.
        session.config["max_concurrency"] = 1
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await session.invoke(None if runs else {"log": ["input"]})
            await session.look()
            session.reopen()
        await session.invoke(None)
        await session.look()

    await assert_same(make_saver, graphs.unreliable(runs, failures=2), scenario, side, durability)

    assert runs.count("steady") == 1
    assert runs.count("unsteady") == 3


@pytest.mark.engines("dynamodb-local")
@every_durability
async def test_time_travel_and_forks(make_saver: MakeSaver, side: Side, durability: Durability) -> None:
    async def scenario(session: Session) -> None:
        await session.invoke(_question(1))
        await session.invoke(_question(2))
        history = await session.history()
        oldest, middle = history[-1], history[len(history) // 2]
        session.reopen()
        fork = await session.update(middle.config, _question(3), as_node="__start__")
        await session.look()
        await session.invoke(None, fork)
        await session.look()
        session.reopen()
        await session.invoke(None, middle.config)
        await session.look()
        await session.invoke(_question(4), oldest.config)
        await session.look()
        session.seen.append(canonical(await session.state(middle.config)))

    await assert_same(make_saver, graphs.agent, scenario, side, durability)


@both_sides
async def test_time_travel_within_subgraphs(make_saver: MakeSaver, side: Side) -> None:
    async def scenario(session: Session) -> None:
        await session.invoke({"count": 1})
        state = await session.state()
        inner = state.tasks[0].state
        assert inner is not None
        assert not isinstance(inner, dict)
        await session.update(inner.config, {"log": ["by hand"]})
        await session.look()
        session.reopen()
        await session.invoke(Command(resume="yes"))
        await session.look()
        await session.invoke(None, state.config)
        await session.look()

    await assert_same(make_saver, graphs.subgraphs(None), scenario, side)


@both_sides
async def test_an_empty_checkpoint_id_means_the_newest(make_saver: MakeSaver, side: Side) -> None:
    async def scenario(session: Session) -> None:
        await session.invoke(_question(1))
        session.config = {"configurable": {"thread_id": "thread", "checkpoint_id": ""}}
        session.reopen()
        await session.invoke(_question(2))
        await session.look()

    await assert_same(make_saver, graphs.agent, scenario, side)
