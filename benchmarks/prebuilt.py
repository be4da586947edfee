"""Agents that nobody here wrote: LangGraph's prebuilt ones, a state that compresses well, and a fan-out.

Every one runs by `invoke` with LangGraph's defaults, so checkpoints are stored in the background while the next tasks
run, unless its name says otherwise. The models are fakes that follow a script, and take as long as they are told.
"""

from __future__ import annotations

import operator
import time
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Send
from typing_extensions import TypedDict

from benchmarks.conversation import config_of
from benchmarks.prose import prose, uuid, words
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Durability

_RESULT_BYTES = 4_000
_TOOL_ROUNDS = 2
_REPEATS = 100
_QUERIES = 100
_SUBJECTS = 100
_BUMPS = 10


class ScriptedModel(BaseChatModel):
    """A model that asks for a tool so many times in each turn, and then answers."""

    rounds: int
    latency_seconds: float = 0.0
    repeats: int = 0
    """How often a query repeats itself, which makes it long and easy to compress; 0 for a query of a few words."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: object, **options: Any) -> ScriptedModel:
        """Return itself, since the script knows the tool."""
        del tools, options
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        del arguments, options
        time.sleep(self.latency_seconds)
        turn = sum(isinstance(each, HumanMessage) for each in messages)
        last = max(place for place, each in enumerate(messages) if isinstance(each, HumanMessage))
        asked = sum(isinstance(each, AIMessage) for each in messages[last:])
        answer = self._asking(turn, asked) if asked < self.rounds else self._answering(turn)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _asking(self, turn: int, asked: int) -> AIMessage:
        random = Random(f"agents/{turn}/{asked}")
        query = uuid(random) * self.repeats if self.repeats else " ".join(words(random, 6))
        call = {"name": "search", "args": {"query": query}, "id": f"toolu_{random.getrandbits(96):024x}"}
        return AIMessage("", id=f"lc_run--{uuid(random)}", tool_calls=[call])

    def _answering(self, turn: int) -> AIMessage:
        random = Random(f"agents/{turn}/answer")
        return AIMessage(prose(random, 600), id=f"lc_run--{uuid(random)}")


@tool("search")
def search(query: str) -> str:
    """Search the tickets of the company."""
    random, lines = Random(f"agents/{query}"), list[str]()
    while sum(map(len, lines)) < _RESULT_BYTES:
        state, day = random.choice(("open", "closed", "waiting")), random.choice(("Monday", "Friday"))
        name = " ".join(words(random, 2))
        lines.append(f"{state} since {day}: {name}, assigned to the team on call, no deadline set\n")
    return "".join(lines)


@tool("search")
def echo(query: str) -> str:
    """Repeat the query."""
    return f"result of {query}" * 10


def turns_of(
    make_agent: Callable[..., Any],
    saver: BaseCheckpointSaver[Any],
    thread_id: str,
    *,
    turns: int,
    latency_seconds: float = 0.0,
    durability: Durability = "async",
) -> Iterator[int]:
    """Run an agent with a tool that finds 4 KB, twice in each turn; yield the number of each turn."""
    model = ScriptedModel(rounds=_TOOL_ROUNDS, latency_seconds=latency_seconds)
    agent = make_agent(model, [search], checkpointer=saver)
    for turn in range(1, turns + 1):
        random = Random(f"agents/{turn}/question")
        question = HumanMessage(prose(random, 260), id=uuid(random))
        agent.invoke({"messages": [question]}, config_of(thread_id), durability=durability)
        yield turn


def _repeating(saver: BaseCheckpointSaver[Any], thread_id: str) -> Iterator[int]:
    """Run an agent that calls a tool 100 times in one turn, whose long answers compress 150 times."""
    model = ScriptedModel(rounds=_QUERIES, repeats=_REPEATS)
    agent = create_react_agent(model, [echo], checkpointer=saver)
    config: RunnableConfig = {**config_of(thread_id), "recursion_limit": 10 * _QUERIES}
    agent.invoke({"messages": [HumanMessage("hi?", id=uuid(Random("hi")))]}, config)
    yield 1


class _Subject(TypedDict):
    subject: str


class _Verse(TypedDict):
    subject: str
    verses: list[str]


class _Poem(TypedDict):
    subjects: list[str]
    verses: Annotated[list[str], operator.add]


def _verse() -> CompiledStateGraph[_Verse, None, _Subject, _Verse]:
    """Return a subgraph that writes a line and goes over it ten times."""
    graph = StateGraph(_Verse, input_schema=_Subject)
    graph.add_node("title", lambda state: {"subject": f"On {state['subject']}"})
    graph.add_node("write", lambda state: {"verses": [f"{state['subject']}:"]})
    graph.add_node("go_over", lambda state: {"verses": [f"{state['verses'][0]} o"]})
    graph.add_edge(START, "title")
    graph.add_edge("title", "write")
    graph.add_edge("write", "go_over")
    graph.add_conditional_edges(
        "go_over", lambda state: END if state["verses"][0].endswith(" o" * _BUMPS) else "go_over"
    )
    return graph.compile()


def fan_out(saver: BaseCheckpointSaver[Any], thread_id: str, subjects: int) -> Iterator[int]:
    """Send each subject to a subgraph of 14 checkpoints, all at once."""
    graph = StateGraph(_Poem)
    graph.add_node("verse", _verse())
    graph.add_conditional_edges(
        START, lambda state: [Send("verse", {"subject": each}) for each in state["subjects"]], ["verse"]
    )
    graph.add_edge("verse", END)
    random = Random("fan-out")
    given = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=1000)) for _ in range(subjects)]
    graph.compile(checkpointer=saver).invoke({"subjects": given, "verses": []}, config_of(thread_id))
    yield 1


def react(turns: int, **options: Any) -> Callable[[BaseCheckpointSaver[Any], str], Iterator[int]]:
    """Return the run of LangGraph's prebuilt agent, of so many turns."""
    return partial(turns_of, create_react_agent, turns=turns, **options)


_SHORT = 40
_LONG = 80
REACT = Workload("react agent", react(_LONG))
REACT_SYNC = Workload("react agent, sync", react(_SHORT, durability="sync"))
REACT_SLOW = Workload("react agent, model of 300 ms", react(_SHORT, latency_seconds=0.3))
REACT_QUICK = Workload("react agent, model of 80 ms", react(_LONG, latency_seconds=0.08))
REPEATING = Workload("100 calls that compress", _repeating)
FAN_OUT = Workload("fan-out to subgraphs", partial(fan_out, subjects=_SUBJECTS))
CREATE_AGENT = Workload("create_agent", partial(turns_of, create_agent, turns=_SHORT))
# As far as the peers are followed: each turn costs them more than the last.
REACT_SHORT = Workload("react agent, 40 turns", react(_SHORT))
PREBUILT = (REACT, REACT_SYNC, REACT_SLOW, REACT_QUICK, REPEATING, FAN_OUT, CREATE_AGENT, REACT_SHORT)
