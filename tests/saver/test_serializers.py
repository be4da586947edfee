"""Serializers of every kind; encryption that hides what it should and still stores equal pieces once."""

import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.conftest import MakeSaver
from tests.support.checkpoints import Conversation, stored_values, thread_config

# An engine stores bytes, whoever made them.
pytestmark = pytest.mark.engines("dynamodb-local")

KEY = b"0123456789abcdef"


class PickleSerializer:
    """A serializer of a user's own, with names of its own for what it writes."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Pickle it."""
        return "my+pickle", pickle.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Unpickle it."""
        assert data[0] == "my+pickle"
        return pickle.loads(data[1])  # noqa: S301 - of the test's own data.


class RandomSerializer(JsonPlusSerializer):
    """A serializer that never gives the same bytes twice, as one that encrypts by itself."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Put random bytes in front of what the inner serializer gives."""
        kind, data = super().dumps_typed(obj)
        return kind, Random().randbytes(16) + data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Take them off again."""
        return super().loads_typed((data[0], data[1][16:]))


class UntypedSerializer:
    """A serializer of the old protocol, without types."""

    def dumps(self, obj: Any) -> bytes:
        """Pickle it."""
        return pickle.dumps(obj)

    def loads(self, data: bytes) -> Any:
        """Unpickle it."""
        return pickle.loads(data)  # noqa: S301 - of the test's own data.


SERIALIZERS = {
    "jsonplus": JsonPlusSerializer,
    "pickle fallback": lambda: JsonPlusSerializer(pickle_fallback=True),
    "encrypted": lambda: EncryptedSerializer.from_pycryptodome_aes(key=KEY),
    "encrypted own": lambda: EncryptedSerializer.from_pycryptodome_aes(serde=PickleSerializer(), key=KEY),
    "own": PickleSerializer,
    "never the same": RandomSerializer,
    "untyped": UntypedSerializer,
}


def _messages(count: int) -> list[HumanMessage]:
    random = Random(1)
    return [HumanMessage(random.randbytes(300).hex(), id=str(number)) for number in range(count)]


@pytest.mark.parametrize("serde", SERIALIZERS.values(), ids=SERIALIZERS.keys())
def test_every_serializer_gives_back_what_was_put(make_saver: MakeSaver, serde: Callable[[], Any]) -> None:
    conversation = Conversation(make_saver(serde=serde()), "t")
    conversation.put(messages=_messages(30), notes={"a": [1, None, b"x"]})
    conversation.put(messages=_messages(60))
    config = conversation.put(messages=_messages(90)[20:])
    conversation.saver.put_writes(config, [("messages", _messages(40)), ("__interrupt__", ("?",))], "task")
    reader = make_saver(serde=serde())
    assert stored_values(reader, thread_config("t")) == conversation.values
    found = reader.get_tuple(config)
    assert found is not None
    assert found.pending_writes is not None
    assert {write[1] for write in found.pending_writes} == {"messages", "__interrupt__"}


def test_objects_that_only_pickle_can_carry_are_given_back(make_saver: MakeSaver) -> None:
    serde = JsonPlusSerializer(pickle_fallback=True)
    value = [range(3), *("x" * 500 for _ in range(100))]
    Conversation(make_saver(serde=serde), "t").put(things=value)
    assert stored_values(make_saver(serde=serde), thread_config("t"))["things"] == value
