"""Plain JSON: what a reader without LangGraph is given of a checkpoint. test_opaque.py says that no object is made."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import ormsgpack
import pytest
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, anybody_on_this_machine, create_gateway
from langgraph.checkpoint.dynamodb.gateway.settings import load_options
from tests.conftest import MakeSaver
from tests.gateway.conftest import always, client_of
from tests.support import graphs
from tests.support.checkpoints import noise, store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")

Ask = Callable[..., Any]
DOCUMENT = Path(__file__).parents[2] / "docs" / "wire.md"
ENCRYPTED = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
LIMITS = Limits(body_bytes_max=8 << 20)
ID = "1f0c6f64-5bd2-6d3b-8000-0242ac120002"


class Written(SerializerProtocol):
    """Writes what a test gives it, whatever the value is, so that a table has what LangGraph would not write."""

    def __init__(self, kind: str, data: bytes) -> None:
        """Take what texts become."""
        self.written = kind, data
        self.inner = JsonPlusSerializer()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Write it for every text."""
        return self.written if isinstance(obj, str) else self.inner.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read what can be read."""
        return self.inner.loads_typed(data)


@pytest.fixture
def make_ask(make_saver: MakeSaver) -> Callable[..., Ask]:
    """Give a factory of functions that ask a gateway, and check its answers by its description."""

    def make(**options: Any) -> Ask:
        principal = options.pop("principal", Principal("reader", rights=frozenset({"read"})))
        saver = make_saver(serde=options.pop("serde", None))
        gateway = create_gateway(
            saver, authenticate=always(principal), plain_json=True, **({"limits": LIMITS} | options)
        )

        async def ask(name: str, status: int = 200, **request: Any) -> Any:
            client: httpx.AsyncClient = client_of(gateway)
            answer = await client.post(f"/checkpoints/{name}", json={"plain": True, **request})
            assert answer.status_code == status, answer.text
            if status == 200:
                described = (await client.get("/openapi.json")).json()
                responses = described["paths"][f"/checkpoints/{name}"]["post"]["responses"]
                content = responses["200"]["content"]
                schema = {**next(iter(content.values()))["schema"], "components": described["components"]}
                Draft202012Validator(schema).validate(answer.json())
            return answer.json()

        return ask

    return make


@pytest.fixture
def ask(make_ask: Callable[..., Ask]) -> Ask:
    """Give what asks a gateway that serves plain JSON."""
    return make_ask()


async def get(ask: Ask, **request: Any) -> Any:
    """The checkpoint of `get-tuple`."""
    return (await ask("get-tuple", **({"thread_id": "t"} | request)))["checkpoint"]


# Real graphs


async def test_a_conversation_is_its_messages(ask: Ask, make_saver: MakeSaver) -> None:
    graph = graphs.agent(make_saver())
    config = thread_config("t")
    await graph.ainvoke({"messages": [HumanMessage("hello", id="one")]}, config)
    found = await get(ask)
    state = await graph.aget_state(config)
    assert state.parent_config is not None
    assert state.metadata is not None
    shown = found["values"]["messages"]
    for message, each in zip(shown, state.values["messages"], strict=True):
        assert message.items() >= {"type": each.type, "content": each.content, "id": each.id}.items()
    assert shown[1]["tool_calls"] == state.values["messages"][1].tool_calls
    assert found["checkpoint_id"] == state.config["configurable"]["checkpoint_id"]
    assert found["parent_checkpoint_id"] == state.parent_config["configurable"]["checkpoint_id"]
    assert (found["ts"], found["metadata"]["step"]) == (state.created_at, state.metadata["step"])
    assert (found["pending_writes"], found["interrupts"], found["omitted"]) == ([], [], {})
    # The history is that of the graph, page by page.
    history = [
        each.config["configurable"]["checkpoint_id"] async for each in graph.aget_state_history(config)
    ]
    assert await listed(ask, limit=2, channels=[]) == history
    again = await get(ask, checkpoint_id=history[-1])
    assert again["checkpoint_id"] == history[-1]


async def listed(ask: Ask, **request: Any) -> list[str]:
    """The ids of all checkpoints of a thread, in pages that are as full as is asked."""
    found: list[Any] = []
    after = None
    while True:
        page = await ask("list", **({"thread_id": "t", "after": after} | request))
        found += page["checkpoints"]
        after = page["after"]
        if after is None:
            return [each["checkpoint_id"] for each in found]
        assert len(page["checkpoints"]) == request["limit"]


async def test_a_subgraph_that_asks_is_a_namespace_of_its_own(ask: Ask, make_saver: MakeSaver) -> None:
    graph = graphs.subgraphs(checkpointer=None)(make_saver())
    config = thread_config("t")
    await graph.ainvoke({"log": ["begin"]}, config)
    asked = (await graph.aget_state(config)).interrupts
    assert asked
    found = await get(ask)
    assert [(each["id"], each["value"]) for each in found["interrupts"]] == [
        (each.id, each.value) for each in asked
    ]
    page = await ask("list", thread_id="t")
    namespaces = {each["checkpoint_ns"] for each in page["checkpoints"]}
    assert "" in namespaces
    inner = max(namespaces, key=len)
    within = await get(ask, checkpoint_ns=inner)
    assert within["interrupts"][0]["value"] == asked[0].value
    assert within["metadata"]["parents"]
    only = await ask("list", thread_id="t", checkpoint_ns=inner)
    assert {each["checkpoint_ns"] for each in only["checkpoints"]} == {inner}


async def test_a_delta_channel_says_that_it_is_rebuilt(ask: Ask, make_saver: MakeSaver) -> None:
    await graphs.journal(make_saver()).ainvoke({"rounds": 0}, thread_config("t"))
    found = await get(ask)
    deltas = [name for name, each in found["omitted"].items() if each["reason"] == "delta_channel"]
    assert deltas
    assert not set(deltas) & found["values"].keys()
    narrowed = await get(ask, channels=["rounds"])
    assert (narrowed["omitted"], [*narrowed["values"]]) == ({}, ["rounds"])


# Values


async def test_values_are_json_where_they_are_and_fields_where_they_are_not(
    ask: Ask, make_saver: MakeSaver
) -> None:
    values = {
        "json": {"text": "é", "list": [1, 1.5, None, True], "nested": {"a": {}}},
        "tuple": (1, 2),
        "bytes": b"\x00\xff",
        "empty": None,
        "keys": {1: "one", "1": "text"},
        "odd": float("nan"),
    }
    store(make_saver(), thread_config("t"), ID, values)
    shown = (await get(ask))["values"]
    assert shown == {
        "json": values["json"],
        "tuple": [1, 2],
        "bytes": {"type": "bytes", "base64": "AP8="},
        "empty": None,
        "keys": {"1": "text", "1'": "one"},
        "odd": "nan",
    }


def extension(code: int, *content: Any) -> bytes:
    """An object as LangGraph's serializer writes one."""
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content)))


