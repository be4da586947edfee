"""Real graphs on the saver, and the same graphs on LangGraph's InMemorySaver: nothing that can be seen differs.

The random programs of `test_one_life.py` also send, fail, travel back, fork, and change subgraphs.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command, Durability

from tests.conftest import NO_SECOND_OPINION, MakeSaver
from tests.support import graphs
from tests.support.operations import Side
from tests.support.session import Scenario, Session, assert_same


def _question(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {number}", id=f"question-{number}")]}


async def a_tool_loop_over_two_turns_in_two_processes(session: Session) -> None:
    await session.invoke(_question(1))
    await session.look()
    session.reopen()
    await session.invoke(_question(2))
    await session.look()


async def a_copy_of_the_newest_checkpoint_after_a_breakpoint(session: Session) -> None:
    """The loop changes the versions of the checkpoint that it resumed from in place."""
    await session.invoke(_question(1))
    while (await session.state()).next:
        await session.invoke(None)
        newest = await session.state()
        copied = await session.update(newest.config, None, as_node="__copy__")
        assert (await session.state(copied)).values == newest.values
    await session.look()


def _with_breakpoints_everywhere(saver: graphs.Saver) -> graphs.Graph:
    graph = graphs.agent(saver)
    graph.interrupt_before_nodes = ["model", "tools"]
    return graph


async def nested_subgraphs_in_their_namespaces(session: Session) -> None:
    for turn in range(2):
        await session.invoke({"count": turn})
        assert (await session.state()).interrupts
        await session.look()
        session.reopen()
        await session.invoke(Command(resume=f"yes {turn}"))
        await session.look()
    namespaces = {each.config["configurable"]["checkpoint_ns"] for each in await session.stored()}
    depths = {namespace.count("|") for namespace in namespaces if namespace}
    assert depths == {0, 1}, "a namespace of each depth is stored"


GRAPHS = [
    (a_tool_loop_over_two_turns_in_two_processes, graphs.agent),
    (a_copy_of_the_newest_checkpoint_after_a_breakpoint, _with_breakpoints_everywhere),
    (nested_subgraphs_in_their_namespaces, graphs.subgraphs(None)),
    pytest.param(nested_subgraphs_in_their_namespaces, graphs.subgraphs(True), id="subgraphs_per_thread"),
]


@NO_SECOND_OPINION
@pytest.mark.parametrize(
    ("side", "durability"),
    [
        ("sync", "sync"),
        pytest.param("sync", "exit", marks=pytest.mark.search),
        pytest.param("async", "async", marks=pytest.mark.search),
        pytest.param("async", "exit", marks=pytest.mark.search),
    ],
)
@pytest.mark.parametrize(("scenario", "build"), GRAPHS)
async def test_a_graph_equals_one_in_memory(
    make_saver: MakeSaver, scenario: Scenario, build: graphs.Build, side: Side, durability: Durability
) -> None:
    await assert_same(make_saver, build, scenario, side, durability)


@NO_SECOND_OPINION
@pytest.mark.share
@pytest.mark.parametrize(("scenario", "build"), GRAPHS[:2])
async def test_a_graph_that_stores_at_its_end_equals_one_in_memory(
    make_saver: MakeSaver, scenario: Scenario, build: graphs.Build
) -> None:
    await assert_same(make_saver, build, scenario, "async", "exit")
