"""A thread is one thing: however long it takes, a run has what InMemorySaver, which forgets nothing, would give it.

A thread that is used stays whole, one that is not goes whole, and what begins under its id afterwards sees nothing old.
"""

import operator
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Annotated, Any, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.simulation.schedule import search
from tests.simulation.world import use_small_limits
from tests.support.graphs import Graph, Node, Saver
from tests.support.moving_clock import DeadError, Engine
from tests.support.random_graphs import random_program
from tests.support.seeds import RUNS_VARIABLE, VARIABLE, first_seed

HOUR = 3600
DAY = 24 * HOUR
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}

Advance: TypeAlias = Callable[[float], None]


class Log(TypedDict, total=False):
    """What each node has to say."""

    ask: str
    log: Annotated[list[str], operator.add]


class Memory(Log, total=False):
    """The state of a subgraph that keeps it between calls."""

    facts: Annotated[list[str], operator.add]


def remembering(during: Callable[[], None]) -> Node:
    """Return a node that tells all that it was ever asked."""

    def remember(state: Memory) -> dict[str, Any]:
        during()
        return {"facts": [state["ask"]], "log": [f"knows {[*state.get('facts', []), state['ask']]}"]}

    return remember


def working(slow: Callable[[], None]) -> Node:
    """Return a node that takes its time."""

    def work(state: Log) -> dict[str, Any]:
        slow()
        return {"log": [f"worked on {state['ask']}"]}

    return work


def chat(saver: Saver, during: Callable[[], None] = lambda: None) -> Graph:
    """Build a graph that answers by itself, or asks its stateful subgraph if the question begins with "!"."""
    specialist: StateGraph[Any, Any, Any, Any] = StateGraph(Memory)
    specialist.add_node("remember", remembering(during)).add_edge(START, "remember")
    specialist.add_node("check", lambda _: {"log": ["checked"]}).add_edge("remember", "check")
    whole: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    whole.add_node("chat", lambda state: {"log": [f"hears {state['ask']}"]})
    whole.add_node("specialist", specialist.compile(checkpointer=True))
    whole.add_conditional_edges(
        START, lambda state: "specialist" if state["ask"].startswith("!") else "chat", ["chat", "specialist"]
    )
    return whole.compile(checkpointer=saver)


def side_by_side(saver: Saver, advance: Advance) -> Any:
    """One subgraph waits for an answer. The other works for 100 minutes, and stores a checkpoint every ten."""
    charged: list[str] = []

    def charge(state: Log) -> dict[str, Any]:
        charged.append(f"card {len(state['log'])}")
        return {"log": ["charged"]}

    def ask(question: str, _: Log) -> dict[str, Any]:
        return {"log": [question + interrupt(question)]}

    def work(state: Log) -> dict[str, Any]:
        advance(600)
        return {"log": [f"worked {len(state['log'])}"]}

    waits: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    waits.add_node("charge", charge)
    for name in ("name?", "delete all?"):
        waits.add_node(name, partial(ask, name))
    waits.add_edge(START, "charge").add_edge("charge", "name?").add_edge("name?", "delete all?")
    works: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    works.add_node("start?", lambda _: {"log": [interrupt("start?")]}).add_edge(START, "start?")
    for before, name in zip(("start?", *"012345678"), "0123456789", strict=True):
        works.add_node(name, work).add_edge(before, name)
    both: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    both.add_node("waits", waits.compile()).add_node("works", works.compile())
    graph = both.add_edge(START, "waits").add_edge(START, "works").compile(checkpointer=saver)
    asked = {each.value: each.id for each in graph.invoke({"log": []}, CONFIG)["__interrupt__"]}
    graph.invoke(Command(resume={asked["name?"]: "ada", asked["start?"]: "go"}), CONFIG)
    return graph.invoke(Command(resume="yes"), CONFIG), charged


def used_daily(saver: Saver, advance: Advance) -> Any:
    """A thread in daily use asks its stateful subgraph once in ten ttls."""
    graph = chat(saver)
    graph.invoke({"ask": "!nuts"}, CONFIG)
    for hour in range(14):
        advance(0.7 * HOUR)
        graph.invoke({"ask": f"hello {hour}"}, CONFIG)
    return graph.invoke({"ask": "!what may I eat"}, CONFIG)


def travelled(saver: Saver, advance: Advance) -> Any:
    """A fork of a checkpoint that is still shown, whose subgraph was used earlier, and once more later."""
    graph = chat(saver)
    graph.invoke({"ask": "!nuts"}, CONFIG)
    advance(0.9 * HOUR)
    graph.invoke({"ask": "hello"}, CONFIG)
    then = graph.get_state(CONFIG).config
    advance(0.1 * HOUR)
    graph.invoke({"ask": "!vegan"}, CONFIG)
    advance(0.8 * HOUR)
    assert graph.get_state(then).values["log"]
    return graph.invoke(None, graph.update_state(then, {"ask": "!what may I eat"}, as_node=START))


