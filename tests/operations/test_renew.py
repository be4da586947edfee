"""A use of a thread keeps its whole state, once in about a ttl, whatever comes between its requests."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError, protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import FINDABLE_SECONDS
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Wait
from tests.support.checkpoints import noise
from tests.support.harness import (
    ENCRYPTED,
    TTL_SECONDS,
    Harness,
    Process,
    Run,
    asks,
    changes_thread,
    commits,
    updates,
)

BIG = noise(60_000)
TASK = [("channel", "value")]


def _pass(harness: Harness, seconds: float) -> None:
    """Let time pass, and DynamoDB remove what has expired."""
    harness.now += seconds
    harness.model.expire()


def _ends(harness: Harness, checkpoint_id: str, namespace: str = "") -> int | None:
    key = items.key(items.partition_of("t", namespace).pk, items.checkpoint_prefix(checkpoint_id))
    [head] = [each for each in harness.model.items() if items.key_of(each) == key]
    return items.expires_at(head)


def _kept_until(harness: Harness) -> int | None:
    """Until when everything that is stored in the thread now is kept."""
    return items.number(harness.items("T")["T"], items.KEPT_UNTIL)


@pytest.mark.parametrize("codec", [None, ENCRYPTED], ids=["plain", "encrypted"])
@pytest.mark.parametrize("knows", ["all", "what it has read", "nothing"])
@pytest.mark.parametrize("value", [1, BIG], ids=["small", "large"])
@pytest.mark.parametrize("written", ["value", BIG], ids=["small writes", "large writes"])
def test_writes_renew_their_checkpoint_with_all_other_writes(
    harness: Harness, value: object, written: object, knows: str, codec: Any
) -> None:
    process = harness.process(TTL_SECONDS, codec)
    harness.run(process.put("1", {"x": value}))
    for step in range(10):
        _pass(harness, TTL_SECONDS * 0.7)
        if knows != "all":
            process = harness.process(TTL_SECONDS, codec)
        if knows == "what it has read":
            process.get()
        harness.run(process.put_writes("1", [("channel", written)], f"task-{step}"))
    _pass(harness, TTL_SECONDS * 0.9)
    found = harness.process(codec=codec).found()
    assert found.checkpoint["channel_values"] == {"x": value}
    assert found.pending_writes == [(f"task-{step}", "channel", written) for step in range(10)]
    _pass(harness, TTL_SECONDS * 0.1)
    assert harness.process().get() is None
    _pass(harness, 3.1 * TTL_SECONDS)
    # Whose it was is known for as long as DynamoDB may be late with something of it.
    assert harness.items("").keys() == {"T"}
    _pass(harness, FINDABLE_SECONDS)
    assert harness.model.items() == []


def test_late_writes_to_a_checkpoint_that_is_gone_do_not_pass_for_a_renewal(harness: Harness) -> None:
    late = harness.process(TTL_SECONDS)
    harness.run(late.put("1", {"x": 1}))
    (first,) = harness.items("C#1#").values()
    _pass(harness, TTL_SECONDS * 0.5)
    harness.run(harness.process(TTL_SECONDS).put("2", {"x": 2}, "1"))
    harness.remove(first)
    _pass(harness, TTL_SECONDS * 0.8)
    harness.run(late.put_writes("1", TASK))
    # The newest one is still to be renewed.
    harness.run(late.put("3", {"x": 3}, namespace="a:1"))
    _pass(harness, TTL_SECONDS * 0.9)
    assert harness.process().values() == {"x": 2}


def test_a_call_from_an_older_checkpoint_keeps_what_a_run_from_it_needs(
    harness: Harness, expiring: Process
) -> None:
    """And the state: the newest checkpoint, and in a subgraph the newest before each of these."""
    for number in range(1, 7):
        harness.run(expiring.put(f"{number}0", {"x": BIG}, f"{number - 1}0" if number > 1 else None))
        harness.run(expiring.put(f"{number}5", {"x": number}, namespace="inner"))
    stored_until = _kept_until(harness)
    harness.now += TTL_SECONDS * 0.97
    harness.run(harness.process(TTL_SECONDS).put_writes("30", TASK))
    kept = {each for number in range(1, 7) if _ends(harness, each := f"{number}0") != stored_until}
    inner = {each for number in range(1, 7) if _ends(harness, each := f"{number}5", "inner") != stored_until}
    assert kept == {"30", "60"}
    assert inner == {"25", "55", "65"}
    assert {_ends(harness, each) for each in kept} == {_kept_until(harness)}
    assert {_ends(harness, each, "inner") for each in inner} == {_kept_until(harness)}


def extends_head(call: Call) -> bool:
    """Tell whether a request extends the head of the first checkpoint."""
    return call.method == "update_item" and call.params["Key"]["SK"] == {"S": "C#1#"}


def begins_renewal(call: Call) -> bool:
    """Tell whether a request announces a renewal."""
    return changes_thread("#before")(call) and "attribute_not_exists(#before)" in str(call.params)


def _renewing(harness: Harness, process: Process) -> Run[None]:
    return harness.begin(process.put_writes("1", TASK))


@pytest.mark.parametrize(
    "stands_still_before",
    [
        begins_renewal,
        asks("query", word="BETWEEN"),
        extends_head,
        changes_thread("REMOVE #before"),
    ],
    ids=["announce", "read", "renew", "end"],
)
def test_a_put_beside_a_renewal_lives_as_long(harness: Harness, stands_still_before: Any) -> None:
    """Whether the renewal has seen its head, or the put has seen the renewal's note."""
    process, other = harness.process(TTL_SECONDS), harness.process(TTL_SECONDS)
    harness.run(process.put("1", {"x": BIG}))
    other.get("1")
    put = harness.begin(other.put("2", {"x": 2}, "1")).until(commits("2"))
    harness.now += TTL_SECONDS * 0.97
    renewal = _renewing(harness, process).until(stands_still_before)
    put.go_on()
    renewal.finish()
    put.finish()
    assert _ends(harness, "2") == _ends(harness, "1") == protocol.kept_from(TTL_SECONDS, harness.now)


