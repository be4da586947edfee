"""`copy_thread`: what cannot be whole is never copied as if it were, nor shown; and a copy shares nothing."""

from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointNotFoundError,
    ThreadBusyError,
    protocol,
)
from langgraph.checkpoint.dynamodb._format import items, limits, schema, segments
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._operations import copy, threads
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import noise
from tests.support.harness import (
    ENCRYPTED,
    THREAD,
    TTL_SECONDS,
    Harness,
    Process,
    asks,
    changes_thread,
    commits,
    confirms,
    deletes_item,
    removes_thread,
    single_effects,
    updates,
)


@pytest.mark.parametrize("counts", ["both", "the second", "the first"])
def test_a_damaged_checkpoint_is_not_copied_and_one_that_never_counted_is_left_out(
    harness: Harness, process: Process, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three, the later two lack a segment that an index segment of both leads to."""
    use_small_limits(monkeypatch)
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"noise": noise(4_000)}, "1"))
    of_both = {items.segment_id_of(each): each for each in harness.items("S#").values()}
    harness.run(process.put("3", {"noise": noise(4_000), "x": 3}, "2", ["x"]))
    named = items.named_ids(harness.items("C#").values())
    harness.remove(next(of_both[each] for each in of_both.keys() - named if not segments.is_index(each)))
    never = {"both": [], "the second": ["3"], "the first": ["2", "3"]}[counts]
    for each in never:
        head = harness.items(f"C#{each}#")[f"C#{each}#"]
        harness.change(head, **{items.EPOCH: {"B": b"another epoch"}})
    copying = harness.begin(harness.process().copy_thread("copy"))
    if counts == "the first":
        copying.finish()
        assert harness.process().ids("copy") == ["1"]
        return
    with pytest.raises(CheckpointCorruptionError, match="needs segments that are not in the table"):
        copying.finish()
    assert harness.process().ids("copy") == []


def test_a_copy_whose_thread_was_begun_again_with_another_ttl_is_not_shown_with_both(
    harness: Harness,
) -> None:
    harness.run(harness.process().put("1", {"x": 1}))
    copying = harness.begin(harness.process(TTL_SECONDS).copy_thread("copy"))
    copying.until(changes_thread("#alive = :zero"))
    harness.change(harness.items("T", "copy")["T"], kept_until=None, expires_at=None, ttl_seconds={"N": "0"})
    copying.finish()
    item = harness.items("T", "copy")["T"]
    assert not item.keys() & {"alive_until", "kept_until", "expires_at"}
    assert items.expires_at(harness.items("C#", "copy")["C#1#"]) is None
    assert harness.process().values(thread="copy") == {"x": 1}


def test_a_copy_that_is_late_removes_nothing_of_one_that_has_ended(harness: Harness) -> None:
    """It has copied a life of the source that has ended, and takes what the other one has copied for a leftover."""
    process = harness.process()
    harness.run(process.put("1", {"x": 1}))
    harness.begin(harness.process().copy_thread("copy")).until(commits("1")).drop()
    late = harness.begin(harness.process().copy_thread("copy"))
    late.until(
        lambda call: call.method == "query" and "copy#" in str(call.params) and "C#" in str(call.params)
    )
    harness.run(process.delete_thread())
    harness.run(process.put("2", {"x": 2}))
    harness.run(harness.process().copy_thread("copy"))
    while not late.done:
        late.go_on()
        assert harness.process().values(thread="copy") == {"x": 2}


@pytest.mark.parametrize("ttl_seconds", [None, TTL_SECONDS])
def test_a_copy_that_begins_late_hides_nothing_of_one_that_has_ended(
    harness: Harness, ttl_seconds: int | None
) -> None:
    """A thread was moved: the second call of the two finds no source any more."""
    process = harness.process(ttl_seconds)
    harness.run(process.put("1", {"x": 1}))
    harness.run(threads.set_thread(process.storage, "copy", None, "Trains", None))
    late = harness.begin(harness.process(ttl_seconds).copy_thread("copy"))
    late.until(changes_thread("':alive': {'N': '0'}"))
    harness.run(harness.process(ttl_seconds).copy_thread("copy"))
    harness.run(process.delete_thread())
    with pytest.raises(CheckpointNotFoundError):
        late.finish()
    assert harness.process().values(thread="copy") == {"x": 1}
    harness.run(harness.process(ttl_seconds).put("2", {"x": 2}, "1", thread="copy"))


def test_a_copy_that_is_late_and_dies_shortens_nothing_of_one_that_has_ended(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"x": 1}))
    late = harness.begin(harness.process(TTL_SECONDS).copy_thread("copy"))
    late.until(commits("1"))
    user = harness.process(TTL_SECONDS)
    harness.run(user.copy_thread("copy"))
    harness.now += 0.97 * TTL_SECONDS
    assert user.values(thread="copy") == {"x": 1}
    harness.run(user.put_writes("1", [("x", 2)], "renews", thread="copy"))
    for _ in range(4):
        late.go_on()
    late.drop()
    harness.now += 0.9 * TTL_SECONDS
    harness.run(user.put_writes("1", [("x", 3)], "uses", thread="copy"))
    harness.now += 0.5 * TTL_SECONDS
    assert harness.process().values(thread="copy") == {"x": 1}


def test_a_late_copy_to_a_deleted_thread_takes_no_writes_of_the_next_copy(
    harness: Harness, process: Process
) -> None:
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put_writes("1", [("x", noise(100_000))]))
    late = harness.begin(harness.process().copy_thread("copy")).until(asks("put_item", word="#W#"))
    harness.run(harness.process().delete_thread("copy"))
    harness.run(harness.process().copy_thread("copy"))
    for _ in range(3):
        late.go_on()
    late.drop()
    assert harness.process().pending("1", thread="copy") == [("task", "x", noise(100_000))]


def test_a_copy_takes_no_dead_thread_that_lives_again(harness: Harness, expiring: Process) -> None:
    harness.run(expiring.put("5", {"x": 5}, thread="copy"))
    harness.now += TTL_SECONDS
    harness.run(harness.process().put("1", {"x": 1}))
    copying = harness.begin(harness.process().copy_thread("copy")).until(changes_thread("SET #epoch"))
    harness.run(expiring.put_writes("5", [("x", 6)], thread="copy"))
    copying.finish()
    assert harness.process().pending("5", thread="copy") == [("task", "x", 6)]
    assert harness.process().values("1", thread="copy") == {"x": 1}


@pytest.mark.parametrize("namespace", ["", "inner"])
def test_what_a_thread_has_outlives_a_deletion_that_died_and_a_copy_that_died(
    harness: Harness, process: Process, namespace: str
) -> None:
    """The deletion left its epoch pending, and the copy is made again."""
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"x": 2}, thread="copy", namespace=namespace, run_id="gone"))
    harness.run(process.put("3", {"x": 3}, thread="copy", namespace=namespace))
    deletion = harness.begin(harness.process().delete_for_runs("gone")).until(changes_thread("SET #epoch"))
    deletion.go_on()
    deletion.drop()
    for dies in (True, False):
        copying = harness.begin(harness.process().copy_thread("copy")).until(commits("1"))
        if dies:
            copying.drop()
        else:
            copying.finish()
        assert harness.process().values("3", thread="copy", namespace=namespace) == {"x": 3}
    assert harness.process().values("1", thread="copy") == {"x": 1}


def test_what_is_put_when_a_copy_begins_is_refused_or_stays(harness: Harness) -> None:
    """Into a thread that had no checkpoint; and the copy dies, and is made again."""
    harness.run(harness.process().put("1", {"x": 1}))
    acknowledged = set()
    for rounds in range(14):
        target = f"copy {rounds}"
        harness.run(threads.set_thread(harness.process().storage, target, None, "Trains", None))
        copying = harness.begin(harness.process().copy_thread(target))
        for _ in range(rounds):
            copying.go_on()
        with suppress(ThreadBusyError):
            harness.run(harness.process().put("0", {"x": 0}, thread=target))
            acknowledged.add(target)
        copying.until(commits("1"))
        copying.drop()
        harness.run(harness.process().copy_thread(target))
        found = [harness.process().values(each, thread=target) for each in ("0", "1")]
        assert found == [{"x": 0} if target in acknowledged else None, {"x": 1}]
    assert 0 < len(acknowledged) < 14


def test_a_copy_that_dies_shows_nothing(harness: Harness, process: Process) -> None:
    """Also where DynamoDB carries out a part of a batch only; and nothing can be stored in it then."""
    for number in range(5):
        harness.run(process.put(str(number), {"number": number}, str(number - 1) if number else None))
    harness.run(process.put("inner", {"x": noise(20_000)}, namespace="inner"))
    harness.run(process.put_writes("4", [("number", 5)]))
    copy = harness.begin(process.copy_thread("copy"))
    while not copy.done:
        for call in single_effects(copy.calls):
            assert harness.process().ids("copy") == []
            for namespace in ("", "inner"):
                assert harness.process().get(thread="copy", namespace=namespace) is None
            # The thread item, with the owner, comes before anything else.
            assert harness.items("T", "copy") or not harness.items("", "copy")
            if harness.items("T", "copy"):
                _assert_refuses(harness, "copy")
            harness.perform(call)
        copy.go_on()
    found = harness.process().found(thread="copy")
    assert found.checkpoint["channel_values"] == {"number": 4}
    assert found.pending_writes == [("task", "number", 5)]
    assert harness.process().ids("copy") == ["inner", "4", "3", "2", "1", "0"]
    assert harness.process().values(thread="copy", namespace="inner") == {"x": noise(20_000)}


def _assert_refuses(harness: Harness, thread: str) -> None:
    """Assert that nothing is stored in a copy that is not complete."""
    before, process = harness.items("", thread), harness.process()
    for operation in (
        process.put("9", {}, thread=thread),
        process.put("9", {}, "4", thread=thread),
        process.put_writes("4", [("x", 1)], thread=thread),
    ):
        with pytest.raises(ThreadBusyError, match="is a copy that is not complete"):
            harness.run(operation)
    assert harness.items("", thread) == before


@pytest.mark.parametrize("is_late", [False, True], ids=["made again", "late"])
def test_a_copy_replaces_no_writes_that_its_target_has_stored(harness: Harness, *, is_late: bool) -> None:
    """Nor does it leave out what the source has stored since, where the target has stored nothing."""
    process = harness.process()
    harness.run(process.put("1", {"x": 1}))
    for task in ("one", "two"):
        harness.run(process.put_writes("1", [("__interrupt__", task)], task))
    harness.run(harness.process().copy_thread("other"))
    late = harness.begin(harness.process().copy_thread("copy"))
    if is_late:
        late.until(asks("put_item", word="C#1#W#"))
    harness.run(harness.process().copy_thread("copy"))
    for target in ("copy", "other"):
        harness.run(harness.process().put_writes("1", [("__resume__", "yes")], "one", thread=target))
    harness.run(process.put_writes("1", [("__resume__", "no")], "two"))
    late.finish()
    harness.run(harness.process().copy_thread("other"))
    answers = {
        target: [each for each in harness.process().pending("1", thread=target) if each[1] == "__resume__"]
        for target in ("copy", "other")
    }
    assert ("one", "__resume__", "yes") in answers["copy"]
    assert answers["other"] == [("one", "__resume__", "yes"), ("two", "__resume__", "no")]


def test_a_late_copy_removes_nothing_that_its_target_has_stored_since(harness: Harness) -> None:
    """Another one has left writes there that the source has no more, and has ended."""
    process = harness.process()
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put_writes("1", [("x", 2)]))
    ended = harness.begin(harness.process().copy_thread("copy")).until(changes_thread("#alive = :zero"))
    harness.remove(harness.items("C#1#W#")["C#1#W#task"])
    late = harness.begin(harness.process().copy_thread("copy")).until(deletes_item("C#1#W#"))
    ended.finish()
    harness.run(harness.process().put_writes("1", [("x", 2), ("y", 3)], thread="copy"))
    late.finish()
    assert harness.process().pending("1", thread="copy") == [("task", "x", 2), ("task", "y", 3)]


@pytest.mark.parametrize("ttl_seconds", [None, TTL_SECONDS // 2, TTL_SECONDS])
def test_a_copy_has_no_writes_of_the_life_before(harness: Harness, ttl_seconds: int | None) -> None:
    """Also where these would be kept for longer than the copy, or are of a task that its source does not have."""
    harness.run(harness.process().put("1", {"x": 1}))
    harness.run(harness.process().put_writes("1", [("x", "source")]))
    for each in (TTL_SECONDS, ttl_seconds):
        harness.now += TTL_SECONDS
        harness.run(harness.process(each).copy_thread("copy"))
        assert harness.process().pending("1", thread="copy") == [("task", "x", "source")]
        for task in ("task", "other"):
            harness.run(harness.process(each).put_writes("1", [("x", 0), ("y", 0)], task, thread="copy"))


@pytest.mark.parametrize("what", ["put", "writes"])
def test_what_a_dead_copy_refuses_leaves_its_deletion_alone(
    harness: Harness, process: Process, what: str
) -> None:
    harness.run(process.put("1", {"x": 1}))
    harness.begin(process.copy_thread("copy")).until(commits("1")).drop()
    deletion = harness.begin(harness.process().delete_thread("copy")).until(removes_thread)
    other = harness.process()
    put, writes = other.put("2", {}, "1", thread="copy"), other.put_writes("1", [("x", 1)], thread="copy")
    with pytest.raises(ThreadBusyError, match="is a copy that is not complete"):
        harness.begin(put if what == "put" else writes).finish()
    deletion.finish()
    assert not harness.items("", "copy")


def test_a_copy_that_dies_hides_nothing_that_its_target_had(harness: Harness, process: Process) -> None:
    """It shows the newest checkpoint of the source first then."""
    harness.run(process.put("2", {"number": 2}))
    harness.run(process.copy_thread("copy"))
    for number in (3, 4, 5):
        harness.run(process.put(str(number), {"number": number}))
    copy = harness.begin(process.copy_thread("copy"))
    seen = {"2"}
    while not copy.done:
        for call in [
            *single_effects(copy.calls),
            *(each for each in copy.calls if each.method == "put_item"),
        ]:
            harness.perform(call)
            listed = harness.process().ids("copy")
            assert seen <= set(listed)
            assert listed == ["2"] or listed[0] == "5"
            seen = set(listed)
        copy.go_on()
    assert harness.process().ids("copy") == ["5", "4", "3", "2"]


@pytest.mark.parametrize("changes", ["nothing", "source", "target"])
def test_a_copy_by_parts_is_that_of_one_call_and_begins_again_if_a_thread_changes(
    harness: Harness, process: Process, changes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_small_limits(monkeypatch)
    monkeypatch.setattr(copy, "_CHECKPOINTS_AT_ONCE", 1)
    monkeypatch.setattr(limits, "PARALLEL_REQUESTS", 1)
    for namespace in ("", "inner", "other"):
        for number in range(3):
            parent = str(number - 1) if number else None
            harness.run(process.put(str(number), {"x": noise(900 + number)}, parent, namespace=namespace))
    if changes == "target":
        harness.run(process.put("9", {"x": 9}, thread="copy"))
    parts, after = list[copy.CopyPosition](), None
    while after is not None or not parts:
        storage = harness.process().storage
        after = harness.run(copy.copy_part(storage, THREAD, "copy", after=after, is_over=lambda: True))
        parts += [] if after is None else [after]
        if len(parts) == 4 and changes != "nothing":
            harness.run(harness.process().prune(thread=THREAD if changes == "source" else "copy"))
    places = [(each.checkpoint_ns, each.checkpoint_id) for each in parts]
    whole = [(namespace, str(number)) for namespace in ("other", "inner", "") for number in (2, 1, 0)]
    # A prune keeps one more in a subgraph's namespace.
    left = [each for each in whole if each[1] == "2" or each in (("other", "1"), ("inner", "1"))]
    assert places == {"nothing": whole, "source": whole[:4] + left, "target": whole[:4] + whole}[changes]
    assert len({each.seed for each in parts}) == (1 if changes == "nothing" else 2)
    for namespace in ("", "inner", "other"):
        values = harness.process().values("2", thread="copy", namespace=namespace)
        assert values == {"x": noise(902)}
    assert (harness.process().get("0", thread="copy") is None) == (changes == "source")


def _turn(process: Process, turn: int) -> list[Op[Any]]:
    """A step of the root, in which a subgraph goes on in which another one does, and whose task then ends."""
    before = turn - 1
    return [
        process.put(f"{turn}.0", {"turn": turn}, f"{before}.0"),
        process.put(f"{turn}.1", {"turn": turn}, f"{before}.1", namespace="middle|inner"),
        process.put(f"{turn}.2", {"turn": turn}, f"{before}.2", namespace="middle"),
        process.put_writes(f"{turn}.0", [("turn", turn)]),
    ]


@pytest.mark.parametrize("by_parts", [False, True])
@pytest.mark.parametrize("turns_before", [0, 2])
@pytest.mark.parametrize("begins_at", range(0, 12, 2))
def test_a_copy_beside_a_run_is_of_one_moment(
    harness: Harness, *, by_parts: bool, turns_before: int, begins_at: int
) -> None:
    """The run goes on by one call before each of the copy's rounds, from one of them on, until it pauses."""
    process = harness.process()
    harness.run(process.put("0.0", {"turn": 0}))
    run = iter([call for turn in range(1, turns_before + 7) for call in _turn(process, turn)])
    for call in islice(run, 4 * turns_before):
        harness.run(call)
    after, rounds = None, 0
    while rounds == 0 or after is not None:
        storage = harness.process().storage
        part = copy.copy_part(storage, THREAD, "copy", after=after, is_over=lambda: by_parts)
        copying = harness.begin(part)
        while not copying.done:
            rounds += 1
            if rounds > begins_at:
                for call in islice(run, 1):
                    harness.run(call)
            copying.go_on()
        after = copying.finish()
    reader = harness.process()
    found = [reader.get(thread="copy", namespace=each) for each in ("", "middle", "middle|inner")]
    outer, middle, inner = (
        0 if each is None else each.checkpoint["channel_values"]["turn"] for each in found
    )
    has_ended = bool(reader.found(thread="copy").pending_writes)
    assert (outer if has_ended else outer - 1) <= middle <= inner <= outer


@pytest.mark.parametrize("is_anew", [False, True], ids=["goes on", "begins anew"])
def test_a_copy_whose_newest_checkpoint_goes_meanwhile(harness: Harness, *, is_anew: bool) -> None:
    """The one that is under way begins anew; and so does another one, when it has died."""
    process = harness.process()
    for number in ("1", "2", "3"):
        harness.run(process.put(number, {"x": number}, run_id=f"run {number}"))
    copy = harness.begin(harness.process().copy_thread("copy")).until(asks("put_item", word="C#"))
    harness.run(harness.process().delete_for_runs("run 3"))
    if is_anew:
        harness.run(harness.process().copy_thread("copy"))
    else:
        copy.finish()
    assert _contents(harness, "copy") == _contents(harness, THREAD)
    assert harness.process().values(thread="copy") == {"x": "2"}


def _fill_two_namespaces(harness: Harness, process: Process) -> None:
    for namespace in ("", "inner"):
        for number in range(3):
            values = {"noise": noise(40_000, number // 2), "number": number}
            harness.run(process.put(str(number), values, namespace=namespace))
            harness.run(process.put_writes(str(number), [("x", number)], namespace=namespace))


@pytest.mark.parametrize("what", ["target deleted", "source deleted"])
def test_what_is_deleted_during_a_copy_is_noticed(what: str) -> None:
    harness = Harness()
    _fill_two_namespaces(harness, harness.process(TTL_SECONDS))
    copy = harness.begin(harness.process(TTL_SECONDS).copy_thread("copy")).until(commits("1"))
    before = harness.items("S#", "copy").keys()
    harness.run(
        {
            "target deleted": harness.process().delete_thread("copy"),
            "source deleted": harness.process().delete_thread(),
        }[what]
    )
    if what == "source deleted":
        with pytest.raises(CheckpointNotFoundError, match="has no checkpoint to copy"):
            copy.finish()
        assert harness.process().get(thread="copy") is None
        return
    copy.finish()
    assert _contents(harness, "copy") == _contents(harness, THREAD)
    # Under other ids: a deletion of the first ones may stand still.
    assert not before & harness.items("S#", "copy").keys()


def _contents(harness: Harness, thread: str) -> list[Any]:
    reader = harness.process()
    found = [
        reader.get(str(number), thread=thread, namespace=each)
        for each in ("", "inner")
        for number in range(4)
    ]
    return [each and (each.checkpoint, each.pending_writes) for each in found]


@pytest.mark.parametrize("ttl_seconds", [None, TTL_SECONDS])
def test_a_deletion_takes_no_writes_of_a_copy_made_again_beside_it(
    harness: Harness, ttl_seconds: int | None
) -> None:
    """It has read those of a copy that died, without a head, and looks again when the next one has stored no head."""
    process = harness.process(ttl_seconds)
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put_writes("1", [("x", 2)]))
    harness.run(process.put("9", {"x": 9}, thread="copy", run_id="gone"))
    harness.begin(harness.process(ttl_seconds).copy_thread("copy")).until(commits("1")).drop()
    deletion = harness.begin(harness.process().delete_for_runs("gone")).until(changes_thread("ADD #previous"))
    deletion.go_on()
    again = harness.begin(harness.process(ttl_seconds).copy_thread("copy")).until(commits("1"))
    deletion.finish()
    again.finish()
    assert harness.process().pending("1", thread="copy") == [("task", "x", 2)]


def test_a_deletion_that_stands_still_takes_no_writes_of_a_copy_made_again(
    harness: Harness, expiring: Process
) -> None:
    harness.run(expiring.put("1", {"x": 1}))
    harness.run(expiring.put_writes("1", [("x", 2)]))
    harness.run(expiring.copy_thread("copy"))
    slow = harness.begin(harness.process().delete_thread("copy")).until(deletes_item("C#1#W#"))
    harness.now += limits.CLAIM_SECONDS + 1
    harness.run(harness.process().delete_thread("copy"))
    harness.run(expiring.copy_thread("copy"))
    with pytest.raises(ThreadBusyError, match="another deletion took over"):
        slow.finish()
    assert harness.process().pending("1", thread="copy") == [("task", "x", 2)]


def test_a_late_prune_cuts_no_link_of_a_thread_that_was_copied_back(
    harness: Harness, process: Process
) -> None:
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"x": 2}, "1"))
    prune = harness.begin(harness.process().prune()).until(updates("C#2#"))
    harness.now += limits.CLAIM_SECONDS + 1
    harness.run(process.copy_thread("copy"))
    harness.run(process.delete_thread())
    harness.run(copy.copy_thread(process.storage, "copy", THREAD))
    prune.go_on()
    prune.drop()
    assert harness.process().found("2").parent_config is not None