def nested(depth: int, inner: bytes) -> bytes:
    """Objects in each other: each is copied out of the one around it."""
    for _ in range(depth):
        inner = ormsgpack.packb(ormsgpack.Ext(0, b"\x93\xa1a\xa1B\x91" + inner))
    return inner


LEFT_OUT: dict[str, tuple[str, bytes, str]] = {
    "empty lists": ("msgpack", b"\xdd" + (3 << 20).to_bytes(4, "big") + b"\x90" * (3 << 20), "too_large"),
    "empty lists in an object": ("msgpack", extension(0, "a", "B", [[]] * 200_000), "too_large"),
    "large objects in each other": ("msgpack", nested(200, ormsgpack.packb(bytes(300_000))), "too_large"),
    "characters that JSON escapes": ("msgpack", ormsgpack.packb("\0" * 2_000_000), "too_large"),
    "empty lists as JSON": ("json", b"[" + b"[]," * 200_000 + b"0]", "too_large"),
    "bytes": ("bytes", noise(4_000_000), "too_large"),
    "bytes of another serializer": ("other", noise(4_000_000), "too_large"),
    "lists in each other": ("msgpack", b"\x91" * 500 + b"\xc0", "unreadable"),
    "small objects in each other": ("msgpack", nested(30, b"\xc0"), "unreadable"),
    "lists in each other as JSON": ("json", b"[" * 50_000, "unreadable"),
    "no msgpack": ("msgpack", b"\xc1", "unreadable"),
}


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        pytest.param(*each, id=name, marks=[pytest.mark.search] if len(each[1]) > 500_000 else [])
        for name, each in LEFT_OUT.items()
    ],
)
async def test_what_cannot_be_shown_is_named_and_the_rest_is_there(
    kind: str, data: bytes, reason: str, ask: Ask, make_saver: MakeSaver
) -> None:
    saver = make_saver(serde=Written(kind, data))
    config = store(saver, thread_config("t"), ID, {"a": "x", "b": [1]})
    saver.put_writes(config, [("__interrupt__", "x")], "task")
    found = await get(ask)
    assert found["values"] == {"b": [1]}
    assert found["omitted"]["a"]["reason"] == reason
    assert 0 < found["omitted"]["a"]["bytes"] < 1.01 * len(data) + 1000
    [write] = found["pending_writes"]
    assert write["omitted"]["reason"] == reason
    assert write["channel"] == "__interrupt__"
    assert found["interrupts"] == [{"id": None, **{name: write[name] for name in write if name != "channel"}}]