def test_writes_that_change_during_a_renewal_are_read_again(harness: Harness, expiring: Process) -> None:
    harness.run(expiring.put("1", {"x": 1}))
    harness.run(expiring.put_writes("1", TASK, "other"))
    harness.now += TTL_SECONDS * 0.97
    renewal = _renewing(harness, expiring).until(asks("update_item", "C#1#W#other"))
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [("__error__", "late")], "other"))
    renewal.finish()
    [other] = harness.items("C#1#W#other").values()
    assert items.expires_at(other) == _ends(harness, "1") == protocol.kept_from(TTL_SECONDS, harness.now)
    assert ("other", "__error__", "late") in harness.process().pending("1")


def test_a_put_that_never_ended_does_not_hide_what_is_renewed(harness: Harness) -> None:
    """Its head carries an epoch that has ended, and is the newest."""
    process, other = harness.process(TTL_SECONDS), harness.process(TTL_SECONDS)
    harness.run(process.put("0", {"x": noise(40_000, 1)}))
    harness.run(process.put("1", {"x": BIG}, "0"))
    other.get("1")
    dead = harness.begin(other.put("2", {"x": BIG + b"changed"}, "1")).until(commits("2"))
    harness.run(harness.process().prune())
    dead.go_on()
    dead.drop()
    for _ in range(4):
        _pass(harness, TTL_SECONDS * 0.7)
        harness.run(process.put("9", {"x": 9}, namespace="inner"))
    assert harness.process().values("1") == {"x": BIG}
    assert harness.process().get() is not None