def test_a_copy_removes_nothing_that_one_of_a_later_moment_has_found(
    harness: Harness, process: Process
) -> None:
    """Both take the place of one that died. The one that ends has all that was there when it was called."""
    harness.run(process.put("1", {"x": 1}))
    harness.begin(harness.process().copy_thread("copy")).until(commits("1")).drop()
    earlier = harness.begin(harness.process().copy_thread("copy")).until(commits("1"))
    harness.run(process.put("2", {"x": 2}, "1"))
    later = harness.begin(harness.process().copy_thread("copy")).until(changes_thread("#alive = :zero"))
    earlier.finish()
    later.finish()
    assert harness.process().ids("copy") == ["2", "1"]


def test_a_copy_made_again_has_no_namespace_that_its_source_has_lost(
    harness: Harness, process: Process
) -> None:
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"x": "of before"}, namespace="inner"))
    harness.begin(harness.process().copy_thread("copy")).until(commits("1")).drop()
    harness.run(process.delete_thread())
    harness.run(process.put("3", {"x": 3}))
    harness.run(harness.process().copy_thread("copy"))
    assert harness.process().ids("copy") == ["3"]
    assert harness.process().values(thread="copy", namespace="inner") is None


def test_a_copy_by_parts_into_a_thread_that_is_renewed_is_kept_as_long(
    harness: Harness, expiring: Process
) -> None:
    """What its root needs of the subgraph, too: the parts before had stored that for a shorter time."""
    for number in range(1, 4):
        harness.run(expiring.put(f"{number}.0", {"x": number}))
        harness.run(expiring.put(f"{number}.5", {"x": number}, namespace="inner"))
    harness.run(expiring.put("9", {"x": 9}, thread="copy"))
    harness.now += 0.9 * TTL_SECONDS
    harness.run(expiring.put_writes("3.0", [("x", 1)]))
    after = harness.run(copy.copy_part(harness.process().storage, THREAD, "copy", is_over=lambda: True))
    harness.now += 0.3 * TTL_SECONDS
    harness.run(harness.process().put_writes("9", [("x", 1)], thread="copy"))
    harness.run(copy.copy_part(harness.process().storage, THREAD, "copy", after=after))
    assert {items.expires_at(each) for each in harness.items("C#", "copy").values()} == {
        protocol.kept_from(TTL_SECONDS, harness.now)
    }


