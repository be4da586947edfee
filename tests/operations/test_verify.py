"""Verification: damage is told from what died, and from what is under way; repair takes nothing that counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS, ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.verify import Verification, repair_thread, verify_thread
from tests.support.checkpoints import METADATA, checkpoint_of, noise, thread_config
from tests.support.stage import CODEC, TABLE, THREAD, Process, Stage, commits, confirms, deletes

NS = "child:1"


def verified(stage: Stage, codec: Codec = CODEC, scanned: tuple[str, ...] = ()) -> Verification:
    """Verify the thread at once."""
    return stage.run(verify_thread(stage.process().table, codec, THREAD, scanned))


def repair(stage: Stage, found: Verification | None = None) -> None:
    """Repair the thread at once."""
    stage.run(repair_thread(stage.process().table, found or verified(stage)))


def conversation(stage: Stage) -> Process:
    """A thread with large values and writes, and a namespace that has both as well."""
    process = stage.process()
    for namespace in ("", NS):
        stage.run(process.put("1", {"a": noise(60_000)}, namespace=namespace))
        stage.run(
            process.put("2", {"a": noise(60_000), "b": noise(150_000, 1)}, "1", ["b"], namespace=namespace)
        )
        stage.run(
            process.put_writes("2", [("a", noise(90_000, 2)), ("__interrupt__", "?")], namespace=namespace)
        )
    return process


def test_a_thread_that_is_whole_is_sound() -> None:
    stage = Stage()
    conversation(stage)
    found = verified(stage)
    assert found.is_sound
    assert not found.has_leftovers
    assert (found.namespaces, found.checkpoints, found.tasks) == (2, 4, 2)
    assert found.segments == len(stage.items("S#"))
    assert found.items == len(list(stage.model.items()))
    assert found.bytes > 500_000
    assert (found.recent, found.passed_over, found.uncounted, found.expired, found.claimed) == (
        0,
        0,
        0,
        0,
        False,
    )


def test_what_is_encrypted_is_opened() -> None:
    stage = Stage()
    process = stage.process()
    codec = Codec(EncryptedSerializer.from_pycryptodome_aes(key=b"1" * 16), bound_to=TABLE)
    arguments: tuple[Any, ...] = (
        thread_config(THREAD),
        checkpoint_of("1", {"a": noise(60_000)}),
        METADATA,
        {"a": 1},
    )
    stage.run(put(process.table, codec, *arguments))
    assert verified(stage, codec).is_sound
    wrong = Codec(EncryptedSerializer.from_pycryptodome_aes(key=b"2" * 16), bound_to=TABLE)
    for found, says in ((verified(stage, wrong), "with the saver's key"), (verified(stage), "no cipher")):
        assert (found.is_sound, found.flaws, found.has_leftovers) == (True, 0, False)
        # A checkpoint, and the segment of its value.
        assert found.unreadable == 1 + len(stage.items("S#"))
        assert says in str(found.why_unreadable)


def _flip(item: Any, name: str) -> Any:
    data = bytearray(item[name]["B"])
    data[-1] ^= 1
    return {name: {"B": bytes(data)}}


DAMAGE: dict[str, Callable[[Stage], str]] = {}


def damage(make: Callable[[Stage], str]) -> Callable[[Stage], str]:
    """Take a way to damage a thread; what it returns has to be said of it."""
    DAMAGE[make.__name__] = make
    return make


@damage
def a_segment_that_was_changed(stage: Stage) -> str:
    """A bit is another one."""
    item = next(iter(stage.items("S#").values()))
    stage.change(item, **_flip(item, "data"))
    return str(item["SK"]["S"])


@damage
def a_segment_that_is_gone(stage: Stage) -> str:
    """Somebody has deleted it."""
    stage.remove(next(iter(stage.items("S#", THREAD).values())))
    return "needs segments that are not in the table"


@damage
def a_head_that_was_changed(stage: Stage) -> str:
    """A bit is another one."""
    item = stage.items("C#")["C#1#"]
    stage.change(item, **_flip(item, "body"))
    return "SK='C#1#'"


@damage
def a_head_of_a_newer_release(stage: Stage) -> str:
    """A format that is not known."""
    stage.change(stage.items("C#")["C#1#"], v={"N": "99"})
    return "upgrade langgraph-dynamodb"


@damage
def metadata_that_were_changed(stage: Stage) -> str:
    """They are not what the body vouches for."""
    stage.change(stage.items("C#")["C#1#"], metadata={"S": "{}"})
    return "its metadata is not what it was stored with"


@damage
def writes_that_were_changed(stage: Stage) -> str:
    """A bit is another one."""
    item = stage.items("C#")["C#2#W#task"]
    stage.change(item, **_flip(item, "special_3"))
    return "W#task"


@damage
def a_key_that_nobody_writes(stage: Stage) -> str:
    """It is no checkpoint's."""
    stage.change(stage.items("C#")["C#1#"], SK={"S": "C#no checkpoint"})
    return "its sort key is not one that this package writes"