def slept(saver: Saver, advance: Advance) -> Any:
    """A node of a subgraph sleeps longer than the ttl: the run goes on, and brings all of the thread back."""
    graph, naps = chat(saver, lambda: advance(naps.pop() if naps else 0.0)), list[float]()
    graph.invoke({"ask": "!nuts"}, CONFIG)
    graph.invoke({"ask": "hello"}, CONFIG)
    naps.append(1.05 * HOUR)
    graph.invoke({"ask": "!vegan"}, CONFIG, durability="sync")
    return [each.values for each in graph.get_state_history(CONFIG)], graph.invoke({"ask": "!eggs"}, CONFIG)


def slow_beside_a_question(saver: Saver, slow: Callable[[], None]) -> Graph:
    """Build a graph of a slow node, after which a stateful subgraph remembers what is asked, and asks back."""

    def remember(state: Memory) -> dict[str, Any]:
        return {"facts": [state["ask"]]}

    def ask(state: Memory) -> dict[str, Any]:
        return {"log": [interrupt(f"knows {state['facts']}")]}

    asks: StateGraph[Any, Any, Any, Any] = StateGraph(Memory)
    asks.add_node("remember", remember).add_node("ask", ask)
    asks.add_edge(START, "remember").add_edge("remember", "ask")
    whole: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    whole.add_node("asks", asks.compile(checkpointer=True))
    whole.add_node("work", working(slow))
    return whole.add_edge(START, "asks").add_edge(START, "work").compile(checkpointer=saver)


def stored_at_the_exit(saver: Saver, advance: Advance) -> Any:
    """A thread is renewed between the put of a subgraph and that of its parent, which is of the step before."""
    naps = list[float]()
    # One node after the other: the subgraph asks, and then the other one works.
    graph = slow_beside_a_question(saver, lambda: advance(naps.pop() if naps else 0.0))
    config: RunnableConfig = {**CONFIG, "max_concurrency": 1}
    graph.invoke({"ask": "nuts"}, config)
    advance(0.9 * HOUR)
    naps.append(0.5 * HOUR)
    graph.invoke({"ask": "vegan"}, config, durability="exit")
    then = graph.get_state(config).config
    for _ in range(3):
        advance(0.6 * HOUR)
        for _ in range(2):
            graph.update_state(config, {"log": ["used"]}, as_node="work")
    return [each.value for each in graph.invoke(None, {**then, "max_concurrency": 1})["__interrupt__"]]


def slow_then_specialist(saver: Saver, slow: Callable[[], None]) -> Graph:
    """Build a graph of a slow node, and behind it a stateful subgraph that remembers what is asked."""
    specialist: StateGraph[Any, Any, Any, Any] = StateGraph(Memory)
    specialist.add_node("remember", remembering(lambda: None)).add_edge(START, "remember")
    whole: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    whole.add_node("work", working(slow))
    whole.add_node("specialist", specialist.compile(checkpointer=True))
    return whole.add_edge(START, "work").add_edge("work", "specialist").compile(checkpointer=saver)


@pytest.mark.parametrize("tenths", [11, 14, 17, 20, 22, 25, 28, 31])
def test_a_run_from_what_is_shown_has_what_it_needs(tenths: int) -> None:
    """The older the checkpoint, the sooner it expires: a run from it may still take a ttl until it stores something."""
    engine, naps = Engine(), list[float]()
    graph = slow_then_specialist(
        engine.saver(ttl_seconds=HOUR, cache_bytes=0), lambda: engine.advance(naps.pop() if naps else 0.0)
    )
    graph.invoke({"ask": "nuts"}, CONFIG)
    graph.invoke({"ask": "vegan"}, CONFIG)
    _, then, *_ = (each for each in graph.get_state_history(CONFIG) if each.next in {(), ("work",)})
    for _ in range(tenths):
        engine.advance(0.1 * HOUR)
        graph.update_state(CONFIG, {"log": ["used"]}, as_node="specialist")
    engine.expire()
    is_shown = bool(graph.get_state(then.config).values)
    # All that was stored at first is kept for 3.1 ttls.
    assert is_shown == (tenths <= 20)
    if is_shown:
        # The node may begin before the fork is stored, and the last use was noted a tenth of a ttl ago.
        naps.append(0.8 * HOUR)
        found = graph.invoke(None, then.config, durability="sync")
        assert found["log"][-1] == "knows ['nuts', 'vegan']"


