"""One thread has one ttl: that of the saver whose put created it. Savers with another one follow it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError, protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.checkpoints import noise
from tests.support.harness import Harness, changes_thread, updates

DAY = 86_400
BIG = noise(60_000)
TTLS = [(None, DAY), (DAY, None), (30 * DAY, DAY), (DAY, 30 * DAY)]


def _kept_until(harness: Harness, ttl_seconds: int | None) -> int | None:
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
    kept_until = _kept_until(harness, ttls[0])
    harness.now += 100
    harness.run(other.put_writes("1", [("x", value)]))
    harness.run(other.put("2", {"x": value}, "1"))
    harness.run(other.put("2", {"x": value}, namespace="inner"))
    expiries = {sk: items.expires_at(item) for sk, item in harness.items("").items() if sk != "T"}
    # By it an erasure finds what DynamoDB is late to remove.
    assert expiries.pop("N#inner") == protocol.findable_until(kept_until)
    assert set(expiries.values()) == {kept_until}


@pytest.mark.parametrize("removed", [True, False], ids=["removed", "still there"])
@pytest.mark.parametrize("ttls", [(DAY, None), (DAY, 30 * DAY)])
def test_a_thread_that_has_expired_begins_anew(ttls: tuple[int, int | None], removed: bool) -> None:
    """Its first put gives it a ttl again, whether DynamoDB has removed what had expired or not."""
    harness = Harness()
    old = harness.process(ttls[0])
    harness.run(old.put("1", {"x": 1}))
    harness.now += 3.1 * DAY if removed else DAY
    harness.model.expire()
    harness.run(harness.process(ttls[1]).put("2", {"x": 2}))
    assert items.expires_at(harness.items("C#2#")["C#2#"]) == _kept_until(harness, ttls[1])
    harness.run(old.put("3", {"x": 3}, "2"))
    assert items.expires_at(harness.items("C#3#")["C#3#"]) == _kept_until(harness, ttls[1])


@pytest.mark.parametrize("ttl_seconds", [DAY, None])
def test_a_thread_made_by_a_deletion_has_the_ttl_of_a_put(harness: Harness, ttl_seconds: int | None) -> None:
    """The deletion has left something of a put that stood still while its thread was removed."""
    harness.run(harness.process(ttl_seconds).put("1", {"x": BIG}))
    harness.remove(harness.items("T")["T"])
    harness.run(harness.process().prune())
    assert harness.process().values() == {"x": BIG}
    harness.run(harness.process(ttl_seconds).put("2", {"x": 2}, "1"))
    assert items.expires_at(harness.items("C#2#")["C#2#"]) == _kept_until(harness, ttl_seconds)


@pytest.mark.parametrize("stands_still_before", [":ended", "REMOVE #previous"])
def test_a_deletion_that_stood_still_until_its_thread_began_anew_ends_nothing(
    harness: Harness, stands_still_before: str
) -> None:
    """The thread item has expired and is created anew; its claim has stayed."""
    harness.run(harness.process(1000).put("1", {"x": BIG}))
    deletion = harness.begin(harness.process().delete_thread())
    deletion.until(changes_thread(stands_still_before))
    harness.now += 10_000
    harness.run(harness.process(1000).put("2", {"x": BIG}))
    with pytest.raises(ThreadBusyError, match="another deletion took over"):
        deletion.finish()
    assert harness.process().values() == {"x": BIG}
    harness.run(harness.process().delete_thread())
    assert harness.items("C#") == {}


def test_a_deletion_gives_a_thread_no_ttl(harness: Harness) -> None:
    """It creates the thread item where there is none; the put that comes meanwhile gives the thread its ttl."""
    deletion = harness.begin(harness.process(30 * DAY).delete_thread())
    deletion.until(changes_thread(":ended"))
    harness.run(harness.process(DAY).put("1", {"x": 1}))
    deletion.finish()
    assert items.expires_at(harness.items("C#1#")["C#1#"]) == _kept_until(harness, DAY)
    assert items.number(harness.items("T")["T"], items.TTL_SECONDS) == DAY


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
    late.until(lambda call: call.method == "put_item" and call.params["Item"]["SK"]["S"].startswith("N#"))
    harness.now += 0.97 * DAY
    harness.run(harness.process(DAY).put("1", {"x": 1}, namespace="inner"))
    marked_until = protocol.findable_until(_kept_until(harness, DAY))
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
    deletion = harness.begin(harness.process().prune())
    deletion.until(changes_thread(":ended"))
    deletion.perform()
    deletion.drop()
    harness.now += DAY
    awake = harness.process(DAY)
    harness.run(awake.put("3", {"x": BIG}, "2", ()) if call == "put" else awake.put_writes("2", [("x", 3)]))
    assert harness.process().values("2") == {"x": BIG}
    assert harness.process().values() == {"x": BIG}
