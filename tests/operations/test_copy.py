"""`copy_thread`: what cannot be whole is never copied as if it were, nor shown; and a copy shares nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerInputError,
    CheckpointNotFoundError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations import copy as copying
from langgraph.checkpoint.dynamodb._operations.copy import Progress, copy_part, copy_thread
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.reads import find
from langgraph.checkpoint.dynamodb._runtime.steps import Op, collected
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import Conversation, all_items, checkpoint_of, noise, thread_config
from tests.support.stage import CODEC, ENCRYPTED, THREAD, Process, Stage, confirms, deletes, single_effects

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TTL_SECONDS = 1000

# What is missing is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def three(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Store three checkpoints, of which the later two lack a segment that an index segment of both leads to."""
    use_small_limits(monkeypatch)
    conversation = Conversation(saver, "t")
    configs = [conversation.put(step=0), conversation.put(noise=noise(4_000))]
    # The third checkpoint has all of these, and some of its own; ids are random, and so is their order.
    of_both = all_items(client, table_name, begins="S#")
    configs.append(conversation.put(step=2))
    named = items.named_ids(all_items(client, table_name, begins="C#"))
    inner = next(
        each
        for each in of_both
        if items.segment_id_of(each) not in named and items.segment_id_of(each)[0] % 2 == 0
    )
    client.delete_item(TableName=table_name, Key=items.key(items.partition_key(inner), items.sort_key(inner)))
    return [each["configurable"]["checkpoint_id"] for each in configs]


def _never_acknowledge(client: DynamoDBClient, table_name: str, checkpoint_id: str) -> None:
    client.update_item(
        TableName=table_name,
        Key=items.key("t#", items.checkpoint_prefix(checkpoint_id)),
        UpdateExpression="SET epoch = :other",
        ExpressionAttributeValues={":other": {"B": b"another epoch"}},
    )


@pytest.mark.parametrize("newest_counts", [True, False])
def test_a_damaged_checkpoint_is_not_copied_also_where_its_index_segment_was(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, three: list[str], *, newest_counts: bool
) -> None:
    if not newest_counts:
        _never_acknowledge(client, table_name, three[2])
    with pytest.raises(CheckpointCorruptionError, match="needs segments that are not in the table"):
        saver.copy_thread("t", "copy")
    assert list(saver.list(thread_config("copy"))) == []


def test_checkpoints_that_never_counted_are_left_out(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, three: list[str]
) -> None:
    for checkpoint_id in three[1:]:
        _never_acknowledge(client, table_name, checkpoint_id)
    saver.copy_thread("t", "copy")
    assert [each.checkpoint["id"] for each in saver.list(thread_config("copy"))] == three[:1]


def test_a_copy_that_dies_shows_nothing() -> None:
    """Also where DynamoDB carries out a part of a batch only."""
    stage = Stage()
    process = stage.process()
    for number in range(5):
        stage.run(process.put(str(number), {"number": number}, str(number - 1) if number else None))
    stage.run(process.put_writes("4", [("number", 5)]))
    copy = stage.begin(process.copy_thread("copy"))
    while not copy.done:
        for call in single_effects(copy.calls):
            found = stage.process().get(thread="copy")
            assert found is None
            assert _listed(stage, "copy") == []
            # A restoration takes a thread for kept by what it has as ancestors.
            assert stage.run(find(process.table, items.partition("copy"), "4", as_ancestor=True)) is None
            stage.perform(call)
        copy.go_on()
    found = stage.process().get(thread="copy")
    assert found is not None
    assert found.checkpoint["channel_values"] == {"number": 4}
    assert found.pending_writes == [("task", "number", 5)]
    assert _listed(stage, "copy") == ["4", "3", "2", "1", "0"]


