"""A damaged thread item: the thread can be deleted in any case, and whatever relied on it notices."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS
from langgraph.checkpoint.dynamodb._operations.verify import repair_thread, verify_thread
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, Harness, changes_thread

BIG = noise(60_000)
OTHER = "other"
# What a deletion needs no more than DynamoDB does.
UNNEEDED: list[Any] = [
    {"ttl_seconds": {"N": "40000000000"}},
    {"ttl_seconds": {"N": "99999999999999999"}},
    {"ttl_seconds": {"N": "-1"}},
    {"ttl_seconds": {"S": "soon"}},
    {"last_active": {"N": "1E+30"}},
    {"expires_at": {"S": "never"}},
    {"expires_at": {"N": "1E+30"}},
    {"claimed_until": {"N": "1E+30"}},
]
# Without these, nobody knows what is committed, or who deletes the thread.
NEEDED: list[Any] = [
    {"epoch": None},
    {"epoch": {"S": "text"}},
    {"claim": {"S": "text"}},
    {"claim": {"S": "text"}, "claimed_until": {"N": "1E+30"}},
    {"claim": {"B": b"token"}, "claimed_until": {"S": "later"}},
    {"claim": {"S": "text"}, "epoch": None},
]


def _stored() -> Harness:
    """Two threads, each with two namespaces, and with segments."""
    harness = Harness()
    process = harness.process(1000)
    for namespace in ("", "inner"):
        harness.run(process.put("1", {"x": BIG}, namespace=namespace))
    harness.run(process.copy_thread(OTHER))
    return harness


def _damage(harness: Harness, damage: Any) -> None:
    harness.change(harness.items("T")["T"], **damage)


def _everything(harness: Harness, thread: str) -> list[Any]:
    return [each for each in harness.model.items() if each["PK"]["S"].startswith(f"{thread}#")]


@pytest.mark.parametrize("damage", UNNEEDED + NEEDED, ids=str)
def test_a_thread_whose_item_is_damaged_can_be_deleted(damage: Any) -> None:
    harness = _stored()
    other = _everything(harness, OTHER)
    _damage(harness, damage)
    harness.run(harness.process().delete_thread())
    assert _everything(harness, THREAD) == []
    assert _everything(harness, OTHER) == other != []
    process = harness.process(1000)
    harness.run(process.put("1", {"x": 1}))
    assert harness.process().values() == {"x": 1}


@pytest.mark.parametrize("damage", UNNEEDED, ids=str)
def test_what_a_deletion_does_not_need_stops_no_prune_and_no_repair(damage: Any) -> None:
    harness = _stored()
    harness.run(harness.process(1000).put("2", {"x": noise(60_000, 2)}, "1"))
    _damage(harness, damage)
    harness.run(harness.process().prune())
    verified = harness.run(verify_thread(harness.process().storage, THREAD))
    harness.run(repair_thread(harness.process().storage, verified))
    assert [key for key in harness.items("C") if "#W#" not in key] == ["C#2#", "C#1#"]
    assert harness.items("T")["T"].keys().isdisjoint({items.CLAIM, items.PENDING, items.PREVIOUS})


@pytest.mark.parametrize("damage", NEEDED, ids=str)
def test_a_deletion_of_a_part_is_refused_if_nobody_knows_what_is_committed(damage: Any) -> None:
    harness = _stored()
    _damage(harness, damage)
    before = harness.items("C") | harness.items("S")
    with pytest.raises(CheckpointCorruptionError, match="SK='T' is damaged"):
        harness.run(harness.process().prune())
    assert harness.items("C") | harness.items("S") == before


@pytest.mark.parametrize("damage", NEEDED, ids=str)
def test_a_deletion_that_died_after_it_reset_the_item_is_repeated(damage: Any) -> None:
    """The item stays, so that the directory still names the thread."""
    harness = _stored()
    _damage(harness, damage)
    deletion = harness.begin(harness.process().delete_thread())
    deletion.until(changes_thread("#previous, #ttl"))
    deletion.go_on()
    deletion.drop()
    assert items.EPOCH in harness.items("T")["T"]
    assert "expires_at" not in harness.items("T")["T"]
    harness.now += 10 * CLAIM_SECONDS
    harness.run(harness.process().delete_thread())
    assert _everything(harness, THREAD) == []


def test_an_item_that_was_restored_meanwhile_is_not_reset() -> None:
    harness = _stored()
    whole = harness.items("T")["T"]
    _damage(harness, {"epoch": {"S": "text"}})
    deletion = harness.begin(harness.process().delete_thread())
    deletion.until(changes_thread("#previous, #ttl"))
    harness.change(whole)
    deletion.go_on()
    assert harness.items("T")["T"] == whole
    deletion.finish()
    assert _everything(harness, THREAD) == []
