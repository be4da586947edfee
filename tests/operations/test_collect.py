"""Deletions in a row, deletions that stand still or die: which checkpoints count, and that those stay."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS, ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._operations.collect import read_indexes, scan_namespace
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import (
    THREAD,
    TTL_SECONDS,
    Harness,
    Process,
    Run,
    asks,
    changes_thread,
    commits,
    confirms,
    deletes,
    deletes_item,
    single_effects,
    updates,
)

IDS = ("1", "2", "3", "4")


def _of_own_runs(process: Process, checkpoint_ids: Iterator[str] | tuple[str, ...] = IDS) -> None:
    """Store a conversation, each checkpoint of which is of its own run and has a value that its child has too."""
    parent: str | None = None
    for each in checkpoint_ids:
        values = {"big": noise(60_000, int(each)), "shared": noise(60_000)}
        new = None if parent is None else ["big"]
        process.harness.run(process.put(each, values, parent, new, run_id=f"run {each}"))
        parent = each


def _ids(harness: Harness) -> list[str]:
    return [key.strip("C#") for key in harness.items("C#")]


def test_a_prune_keeps_what_counts_though_deletions_in_a_row_took_what_was_newest(harness: Harness) -> None:
    """A put dies before its look, its parent is being taken away, and nothing newer has ever been acknowledged."""
    _of_own_runs(harness.process())
    other = harness.process()
    other.get("3")
    harness.run(harness.process().delete_for_runs("run 4"))
    other.get("3")
    slow = harness.begin(harness.process().delete_for_runs("run 3")).until(deletes("S#"))
    dying = harness.begin(other.put("5", {"big": noise(60_000, 3), "shared": noise(60_000)}, "3", []))
    dying.until(confirms)
    harness.now += CLAIM_SECONDS + 10
    harness.run(harness.process().prune())
    slow.finish()
    assert harness.process().values() == {"big": noise(60_000, 2), "shared": noise(60_000)}
    assert harness.process().get("2") is not None


@pytest.mark.parametrize("request_", [":ended", "REMOVE #previous"])
@pytest.mark.parametrize("carried_out", [True, False])
def test_what_a_dead_deletion_left_counts(harness: Harness, request_: str, carried_out: bool) -> None:
    """Another one that takes what was newest, and a prune, keep what was acknowledged."""
    _of_own_runs(harness.process())
    dying = harness.begin(harness.process().delete_for_runs("run 4")).until(changes_thread(request_))
    if carried_out:
        dying.perform()
    harness.now += CLAIM_SECONDS + 10
    harness.run(harness.process().delete_for_runs("run 3"))
    harness.run(harness.process().prune(2))
    assert _ids(harness) == ["1", "2"]
    assert harness.process().values() == {"big": noise(60_000, 2), "shared": noise(60_000)}


def test_a_deletion_that_lost_its_claim_takes_no_segment(harness: Harness, process: Process) -> None:
    """It stood still before it said what counts; another one has said so since, of what came meanwhile as well."""
    _of_own_runs(process)
    slow = harness.begin(harness.process().delete_for_runs("run 4")).until(changes_thread("REMOVE #previous"))
    dying = harness.begin(process.put("5", {"big": noise(60_000, 4), "shared": noise(60_000)}, "4", []))
    dying.until(confirms)
    harness.now += CLAIM_SECONDS + 10
    harness.run(harness.process().prune(4))
    with pytest.raises(ThreadBusyError) as error:
        slow.finish()
    assert str(error.value) == (
        "deleting from thread 't' took longer than its claim of 120 s, and another deletion took over. The checkpoints"
        " are deleted; what only they needed goes with the next prune or deletion of the thread."
    )
    assert harness.process().values("5") == {"big": noise(60_000, 4), "shared": noise(60_000)}


def test_a_prune_that_lost_its_claim_early_deletes_nothing(harness: Harness, process: Process) -> None:
    """What it knew of epochs is old: a head that does not count would be the newest, and all others would go."""
    _of_own_runs(process, ("1", "2", "3"))
    late = harness.begin(harness.process().prune()).until(asks("query"))
    fork = harness.begin(process.put("4", {"text": "fork"}, "2")).until(commits("4"))
    harness.now += CLAIM_SECONDS + 10
    harness.run(harness.process().prune(3))
    # Under an epoch that has ended; its process dies before it confirms.
    fork.perform()
    with pytest.raises(ThreadBusyError) as error:
        late.finish()
    assert str(error.value) == (
        "deleting from thread 't' took longer than its claim of 120 s, and another deletion took over before anything"
        " was deleted; retry the call"
    )
    assert all(harness.process().values(each) for each in ("1", "2", "3"))


def test_a_prune_that_stood_still_goes_on_while_it_has_its_claim(harness: Harness) -> None:
    _of_own_runs(harness.process())
    slow = harness.begin(harness.process().prune()).until(asks("query"))
    harness.now += CLAIM_SECONDS + 10
    slow.finish()
    assert _ids(harness) == ["4"]


def _prune_of_old_writes(harness: Harness) -> Run[None]:
    """Begin a prune that has read writes for checkpoint 2, an hour old, before there is a head for them."""
    process = harness.process()
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put_writes("2", [("x", noise(60_000))]))
    harness.now += ORPHAN_SECONDS + 10
    return harness.begin(harness.process().prune()).until(changes_thread(":ended"))


def test_a_deletion_leaves_old_writes_whose_checkpoint_came_while_it_ran(harness: Harness) -> None:
    prune = _prune_of_old_writes(harness)
    harness.run(harness.process().put("2", {"x": 2}, "1"))
    prune.finish()
    assert harness.process().pending("2") == [("task", "x", noise(60_000))]


def test_a_deletion_leaves_old_writes_that_are_stored_again_while_it_runs(harness: Harness) -> None:
    """Also after it has read them for the second time."""
    prune = _prune_of_old_writes(harness).until(deletes_item("C#2#W#"))
    harness.run(harness.process().put_writes("2", [("x", noise(60_000))]))
    prune.finish()
    harness.run(harness.process().put("2", {"x": 2}, "1"))
    assert harness.process().pending("2") == [("task", "x", noise(60_000))]


def test_what_stays_has_no_parent_that_went(harness: Harness, process: Process) -> None:
    for checkpoint_id, parent in (("1", None), ("2", "1"), ("3", "2"), ("4", "3"), ("5", "2")):
        harness.run(process.put(checkpoint_id, {"x": checkpoint_id}, parent))
    harness.run(process.prune(3))
    parents = {each: process.get(each) for each in _ids(harness)}
    assert {each: found and found.parent_config for each, found in parents.items()} == {
        "3": None,
        "4": thread_config(THREAD, "", "3"),
        "5": None,
    }


@pytest.mark.parametrize(("seconds", "is_left"), [(ORPHAN_SECONDS, True), (ORPHAN_SECONDS + 1, False)])
def test_a_deletion_leaves_segments_for_an_hour_to_who_may_name_them(
    harness: Harness, process: Process, seconds: int, is_left: bool
) -> None:
    for checkpoint_id in ("1", "2"):
        harness.run(process.put(checkpoint_id, {"x": checkpoint_id}))
    harness.begin(harness.process().put("3", {"big": noise(60_000)}, "2")).until(commits("3"))
    uploaded = harness.items("S#")
    harness.now += seconds
    harness.run(harness.process().prune())
    assert harness.items("S#") == (uploaded if is_left else {})


@pytest.mark.parametrize("above", [False, True])
def test_a_deletion_that_dies_shows_the_newest_state_or_none(harness: Harness, above: bool) -> None:
    """Also where DynamoDB carries out a part of a batch only, and where a put that died is torn above what counts."""
    process = harness.process()
    for number in range(1, 5):
        harness.run(process.put(str(number), {"big": noise(60_000, number)}))
    if above:
        dying = harness.begin(harness.process().put("5", {"big": noise(60_000, 5)})).until(commits("5"))
        # It commits under an epoch that has ended.
        harness.run(harness.process().prune(3))
        dying.perform()
        for segment_id in items.named_ids([harness.items("C#")["C#5#"]]):
            harness.remove(harness.items("S#")[items.segment_sk(segment_id)])
    deletion = harness.begin(harness.process().delete_thread())
    while not deletion.done:
        for call in single_effects(deletion.calls):
            harness.perform(call)
            assert harness.process().values() in ({"big": noise(60_000, 4)}, None)
        deletion.go_on()
    assert harness.model.items() == []


def test_a_prune_leaves_no_segment_that_only_index_segments_of_what_went_led_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_small_limits(monkeypatch)
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": noise(4_000)}))
    harness.run(process.put("2", {"x": noise(4_000, 2)}, "1"))
    harness.run(process.prune())
    assert harness.process().values() == {"x": noise(4_000, 2)}
    storage = harness.process().storage
    inventory = harness.run(scan_namespace(storage, items.partition_of(THREAD)))
    harness.run(read_indexes(storage, inventory))
    assert inventory.named({"2"}) == inventory.segments.keys()


def test_what_expires_while_a_deletion_reads_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB removes an index segment that the deletion has just seen, and the head that names it."""
    use_small_limits(monkeypatch)
    harness = Harness()
    process = harness.process()
    for number in range(3):
        harness.run(process.put(str(number), {"x": noise(4_000, number)}))
    deletion = harness.begin(process.prune(2)).until(changes_thread(":ended"))
    deletion.go_on()
    deletion.until(asks("batch_get_item"))
    for key in harness.items("S#").keys() & {
        items.segment_sk(each) for each in items.named_ids([harness.items("C#")["C#1#"]])
    }:
        harness.remove(harness.items("S#")[key])
    harness.remove(harness.items("C#")["C#1#"])
    deletion.finish()
    assert harness.process().values() == {"x": noise(4_000, 2)}