def test_a_copy_that_dies_hides_nothing_that_its_target_had() -> None:
    """It shows the newest checkpoint of the source first then."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("2", {"number": 2}))
    stage.run(process.copy_thread("copy"))
    for number in (3, 4, 5):
        stage.run(process.put(str(number), {"number": number}))
    copy = stage.begin(process.copy_thread("copy"))
    seen = {"2"}
    while not copy.done:
        for call in single_effects(copy.calls):
            stage.perform(call)
            listed = _listed(stage, "copy")
            assert seen <= set(listed)
            assert seen == {"2"} or listed[0] == "5"
            seen = set(listed)
        copy.go_on()
    assert _listed(stage, "copy") == ["5", "4", "3", "2"]


def test_a_request_of_a_copy_that_comes_late_does_not_hide_it() -> None:
    stage = Stage()
    process = stage.process()
    for number in range(3):
        stage.run(process.put(str(number), {"number": number}))
    copy = stage.begin(process.copy_thread("copy"))
    copy.until(lambda call: call.method == "put_item" and call.params["Item"]["SK"] == {"S": "C#2#"})
    [hides] = copy.calls
    copy.finish()
    stage.perform(hides)
    assert _listed(stage, "copy") == ["2", "1", "0"]


def test_who_was_overtaken_by_itself_goes_on_without_hiding() -> None:
    """The request that hides was sent again; the first one was thought lost, and all came of it."""
    stage = Stage()
    process = stage.process()
    for number in range(3):
        stage.run(process.put(str(number), {"number": number}))
    twin, copy = (stage.begin(process.copy_thread("copy")) for _ in range(2))
    for each in (twin, copy):
        each.until(lambda call: call.method == "put_item" and call.params["Item"]["SK"] == {"S": "C#2#"})
    twin.finish()
    assert _listed(stage, "copy") == ["2", "1", "0"]
    copy.finish()
    assert _listed(stage, "copy") == ["2", "1", "0"]


@pytest.mark.parametrize("ttl_seconds", [None, TTL_SECONDS])
def test_a_copy_in_parts_is_that_in_one(ttl_seconds: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is a checkpoint, and made by another process, which knows how far the last one was."""
    monkeypatch.setattr(copying, "_SEGMENTS_OF_SLICE", 0)
    stage = Stage()
    _fill_two_namespaces(stage, stage.process(ttl_seconds))
    stage.run(stage.process(ttl_seconds).copy_thread("one"))
    progress, parts, numbers = None, 0, []
    while parts == 0 or progress is not None:
        parts += 1
        numbers.append(len(_listed(stage, "copy")))
        progress = stage.run(_part(stage, progress, ttl_seconds))
        stage.now += 10
    # The subgraph's checkpoints, and then the root's.
    assert numbers == [0, 0, 0, 0, 3, 3, 3]
    for begins in ("T", "N#", "C#", "S#"):
        one, copy = stage.items(begins, "one"), stage.items(begins, "copy")
        assert len(copy) == len(one)
        assert _without_ids(copy.values()) == _without_ids(one.values())
    assert _contents(stage, "copy") == _contents(stage, "one") == _contents(stage, THREAD)


@pytest.mark.parametrize("is_anew", [False, True], ids=["goes on", "begins anew"])
def test_a_newest_checkpoint_that_the_source_loses_meanwhile_does_not_hide_the_copy(*, is_anew: bool) -> None:
    """It was hidden until the others were there; then there was nothing to show it for."""
    stage = Stage()
    process = stage.process()
    for number in ("1", "2", "3"):
        stage.run(process.put(number, {"x": number}, run_id=f"run {number}"))
    copy = stage.begin(stage.process().copy_thread("copy"))
    copy.until(lambda call: call.method == "batch_write_item" and "C#" in str(call.params))
    stage.run(stage.process().delete_for_runs("run 3"))
    if is_anew:
        stage.run(stage.process().copy_thread("copy"))
    else:
        copy.finish()
    assert _contents(stage, "copy") == _contents(stage, THREAD)
    assert stage.process().values(thread="copy") == {"x": "2"}


def test_what_an_earlier_copy_hid_does_not_hide_what_a_later_one_keeps() -> None:
    """The source has gone on since, so it is not the newest; then what is newer goes from the copy."""
    stage = Stage()
    process = stage.process()
    for number in ("1", "2"):
        stage.run(process.put(number, {"x": number}, run_id=f"run {number}"))
    died = stage.begin(stage.process().copy_thread("copy"))
    died.until(lambda call: call.method == "batch_write_item" and "C#" in str(call.params))
    stage.run(stage.process().delete_for_runs("run 2"))
    stage.run(process.put("3", {"x": "3"}, "1", run_id="run 3"))
    stage.run(stage.process().copy_thread("copy"))
    stage.run(stage.process().delete_for_runs("run 3"))
    assert stage.process().values(thread="copy") == {"x": "1"}


def test_a_copy_whose_hidden_head_another_one_takes_for_stale_begins_anew() -> None:
    """The other one has read the source before it went on."""
    stage = Stage()
    process = stage.process()
    for number in ("1", "2"):
        stage.run(process.put(number, {"x": number}))
    slow = stage.begin(stage.process().copy_thread("copy"))
    slow.until(
        lambda call: (
            call.method == "query" and call.params["ExpressionAttributeValues"][":pk"] == {"S": "copy#"}
        )
    )
    stage.run(process.put("3", {"x": "3"}, "2"))
    copy = stage.begin(stage.process().copy_thread("copy"))
    copy.until(lambda call: call.method == "batch_write_item" and "C#1#" in str(call.params))
    slow.finish()
    copy.finish()
    assert _contents(stage, "copy") == _contents(stage, THREAD)


