"""What changed between two values: enough to make one of the other, and nothing else."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langgraph.checkpoint.dynamodb._format.inert import Stored
from langgraph.checkpoint.dynamodb.view import state, stored_values
from langgraph.checkpoint.dynamodb.view.nodes import TEXT_MAX, Shower
from langgraph.checkpoint.dynamodb.view.stored_values import Difference, differences, fingerprint, part_at
from tests.view.test_nodes import VALUES, looked_at


def told(before: Any, after: Any) -> list[tuple[Any, ...]]:
    return [(each.kind, each.before_path, each.path) for each in differences(before, after)]


@given(VALUES, VALUES)
def test_there_is_a_difference_where_values_differ_and_it_is_where_it_says(before: Any, after: Any) -> None:
    found = list(differences(before, after))
    assert bool(found) == (fingerprint(before) != fingerprint(after))
    for each in found:
        if each.before_path is not None:
            assert fingerprint(part_at(before, each.before_path)) == fingerprint(each.before)
        if each.path is not None:
            assert fingerprint(part_at(after, each.path)) == fingerprint(each.after)


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_a_list_becomes_the_other_by_its_differences(before: list[int], after: list[int]) -> None:
    found = list(differences(before, after))
    gone = {each.before_path[0] for each in found if each.before_path is not None}
    new = {each.path[0]: part_at(after, each.path) for each in found if each.path is not None}
    kept = iter([value for at, value in enumerate(before) if at not in gone])
    assert [new[at] if at in new else next(kept) for at in range(len(after))] == after
    assert next(kept, None) is None


def test_a_message_is_the_same_by_its_id_wherever_it_is() -> None:
    said = [HumanMessage("one", id="1"), AIMessage("two", id="2"), AIMessage("three", id="3")]
    edited = [AIMessage("TWO", id="2"), said[2], HumanMessage("four", id="4")]
    assert told(looked_at(said), looked_at(edited)) == [
        ("gone", (0,), None),
        ("changed", (1, "content"), (0, "content")),
        ("added", None, (2,)),
    ]
    before, after = looked_at([HumanMessage("one", id="1")]), looked_at([HumanMessage("two", id="2")])
    assert told(before, after) == [("gone", (0,), None), ("added", None, (0,))]


def test_entries_of_objects_are_told_one_by_one() -> None:
    before = {"same": 1, "other": {"deep": [1, 2]}, "gone": None}
    after = {"same": 1, "other": {"deep": [1, 3]}, "new": None}
    assert told(before, after) == [
        ("changed", ("other", "deep", 1), ("other", "deep", 1)),
        ("gone", ("gone",), None),
        ("added", None, ("new",)),
    ]


def test_objects_of_two_classes_are_two_values() -> None:
    assert told(Stored("a.A", {"x": 1}), Stored("a.B", {"x": 1})) == [("changed", (), ())]
    assert told(Stored("a.A", {"x": 1}), Stored("a.A", {"x": 2})) == [("changed", ("x",), ("x",))]
    assert told(Stored("a.A", {"x": 1}), Stored("a.A", Stored("a.A", {"x": 1}))) == [("changed", (), ())]
    assert told({"x": 1}, [1]) == [("changed", (), ())]
    assert told(math.nan, math.nan) == []


def test_what_is_too_deep_is_told_as_one() -> None:
    before: Any = 1
    after: Any = 2
    for _ in range(200):
        before, after = [before], [after]
    [found] = differences(before, after)
    assert found.path == (0,) * 64


def test_lists_of_very_many_parts_are_gone_and_added(monkeypatch: Any) -> None:
    monkeypatch.setattr(stored_values, "_PAIRS_MAX", 3)
    found = told([0, 1, 2, 9], [0, 3, 4, 5, 9])
    assert found == [("gone", (1,), None), ("gone", (2,), None)] + [
        ("added", None, (at,)) for at in (1, 2, 3)
    ]


def test_long_texts_are_shown_from_where_they_begin_to_differ() -> None:
    same = "x" * TEXT_MAX * 2
    change = state._change(Difference("changed", (), (), same + "before", same + "after"), Shower())  # noqa: SLF001
    assert change["before"] is not None
    assert change["after"] is not None
    assert (change["before"]["text"][-6:], change["after"]["text"][-5:]) == ("before", "after")
    assert change["after"]["start"] == len(same) - 200
