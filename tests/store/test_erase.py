"""`delete_namespace` where what is stored is damaged, and what requests that arrive late bring back of it."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.store.dynamodb.erase import remove_part, remove_under
from langgraph.store.dynamodb.keys import address_of
from langgraph.store.dynamodb.put import NewMemory, Times, put_all
from langgraph.store.dynamodb.reads import get
from tests.store.conftest import storage_of
from tests.support.checkpoints import noise
from tests.support.harness import Harness

NAMESPACE = ("memories", "ada")
KEYS = ("drink", "food", "sleep")
FOOD = address_of(NAMESPACE, "food")
# Too large for an item, so there are segments.
LARGE = 200_000


def stored_in(harness: Harness, size: int) -> Any:
    """Store three memories; return the item of the second."""
    value = {"text": noise(size).hex()}
    new = [NewMemory(address_of(NAMESPACE, key), value) for key in KEYS]
    harness.run(put_all(storage_of(harness), new))
    [item] = [each for each in harness.model.items() if each["SK"]["S"] == "M##food"]
    return item


def texts_in(harness: Harness) -> list[str]:
    """The keys of what has a text, or a part of one."""
    found = [each for each in harness.model.items() if "value" in each or "data" in each]
    return [each["SK"]["S"] for each in found]


@pytest.mark.parametrize("age_seconds", [0, 7200], ids=["young", "old"])
@pytest.mark.parametrize("size", [10, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "damage",
    [
        {"revision": None},
        {"revision": {"N": "1"}},
        {"updated_us": None},
        {"updated_us": {"S": "now"}},
        {"expires_at": {"S": "never"}},
        {"vectors": {"S": "one"}},
        {"value": None},
        {"value": {"B": b"xx"}},
        {"value": {"M": {}}},
    ],
    ids=str,
)
def test_a_damaged_memory_keeps_nothing_from_being_erased(
    damage: dict[str, Any], size: int, age_seconds: int
) -> None:
    harness = Harness()
    harness.change(stored_in(harness, size), **damage)
    harness.now += age_seconds
    assert harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True)) == 3
    assert texts_in(harness) == []
    assert harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True)) == 0


@pytest.mark.parametrize(
    "damage", [{"part_of": None}, {"part_of": {"S": "x"}}, {"created_at": {"S": "now"}}], ids=str
)
def test_a_damaged_segment_goes_with_the_whole_partition(damage: dict[str, Any]) -> None:
    harness = Harness()
    stored_in(harness, LARGE)
    segment = next(each for each in harness.model.items() if each["SK"]["S"].startswith("S#"))
    harness.change(segment, **damage)
    # It may be of another namespace of the partition, and memories may need it.
    harness.run(remove_under(storage_of(harness), (*NAMESPACE, "trips"), is_erasure=True))
    assert segment["SK"]["S"] in texts_in(harness)
    assert harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=False)) == 0
    assert segment["SK"]["S"] in texts_in(harness)
    assert harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True)) == 3
    assert texts_in(harness) == []


@pytest.mark.parametrize(
    ("place", "count"),
    [
        (("memories", "a"), 3),
        ((*NAMESPACE, "a", "b"), 3),
        ((*NAMESPACE, "food"), 0),
        ((*NAMESPACE, "trips"), 0),
        (("memories", "z"), 0),
    ],
)
def test_a_deletion_goes_on_from_any_place(place: tuple[str, ...], count: int) -> None:
    harness = Harness()
    namespace = (*NAMESPACE, "drink")
    new = [NewMemory(address_of(namespace, key), {}) for key in KEYS]
    harness.run(put_all(storage_of(harness), new))
    removal = remove_part(storage_of(harness), namespace, address_of(place, "x"), is_erasure=True)
    assert harness.run(removal) == (count, None)


def _stores(call: Call) -> bool:
    """Tell whether a request commits a memory, or deletes it."""
    return call.method == "update_item"


def _committed(harness: Harness, new: NewMemory) -> Call:
    """Store a memory; return the request that has committed it, which may arrive again."""
    run = harness.begin(put_all(storage_of(harness), [new]))
    [commit] = run.until(_stores).calls
    run.finish()
    return commit


def _value(harness: Harness) -> Any:
    [found] = harness.run(get(storage_of(harness), [FOOD]))
    return None if found is None else found.value()


def test_no_late_request_brings_back_a_damaged_memory_that_was_erased() -> None:
    harness = Harness()
    late = _committed(harness, NewMemory(FOOD, {"text": "late"}))
    [item] = [each for each in harness.model.items() if each["SK"]["S"] == FOOD.sk]
    harness.change(item, revision=None)
    harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True))
    harness.answer(late)
    assert _value(harness) is None


@pytest.mark.parametrize("is_erased", [True, False], ids=["erased", "expired"])
def test_no_late_request_replaces_a_memory_that_was_imported_since(*, is_erased: bool) -> None:
    harness = Harness()
    began_us = int(harness.now * 1_000_000)
    late = _committed(harness, NewMemory(FOOD, {"text": "late"}, ttl_seconds=None if is_erased else 60))
    harness.now += 70
    if is_erased:
        harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True))
    backup = NewMemory(FOOD, {"text": "of a backup"}, times=Times(began_us - 9, began_us - 9, None))
    again = _committed(harness, backup)
    harness.answer(late)
    assert _value(harness) == {"text": "of a backup"}
    # Nor does the import itself come back, however old its record is.
    harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True))
    harness.answer(again)
    assert _value(harness) is None
    _committed(harness, NewMemory(FOOD, {"text": "new"}))
    assert _value(harness) == {"text": "new"}
