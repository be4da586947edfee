"""Savers of different ttls on one thread, and a ttl that is switched on for threads that exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.checkpoints import noise
from tests.support.stage import Process, Stage, changes_thread, looks, updates

DAY = 86_400
BIG = noise(60_000)


def _remove_expired(stage: Stage, seconds: float) -> None:
    """Let time pass, and DynamoDB remove all that has expired by then."""
    stage.now += seconds
    stage.model.expire()


def test_a_saver_with_a_shorter_ttl_does_not_shorten_what_another_one_was_promised() -> None:
    """It forks from what it remembers with the expiry that it gave."""
    stage = Stage()
    short, long = stage.process(DAY), stage.process(30 * DAY)
    stage.run(short.put("1", {"big": BIG}))
    long.get("1")
    stage.now += DAY - 10
    stage.run(long.put("2", {"big": BIG}, "1", []))
    stage.now += 1.5 * DAY
    stage.run(short.put("3", {"big": BIG, "x": 1}, "1", ["x"]))
    _remove_expired(stage, 28 * DAY)
    assert stage.process().values("2") == {"big": BIG}


@pytest.mark.parametrize("remembers", [True, False], ids=["remembers the thread", "knows nothing"])
@pytest.mark.parametrize("parent", ["1", "2", None])
def test_an_older_checkpoint_does_not_show_once_a_newer_one_has_expired(
    parent: str | None, remembers: bool
) -> None:
    stage = Stage()
    short = stage.process(DAY)
    stage.run(stage.process(DAY).put("1", {"x": 1}))
    if remembers:
        stage.run(short.put("1", {"x": 1}))
    stage.run(stage.process(30 * DAY).put("2", {"x": 2}, "1"))
    stage.run(short.put("3", {"x": 3}, parent))
    for _ in range(70):
        _remove_expired(stage, DAY)
        assert stage.process().values() in ({"x": 3}, None)
    assert stage.process().values() is None


def test_every_saver_takes_over_the_longest_ttl_though_the_thread_item_lives_long_enough() -> None:
    stage = Stage()
    stage.run(stage.process(DAY).put("1", {"x": 1}))
    stage.run(stage.process(DAY + DAY // 2).put("2", {"x": 2}, "1"))
    assert items.number(stage.items("T")["T"], items.TTL_SECONDS) == DAY + DAY // 2


def test_writes_live_as_long_as_what_other_savers_store_in_the_thread() -> None:
    stage = Stage()
    stage.run(stage.process(30 * DAY).put("1", {"x": 1}))
    short = stage.process(DAY)
    stage.run(short.put("2", {"x": 2}, "1"))
    stage.run(short.put_writes("2", [("x", 3)]))
    [writes] = stage.items("C#2#W#").values()
    assert items.number(writes, TTL_ATTRIBUTE) == stage.now + 60 * DAY


@pytest.mark.parametrize("ttls", [(30 * DAY, DAY), (None, DAY), (DAY, 30 * DAY)])
def test_regular_writes_by_savers_of_two_ttls_live_as_long_as_the_longer(
    ttls: tuple[int | None, int | None],
) -> None:
    """The second one adds to what the first one stored."""
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 0}))
    stage.run(stage.process(ttls[0]).put_writes("1", [("x", 1)]))
    stage.run(stage.process(ttls[1]).put_writes("1", [("x", 1), ("y", 2)]))
    [writes] = stage.items("C#1#W#").values()
    expiry = items.number(writes, TTL_ATTRIBUTE)
    assert expiry == (None if None in ttls else stage.now + 60 * DAY)
    assert stage.process().pending("1") == [("task", "x", 1), ("task", "y", 2)]


def _switched_on(stage: Stage) -> Process:
    """Store a thread without a ttl, in two namespaces, and give a saver with one."""
    before = stage.process()
    stage.run(before.put("1", {"big": BIG}))
    stage.run(before.put("2", {"big": BIG}, "1", []))
    stage.run(before.put_writes("2", [("x", 1)]))
    stage.run(before.put("2", {"big": BIG}, namespace="inner"))
    return stage.process(DAY)


def test_a_thread_from_before_the_ttl_lives_on_until_it_is_pruned() -> None:
    stage = Stage()
    saver = _switched_on(stage)
    stage.run(saver.put("3", {"big": BIG, "x": 3}, "2", ["x"]))
    _remove_expired(stage, 100 * DAY)
    assert stage.process(DAY).values() == {"big": BIG, "x": 3}


@pytest.mark.parametrize("kept", [1, 2])
def test_a_prune_gives_what_it_keeps_its_ttl(kept: int) -> None:
    """Then older states go before newer ones, and in the end nothing is left."""
    stage = Stage()
    saver = _switched_on(stage)
    stage.run(saver.prune(kept))
    stage.now += DAY // 2
    stage.run(stage.process(DAY).put("3", {"big": BIG, "x": 3}, "2", ["x"]))
    _remove_expired(stage, DAY // 2 + 1)
    assert stage.process(DAY).values("2") is None
    assert stage.process(DAY).values() == {"big": BIG, "x": 3}
    _remove_expired(stage, DAY // 2)
    assert stage.process(DAY).values() is None
    _remove_expired(stage, 6 * DAY)
    assert stage.model.items() == []


def test_what_another_saver_stores_for_ever_during_such_a_prune_stays() -> None:
    """The prune began without it; what it shares with what was there outlives what was there."""
    stage = Stage()
    saver, other = _switched_on(stage), stage.process()
    other.get("2")
    put = stage.begin(other.put("3", {"big": BIG, "x": 3}, "2", ["x"]))
    put.until(looks)
    stage.run(saver.prune())
    put.finish()
    stage.run(stage.process(DAY).put("4", {"big": BIG, "x": 4}, "3", ["x"]))
    _remove_expired(stage, 100 * DAY)
    assert stage.process().values("3") == {"big": BIG, "x": 3}
    assert stage.process().values() == {"big": BIG, "x": 4}


@pytest.mark.parametrize("ttls", [(None, DAY), (DAY, None), (30 * DAY, DAY), (DAY, 30 * DAY)])
@pytest.mark.parametrize("value", [1, BIG], ids=["small", "large"])
def test_writes_of_one_task_by_savers_of_two_ttls_all_live_as_long_as_was_promised(
    ttls: tuple[int | None, int | None], value: object
) -> None:
    """One stores the regular writes, and the other one, which knows nothing of the thread, the answer."""
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 0}))
    stage.run(stage.process(ttls[0]).put_writes("1", [("x", value)]))
    stage.now += 100
    stage.run(stage.process(ttls[1]).put_writes("1", [("__resume__", value)]))
    _remove_expired(stage, (100 if None in ttls else 30) * DAY - 200)
    assert stage.process().pending("1") == [("task", "__resume__", value), ("task", "x", value)]


def test_writes_that_expire_while_others_are_added_to_them_are_replaced() -> None:
    """The second call finds them alive, and stands still before it lets them live longer."""
    stage = Stage()
    process = stage.process(DAY)
    stage.run(process.put_writes("1", [("x", noise(400_000))]))
    stage.now += 1.5 * DAY
    adding = stage.begin(stage.process(DAY).put_writes("1", [("__resume__", "yes")]))
    adding.until(_limits("S#"))
    stage.now += 2 * DAY
    stage.model.expire([key for key in stage.model.expired() if key["SK"]["S"].startswith("S#")])
    adding.finish()
    stage.run(stage.process(DAY).put("1", {"x": 0}))
    assert stage.process(DAY).pending("1") == [("task", "__resume__", "yes")]


def _limits(begins: str) -> Callable[[Call], bool]:
    """Whether a request gives an item whose sort key begins so an expiry."""
    return lambda call: (
        updates(begins)(call) and "expires_at" in call.params["ExpressionAttributeNames"].values()
    )


def test_a_namespace_that_is_entered_again_during_such_a_prune_can_still_be_deleted() -> None:
    """The prune stands still before it lets the namespace's entry expire."""
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 1}, namespace="inner"))
    prune = stage.begin(stage.process(DAY).prune())
    prune.until(_limits("N#"))
    stage.run(stage.process().put("2", {"x": 2}, "1", namespace="inner"))
    prune.finish()
    _remove_expired(stage, 10 * DAY)
    assert stage.process().values(namespace="inner") == {"x": 2}
    stage.run(stage.process().delete_thread())
    assert stage.items("") == {}


