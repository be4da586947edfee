"""Requests that client and service send each other seldom: what comes in pages, what goes meanwhile, what is refused.

Both run on a DynamoDB in memory, with nothing in between, and a test may change what is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._runtime.memory import Memory
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, collected
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerConfigurationError,
    CheckpointerInputError,
    CheckpointNotFoundError,
)
from langgraph.checkpoint.dynamodb.gateway import operations as service
from langgraph.checkpoint.dynamodb.http import access, operations
from langgraph.checkpoint.dynamodb.http.operations import Gateway
from tests.gateway.through.remote import OPTIONS, answered, asking
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.stage import THREAD, Stage

T = TypeVar("T")

SERDE = JsonPlusSerializer()
METADATA: Any = {"source": "loop", "step": 1}


@dataclass
class Pair:
    """A client and the service that it asks, which remembers nothing from one request to the next."""

    stage: Stage = field(default_factory=Stage)
    ttl_seconds: int | None = None
    change: Callable[[Call, Any], Any] = lambda _, answer: answer
    asked: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start a client."""
        self.gateway = Gateway(self.stage.process().table, OPTIONS)

    def run(self, operation: Op[T]) -> T:
        """Run an operation of the client to its end."""
        return self.stage.run(asking(operation, self._asked))

    def ask(self, endpoint: str, document: Any) -> Any:
        """Send a request, as a client in another language might."""
        return self.stage.run(answered(self._table(), Call(endpoint, document)))

    def _asked(self, call: Call) -> Op[Any]:
        self.asked.append(call)
        answer = yield from answered(self._table(), call)
        return self.change(call, answer)

    def _table(self) -> Table:
        return replace(self.stage.process(self.ttl_seconds).table, memory=Memory(0))

    # Operations

    def put(
        self, checkpoint_id: str, values: dict[str, Any], parent: str | None = None, ns: str = ""
    ) -> None:
        """Store a checkpoint, all of which is new."""
        at = thread_config(THREAD, ns, parent)
        checkpoint = checkpoint_of(checkpoint_id, values)
        self.run(operations.store(self.gateway, SERDE, at, checkpoint, METADATA, dict.fromkeys(values, 1)))

    def put_with_writes(self, checkpoint_id: str, *writes: tuple[str, str]) -> None:
        """Store a checkpoint, and writes that were held back: each of a checkpoint and a task."""
        held = [
            (thread_config(THREAD, "", place), [("x", f"of {place}")], task, "") for place, task in writes
        ]
        checkpoint = checkpoint_of(checkpoint_id, {"x": checkpoint_id})
        at = thread_config(THREAD)
        self.run(operations.store_with_writes(self.gateway, SERDE, at, checkpoint, METADATA, {"x": 1}, held))

    def listed(self) -> list[str]:
        """The ids of the thread's checkpoints, as the client lists them."""
        thread: Any = {"configurable": {"thread_id": THREAD}}
        listing = operations.list_checkpoints(self.gateway, SERDE, thread, None, None, None)
        return [each.checkpoint["id"] for each in self.run(collected(listing))]

    def values(self, checkpoint_id: str | None = None) -> Any:
        """What the client reads."""
        found = self.run(operations.get_tuple(self.gateway, SERDE, thread_config(THREAD, "", checkpoint_id)))
        return None if found is None else found.checkpoint["channel_values"]

    def pending(self, checkpoint_id: str) -> list[tuple[str, str, Any]]:
        """The pending writes that the client reads."""
        found = self.run(operations.get_tuple(self.gateway, SERDE, thread_config(THREAD, "", checkpoint_id)))
        assert found is not None
        return found.pending_writes or []


# What a client was never told


def test_a_service_of_another_version_is_named_with_what_to_do() -> None:
    pair = Pair(change=lambda _, answer: {**answer, "wire_version": 99})
    with pytest.raises(CheckpointerConfigurationError, match=r"version 99.*same release"):
        pair.put("1", {"x": "a"})


def test_a_thread_is_not_copied_to_itself() -> None:
    pair = Pair()
    with pytest.raises(CheckpointerInputError, match="another id"):
        pair.run(operations.copy_thread(pair.gateway, SERDE, THREAD, THREAD))
    assert pair.asked == []


def test_what_is_remembered_of_namespaces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_NAMESPACES_MAX", 3)
    newest = access.Newest()
    for number in range(10):
        newest[str(number)] = "id"
        assert len(newest) <= 4
    assert newest["9"] == "id"


