"""The agent of the demo, and what one process does with it: `python -m examples.demo_agent ACTION THREAD`.

A travel agent with LangGraph's usual loop: a model asks for tools, each call of a tool is a task of its own, the model
reads what they returned. The model follows a script instead of calling one over the network; everything else is
what an application would write. The only lines that know of DynamoDB are those that make the saver and the store.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import boto3
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore, ToolNode
from langgraph.store.base import BaseStore
from langgraph.types import Command, Send, interrupt

from benchmarks.meter import Meter
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.store.dynamodb import DynamoDBStore

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

TABLE_VARIABLE = "DEMO_TABLE"
USAGE_VARIABLE = "DEMO_USAGE_FILE"
# A tool that finds this variable hangs, as a slow service would, until its process is ended.
HANG_VARIABLE = "DEMO_HANG_IN"

SEARCHES = ("find_flight", "find_hotel", "check_calendar")
QUESTION = "Three nights in Lisbon for two, from the 12th of May. Book what you find."
RECALL = "Where did we stay the last time?"
HOTEL = "Pensao Alegria"
# What the agent remembers of its user, in every thread.
JOURNEYS = ("ada", "journeys")
SECOND_THOUGHT = "On second thought, not over 600 euros. Is there something cheaper?"


def say(text: str) -> None:
    """Print a line at once: whoever reads it may end this process because of it."""
    print(text, flush=True)


def _begin(name: str) -> None:
    say(f"tool {name} begins")
    if os.environ.get(HANG_VARIABLE) == name:
        threading.Event().wait()


@tool("find_flight")
def _find_flight(city: str) -> str:
    """Find the cheapest return flight for two."""
    _begin("find_flight")
    return json.dumps({"flight": "TP 1357", "city": city, "euros": 412})


@tool("find_hotel")
def _find_hotel(city: str, nights: int) -> str:
    """Find a hotel room for two."""
    _begin("find_hotel")
    return json.dumps({"hotel": HOTEL, "city": city, "nights": nights, "euros": 336})


@tool("check_calendar")
def _check_calendar(date: str) -> str:
    """Look for appointments in the days of the journey."""
    _begin("check_calendar")
    return json.dumps({"date": date, "appointments": 0})


@tool("book")
def _book(euros: int, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Book the journey, once a human has agreed to the price."""
    if not interrupt(f"Book flight TP 1357 and the {HOTEL} for {euros} euros?"):
        return "The customer declined."
    _begin("book")
    store.put(JOURNEYS, "LIS-4711", {"hotel": HOTEL, "euros": euros})
    return "Booked, reference LIS-4711."


def _model(state: MessagesState, *, store: BaseStore) -> MessagesState:
    """Answer as the script says: search, add up and book, report, recall."""
    last = state["messages"][-1]
    if last.content == RECALL:
        stays = [str(each.value["hotel"]) for each in store.search(JOURNEYS, limit=1)]
        answer = AIMessage(f"At the {stays[0]}." if stays else "I do not know.")
    elif isinstance(last, HumanMessage):
        answer = _cheaper() if last.content == SECOND_THOUGHT else _search()
    elif isinstance(last, ToolMessage) and last.name == "book":
        answer = AIMessage(f"{last.content} Have a good journey!")
    else:
        answer = _offer([m for m in state["messages"] if isinstance(m, ToolMessage)])
    return {"messages": [answer]}


def _search() -> AIMessage:
    find_flight, find_hotel, check_calendar = SEARCHES
    calls = [
        ToolCall(name=find_flight, args={"city": "Lisbon"}, id="call-1"),
        ToolCall(name=find_hotel, args={"city": "Lisbon", "nights": 3}, id="call-2"),
        ToolCall(name=check_calendar, args={"date": "2027-05-12"}, id="call-3"),
    ]
    return AIMessage("I look for a flight and a hotel, and into your calendar.", tool_calls=calls)


def _offer(found: list[ToolMessage]) -> AIMessage:
    euros = sum(json.loads(str(message.content)).get("euros", 0) for message in found)
    call = ToolCall(name="book", args={"euros": euros}, id="call-4")
    return AIMessage(f"I found a journey for {euros} euros.", tool_calls=[call])


def _cheaper() -> AIMessage:
    return AIMessage("With the night train and the same hotel it is 554 euros. Shall I book that?")


def _next(state: MessagesState) -> list[Send] | str:
    """Send each call of a tool to a task of its own, so that each is stored when it is done."""
    last = state["messages"][-1]
    calls = last.tool_calls if isinstance(last, AIMessage) else []
    return [Send("tools", [{**call, "type": "tool_call"}]) for call in calls] or END


def build(saver: BaseCheckpointSaver[Any], store: BaseStore) -> CompiledStateGraph[MessagesState]:
    """Return the agent with a saver and a store."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", _model)
    graph.add_node("tools", ToolNode([_find_flight, _find_hotel, _check_calendar, _book]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _next, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver, store=store)


def config_of(thread_id: str) -> RunnableConfig:
    """Return the configuration that names a thread."""
    return {"configurable": {"thread_id": thread_id}}


def start(agent: CompiledStateGraph[MessagesState], config: RunnableConfig) -> None:
    """Ask the question."""
    _report(agent.invoke({"messages": [HumanMessage(QUESTION)]}, config))


def resume(agent: CompiledStateGraph[MessagesState], config: RunnableConfig) -> None:
    """Go on with a run that was stopped: no input, the thread says where it was."""
    _report(agent.invoke(None, config))


def answer(agent: CompiledStateGraph[MessagesState], config: RunnableConfig) -> None:
    """Give the agent the answer that it waits for."""
    _report(agent.invoke(Command(resume=True), config))


def recall(agent: CompiledStateGraph[MessagesState], config: RunnableConfig) -> None:
    """Ask in a new thread for what another one has led to."""
    _report(agent.invoke({"messages": [HumanMessage(RECALL)]}, config))


def fork(agent: CompiledStateGraph[MessagesState], config: RunnableConfig) -> None:
    """Go back to where the searches were done, say something else there, and go on."""
    [earlier] = [past for past in agent.get_state_history(config) if _searched(past.values["messages"])]
    forked = agent.update_state(earlier.config, {"messages": [HumanMessage(SECOND_THOUGHT)]}, as_node=START)
    say(f"human: {SECOND_THOUGHT}")
    _report(agent.invoke(None, forked))


def _searched(messages: list[Any]) -> bool:
    return (
        [m.name for m in messages if isinstance(m, ToolMessage)]
        == list(SEARCHES)
        == [m.name for m in messages[-3:]]
    )


def _report(result: dict[str, Any]) -> None:
    for question in result.get("__interrupt__", ()):
        say(f"agent asks: {question.value}")
        return
    say(f"agent: {result['messages'][-1].content}")


ACTIONS = {action.__name__: action for action in (start, resume, answer, fork, recall)}


def main(action: str, thread_id: str) -> None:
    """Do one thing with one thread in this process, and note what each request was charged."""
    usage = Path(os.environ[USAGE_VARIABLE])

    # Written down at once, because one of these processes does not live to sum anything up.
    def note(call: str, units: float) -> None:
        with usage.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"action": action, "call": call, "units": units}) + "\n")

    session = Meter(listen=note).watch(boto3.Session())
    table_name = os.environ[TABLE_VARIABLE]
    with (
        DynamoDBSaver(table_name, session=session) as saver,
        DynamoDBStore(table_name, session=session) as store,
    ):
        ACTIONS[action](build(saver, store), config_of(thread_id))


if __name__ == "__main__":
    main(*sys.argv[1:])