def test_a_deletion_that_was_overtaken_settles_nothing(harness: Harness) -> None:
    """Another one has removed what a late head names, and never saw that head."""
    process = harness.process()
    harness.run(process.put("0", {"x": 0}))
    harness.run(process.put("1", {"big": noise(60_000)}))
    late = harness.begin(process.put("1a", {"big": noise(60_000)}, "1", ())).until(commits("1a"))
    harness.run(harness.process().put("2", {"x": 2}))
    overtaken = harness.begin(harness.process().prune(2)).until(changes_thread(":ended"))
    overtaken.go_on()
    harness.now += CLAIM_SECONDS + 1
    harness.run(harness.process().prune())
    late.perform()
    with pytest.raises(ThreadBusyError, match="took over"):
        overtaken.finish()
    assert harness.process().ids() == ["2"]


def test_a_deletion_keeps_what_replaced_a_head_that_it_had_read(harness: Harness) -> None:
    """It has deleted what came before that head, which may be replaced by one that is never acknowledged."""
    process = harness.process()
    # Otherwise the second attempt names what its own first head has.
    process = replace(process, storage=replace(process.storage, share_equal_pieces=False))
    harness.run(process.put("1", {"big": noise(40_000)}))
    put = harness.begin(process.put("2", {"big": noise(40_000, 1)}, "1")).until(commits("2"))
    put.go_on()
    harness.run(harness.process().prune())
    # Its epoch has ended, so it stores everything again, meets its own head, and stands still for an hour.
    put.until(commits("2"))
    put.go_on()
    put.until(commits("2"))
    harness.now += ORPHAN_SECONDS + 1
    deletion = harness.begin(harness.process().prune()).until(updates("C#2#"))
    put.go_on()
    deletion.finish()
    assert harness.process().values() == {"big": noise(40_000, 1)}


