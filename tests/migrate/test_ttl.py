"""Another ttl for a thread that exists: never a checkpoint lost or mixed, wherever the process ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointNotFoundError,
    DynamoDBSaver,
    ThreadBusyError,
    protocol,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb.migrate import TableEndpoint, TtlChange, TtlProspect, stored_thread
from tests.migrate.tables import LIVE, NOTHING, PowerCutError, Tables, deaths
from tests.migrate.threads import WAITING, answer, begin, config
from tests.support.checkpoints import Conversation, noise

on_dynamodb_local = pytest.mark.engines("dynamodb-local")
DAY = 86_400
COPY = "t.set-ttl"


def change(
    tables: Tables, ttl_seconds: int | None = DAY, requests_left: int = 1_000_000, thread_id: str = "t"
) -> TtlChange:
    """Give the change of a thread's ttl in a new process."""
    return TtlChange(TableEndpoint(tables.saver(requests_left)), thread_id, ttl_seconds)


def contents(tables: Tables, thread_id: str = "t") -> dict[tuple[str, str], Any]:
    """Read every checkpoint of a thread with its parent, its metadata and its writes."""
    found = {}
    for each in tables.saver().list(config(thread_id)):
        configurable = each.config["configurable"]
        parent = each.parent_config and each.parent_config["configurable"]["checkpoint_id"]
        found[configurable["checkpoint_ns"], each.checkpoint["id"]] = (
            parent,
            each.metadata,
            repr(each.checkpoint),
            repr(each.pending_writes),
        )
    return found


def rows(tables: Tables, thread_id: str) -> list[Item]:
    """Give what the table has of a thread but its lock."""
    return [
        each
        for each in tables.models[LIVE].items()
        if items.parse_partition(each["PK"]["S"]).thread_id == thread_id and each["SK"]["S"] != items.LOCK
    ]


def expiries(tables: Tables) -> set[int | None]:
    """Give when the thread's checkpoints expire."""
    found = [each for each in rows(tables, "t") if each["SK"]["S"].startswith(items.CHECKPOINTS)]
    return {items.ends_at(each) for each in found if items.is_head(each)}


def check_ttl(tables: Tables, ttl_seconds: int | None, *swapped_at: float) -> None:
    """Make sure that the thread has a ttl, that it counts from the swap, and that nothing is left of the copy."""
    [expires_at] = expiries(tables)
    assert expires_at in [None if ttl_seconds is None else int(each) + ttl_seconds for each in swapped_at]
    tables.now += 100
    Conversation(tables.saver(ttl_seconds=7), "t").put(said="and then")
    expected = None if ttl_seconds is None else int(tables.now) + ttl_seconds
    assert expiries(tables) == {expires_at, expected}
    assert rows(tables, COPY) == []


@pytest.fixture(scope="module")
def waiting() -> Tables:
    """Give a thread of a ttl of a week in which a subgraph of a subgraph asks."""
    tables = Tables()
    build, start = WAITING["subgraphs"]
    graph = build(tables.saver(ttl_seconds=7 * DAY))
    graph.invoke(start | {"log": ["begun", noise(20_000).hex()]}, config("t"))
    tables.now += 100
    return tables


@pytest.mark.parametrize(
    ("ttl_seconds", "step"),
    [
        pytest.param(DAY, 1, marks=pytest.mark.search),
        (DAY, 17),
        pytest.param(None, 23, marks=pytest.mark.search),
    ],
)
def test_whatever_request_it_dies_before_nothing_is_lost_and_the_next_attempt_ends_well(
    waiting: Tables, ttl_seconds: int | None, step: int
) -> None:
    seen, before = waiting.seen(), contents(waiting)
    assert len({namespace for namespace, _ in before}) == 3
    outcomes = dict[int, Any]()
    for requests, tables in deaths(
        waiting, lambda tables, left: change(tables, ttl_seconds, left).run(), count(step=step)
    ):
        outcomes[requests] = tables.seen()
        # At no time is there a checkpoint that was not, or one too few.
        left = contents(tables)
        assert left.items() <= before.items()
        assert before in (left, contents(tables, COPY))
        tables.now += 300
        change(tables, ttl_seconds).run()
        assert (tables.seen(), contents(tables)) == (seen, before)
        assert change(tables, ttl_seconds).look().is_done
        check_ttl(tables, ttl_seconds, waiting.now, tables.now)
    whole = waiting.copied()
    change(whole, ttl_seconds).run()
    check_ttl(whole, ttl_seconds, whole.now)
    assert max(outcomes) > 60
    # Some died while the thread was there, and some while it was not.
    assert [each for each in (seen, NOTHING) if each not in outcomes.values()] == []
    assert [each for each in outcomes.values() if each not in (seen, NOTHING)] == []


