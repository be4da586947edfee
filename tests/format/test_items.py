"""Keys and items: any text is data, keys sort as ids do, and limits are checked before anything is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointFormatError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Part

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


@pytest.mark.parametrize("text", ["1E+125", "-1E+125", "9223372036854775808", "NaN", "x"])
def test_a_number_that_could_not_be_stored_again_is_damage(text: str) -> None:
    item = {**items.key("t#", "T"), items.ORDER: {"N": text}}
    with pytest.raises(CheckpointCorruptionError, match="its attribute order is not a number in range"):
        items.number(item, items.ORDER)
