"""What agents do with their state: the workloads whose price is compared.

Each is a real graph that runs with `durability="sync"` and follows a script, so every saver stores the same
text. A workload runs on a thread and yields whenever all of a turn has been stored.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send
from typing_extensions import TypedDict

from benchmarks.conversation import config_of, conversation
from benchmarks.prose import prose, sentence, uuid

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

_Saver = BaseCheckpointSaver[Any]
_DOCUMENTS = 50
_DOCUMENT_BYTES = 4_000
_WINDOW = 40
_FILES = 30
_EDITS = 60


@dataclass(frozen=True)
class Workload:
    """A name for the tables, and what to do with a saver and a thread."""

    name: str
    run: Callable[[_Saver, str], Iterator[int]]
    # Makes the serializer to open the saver with; by default the saver's own.
    serde: Callable[[], SerializerProtocol] | None = None
    # Whether to count what is in the table at the end: DynamoDB Local takes up to a second to scan a megabyte of a
    # large table, and so as long as the run itself for hundreds of them.
    weighed: bool = False


def chat(turns: int) -> Workload:
    """Return the conversation with tools, of so many turns."""
    return Workload(f"chat, {turns} turns", partial(conversation, turns=turns))


def _questions(seed: str, turns: int) -> Iterator[tuple[int, HumanMessage]]:
    for turn in range(1, turns + 1):
        random = Random(f"{seed}/{turn}/question")
        yield turn, HumanMessage(prose(random, 260), id=uuid(random))


def _answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Answer the last message, at the length of a paragraph or two."""
    random = Random(f"answer/{state['messages'][-1].id}")
    return {"messages": [AIMessage(prose(random, 900), id=f"lc_run--{uuid(random)}")]}


class _Library(MessagesState, total=False):
    documents: list[dict[str, str]]


def _retrieval(saver: _Saver, thread_id: str) -> Iterator[int]:
    """Run an agent that keeps 200 KB of documents in its state and is asked about them for 20 turns."""

    def retrieve(state: _Library) -> dict[str, list[dict[str, str]]]:
        random = Random("documents")
        sources = [f"handbook/{uuid(random)}.md" for _ in range(_DOCUMENTS)]
        return {
            "documents": [{"source": source, "text": prose(random, _DOCUMENT_BYTES)} for source in sources]
        }

    graph = StateGraph(_Library)
    graph.add_node("retrieve", retrieve)
    graph.add_node("answer", _answer)
    graph.add_conditional_edges(START, lambda state: "answer" if state.get("documents") else "retrieve")
    graph.add_edge("retrieve", "answer")
    agent = graph.compile(checkpointer=saver)
    for turn, question in _questions("retrieval", 20):
        agent.invoke({"messages": [question]}, config_of(thread_id), durability="sync")
        yield turn


def _window(saver: _Saver, thread_id: str) -> Iterator[int]:
    """Run a chat of 60 turns that forgets all but its last messages."""

    def trim(state: MessagesState) -> dict[str, list[RemoveMessage]]:
        gone = state["messages"][:-_WINDOW]
        return {"messages": [RemoveMessage(id=message.id) for message in gone if message.id is not None]}

    graph = StateGraph(MessagesState)
    graph.add_node("trim", trim)
    graph.add_node("answer", _answer)
    graph.add_edge(START, "trim")
    graph.add_edge("trim", "answer")
    agent = graph.compile(checkpointer=saver)
    for turn, question in _questions("window", 60):
        agent.invoke({"messages": [question]}, config_of(thread_id), durability="sync")
        yield turn


def _merged(files: dict[str, str], edited: dict[str, str]) -> dict[str, str]:
    return {**files, **edited}


class _Desk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    files: Annotated[dict[str, str], _merged]


def _deep(saver: _Saver, thread_id: str) -> Iterator[int]:
    """Run an agent that edits one of its 30 files in each of 60 steps."""

    def edit(state: _Desk) -> dict[str, object]:
        step = len(state["messages"]) // 2
        random = Random(f"deep/{step}")
        name = random.choice(sorted(state["files"]))
        sentences = state["files"][name].split(". ")
        sentences[random.randrange(len(sentences))] = new = prose(random, 300)
        call = f"toolu_{random.getrandbits(96):024x}"
        request = {"name": "edit_file", "args": {"path": name, "new": new}, "id": call}
        return {
            "messages": [
                AIMessage(sentence(random), id=f"lc_run--{uuid(random)}", tool_calls=[request]),
                ToolMessage(f"{name} has been updated.", id=uuid(random), tool_call_id=call),
            ],
            "files": {name: ". ".join(sentences)},
        }

    graph = StateGraph(_Desk)
    graph.add_node("edit", edit)
    graph.add_edge(START, "edit")
    graph.add_conditional_edges(
        "edit", lambda state: "edit" if len(state["messages"]) <= 2 * (_EDITS - 1) else "__end__"
    )
    random = Random("deep")
    files = {
        f"src/module_{number:02}.md": prose(random, random.randint(2_000, 5_000)) for number in range(_FILES)
    }
    task = HumanMessage(prose(random, 400), id=uuid(random))
    config: RunnableConfig = {**config_of(thread_id), "recursion_limit": 2 * _EDITS}
    graph.compile(checkpointer=saver).invoke({"messages": [task], "files": files}, config, durability="sync")
    yield 1


class _Packet(TypedDict):
    index: int
    subject: str


class _Job(TypedDict, total=False):
    subject: str
    results: Annotated[list[str], operator.add]
    summary: str


def _map_reduce(saver: _Saver, thread_id: str, sends: int = 200, result_bytes: int = 1_000) -> Iterator[int]:
    """Send packets, each of which returns a text, and sum the results up."""

    def work(state: _Packet) -> dict[str, list[str]]:
        return {"results": [prose(Random(f"result/{state['index']}"), result_bytes)]}

    def packets(state: _Job) -> list[Send]:
        return [Send("work", _Packet(index=index, subject=state["subject"])) for index in range(sends)]

    def summarize(state: _Job) -> dict[str, str]:
        return {"summary": prose(Random(f"summary/{len(state['results'])}"), 2 * result_bytes)}

    graph = StateGraph(_Job)
    graph.add_node("work", work)
    graph.add_node("summarize", summarize)
    graph.add_conditional_edges(START, packets, ["work"])
    graph.add_edge("work", "summarize")
    agent = graph.compile(checkpointer=saver)
    agent.invoke({"subject": sentence(Random("subject"))}, config_of(thread_id), durability="sync")
    yield 1


def _aes() -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=bytes(range(32)))


CHAT = chat(60)
PRICED = (
    replace(
        CHAT, name=f"{CHAT.name}, durability='exit'", run=partial(conversation, turns=60, durability="exit")
    ),
    Workload("retrieval", _retrieval),
    Workload("deep agent", _deep),
    Workload("map-reduce", _map_reduce),
    Workload("sliding window", _window),
    replace(CHAT, name="encrypted chat", serde=_aes),
)
SENDS = Workload("a step of 1,000 `Send`s", partial(_map_reduce, sends=1_000, result_bytes=20))
