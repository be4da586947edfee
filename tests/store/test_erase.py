"""`delete_namespace` where what is stored is damaged."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.store.dynamodb.erase import remove_under
from langgraph.store.dynamodb.keys import address_of
from langgraph.store.dynamodb.put import NewMemory, put_all
from langgraph.store.dynamodb.reads import get
from tests.store.conftest import storage_of
from tests.support.checkpoints import noise
from tests.support.harness import Harness

NAMESPACE = ("memories", "ada")
KEYS = ("drink", "food", "sleep")
# Too large for an item, so there are segments.
LARGE = 200_000


def stored_in(harness: Harness, size: int) -> Any:
    """Store three memories; return the item of the second."""
    value = {"text": noise(size).hex()}
    new = [NewMemory(address_of(NAMESPACE, key), value) for key in KEYS]
    harness.run(put_all(storage_of(harness), new, [[] for _ in new]))
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


def test_no_late_request_brings_back_a_damaged_memory_that_was_erased() -> None:
    harness = Harness()
    item = stored_in(harness, 10)
    storage, address = storage_of(harness), address_of(NAMESPACE, "food")
    value = {"text": "late"}
    late = harness.begin(put_all(storage, [NewMemory(address, value)], [[]]))
    (commit,) = late.until(lambda call: call.method == "update_item")
    harness.change(item, revision=None)
    harness.run(remove_under(storage_of(harness), NAMESPACE, is_erasure=True))
    harness.answer(commit)
    assert harness.run(get(storage_of(harness), [address])) == [None]