# Writes that were held back


def test_writes_that_were_held_back_are_stored_where_their_checkpoint_is() -> None:
    pair = Pair()
    pair.put("1", {"x": "a"})
    pair.put_with_writes("2", ("1", "first"), ("never", "second"), ("2", "third"))
    assert pair.pending("1") == [("first", "x", "of 1")]
    assert pair.pending("2") == [("third", "x", "of 2")]
    assert pair.stage.items("C#never") == {}


def _held(pair: Pair, *writes: tuple[str, str]) -> dict[str, Any]:
    """One request for what the client stored by several, of a pair whose table it leaves as it was."""
    other = Pair()
    other.put("1", {"x": "a"})
    other.asked.clear()
    other.put_with_writes("2", *writes)
    sent = {
        name: [dict(each.params) for each in other.asked if each.method == name]
        for name in ("put", "put-writes")
    }
    for each in (*sent["put"], *sent["put-writes"]):
        for name in ("thread", "epoch"):
            each.pop(name, None)
    assert len(sent["put-writes"]) == len(writes)
    pair.put("1", {"x": "a"})
    return {"put": sent["put"][0], "writes": sent["put-writes"]}


def test_one_request_stores_a_checkpoint_and_writes() -> None:
    pair = Pair()
    request = _held(pair, ("1", "first"), ("2", "second"))
    elsewhere = {**request["writes"][0], "checkpoint_id": "never"}
    answer = pair.ask("put-with-writes", {**request, "writes": [*request["writes"], elsewhere]})
    assert [each["stored"] for each in answer["writes"]] == [True, True]
    assert answer["put"]["counts"]
    assert pair.values() == {"x": "2"}
    assert pair.pending("1") == [("first", "x", "of 1")]
    assert pair.stage.items("C#never") == {}


def test_one_request_stores_no_checkpoint_before_its_writes_are() -> None:
    """The task has something already, which its client has to merge."""
    pair = Pair()
    request = _held(pair, ("1", "first"))
    pair.run(
        operations.store_writes(pair.gateway, SERDE, thread_config(THREAD, "", "1"), [("y", 1)], "first", "")
    )
    answer = pair.ask("put-with-writes", request)
    assert answer["put"] is None
    assert not answer["writes"][0]["stored"]
    assert pair.values() == {"x": "a"}


# Lists