async def test_small_values_are_shown_beside_large_ones_and_large_ones_alone(
    ask: Ask, make_saver: MakeSaver
) -> None:
    large = {name: noise(1_700_000, seed).hex()[:2_500_000] for seed, name in enumerate(("a", "b"))}
    saver = make_saver()
    store(saver, thread_config("t"), ID, {**large, "z": "small"})
    found = await get(ask)
    assert len(found["values"]) == 2
    assert found["values"]["z"] == "small"
    [left_out] = found["omitted"]
    assert (await get(ask, channels=[left_out]))["values"] == {left_out: large[left_out]}


async def test_an_item_whose_content_is_too_large_is_named(make_ask: Any, make_saver: MakeSaver) -> None:
    saver = make_saver()
    # Metadata and names of channels, and all writes of a task.
    config = store(
        saver, thread_config("t"), ID, {f"channel {each}" * 50: 1 for each in range(200)}, note="x" * 3000
    )
    saver.put_writes(config, [("a" * 3000, each) for each in range(3)], "task")
    small = make_ask(limits=Limits(body_bytes_max=4000))
    found = await get(small)
    for part in (found["metadata"], found["values"]):
        assert part["omitted"]["reason"] == "too_large"


async def test_an_interrupt_that_no_longer_fits_is_named(make_ask: Any, make_saver: MakeSaver) -> None:
    saver = make_saver()
    config = store(saver, thread_config("t"), ID, {})
    saver.put_writes(config, [("__interrupt__", [Interrupt("x" * 2500, id="me")])], "task")
    found = await get(make_ask(limits=Limits(body_bytes_max=8000)))
    assert found["pending_writes"][0]["value"][0]["value"]["value"] == "x" * 2500
    assert found["interrupts"] == [
        {"task_id": "task", "id": "me", "omitted": {"reason": "too_large", "bytes": 0}}
    ]


# Encryption


async def test_the_service_opens_what_it_has_the_key_of(make_ask: Any, make_saver: MakeSaver) -> None:
    store(make_saver(serde=ENCRYPTED), thread_config("t"), ID, {"a": "shown"}, note="shown")
    assert (await get(make_ask(serde=ENCRYPTED)))["values"] == {"a": "shown"}
    assert "has no cipher" in (await make_ask()("get-tuple", 409, thread_id="t"))["detail"]


# Who may read, and where it is


async def test_by_default_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(create_gateway(DynamoDBSaver("threads"), authenticate=anybody_on_this_machine))
    for name in ("get-tuple", "list"):
        answer = await client.post(f"/checkpoints/{name}", json={"thread_id": "t", "plain": True})
        assert (answer.status_code, "plain_json" in answer.text) == (403, True)
    assert not load_options().plain_json
    monkeypatch.setenv("LANGGRAPH_GATEWAY_PLAIN_JSON", "true")
    assert load_options().plain_json


# The document


async def test_the_example_of_the_document_is_what_is_answered(make_saver: MakeSaver) -> None:
    section = DOCUMENT.read_text().split("## Plain JSON")[1].split("\n## ")[0]
    command, answered = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL) for kind in ("sh", "json"))
    assert command is not None
    assert answered is not None
    words = iter(shlex.split(command[1].replace("\\\n", " ")))
    given: dict[str, str] = {}
    url = ""
    assert next(words) == "curl"
    for word in words:
        if word.startswith("-"):
            given[word] = next(words)
        else:
            url = word
    saver = make_saver()
    first = store(saver, thread_config("acme/trip-1"), "1f0c6f64-4a10-6c11-8000-000000000000", {})
    messages = [HumanMessage("Lisbon?", id="m-1"), AIMessage("Two nights, 336 euros.", id="m-2")]
    config = store(saver, first, "1f0c6f64-5bd2-6d3b-8001-000000000001", {"messages": messages, "euros": 336})
    saver.put_writes(config, [("__interrupt__", [Interrupt("Book it?", id="5d1c")])], "8a3f")
    gateway = create_gateway(saver, authenticate=always(Principal("dashboard", "acme")), plain_json=True)
    name, _, value = given["-H"].partition(": ")
    headers = {name: value, "content-type": "application/json"}
    path = httpx.URL(url).path
    answer = await client_of(gateway).post(path, content=given["--json"], headers=headers)
    assert answer.json() == json.loads(answered[1])