@pytest.mark.parametrize("then", ["pruned", "deleted", "begun anew"])
def test_a_deletion_beside_a_renewal_holds(harness: Harness, expiring: Process, then: str) -> None:
    harness.run(expiring.put("1", {"x": BIG}))
    harness.now += TTL_SECONDS * 0.97
    renewal = _renewing(harness, expiring).until(extends_head)
    harness.run(harness.process().prune() if then == "pruned" else harness.process().delete_thread())
    if then == "begun anew":
        harness.run(harness.process(10).put("1", {"x": BIG}))
    renewal.finish()
    assert harness.process().values() == (None if then == "deleted" else {"x": BIG})
    if then != "deleted":
        ttl_seconds = TTL_SECONDS if then == "pruned" else 10
        assert _ends(harness, "1") == _kept_until(harness) == protocol.kept_from(ttl_seconds, harness.now)


def _requests(harness: Harness, process: Process, calls: Sequence[str]) -> int:
    return sum(len(harness.begin(process.put_writes("1", TASK, task)).trace()) for task in calls)


def test_a_run_without_pauses_makes_no_further_request(harness: Harness) -> None:
    without, process = harness.process(None), harness.process(TTL_SECONDS)
    harness.run(process.put("1", {"x": BIG}))
    assert _requests(harness, process, "ab") == 2
    harness.now += TTL_SECONDS * 0.09
    assert _requests(harness, process, "cd") == 2
    harness.run(without.put("9", {"x": BIG}, namespace="n"))
    harness.now += TTL_SECONDS * 0.2
    assert _requests(harness, process, "e") > 1
    assert _requests(harness, process, "fg") == 2


def _delta_channel(harness: Harness, process: Process, count: int) -> None:
    """Put checkpoints of a channel that has only writes."""
    parent: str | None = None
    for number in range(1, 1 + count):
        counters: Any = {"counters_since_delta_snapshot": {"log": (number, number)}}
        harness.run(process.put(f"{number}", {}, parent, versions={"log": number}, **counters))
        harness.run(process.put_writes(f"{number}", [("log", BIG + f"{number}".encode())]))
        parent = f"{number}"
        harness.now += TTL_SECONDS * 0.2


@pytest.mark.parametrize("other", ["1", "2", "3"])
@pytest.mark.parametrize("renews", ["put", "writes"])
def test_what_was_renewed_is_used_in_the_same_second(
    harness: Harness, expiring: Process, renews: str, other: str
) -> None:
    """Another process goes on from an ancestor that was kept for a delta channel. It is shown again then."""
    _delta_channel(harness, expiring, 3)
    harness.now += TTL_SECONDS * 0.35
    process = harness.process(TTL_SECONDS)
    harness.run(process.put("4", {"x": 4}, "3") if renews == "put" else process.put_writes("3", TASK))
    harness.run(harness.process(TTL_SECONDS).put_writes(other, TASK, "late"))
    _pass(harness, TTL_SECONDS * 0.97)
    assert ("late", "channel", "value") in harness.process().pending(other)


def test_tasks_that_end_at_once_renew_once(harness: Harness, expiring: Process) -> None:
    """The others wait for the renewal of the first one, and find nothing left to do."""
    harness.run(expiring.put("1", {"x": BIG}))
    harness.now += TTL_SECONDS * 0.97
    runs = [harness.begin(expiring.put_writes("1", TASK, f"task-{number}")) for number in range(20)]
    runs[0].until(asks("get_item"))
    for run in runs[1:]:
        while not any(isinstance(step, Wait) for step in run.round):
            run.go_on()
    assert sum(len(run.trace()) for run in runs) < 2 * len(runs)
    assert _ends(harness, "1") == protocol.kept_from(TTL_SECONDS, harness.now)