@pytest.mark.parametrize("name", ["_NAMESPACES_KEPT", "_SEGMENT_BYTES_KEPT"])
def test_a_list_keeps_few_segments(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pair = Pair()
    for number in range(3):
        pair.put(str(number), {"x": noise(50_000, number)}, ns=("", "inner", "other")[number])
    monkeypatch.setattr(operations, name, 0)
    assert sorted(pair.listed()) == ["0", "1", "2"]


def test_a_list_leaves_out_what_goes_while_it_is_read() -> None:
    pair = Pair()
    pair.put("1", {"x": noise(50_000)})

    def delete(call: Call, answer: Any) -> Any:
        if call.method == "list":
            pair.stage.run(pair.stage.process().delete_thread())
        return answer

    other = Pair(pair.stage, change=delete)
    assert other.listed() == []
    assert [each.method for each in other.asked if each.method != "get-segments"] == [
        "about",
        "list",
        "get-tuple",
    ]


def test_a_list_reads_a_checkpoint_again_whose_segments_were_not_there() -> None:
    pair = Pair()
    pair.put("1", {"x": noise(50_000)})
    other = Pair(pair.stage)
    missing: list[Any] = [{"segments": [], "left": []}] * 2
    other.change = lambda call, answer: missing.pop() if missing and call.method == "get-segments" else answer
    assert other.listed() == ["1"]
    assert missing == []


def test_a_list_of_all_threads_goes_on_where_the_last_answer_ended() -> None:
    pair = Pair()
    for number in range(3):
        pair.put(str(number), {"x": number})
    ids, cursor = list[str](), None
    while not ids or cursor is not None:
        *found, end = pair.ask("list", {"limit": 2, "cursor": cursor})
        ids += [each["checkpoint_id"] for each in found]
        cursor = end["cursor"]
    assert ids == ["2", "1", "0"]


# What goes while it is read


def _without_segments(answer: Any) -> Any:
    """What is answered of whatever has lost its segments."""
    if isinstance(answer, dict):
        return {name: [] if name == "segments" else _without_segments(each) for name, each in answer.items()}
    return [*map(_without_segments, answer)] if isinstance(answer, list) else answer


def test_a_checkpoint_whose_segments_go_again_and_again_is_an_error() -> None:
    pair = Pair()
    pair.put("1", {"x": noise(50_000)})
    other = Pair(pair.stage, change=lambda _, answer: _without_segments(answer))
    with pytest.raises(CheckpointNotFoundError, match="deleted while they were being read"):
        other.values()


def _with_a_delta_channel(pair: Pair, count: int) -> None:
    """Store a way of checkpoints, whose channel is rebuilt from the writes at each."""
    for number in range(count):
        at = thread_config(THREAD, "", str(number - 1) if number else None)
        metadata: Any = {**METADATA, "counters_since_delta_snapshot": {"log": (number, 0)}}
        values = {"x": number} if number else {"x": number, "log": _DeltaSnapshot([noise(50_000)])}
        checkpoint = checkpoint_of(str(number), values)
        pair.run(operations.store(pair.gateway, SERDE, at, checkpoint, metadata, dict.fromkeys(values, 1)))
        config = thread_config(THREAD, "", str(number))
        write = [("log", [noise(20_000, number)])]
        pair.run(operations.store_writes(pair.gateway, SERDE, config, write, "task", ""))


def _history(pair: Pair, checkpoint_id: str) -> list[Any]:
    config = thread_config(THREAD, "", checkpoint_id)
    found = pair.run(operations.get_delta_channel_history(pair.gateway, SERDE, config, ["log"]))
    return [write[2] for write in found["log"]["writes"]]


def test_a_long_way_back_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_ANCESTORS_FIRST", 1)
    pair = Pair()
    _with_a_delta_channel(pair, 8)
    pair.asked.clear()
    assert _history(pair, "7") == [[noise(20_000, number)] for number in range(7)]
    assert len([each for each in pair.asked if each.method == "delta-channel-history"]) > 1


def test_a_way_back_that_goes_while_it_is_read_is_an_error() -> None:
    pair = Pair()
    _with_a_delta_channel(pair, 3)
    other = Pair(pair.stage, change=lambda _, answer: _without_segments(answer))
    with pytest.raises(CheckpointNotFoundError, match="was deleted while it was read"):
        _history(other, "2")


# What the service is told


def test_a_put_says_what_became_of_it_though_the_thread_lives_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread's item, which this service has never seen, says another ttl than the service has."""
    monkeypatch.setattr(service, "ATTEMPTS_MAX", 1)
    pair = Pair()
    pair.put("1", {"x": "a"})
    other = Pair(pair.stage, ttl_seconds=1000)
    other.put("2", {"x": "b"})
    assert other.asked[-1].method == "put"
    assert pair.values() == {"x": "b"}


def test_a_service_whose_ttl_is_longer_asks_what_is_reused() -> None:
    pair = Pair(ttl_seconds=1000)
    pair.put("1", {"x": noise(50_000)})
    pair.ttl_seconds = 100_000
    at = thread_config(THREAD, "", "1")
    checkpoint = checkpoint_of("2", {"x": noise(50_000), "y": 1})
    pair.run(operations.store(pair.gateway, SERDE, at, checkpoint, METADATA, {"y": 1}))
    assert [len(each.params["reused"]) > 0 for each in pair.asked if each.method == "put"][-2:] == [
        False,
        True,
    ]
    pair.stage.now += 50_000
    assert pair.values() == {"x": noise(50_000), "y": 1}


def test_what_replaces_something_has_to_name_it() -> None:
    pair = Pair()
    pair.put("1", {"x": "a"})
    pair.asked.clear()
    pair.run(
        operations.store_writes(pair.gateway, SERDE, thread_config(THREAD, "", "1"), [("y", 1)], "task", "")
    )
    with pytest.raises(
        CheckpointerInputError, match="send its created_at and expires_at, or leave replaces out"
    ):
        pair.ask("put-writes", {**pair.asked[0].params, "replaces": True})


def test_what_a_later_client_sealed_is_refused_with_what_to_do() -> None:
    pair = Pair()
    pair.put("1", {"x": "a"})
    request = pair.asked[-1].params
    body = request["head"]["body"]
    later = {**request, "head": {**request["head"], "body": bytes([99]) + body[1:]}}
    with pytest.raises(CheckpointerInputError, match="update langgraph-dynamodb in the service"):
        pair.ask("put", later)
    assert items.binary(pair.stage.items("C#")["C#1#"], items.BODY) == body