def test_it_may_die_again_and_again_and_the_ttl_be_another_one_each_time(waiting: Tables) -> None:
    tables, before = waiting.copied(), contents(waiting)
    for ttl_seconds, requests in ((DAY, 70), (None, 25), (DAY, 60), (2 * DAY, 40), (None, 55), (DAY, 30)):
        with pytest.raises(PowerCutError):
            change(tables, ttl_seconds, requests).run()
        assert before in (contents(tables), contents(tables, COPY))
        tables.now += 300
    change(tables, 9 * DAY).run()
    assert contents(tables) == before
    check_ttl(tables, 9 * DAY, tables.now)


def requests_until(tables: Tables, is_reached: Callable[[Tables], bool]) -> int:
    """Return after how many requests of a change something has come to be."""
    for requests in count():
        tried = tables.copied()
        with pytest.raises(PowerCutError):
            change(tried, requests_left=requests).run()
        if is_reached(tried):
            return requests
    raise AssertionError


def interrupted(tables: Tables, is_reached: Callable[[Tables], bool]) -> Tables:
    """Give the thread as an attempt has left it that died as soon as something had come to be."""
    tried = tables.copied()
    with pytest.raises(PowerCutError):
        change(tried, requests_left=requests_until(tables, is_reached)).run()
    tried.now += 300
    return tried


def item(tables: Tables, thread_id: str) -> protocol.Thread | None:
    """Read a thread item."""
    return TableEndpoint(tables.saver()).thread(thread_id)


def is_copying(tables: Tables) -> bool:
    copy = item(tables, COPY)
    return copy is not None and copy.is_copy


def is_copied(tables: Tables) -> bool:
    copy = item(tables, COPY)
    return copy is not None and copy.is_whole


def is_gone(tables: Tables) -> bool:
    return not expiries(tables)


@pytest.fixture
def small() -> Tables:
    """Give a thread of two checkpoints without a ttl."""
    tables = Tables()
    talk = Conversation(tables.saver(), "t")
    talk.put(said="one")
    talk.put(said="two")
    return tables


@pytest.mark.parametrize("ttl_seconds", [0, -1, True, 1.5, 31_622_400_001])
def test_a_ttl_that_no_thread_can_have_is_refused(small: Tables, ttl_seconds: Any) -> None:
    with pytest.raises(CheckpointerInputError, match=r"^ttl_seconds is .*from 1 to 31,622,400,000, or None"):
        change(small, ttl_seconds)


def test_what_is_left_of_it_is_told_before_it_begins(small: Tables) -> None:
    """Two checkpoints are copied, deleted, copied back, and deleted again."""
    assert change(small).look() == TtlProspect(2, is_done=False, write_units=8)
    partial = interrupted(small, is_copying)
    assert change(partial).look() == TtlProspect(2, is_done=False, write_units=8)
    # The copy is copied back, and deleted.
    gone = interrupted(small, is_gone)
    assert change(gone).look() == TtlProspect(2, is_done=False, write_units=4)
    swapped = interrupted(small, lambda tables: expiries(tables) == {int(tables.now) + DAY})
    assert change(swapped).look() in (
        TtlProspect(2, is_done=False, write_units=2),
        TtlProspect(2, is_done=False, write_units=5),
    )
    change(swapped).run()
    assert change(swapped).look() == TtlProspect(2, is_done=True, write_units=0)
    before = swapped.models[LIVE].sequence
    change(swapped).run()
    # The lock is taken and let go.
    assert swapped.models[LIVE].sequence == before + 2


def test_the_estimate_is_about_what_it_takes(waiting: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    tables, spent = waiting.copied(), list[float]()
    estimate, answered = change(tables).look().write_units, tables.models[LIVE].handle

    def handle(method: str, params: Any) -> Any:
        response = answered(method, {**params, "ReturnConsumedCapacity": "TOTAL"})
        if method in ("put_item", "update_item", "delete_item", "batch_write_item"):
            consumed = response["ConsumedCapacity"]
            spent.extend(
                each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed])
            )
        return response

    monkeypatch.setattr(tables.models[LIVE], "handle", handle)
    change(tables).run()
    # Thread items, markers and the lock are not in it.
    assert estimate <= sum(spent) <= 1.2 * estimate


