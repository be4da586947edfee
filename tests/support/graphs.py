"""LangGraph graphs for the tests, each without a network, a clock or a random number of its own."""

import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]
Saver: TypeAlias = BaseCheckpointSaver[Any]
Build: TypeAlias = Callable[[Saver], Graph]
# LangGraph's types of a node ask for a parameter that is called `state`, which `Callable` cannot say.
Node: TypeAlias = Any


class Conversation(TypedDict, total=False):
    """The state of an agent: its messages."""

    messages: Annotated[list[AnyMessage], add_messages]


def _scripted_model(state: Conversation) -> dict[str, Any]:
    """Ask for a tool twice after each message of a person, then answer."""
    messages = state["messages"]
    last_question = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
    calls = sum(isinstance(message, ToolMessage) for message in messages[last_question:])
    name = f"reply-{len(messages)}"
    if calls == 2:
        return {"messages": [AIMessage(f"The answer to {messages[last_question].content}.", id=name)]}
    call = {"name": "look_up", "args": {"page": calls}, "id": f"call-{len(messages)}", "type": "tool_call"}
    return {"messages": [AIMessage("", id=name, tool_calls=[call])]}


def _tool(state: Conversation) -> dict[str, Any]:
    """Answer the last tool call with some kilobytes, as tools do."""
    request = state["messages"][-1]
    call = request.tool_calls[0] if isinstance(request, AIMessage) else None
    if call is None:
        return {}
    text = "".join(f"line {line} of page {call['args']['page']}; " for line in range(150))
    return {"messages": [ToolMessage(text, tool_call_id=call["id"], id=f"result-{call['id']}")]}


def _wants_tool(state: Conversation) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def agent(saver: Saver) -> Graph:
    """Build a model that calls a tool in a loop, on a list of messages."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Conversation)
    graph.add_node("model", _scripted_model)
    graph.add_node("tools", _tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _wants_tool, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


class Log(TypedDict, total=False):
    """A log that branches append to, and a number that only some steps change."""

    log: Annotated[list[str], operator.add]
    count: int


def subgraphs(checkpointer: bool | None) -> Build:
    """Build a graph in a graph in a graph; the inner ones keep their state per call (None) or per thread (True)."""

    def note(text: str) -> Node:
        return lambda state: {"log": [f"{text} {len(state.get('log', []))}"]}

    def ask(state: Any) -> dict[str, Any]:
        return {"log": [f"answered {interrupt({'seen': len(state.get('log', []))})}"]}

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    inner.add_node("deep", note("deep"))
    inner.add_node("ask", ask)
    inner.add_edge(START, "deep")
    inner.add_edge("deep", "ask")
    middle: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    middle.add_node("before", note("before"))
    middle.add_node("inner", inner.compile(checkpointer=checkpointer))
    middle.add_edge(START, "before")
    middle.add_edge("before", "inner")

    def build(saver: Saver) -> Graph:
        outer: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
        outer.add_node("start", note("start"))
        outer.add_node("middle", middle.compile(checkpointer=checkpointer))
        outer.add_node("end", note("end"))
        outer.add_edge(START, "start")
        outer.add_edge("start", "middle")
        outer.add_edge("middle", "end")
        return outer.compile(checkpointer=saver)

    return build


def fan_out(saver: Saver) -> Graph:
    """Build two branches side by side, then one task for each entry they logged."""

    def work(state: Any) -> dict[str, Any]:
        return {"log": [f"done {state['entry']}"]}

    def split(state: Log) -> list[Send]:
        return [Send("work", {"entry": entry}) for entry in state["log"]]

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    graph.add_node("left", lambda _: {"log": ["left 1", "left 2"], "count": 2})
    graph.add_node("right", lambda _: {"log": ["right"]})
    graph.add_node("join", lambda _: {"log": ["joined"]})
    graph.add_node("work", work)
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "join")
    graph.add_conditional_edges("join", split, ["work"])
    return graph.compile(checkpointer=saver)


def approvals(saver: Saver) -> Graph:
    """Build two branches that ask a person at the same time, and one that does not."""

    def ask(name: str) -> Node:
        return lambda _: {"log": [f"{name}: {interrupt(f'approve {name}?')}"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    graph.add_node("travel", ask("travel"))
    graph.add_node("budget", ask("budget"))
    graph.add_node("file", lambda _: {"log": ["filed"], "count": 1})
    graph.add_node("close", lambda state: {"log": [f"closed after {len(state['log'])}"]})
    for name in ("travel", "budget", "file"):
        graph.add_edge(START, name)
    graph.add_edge(["travel", "budget", "file"], "close")
    return graph.compile(checkpointer=saver)


def unreliable(runs: list[str], failures: int) -> Build:
    """Build two branches of which the second fails some times; every run of one is noted in `runs`."""

    def steady(state: Any) -> dict[str, Any]:
        runs.append("steady")
        return {"log": ["steady"]}

    def unsteady(state: Any) -> dict[str, Any]:
        runs.append("unsteady")
        if runs.count("unsteady") <= failures:
            msg = "the network is down"
            raise ConnectionError(msg)
        return {"log": ["at last"]}

    def build(saver: Saver) -> Graph:
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
        graph.add_node("steady", steady)
        graph.add_node("unsteady", unsteady)
        graph.add_node("close", lambda state: {"log": [f"closed after {len(state['log'])}"]})
        graph.add_edge(START, "steady")
        graph.add_edge(START, "unsteady")
        graph.add_edge(["steady", "unsteady"], "close")
        return graph.compile(checkpointer=saver)

    return build


def _extend(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(entry for write in writes for entry in write)]


class AccessLog(TypedDict, total=False):
    """A log in a delta channel: its writes are stored, and the whole of it every third time."""

    log: Annotated[list[str], DeltaChannel(_extend, snapshot_frequency=3)]
    rounds: int


def journal(saver: Saver) -> Graph:
    """Build a loop on a delta channel that asks a person every other round, and ends after five."""

    def write(state: AccessLog) -> dict[str, Any]:
        rounds = state.get("rounds", 0) + 1
        return {"log": [f"round {rounds}", "x" * 400], "rounds": rounds}

    def ask(state: AccessLog) -> dict[str, Any]:
        answer = interrupt("go on?") if state["rounds"] % 2 else "without asking"
        return {"log": [f"after {len(state['log'])}: {answer}"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(AccessLog)
    graph.add_node("write", write)
    graph.add_node("ask", ask)
    graph.add_node("next", lambda state: Command(goto=END if state["rounds"] % 5 == 0 else "write"))
    graph.add_edge(START, "write")
    graph.add_edge("write", "ask")
    graph.add_edge("ask", "next")
    return graph.compile(checkpointer=saver)