def _units_of_pruning_one(
    harness: Harness, checkpoints: int, values: Callable[[int], dict[str, Any]]
) -> list[int]:
    """Put so many checkpoints, and prune the oldest twice, one at a time; return what each prune writes."""
    process, parent = harness.process(), None
    for each in range(checkpoints):
        harness.run(process.put(f"{each:04}", values(each), parent))
        parent = f"{each:04}"
    counts = []
    for kept in (checkpoints - 1, checkpoints - 2):
        calls = harness.begin(harness.process().prune(kept)).trace()
        single = [call for call in calls if call.method in ("put_item", "update_item", "delete_item")]
        counts.append(len(single) + len(list(single_effects(calls))))
    return counts


@pytest.mark.parametrize("bytes_shared", [10, 60_000], ids=["small", "segments"])
def test_a_deletion_costs_what_it_deletes(bytes_shared: int) -> None:
    """What it keeps, and what depends on segments, it writes once, when it sees it for the first time."""

    def values(number: int) -> dict[str, Any]:
        return {"number": number, "shared": noise(bytes_shared)}

    few, many = (_units_of_pruning_one(Harness(), checkpoints, values) for checkpoints in (10, 60))
    assert few[1] == many[1] <= 8
    assert (few[0] == many[0]) == (bytes_shared == 10)


