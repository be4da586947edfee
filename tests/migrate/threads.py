"""Threads of each kind that LangGraph makes, to be moved; and what there is to see of them."""

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, Status, ThreadReport
from tests.support import graphs
from tests.support.checkpoints import thread_config
from tests.support.graphs import Build, Saver

# By the thread's id: the graph, what it begins with, and the answers that it waits for.
WAITING: dict[str, tuple[Build, Any]] = {
    "approvals": (graphs.approvals, {"log": ["begun"]}),
    "subgraphs": (graphs.subgraphs(None), {"log": ["begun"]}),
    "persistent subgraphs": (graphs.subgraphs(True), {"log": ["begun"]}),
    "delta": (graphs.journal, {"log": ["begun"]}),
}


EVERY = (*WAITING, "fork", "fan out")


def begin(saver: Saver, threads: Iterable[str] = EVERY) -> list[str]:
    """Store threads, some of which wait for a human; return their ids, sorted."""
    for thread_id in threads:
        if thread_id == "fork":
            _fork(saver)
        elif thread_id == "fan out":
            graphs.fan_out(saver).invoke({"log": ["begun"]}, thread_config(thread_id))
        else:
            build, start = WAITING[thread_id]
            build(saver).invoke(start, thread_config(thread_id))
        if thread_id == "delta":
            # One answer further there is a snapshot of the delta channel on the way.
            answer(saver, thread_id)
    return sorted(threads)


def _fork(saver: Saver) -> None:
    """A conversation that was taken back twice, and went on in other ways."""
    agent = graphs.agent(saver)
    agent.invoke({"messages": [("user", "the weather")]}, thread_config("fork"))
    states = list(agent.get_state_history(thread_config("fork")))
    for text in ("another way", "a third way"):
        forked = agent.update_state(states[2].config, {"messages": [("user", text)]}, as_node="model")
        agent.invoke(None, forked)


def answer(saver: Saver, thread_id: str) -> dict[str, Any]:
    """Answer all that a thread asks, and return its state."""
    graph = WAITING[thread_id][0](saver)
    state = graph.get_state(thread_config(thread_id), subgraphs=True)
    answers = {each.id: f"yes {index}" for index, each in enumerate(state.interrupts)}
    result: dict[str, Any] = graph.invoke(Command(resume=answers), thread_config(thread_id))
    return {name: value for name, value in result.items() if name != "__interrupt__"}


def empty(**options: Any) -> SaverEndpoint:
    """A saver without threads."""
    return SaverEndpoint(InMemorySaver(**options))


def statuses(reports: Iterable[ThreadReport]) -> dict[str, Status]:
    """What became of each thread; what went wrong fails the test in words."""
    found = {}
    for each in reports:
        assert not each.problems, f"{each.thread_id}: {each.problems}"
        found[each.thread_id] = each.status
    return found
