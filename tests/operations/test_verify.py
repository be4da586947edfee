"""Verification: damage is told from what died, and from what is under way; repair takes nothing that counts."""

from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, protocol
from langgraph.checkpoint.dynamodb._format import items, limits
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._operations import verify
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.operations.damage import Damage, damage, flip, replace
from tests.support.checkpoints import noise
from tests.support.harness import (
    CODEC,
    TABLE,
    THREAD,
    TTL_SECONDS,
    Harness,
    Process,
    asks,
    commits,
    confirms,
    deletes,
)

NS = "child:1"


def verified(harness: Harness, codec: Codec = CODEC, scanned: tuple[str, ...] = ()) -> verify.Verification:
    """Verify the thread at once."""
    return harness.run(verify.verify_thread(harness.process(codec=codec).storage, THREAD, scanned))


def repair(harness: Harness, found: verify.Verification | None = None) -> None:
    """Repair the thread at once."""
    harness.run(verify.repair_thread(harness.process().storage, found or verified(harness)))


def conversation(harness: Harness, process: Process | None = None) -> Process:
    """A thread with large values and writes, and a namespace that has both as well."""
    process = process or harness.process()
    for namespace in ("", NS):
        harness.run(process.put("1", {"a": noise(60_000)}, namespace=namespace))
        harness.run(
            process.put("2", {"a": noise(60_000), "b": noise(150_000, 1)}, "1", ["b"], namespace=namespace)
        )
        harness.run(
            process.put_writes("2", [("a", noise(90_000, 2)), ("__interrupt__", "?")], namespace=namespace)
        )
    return process


def test_a_thread_that_is_whole_is_sound(harness: Harness) -> None:
    conversation(harness)
    found = verified(harness)
    assert found.is_sound
    assert not found.has_leftovers
    assert (found.namespaces, found.checkpoints, found.tasks) == (2, 4, 2)
    assert found.segments == len(harness.items("S#"))
    assert found.items == len(list(harness.model.items()))
    assert found.bytes > 500_000
    assert (found.recent, found.passed_over, found.uncommitted, found.expired, found.claimed) == (
        0,
        0,
        0,
        0,
        False,
    )


def test_what_is_encrypted_is_opened(harness: Harness) -> None:
    codec = Codec(EncryptedSerializer.from_pycryptodome_aes(key=b"1" * 16), bound_to=TABLE)
    harness.run(harness.process(codec=codec).put("1", {"a": noise(60_000)}))
    assert verified(harness, codec).is_sound
    wrong = Codec(EncryptedSerializer.from_pycryptodome_aes(key=b"2" * 16), bound_to=TABLE)
    for found, says in ((verified(harness, wrong), "with the saver's key"), (verified(harness), "no cipher")):
        assert (found.is_sound, found.flaws, found.has_leftovers) == (True, 0, False)
        # A checkpoint, and the segment of its value.
        assert found.unreadable == 1 + len(harness.items("S#"))
        assert says in str(found.why_unreadable)


NOBODYS_KEY = "its sort key is not one that this package writes"
changed_head = flip("body")


@pytest.mark.parametrize(
    ("sk", "how", "said"),
    [
        ("S#", flip("data"), "SK='S#"),
        ("C#1#", changed_head, "SK='C#1#'"),
        ("C#1#", replace("v", {"N": "99"}), "upgrade langgraph-dynamodb"),
        ("C#1#", replace("metadata", {"S": "{}"}), "its metadata was changed after it was stored"),
        ("C#1#", replace("SK", {"S": "C#no checkpoint"}), NOBODYS_KEY),
        ("C#2#W#task", flip("special_3"), "W#task"),
        ("N#", replace("SK", {"S": "N#"}), NOBODYS_KEY),
    ],
)
def test_damage_is_found_and_said(harness: Harness, sk: str, how: Damage, said: str) -> None:
    conversation(harness)
    damage(harness, sk, how)
    found = verified(harness)
    assert not found.is_sound
    assert any(said in message for message in found.messages), found.messages