def test_a_slow_put_does_not_replace_what_a_deletion_has_settled(harness: Harness) -> None:
    """A deletion restamps it no more, so the put marks it first, and the next deletion takes the mark away."""
    _of_own_runs(harness.process())
    harness.run(harness.process().prune(3))
    settled = harness.items("C#3#")["C#3#"]
    slow = harness.begin(harness.process().put("3", {"big": noise(60_000, 9)})).until(commits("3"))
    slow.go_on()
    slow.until(commits("3"))
    # What it has uploaded nobody names for an hour.
    harness.now += ORPHAN_SECONDS + 1
    harness.run(harness.process().prune(2))
    slow.perform()
    slow.drop()
    left = harness.items("C#3#")["C#3#"]
    assert (left["epoch"], left["body"]) == (settled["epoch"], settled["body"])
    assert harness.process().values("3") == {"big": noise(60_000, 3), "shared": noise(60_000)}


def test_a_put_reuses_what_a_settled_parent_has(harness: Harness) -> None:
    """Though it no longer tells under which epoch its segments are safe."""
    _of_own_runs(harness.process())
    harness.run(harness.process().prune(3))
    fork = harness.process()
    fork.get("3")
    before = len(harness.items("S#"))
    calls = harness.begin(fork.put("5", {"big": noise(60_000, 3), "shared": noise(60_000)}, "3", [])).trace()
    assert [call.params["Key"]["SK"]["S"] for call in calls if call.method == "get_item"] == [
        "T",
        "C#3#",
        "T",
    ]
    assert len(harness.items("S#")) <= before + 1
    harness.run(harness.process().prune())
    assert harness.process().values() == {"big": noise(60_000, 3), "shared": noise(60_000)}


def test_a_put_reuses_nothing_of_a_settled_parent_that_has_gone(harness: Harness) -> None:
    _of_own_runs(harness.process())
    harness.run(harness.process().prune(3))
    fork = harness.process()
    fork.get("3")
    harness.run(harness.process().prune())
    harness.run(fork.put("5", {"big": noise(60_000, 3), "shared": noise(60_000)}, "3", []))
    assert harness.process().values() == {"big": noise(60_000, 3), "shared": noise(60_000)}


def test_what_was_settled_is_not_of_a_life_that_begins_anew(harness: Harness) -> None:
    process = harness.process(TTL_SECONDS)
    _of_own_runs(process)
    harness.run(harness.process(TTL_SECONDS).prune(3))
    harness.now += TTL_SECONDS + 1
    harness.run(harness.process(TTL_SECONDS).put("5", {"x": 1}))
    assert harness.process().ids() == ["5"]


def test_a_registration_that_arrives_twice_lets_no_deletion_forget_a_namespace(
    harness: Harness, process: Process
) -> None:
    """It brings back the marker that the deletion has read, after another put has registered the namespace."""
    harness.run(process.put("9", {"x": 9}))
    first = harness.begin(process.put("1", {"x": 1}, namespace="inner", run_id="gone"))
    registers = first.until(asks("put_item", word="N#inner")).calls
    first.finish()
    deletion = harness.begin(harness.process().delete_for_runs("gone")).until(deletes_item("N#inner"))
    other = harness.begin(harness.process().put("2", {"x": 2}, namespace="inner")).until(commits("2"))
    for each in registers:
        harness.answer(each)
    deletion.finish()
    other.finish()
    assert harness.process().values(namespace="inner") == {"x": 2}
    harness.run(harness.process().delete_thread())
    assert harness.model.items() == []