def test_random_programs(tell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Random graphs, and all that happens to their threads, from consecutive seeds; the first that fails is shrunk."""
    use_small_limits(monkeypatch)
    first, programs = first_seed(), int(os.environ.get(RUNS_VARIABLE, 5))
    tell(f"{programs} random programs from {VARIABLE}={first}")
    search(random_program, range(first, first + programs), VARIABLE)


RUNS = (side_by_side, used_daily, travelled, slept, stored_at_the_exit)


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["cold", "warm"])
@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_what_it_needs(run: Callable[[Saver, Advance], Any], cache_bytes: int) -> None:
    """Whatever has expired is removed as soon as it has."""
    engine = Engine()

    def advance(seconds: float) -> None:
        engine.advance(seconds)
        engine.expire()

    found = run(engine.saver(ttl_seconds=HOUR, cache_bytes=cache_bytes), advance)
    assert _told(found) == _told(run(InMemorySaver(), lambda _: None))


def _told(found: Any) -> str:
    """Return what a run found, without the ids of interrupts, which are random."""
    return repr(
        [
            {name: value for name, value in each.items() if name != "__interrupt__"}
            if isinstance(each, dict)
            else each
            for each in (found if isinstance(found, tuple) else (found,))
        ]
    )


@pytest.mark.parametrize("ahead_seconds", [0, 1, 5, 15])
def test_clocks_that_differ_change_nothing_but_when_something_expires(ahead_seconds: int) -> None:
    """Two processes take turns, each time after a pause that lets the next one renew."""

    def talk(savers: list[Any], advance: Advance) -> Any:
        for turn in range(20):
            question = "!fact" if turn % 5 == 0 else "hello"
            chat(savers[turn % 2]).invoke({"ask": f"{question} {turn}"}, CONFIG)
            advance(0.55 * HOUR)
        return chat(savers[0]).invoke({"ask": "!"}, CONFIG)

    engine, memory = Engine(), InMemorySaver()
    savers = [engine.saver(ttl_seconds=HOUR, ahead_seconds=each) for each in (0, ahead_seconds)]
    assert talk(savers, engine.advance) == talk([memory, memory], lambda _: None)


@pytest.mark.parametrize("removes", [True, False], ids=["removed", "still there"])
@pytest.mark.parametrize("rest", [1.0, 2.5, 10.0])
def test_a_run_that_begins_anew_sees_nothing_of_a_thread_that_was_dead(rest: float, removes: bool) -> None:
    engine = Engine()
    graph, new = chat(engine.saver(ttl_seconds=HOUR)), chat(InMemorySaver())
    for question in ("!nuts", "hello", "!vegan"):
        graph.invoke({"ask": question}, CONFIG)
    engine.advance(rest * HOUR)
    if removes:
        engine.expire()
    assert graph.get_state(CONFIG).values == {}
    assert list(graph.get_state_history(CONFIG)) == []
    for _ in range(2):
        assert graph.invoke({"ask": "!eggs"}, CONFIG) == new.invoke({"ask": "!eggs"}, CONFIG)
        seen, expected = ([each.values for each in whole.get_state_history(CONFIG)] for whole in (graph, new))
        assert seen == expected
        # It may go on in a process that remembers nothing.
        graph = chat(engine.saver(ttl_seconds=HOUR))


@pytest.mark.parametrize("kept", range(1, 12))
def test_a_prune_keeps_what_runs_from_the_kept_checkpoints_need(kept: int) -> None:
    """A fork of each that is kept equals a fork in a saver that has pruned nothing."""
    engine = Engine()
    pruned, whole = engine.saver(), InMemorySaver()
    found: list[list[Any]] = []
    for saver in (pruned, whole):
        talk_about(saver, "!nuts", "hello", "!vegan", "!eggs")
        graph = chat(saver)
        graph.update_state(CONFIG, {"ask": "noted"})
        history = [each.config for each in graph.get_state_history(CONFIG)][:kept]
        if isinstance(saver, DynamoDBSaver):
            saver.prune(["t"], strategy="keep_last", keep_last=kept)
            assert [each.config for each in graph.get_state_history(CONFIG)] == history
        found.append([fork(saver, each) for each in history])
    assert found[0] == found[1]


def test_a_prune_that_dies_leaves_no_checkpoint_without_what_a_run_needs() -> None:
    """Whatever it leaves of the root, a fork of that equals one in a saver that has pruned nothing."""
    memory, is_done = InMemorySaver(), False
    talk_about(memory, "!nuts", "hello", "!vegan", "!eggs")
    configs = [each.config for each in chat(memory).get_state_history(CONFIG)]
    expected = [fork(memory, each) for each in configs]
    for requests in count():
        engine = Engine()
        saver = engine.saver()
        talk_about(saver, "!nuts", "hello", "!vegan", "!eggs")
        every = [each.config for each in chat(saver).get_state_history(CONFIG)]
        engine.requests_left = requests
        with suppress(DeadError):
            saver.prune(["t"], strategy="keep_last", keep_last=1)
            is_done = True
        engine.requests_left = None
        for at in [each.config for each in chat(engine.saver()).get_state_history(CONFIG)]:
            position = [each["configurable"]["checkpoint_id"] for each in every].index(
                at["configurable"]["checkpoint_id"]
            )
            assert fork(engine.saver(), at) == expected[position]
        if is_done:
            return


def talk_about(saver: Saver, *questions: str) -> None:
    """Ask a chat some questions, one after the other."""
    for question in questions:
        chat(saver).invoke({"ask": question}, CONFIG)


def fork(saver: Saver, at: RunnableConfig) -> Any:
    """Ask the stateful subgraph something else from an older checkpoint on."""
    graph = chat(saver)
    return graph.invoke(None, graph.update_state(at, {"ask": "!what may I eat"}, as_node=START))
