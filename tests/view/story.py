"""Threads of real graphs for the page to show: a journey that goes wrong, a long one, a large one, a hostile one."""

import contextlib
import operator
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from tests.support.graphs import Graph, Node, Saver

JOURNEY = "lisbon"
QUESTION = "Three nights in Lisbon for two, not over 900 euros."
SECOND_THOUGHT = "Take the night train instead."
ANSWER = "yes, book it"
FAILURE = "the hotel's service did not answer"
RUN_ID = "1f0c6f64-5bd2-6d3b-8000-0242ac120002"
WRONG = "4120 euros"
"""Where the journey goes wrong: the node `add_up` reads a price of 412 euros as 4120."""
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
MAIL = "ada@example.org"

SCRIPT = "<script>alert('run')</script><img src=x onerror=alert('shown')><b>bold</b>"
ESCAPE = "\x1b[31mred\x1b[0m\x1b]0;title\x07"
OVERRIDE = "invoice\u202efdp.exe"
LINE_CHARACTERS = 1_000_000
LARGE_CHARACTERS = 5_000_000
ENTRIES = 20_000


def _config(thread_id: str, run_id: str | None = None) -> Any:
    return {
        "configurable": {"thread_id": thread_id} | ({"run_id": run_id} if run_id else {}),
        "recursion_limit": 10_000,
    }


class Journey(TypedDict, total=False):
    """What a travel agent knows."""

    messages: Annotated[list[AnyMessage], add_messages]
    found: Annotated[list[dict[str, Any]], operator.add]
    offer: dict[str, Any]
    account: dict[str, Any]


def _usage(read: int, written: int) -> UsageMetadata:
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


def _model(state: Journey) -> dict[str, Any]:
    """Ask for two tools at once, or answer what a person said later."""
    last = state["messages"][-1]
    if last.content == SECOND_THOUGHT:
        return {"messages": [AIMessage("The night train is 554 euros.", usage_metadata=_usage(410, 21))]}
    calls = [
        {"name": "find_flight", "args": {"city": "Lisbon", "people": 2}, "id": "call-1", "type": "tool_call"},
        {"name": "find_hotel", "args": {"city": "Lisbon", "nights": 3}, "id": "call-2", "type": "tool_call"},
    ]
    answer = AIMessage("I look for a flight and a hotel.", tool_calls=calls, usage_metadata=_usage(120, 48))
    return {"messages": [answer], "account": {"mail": MAIL, "key": KEY}}


def _result(name: str, call: str, **found: Any) -> dict[str, Any]:
    message = ToolMessage(str(found), tool_call_id=call, name=name)
    return {"messages": [message], "found": [{"by": name, **found}]}


def _find_hotel(failures: list[str]) -> Node:
    def find_hotel(_: Journey) -> dict[str, Any]:
        if failures:
            raise ConnectionError(failures.pop())
        return _result("find_hotel", "call-2", hotel="Pensao Alegria", euros=336)

    return find_hotel


def _research() -> Graph:
    """Build a subgraph that has a subgraph: the rates are looked up, and checked by another graph."""
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(Journey)
    inner.add_node("compare", lambda _: {"found": [{"by": "compare", "rate": 1.0}]})
    inner.add_edge(START, "compare")
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(Journey)
    outer.add_node("rates", lambda _: {"found": [{"by": "rates", "currency": "EUR"}]})
    outer.add_node("check", inner.compile())
    outer.add_edge(START, "rates")
    outer.add_edge("rates", "check")
    return outer.compile()


def _add_up(state: Journey) -> dict[str, Any]:
    """Read 412 euros as 4120, which is what nobody notices."""
    offer = {"flight": "TP 1357", "hotel": "Pensao Alegria", "price": {"flight": 4120, "hotel": 336}}
    return {
        "offer": offer,
        "messages": [AIMessage(f"The flight is {WRONG}.", usage_metadata=_usage(390, 35))],
    }


def _ask(state: Journey) -> dict[str, Any]:
    answer = interrupt({"question": "Book the journey?", "euros": 4456})
    return {"messages": [AIMessage(f"Booked, since you said: {answer}.")]}


def journey(saver: Saver, failures: list[str]) -> Graph:
    """Build an agent with two tools side by side, a subgraph, a mistake and a question to a human."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Journey)
    graph.add_node("model", _model)
    graph.add_node("find_flight", lambda _: _result("find_flight", "call-1", flight="TP 1357", euros="412,0"))
    graph.add_node("find_hotel", _find_hotel(failures))
    graph.add_node("research", _research())
    graph.add_node("add_up", _add_up)
    graph.add_node("ask", _ask)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _tools, ["find_flight", "find_hotel", END])
    graph.add_edge(["find_flight", "find_hotel"], "research")
    graph.add_edge("research", "add_up")
    graph.add_edge("add_up", "ask")
    return graph.compile(checkpointer=saver)


def _tools(state: Journey) -> list[str]:
    last = state["messages"][-1]
    return ["find_flight", "find_hotel"] if isinstance(last, AIMessage) and last.tool_calls else [END]


def tell_journey(saver: Saver) -> None:
    """Store the journey: a task fails and is tried again, a human answers, and goes back to earlier steps twice."""
    graph, config = journey(saver, [FAILURE]), _config(JOURNEY, RUN_ID)
    with contextlib.suppress(ConnectionError):
        graph.invoke({"messages": [HumanMessage(QUESTION)]}, config)
    graph.invoke(None, config)
    graph.invoke(Command(resume=ANSWER), config)
    past = {each.next: each for each in graph.get_state_history(config)}
    graph.invoke(None, past["add_up",].config)
    said = {"messages": [HumanMessage(SECOND_THOUGHT)]}
    graph.invoke(None, graph.update_state(past["model",].config, said, as_node=START))


def tell_failure(saver: Saver, thread_id: str) -> None:
    """Store a journey that nobody has gone on with after a task failed."""
    with contextlib.suppress(ConnectionError):
        journey(saver, [FAILURE]).invoke({"messages": [HumanMessage(QUESTION)]}, _config(thread_id))


def tell_once(saver: Saver, thread_id: str, *messages: AnyMessage, name: str = "read", **values: Any) -> None:
    """Store a thread of a graph with one node, which is given these messages and answers with values."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Journey)
    graph.add_node(name, lambda _: values)
    graph.add_edge(START, name)
    graph.compile(checkpointer=saver).invoke({"messages": list(messages)}, _config(thread_id))


def tell_hostile(saver: Saver, thread_id: str) -> None:
    """Store what would run, colour, turn around or freeze a page that took it for anything but text."""
    line = "x" * LINE_CHARACTERS
    said: list[AnyMessage] = [
        HumanMessage(SCRIPT),
        AIMessage(ESCAPE, name=SCRIPT),
        HumanMessage(OVERRIDE),
        AIMessage(line),
    ]
    offer = {SCRIPT: SCRIPT, "constructor": ESCAPE, "__proto__": OVERRIDE}
    tell_once(saver, thread_id, *said, name=SCRIPT, offer=offer)


def tell_large(saver: Saver, thread_id: str) -> None:
    """Store a message of 5 MB, a text of 25 MB, and a list of 20,000 entries."""
    said = HumanMessage("word " * (LARGE_CHARACTERS // 5))
    found = [{"entry": number} for number in range(ENTRIES)]
    tell_once(saver, thread_id, said, offer={"text": "line\n" * LARGE_CHARACTERS}, found=found)