def test_writes_do_not_rely_on_a_renewal_that_never_ends(harness: Harness, expiring: Process) -> None:
    harness.run(expiring.put("1", {"x": BIG}))
    harness.now += TTL_SECONDS * 0.97
    stuck = harness.begin(expiring.put_writes("1", TASK, "stuck")).until(extends_head)
    harness.run(expiring.put_writes("1", TASK, "next"))
    assert _ends(harness, "1") == _kept_until(harness)
    assert items.KEPT_BEFORE not in harness.items("T")["T"]
    stuck.drop()


def test_a_slow_call_shortens_nothing_stored_since(harness: Harness, expiring: Process) -> None:
    """It was composed before a renewal, meets an answer to its task that came after it, and adds to that."""
    harness.run(expiring.put("1", {"x": 1}))
    slow = harness.begin(expiring.put_writes("1", TASK)).until(asks("update_item"))
    harness.now += 0.97 * TTL_SECONDS
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [("__resume__", "yes")]))
    slow.finish()
    [task] = harness.items("C#1#W#").values()
    assert items.expires_at(task) == _kept_until(harness) == protocol.kept_from(TTL_SECONDS, harness.now)
    assert sorted(harness.process().pending("1")) == [
        ("task", "__resume__", "yes"),
        ("task", "channel", "value"),
    ]


def test_writes_wait_for_the_put_of_their_checkpoint_where_the_thread_is_dead(
    harness: Harness, expiring: Process
) -> None:
    """LangGraph puts it in the background. It goes on with the thread, which its writes would begin anew."""
    harness.run(expiring.put("1", {"x": 1}))
    harness.now += 1.5 * TTL_SECONDS
    put = harness.begin(expiring.put("2", {"x": 2}, "1"))
    writes = harness.begin(expiring.put_writes("2", TASK))
    while not any(isinstance(step, Wait) for step in writes.round):
        assert not writes.done
        writes.go_on()
    put.finish()
    writes.finish()
    assert harness.process().pending("2") == [("task", "channel", "value")]
    assert harness.process().values("1") == {"x": 1}


def test_a_deletion_leaves_the_marker_of_a_namespace_that_was_renewed_beside_it(
    harness: Harness, expiring: Process
) -> None:
    """The namespace is empty, and what is stored in it next relies on the marker."""
    harness.run(expiring.put("1", {"x": 1}))
    harness.run(expiring.put("first", {"x": 1}, namespace="inner"))
    harness.remove(harness.items("C#")["C#first#"])
    deletion = harness.begin(harness.process().prune()).until(changes_thread(":ended"))
    deletion.go_on()
    harness.now += 0.97 * TTL_SECONDS
    harness.run(expiring.put("2", {"x": 2}, "1"))
    deletion.finish()
    harness.run(expiring.put("2", {"x": 2}, namespace="inner"))
    assert harness.items("N#").keys() == {"N#inner"}


# One thread has one ttl: that of the saver whose put created it. Savers with another one follow it


DAY = 86_400
TTLS = [(None, DAY), (DAY, None), (30 * DAY, DAY), (DAY, 30 * DAY)]


def _kept_from(harness: Harness, ttl_seconds: int | None) -> int | None:
    """Until when everything is kept that is stored in a thread that begins now."""
    return None if ttl_seconds is None else protocol.kept_from(ttl_seconds, harness.now)


@pytest.mark.parametrize("ttls", TTLS)
@pytest.mark.parametrize("knows", ["nothing", "the checkpoint", "the thread"])
@pytest.mark.parametrize("value", [1, BIG], ids=["small", "large"])
def test_all_that_is_stored_in_a_thread_has_the_ttl_of_its_first_put(
    harness: Harness, ttls: tuple[int | None, int | None], knows: str, value: object
) -> None:
    first, other = harness.process(ttls[0]), harness.process(ttls[1])
    harness.run(first.put("1", {"x": 1}))
    if knows == "the checkpoint":
        other.get("1")
    elif knows == "the thread":
        harness.run(other.put("1", {"x": 1}))
    kept_until = _kept_from(harness, ttls[0])
    harness.now += 100
    harness.run(other.put_writes("1", [("x", value)]))
    harness.run(other.put("2", {"x": value}, "1"))
    harness.run(other.put("2", {"x": value}, namespace="inner"))
    expiries = {sk: items.expires_at(item) for sk, item in harness.items("").items() if sk != "T"}
    # By it an erasure finds what DynamoDB is late to remove.
    assert expiries.pop("N#inner") == protocol.findable_until(kept_until)
    assert set(expiries.values()) == {kept_until}


