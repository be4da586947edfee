"""The item of a memory: what each change asks of what is there, and what it leaves."""

from dataclasses import replace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointFormatError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb.protocol import Change
from langgraph.store.dynamodb import memory_items
from langgraph.store.dynamodb.keys import address_of
from langgraph.store.dynamodb.memory_items import ComposedMemory, Expected, StoredMemory, parse_memory
from tests.support.harness import Harness

ADDRESS = address_of(("memories", "ada", "x"), "food")
PART = Part((), (), b"sealed")
VALUE: Any = PART.attribute(ADDRESS.sk)
NEW = ComposedMemory("new", VALUE, None, None, None, 0, has_parts=False)
LASTING = replace(NEW, ttl_seconds=60, expires_at=200, parts_until=300, vectors=2, has_parts=True)
# 100 seconds after the epoch; a tombstone lives for an hour.
NOW, US = 100.0, 100_000_000
LATE, LATE_US = 5_000.0, 5_000_000_000


def _memory(**attributes: Any) -> Item:
    stored = {"revision": {"S": "old"}, "updated_us": {"N": "50"}, "created_us": {"N": "40"}, "v": {"N": "1"}}
    return {**ADDRESS.item_key, **stored, "value": VALUE, **attributes}


LIVES = _memory()
EXPIRED = _memory(expires_at={"N": "100"})
TOMBSTONE = _memory(shown_until={"N": "0"}, expires_at={"N": "9000"}, buried_us={"N": "50"})
NEWER = _memory(updated_us={"N": str(LATE_US)})
BURIED = _memory(buried_us={"N": str(LATE_US - 1)})


def _applied(change: Change, there: Item | None) -> Item | None:
    """Return the item after a change of what is there; `None` if its condition does not hold."""
    harness = Harness()
    if there is not None:
        harness.change(there)
    storage = harness.process().storage
    if not change.expression:
        return {} if harness.run(storage.table.try_delete(ADDRESS.item_key, change)) is None else None
    failed = harness.run(storage.table.try_update(ADDRESS.item_key, change))
    return None if failed is not None else harness.model.items()[0]


def _put(
    new: ComposedMemory = NEW, seen: Item | None = None, expected: Expected | None = None, **times: Any
) -> Change:
    given = {"now_us": LATE_US, "now": LATE, "created_us": None, **times}
    return memory_items.put_value(new, seen=seen or {}, expected=expected, **given)


def _bury(seen: Item | None = None, expected: Expected | None = None) -> Change:
    return memory_items.bury("new", LATE_US, 3600, now=LATE, seen=seen or {}, expected=expected)


ANY, OLD, OTHER, NOTHING = None, Expected("old"), Expected("other"), Expected(None)


@pytest.mark.parametrize("make", [_put, _bury])
@pytest.mark.parametrize(
    ("there", "seen", "expected", "is_done"),
    [
        (None, None, ANY, True),
        (None, None, NOTHING, True),
        (None, None, OLD, False),
        (LIVES, None, ANY, True),
        (LIVES, None, NOTHING, False),
        (LIVES, None, OLD, True),
        (LIVES, None, OTHER, False),
        (NEWER, None, ANY, False),
        (NEWER, None, OLD, False),
        (EXPIRED, None, ANY, False),
        (EXPIRED, None, OLD, False),
        (EXPIRED, None, NOTHING, True),
        (EXPIRED, EXPIRED, ANY, True),
        (EXPIRED, EXPIRED, NOTHING, True),
        (LIVES, EXPIRED, ANY, False),
        (_memory(revision={"S": "other"}, expires_at={"N": "100"}), EXPIRED, ANY, False),
        (TOMBSTONE, None, ANY, False),
        (TOMBSTONE, TOMBSTONE, ANY, True),
        (TOMBSTONE, None, NOTHING, True),
    ],
)
def test_a_change_replaces_what_is_older_and_expected(
    make: Any, there: Item | None, seen: Item | None, expected: Expected | None, *, is_done: bool
) -> None:
    assert (_applied(make(seen=seen, expected=expected), there) is not None) == is_done


@pytest.mark.parametrize(
    ("there", "seen", "is_done"),
    [
        (LIVES, None, True),
        (BURIED, None, False),
        (BURIED, BURIED, True),
        (_memory(buried_us={"N": "1"}), BURIED, False),
        (_memory(buried_us={"N": str(int((LATE - 3600) * 10**6))}), None, True),
        (_memory(buried_us={"N": str(int((LATE - 3600) * 10**6) + 1)}), None, False),
    ],
)
def test_a_value_with_parts_is_not_committed_over_a_deletion_since(
    there: Item, seen: Item | None, *, is_done: bool
) -> None:
    assert (_applied(_put(LASTING, seen), there) is not None) == is_done
    # One without parts, or for a revision, needs no such look.
    assert _applied(_put(NEW, seen), there) is not None
    assert _applied(_put(LASTING, seen, OLD), there) is not None


