"""The directory in the table: which requests a list makes, and when an entry is stored or carried along."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._operations.delete import delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.directory_table import (
    Newest,
    ThreadPosition,
    carry_entry,
    describe,
    enter_thread,
    look_up,
    read_entries,
)
from langgraph.checkpoint.dynamodb._operations.entries import (
    ThreadDescription,
    entry_of,
    read_about,
    tenant_prefix,
)
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.harness import Harness

DAY = 24 * 3600
HOUR = 3600


@pytest.fixture
def harness() -> Harness:
    """Give an empty table."""
    return Harness()


def storage_of(harness: Harness) -> Storage:
    """A process that remembers nothing."""
    return harness.process().storage


def store(
    harness: Harness, thread: str, owner: str | None = None, checkpoint_id: str = "1", **more: Any
) -> None:
    """Store a checkpoint of a thread, and enter the thread if there is an owner."""
    storage = replace(storage_of(harness), owner_from=None if owner is None else "user_id")
    config = thread_config(thread)
    config["configurable"]["user_id"] = owner
    arguments: Any = (checkpoint_of(checkpoint_id, {"x": 1}), {**METADATA, **more}, {"x": 1})
    harness.run(put(storage, config, *arguments))


def entry(harness: Harness, thread: str, **about: Any) -> Item:
    """The entry of a thread."""
    return entry_of(storage_of(harness), items.partition_of(thread), ThreadDescription(**about))


def stored(harness: Harness, thread: str) -> Item:
    """The thread item."""
    item: Item = harness.items("T", thread)["T"]
    return item


def read(
    harness: Harness,
    owner: str | None,
    before: ThreadPosition | None = None,
    *,
    since: float = 0,
    count: int = 10,
) -> tuple[list[str], bool, list[Call]]:
    """Read entries; return their threads, whether these are the last ones, and the requests."""
    run = harness.begin(read_entries(storage_of(harness), owner, int(since), before, count))
    calls = run.trace()
    entries, is_last = run.finish()
    return [ThreadPosition.of(each).thread_id for each in entries], is_last, calls


def days(calls: list[Call]) -> list[str]:
    """The days that requests name."""
    return [each.params["ExpressionAttributeValues"][":hash"]["S"] for each in calls]


# Reading


def test_an_owners_threads_are_one_query_of_as_many_as_wanted(harness: Harness) -> None:
    for number in range(5):
        store(harness, f"thread {number}", "ada")
        harness.now += 1
    found, is_last, calls = read(harness, "ada", count=3)
    assert (found, is_last) == (["thread 4", "thread 3", "thread 2"], False)
    assert [call.params["Limit"] for call in calls] == [3]
    last = ThreadPosition(int(harness.now) - 3, "thread 2")
    assert read(harness, "ada", last)[:2] == (["thread 1", "thread 0"], True)
    assert read(harness, "bob")[:2] == ([], True)


def test_a_list_ends_at_the_activity_asked_for(harness: Harness) -> None:
    for number in range(3):
        store(harness, f"thread {number}", "ada")
        harness.now += HOUR
    since = harness.now - 2 * HOUR
    assert read(harness, "ada", since=since)[:2] == (["thread 2", "thread 1"], True)
    # DynamoDB would refuse to begin behind the end.
    behind = ThreadPosition(int(since) - 1, "thread 0")
    assert read(harness, "ada", behind, since=since) == ([], True, [])


def test_all_threads_are_one_query_for_each_day(harness: Harness) -> None:
    store(harness, "old", "ada")
    harness.now += 2 * DAY
    store(harness, "new", "bob")
    today = datetime.fromtimestamp(harness.now, timezone.utc).date()
    found, is_last, calls = read(harness, None, since=harness.now - 3 * DAY)
    assert (found, is_last) == (["new", "old"], True)
    assert [(today - datetime.fromisoformat(each).date()).days for each in days(calls)] == [0, 1, 2, 3]
    assert {each.params["IndexName"] for each in calls} == {"day-index"}


def test_all_threads_end_with_the_page_that_has_enough_and_there_may_be_more(harness: Harness) -> None:
    store(harness, "old", "ada")
    harness.now += 2 * DAY
    store(harness, "new", "bob")
    found, is_last, calls = read(harness, None, since=harness.now - 3 * DAY, count=1)
    assert (found, is_last, len(calls)) == (["new"], False, 1)
    place = ThreadPosition(int(harness.now), "new")
    found, is_last, calls = read(harness, None, place, since=harness.now - 3 * DAY)
    assert (found, is_last, len(calls)) == (["old"], True, 4)


def test_a_position_of_the_far_future_costs_no_queries_of_days_to_come(harness: Harness) -> None:
    store(harness, "one", "ada")
    found, _, calls = read(harness, None, ThreadPosition(253_402_300_799, "x"), since=harness.now - DAY)
    assert (found, len(calls)) == (["one"], 3)


# Describing


def test_what_a_new_description_lacks_is_removed(harness: Harness) -> None:
    store(harness, "one", "ada")
    root = items.partition_of("one")
    assert harness.run(describe(storage_of(harness), root, {}, stored(harness, "one"))) is None
    assert read(harness, "ada")[0] == []
    assert read_about(storage_of(harness).codec, stored(harness, "one")) == ThreadDescription()
    owned = entry(harness, "one", owner="ada")
    assert harness.run(describe(storage_of(harness), root, owned, stored(harness, "one"))) is None
    assert read(harness, "ada")[0] == ["one"]


# The newest checkpoint


def test_the_newest_checkpoint_is_one_query(harness: Harness) -> None:
    store(harness, "one", step=3)
    run = harness.begin(look_up(storage_of(harness), "one"))
    assert [(call.method, call.params["ConsistentRead"]) for call in run.trace()] == [("query", False)]
    assert run.finish() == Newest("idle", 3)
    assert harness.run(look_up(storage_of(harness), "two")) == Newest("idle", None)


# Copies, and threads from before


def carry(harness: Harness, source: str, target: str) -> Item:
    """Carry an entry to a thread that has none; return the thread item."""
    storage, to = storage_of(harness), items.partition_of(target)
    epoch = harness.run(ensure_epoch(storage, to)).epoch
    harness.run(carry_entry(storage, storage, items.partition_of(source), to, epoch, None))
    return stored(harness, target)


def test_a_thread_from_before_is_entered_as_its_newest_checkpoint_says(harness: Harness) -> None:
    began = datetime.fromtimestamp(harness.now, timezone.utc)
    # A UUID of version 6, whose time is that of the thread.
    store(harness, "one", checkpoint_id="1ef0a000-0000-6000-8000-000000000000", user_id="ada")
    harness.now += 2 * 365 * DAY
    harness.run(enter_thread(storage_of(harness), "one", "user_id"))
    assert read(harness, "ada")[0] == ["one"]
    active = items.number(stored(harness, "one"), "last_active")
    assert active is not None
    assert began.timestamp() < active < harness.now
    # It is not entered twice.
    before = stored(harness, "one")
    harness.run(enter_thread(storage_of(harness), "one", "session"))
    assert stored(harness, "one") == before


def test_a_thread_from_before_is_listed_until_its_newest_checkpoint_expires(harness: Harness) -> None:
    storage = replace(storage_of(harness), ttl_seconds=40 * DAY)
    arguments: Any = (checkpoint_of("1ef0a000-0000-6000-8000-000000000000", {"x": 1}), METADATA, {"x": 1})
    harness.now += 365 * DAY
    harness.run(put(storage, thread_config("one"), *arguments))
    harness.run(enter_thread(storage_of(harness), "one", "user_id"))
    until = items.number(stored(harness, "one"), items.LISTED_UNTIL)
    assert until == int(harness.now) + 40 * DAY


def checkpoint_id_at(minute: int) -> str:
    """Return an id of LangGraph's that was made in a minute of some hour: a UUID of version 6."""
    made = datetime(2024, 5, 4, 12, minute, tzinfo=timezone.utc)
    steps = (made - datetime(1582, 10, 15, tzinfo=timezone.utc)) // timedelta(microseconds=1) * 10
    text = f"{steps >> 12:012x}6{steps & 0xFFF:03x}8000000000000000"
    return str(UUID(text))


