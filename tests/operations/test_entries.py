"""Entries of the directory: what they say of a thread that had checkpoints before, or is a copy."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb._format import items, limits
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._operations import delete, delete_owner, entries, put, threads
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.support.checkpoints import METADATA, checkpoint_of, noise, thread_config
from tests.support.harness import Harness, asks, changes_thread, single_effects

DAY = 24 * 3600


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
    harness.run(put.put(storage, config, *arguments))


def stored(harness: Harness, thread: str) -> Item:
    """The thread item."""
    item: Item = harness.items("T", thread)["T"]
    return item


def listed(harness: Harness, owner: str | None) -> list[str]:
    """The threads of an owner, or all."""
    page = harness.run(threads.list_threads(storage_of(harness), threads.ThreadQuery(owner=owner)))
    return [each.thread_id for each in page.threads]


# The newest checkpoint


def test_the_newest_checkpoint_is_one_query(harness: Harness) -> None:
    store(harness, "one", step=3)
    run = harness.begin(threads.look_up(storage_of(harness), "one"))
    assert [(call.method, call.params["ConsistentRead"]) for call in run.trace()] == [("query", False)]
    assert run.finish() == threads.Newest("idle", 3, "1")
    assert harness.run(threads.look_up(storage_of(harness), "two")) == threads.Newest("idle", None)


# Threads from before


def checkpoint_id_at(minute: int) -> str:
    """Return an id of LangGraph's that was made in a minute of some hour: a UUID of version 6."""
    made = datetime(2024, 5, 4, 12, minute, tzinfo=timezone.utc)
    steps = (made - datetime(1582, 10, 15, tzinfo=timezone.utc)) // timedelta(microseconds=1) * 10
    text = f"{steps >> 12:012x}6{steps & 0xFFF:03x}8000000000000000"
    return str(UUID(text))


@pytest.mark.parametrize("before", [0, 1, pytest.param(60, id="several pages")])
def test_the_oldest_checkpoint_that_names_an_owner_counts(harness: Harness, before: int) -> None:
    for number, owner in enumerate((*(None,) * before, "ada", "bob", None)):
        named = {} if owner is None else {"user_id": owner}
        store(harness, "one", checkpoint_id=f"{number:03}", **named)
    assert harness.run(entries.enter_thread(storage_of(harness), "one", "user_id")) == "ada"
    assert listed(harness, "ada") == ["one"]


def test_a_thread_that_names_no_owner_is_entered_without_one(harness: Harness) -> None:
    store(harness, "one")
    assert harness.run(entries.enter_thread(storage_of(harness), "one", "user_id")) is None
    assert listed(harness, None) == ["one"]
    # Somebody names the owner by hand, and no checkpoint is searched for one again.
    harness.run(threads.set_thread(storage_of(harness), "one", "ada", None, None))
    assert harness.run(entries.enter_thread(storage_of(harness), "one", "user_id")) == "ada"