@pytest.mark.parametrize("make", [_put, _bury])
def test_a_change_of_before_an_import_comes_too_late(make: Any) -> None:
    record: dict[str, Any] = {"now_us": 60, "created_us": 7}
    for there, seen in ((LIVES, None), (EXPIRED, EXPIRED), (TOMBSTONE, TOMBSTONE)):
        imported = _applied(_put(seen=seen, **record), there)
        assert imported is not None
        assert (imported["updated_us"], imported["buried_us"]) == ({"N": "60"}, {"N": str(LATE_US)})
        assert _applied(make(), imported) is None
        # One that has met it is later. So is another record.
        assert memory_items.changed_us(imported) == LATE_US
        assert _applied(_put(now_us=LATE_US + 1), imported) is not None
        assert _applied(_put(now_us=61, created_us=7), imported) is not None
    ahead = {**TOMBSTONE, "updated_us": {"N": str(LATE_US + 9)}}
    imported = _applied(_put(seen=ahead, **record), ahead)
    assert imported is not None
    assert imported["buried_us"] == {"N": str(LATE_US + 9)}


def test_a_change_leaves_what_it_says_and_nothing_of_the_old_value() -> None:
    stored = _applied(_put(LASTING), LIVES)
    assert stored is not None
    assert parse_memory(stored, 199) == StoredMemory(stored, "new", 40, LATE_US, 60, 200, 300, 2, PART)
    assert parse_memory(stored, 200) is None
    assert memory_items.replaced_revision(stored) == "old"
    plain = _applied(_put(), {**stored, "updated_us": {"N": "1"}, "expires_at": {"N": "9000"}})
    assert plain is not None
    assert parse_memory(plain, LATE) == StoredMemory(plain, "new", 40, LATE_US, None, None, None, 0, PART)
    imported = _applied(_put(created_us=7), LIVES)
    begun = _applied(_put(seen=EXPIRED), EXPIRED)
    first = _applied(_put(), None)
    assert [each and each["created_us"]["N"] for each in (imported, begun, first)] == [
        "7",
        str(LATE_US),
        str(LATE_US),
    ]
    assert first is not None
    assert memory_items.replaced_revision(first) is None
    left = _applied(_bury(), stored | {"expires_at": {"N": "9000"}, "updated_us": {"N": "1"}})
    assert left == {
        **ADDRESS.item_key,
        "revision": {"S": "new"},
        "replaced": {"S": "new"},
        "shown_until": {"N": "0"},
        "expires_at": {"N": "8600"},
        **{name: {"N": str(LATE_US)} for name in ("updated_us", "buried_us")},
    }
    again = _applied(_put(seen=left), left)
    assert again is not None
    assert again.keys() == {*LIVES, "replaced", "buried_us"}


@pytest.mark.parametrize(
    ("expiry", "revision", "until", "is_done"),
    [(101, "old", 200, True), (100, "old", 200, False), (201, "old", 200, False), (101, "other", 200, False)],
)
def test_a_renewal_only_makes_a_living_value_last_longer(
    expiry: int, revision: str, until: int, *, is_done: bool
) -> None:
    there = _memory(expires_at={"N": str(expiry)}, revision={"S": revision}, parts_until={"N": "9"})
    memory = parse_memory(_memory(), 0)
    assert memory is not None
    done = _applied(memory_items.refresh(memory, until, None, NOW), there)
    assert done == ({**there, "expires_at": {"N": "200"}} if is_done else None)
    done = _applied(memory_items.refresh(memory, until, 300, NOW), there)
    assert done == ({**there, "expires_at": {"N": "200"}, "parts_until": {"N": "300"}} if is_done else None)


def test_what_is_removed_is_what_was_read() -> None:
    for revision, is_gone in (("old", True), ("other", False)):
        assert (_applied(memory_items.remove_revision(revision), LIVES) is not None) == is_gone
        assert (_applied(memory_items.remove_expired(revision, NOW), EXPIRED) is not None) == is_gone
    assert _applied(memory_items.remove_expired("old", NOW - 1), EXPIRED) is None
    entry = {**ADDRESS.item_key, "registered_at": {"N": "9"}}
    assert _applied(memory_items.leave(b"m", 8), entry) is None
    marked = _applied(memory_items.leave(b"m", 9), entry)
    assert marked == {**entry, "leaving": {"B": b"m"}}
    assert _applied(memory_items.unregister(b"m"), marked) == {}
    assert _applied(memory_items.unregister(b"n"), marked) is None


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"v": None}, "it has no attribute v"),
        ({"value": None}, "it has no value"),
        ({"revision": None}, "it has no revision"),
        ({"created_us": None}, "it has no attribute created_us"),
        ({"updated_us": None}, "it has no attribute updated_us"),
        ({"created_us": {"N": "-62135596800000001"}}, "its created_us is no time that can be shown"),
        ({"updated_us": {"N": "253402300800000000"}}, "its updated_us is no time that can be shown"),
        ({"v": {"N": "0"}}, "there is no format version 0"),
    ],
)
def test_a_memory_that_lacks_something_is_damage(attributes: dict[str, Any], why: str) -> None:
    whole: dict[str, Any] = _memory(**attributes)
    item = {name: value for name, value in whole.items() if value is not None}
    with pytest.raises(
        CheckpointCorruptionError, match=rf"^item PK='memories/ada/%M#' .* is damaged: {why};"
    ):
        parse_memory(item, NOW)
    with pytest.raises(CheckpointFormatError, match=r"has format version 2, .* up to 1;"):
        parse_memory(_memory(v={"N": "2"}), NOW)
    assert items.number(LIVES, "v") == 1
