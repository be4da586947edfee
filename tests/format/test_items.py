"""Keys and items: any text is data, keys sort as ids do, and limits are checked before anything is sent."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointFormatError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Life, Part
from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
AWKWARD = st.text("#%|: \0\x1f!$&\u00e9\U0001f600\uffff23C", max_size=12)
IDS = TEXT | AWKWARD


@given(IDS, IDS, IDS, IDS)
def test_partitions_are_equal_only_for_equal_ids(
    thread: str, ns: str, other_thread: str, other_ns: str
) -> None:
    first, second = items.partition_of(thread, ns), items.partition_of(other_thread, other_ns)
    assert (first.pk == second.pk) == ((thread, ns) == (other_thread, other_ns))
    assert items.parse_partition(first.pk) == first
    assert first.root == items.partition_of(thread).pk


@given(IDS, IDS)
def test_checkpoint_keys_sort_as_ids_do(one: str, other: str) -> None:
    def order(left: bytes, right: bytes) -> int:
        return (left > right) - (left < right)

    keys = [items.checkpoint_prefix(each).encode() for each in (one, other)]
    assert order(*keys) == order(one.encode(), other.encode())


@given(IDS, IDS, IDS)
def test_a_checkpoints_prefix_matches_its_own_items_only(checkpoint: str, task: str, other: str) -> None:
    prefix = items.checkpoint_prefix(checkpoint)
    assert items.writes_sk(checkpoint, task).startswith(prefix)
    assert items.writes_sk(other, task).startswith(prefix) == (other == checkpoint)
    head, writes = items.key("p", prefix), items.key("p", items.writes_sk(checkpoint, task))
    assert items.is_head(head)
    assert not items.is_head(writes)
    assert items.checkpoint_id_of(head) == items.checkpoint_id_of(writes) == checkpoint
    assert items.task_id_of(writes) == task


@given(IDS.filter(bool))
def test_namespace_entries_read_back(namespace: str) -> None:
    assert items.namespace_of(items.key("p", items.namespace_sk(namespace))) == namespace


IDS_8 = st.lists(st.binary(min_size=8, max_size=8), max_size=20).map(tuple)


@given(IDS_8, IDS_8, st.binary(max_size=50))
def test_parts_read_back(own: tuple[bytes, ...], refs: tuple[bytes, ...], sealed: bytes) -> None:
    part = Part(own, refs, sealed)
    assert items.parse_part({**items.key("p", "s"), items.BODY: part.attribute("s")}, items.BODY) == part


@given(st.binary(max_size=60))
def test_any_bytes_in_a_part_are_read_or_refused(data: bytes) -> None:
    item = {**items.key("p", "s"), items.BODY: {"B": data}}
    try:
        part = items.parse_part(item, items.BODY)
    except (CheckpointCorruptionError, CheckpointFormatError):
        return
    assert part is not None
    assert part.attribute("s")["B"][1:] == data[1:]


@pytest.mark.parametrize("run_id", [7, "", "\ud800", "x" * 2_049, None, "é" * 1_025])
def test_run_ids_that_no_index_key_can_hold_are_not_indexed(run_id: object) -> None:
    assert items.indexable_run_id({"run_id": run_id}) is None


def test_a_run_id_at_the_limit_is_indexed() -> None:
    assert items.indexable_run_id({"run_id": "é" * 1_024}) == "é" * 1_024


@pytest.mark.parametrize(
    ("text", "number"),
    [("-9223372036854775807", 1 - 2**63), ("9007199254740993", 2**53 + 1), ("1.2E+3", 1200)],
)
def test_a_number_is_read_exactly(text: str, number: int) -> None:
    assert items.number({items.ORDER: {"N": text}}, items.ORDER) == number


@pytest.mark.parametrize("text", ["1E+125", "-1E+125", "9223372036854775808", "NaN", "x"])
def test_a_number_that_could_not_be_stored_again_is_damage(text: str) -> None:
    item = {**items.key("t#", "T"), items.ORDER: {"N": text}}
    with pytest.raises(CheckpointCorruptionError, match="its attribute order is not a number in range"):
        items.number(item, items.ORDER)


@pytest.mark.parametrize(
    ("make", "names", "longest"),
    [
        (items.partition_of, ("thread_id", "thread_id with checkpoint_ns"), 2047),
        (lambda text: items.partition_of("", text), ("checkpoint_ns", "checkpoint_ns"), 1022),
        (items.checkpoint_prefix, ("checkpoint_id", "checkpoint_id"), 1021),
        (lambda text: items.writes_sk("1", text), ("task_id", "checkpoint_id with task_id"), 1018),
        (items.namespace_sk, ("checkpoint_ns", None), 0),
        (items.owner_key, ("owner", "owner"), 2048),
    ],
)
def test_an_id_that_no_key_can_hold_is_refused_by_its_name(
    make: Callable[[str], object], names: tuple[str, str | None], longest: int
) -> None:
    with pytest.raises(CheckpointerInputError, match=rf"^{names[0]} '\\ud800' holds a lone surrogate"):
        make("\ud800")
    if names[1] is not None:
        make("x" * longest)
        with pytest.raises(CheckpointerInputError, match=rf"^{names[1]} makes a key of \d+ bytes, over"):
            make("x" * (longest + 1))


def test_keys_are_as_the_design_says() -> None:
    assert items.partition_of("a b", "n#1").pk == "a%20b#n%231"
    assert items.writes_sk("1", "t") == "C#1#W#t"
    assert items.after_checkpoint("1") == "C#1$"
    assert items.namespace_sk("n|%") == "N#n|%25"
    assert items.segment_sk(b"\1" * 8) == "S#" + "01" * 8
    assert items.segment_id_of(items.key("p", "S#" + "0a" * 8)) == b"\n" * 8
    assert items.unescape("%2x%00%25") == "%2x\0%"
    assert [items.is_checkpoint_id(each) for each in ("1", "\ud800")] == [True, False]


NO_NUMBER = "is not a number in range"


def _part(own: int, refs: int, rest: bytes) -> Any:
    return {items.BODY: {"B": b"\1\0" + bytes([own, 0, refs]) + rest}}


@pytest.mark.parametrize(
    ("sk", "attributes", "read", "why"),
    [
        ("T", {}, lambda item: items.binary(item, "data"), "it has no binary attribute data"),
        ("T", {"a": {"N": "1"}}, lambda item: items.text(item, "a"), "its attribute a is not a string"),
        ("T", {"ttl_seconds": {"N": "-1"}}, items.ttl_of, f"its attribute ttl_seconds {NO_NUMBER}"),
        (
            "T",
            {"ttl_seconds": {"N": f"{TTL_SECONDS_MAX + 1}"}},
            items.ttl_of,
            "its attribute ttl_seconds is not",
        ),
        ("T", {"v": {"S": "1"}}, lambda item: items.number(item, "v"), f"its attribute v {NO_NUMBER}"),
        ("C#1#", {}, items.check_format, "it has no format version in v"),
        ("C#1#", {"v": {"N": "0"}}, items.check_format, "there is no format version 0"),
        (
            "C#1#",
            {"v": {"N": "1"}, "parent": {"S": "x" * 1022}},
            items.check_format,
            "its parent cannot be a checkpoint (checkpoint_id makes",
        ),
        ("C#1", {}, items.is_head, "its sort key is not one that this package writes"),
        ("S#0", {}, items.segment_id_of, "its sort key is not one that this package writes"),
        ("N#", {}, items.namespace_of, "its sort key is not one that this package writes"),
        ("C#1#", {"body": {"S": "x"}}, items.named_ids, "its attribute body has another form than this"),
        ("C#1#", {"body": {"B": bytes(4)}}, items.named_ids, "its attribute body has another form than this"),
        ("C#1#", _part(1, 1, bytes(15)), items.named_ids, "its attribute body is cut short"),
        ("C#1#", _part(1, 0, bytes(8)), items.named_ids, "the checksum of its attribute body does not match"),
        ("C#1#", {"body": {"B": bytes(5)}}, items.named_ids, "there is no format version 0"),
    ],
)
def test_an_item_that_is_not_as_it_was_written_is_named_with_what_is_wrong(
    sk: str, attributes: items.Item, read: Callable[[Any], object], why: str
) -> None:
    item = {**items.key("t#", sk), **attributes}
    with pytest.raises(CheckpointCorruptionError) as caught:
        read([item] if read is items.named_ids else item)
    assert str(caught.value).startswith(f"item PK='t#' SK={sk!r} is damaged: {why}")


@pytest.mark.parametrize(
    ("attributes", "read"),
    [
        ({"v": {"N": "2"}}, items.check_format),
        ({"body": {"B": b"\2" + bytes(4)}}, lambda item: items.parse_part(item, items.BODY)),
    ],
)
def test_an_item_of_a_newer_release_says_what_this_one_reads(
    attributes: items.Item, read: Callable[[Any], object]
) -> None:
    with pytest.raises(
        CheckpointFormatError, match=r"^item PK='t#' SK='C#1#' has format version 2, and .* up to 1;"
    ):
        read({**items.key("t#", "C#1#"), **attributes})


def test_what_a_part_names_is_told_apart() -> None:
    own, ref = bytes(8), b"\1" * 8
    item = {
        **items.key("p", "C#1#W#t"),
        "writes": Part((own,), (ref,), b"12").attribute("C#1#W#t"),
        "special_1": Part((), (), b"345").attribute("C#1#W#t"),
        "special_2": {"B": b"\1"},
    }
    assert [items.names_segments(item, f"special_{n}") for n in (1, 2, 3)] == [False, True, False]
    assert items.names_segments(item, "writes")
    assert items.names_segments({"body": Part((), (ref,), b"").attribute("s")}, "body")
    del item["special_2"]
    assert items.named_ids([item]) == {own, ref}
    assert items.own_ids([item]) == {own}
    assert items.sealed_bytes([item, item]) == 10
    assert [name for name, _ in items.parts_of(item)] == ["writes", "special_1"]


@pytest.mark.parametrize(("end", "is_gone"), [(None, False), (9, True), (10, True), (11, False)])
def test_an_item_has_expired_from_its_second_on(end: int | None, *, is_gone: bool) -> None:
    item = items.with_expiry(items.key("p", "s"), end)
    assert items.is_expired(item, 10) == is_gone
    shown = {**items.with_expiry(item, 100), items.SHOWN_UNTIL: {"N": str(end or 99)}}
    assert items.is_expired(shown, 10) == is_gone
    assert not items.is_expired(shown, 10, as_ancestor=True)


@pytest.mark.parametrize(
    ("pk", "ttl_seconds", "ends"), [("t#", 100, 100), ("t#inner", 100, 0), ("t#", None, 0)], ids=str
)
def test_a_root_checkpoint_is_shown_until_a_ttl_before_it_expires(
    pk: str, ttl_seconds: int | None, ends: int
) -> None:
    head = items.with_life(items.key(pk, "C#1#"), items.Life(ttl_seconds, None, 1_000))
    assert [items.is_shown(head, now) for now in (999 - ends, 1_000 - ends)] == [True, False]
    ancestor = {**head, items.SHOWN_UNTIL: {"N": "500"}}
    assert [items.is_shown(ancestor, now) for now in (499 - ends, 500 - ends)] == [True, False]


def test_never_is_later_than_any_time() -> None:
    pairs: list[tuple[int | None, int | None]] = [(None, None), (None, 1), (1, None), (1, 2), (2, 1), (1, 1)]
    assert [items.earlier(*each) for each in pairs] == [None, 1, 1, 1, 1, 1]
    assert [items.later(*each) for each in pairs] == [None, None, None, 2, 2, 1]
    assert [items.expires_before(*each) for each in pairs] == [False, False, True, True, False, False]


def test_the_times_of_a_life_only_rise() -> None:
    lives = Life(5, 10, 40), Life(5, 20, 30)
    assert lives[0].latest(lives[1]) == lives[1].latest(lives[0]) == Life(5, 20, 40)
    assert Life(5).latest(lives[0]) == lives[0].latest(Life(5)) == lives[0]
    assert Life(None, 99).latest(lives[0]) == lives[0]
    head = items.with_life(items.key("p", "s"), lives[0])
    assert items.life_of(head) == lives[0]
    assert head.keys() - items.key("p", "s").keys() == {"alive_until", "ttl_seconds", "expires_at"}
    assert items.with_life(head, Life()) == head