@pytest.mark.parametrize("stands_still_before", [":ended", "REMOVE #previous"])
def test_a_deletion_that_stood_still_until_its_thread_began_anew_ends_nothing(
    harness: Harness, stands_still_before: str
) -> None:
    """The thread item has expired and is created anew; its claim has stayed."""
    harness.run(harness.process(1000).put("1", {"x": BIG}))
    deletion = harness.begin(harness.process().delete_thread()).until(changes_thread(stands_still_before))
    harness.now += 10_000
    harness.run(harness.process(1000).put("2", {"x": BIG}))
    with pytest.raises(ThreadBusyError, match="another deletion took over"):
        deletion.finish()
    assert harness.process().values() == {"x": BIG}
    harness.run(harness.process().delete_thread())
    assert harness.items("C#") == {}


def test_writes_that_expire_while_others_are_added_to_them_are_replaced(harness: Harness) -> None:
    """The second call finds them alive, and stands still before it lets them live longer."""
    process = harness.process(DAY)
    harness.run(process.put_writes("1", [("x", noise(400_000))]))
    harness.now += 1.5 * DAY
    adding = harness.begin(harness.process(DAY).put_writes("1", [("__resume__", "yes")]))
    adding.until(_extends("S#"))
    harness.now += 3.1 * DAY
    harness.model.expire([key for key in harness.model.expired() if key["SK"]["S"].startswith("S#")])
    adding.finish()
    harness.run(harness.process(DAY).put("1", {"x": 0}))
    assert harness.process(DAY).pending("1") == [("task", "__resume__", "yes")]


def _extends(begins: str) -> Callable[[Call], bool]:
    """Whether a request gives an item whose sort key begins so an expiry."""
    return lambda call: (
        updates(begins)(call) and "expires_at" in call.params["ExpressionAttributeNames"].values()
    )


def test_a_marker_lives_as_long_as_the_longest_that_was_asked_for(harness: Harness) -> None:
    """A put was composed before a renewal, and stands still before it registers its namespace."""
    harness.run(harness.process(DAY).put("0", {"x": 0}))
    late = harness.begin(harness.process(DAY).put("2", {"x": 2}, namespace="inner"))
    late.until(asks("put_item", "N#"))
    harness.now += 0.97 * DAY
    harness.run(harness.process(DAY).put("1", {"x": 1}, namespace="inner"))
    marked_until = protocol.findable_until(_kept_from(harness, DAY))
    late.go_on()
    assert items.expires_at(harness.items("N#")["N#inner"]) == marked_until
    late.finish()
    assert items.expires_at(harness.items("N#")["N#inner"]) == marked_until


@pytest.mark.parametrize("call", ["put", "put_writes"])
def test_a_node_that_slept_beside_a_deletion_that_died_goes_on_with_its_thread(
    harness: Harness, call: str
) -> None:
    """The deletion has ended the epoch, and nobody has begun the next one."""
    process = harness.process(DAY)
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"x": BIG}, "1"))
    deletion = harness.begin(harness.process().prune()).until(changes_thread(":ended"))
    deletion.perform()
    deletion.drop()
    harness.now += DAY
    awake = harness.process(DAY)
    harness.run(awake.put("3", {"x": BIG}, "2", ()) if call == "put" else awake.put_writes("2", [("x", 3)]))
    assert harness.process().values("2") == {"x": BIG}
    assert harness.process().values() == {"x": BIG}
