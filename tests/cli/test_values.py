"""Stored values as people and scripts see them, without an engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer, Stored, as_json
from langgraph.checkpoint.dynamodb.cli.output import brief, readable


@pytest.mark.parametrize("calls", [None, "x", [1], [{}]])
def test_a_message_of_any_shape_is_shown(calls: Any) -> None:
    shown = brief(
        Stored("langchain_core.messages.ai.AIMessage", {"tool_calls": calls, "content": [{"a": 1}]})
    )
    assert shown.startswith('message: [{"a": 1}]')


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


def test_what_a_terminal_would_obey_is_spelled() -> None:
    assert readable("a\x1b]0;title\x07\r\n\tb\ud800") == "a\\u001b]0;title\\u0007\\u000d\n\tb\\ud800"