def test_a_namespace_that_is_entered_under_the_new_epoch_can_still_be_deleted() -> None:
    """The prune reads the entry that it is to leave alone; who wrote it knows that it stays for ever."""
    stage = Stage()
    other = stage.process()
    stage.run(other.put("1", {"big": BIG}, namespace="inner"))
    prune = stage.begin(stage.process(DAY).prune())
    prune.until(changes_thread(":ended"))
    prune.go_on()
    stage.run(other.put("2", {"big": BIG, "x": 2}, "1", ["x"], namespace="inner"))
    prune.finish()
    _remove_expired(stage, 10 * DAY)
    stage.run(other.put("3", {"big": BIG, "x": 3}, "2", ["x"], namespace="inner"))
    stage.run(stage.process().delete_thread())
    assert stage.items("") == {}


def test_what_is_stored_under_the_new_epoch_before_such_a_prune_has_read_it_stays() -> None:
    stage = Stage()
    other = stage.process()
    for namespace in ("", "inner"):
        stage.run(other.put("1", {"big": BIG}, namespace=namespace))
    prune = stage.begin(stage.process(DAY).prune())
    prune.until(changes_thread(":ended"))
    prune.go_on()
    for namespace in ("", "inner"):
        stage.run(other.put("2", {"big": BIG, "x": 2}, "1", ["x"], namespace=namespace))
    prune.finish()
    _remove_expired(stage, 10 * DAY)
    for namespace in ("", "inner"):
        assert stage.process().values(namespace=namespace) == {"big": BIG, "x": 2}
    stage.run(stage.process().delete_thread())
    assert stage.items("") == {}