@pytest.mark.parametrize("what", ["target deleted", "source deleted"])
def test_what_changes_between_the_parts_of_a_copy_is_noticed(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_SEGMENTS_OF_SLICE", 0)
    stage = Stage()
    _fill_two_namespaces(stage, stage.process(TTL_SECONDS))
    progress = None
    for _ in range(5):
        progress = stage.run(_part(stage, progress, TTL_SECONDS))
    before = stage.items("S#", "copy").keys()
    stage.run(
        {
            "target deleted": stage.process().delete_thread("copy"),
            "source deleted": stage.process().delete_thread(),
        }[what]
    )
    if what == "source deleted":
        with pytest.raises(CheckpointNotFoundError, match="has no checkpoint to copy"):
            stage.run(_all_parts(stage, progress))
        assert stage.process().get(thread="copy") is None
        return
    stage.run(_all_parts(stage, progress))
    assert _contents(stage, "copy") == _contents(stage, THREAD)
    # Under other ids: a deletion of the first ones may stand still.
    assert not before & stage.items("S#", "copy").keys()


def test_the_newest_checkpoint_of_a_delta_channel_is_readable_for_as_long_as_others() -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    counters: Any = {"counters_since_delta_snapshot": {"log": (0, 0)}}
    stage.run(process.put("1", {"x": 1}, **counters))
    stage.run(process.put("2", {"x": 2}, "1", **counters))
    stage.run(process.copy_thread("copy"))
    heads = {thread: stage.items("C#", thread)["C#2#"] for thread in (THREAD, "copy")}
    for name in (TTL_ATTRIBUTE, items.READABLE_UNTIL):
        assert heads["copy"].get(name) == heads[THREAD].get(name)


def _fill_two_namespaces(stage: Stage, process: Process) -> None:
    for namespace in ("", "inner"):
        for number in range(3):
            values = {"noise": noise(40_000, number // 2), "number": number}
            stage.run(process.put(str(number), values, namespace=namespace))
            stage.run(process.put_writes(str(number), [("x", number)], namespace=namespace))


def _part(
    stage: Stage, progress: Progress | None, ttl_seconds: int | None = TTL_SECONDS
) -> Op[Progress | None]:
    return copy_part(stage.process(ttl_seconds).table, CODEC, THREAD, "copy", progress, until=0)


def _all_parts(stage: Stage, progress: Progress | None) -> Op[None]:
    while progress is not None:
        progress = yield from _part(stage, progress)


def _listed(stage: Stage, thread: str) -> list[str]:
    listing = list_checkpoints(
        stage.process().table, CODEC, {"configurable": {"thread_id": thread}}, None, None, None
    )
    return [each.checkpoint["id"] for each in stage.run(collected(listing))]


def _contents(stage: Stage, thread: str) -> list[Any]:
    reader = stage.process()
    found = [
        reader.get(str(number), thread=thread, namespace=each)
        for each in ("", "inner")
        for number in range(3)
    ]
    return [each and (each.checkpoint, each.pending_writes) for each in found]


def _without_ids(copied: Iterable[Any]) -> list[list[str]]:
    """The attributes of items, and when they expire."""
    return sorted(sorted([*each, str(each.get(TTL_ATTRIBUTE))]) for each in copied)


def test_a_deletion_that_stands_still_takes_nothing_from_a_copy_made_again() -> None:
    """The target is deleted; before its segments go, it is there again, under other ids."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"noise": noise(40_000)}))
    stage.run(process.copy_thread("copy"))
    deletion = stage.begin(stage.process().delete_thread("copy"))
    deletion.until(deletes("S#"))
    stage.run(process.copy_thread("copy"))
    deletion.finish()
    assert stage.process().values(thread="copy") == {"noise": noise(40_000)}


def test_damage_to_a_copy_is_not_passed_over() -> None:
    """What a copy has counts in its thread, as if it had been put there."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"number": 1}))
    stage.run(process.put("2", {"noise": noise(60_000)}, "1"))
    stage.run(process.put_writes("2", [("x", noise(100_000, 1))]))
    stage.run(process.copy_thread("copy"))
    for segment in stage.items("S#", "copy").values():
        stage.remove(segment)
    with pytest.raises(CheckpointCorruptionError, match="needs segments that are not in the table"):
        stage.process().get(thread="copy")


@pytest.mark.parametrize(("channels", "limits"), [(0, "usual"), (3_000, "usual"), (50, "small")])
def test_what_is_encrypted_is_copied_with_all_that_it_is_bound_to(
    channels: int, limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limits == "small":
        use_small_limits(monkeypatch)
    stage = Stage()
    table = stage.process().table
    # A value in segments, and so many others that what describes them is in segments too.
    values = {
        "noise": noise(60_000),
        **{f"channel {number}": noise(20, number) for number in range(channels)},
    }
    checkpoint = checkpoint_of("1", values)
    stage.run(put(table, ENCRYPTED, thread_config(THREAD), checkpoint, {}, dict.fromkeys(values, 1)))
    at = thread_config(THREAD, "", "1")
    stage.run(
        put_writes(table, ENCRYPTED, at, [("x", noise(100_000, 1)), ("__error__", "small")], "task", "")
    )
    stage.run(copy_thread(table, ENCRYPTED, THREAD, "copy"))
    found, copied = (
        stage.run(get_tuple(stage.process().table, ENCRYPTED, thread_config(thread)))
        for thread in (THREAD, "copy")
    )
    assert found is not None
    assert copied is not None
    assert copied.checkpoint == found.checkpoint
    assert copied.checkpoint["channel_values"] == values
    assert copied.pending_writes == found.pending_writes


def test_a_copy_begins_again_when_its_source_is_pruned_meanwhile() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"noise": noise(60_000, 1)}, namespace="inner"))
    stage.run(process.put("2", {"noise": noise(60_000, 2)}, "1", namespace="inner"))
    stage.run(process.put("2", {"x": 2}))
    copy = stage.begin(process.copy_thread("copy"))
    copy.until(lambda call: call.method == "batch_get_item")
    stage.run(stage.process().prune())
    copy.finish()
    reader = stage.process()
    assert reader.values(thread="copy") == {"x": 2}
    assert reader.values("2", thread="copy", namespace="inner") == {"noise": noise(60_000, 2)}
    assert reader.values("1", thread="copy", namespace="inner") is None


def test_writes_that_were_never_acknowledged_are_left_out_and_their_checkpoint_is_not() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"noise": noise(60_000)}))
    stage.run(process.put("2", {"x": 2}, "1"))
    of_checkpoints = stage.items("S#")
    stage.run(process.put_writes("1", [("x", noise(100_000, 1))]))
    for key, segment in stage.items("S#").items():
        if key not in of_checkpoints:
            stage.remove(segment)
    [writes] = stage.items("C#1#W#").values()
    stage.change(writes, **{items.epoch_name(items.WRITES): {"B": b"another epoch"}})
    stage.run(stage.process().copy_thread("copy"))
    reader = stage.process()
    found = [reader.get(each, thread="copy") for each in ("1", "2")]
    assert [each and each.checkpoint["channel_values"] for each in found] == [
        {"noise": noise(60_000)},
        {"x": 2},
    ]
    assert found[0] is not None
    assert found[0].pending_writes == []


