"""Deleting, pruning and copying never deserialize: what a tenant stored is not run by the operator who cleans up.

What a prune has to know is in plain attributes of the heads; threads of the first format have it in readable metadata.
"""

from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import pack_typed
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from tests.fuzz.tables import PLAIN, Thread, loaded, run, threads, with_item
from tests.support.checkpoints import thread_config
from tests.support.format_fixtures import read_items
from tests.support.harness import THREAD, Harness


class RefusingSerializer(JsonPlusSerializer):
    """Takes no call."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Fail."""
        raise AssertionError(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Fail."""
        raise AssertionError(data)


REFUSING = Codec(RefusingSerializer())


def _with_hostile_metadata(thread: Thread, kind: str) -> Thread:
    """The thread, each of whose heads has metadata that would be made into something by a serializer."""
    for head in (each for each in thread.items if items.BODY in each):
        raw = pack_typed(kind, b"cos\nsystem\n(S'x'\ntR.")
        sealed = Part((), (), PLAIN.seal(raw, head, items.SEALED_METADATA)).attribute(items.sort_key(head))
        rest = {name: value for name, value in head.items() if name != items.METADATA}
        thread = with_item(thread, head, {**rest, items.SEALED_METADATA: sealed})
    return thread


@pytest.mark.parametrize("kind", ["plain", "segmented", "delta"])
@pytest.mark.parametrize("metadata", ["own", "pickle", "json", "msgpack"])
def test_a_copy_never_calls_the_serializer(kind: str, metadata: str) -> None:
    thread = threads()[kind]
    thread = thread if metadata == "own" else _with_hostile_metadata(thread, metadata)
    harness = loaded(thread)
    run(harness, lambda storage: copy_thread(replace(storage, codec=REFUSING), thread.thread_id, "copy"))
    copied = [each for each in harness.model.items() if each["PK"]["S"].startswith("copy#")]
    assert len([each for each in copied if items.BODY in each]) == len(thread.heads)


@pytest.mark.parametrize("kind", ["plain", "segmented", "encrypted", "delta"])
@pytest.mark.parametrize("metadata", ["own", "pickle", "json", "msgpack"])
def test_a_prune_needs_nothing_that_is_sealed(kind: str, metadata: str) -> None:
    thread = Thread(tuple(read_items(kind)), REFUSING)
    thread = thread if metadata == "own" else _with_hostile_metadata(thread, metadata)
    harness = loaded(thread)
    for name in ("prune", "delete_for_runs", "delete_thread"):
        run(harness, thread.changes()[name])
    assert harness.model.items() == []


# What a prune keeps


def _chain(length: int, snapshots: dict[str, set[int]]) -> Harness:
    """A table with a chain of checkpoints, at some of which a delta channel's value is stored."""
    harness, parent, since = Harness(), None, dict.fromkeys(snapshots, 0)
    process = harness.process()
    for number in range(1, length + 1):
        values = {name: _DeltaSnapshot([number]) for name, places in snapshots.items() if number in places}
        since = {name: 0 if name in values else steps + 1 for name, steps in since.items()}
        counters = {name: [steps, steps] for name, steps in since.items() if steps}
        versions = dict.fromkeys(snapshots, number)
        put = process.put(
            f"{number:04}", values, parent, versions=versions, counters_since_delta_snapshot=counters
        )
        harness.run(put)
        parent = f"{number:04}"
    return harness


def _heads(harness: Harness) -> dict[str, Item]:
    return {items.checkpoint_id_of(each): each for each in harness.model.items() if items.BODY in each}


def test_a_head_says_from_where_on_its_ancestors_are_needed() -> None:
    heads = _heads(_chain(8, {"a": {3, 6}, "b": {5}}))
    assert {each: head.get(items.REBUILT_FROM, {}).get("S") for each, head in heads.items()} == {
        "0001": None,
        "0002": "",
        "0003": "",
        "0004": "",
        "0005": "0003",
        "0006": "0005",
        "0007": "0005",
        "0008": "0005",
    }


@pytest.mark.parametrize("remembers", [True, False])
def test_who_reads_the_parent_back_says_the_same(monkeypatch: pytest.MonkeyPatch, *, remembers: bool) -> None:
    if not remembers:
        monkeypatch.setattr(
            "langgraph.checkpoint.dynamodb._runtime.storage.Cache.checkpoint", lambda *_: None
        )
    test_a_head_says_from_where_on_its_ancestors_are_needed()


@pytest.mark.parametrize("keep_last", [1, 2, 10, 30])
def test_a_prune_of_a_delta_thread_takes_as_many_requests_whatever_it_keeps(keep_last: int) -> None:
    harness = _chain(60, {"log": {7, 27, 47}})
    ids = sorted(_heads(harness))
    requests = harness.begin(harness.process().prune(keep_last)).trace()
    kept = ids[-keep_last:]
    oldest = max(place for place in (1, 7, 27, 47) if place <= int(kept[0]))
    assert sorted(_heads(harness)) == ids[oldest - 1 :]
    # A claim, three reads, two changes of the epoch and the release; what is deleted, in batches; one head in the end.
    assert len(requests) < 15 + len(_heads(harness)), "each head that is kept is restamped once"
    for each in kept:
        process, config = harness.process(), thread_config(THREAD, checkpoint_id=each)
        history = harness.run(get_delta_channel_history(process.storage, config, ["log"]))
        assert "seed" in history["log"] or "log" in (process.values(each) or {})


@pytest.mark.parametrize("namespace", ["sub:1", "sub"])
def test_the_namespace_of_a_call_goes_with_the_checkpoint_that_it_started_from(namespace: str) -> None:
    harness = Harness()
    process = harness.process()
    for number, parent in (("1", None), ("2", "1")):
        harness.run(process.put(number, {}, parent))
    harness.run(process.put("3", {}, namespace=namespace, parents={"": "1"}))
    harness.run(harness.process().prune())
    assert sorted(_heads(harness)) == (["2"] if ":" in namespace else ["2", "3"])
