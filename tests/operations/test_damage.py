"""Stored data that is not what was written, or is newer than this release.

Damage is an error that names the item, and never a wrong answer or an older state. `tests/fuzz` damages anything in any
way; here is what each kind of it says.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import INTERRUPT

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerError, CheckpointFormatError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.verify import repair_thread, verify_thread
from langgraph.checkpoint.dynamodb._runtime.steps import Op, collected
from tests.operations.damage import Damage, damage, flip, replace
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness, Process, changes_thread

HEAD, SEGMENT, WRITES = "C#2#", "S#", "C#2#W#task"
# Long enough for several segments.
VALUES = {"big": noise(120_000), "small": "x"}
# Large enough to be sealed instead of being stored as readable JSON in the head.
SEALED = {"note": "metadata " * 2000}


def _fill(harness: Harness, **metadata: Any) -> None:
    """Store a thread of two checkpoints, the second of which has writes."""
    process = harness.process()
    harness.run(process.put("1", {"small": "older"}))
    harness.run(process.put("2", VALUES, "1", **metadata))
    harness.run(process.put_writes("2", [("channel", 1), ("channel", 2), (INTERRUPT, "?")]))


def _newer(name: str) -> Damage:
    return lambda item: {name: {"B": b"\x09" + item[name]["B"][1:]}}


# Byte 0 of a part and of a sealed unit is its format version.
DAMAGES: dict[str, tuple[str, Damage]] = {
    "segment: last byte": (SEGMENT, flip("data")),
    "segment: no data": (SEGMENT, replace("data", None)),
    "body: last byte": (HEAD, flip("body")),
    "body: another type": (HEAD, replace("body", {"S": "text"})),
    "body: gone": (HEAD, replace("body", None)),
    "head: no format version": (HEAD, replace("v", None)),
    "metadata: no JSON": (HEAD, replace("metadata", {"S": '{"source": '})),
    "metadata: gone": (HEAD, replace("metadata", None)),
    "writes: last byte": (WRITES, flip("writes")),
    "writes: another type": (WRITES, replace("writes", {"S": "text"})),
    "special write: last byte": (WRITES, flip("special_3")),
}
NEWER: dict[str, tuple[str, Damage]] = {
    "newer head": (HEAD, replace("v", {"N": "9"})),
    "newer body": (HEAD, _newer("body")),
    "newer segment": (SEGMENT, _newer("data")),
    "newer writes": (WRITES, _newer("writes")),
}


def _readings(process: Process) -> Iterator[Op[Any]]:
    """Every way in which the damaged checkpoint is asked for."""
    yield process.read()
    yield process.read("2")
    yield collected(process.listed())
    yield collected(list_checkpoints(process.storage, thread_config(THREAD), {"step": 1}, None, 1))
    anywhere: Any = {"configurable": {"thread_id": THREAD}}
    yield collected(list_checkpoints(process.storage, anywhere, None, None, None))


def _assert_no_reading_succeeds(harness: Harness, error: type[CheckpointerError], message: str) -> None:
    before = harness.model.items()
    for reading in _readings(harness.process()):
        with pytest.raises(error, match=message):
            harness.run(reading)
    assert harness.model.items() == before


@pytest.mark.parametrize("kind", DAMAGES | NEWER)
def test_damage_is_an_error_that_names_the_item_by_whichever_way_it_is_read(
    harness: Harness, kind: str
) -> None:
    _fill(harness)
    sk, how = (DAMAGES | NEWER)[kind]
    damage(harness, sk, how)
    if kind in NEWER:
        message = rf"SK='{sk}.*has format version 9,.* up to \d; upgrade langgraph-dynamodb"
        _assert_no_reading_succeeds(harness, CheckpointFormatError, message)
        return
    message = rf"item PK='t#' SK='{sk}.*(?:damaged|missing).*restore .* point-in-time recovery"
    _assert_no_reading_succeeds(harness, CheckpointCorruptionError, message)


def test_a_deleted_segment_is_an_error_that_names_the_checkpoint(harness: Harness) -> None:
    _fill(harness)
    gone, segment = next(iter(harness.items(SEGMENT).items()))
    harness.remove(segment)
    message = rf"SK='C#2#' needs segments .*\(1 missing, first: {gone}\); restore"
    _assert_no_reading_succeeds(harness, CheckpointCorruptionError, message)


def test_damaged_metadata_that_were_sealed_are_found_when_they_are_filtered_by(harness: Harness) -> None:
    _fill(harness, **SEALED)
    damage(harness, HEAD, flip("sealed_metadata"))
    _assert_no_reading_succeeds(harness, CheckpointCorruptionError, "SK='C#2#' is damaged: its checksum")


CHANGES: dict[str, Callable[[Process], Op[Any]]] = {
    "put": lambda process: process.put("4", VALUES, "2", []),
    "put_writes": lambda process: process.put_writes("2", [("channel", each) for each in range(3)]),
    "copy": lambda process: process.copy_thread("copy"),
    "prune": lambda process: process.prune(),
}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("put", "segment: last byte"),
        ("put_writes", "writes: last byte"),
        *[("put", each) for each in ("newer head", "newer body")],
        *[("copy", each) for each in ("newer head", "newer body")],
        *[("prune", each) for each in ("newer head", "newer body", "newer writes")],
    ],
)
def test_nothing_is_built_on_what_is_damaged_or_newer_and_nothing_of_it_is_deleted(
    harness: Harness, change: str, kind: str
) -> None:
    _fill(harness)
    harness.run(harness.process().put("3", {"small": "newest"}, "2"))
    sk, how = (DAMAGES | NEWER)[kind]
    damage(harness, sk, how)
    # A thread item holds the claim of a deletion that failed.
    before = harness.items("C#") | harness.items("S#")
    error = CheckpointFormatError if kind in NEWER else CheckpointCorruptionError
    with pytest.raises(error, match=f"SK='{sk}"):
        harness.run(CHANGES[change](harness.process()))
    assert harness.items("C#") | harness.items("S#") == before
    assert harness.items("C#", "copy") == {}


def test_a_namespace_marker_without_its_token_is_damage(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}, namespace="inner"))
    damage(harness, "N#", replace("registered", None))
    with pytest.raises(CheckpointCorruptionError, match="SK='N#inner'"):
        harness.run(process.delete_thread())


def test_a_damaged_thread_can_be_deleted(harness: Harness, process: Process) -> None:
    _fill(harness)
    damage(harness, SEGMENT, flip("data"))
    damage(harness, HEAD, flip("body"))
    harness.run(process.delete_thread())
    assert harness.model.items() == []


# A damaged thread item: the thread can be deleted in any case, and whatever relied on it notices


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


def _damage_thread(harness: Harness, how: Any) -> None:
    harness.change(harness.items("T")["T"], **how)


def _everything(harness: Harness, thread: str) -> list[Any]:
    return [each for each in harness.model.items() if each["PK"]["S"].startswith(f"{thread}#")]


@pytest.mark.parametrize("how", UNNEEDED + NEEDED, ids=str)
def test_a_thread_whose_item_is_damaged_can_be_deleted(how: Any) -> None:
    harness = _stored()
    other = _everything(harness, OTHER)
    _damage_thread(harness, how)
    harness.run(harness.process().delete_thread())
    assert _everything(harness, THREAD) == []
    assert _everything(harness, OTHER) == other != []
    process = harness.process(1000)
    harness.run(process.put("1", {"x": 1}))
    assert harness.process().values() == {"x": 1}


@pytest.mark.parametrize("how", UNNEEDED, ids=str)
def test_what_a_deletion_does_not_need_stops_no_prune_and_no_repair(how: Any) -> None:
    harness = _stored()
    harness.run(harness.process(1000).put("2", {"x": noise(60_000, 2)}, "1"))
    _damage_thread(harness, how)
    harness.run(harness.process().prune())
    verified = harness.run(verify_thread(harness.process().storage, THREAD))
    harness.run(repair_thread(harness.process().storage, verified))
    assert [key for key in harness.items("C") if "#W#" not in key] == ["C#2#", "C#1#"]
    assert harness.items("T")["T"].keys().isdisjoint({items.CLAIM, items.PENDING, items.PREVIOUS})


@pytest.mark.parametrize("how", NEEDED, ids=str)
def test_a_deletion_of_a_part_is_refused_if_nobody_knows_what_is_committed(how: Any) -> None:
    harness = _stored()
    _damage_thread(harness, how)
    before = harness.items("C") | harness.items("S")
    with pytest.raises(CheckpointCorruptionError, match="SK='T' is damaged"):
        harness.run(harness.process().prune())
    assert harness.items("C") | harness.items("S") == before


@pytest.mark.parametrize("how", NEEDED, ids=str)
def test_a_deletion_that_died_after_it_reset_the_item_is_repeated(how: Any) -> None:
    """The item stays, so that the directory still names the thread."""
    harness = _stored()
    _damage_thread(harness, how)
    deletion = harness.begin(harness.process().delete_thread()).until(changes_thread("#previous, #ttl"))
    deletion.go_on()
    deletion.drop()
    assert items.EPOCH in harness.items("T")["T"]
    assert "expires_at" not in harness.items("T")["T"]
    harness.now += 10 * CLAIM_SECONDS
    harness.run(harness.process().delete_thread())
    assert _everything(harness, THREAD) == []