def test_a_checkpoint_that_is_put_again_during_such_a_prune_stays() -> None:
    """As by a caller that had no answer the first time."""
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 1}))
    prune = stage.begin(stage.process(DAY).prune())
    prune.until(_limits("C#1#"))
    stage.run(stage.process().put("1", {"x": 1}))
    prune.finish()
    _remove_expired(stage, 10 * DAY)
    assert stage.process().values() == {"x": 1}


def test_writes_that_are_added_to_during_such_a_prune_stay() -> None:
    """Of the task, the prune has read what it had before."""
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 1}))
    stage.run(stage.process().put_writes("1", [("x", 2)]))
    prune = stage.begin(stage.process(DAY).prune())
    prune.until(_limits("C#1#W#"))
    stage.run(stage.process().put_writes("1", [("__resume__", "yes")]))
    stage.run(stage.process().put("1", {"x": 1}))
    prune.finish()
    _remove_expired(stage, 10 * DAY)
    assert stage.process().pending("1") == [("task", "__resume__", "yes"), ("task", "x", 2)]


@pytest.mark.parametrize("first", [None, 30 * DAY])
def test_a_saver_with_a_shorter_ttl_does_not_hide_a_namespace_from_deletions(first: int | None) -> None:
    """What it stores itself may go soon; the namespace's entry leads to what another one stored there."""
    stage = Stage()
    stage.run(stage.process(first).put("1", {"x": 1}, namespace="inner"))
    stage.run(stage.process(DAY).put_writes("1", [("__resume__", "yes")], namespace="inner"))
    _remove_expired(stage, 10 * DAY)
    assert stage.process().values(namespace="inner") == {"x": 1}
    stage.run(stage.process().delete_thread())
    assert stage.items("") == {}


def _rounds_of_a_prune() -> int:
    stage = _two_checkpoints_for_ever()
    prune = stage.begin(stage.process(DAY).prune(2))
    rounds = 0
    while not prune.done:
        rounds += 1
        prune.go_on()
    return rounds


def _two_checkpoints_for_ever() -> Stage:
    """Of a thread without a ttl, whose newest checkpoint has a task with large writes."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"big": BIG, "x": 1}))
    stage.run(process.put("2", {"big": BIG, "x": 2}, "1", ["x"]))
    stage.run(process.put_writes("2", [("x", noise(100_000))]))
    return stage


def test_a_prune_that_dies_leaves_nothing_that_is_torn_later() -> None:
    """After each of its rounds, and after each single request of the next one, it dies; the segments expire first."""
    for rounds in range(_rounds_of_a_prune()):
        position = 0
        while True:
            stage = _two_checkpoints_for_ever()
            prune = stage.begin(stage.process(DAY).prune(2))
            for _ in range(rounds):
                prune.go_on()
            if position == len(prune.calls):
                break
            stage.perform(prune.calls[position])
            for days in (0.5, 1, 1, 100):
                _remove_expired(stage, days * DAY)
                found = stage.process().get()
                if found is not None:
                    assert found.checkpoint["channel_values"] == {"big": BIG, "x": 2}
                    assert [channel for _, channel, _ in found.pending_writes or ()] == ["x"]
            position += 1


def test_writes_that_live_for_ever_again_during_such_a_prune_keep_their_segments() -> None:
    """The prune has let the task's writes expire, and not yet what they name."""
    stage = _two_checkpoints_for_ever()
    prune = stage.begin(stage.process(DAY).prune(2))
    prune.until(_limits("S#"))
    stage.run(stage.process().put_writes("2", [("__resume__", "yes")]))
    prune.finish()
    _remove_expired(stage, 10 * DAY)
    stage.run(stage.process().put("2", {"x": 2}))
    assert [channel for _, channel, _ in stage.process().pending("2")] == ["__resume__", "x"]


