"""What an item has to have: each attribute of its type, and the others that it needs."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.attributes import check_attributes, kind_of
from langgraph.checkpoint.dynamodb._format.items import Item, Part

HEAD, TASK, SEGMENT, ID = "C#1#", "C#1#W#t", "S#0202020202020202", b"\2" * 8
WHOLE: dict[str, dict[str, Any]] = {
    HEAD: {
        "v": {"N": "1"},
        "body": Part((), (ID,), b"").attribute(HEAD),
        "metadata": {"S": "{}"},
        "epoch": {"B": b"e"},
        **{name: {"N": "9"} for name in ("ttl_seconds", "expires_at", "alive_until")},
    },
    TASK: {
        "writes": Part((ID,), (), b"").attribute(TASK),
        "writes_epoch": {"B": b"e"},
        "special_2": Part((), (), b"x").attribute(TASK),
        "order": {"N": "1"},
        "created_at": {"N": "9"},
    },
    SEGMENT: {"data": {"B": b"x"}, "created_at": {"N": "9"}},
    "N#child": {"registered": {"B": b"x"}},
    "L": {"holder": {"B": b"x"}},
    "T": {
        "epoch": {"B": b"e"},
        "owner": {"S": "ada"},
        "about": {"B": b"x"},
        "active_day": {"S": "2026-11-28"},
        **{name: {"N": "9"} for name in ("last_active", "created_at", "kept_before", "kept_until")},
        **{name: {"N": "9"} for name in ("alive_until", "expires_at")},
    },
    "other": {},
}


def _item(sk: str, *gone: str) -> Item:
    return {**items.key("t#", sk), **{name: value for name, value in WHOLE[sk].items() if name not in gone}}


@pytest.mark.parametrize("sk", WHOLE)
def test_an_item_that_is_whole_has_what_it_needs_and_each_of_its_type(sk: str) -> None:
    check_attributes(_item(sk))
    for name in WHOLE[sk]:
        item = {**_item(sk), name: {"BOOL": True}}
        with pytest.raises(
            CheckpointCorruptionError, match=rf"^item .* damaged: its attribute {name} is not of"
        ):
            check_attributes(item)
        if "N" in WHOLE[sk][name]:
            with pytest.raises(
                CheckpointCorruptionError, match=rf"^item .* attribute {name} is not a number in"
            ):
                check_attributes({**item, name: {"N": "x"}})


# What is missing without an attribute; by default, the attribute itself.
OTHERS = {
    (HEAD, "metadata"): "metadata or sealed_metadata",
    (TASK, "special_2"): "special_1 or special_2 or special_3 or special_4",
}
# What an item of its kind may do without.
OPTIONAL = {("T", "owner"), ("T", "kept_before"), ("L", "holder")}


@pytest.mark.parametrize(
    ("sk", "gone"), [(sk, name) for sk in WHOLE for name in WHOLE[sk] if (sk, name) not in OPTIONAL]
)
def test_an_attribute_that_an_item_needs_is_named(sk: str, gone: str) -> None:
    missing = OTHERS.get((sk, gone), gone)
    with pytest.raises(CheckpointCorruptionError, match=f"damaged: its attribute {missing} is missing;"):
        check_attributes(_item(sk, gone))


def test_writes_of_no_kind_are_damage() -> None:
    with pytest.raises(
        CheckpointCorruptionError, match="attribute writes or special_1 or special_2 or special_3"
    ):
        check_attributes(_item(TASK, "writes", "writes_epoch", "special_2", "order"))


def test_an_item_has_the_kind_of_its_key() -> None:
    kinds = ["head", "writes of a task", "segment", "namespace marker", "lock", "thread item", None]
    assert [kind_of(items.key("t#", sk)) for sk in WHOLE] == kinds