def test_a_thread_under_another_owner_key_is_entered_anew(harness: Harness) -> None:
    """Until then, neither a list nor an erasure of its owner finds it."""
    codec = Codec(EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef"))
    old, new = (
        replace(harness.process(codec=codec).storage, owner_from="user_id", owner_key=key * 16)
        for key in (b"o", b"n")
    )
    for storage, thread in ((old, "old"), (new, "new")):
        process = replace(harness.process(), storage=storage)
        harness.run(process.put("1", {}, thread=thread, user_id="ada"))
    listed = threads.list_threads(new, threads.ThreadQuery(owner="ada"))
    assert [each.thread_id for each in harness.run(listed).threads] == ["new"]
    assert harness.run(entries.enter_thread(new, "old", "user_id")) == "ada"
    assert sorted(harness.run(delete_owner.delete_owner(new, "ada")).deleted) == ["new", "old"]


@pytest.mark.parametrize("how", ["enter", "put", "describe"])
def test_a_thread_from_before_began_with_its_oldest_checkpoint(harness: Harness, how: str) -> None:
    for minute in (1, 2, 3):
        store(harness, "one", checkpoint_id=checkpoint_id_at(minute))
    began = datetime(2024, 5, 4, 12, 1, tzinfo=timezone.utc).timestamp()
    harness.now = began + DAY
    if how == "enter":
        harness.run(entries.enter_thread(storage_of(harness), "one", "user_id"))
        before = stored(harness, "one")
        # It is not entered twice.
        harness.run(entries.enter_thread(storage_of(harness), "one", "session"))
        assert stored(harness, "one") == before
    elif how == "put":
        store(harness, "one", "ada", checkpoint_id=checkpoint_id_at(4))
    else:
        harness.run(threads.set_thread(storage_of(harness), "one", None, "Trains", None))
    assert items.number(stored(harness, "one"), items.CREATED_AT) == int(began)
    active = began + 2 * 60 if how == "enter" else harness.now
    assert items.number(stored(harness, "one"), "last_active") == int(active)


def test_a_thread_that_is_pruned_before_it_is_entered_is_entered_all_the_same(harness: Harness) -> None:
    for checkpoint_id in ("1", "2", "3"):
        store(harness, "one", checkpoint_id=checkpoint_id, user_id="ada")
    run = harness.begin(entries.enter_thread(storage_of(harness), "one", "user_id"))
    for keep in (2, 1):
        run.until(asks("update_item"))
        harness.run(delete.prune(storage_of(harness), ["one"], "keep_last", keep))
        run.go_on()
    run.finish()
    assert "one" in listed(harness, "ada")


@pytest.mark.parametrize(
    "first", ["put", "put after a deletion that died", "copy", "copy of one without an entry"]
)
def test_whose_a_thread_is_is_known_from_its_first_item_on(harness: Harness, first: str) -> None:
    """The call that stores it first may die at any request. An erasure finds all that it has left."""
    storage = replace(storage_of(harness), owner_from="user_id")
    if first == "put after a deletion that died":
        harness.begin(delete.delete_thread(storage_of(harness), "one")).until(changes_thread(":ended")).drop()
    if first.startswith("copy"):
        owner = "ada" if first == "copy" else None
        store(harness, "source", owner, user_id="ada", large=noise(60_000).hex())
    config = thread_config("one")
    config["configurable"]["user_id"] = "ada"
    arguments: Any = (checkpoint_of("1", {"x": noise(60_000)}), METADATA, {"x": 1})
    run = harness.begin(
        copy_thread(storage, "source", "one")
        if first.startswith("copy")
        else put.put(storage, config, *arguments)
    )
    while not run.done:
        for call in single_effects(run.calls) if run.calls else ():
            harness.perform(call)
            left = harness.copy()
            if left.items("", "one").keys() - {"T"}:
                erased = [each for each in _erasable(left) if each != "source"]
                assert erased == ["one"]
                left.now += limits.CLAIM_SECONDS + 1
                left.run(delete.delete_thread(storage_of(left), "one"))
                assert left.items("", "one") == {}
        run.go_on()
    assert "one" in listed(harness, "ada")


def test_a_copy_of_a_thread_that_is_deleted_meanwhile_is_not_nobody_s(harness: Harness) -> None:
    """Its source is deleted before any of its rounds; what it leaves then, an erasure finds."""
    storage, rounds, is_done = replace(storage_of(harness), owner_from="user_id"), 0, False
    while not is_done:
        store(harness, "source", "ada", large=noise(60_000).hex())
        copying = harness.begin(copy_thread(storage, "source", "one"))
        for _ in range(rounds):
            copying.go_on()
        is_done = copying.done
        harness.run(delete.delete_thread(storage_of(harness), "source"))
        with suppress(CheckpointNotFoundError):
            copying.finish()
        assert _erasable(harness) == (["one"] if harness.items("", "one") else [])
        harness.run(delete.delete_thread(storage_of(harness), "one"))
        rounds += 1


def _erasable(harness: Harness) -> list[str]:
    """The threads of an owner as an erasure lists them."""
    query = threads.ThreadQuery(owner="ada")
    page = harness.run(threads.list_threads(storage_of(harness), query, for_operators=True))
    return [each.thread_id for each in page.threads]


def test_an_id_without_a_time_or_of_the_future_counts_as_now(harness: Harness) -> None:
    future = "ffffffff-ffff-6fff-8000-000000000000"
    for thread, checkpoint_id in (("one", "1"), ("two", future)):
        store(harness, thread, checkpoint_id=checkpoint_id)
        harness.run(entries.enter_thread(storage_of(harness), thread, "user_id"))
        assert items.number(stored(harness, thread), "last_active") == int(harness.now)


def test_what_cannot_be_entered_is_refused(harness: Harness) -> None:
    with pytest.raises(CheckpointNotFoundError, match="has no checkpoint, or has expired"):
        harness.run(entries.enter_thread(storage_of(harness), "none", "user_id"))
    store(harness, "acme/one", user_id="other/ada")
    with pytest.raises(CheckpointerInputError, match="give an owner of the thread's tenant"):
        harness.run(entries.enter_thread(storage_of(harness), "acme/one", "user_id"))
    assert "last_active" not in stored(harness, "acme/one")


@pytest.mark.parametrize(
    ("name", "prefix"), [("ada", ""), ("acme/ada", "acme/"), ("/ada", "/"), ("a/b/c", "a/")]
)
def test_an_owner_before_a_slash_has_a_prefix_even_if_it_is_empty(name: str, prefix: str) -> None:
    assert entries.tenant_prefix(name) == prefix