@pytest.mark.parametrize(("channels", "limits"), [(0, "usual"), (3_000, "usual"), (50, "small")])
def test_what_is_encrypted_is_copied_with_all_that_it_is_bound_to(
    harness: Harness, channels: int, limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limits == "small":
        use_small_limits(monkeypatch)
    process = harness.process(codec=ENCRYPTED)
    # A value in segments, and so many others that what describes them is in segments too.
    values = {f"channel {number}": noise(20, number) for number in range(channels)} | {"noise": noise(60_000)}
    harness.run(process.put("1", values))
    harness.run(process.put_writes("1", [("x", noise(100_000, 1)), ("__error__", "small")]))
    harness.run(process.copy_thread("copy"))
    reader = harness.process(codec=ENCRYPTED)
    found, copied = reader.found(), reader.found(thread="copy")
    assert copied.checkpoint == found.checkpoint
    assert copied.checkpoint["channel_values"] == values
    assert copied.pending_writes == found.pending_writes


def test_writes_that_never_counted_are_left_out_of_a_copy(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"noise": noise(60_000)}))
    harness.run(process.put("2", {"x": 2}, "1"))
    of_checkpoints = harness.items("S#")
    harness.run(process.put_writes("1", [("x", noise(100_000, 1))]))
    for key, segment in harness.items("S#").items():
        if key not in of_checkpoints:
            harness.remove(segment)
    [writes] = harness.items("C#1#W#").values()
    harness.change(writes, **{items.EPOCH_NAMES[items.WRITES]: {"B": b"another epoch"}})
    harness.run(harness.process().copy_thread("copy"))
    reader = harness.process()
    found = [reader.get(each, thread="copy") for each in ("1", "2")]
    assert [each and each.checkpoint["channel_values"] for each in found] == [
        {"noise": noise(60_000)},
        {"x": 2},
    ]
    assert found[0] is not None
    assert found[0].pending_writes == []
    assert harness.items("C#1#W#", "copy") == {}


