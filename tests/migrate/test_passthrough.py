"""Values are moved as they are stored: nothing that they name is imported, and nothing that they hold is lost."""

import json
import pickle
import sqlite3
import sys
import types
from collections import deque
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Send

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, Status, TableEndpoint, endpoint_of, migrate
from langgraph.checkpoint.dynamodb.migrate.saver_endpoint import (
    PassedValue,
    PassthroughSerializer,
    can_pass_through,
    is_equal,
    passthrough,
)
from tests.migrate.threads import statuses
from tests.support.checkpoints import checkpoint_of, store, stored_values, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")
LANGGRAPHS = JsonPlusSerializer()
KEEPING = PassthroughSerializer(LANGGRAPHS)
VALUES: list[Any] = [
    None,
    True,
    2**63,
    1.5,
    "text with \ud800",
    b"bytes",
    bytearray(b"more"),
    [1, [2, {"three": 4}]],
    {1: "a", None: "b", 2.5: "c"},
    {"messages": [HumanMessage("hello", id="1"), AIMessage("", tool_calls=[])]},
    {"when": datetime(2026, 1, 1, tzinfo=timezone.utc), "who": UUID(int=7), "where": Path("/tmp")},  # noqa: S108
    [deque([1]), {2, 3}, frozenset({4}), (5, 6), {"bytes": bytearray(b"7")}],
    [Send("node", {"message": HumanMessage("inside", id="2")})],
    _DeltaSnapshot([HumanMessage("snapshot", id="3"), {"x": (1,)}]),
    [float("inf"), -0.0],
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_was_serialized_passes_through_and_what_was_not_is_serialized_like_before(value: Any) -> None:
    serialized = LANGGRAPHS.dumps_typed(value)
    assert KEEPING.dumps_typed(KEEPING.loads_typed(serialized)) == serialized
    assert KEEPING.dumps_typed(value) == serialized


def test_snapshots_are_told_apart_since_savers_treat_them_in_their_own_ways() -> None:
    snapshot = _DeltaSnapshot([HumanMessage("snapshot", id="3")])
    assert isinstance(KEEPING.loads_typed(LANGGRAPHS.dumps_typed(snapshot)), _DeltaSnapshot)


class Unserializable:
    """No serializer of LangGraph's writes this but as a pickle."""


def test_objects_that_only_a_pickle_can_hold_are_what_they_are_to_the_savers_serializer() -> None:
    value = [Unserializable()]
    serde = PassthroughSerializer(JsonPlusSerializer(pickle_fallback=True))
    assert serde.dumps_typed(value) == ("pickle", pickle.dumps(value))
    with pytest.raises(TypeError, match="not msgpack serializable: Unserializable"):
        KEEPING.dumps_typed(value)


def test_pickles_are_not_read_unless_the_saver_does() -> None:
    pickled = pickle.dumps({"a": 1})
    kept = KEEPING.loads_typed(("pickle", pickled))
    assert kept == PassedValue("pickle", pickled)
    assert KEEPING.dumps_typed(kept) == ("pickle", pickled)
    reading = PassthroughSerializer(JsonPlusSerializer(pickle_fallback=True))
    assert reading.loads_typed(("pickle", pickled)) == {"a": 1}


class Own(SerializerProtocol):
    """A serializer of somebody's own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize."""
        return "own", pickle.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize what it has serialized, and nothing else."""
        assert data[0] == "own"
        return pickle.loads(data[1])  # noqa: S301 - its own.


def test_only_langgraphs_serializer_is_replaced() -> None:
    encrypted = EncryptedSerializer.from_pycryptodome_aes(key=b"1" * 16)
    assert can_pass_through(LANGGRAPHS)
    assert can_pass_through(encrypted)
    assert can_pass_through(passthrough(encrypted))
    assert not can_pass_through(Own())
    assert not can_pass_through(EncryptedSerializer(encrypted.cipher, Own()))
    own = Own()
    assert passthrough(own) is own
    assert passthrough(KEEPING) is KEEPING


# Moved


def test_values_of_classes_that_cannot_be_imported_are_moved(
    make_saver: Callable[..., DynamoDBSaver], monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = types.ModuleType("shop_of_the_tests")
    module.Order = make_dataclass("Order", [("name", str)])
    module.Order.__module__ = module.__name__
    source, target = SaverEndpoint(InMemorySaver()), TableEndpoint(make_saver())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        values = {"order": module.Order("a"), "list": [module.Order("b")], "text": "c"}
        written = store(source.saver, thread_config(), "1", values)
        source.saver.put_writes(written, [("order", module.Order("d"))], "task")
    assert statuses(migrate(source, target, ["thread-1"])) == {"thread-1": Status.MOVED}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found: Any = make_saver().get_tuple(written)
    assert found.checkpoint["channel_values"] == values
    assert found.pending_writes == [("task", "order", module.Order("d"))]


@pytest.mark.parametrize("serdes", [(Own(), None), (None, Own()), (Own(), Own())], ids=["from", "to", "both"])
def test_a_serializer_of_ones_own_reads_and_writes_objects(
    make_saver: Callable[..., DynamoDBSaver], serdes: tuple[Any, Any]
) -> None:
    source, target = SaverEndpoint(InMemorySaver(serde=serdes[0])), endpoint_of(make_saver(serde=serdes[1]))
    written = store(source.saver, thread_config(), "1", {"said": HumanMessage("hello", id="1")})
    source.saver.put_writes(written, [("said", HumanMessage("bye", id="2"))], "task")
    assert statuses(migrate(source, target, ["thread-1"])) == {"thread-1": Status.MOVED}
    assert stored_values(target.saver, written) == {"said": HumanMessage("hello", id="1")}


class Answers:
    """What an array says of its equality: an answer for each of its elements."""

    def __eq__(self, other: object) -> Any:
        """Answer for each element."""
        return self

    def __hash__(self) -> int:
        """Be usable."""
        return 0

    def __bool__(self) -> bool:
        """Say nothing of all of them."""
        raise ValueError


def test_objects_are_equal_if_they_say_so_in_a_word() -> None:
    assert is_equal([1], [1])
    assert not is_equal([1], [2])
    assert not is_equal(Answers(), Answers())


def test_a_database_of_langgraphs_first_format_is_moved(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "db", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    when = {"lc": 2, "type": "constructor", "id": ["uuid", "UUID"], "kwargs": {"int": 7}}
    checkpoint = {**checkpoint_of("1", {"when": [when], "text": "a"}), "pending_sends": []}
    row = ("thread-1", "", "1", None, "json", json.dumps(checkpoint).encode(), b'{"step": 1, "writes": {}}')
    connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    source, target = endpoint_of(saver), SaverEndpoint(InMemorySaver())
    assert statuses(migrate(source, target, ["thread-1"])) == {"thread-1": Status.MOVED}
    found: Any = target.saver.get_tuple(thread_config())
    assert found.metadata == {"step": 1, "writes": {}}
    assert found.checkpoint["channel_values"] == {"when": [UUID(int=7)], "text": "a"}
    source.close()
