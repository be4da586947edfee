"""Messages that several values have: what is copied is what the serializer makes, and nothing of it is shared."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import BaseModel

from langgraph.checkpoint.dynamodb._format import shared_messages
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import key
from langgraph.checkpoint.dynamodb._format.shared_messages import SharedMessages
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.support.harness import Harness

AI = AIMessage(
    [{"type": "text", "text": "so", "annotations": []}],
    id="1",
    tool_calls=[{"name": "look", "args": {"at": {"the": ["sky"]}}, "id": "2", "type": "tool_call"}],
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    response_metadata={"model_name": "a model", "logprobs": [1.5, None]},
    additional_kwargs={1: b"bytes"},
)
COPIED: list[BaseMessage] = [
    AI,
    AIMessageChunk(content="a part", id="1"),
    HumanMessage("Hello", name="Ann"),
    HumanMessage(""),
    SystemMessage([{"type": "text", "text": "You are"}, "a string"]),
    ToolMessage("blue", tool_call_id="2", artifact={"rows": [[1, 2], []]}, status="error"),
    RemoveMessage(id="1"),
]


class OwnMessage(HumanMessage):
    """A message of the agent's own."""

    seen: list[str]


class Model(BaseModel):
    """A model that is no message."""

    names: list[str]


@dataclass
class Data:
    """A dataclass."""

    names: list[str]


NOT_COPIED: list[Any] = [
    HumanMessage("when", additional_kwargs={"at": datetime(2026, 11, 26, tzinfo=timezone.utc)}),
    HumanMessage("what", further=["an extra field"]),
    ToolMessage("rows", tool_call_id="2", artifact=Data(["a"])),
    OwnMessage(content="Hi", seen=["x"]),
    Model(names=["a"]),
    Data(["a"]),
    UUID(int=7),
    _DeltaSnapshot([HumanMessage("in a snapshot")]),
    Send("node", {"messages": [HumanMessage("in a Send")]}),
]
OTHERS: list[Any] = [None, b"bytes", bytearray(b"array"), "text", {"a": [1, {2: (3,)}]}, {"set"}]
SERDE = JsonPlusSerializer(allowed_msgpack_modules=True)


def _changed(value: Any) -> None:
    """Change all that can be changed in a value."""
    if isinstance(value, list):
        for each in value:
            _changed(each)
        value.append("changed")
    elif isinstance(value, dict):
        for each in value.values():
            _changed(each)
        value["changed"] = True
    elif isinstance(value, BaseModel):
        for name, each in vars(value).items():
            _changed(each)
            vars(value)[name] = each if isinstance(each, (list, dict)) else "changed"
        value.__pydantic_fields_set__.add("changed")
    elif isinstance(value, Data):
        _changed(value.names)


@pytest.mark.parametrize("value", [*COPIED, *NOT_COPIED, *OTHERS], ids=lambda each: repr(each)[:60])
def test_every_time_it_is_what_the_serializer_makes_and_nothing_is_shared(value: Any) -> None:
    stored = SERDE.dumps_typed([value, value] if value is not None else None)
    shared = SharedMessages(SERDE)
    for _ in range(3):
        found, expected = shared.loads_typed(stored), SERDE.loads_typed(stored)
        assert found == expected
        assert repr(found) == repr(expected)
        if isinstance(value, BaseModel):
            assert [type(each) for each in found] == [type(value)] * 2
            assert found[0].__pydantic_fields_set__ == expected[0].__pydantic_fields_set__
            assert SERDE.dumps_typed(found) == stored
        _changed(found)


@pytest.mark.parametrize("message", COPIED, ids=lambda each: repr(each)[:60])
def test_a_message_is_deserialized_once(message: BaseMessage, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, stored = SERDE.dumps_typed({"messages": [message]})
    shared = SharedMessages(SERDE)
    expected = deepcopy(shared.loads_typed((kind, stored)))
    monkeypatch.setattr(JsonPlusSerializer, "loads_typed", None)
    assert shared.loads_typed((kind, stored)) == expected


class CountingSerializer(JsonPlusSerializer):
    """A serializer that counts what it makes."""

    made = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Count, and return the value."""
        self.made += 1
        return super().loads_typed(data)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_messages, "_KEPT_BYTES_MAX", 5_000)
    serde = CountingSerializer()
    shared, messages = SharedMessages(serde), [HumanMessage("x" * 2_000, id=str(each)) for each in range(3)]
    for message in (*messages, messages[2], messages[0]):
        assert shared.loads_typed(serde.dumps_typed(message)) == message
    # The third one took the room of the first two.
    assert serde.made == 4


class OwnSerializer(JsonPlusSerializer):
    """A serializer that says what it made."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value beside a word."""
        return "own", super().loads_typed(data)


def test_a_serializer_of_ones_own_makes_every_value() -> None:
    codec = Codec(OwnSerializer()).for_many()
    kind, data = codec.dumps([HumanMessage("Hello")], "a value")
    assert [codec.loads(kind, data, key("t#", "C#1#")) for _ in range(2)] == [
        ("own", [HumanMessage("Hello")])
    ] * 2


def test_plain_data_are_plain_for_many_too() -> None:
    codec = Codec(EncryptedSerializer.from_pycryptodome_aes(key=bytes(16))).for_many()
    kind, data = codec.dumps([HumanMessage("Hello"), Model(names=["a"])], "a value")
    plain = codec.loads(kind, data, key("t#", "C#1#"), plain=True)
    assert not isinstance(plain[1], Model)


def test_checkpoints_of_a_list_share_nothing() -> None:
    harness = Harness()
    process, messages = harness.process(), list[BaseMessage]()
    for number in range(4):
        messages = [*messages, AI.model_copy(update={"id": str(number)})]
        harness.run(process.put(str(number), {"messages": messages}))
    first, *others = harness.run(collected(process.listed()))
    assert first.checkpoint["channel_values"]["messages"] == messages
    expected = deepcopy(others)
    _changed(first.checkpoint["channel_values"])
    assert others == expected