@pytest.mark.parametrize("while_copying", [False, True])
def test_a_copy_has_the_ttl_of_who_created_its_thread(harness: Harness, while_copying: bool) -> None:
    harness.run(harness.process().put("1", {"big": noise(60_000)}))
    longer = harness.process(30 * TTL_SECONDS).copy_thread("copy")
    if not while_copying:
        harness.run(longer)
    copy = harness.begin(harness.process(TTL_SECONDS).copy_thread("copy")).until(asks("batch_write_item"))
    if while_copying:
        harness.run(longer)
    copy.finish()
    harness.now += (TTL_SECONDS if while_copying else 30 * TTL_SECONDS) - 1
    harness.model.expire()
    assert harness.process().values(thread="copy") == {"big": noise(60_000)}
    harness.now += 2
    assert harness.process().values(thread="copy") is None


@pytest.mark.parametrize("channels", [0, 3_000])
def test_without_the_key_nothing_is_copied(harness: Harness, channels: int) -> None:
    """The newest checkpoint cannot be opened; what describes it is in its head, or in segments."""
    keys = [Codec(EncryptedSerializer.from_pycryptodome_aes(key=each * 16)) for each in (b"a", b"b")]
    values = {f"channel {number}": noise(20, number) for number in range(channels)}
    harness.run(harness.process(codec=keys[0]).put("1", {**values, "x": 1}))
    before = harness.model.items()
    with pytest.raises((CheckpointCorruptionError, CheckpointerConfigurationError)):
        harness.run(harness.process(codec=keys[1]).copy_thread("copy"))
    assert harness.model.items() == before


