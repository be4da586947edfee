"""Stored values as people and scripts see them, without an engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer, Stored, as_json, inert
from langgraph.checkpoint.dynamodb.cli.output import brief, readable


class Own:
    """A serializer of somebody's own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Write nothing."""
        return "own", b""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read nothing."""


def looked_at(value: Any) -> Any:
    return LookingSerializer().loads_typed(JsonPlusSerializer().dumps_typed(value))


@pytest.mark.parametrize("calls", [None, "x", [1], [{}]])
def test_a_message_of_any_shape_is_shown(calls: Any) -> None:
    shown = brief(
        Stored("langchain_core.messages.ai.AIMessage", {"tool_calls": calls, "content": [{"a": 1}]})
    )
    assert shown.startswith('message: [{"a": 1}]')


def test_snapshots_and_arrays_are_shown() -> None:
    assert looked_at(_DeltaSnapshot(["a"])) == ["a"]
    array = ormsgpack.Ext(6, ormsgpack.packb(("<f8", (2, 3), "C", b"")))
    shown = LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(array)))
    assert as_json(shown)["value"]["shape"] == [2, 3]


def test_a_set_has_one_order_whatever_process_wrote_it() -> None:
    forward, backward = (
        ormsgpack.Ext(1, ormsgpack.packb(("builtins", "set", parts))) for parts in (["a", "b"], ["b", "a"])
    )
    shown = [
        LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(each))) for each in (forward, backward)
    ]
    assert shown == [Stored("builtins.set", ["a", "b"])] * 2


# A message without its fields.
ODD = Stored("langchain_core.messages.Odd", None)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        # What Python imports and calls.
        (
            {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]},
            Stored("os.system", "true"),
        ),
        ({"lc": 2, "type": "constructor", "id": ["Set"], "args": [[1, 2]]}, Stored("Set", [1, 2])),
        (
            {"lc": 2, "type": "constructor", "id": ["RegExp"], "args": ["a", "g"]},
            Stored("RegExp", ["a", "g"]),
        ),
        ({"lc": 1, "type": "constructor", "id": ["a", "B"], "kwargs": {"c": 1}}, Stored("a.B", {"c": 1})),
        ({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "Odd"]}, ODD),
        ({"lc": 2, "type": "undefined"}, None),
        ({"lc": 2, "type": "delta_snapshot", "value": [1]}, [1]),
        ({"lc": 1, "type": "constructor", "id": []}, {"lc": 1, "type": "constructor", "id": []}),
    ],
)
def test_objects_in_json_are_read_as_data(stored: Any, shown: Any) -> None:
    assert LookingSerializer().loads_typed(("json", json.dumps([stored]).encode())) == [shown]


@pytest.mark.parametrize(
    ("name", "kind"), [("HumanMessage", "human"), ("AIMessageChunk", "ai"), ("ToolMessage", "tool")]
)
@pytest.mark.parametrize("path", [("langchain_core", "messages"), ("langchain", "schema", "messages")])
def test_messages_in_json_are_messages(path: Sequence[str], name: str, kind: str) -> None:
    fields = {"content": "hello", "id": "1"}
    stored = {"lc": 1, "type": "constructor", "id": [*path, name], "kwargs": fields}
    message = LookingSerializer().loads_typed(("json", json.dumps(stored).encode()))
    assert message.is_message
    assert as_json(message) == {"type": kind, **fields}
    assert brief(message) == f"{kind}: hello"


def test_an_encrypted_serializer_is_looked_through_and_ones_own_is_used_as_it_is() -> None:
    encrypted = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    value = inert(encrypted).loads_typed(encrypted.dumps_typed(HumanMessage("hello")))
    assert value.content["content"] == "hello"

    own = Own()
    assert inert(own) is own


def test_what_a_terminal_would_obey_is_spelled() -> None:
    assert readable("a\x1b]0;title\x07\r\n\tb\ud800") == "a\\u001b]0;title\\u0007\\u000d\n\tb\\ud800"


def test_numbers_that_json_has_not_are_text() -> None:
    assert as_json([float("nan"), float("inf"), 1.5, True]) == ["nan", "inf", 1.5, True]


@pytest.mark.parametrize("data", [b"\xc1", ormsgpack.packb(7), ormsgpack.packb(["one", 2])])
def test_extensions_of_somebodys_own_are_shown(data: bytes) -> None:
    value = LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(42, data))))
    assert value.kind == "extension 42"