def test_a_checkpoint_that_never_counted_and_lacks_many_segments_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_small_limits(monkeypatch)
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"noise": noise(2_000)}))
    before = stage.items("S#")
    stage.run(process.put("2", {"noise": noise(2_000, 2)}, "1"))
    torn = stage.items("C#")["C#2#"]
    stage.change(torn, **{items.EPOCH: {"B": b"another epoch"}})
    named = {items.segment_sk(each) for each in items.named_ids([torn])}
    for key, segment in stage.items("S#").items():
        if key not in before.keys() | named:
            stage.remove(segment)
    stage.run(stage.process().copy_thread("copy"))
    assert stage.items("C#", "copy").keys() == {"C#1#"}
    assert stage.process().values(thread="copy") == {"noise": noise(2_000)}


def test_a_thread_of_several_pages_is_copied_whole() -> None:
    stage = Stage()
    process = stage.process()
    for number in range(100):
        stage.run(process.put(f"{number:03}", {"noise": noise(12_000, number)}))
    stage.run(process.copy_thread("copy"))
    assert stage.items("C#", "copy").keys() == stage.items("C#").keys()


@pytest.mark.parametrize("while_copying", [False, True])
def test_a_copy_has_the_ttl_of_the_saver_that_created_its_thread(while_copying: bool) -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"big": noise(60_000)}))
    longer = stage.process(30 * TTL_SECONDS).copy_thread("copy")
    if not while_copying:
        stage.run(longer)
    copy = stage.begin(stage.process(TTL_SECONDS).copy_thread("copy"))
    copy.until(confirms)
    if while_copying:
        stage.run(longer)
    copy.finish()
    stage.now += (TTL_SECONDS if while_copying else 30 * TTL_SECONDS) - 1
    stage.model.expire()
    assert stage.process().values(thread="copy") == {"big": noise(60_000)}
    stage.now += 2
    assert stage.process().values(thread="copy") is None


