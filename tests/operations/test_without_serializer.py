"""Deleting, pruning and copying never deserialize: what a tenant stored is not run by the operator who cleans up.

What a prune has to know is in plain attributes of the heads; threads of the first format have it in readable metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import pack_typed
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.fuzz.tables import PLAIN, Thread, loaded, run, threads, with_item
from tests.simulation.schedule import Choices
from tests.simulation.simulator import Simulator
from tests.support.checkpoints import (
    METADATA,
    checkpoint_of,
    thread_config,
)
from tests.support.format_fixtures import read_items


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
    simulator = loaded(thread)
    run(
        simulator,
        lambda storage: copy_thread(replace(storage, codec=REFUSING), thread.thread_id, "copy"),
    )
    copied = [each for each in simulator.model.items() if each["PK"]["S"].startswith("copy#")]
    assert len([each for each in copied if items.BODY in each]) == len(thread.heads)


@pytest.mark.parametrize("kind", ["plain", "segmented", "encrypted", "delta"])
@pytest.mark.parametrize("metadata", ["own", "pickle", "json", "msgpack"])
def test_a_prune_needs_nothing_that_is_sealed(kind: str, metadata: str) -> None:
    thread = Thread(tuple(read_items(kind)), REFUSING)
    thread = thread if metadata == "own" else _with_hostile_metadata(thread, metadata)
    simulator = loaded(thread)
    for name in ("prune", "delete_for_runs", "delete_thread"):
        run(simulator, thread.changes()[name])
    assert simulator.model.items() == []


# What a prune keeps


def _counted(steps: Op[None], requests: list[int]) -> Op[None]:
    """Run an operation, noting how many requests each round has."""
    outcomes: Sequence[Any] | None = None
    with suppress(StopIteration):
        while True:
            round_ = next(steps) if outcomes is None else steps.send(outcomes)
            requests.append(len(round_))
            outcomes = yield round_


def _storage(simulator: Simulator) -> Storage:
    """The storage of a process that remembers nothing."""
    return replace(simulator.process().storage, codec=PLAIN)


def _chain(length: int, snapshots: dict[str, set[int]]) -> tuple[Simulator, list[str]]:
    """A table with a chain of checkpoints, at some of which a delta channel's value is stored."""
    simulator = Simulator(Choices())
    storage, config = _storage(simulator), thread_config("t")
    since: dict[str, int] = {}
    for number in range(1, length + 1):
        since = {name: since.get(name, 0) + 1 for name in snapshots}
        values = {name: _DeltaSnapshot([number]) for name, places in snapshots.items() if number in places}
        for name in values:
            del since[name]
        metadata = {**METADATA, "counters_since_delta_snapshot": {name: [n, n] for name, n in since.items()}}
        checkpoint = checkpoint_of(f"{number:04}", values)
        checkpoint["channel_versions"] = dict.fromkeys(snapshots, number)
        new = dict(checkpoint["channel_versions"])
        config = simulator.run_alone(
            put(storage, config, checkpoint, cast("CheckpointMetadata", metadata), new)
        )
    return simulator, [f"{number:04}" for number in range(1, length + 1)]


def _heads(simulator: Simulator) -> dict[str, Item]:
    return {items.checkpoint_id_of(each): each for each in simulator.model.items() if items.BODY in each}


def test_a_head_says_from_where_on_its_ancestors_are_needed() -> None:
    simulator, _ = _chain(8, {"a": {3, 6}, "b": {5}})
    said = {each: head.get(items.REBUILT_FROM, {}).get("S") for each, head in _heads(simulator).items()}
    assert said == {
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
        monkeypatch.setattr("langgraph.checkpoint.dynamodb._runtime.cache.Cache.checkpoint", lambda *_: None)
    test_a_head_says_from_where_on_its_ancestors_are_needed()


@pytest.mark.parametrize("keep_last", [1, 2, 10, 30])
def test_a_prune_of_a_delta_thread_takes_as_many_requests_whatever_it_keeps(keep_last: int) -> None:
    simulator, ids = _chain(60, {"log": {7, 27, 47}})
    counted: list[int] = []
    pruning = prune(simulator.process().storage, ["t"], "keep_last", keep_last)
    simulator.run_alone(_counted(pruning, counted))
    kept = ids[-keep_last:]
    oldest = max(place for place in (1, 7, 27, 47) if place <= int(kept[0]))
    assert sorted(_heads(simulator)) == ids[oldest - 1 :]
    # A claim, three reads, two changes of the epoch and the release; what is deleted, in batches; one head in the end.
    assert sum(counted) < 15 + len(_heads(simulator)), "each head that is kept is restamped once"
    for each in kept:
        config = thread_config("t", checkpoint_id=each)
        history = simulator.run_alone(get_delta_channel_history(_storage(simulator), config, ["log"]))
        stored = simulator.run_alone(get_tuple(_storage(simulator), config))
        assert stored is not None
        assert "seed" in history["log"] or "log" in stored.checkpoint["channel_values"]


@pytest.mark.parametrize("namespace", ["sub:1", "sub"])
def test_the_namespace_of_a_call_goes_with_the_checkpoint_that_it_started_from(namespace: str) -> None:
    simulator = Simulator(Choices())
    storage = _storage(simulator)
    config = thread_config("t")
    for number in ("1", "2"):
        config = simulator.run_alone(put(storage, config, checkpoint_of(number, {}), METADATA, {}))
    metadata: Any = {**METADATA, "parents": {"": "1"}}
    simulator.run_alone(put(storage, thread_config("t", namespace), checkpoint_of("3", {}), metadata, {}))
    simulator.run_alone(prune(simulator.process().storage, ["t"], "keep_latest", None))
    assert sorted(_heads(simulator)) == (["2"] if ":" in namespace else ["2", "3"])