@damage
def a_marker_that_nobody_writes(stage: Stage) -> str:
    """It is no namespace's."""
    stage.change(next(iter(stage.items("N#").values())), SK={"S": "N#"})
    return "its sort key is not one that this package writes"


@pytest.mark.parametrize("make", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_found_and_said(make: Callable[[Stage], str]) -> None:
    stage = Stage()
    conversation(stage)
    word = make(stage)
    found = verified(stage)
    assert not found.is_sound
    assert any(word in message for message in found.messages), found.messages


def test_a_thread_without_its_item_is_whole_and_nobody_knows_what_counts() -> None:
    """So it is, too, where a thread was deleted while a process put a checkpoint and died."""
    stage = Stage()
    conversation(stage)
    stage.remove(stage.items("T")["T"])
    found = verified(stage)
    assert found.is_sound
    assert found.uncounted == found.checkpoints > 0


def test_what_several_checkpoints_need_is_said_once() -> None:
    stage = Stage()
    process, big = stage.process(), noise(60_000)
    stage.run(process.put("1", {"big": big}))
    stage.run(process.put("2", {"big": big}, "1", []))
    stage.change(stage.items("S#").popitem()[1], data={"B": b"x"})
    found = verified(stage)
    assert found.flaws > len(found.messages) == 1


def test_of_very_much_damage_some_is_said_and_all_is_counted() -> None:
    stage = Stage()
    conversation(stage)
    segments = stage.items("S#").values()
    for item in segments:
        stage.change(item, **_flip(item, "data"))
    found = verified(stage)
    assert found.flaws >= len(segments) > 20
    assert len(found.messages) == 20


def test_what_needs_a_damaged_head_is_not_known_so_nothing_is_removed() -> None:
    stage = Stage()
    conversation(stage)
    a_head_that_was_changed(stage)
    before = stage.items("")
    item = before["C#1#"]
    stage.change(item, body={"B": b"cut"})
    with pytest.raises(CheckpointCorruptionError):
        repair(stage)
    assert stage.items("S#").keys() == {key for key in before if key.startswith("S#")}


# What died


def test_segments_of_a_put_that_died_are_orphans_once_they_are_old() -> None:
    stage = Stage()
    process = conversation(stage)
    stage.begin(process.put("3", {"a": noise(300_000, 3)}, "2", ["a"])).until(commits("3"))
    left = len(stage.items("S#"))
    found = verified(stage)
    assert found.is_sound
    assert not found.has_leftovers
    assert found.recent > 10
    repair(stage)
    assert len(stage.items("S#")) == left
    stage.now += ORPHAN_SECONDS + 1
    found = verified(stage)
    assert found.has_leftovers
    assert (found.orphans > 10, found.recent) == (True, 0)
    assert found.orphan_bytes > 290_000
    repair(stage)
    assert len(stage.items("S#")) == left - found.orphans
    assert verified(stage).is_sound
    assert not verified(stage).has_leftovers
    assert process.values("2") is not None


def test_a_put_that_is_under_way_loses_nothing_to_a_repair() -> None:
    stage = Stage()
    process = conversation(stage)
    for until in (commits("3"), confirms):
        run = stage.begin(process.put("3", {"a": noise(60_000), "b": noise(150_000, 3)}, "2", ["b"]))
        run.until(until)
        repair(stage)
        run.finish()
        assert stage.process().values("3") == {"a": noise(60_000), "b": noise(150_000, 3)}
        assert verified(stage).is_sound


def test_writes_without_a_checkpoint_are_abandoned_once_they_are_old() -> None:
    stage = Stage()
    process = conversation(stage)
    stage.run(process.put_writes("3", [("a", 1)], "lost"))
    assert (verified(stage).abandoned, verified(stage).recent) == (0, 1)
    stage.now += ORPHAN_SECONDS + 1
    assert (verified(stage).abandoned, verified(stage).recent) == (1, 0)
    repair(stage)
    assert "C#3#W#lost" not in stage.items("C#")
    assert not verified(stage).has_leftovers


def test_an_empty_namespace_is_left() -> None:
    stage = Stage()
    process = conversation(stage)
    stage.begin(process.put("1", {"a": 1}, namespace="empty")).until(commits("1"))
    assert verified(stage).empty_namespaces == 1
    repair(stage)
    assert verified(stage).empty_namespaces == 0
    assert len(stage.items("N#")) == 1


def test_a_checkpoint_that_was_never_acknowledged_is_no_damage() -> None:
    stage = Stage()
    process = conversation(stage)
    run = stage.begin(process.put("3", {"a": noise(60_000), "b": noise(150_000, 1)}, "2", []))
    run.until(commits("3"))
    stage.run(stage.process().prune())
    stage.run(stage.process().delete_thread())
    run.perform()
    found = verified(stage)
    assert found.passed_over == 1
    assert found.checkpoints == 1


def test_a_whole_one_that_is_not_committed_is_told() -> None:
    stage = Stage()
    process = conversation(stage)
    run = stage.begin(process.put("3", {"small": 1}, "2"))
    run.until(commits("3"))
    stage.run(stage.process().prune(2))
    run.perform()
    found = verified(stage)
    assert found.is_sound
    assert (found.uncounted, found.passed_over) == (1, 0)


def test_a_deletion_under_way_is_told() -> None:
    stage = Stage()
    conversation(stage)
    run = stage.begin(stage.process().prune())
    run.until(deletes("C#"))
    assert verified(stage).claimed
    stage.now += CLAIM_SECONDS + 1
    assert not verified(stage).claimed


def test_what_has_expired_is_counted_and_not_checked() -> None:
    stage = Stage()
    process = stage.process(ttl_seconds=100)
    stage.run(process.put("1", {"a": noise(60_000)}))
    stage.now += 101
    a_head_that_was_changed(stage)
    found = verified(stage)
    assert found.is_sound
    assert (found.checkpoints, found.expired) == (0, 1)


@pytest.mark.parametrize("wanted", ["its own content", "a value"])
def test_what_is_deleted_while_it_is_read_is_not_damage(wanted: str) -> None:
    stage = Stage()
    conversation(stage)
    if wanted == "a value":
        stage.remove(next(iter(stage.items("S#").values())))
    run = stage.begin(verify_thread(stage.process().table, CODEC, THREAD))
    run.until(lambda call: call.method == "batch_get_item")
    for item in list(stage.model.items()):
        stage.remove(item)
    assert run.finish().is_sound


def test_a_thread_that_begins_while_it_is_read_has_an_item() -> None:
    stage = Stage()
    run = stage.begin(verify_thread(stage.process().table, CODEC, THREAD))
    run.go_on()
    stage.run(stage.process().put("1", {"a": 1}))
    found = run.finish()
    assert found.is_sound
    assert found.checkpoints == 1


# Namespaces that nobody knows of


def _forgotten(stage: Stage) -> tuple[str, ...]:
    conversation(stage)
    for item in stage.items("N#").values():
        stage.remove(item)
    return tuple({item["PK"]["S"] for item in stage.items("").values()})


def test_a_namespace_that_a_scan_finds_and_the_thread_does_not_know_is_registered() -> None:
    stage = Stage()
    scanned = _forgotten(stage)
    assert verified(stage).namespaces == 1
    found = verified(stage, scanned=(f"{THREAD}#", f"{THREAD}#child:1"))
    assert found.unknown_namespaces == [NS]
    assert not found.is_sound
    assert found.has_leftovers
    repair(stage, found)
    again = verified(stage, scanned=scanned)
    assert again.is_sound
    assert again.namespaces == 2
    stage.run(stage.process().delete_thread())
    assert not stage.items("")


def test_an_entry_lives_as_long_as_what_it_leads_to() -> None:
    stage = Stage()
    process = stage.process(ttl_seconds=1000)
    stage.run(process.put("1", {"a": noise(60_000)}, namespace=NS))
    (entry,) = stage.items("N#").values()
    stage.remove(entry)
    found = verified(stage, scanned=(f"{THREAD}#child:1",))
    repair(stage, found)
    last = max(int(item["expires_at"]["N"]) for item in stage.items("S#").values())
    assert int(stage.items("N#")["N#child:1"]["expires_at"]["N"]) == last
    repair(stage, Verification(THREAD, unknown_namespaces=["gone meanwhile"]))
    assert stage.items("N#").keys() == {"N#child:1"}


def test_a_partition_that_has_gone_since_the_scan_is_nothing() -> None:
    stage = Stage()
    conversation(stage)
    found = verified(stage, scanned=(f"{THREAD}#gone",))
    assert found.is_sound
    assert found.namespaces == 2


# Delta channels


def _delta(stage: Stage) -> None:
    process = stage.process()
    stage.run(process.put("1", {}, step=-1))
    for number in (2, 3, 4):
        counters: Any = {"counters_since_delta_snapshot": {"log": [number, number]}}
        stage.run(process.put(str(number), {"other": number}, str(number - 1), **counters))


def test_the_way_back_of_delta_channels_is_checked() -> None:
    stage = Stage()
    _delta(stage)
    assert verified(stage).is_sound
    stage.remove(stage.items("C#")["C#2#"])
    found = verified(stage)
    assert (found.flaws, found.cut) == (1, 1)
    assert "rebuilt from checkpoint '2', which is not in the table" in found.messages[0]


def test_a_first_checkpoint_may_have_been_told_of_another_one() -> None:
    stage = Stage()
    process = stage.process()
    counters: Any = {"counters_since_delta_snapshot": {"log": [1, 1]}}
    stage.run(process.put("1", {}, "0", step=-1, **counters))
    stage.run(process.put("2", {}, "1", **counters))
    assert verified(stage).is_sound
