"""Stored values as data: whatever they are, nothing that they name is imported, made or run."""

import json
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format import inert


class Own:
    """A serializer of somebody's own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Write nothing."""
        return "own", b""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read nothing."""


def looked_at(value: Any) -> Any:
    return inert.LookingSerializer().loads_typed(JsonPlusSerializer().dumps_typed(value))


def test_snapshots_and_arrays_are_shown() -> None:
    assert looked_at(_DeltaSnapshot(["a"])) == ["a"]
    array = ormsgpack.Ext(6, ormsgpack.packb(("<f8", (2, 3), "C", b"")))
    shown = inert.LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(array)))
    assert inert.as_json(shown)["value"]["shape"] == [2, 3]


# A message without its fields.
ODD = inert.Stored("langchain_core.messages.Odd", None)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        # What Python imports and calls.
        (
            {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]},
            inert.Stored("os.system", "true"),
        ),
        ({"lc": 2, "type": "constructor", "id": ["Set"], "args": [[1, 2]]}, inert.Stored("Set", [1, 2])),
        (
            {"lc": 2, "type": "constructor", "id": ["RegExp"], "args": ["a", "g"]},
            inert.Stored("RegExp", ["a", "g"]),
        ),
        (
            {"lc": 1, "type": "constructor", "id": ["a", "B"], "kwargs": {"c": 1}},
            inert.Stored("a.B", {"c": 1}),
        ),
        ({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "Odd"]}, ODD),
        ({"lc": 2, "type": "undefined"}, None),
        ({"lc": 2, "type": "delta_snapshot", "value": [1]}, [1]),
        ({"lc": 1, "type": "constructor", "id": []}, {"lc": 1, "type": "constructor", "id": []}),
    ],
)
def test_objects_in_json_are_read_as_data(stored: Any, shown: Any) -> None:
    assert inert.LookingSerializer().loads_typed(("json", json.dumps([stored]).encode())) == [shown]


def test_an_encrypted_serializer_is_looked_through_and_ones_own_is_used_as_it_is() -> None:
    encrypted = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    value = inert.inert(encrypted).loads_typed(encrypted.dumps_typed(HumanMessage("hello")))
    assert value.content["content"] == "hello"

    own = Own()
    assert inert.inert(own) is own


@pytest.mark.parametrize("data", [b"\xc1", ormsgpack.packb(7), ormsgpack.packb(["one", 2])])
def test_extensions_of_somebodys_own_are_shown(data: bytes) -> None:
    value = inert.LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(42, data))))
    assert value.kind == "extension 42"


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (("a.b", "C", {"x": 1}), inert.Stored("a.b.C", {"x": 1})),
        (("a.b", "C", (1,), "method"), inert.Stored("a.b.C", [1])),
        (("builtins", "frozenset", ({2: 1}, {1: 2})), inert.Stored("builtins.frozenset", [{1: 2}, {2: 1}])),
        (("other", "set", ["b", "a"]), inert.Stored("other.set", ["b", "a"])),
        (("builtins", "set", 7), inert.Stored("builtins.set", 7)),
        (("f8", [2]), inert.Stored("extension 1", ["f8", [2]])),
    ],
)
def test_an_object_is_its_class_and_what_it_is_made_of(parts: Any, shown: inert.Stored) -> None:
    packed = ormsgpack.packb(parts, option=ormsgpack.OPT_NON_STR_KEYS)
    assert (
        inert.LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(1, packed)))) == shown
    )
    inner = ormsgpack.packb(("outer", "Class", ormsgpack.Ext(1, packed)))
    outer = inert.LookingSerializer().loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(2, inner))))
    assert outer == inert.Stored("outer.Class", shown)


@pytest.mark.parametrize(
    ("kind", "data", "shown"),
    [
        ("null", b"", None),
        ("bytes", b"a", b"a"),
        ("bytearray", b"a", bytearray(b"a")),
        ("json", b'{"a":[1]}', {"a": [1]}),
        ("pickle", b"a", inert.Stored("pickle", b"a")),
    ],
)
def test_other_forms_are_read_without_running_anything(kind: str, data: bytes, shown: Any) -> None:
    assert inert.LookingSerializer().loads_typed((kind, data)) == shown


class Memory(dict[tuple[int, bytes], Any]):
    """A cache that notes sizes."""

    sizes = 0

    def keep(self, key: tuple[int, bytes], value: Any, size_bytes: int) -> None:
        """Keep an object."""
        self[key] = value
        self.sizes += size_bytes


def test_an_object_that_is_cached_is_read_once() -> None:
    memory = Memory()
    data = ormsgpack.packb(("a", "B", "c"))
    serializer = inert.inert(JsonPlusSerializer(), memory)
    for _ in range(2):
        assert serializer.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(1, data)))) == inert.Stored(
            "a.B", "c"
        )
    assert (memory, memory.sizes) == ({(1, data): inert.Stored("a.B", "c")}, len(data))
    memory[1, data] = "cached"
    encrypted = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    stored = encrypted.dumps_typed(HumanMessage("hello"))
    found = inert.inert(encrypted, memory).loads_typed(stored)
    assert found in memory.values()
    assert serializer.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(1, data)))) == "cached"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (inert.Stored("a.B", (1, {"c"})), {"type": "a.B", "value": [1, ["c"]]}),
        (inert.Stored("uuid.UUID", "1"), "1"),
        (inert.Stored("uuid_of.mine", "1"), {"type": "uuid_of.mine", "value": "1"}),
        (
            inert.Stored("langchain_core.messages.ai.AIMessage", {"content": b"x"}),
            {"content": {"type": "bytes", "base64": "eA=="}},
        ),
        (
            inert.Stored("langchain_core.messages.ai.AIMessage", "x"),
            {"type": "langchain_core.messages.ai.AIMessage", "value": "x"},
        ),
        (
            {1: bytearray(b"x"), "1": None, (1,): "text"},
            {"1": None, "1'": {"type": "bytes", "base64": "eA=="}, "(1,)": "text"},
        ),
        ([object, float("nan"), float("inf"), 1.5, True], [repr(object), "nan", "inf", 1.5, True]),
    ],
)
def test_a_value_in_json_has_the_fields_of_objects(value: Any, shown: Any) -> None:
    assert inert.as_json(value) == shown
    json.dumps(shown)


def test_each_key_has_a_label_of_its_own() -> None:
    assert inert.labelled({1: "a", "1": "b", "1'": "c", None: "d"}) == {
        "1": "b",
        "1'": "c",
        "1''": "a",
        "None": "d",
    }


def test_an_interrupt_is_open_until_its_task_goes_on() -> None:
    writes = [
        ("done", "__interrupt__", ("gone",)),
        ("done", "x", 1),
        ("open", "__interrupt__", ["one", "two"]),
        ("open", "__error__", "none"),
        ("single", "__interrupt__", "three"),
        ("single", "__resume__", 1),
    ]
    assert inert.interrupts_in(iter(writes)) == [("open", "one"), ("open", "two"), ("single", "three")]


@pytest.mark.parametrize(
    ("interrupt", "value"),
    [
        (inert.Stored("langgraph.types.Interrupt", {"value": 1}), 1),
        ({"value": 2}, 2),
        ({"other": 2}, {"other": 2}),
        ("value", "value"),
        (inert.Stored("x", "value"), inert.Stored("x", "value")),
    ],
)
def test_what_an_interrupt_asks_is_its_value(interrupt: Any, value: Any) -> None:
    assert inert.asked(interrupt) == value