@pytest.mark.parametrize("later", [1, pytest.param(60, id="several pages")])
def test_the_newest_checkpoint_that_names_an_owner_counts(harness: Harness, later: int) -> None:
    for number, owner in enumerate(("bob", "ada", *(None,) * later)):
        named = {} if owner is None else {"user_id": owner}
        store(harness, "one", checkpoint_id=f"{number:03}", **named)
    assert harness.run(enter_thread(storage_of(harness), "one", "user_id")) == "ada"
    assert read(harness, "ada")[0] == ["one"]


def test_a_thread_that_names_no_owner_is_entered_without_one(harness: Harness) -> None:
    store(harness, "one")
    assert harness.run(enter_thread(storage_of(harness), "one", "user_id")) is None
    assert read(harness, None, since=harness.now - DAY)[0] == ["one"]
    # Somebody names the owner by hand, and no checkpoint is searched for one again.
    root = items.partition_of("one")
    owned = entry(harness, "one", owner="ada")
    assert harness.run(describe(storage_of(harness), root, owned, stored(harness, "one"))) is None
    assert harness.run(enter_thread(storage_of(harness), "one", "user_id")) == "ada"


@pytest.mark.parametrize("how", ["enter", "put", "describe"])
def test_a_thread_from_before_began_with_its_oldest_checkpoint(harness: Harness, how: str) -> None:
    for minute in (1, 2, 3):
        store(harness, "one", checkpoint_id=checkpoint_id_at(minute))
    began = datetime(2024, 5, 4, 12, 1, tzinfo=timezone.utc).timestamp()
    harness.now = began + DAY
    if how == "enter":
        harness.run(enter_thread(storage_of(harness), "one", "user_id"))
    elif how == "put":
        store(harness, "one", "ada", checkpoint_id=checkpoint_id_at(4))
    else:
        new = entry(harness, "one", title="Trains")
        harness.run(describe(storage_of(harness), items.partition_of("one"), new, None))
    assert items.number(stored(harness, "one"), items.CREATED_AT) == int(began)
    active = began + 2 * 60 if how == "enter" else harness.now
    assert items.number(stored(harness, "one"), "last_active") == int(active)


