"""Agents that both languages have, so that one continues what the other began: here, and in `continued.js`."""

import json
import operator
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from tests.support.javascript import EXAMPLE

# Does an action of an agent, such as "go on", and returns what came of it.
Do = Callable[..., Any]


class Log(TypedDict):
    """What the nodes say."""

    log: Annotated[list[str], operator.add]


class Trip(Log):
    """The state of the subgraph."""

    city: str


class Copied(TypedDict):
    """A value, and what the other language made of it."""

    value: Any
    copy: Any


def _graph(state: Any, edges: Sequence[tuple[Any, str]], **nodes: Any) -> Any:
    graph: Any = StateGraph(state)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for edge in edges:
        graph.add_edge(*edge)
    return graph


def _agents(ran: list[str]) -> dict[str, Any]:
    def noted(name: str, update: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(state: Any) -> Any:
            ran.append(name)
            return update(state)

        return run

    def asking(name: str, asked: str) -> Callable[[Any], Any]:
        def update(state: Any) -> Any:
            return {"log": [f"{state.get('city', name)}: {interrupt(asked.format(**state))}"]}

        return noted(name, update)

    def saying(name: str, text: str) -> Callable[[Any], Any]:
        return noted(name, lambda state: {"log": [text.format(**state)]})

    def plan(state: Any) -> Any:
        call = {"id": "call-1", "name": "book", "args": {"city": state["messages"][-1].text}}
        return {"messages": [AIMessage("Booking.", tool_calls=[call])]}

    def book(state: Any) -> Any:
        [call] = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(f"booked {call['args']['city']}", tool_call_id=call["id"])]}

    parallel = _graph(
        Log,
        [(START, "flight"), (START, "hotel"), (START, "weather"), (["flight", "hotel", "weather"], "book")],
        flight=asking("flight", "Which flight?"),
        hotel=asking("hotel", "Which hotel?"),
        weather=saying("weather", "weather: warm"),
        book=saying("book", "booked"),
    )
    edges = [(START, "plan"), ("plan", "book")]
    fork = _graph(MessagesState, edges, plan=noted("plan", plan), book=noted("book", book))
    nodes = {"look": saying("look", "looked at {city}"), "ask": asking("ask", "Book {city}?")}
    booking = _graph(Trip, [(START, "look"), ("look", "ask")], **nodes).compile()
    send = _graph(Log, [(START, "plan")], plan=saying("plan", "planned"), book=booking)
    send.add_conditional_edges("plan", lambda _: [Send("book", {"city": "Lisbon", "log": []})], ["book"])
    return {"parallel": parallel, "fork": fork, "send": send}


def python(saver: BaseCheckpointSaver[Any]) -> Do:
    """Return what the agents do in Python."""
    ran: list[str] = []
    agents = _agents(ran)
    inputs: dict[str, Callable[[Any], Any]] = {
        "start": lambda text: {"messages": [HumanMessage(text or "")], "log": []},
        "go on": lambda _: None,
        "resume": lambda answers: Command(resume=answers),
    }

    def do(agent: str, action: str, given: Any = None, checkpoint_id: str | None = None) -> Any:
        graph = agents[agent].compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": agent, "checkpoint_id": checkpoint_id}}
        if action == "history":
            found = graph.get_state_history(config)
            return [
                [each.config["configurable"]["checkpoint_id"], [*each.next], each.metadata["source"]]
                for each in found
            ]
        if action == "update":
            return graph.update_state(config, inputs["start"](given))["configurable"]["checkpoint_id"]
        ran.clear()
        state = graph.invoke(inputs[action](given), config, durability="sync")
        asked = [[each.value, each.id] for each in state.get("__interrupt__", ())]
        said = state["log"] if "log" in state else [each.text for each in state["messages"]]
        return {"ran": sorted(ran), "asked": asked, "said": said}

    return do


@contextmanager
def javascript(address: str) -> Iterator[Do]:
    """Give what the agents do in JavaScript, through a gateway."""
    with subprocess.Popen(  # noqa: S603  # Our own example.
        ["node", "continued.js", address],  # noqa: S607
        cwd=EXAMPLE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def do(agent: str, action: str, given: Any = None, checkpoint_id: str | None = None) -> Any:
            fields = {"agent": agent, "action": action, "given": given, "checkpoint_id": checkpoint_id}
            print(json.dumps(fields), file=asked, flush=True)
            return json.loads(answers.readline())

        yield do
        asked.close()