def test_the_thread_item_of_a_copy_that_takes_long_outlives_it(harness: Harness, expiring: Process) -> None:
    harness.run(expiring.put("1", {"x": 1}))
    harness.run(expiring.copy_thread("copy"))
    harness.now += 1.5 * TTL_SECONDS
    harness.run(expiring.put("2", {"x": 2}))
    copy = harness.begin(expiring.copy_thread("copy")).until(confirms)
    harness.now += TTL_SECONDS / 4
    copy.finish()
    [head] = [each for sk, each in harness.items("C#", "copy").items() if sk == "C#2#"]
    assert (
        (items.expires_at(harness.items("T", "copy")["T"]) or 0)
        >= (items.expires_at(head) or 0)
        > harness.now
    )


def test_a_copy_shows_no_checkpoint_that_its_source_does_not_show(
    harness: Harness, expiring: Process
) -> None:
    harness.run(expiring.put("1", {"x": 1}))
    for number in (2, 3, 4):
        harness.now += 0.8 * TTL_SECONDS
        harness.run(expiring.put(str(number), {"x": number}, str(number - 1)))
    assert "C#1#" in harness.items("C#")
    for ttl_seconds, thread in ((TTL_SECONDS, "copy"), (None, "lasting")):
        harness.run(harness.process(ttl_seconds).copy_thread(thread))
        assert harness.process().ids(thread) == harness.process().ids() == ["4", "3", "2"]