def test_a_scan_finds_each_partition(harness: Harness) -> None:
    run = harness.begin(collected(verify.scan_partitions(harness.process().storage)))
    assert [call.params["Segment"] for call in run.calls] == list(range(8))
    assert {call.params["TotalSegments"] for call in run.calls} == {8}
    assert {call.params["ProjectionExpression"] for call in run.calls} == {"#pk"}
    page, empty = ({"Items": [items.key(f"{each}#", "T") for each in found]} for found in ("aba", ""))
    run.go_on([{**page, "LastEvaluatedKey": items.key("a#", "T")}, page, *[empty] * 6])
    assert [call.params["Segment"] for call in run.calls] == [0]
    run.go_on([empty])
    assert run.finish() == [(["a#", "b#"], 6), ([], 0)]


@pytest.mark.parametrize("seconds_left", [60, 61])
def test_what_dynamodb_removes_by_its_own_clock_is_no_damage(harness: Harness, seconds_left: int) -> None:
    harness.run(harness.process(TTL_SECONDS).put("1", {"big": noise(60_000)}))
    harness.remove(next(iter(harness.items("S#").values())))
    harness.now = protocol.kept_from(TTL_SECONDS, harness.now) - seconds_left
    assert verified(harness).is_sound == (seconds_left == 60)


def test_a_thread_without_its_item_is_whole_and_nobody_knows_what_counts(harness: Harness) -> None:
    """So it is, too, where a thread was deleted while a process put a checkpoint and died."""
    conversation(harness)
    harness.remove(harness.items("T")["T"])
    found = verified(harness)
    assert found.is_sound
    assert found.uncommitted == found.checkpoints > 0


def test_what_several_checkpoints_need_is_said_once(harness: Harness) -> None:
    process, big = harness.process(), noise(60_000)
    harness.run(process.put("1", {"big": big}))
    harness.run(process.put("2", {"big": big}, "1", []))
    harness.change(harness.items("S#").popitem()[1], data={"B": b"x"})
    found = verified(harness)
    assert found.flaws > len(found.messages) == 1


def test_of_very_much_damage_some_is_said_and_all_is_counted(harness: Harness) -> None:
    conversation(harness)
    segments = harness.items("S#").values()
    for item in segments:
        harness.change(item, **flip("data")(item))
    found = verified(harness)
    assert found.flaws >= len(segments) > 20
    assert len(found.messages) == 20


def test_what_needs_a_damaged_head_is_not_known_so_nothing_is_removed(harness: Harness) -> None:
    conversation(harness)
    damage(harness, "C#1#", changed_head)
    before = harness.items("")
    item = before["C#1#"]
    harness.change(item, body={"B": b"cut"})
    with pytest.raises(CheckpointCorruptionError):
        repair(harness)
    assert harness.items("S#").keys() == {key for key in before if key.startswith("S#")}


# What died


def test_segments_of_a_put_that_died_are_orphans_once_they_are_old(harness: Harness) -> None:
    process = conversation(harness)
    harness.begin(process.put("3", {"a": noise(300_000, 3)}, "2", ["a"])).until(commits("3"))
    left = len(harness.items("S#"))
    found = verified(harness)
    assert found.is_sound
    assert not found.has_leftovers
    assert found.recent > 10
    repair(harness)
    assert len(harness.items("S#")) == left
    harness.now += limits.ORPHAN_SECONDS + 1
    found = verified(harness)
    assert found.has_leftovers
    assert (found.orphans > 10, found.recent) == (True, 0)
    assert found.orphan_bytes > 290_000
    repair(harness)
    assert len(harness.items("S#")) == left - found.orphans
    assert verified(harness).is_sound
    assert not verified(harness).has_leftovers
    assert process.values("2") is not None


def test_a_put_that_is_under_way_loses_nothing_to_a_repair(harness: Harness) -> None:
    process = conversation(harness)
    for until in (commits("3"), confirms):
        run = harness.begin(process.put("3", {"a": noise(60_000), "b": noise(150_000, 3)}, "2", ["b"]))
        run.until(until)
        repair(harness)
        run.finish()
        assert harness.process().values("3") == {"a": noise(60_000), "b": noise(150_000, 3)}
        assert verified(harness).is_sound