def test_a_runner_that_takes_the_lock_is_kept_out_and_keeps_it_out(
    small: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_thread, "LOCK_WAIT_SECONDS", 0.0)
    before = contents(small)
    with small.saver().thread_lock("t"), pytest.raises(ThreadBusyError, match="held by another runner"):
        change(small).run()
    assert (contents(small), rows(small, COPY)) == (before, [])
    copying = TableEndpoint.copy

    def copy(*arguments: Any) -> None:
        with pytest.raises(ThreadBusyError), small.saver().thread_lock("t"):
            raise AssertionError
        copying(*arguments)

    monkeypatch.setattr(TableEndpoint, "copy", copy)
    change(small).run()
    assert contents(small) == before


@pytest.mark.parametrize("moment", ["while it is copied", "while there is none", "while it is copied back"])
def test_a_runner_without_the_lock_is_told_of_and_loses_nothing(
    small: Tables, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before = contents(small)
    copying, deleting, copies = TableEndpoint.copy, DynamoDBSaver.delete_thread, list[str]()

    def go_on() -> None:
        Conversation(small.saver(), "t").put(said="from a runner")

    def copy(store: TableEndpoint, source: TableEndpoint, source_id: str, target_id: str) -> None:
        copying(store, source, source_id, target_id)
        copies.append(target_id)
        if moment == {1: "while it is copied", 2: "while it is copied back"}[len(copies)]:
            go_on()

    def delete(saver: DynamoDBSaver, thread_id: str) -> None:
        deleting(saver, thread_id)
        if moment == "while there is none":
            go_on()

    with monkeypatch.context() as patch:
        patch.setattr(TableEndpoint, "copy", copy)
        patch.setattr(DynamoDBSaver, "delete_thread", delete)
        with pytest.raises(ThreadBusyError, match="continued while its ttl was changed; stop its agent"):
            change(small).run()
    if moment == "while there is none":
        # Nobody knows which of the two is wanted.
        left = contents(small)
        for _ in range(2):
            with pytest.raises(ThreadBusyError, match=rf"earlier state is thread '{COPY}'. Delete the one"):
                change(small).run()
        assert (contents(small), contents(small, COPY)) == (left, before)
        small.saver().delete_thread("t")
        change(small).run()
        assert contents(small) == before
    else:
        change(small).run()
        assert contents(small).items() > before.items()
    assert rows(small, COPY) == []


def test_what_went_on_before_anything_was_deleted_is_copied_anew(small: Tables) -> None:
    tables = interrupted(small, is_copied)
    Conversation(tables.saver(), "t").put(said="three")
    after = contents(tables)
    assert len(after) == 3
    change(tables).run()
    assert contents(tables) == after
    check_ttl(tables, DAY, tables.now)


def test_what_went_on_after_the_swap_is_left_as_it_is(small: Tables) -> None:
    tables = small.copied()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableEndpoint, "revoke_copy", _end)
        with pytest.raises(PowerCutError):
            change(tables).run()
    tables.now += 300
    Conversation(tables.saver(), "t").put(said="three")
    after, written_at = contents(tables), expiries(tables)
    assert change(tables).look().write_units == 2
    change(tables).run()
    assert (contents(tables), expiries(tables), rows(tables, COPY)) == (after, written_at, [])


def _end(*_: object) -> None:
    raise PowerCutError


def test_a_thread_that_expires_while_it_is_copied_counts_as_gone() -> None:
    tables = Tables()
    Conversation(tables.saver(ttl_seconds=2 * DAY), "t").put(said="one")
    partial = interrupted(tables, is_copying)
    partial.now += 2 * DAY
    for _ in range(2):
        with pytest.raises(
            CheckpointNotFoundError, match=r"'t' of table live does not exist, or has expired"
        ):
            change(partial).run()
        assert rows(partial, COPY) == []


def test_a_thread_that_expires_before_its_copy_stands_for_it_counts_as_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = Tables()
    Conversation(tables.saver(ttl_seconds=2 * DAY), "t").put(said="one")
    copying = TableEndpoint.copy

    def copy(*arguments: Any) -> None:
        copying(*arguments)
        tables.now += 2 * DAY

    monkeypatch.setattr(TableEndpoint, "copy", copy)
    with pytest.raises(CheckpointNotFoundError, match="has expired"):
        change(tables).run()
    assert rows(tables, COPY) == []


def test_a_copy_waits_for_the_next_attempt_though_its_ttl_has_passed(small: Tables) -> None:
    tables, before = interrupted(small, is_gone), contents(small)
    tables.now += 30 * DAY
    tables.models[LIVE].expire()
    change(tables).run()
    assert contents(tables) == before
    check_ttl(tables, DAY, tables.now)


