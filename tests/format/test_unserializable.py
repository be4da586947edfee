"""The part of a value that cannot be serialized is named by its path."""

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel, ConfigDict
from pydantic.v1 import BaseModel as OldModel

from langgraph.checkpoint.dynamodb import CheckpointSerializationError
from langgraph.checkpoint.dynamodb._format.codec import Codec

LOCK = threading.Lock()


@dataclass
class Order:
    """A dataclass."""

    parts: Any
    number: int = 1


class Pair(NamedTuple):
    """A named tuple."""

    left: Any
    right: Any


class Model(BaseModel):
    """A model of pydantic 2."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    tools: dict[str, Any]


class Old(OldModel):
    """A model of pydantic 1."""

    tools: dict[str, Any]


class Rude:
    """An object whose fields cannot be read."""

    def model_dump(self) -> Any:
        """Raise."""
        msg = "no"
        raise RuntimeError(msg)


MESSAGES = [HumanMessage("a"), AIMessage("b"), AIMessage("c", additional_kwargs={"rate": LOCK, "x": 1})]
WHERE: dict[str, tuple[Any, str]] = {
    "the value itself": (LOCK, "state is a _thread.lock "),
    "a class": (Order, "state is a builtins.type "),
    "a message": (MESSAGES, "state[2].additional_kwargs['rate'] is a _thread.lock "),
    "dicts and lists": ({"a": [1, {"b": (2, LOCK)}]}, "state['a'][1]['b'][1] is a _thread.lock "),
    "a key that is no text": ({1: LOCK}, "state[1] is a _thread.lock "),
    "a key": ({LOCK: 1}, "state is a builtins.dict "),
    "a set": ({"locks": {LOCK}}, "state['locks']{...} is a _thread.lock "),
    "a dataclass": (Order([LOCK]), "state.parts[0] is a _thread.lock "),
    "a named tuple": (Pair(1, {"b": LOCK}), "state.right['b'] is a _thread.lock "),
    "a model": (Model(tools={"a": LOCK}), "state.tools['a'] is a _thread.lock "),
    "an old model": (Old(tools={"a": LOCK}), "state.tools['a'] is a _thread.lock "),
    "an object that cannot be read": ([Rude()], "state[0] is a tests.format.test_unserializable.Rude "),
    "a number": ([1, 1 << 80], "state[1] is a builtins.int (Integer exceeds 64-bit range)"),
}


@pytest.mark.parametrize("kind", WHERE)
@pytest.mark.parametrize(
    "serde", [JsonPlusSerializer(), EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 16)]
)
def test_the_path_of_the_part_is_told(serde: Any, kind: str) -> None:
    value, said = WHERE[kind]
    with pytest.raises(CheckpointSerializationError) as caught:
        Codec(serde).dumps(value, "channel 'state'", "state")
    assert str(caught.value).startswith(f"channel 'state' cannot be serialized: {said}")


def test_what_contains_itself_has_a_path_that_ends() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(
        CheckpointSerializationError, match=r"state\[0\]\[0\].*is a builtins.list \(Recursion limit"
    ):
        Codec(JsonPlusSerializer()).dumps(endless, "channel 'state'", "state")


def test_a_key_of_any_size_is_cut() -> None:
    with pytest.raises(CheckpointSerializationError) as caught:
        Codec(JsonPlusSerializer()).dumps({"x" * 10_000: LOCK}, "channel 'state'", "state")
    assert "xxx... is a _thread.lock" in str(caught.value)
    assert len(str(caught.value)) < 1000