def test_writes_without_a_checkpoint_are_abandoned_once_they_are_old(harness: Harness) -> None:
    process = conversation(harness)
    harness.run(process.put_writes("3", [("a", 1)], "lost"))
    assert (verified(harness).abandoned, verified(harness).recent) == (0, 1)
    harness.now += limits.ORPHAN_SECONDS + 1
    assert (verified(harness).abandoned, verified(harness).recent) == (1, 0)
    repair(harness)
    assert "C#3#W#lost" not in harness.items("C#")
    assert not verified(harness).has_leftovers


def test_an_empty_namespace_is_left(harness: Harness) -> None:
    process = conversation(harness)
    harness.begin(process.put("1", {"a": 1}, namespace="empty")).until(commits("1"))
    assert verified(harness).empty_namespaces == 1
    repair(harness)
    assert verified(harness).empty_namespaces == 0
    assert len(harness.items("N#")) == 1


def test_a_checkpoint_that_was_never_acknowledged_is_no_damage(harness: Harness) -> None:
    process = conversation(harness)
    run = harness.begin(process.put("3", {"a": noise(60_000), "b": noise(150_000, 1)}, "2", []))
    run.until(commits("3"))
    harness.run(harness.process().prune())
    harness.run(harness.process().delete_thread())
    run.perform()
    found = verified(harness)
    assert found.passed_over == 1
    assert found.checkpoints == 1


def test_a_whole_one_that_is_not_committed_is_told(harness: Harness) -> None:
    process = conversation(harness)
    run = harness.begin(process.put("3", {"a": noise(60_000, 3)}, "2")).until(commits("3"))
    harness.run(harness.process().prune())
    run.perform()
    found = verified(harness)
    assert found.is_sound
    assert (found.uncommitted, found.passed_over) == (1, 0)


def test_a_deletion_under_way_is_told(harness: Harness) -> None:
    conversation(harness)
    harness.begin(harness.process().prune()).until(deletes("C#"))
    assert verified(harness).claimed
    harness.now += limits.CLAIM_SECONDS + 1
    assert not verified(harness).claimed


def test_what_has_expired_is_counted_and_not_checked(harness: Harness) -> None:
    process = harness.process(ttl_seconds=100)
    harness.run(process.put("1", {"a": noise(60_000)}))
    harness.now += 101
    # It is dead, and may come back.
    assert (verified(harness).checkpoints, verified(harness).expired) == (1, 0)
    harness.now += 210
    assert (verified(harness).checkpoints, verified(harness).expired) == (0, 1)
    harness.now += 100
    damage(harness, "C#1#", changed_head)
    found = verified(harness)
    assert found.is_sound
    assert (found.checkpoints, found.expired) == (0, 1)


@pytest.mark.parametrize("wanted", ["its own content", "a value"])
def test_what_is_deleted_while_it_is_read_is_not_damage(harness: Harness, wanted: str) -> None:
    conversation(harness)
    if wanted == "a value":
        harness.remove(next(iter(harness.items("S#").values())))
    run = harness.begin(verify.verify_thread(harness.process().storage, THREAD)).until(asks("batch_get_item"))
    for item in list(harness.model.items()):
        harness.remove(item)
    assert run.finish().is_sound


def test_a_thread_that_begins_while_it_is_read_has_an_item(harness: Harness) -> None:
    run = harness.begin(verify.verify_thread(harness.process().storage, THREAD))
    run.go_on()
    harness.run(harness.process().put("1", {"a": 1}))
    found = run.finish()
    assert found.is_sound
    assert found.checkpoints == 1


# Namespaces that nobody knows of


def _forgotten(harness: Harness) -> tuple[str, ...]:
    conversation(harness)
    for item in harness.items("N#").values():
        harness.remove(item)
    return tuple({item["PK"]["S"] for item in harness.items("").values()})