def test_a_prune_that_dies_does_not_vouch_for_what_it_has_let_expire() -> None:
    """A put that began before it stores its checkpoint and dies too; then another prune keeps what counts."""
    stage = Stage()
    stage.run(stage.process().put("1", {"big": BIG}))
    other = stage.process()
    other.get("1")
    prune = stage.begin(stage.process(DAY).prune())
    prune.until(_limits("S#"))
    prune.go_on()
    put = stage.begin(other.put("2", {"big": BIG, "x": 2}, "1", ["x"]))
    put.until(looks)
    stage.now += 130
    stage.run(stage.process().prune())
    for _ in range(5):
        assert stage.process().values() in ({"big": BIG}, {"big": BIG, "x": 2}, None)
        _remove_expired(stage, DAY)


def test_a_prune_gives_the_thread_item_its_ttl_too() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"big": BIG}))
    stage.run(stage.process(DAY).prune())
    thread = stage.items("T")["T"]
    assert items.number(thread, TTL_ATTRIBUTE) == int(stage.now) + 2 * DAY
    assert items.number(thread, items.TTL_SECONDS) == DAY
    assert items.IDLE not in thread


def test_a_prune_by_a_saver_with_a_ttl_that_leaves_nothing_leaves_no_thread_item() -> None:
    stage = Stage()
    stage.run(stage.process().put_writes("1", [("x", noise(100_000))]))
    stage.now += ORPHAN_SECONDS + 1
    stage.run(stage.process(DAY).prune())
    assert stage.model.items() == []


def test_a_namespaces_entry_lives_as_long_as_the_longest_that_was_asked_for_at_once() -> None:
    stage = Stage()
    short = stage.begin(stage.process(DAY).put("2", {"x": 2}, namespace="inner"))
    short.until(lambda call: call.method == "put_item" and call.params["Item"]["SK"]["S"].startswith("N#"))
    stage.run(stage.process(30 * DAY).put("1", {"x": 1}, namespace="inner"))
    short.finish()
    [entry] = stage.items("N#").values()
    assert items.number(entry, TTL_ATTRIBUTE) == int(stage.now) + 60 * DAY


def test_what_has_no_expiry_any_more_is_not_made_anew_where_it_has_gone() -> None:
    """A saver without a ttl goes on from a checkpoint of which DynamoDB has removed a segment."""
    stage = Stage()
    stage.run(stage.process(DAY).put("1", {"big": BIG, "x": 1}))
    process = stage.process()
    process.get("1")
    segments = stage.items("S#")
    stage.remove(segments[min(segments)])
    stage.run(process.put("2", {"big": BIG, "x": 2}, "1", ["x"]))
    assert stage.process().values() == {"big": BIG, "x": 2}
    assert all(items.DATA in item for item in stage.items("S#").values()), "a renewal has made an item"


def test_what_another_process_has_renewed_is_not_stored_again() -> None:
    stage = Stage()
    first, second = stage.process(DAY), stage.process(DAY)
    for number in range(3):
        parent = str(number - 1) if number else None
        stage.run(first.put(str(number), {"big": BIG, "x": number}, parent, ["x"] if number else None))
        stage.now += 0.9 * DAY
    second.get("2")
    stage.run(first.put("3", {"big": BIG, "x": 3}, "2", ["x"]))
    segments = stage.items("S#")
    assert (
        max(items.number(each, TTL_ATTRIBUTE) or 0 for each in segments.values()) == int(stage.now) + 3 * DAY
    )
    stage.run(second.put("4", {"big": BIG, "x": 4}, "2", ["x"]))
    assert stage.items("S#") == segments