@pytest.mark.parametrize("how", ["enter", "carry"])
def test_a_thread_that_is_pruned_before_it_is_entered_is_entered_all_the_same(
    harness: Harness, how: str
) -> None:
    storage, root = storage_of(harness), items.partition_of("one")
    store(harness, "listed", "ada")
    for checkpoint_id in ("1", "2", "3"):
        store(harness, "one", checkpoint_id=checkpoint_id, user_id="ada")
    epoch = items.binary(stored(harness, "one"), items.EPOCH)
    entering = {
        "enter": enter_thread(storage, "one", "user_id"),
        "carry": carry_entry(storage, storage, items.partition_of("listed"), root, epoch, None),
    }
    run = harness.begin(entering[how])
    for keep in (2, 1):
        run.until(lambda call: call.method == "update_item")
        harness.run(prune(storage_of(harness), ["one"], "keep_last", keep))
        run.go_on()
    run.finish()
    assert "one" in read(harness, "ada")[0]


def test_a_thread_that_is_deleted_before_it_is_entered_is_not_entered(harness: Harness) -> None:
    store(harness, "one", user_id="ada")
    run = harness.begin(enter_thread(storage_of(harness), "one", "user_id"))
    run.until(lambda call: call.method == "update_item")
    harness.run(delete_thread(storage_of(harness), "one"))
    run.finish()
    assert read(harness, "ada")[0] == []


def test_an_id_without_a_time_or_of_the_future_counts_as_now(harness: Harness) -> None:
    future = "ffffffff-ffff-6fff-8000-000000000000"
    for thread, checkpoint_id in (("one", "1"), ("two", future)):
        store(harness, thread, checkpoint_id=checkpoint_id)
        harness.run(enter_thread(storage_of(harness), thread, "user_id"))
        assert items.number(stored(harness, thread), "last_active") == int(harness.now)


def test_what_cannot_be_entered_is_refused(harness: Harness) -> None:
    with pytest.raises(CheckpointNotFoundError, match="has no checkpoint, or has expired"):
        harness.run(enter_thread(storage_of(harness), "none", "user_id"))
    store(harness, "acme/one", user_id="other/ada")
    with pytest.raises(CheckpointerInputError, match="give an owner of the thread's tenant"):
        harness.run(enter_thread(storage_of(harness), "acme/one", "user_id"))
    assert "last_active" not in stored(harness, "acme/one")


@pytest.mark.parametrize(
    ("name", "prefix"), [("ada", ""), ("acme/ada", "acme/"), ("/ada", "/"), ("a/b/c", "a/")]
)
def test_an_owner_before_a_slash_has_a_prefix_even_if_it_is_empty(name: str, prefix: str) -> None:
    assert tenant_prefix(name) == prefix