def test_a_namespace_that_a_scan_finds_and_the_thread_does_not_know_is_registered(harness: Harness) -> None:
    scanned = _forgotten(harness)
    assert verified(harness).namespaces == 1
    found = verified(harness, scanned=(f"{THREAD}#", f"{THREAD}#child:1"))
    assert found.unknown_namespaces == [NS]
    assert not found.is_sound
    assert found.has_leftovers
    repair(harness, found)
    again = verified(harness, scanned=scanned)
    assert again.is_sound
    assert again.namespaces == 2
    harness.run(harness.process().delete_thread())
    assert not harness.items("")


def test_an_entry_lives_as_long_as_what_it_leads_to(harness: Harness) -> None:
    process = harness.process(ttl_seconds=1000)
    harness.run(process.put("1", {"a": noise(60_000)}, namespace=NS))
    (entry,) = harness.items("N#").values()
    harness.remove(entry)
    found = verified(harness, scanned=(f"{THREAD}#child:1",))
    repair(harness, found)
    last = max(int(item["expires_at"]["N"]) for item in harness.items("S#").values())
    assert int(harness.items("N#")["N#child:1"]["expires_at"]["N"]) == protocol.findable_until(last)
    repair(harness, verify.Verification(THREAD, unknown_namespaces=["gone meanwhile"]))
    assert harness.items("N#").keys() == {"N#child:1"}


# Delta channels


def _delta(harness: Harness) -> None:
    process = harness.process()
    harness.run(process.put("1", {}, step=-1))
    for number in (2, 3, 4):
        counters: Any = {"counters_since_delta_snapshot": {"log": [number, number]}}
        harness.run(process.put(str(number), {"other": number}, str(number - 1), **counters))


def test_the_way_back_of_delta_channels_is_checked(harness: Harness) -> None:
    _delta(harness)
    assert verified(harness).is_sound
    harness.remove(harness.items("C#")["C#2#"])
    found = verified(harness)
    assert (found.flaws, found.cut) == (1, 1)
    assert "rebuilt from checkpoint '2', which is not in the table" in found.messages[0]


@pytest.mark.parametrize("lost", ["item", "late"])
def test_the_writes_that_delta_channels_are_rebuilt_from_are_checked(harness: Harness, lost: str) -> None:
    process, parent = harness.process(), None
    for step in range(4):
        # LangGraph stores the writes before the checkpoint whose channel they change.
        counters: Any = {"step": step - 1, "counters_since_delta_snapshot": {"log": [step, step]}}
        harness.run(process.put(f"{step}", {}, parent, versions={"log": step + 1}, **counters))
        parent = f"{step}"
        harness.run(process.put_writes(parent, [("log", step), ("other", 1)]))
    assert verified(harness).is_sound
    item = harness.items("C#1#W#")["C#1#W#task"]
    harness.remove(item)
    if lost == "late":
        # An eventually consistent page may be older than the next one.
        run = harness.begin(verify.verify_thread(harness.process().storage, THREAD))
        run.until(lambda call: call.params.get("ConsistentRead") is True and "C#1#" in str(call.params))
        harness.change(item)
        assert run.finish().is_sound
        return
    found = verified(harness)
    assert (found.flaws, found.cut) == (1, 0)
    assert (
        "'C#1#' has lost writes to log, delta channels that checkpoint '2' rebuilds from them"
        in found.messages[0]
    )
    # Of the newest checkpoint's writes nothing tells.
    harness.change(item)
    harness.remove(harness.items("C#3#W#")["C#3#W#task"])
    assert verified(harness).is_sound


def test_a_first_checkpoint_may_have_been_told_of_another_one(harness: Harness, process: Process) -> None:
    counters: Any = {"counters_since_delta_snapshot": {"log": [1, 1]}}
    harness.run(process.put("1", {}, "0", step=-1, **counters))
    harness.run(process.put("2", {}, "1", **counters))
    assert verified(harness).is_sound
