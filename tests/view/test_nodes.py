"""Values as nodes: valid JSON whatever they are, whole by their parts, and never large."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer, Stored
from langgraph.checkpoint.dynamodb.view import stored_values
from langgraph.checkpoint.dynamodb.view.nodes import PARTS_MAX, Room, Shower

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=50)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=5)
        | inner.map(lambda each: Stored("my.module.Kind", each))
    ),
    max_leaves=20,
)


def looked_at(value: Any) -> Any:
    return LookingSerializer().loads_typed(JsonPlusSerializer().dumps_typed(value))


def shown(value: Any, **limits: Any) -> Any:
    """A node as the page gets it."""
    node = Shower(**limits).node(value)
    return json.loads(json.dumps(node, allow_nan=False))


def leaves(node: Any) -> Iterator[Any]:
    """The nodes without parts within a node."""
    inner = [*node.get("items", ()), *(each["node"] for each in node.get("entries", ()))]
    inner += [node[name] for name in ("value", "content") if name in node]
    if not inner:
        yield node
    for each in inner:
        yield from leaves(each)


@given(VALUES)
def test_any_value_is_valid_json_and_of_one_fingerprint(value: Any) -> None:
    node = shown(value)
    assert json.dumps(node, ensure_ascii=True).isascii()
    assert node["bytes"] >= 0
    assert stored_values.fingerprint(value) == stored_values.fingerprint(value)
    assert not any(each.get("cut") for each in leaves(node))


@given(VALUES)
def test_every_text_is_found_by_its_path(value: Any) -> None:
    for path, text in stored_values.texts(value):
        found = stored_values.part_at(value, path)
        content = stored_values.inside(found)
        is_number = isinstance(content, (int, float)) and not isinstance(content, bool)
        assert text in (
            stored_values.number_text(content) if is_number else content,
            path[-1] if path else None,
        )


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "null", None),
        (True, "boolean", "true"),
        (False, "boolean", "false"),
        (2**53 + 1, "number", "9007199254740993"),
        (2**100, "number", "1267650600228229401496703205376"),
        pytest.param(1 << 20_000, "number", hex(1 << 20_000), id="very long"),
        (math.nan, "number", "NaN"),
        (-math.inf, "number", "-Infinity"),
        (-0.0, "number", "-0.0"),
        ("\ud800", "text", "\ud800"),
        ("<script>\x1b[31m\u202e", "text", "<script>\x1b[31m\u202e"),
        (b"\x00\xff", "bytes", "AP8="),
    ],
)
def test_what_javascript_would_not_keep_is_text(value: Any, kind: str, text: str | None) -> None:
    node = shown(value)
    assert node["kind"] == kind
    assert node.get("text") == text


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), ([1], [True]), ({"a": None}, {}), (2**70, float(2**70))],
)
def test_values_of_other_types_are_not_the_same(one: Any, other: Any) -> None:
    assert stored_values.fingerprint(one) != stored_values.fingerprint(other)
    assert stored_values.fingerprint([one]) != stored_values.fingerprint([other])
    deep = [2**70, "\ud800", one]
    assert stored_values.fingerprint(deep) != stored_values.fingerprint([*deep[:2], other])


def test_what_is_too_deep_for_pythons_stack_is_shown_and_compared() -> None:
    value: Any = "bottom"
    for _ in range(3000):
        value = [value]
    node = shown(value)
    for _ in range(12):
        [node] = node["items"]
    assert node["cut"]
    assert node["length"] == 1
    assert stored_values.fingerprint(value) != stored_values.fingerprint([value])
    assert stored_values.size_bytes(value) > 3000
    assert stored_values.part_at(value, [0] * 3000) == "bottom"
    kinds: Any = 1
    for _ in range(900):
        kinds = Stored("my.Kind", kinds)
    inner = shown(kinds)
    for _ in range(12):
        inner = inner["value"]
    assert inner == {"kind": "instance", "type": "my.Kind", "bytes": inner["bytes"], "cut": True}


def test_a_document_has_so_much_and_no_more_however_many_channels() -> None:
    value, shower = [["word" * 1000] * 150] * 150, Shower()
    channels = [shower.of(f"channel {number}").node(value) for number in range(9)]
    assert len(json.dumps(channels)) < 3_000_000
    assert all(any(each.get("cut") for each in leaves(node)) for node in channels)
    many = Shower(Room(nodes=10)).node([[1, 2, 3]] * 10)
    assert sum(1 for _ in leaves(many)) < 15
    assert many["length"] == 10


def test_a_message_has_who_said_what_and_which_tools_it_calls() -> None:
    call = {"name": "look_up", "args": {"page": 1}, "id": "call-1"}
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    said: list[Any] = [{"type": "text", "text": "well"}]
    message = looked_at(AIMessage(said, id="m", name="ada", tool_calls=[call], usage_metadata=usage))
    node = shown(message)
    assert (node["kind"], node["role"], node["name"]) == ("message", "ai", "ada")
    assert node["content"]["items"][0]["entries"][1]["node"]["text"] == "well"
    [told] = node["calls"]
    assert (told["id"], told["name"]) == ("call-1", "look_up")
    assert told["args"]["entries"][0]["node"]["text"] == "1"
    assert node["usage"] == {"input": "3", "output": "4"}
    assert [(each["key"], each["node"]["text"]) for each in node["entries"]] == [("id", "m")]
    assert stored_values.part_at(message, ["tool_calls", 0, "args", "page"]) == 1
    result = shown(looked_at(ToolMessage("found", tool_call_id="call-1", status="error")))
    assert (result["role"], result["result_of"], result["status"]) == ("tool", "call-1", "error")
    assert result["usage"] == {"input": None, "output": None}


@pytest.mark.parametrize("calls", [None, "x", [1], [{}]])
def test_a_message_of_any_shape_is_shown(calls: Any) -> None:
    fields = {"tool_calls": calls, "content": [{"a": 1}], "usage_metadata": [1], "response_metadata": 2}
    node = shown(Stored("langchain_core.messages.ai.AIMessage", fields))
    assert (node["kind"], node["role"]) == ("message", "message")


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: {"role": "user", "content": inner},
        lambda inner: Stored("langchain_core.messages.ai.AIMessage", {"content": inner}),
        lambda inner: {"role": "assistant", "content": "", "more": inner},
    ],
    ids=["of a model's service", "of LangChain", "in another field"],
)
def test_messages_in_each_other_are_cut_like_lists(around: Callable[[Any], Any]) -> None:
    value: Any = "bottom"
    # Deeper than Python calls itself.
    for _ in range(1200):
        value = around(value)
    assert any(each.get("cut") for each in leaves(shown(value)))


def test_messages_of_a_models_service_are_messages_too_and_cut_likewise() -> None:
    called = {"role": "assistant", "content": "hi", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}
    node = shown(called)
    assert (node["kind"], node["role"], node["calls"]) == ("message", "assistant", [])
    assert [each["key"] for each in node["entries"]] == ["tool_calls"]
    assert shown({"role": "baker", "content": "bread"})["kind"] == "object"
    fields = {"role": "user", "content": "", **{f"field {each}": 1 for each in range(PARTS_MAX + 1)}}
    assert shown(fields)["cut"]


def test_what_a_serializer_of_somebodys_own_gives_is_named() -> None:
    node = shown(object())
    assert (node["kind"], node["type"]) == ("instance", "object")