def test_what_a_delta_channel_needs_is_copied(harness: Harness, expiring: Process) -> None:
    """Also what is no longer shown."""
    counters: Any = {"counters_since_delta_snapshot": {"log": (0, 0)}}
    harness.run(expiring.put("1", {"x": 1}, **counters))
    for number in (2, 3, 4, 5):
        harness.now += 0.8 * TTL_SECONDS
        harness.run(expiring.put(str(number), {"x": number}, str(number - 1), **counters))
    assert harness.process().values("1") is None
    harness.run(expiring.copy_thread("copy"))
    assert harness.process().values("1", thread="copy") is None
    for number in (2, 3, 4, 5):
        assert harness.process().values(str(number), thread="copy") == {"x": number}
    copied = harness.items("C#", "copy")["C#1#"]
    assert items.number(copied, schema.TTL_ATTRIBUTE) == protocol.kept_from(TTL_SECONDS, harness.now)


def test_a_copy_that_took_longer_than_it_is_kept_is_made_again(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 1}))
    copy = harness.begin(harness.process(TTL_SECONDS).copy_thread("copy")).until(commits("1"))
    harness.now += 2.2 * TTL_SECONDS
    copy.finish()
    assert harness.process().values(thread="copy") == {"x": 1}


@pytest.mark.parametrize("is_another", [False, True], ids=["goes on", "made again"])
def test_a_copy_that_took_long_is_seen_for_a_ttl(
    harness: Harness, process: Process, *, is_another: bool
) -> None:
    """Though a root checkpoint is shown no more once it expires within a ttl."""
    harness.run(process.put("1", {"x": 1}))
    copying = harness.begin(harness.process(TTL_SECONDS).copy_thread("copy")).until(commits("1"))
    harness.now += 2 * TTL_SECONDS
    if is_another:
        copying.drop()
        harness.run(harness.process(TTL_SECONDS).copy_thread("copy"))
    else:
        copying.finish()
    harness.now += TTL_SECONDS - 1
    assert harness.process().values(thread="copy") == {"x": 1}