def test_another_conversation_is_not_touched(small: Tables) -> None:
    Conversation(small.saver(), COPY).put(said="something else")
    before = contents(small), contents(small, COPY)
    for attempt in (change(small).look, change(small).run):
        with pytest.raises(CheckpointerInputError, match=f"'{COPY}' of table live is another conversation"):
            attempt()
    assert (contents(small), contents(small, COPY)) == before
    # Which is no concern of a thread that has the ttl already.
    assert change(small, None).look().is_done
    small.saver().delete_thread(COPY)
    change(small).run()
    check_ttl(small, DAY, small.now)


def test_what_a_deletion_has_left_of_another_conversation_is_not_in_the_way(small: Tables) -> None:
    Conversation(small.saver(ttl_seconds=DAY), COPY).put(said="something else")
    small.now += 9 * DAY
    change(small, 30 * DAY).run()
    check_ttl(small, 30 * DAY, small.now)


def test_a_copy_is_not_taken_for_a_thread_of_its_own(small: Tables) -> None:
    for is_reached in (is_copying, is_gone):
        tables = interrupted(small, is_reached)
        with pytest.raises(
            CheckpointerInputError, match=r"the copy that .* of thread 't'; repeat set-ttl for 't'"
        ):
            change(tables, thread_id=COPY).look()


def test_a_copy_that_somebody_deletes_does_not_stand_for_the_thread(small: Tables) -> None:
    """The thread stays as it was, however far that deletion came."""
    copying, before = TableEndpoint.copy, contents(small)

    def copy(*arguments: Any) -> None:
        copying(*arguments)
        small.saver().prune([COPY])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableEndpoint, "copy", copy)
        patch.setattr(stored_thread.StoredThread, "holds", lambda *_: True)
        with pytest.raises(ThreadBusyError, match=f"'{COPY}' was deleted or pruned"):
            change(small).run()
    assert contents(small) == before
    change(small).run()
    check_ttl(small, DAY, small.now)


def test_a_copy_is_created_once() -> None:
    tables = Tables()
    store = TableEndpoint(tables.saver())
    store.create_copy("c")
    with pytest.raises(ThreadBusyError, match="'c' was created by another process"):
        store.create_copy("c")


def test_damage_is_told_and_nothing_is_changed(small: Tables) -> None:
    Conversation(small.saver(), "t").put(noise=noise(50_000))
    segments = [each for each in rows(small, "t") if each["SK"]["S"].startswith(items.SEGMENTS)]
    for each in segments:
        key = {name: each[name] for name in ("PK", "SK")}
        small.models[LIVE].handle("delete_item", {"TableName": LIVE, "Key": key})
    before = rows(small, "t")
    with pytest.raises(CheckpointCorruptionError):
        change(small).run()
    assert rows(small, "t") == before


@on_dynamodb_local
def test_every_kind_of_thread_goes_on_under_its_new_ttl(make_saver: Callable[..., DynamoDBSaver]) -> None:
    saver = make_saver(ttl_seconds=DAY)
    waiting = begin(saver, WAITING)
    begin(make_saver(), ["fork"])
    fork = [each.checkpoint["id"] for each in saver.list(config("fork"))]
    store = TableEndpoint(make_saver())
    for thread_id in (*waiting, "fork"):
        TtlChange(store, thread_id, 7 * DAY).run()
        thread = store.thread(thread_id)
        assert thread is not None
        assert thread.ttl_seconds == 7 * DAY
    assert {each: answer(make_saver(), each)["log"][0] for each in waiting} == dict.fromkeys(waiting, "begun")
    assert [each.checkpoint["id"] for each in make_saver().list(config("fork"))] == fork


def test_a_thread_that_was_long_idle_is_listed_under_its_new_ttl(small: Tables) -> None:
    small.saver().set_thread("t", owner="ada")
    small.now += 60 * DAY
    change(small, ttl_seconds=7 * DAY).run()
    small.now += 7 * DAY - 1
    assert [each.thread_id for each in small.saver().threads(owner="ada").threads] == ["t"]
    small.now += 1
    assert small.saver().threads(owner="ada").threads == []


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.search), 29])
def test_the_directory_has_the_thread_as_it_had_it(waiting: Tables, step: int) -> None:
    original = waiting.copied()
    original.saver().set_thread("t", owner="ada", title="Trains")
    [before] = original.saver().threads(owner="ada").threads
    original.now += 50
    for _, tables in deaths(
        original, lambda tables, left: change(tables, requests_left=left).run(), count(1, step)
    ):
        # The copy that stands for the thread is never listed.
        assert [each.thread_id for each in tables.saver().threads(owner="ada").threads] in (["t"], [])
        # A deletion that died keeps others out for two minutes.
        tables.now += 200
        change(tables).run()
        assert tables.saver().threads(owner="ada").threads == [before]
    change(original).run()
    assert original.saver().threads(owner="ada").threads == [before]
