"""Values as JSON data, and what filters find."""

import enum
from collections import UserDict
from datetime import datetime, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointSerializationError
from langgraph.store.dynamodb.json_values import NESTING_MAX, checked_filter, matches, plain

FILTERED: dict[str, dict[str, Any]] = {
    "one": {"n": 1, "text": "b", "nested": {"a": 1, "b": 2}, "flag": True, "tags": ["x", "y"]},
    "two": {"n": 2.5, "text": "a", "nested": {"a": 2}, "flag": False},
    "three": {"n": "2", "text": None, "a.b": 1},
    "four": {"n": True},
}


FOUND: list[tuple[Any, list[str]]] = [
    (None, ["one", "two", "three", "four"]),
    ({}, ["one", "two", "three", "four"]),
    ({"n": 1}, ["one"]),
    ({"n": 1.0}, ["one"]),
    ({"n": True}, ["four"]),
    ({"n": {"$eq": 2.5}}, ["two"]),
    ({"n": {"$ne": 1}}, ["two", "three", "four"]),
    ({"flag": {"$ne": True}}, ["two", "three", "four"]),
    ({"flag": None}, ["three", "four"]),
    ({"text": None}, ["three", "four"]),
    ({"n": {"$gt": 1}}, ["two"]),
    ({"n": {"$gt": 0}}, ["one", "two"]),
    ({"n": {"$gt": False}}, []),
    ({"n": {"$gte": 1, "$lt": 2.5}}, ["one"]),
    ({"n": {"$lte": 2.5}}, ["one", "two"]),
    ({"n": {"$gt": "1"}}, ["three"]),
    ({"text": {"$gte": "a", "$lt": "b"}}, ["two"]),
    ({"nested": {"a": 1}}, ["one"]),
    ({"nested": {"a": {"$gt": 0}}}, ["one", "two"]),
    ({"nested": {"$eq": {"a": 2}}}, ["two"]),
    ({"nested.a": 1}, ["one"]),
    ({"nested.a.b": 1}, []),
    ({"nested.x": 1}, []),
    ({"nested.a": {"$gte": 2}}, ["two"]),
    ({"a.b": 1}, ["three"]),
    ({"tags": ["x", "y"]}, ["one"]),
    ({"tags": ("x", "y")}, ["one"]),
    ({"tags": ["x"]}, []),
    ({"missing": {"$gt": 1}}, []),
    ({"n": 1, "text": "b"}, ["one"]),
    ({"n": 1, "text": "c"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "expected"), FOUND, ids=repr)
def test_a_filter_finds_what_has_all_that_it_wants(wanted: Any, expected: list[str]) -> None:
    checked_filter(wanted)
    assert [name for name, value in FILTERED.items() if matches(value, wanted)] == expected


class _Name(str, enum.Enum):
    ADA = "ada"


class _Number(enum.IntEnum):
    ONE = 1


class _Fraction(float):
    pass


@pytest.mark.parametrize(
    ("value", "copy"),
    [
        (UserDict({"a": ("b", [1])}), {"a": ["b", [1]]}),
        (MappingProxyType({"a": None}), {"a": None}),
        ({"a": _Name.ADA}, {"a": "ada"}),
        ([True, _Number.ONE, _Fraction(1.5)], [True, 1, 1.5]),
    ],
)
def test_a_value_is_copied_as_json_has_it(value: Any, copy: Any) -> None:
    found = plain(value, "value")
    assert repr(found) == repr(copy)
    assert found is not value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"at": [1, {2}]}, "value.at[1] is a builtins.set, which is not JSON data; nothing of the call was"),
        ({"at": {1: 2}}, "value.at has the key 1, which is a builtins.int, which is not JSON data"),
        ({"a": "\ud800"}, "value.a has a lone surrogate, which is not valid Unicode"),
        ({"\ud800": 1}, "value has a lone surrogate, which is not valid Unicode"),
    ],
)
def test_what_is_no_json_is_named(value: Any, why: str) -> None:
    with pytest.raises(CheckpointSerializationError) as caught:
        plain(value, "value")
    assert str(caught.value).startswith(why)


def nested(levels: int, *, in_lists: bool) -> Any:
    """Return a dict that is so deep, with lists or dicts in it."""
    value: Any = 1
    for _ in range(levels - 1):
        value = [value] if in_lists else {"a": value}
    return {"a": value}


@pytest.mark.parametrize("in_lists", [True, False], ids=["lists", "dicts"])
def test_values_and_filters_may_be_so_deep(*, in_lists: bool) -> None:
    deepest = nested(NESTING_MAX, in_lists=in_lists)
    assert plain(deepest, "value") == deepest
    for levels in (NESTING_MAX + 1, 100_000):
        with pytest.raises(
            CheckpointSerializationError, match=r"^value is nested deeper than 255 lists and dicts"
        ):
            plain(nested(levels, in_lists=in_lists), "value")
    checked_filter(nested(64, in_lists=in_lists))
    for levels in (65, 100_000):
        wanted = nested(levels, in_lists=in_lists)
        for each in (wanted, {"a": {"$eq": wanted}}):
            with pytest.raises(
                CheckpointerInputError, match=r"^filter is nested deeper than 64 lists and dicts"
            ):
                checked_filter(each)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        *(
            ({"n": each}, r"filter\.n.* is a .*, which is not JSON data")
            # To find nothing would be the wrong answer: in memory, numbers are found by a Decimal.
            for operand in (Decimal(1), datetime(2026, 11, 25, tzinfo=timezone.utc), {1}, b"1")
            for each in (operand, {"$gt": operand}, {"m": [operand]})
        ),
        ("get", "filter is a str; give a dict"),
        ({1: 2}, "filter is a dict; give a dict of keys"),
        ({"n": {"$in": [1]}}, r"filter has no operator '\$in'; use one of \$eq, \$ne, \$gt"),
        ({"n": {"$gt": 1, "x": 2}}, "filter has no operator 'x'"),
        ({"n": {"m": {"$in": 1}}}, r"filter has no operator '\$in'"),
        ({"n": {1: 2}}, "filter.n has the key 1"),
    ],
)
def test_a_filter_for_what_no_memory_can_have_is_refused(wanted: Any, why: str) -> None:
    with pytest.raises(CheckpointerInputError, match=f"^{why}"):
        checked_filter(wanted)