def test_a_copy_expires_as_what_is_stored_when_it_begins() -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    for namespace in ("", "inner"):
        stage.run(process.put("1", {"big": noise(60_000)}, namespace=namespace))
        stage.run(process.put_writes("1", [("x", 1)], namespace=namespace))
    stored = _lifetimes(stage, "t")
    stage.now += TTL_SECONDS / 2
    stage.run(process.copy_thread("copy"))
    assert _lifetimes(stage, "copy") == stored
    assert sorted(stored.values()) == [TTL_SECONDS, *3 * [2 * TTL_SECONDS], 3 * TTL_SECONDS]


def _lifetimes(stage: Stage, thread: str) -> dict[str, int]:
    """For how long the items of a thread live, by what they are; those of a kind live equally long."""
    lifetimes: dict[str, int] = {}
    for key, item in stage.items("", thread).items():
        kind = "writes" if "#W#" in key else key[0]
        lifetime = (items.number(item, TTL_ATTRIBUTE) or 0) - int(stage.now)
        assert lifetimes.setdefault(kind, lifetime) == lifetime
    return lifetimes


@pytest.mark.parametrize("channels", [0, 3_000])
def test_without_the_key_nothing_is_copied(channels: int) -> None:
    """The newest checkpoint cannot be opened; what describes it is in its head, or in segments."""
    stage = Stage()
    keys = [Codec(EncryptedSerializer.from_pycryptodome_aes(key=each * 16)) for each in (b"a", b"b")]
    table = stage.process().table
    values = {f"channel {number}": noise(20, number) for number in range(channels)}
    checkpoint = checkpoint_of("1", {**values, "x": 1})
    stage.run(put(table, keys[0], thread_config(THREAD), checkpoint, {}, checkpoint["channel_versions"]))
    before = stage.model.items()
    with pytest.raises((CheckpointCorruptionError, CheckpointerConfigurationError)):
        stage.run(copy_thread(table, keys[1], THREAD, "copy"))
    assert stage.model.items() == before


@pytest.mark.parametrize(
    ("threads", "message"),
    [
        (("", "copy"), "^source_thread_id is ''"),
        ((THREAD, ""), "^target_thread_id is ''"),
        ((THREAD, THREAD), "^source and target are both thread 't'; give another id for the copy$"),
    ],
)
def test_a_copy_of_what_is_no_thread_or_to_none_says_which(threads: tuple[Any, Any], message: str) -> None:
    stage = Stage()
    with pytest.raises(CheckpointerInputError, match=message):
        stage.run(copy_thread(stage.process().table, CODEC, *threads))
    assert stage.model.items() == []


def test_the_thread_item_of_a_copy_that_takes_long_outlives_it() -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put("1", {"x": 1}))
    stage.run(process.copy_thread("copy"))
    stage.now += 1.5 * TTL_SECONDS
    stage.run(process.put("2", {"x": 2}))
    copy = stage.begin(process.copy_thread("copy"))
    copy.until(confirms)
    stage.now += TTL_SECONDS / 4
    copy.finish()
    [head] = [each for sk, each in stage.items("C#", "copy").items() if sk == "C#2#"]
    assert (items.expires_at(stage.items("T", "copy")["T"]) or 0) >= (items.expires_at(head) or 0) > stage.now


@pytest.mark.parametrize("expires", [False, True])
def test_what_is_kept_for_a_delta_channel_is_copied_and_stays_unreadable(expires: bool) -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    counters: Any = {"counters_since_delta_snapshot": {"log": (0, 0)}}
    stage.run(process.put("1", {"x": 1}, **counters))
    stage.now += 0.6 * TTL_SECONDS
    stage.run(process.put("2", {"x": 2}, "1", **counters))
    stage.now += 0.6 * TTL_SECONDS * expires
    stage.run(process.copy_thread("copy"))
    reader = stage.process()
    for thread in (THREAD, "copy"):
        assert reader.values("1", thread=thread) == (None if expires else {"x": 1})
    copied = stage.items("C#", "copy")["C#1#"]
    assert items.number(copied, TTL_ATTRIBUTE) == stage.now + 2 * TTL_SECONDS
