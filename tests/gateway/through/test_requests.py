"""Requests that client and service send each other seldom: what comes in pages, what goes meanwhile, what is refused.

Both run on a DynamoDB in memory, with nothing in between, and a test may change what is answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations import copy as copying
from langgraph.checkpoint.dynamodb._runtime.cache import Cache
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, collected
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointNotFoundError,
)
from langgraph.checkpoint.dynamodb.http import operations
from langgraph.checkpoint.dynamodb.http.operations import RemoteOperations
from tests.gateway.through import remote
from tests.gateway.through.remote import answered, asking, gateway_of
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import THREAD, Harness, commits

T = TypeVar("T")

SERDE = JsonPlusSerializer()
METADATA: Any = {"source": "loop", "step": 1}


@dataclass
class Pair:
    """A client and the service that it asks, which remembers nothing from one request to the next."""

    harness: Harness = field(default_factory=Harness)
    ttl_seconds: int | None = None
    change: Callable[[Call, Any], Any] = lambda _, answer: answer
    asked: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start a client."""
        self.gateway = gateway_of(self.harness.process())
        self.operations = RemoteOperations(self.gateway, SERDE)

    def run(self, operation: Op[T]) -> T:
        """Run an operation of the client to its end."""
        return self.harness.run(asking(operation, self._asked))

    def ask(self, endpoint: str, document: Any) -> Any:
        """Send a request, as a client in another language might."""
        return self.harness.run(answered(self._storage(), Call(endpoint, document)))

    def _asked(self, call: Call) -> Op[Any]:
        self.asked.append(call)
        try:
            answer = yield from answered(self._storage(), call)
        except CheckpointerError as error:
            # The client's operation is told, as by the transport.
            return error
        return self.change(call, answer)

    def _storage(self) -> LocalStorage:
        return replace(self.harness.process(self.ttl_seconds).storage, cache=Cache(0))

    # Operations

    def put(
        self, checkpoint_id: str, values: dict[str, Any], parent: str | None = None, ns: str = ""
    ) -> None:
        """Store a checkpoint, all of which is new."""
        at = thread_config(THREAD, ns, parent)
        checkpoint = checkpoint_of(checkpoint_id, values)
        self.run(self.operations.put(at, checkpoint, METADATA, dict.fromkeys(values, 1)))

    def put_with_writes(self, checkpoint_id: str, *writes: tuple[str, str]) -> None:
        """Store a checkpoint, and writes that were held back: each of a checkpoint and a task."""
        held = [
            (thread_config(THREAD, "", place), [("x", f"of {place}")], task, "") for place, task in writes
        ]
        checkpoint = checkpoint_of(checkpoint_id, {"x": checkpoint_id})
        at = thread_config(THREAD)
        self.run(self.operations.put_with_writes(at, checkpoint, METADATA, {"x": 1}, held))

    def listed(self) -> list[str]:
        """The ids of the thread's checkpoints, as the client lists them."""
        thread: Any = {"configurable": {"thread_id": THREAD}}
        listing = self.operations.list(thread, None, None, None)
        return [each.checkpoint["id"] for each in self.run(collected(listing))]

    def values(self, checkpoint_id: str | None = None) -> Any:
        """What the client reads."""
        found = self.run(self.operations.get_tuple(thread_config(THREAD, "", checkpoint_id)))
        return None if found is None else found.checkpoint["channel_values"]

    def pending(self, checkpoint_id: str) -> list[tuple[str, str, Any]]:
        """The pending writes that the client reads."""
        found = self.run(self.operations.get_tuple(thread_config(THREAD, "", checkpoint_id)))
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
        pair.run(pair.operations.copy_thread(THREAD, THREAD))
    assert pair.asked == []


# Writes that were held back


def test_writes_that_were_held_back_are_stored_where_their_checkpoint_is() -> None:
    pair = Pair()
    pair.put("1", {"x": "a"})
    pair.put_with_writes("2", ("1", "first"), ("never", "second"), ("2", "third"))
    assert pair.pending("1") == [("first", "x", "of 1")]
    assert pair.pending("2") == [("third", "x", "of 2")]
    assert pair.harness.items("C#never") == {}


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
            pair.harness.run(pair.harness.process().delete_thread())
        return answer

    other = Pair(pair.harness, change=delete)
    assert other.listed() == []
    assert [each.method for each in other.asked if each.method != "get-segments"] == [
        "about",
        "list",
        "get-tuple",
    ]


def test_a_list_reads_a_checkpoint_again_whose_segments_were_not_there() -> None:
    pair = Pair()
    pair.put("1", {"x": noise(50_000)})
    other = Pair(pair.harness)
    missing: list[Any] = [{"segments": [], "left": []}] * 2
    other.change = lambda call, answer: missing.pop() if missing and call.method == "get-segments" else answer
    assert other.listed() == ["1"]
    assert missing == []


NAMESPACES = ("", "inner", "other")
PLACE = ("checkpoint_id", "checkpoint_ns")


def _with_equal_ids(pair: Pair) -> None:
    """Store checkpoints, some of whose ids several namespaces have."""
    for number in range(6):
        for namespace in NAMESPACES[: 1 + number % 3]:
            pair.put(str(number), {"x": number}, ns=namespace)


def _places(pair: Pair, wanted: Any, before: Any = None, limit: int | None = None) -> list[tuple[str, str]]:
    """What a client lists: ids and namespaces."""
    listing = pair.operations.list(wanted, None, before, limit)
    return [
        (each.checkpoint["id"], each.config["configurable"]["checkpoint_ns"])
        for each in pair.run(collected(listing))
    ]


LISTS: dict[str, dict[str, Any]] = {
    "a thread": {"wanted": {"configurable": {"thread_id": THREAD}}},
    "a namespace": {"wanted": thread_config(THREAD, "inner")},
    "a checkpoint": {"wanted": {"configurable": {"thread_id": THREAD, "checkpoint_id": "5"}}},
    "what is before": {
        "wanted": {"configurable": {"thread_id": THREAD}},
        "before": thread_config(THREAD, "", "4"),
    },
    "some": {"wanted": {"configurable": {"thread_id": THREAD}}, "limit": 8},
}


def _refusing(pair: Pair, refuses: Callable[[int], bool]) -> None:
    """Let the service refuse cursors, by their number."""
    cursors: list[str] = []

    def change(call: Call, answer: Any) -> Any:
        if call.method != "list" or call.params["cursor"] is None:
            return answer
        cursors.append(call.params["cursor"])
        return CheckpointerInputError("cursor is refused") if refuses(len(cursors)) else answer

    pair.change = change


@pytest.mark.parametrize("refused", ["never", "always", "each second", "each third"])
@pytest.mark.parametrize("first", [1, 2, 3, 5])
@pytest.mark.parametrize("name", LISTS)
def test_a_list_gives_every_checkpoint_once_wherever_its_pages_end(
    monkeypatch: pytest.MonkeyPatch, name: str, first: int, refused: str
) -> None:
    monkeypatch.setattr(operations, "_PAGE_FIRST", first)
    monkeypatch.setattr(operations, "_PAGE_MAX", first)
    pair = Pair()
    _with_equal_ids(pair)
    direct = [
        (str(number), namespace)
        for number in reversed(range(6))
        for namespace in NAMESPACES[: 1 + number % 3]
    ]
    expected = {
        "a thread": direct,
        "a namespace": [each for each in direct if each[1] == "inner"],
        "a checkpoint": [each for each in direct if each[0] == "5"],
        "what is before": [each for each in direct if each[0] < "4"],
        "some": direct[:8],
    }[name]
    every = {"never": 99, "always": 1, "each second": 2, "each third": 3}[refused]
    _refusing(pair, lambda number: number % every == 0)
    assert _places(pair, **LISTS[name]) == expected


def test_a_list_that_begins_anew_gives_nothing_that_came_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came since is newer than what was given, so it is not behind it."""
    monkeypatch.setattr(operations, "_PAGE_FIRST", 2)
    pair = Pair()
    for checkpoint_id in ("1", "3", "7"):
        pair.put(checkpoint_id, {"x": checkpoint_id})

    def refuse(number: int) -> bool:
        Pair(pair.harness).put("5", {"x": "5"})
        return number == 1

    _refusing(pair, refuse)
    assert _places(pair, LISTS["a thread"]["wanted"]) == [("7", ""), ("3", ""), ("1", "")]


def test_a_list_whose_cursors_are_refused_where_it_does_not_get_on_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "_PAGE_FIRST", 1)
    pair = Pair()
    _with_equal_ids(pair)
    _refusing(pair, lambda _: True)
    change = pair.change

    def shorten(call: Call, answer: Any) -> Any:
        """Send one checkpoint at a time, as where each fills an answer."""
        answer = change(call, answer)
        if call.method != "list" or isinstance(answer, Exception):
            return answer
        return [answer[0], {"cursor": json.dumps([answer[0][name] for name in PLACE])}]

    pair.change = shorten
    with pytest.raises(CheckpointerInputError, match="cursor is refused"):
        pair.listed()


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
    other = Pair(pair.harness, change=lambda _, answer: _without_segments(answer))
    with pytest.raises(CheckpointNotFoundError, match="deleted while they were read"):
        other.values()


def test_what_does_not_count_is_not_read_from_memory() -> None:
    """A deletion took what a checkpoint names; this client remembers that from the parent."""
    pair = Pair()
    pair.put("1", {"x": noise(50_000)})
    # The second one seals the end of the value, so the third one has no segment of its own.
    for checkpoint_id, client in (("2", pair), ("3", Pair(pair.harness))):
        checkpoint = checkpoint_of(checkpoint_id, {"x": noise(50_000), "y": 1})
        at = thread_config(THREAD, "", str(int(checkpoint_id) - 1))
        client.run(client.operations.put(at, checkpoint, METADATA, {"y": 1}))
    pair.harness.change(pair.harness.items("T")["T"], epoch={"B": b"another epoch"})
    segments = pair.harness.items("S#").values()
    assert segments
    for segment in segments:
        pair.harness.remove(segment)
    assert Pair(pair.harness).values("3") is None
    assert pair.values("3") is None


def test_what_a_client_holds_is_not_used_for_what_was_stored_again() -> None:
    """A put that dies before it confirms leaves a head; a deletion has taken what it reuses, which is remembered."""
    pair = Pair()
    values = {"x": noise(50_000), "y": 1}
    # The second one seals the end of the value, so the third one has no segment of its own.
    for checkpoint_id, parent in (("1", None), ("2", "1"), ("3", "2")):
        pair.put(checkpoint_id, values, parent)
    other = pair.harness.process()
    pair.harness.run(other.prune(3))
    # The client remembers 3 under the first epoch, and what it shares with 2 under the second one.
    assert pair.values("2") == values
    dying = pair.harness.begin(other.put("3", values, "2", ["y"]))
    dying.until(commits("3"))
    pair.harness.run(pair.harness.process().delete_thread())
    dying.perform()
    assert pair.values("3") is None


def _with_a_delta_channel(pair: Pair, count: int) -> None:
    """Store a way of checkpoints, whose channel is rebuilt from the writes at each."""
    for number in range(count):
        _step(pair, number)


def _step(pair: Pair, number: int) -> None:
    at = thread_config(THREAD, "", str(number - 1) if number else None)
    metadata: Any = {**METADATA, "counters_since_delta_snapshot": {"log": (number, 0)}}
    values = {"x": number} if number else {"x": number, "log": _DeltaSnapshot([noise(50_000)])}
    checkpoint = checkpoint_of(str(number), values)
    pair.run(pair.operations.put(at, checkpoint, metadata, dict.fromkeys(values, 1)))
    config = thread_config(THREAD, "", str(number))
    write = [("log", [noise(20_000, number)])]
    pair.run(pair.operations.put_writes(config, write, "task", ""))


def _history(pair: Pair, checkpoint_id: str) -> list[Any]:
    config = thread_config(THREAD, "", checkpoint_id)
    found = pair.run(pair.operations.get_delta_channel_history(config, ["log"]))
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
    other = Pair(pair.harness, change=lambda _, answer: _without_segments(answer))
    with pytest.raises(CheckpointNotFoundError, match="was deleted while it was read"):
        _history(other, "2")


def test_a_way_back_through_what_has_expired_is_an_error() -> None:
    """DynamoDB has not removed it yet, and may at any moment."""
    pair = Pair(ttl_seconds=1000)
    _with_a_delta_channel(pair, 2)
    pair.harness.now += 2001
    _step(pair, 2)
    with pytest.raises(CheckpointNotFoundError, match="is no longer in the table"):
        _history(pair, "2")


# Requests that are carried out twice


def _store_writes(pair: Pair, size: int) -> None:
    at, writes = thread_config(THREAD, "", "1"), [("x", noise(size))]
    pair.run(pair.operations.put_writes(at, writes, "task", ""))


STORES: dict[str, Callable[[Pair], None]] = {
    "put": lambda pair: pair.put("1", {"x": noise(20_000)}),
    "put-writes": lambda pair: _store_writes(pair, 100_000),
    # More than fits into one request.
    "put-segments": lambda pair: pair.put("1", {"x": noise(300_000)}),
}


@pytest.fixture
def _roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request have some segments."""
    monkeypatch.setitem(remote.ABOUT, "limits", {"body_bytes_max": 400_000, "items_max": 100})


def _has_segments(call: Call, endpoint: str) -> bool:
    return call.method == endpoint and bool(call.params.get("segments"))


@pytest.mark.usefixtures("_roomy")
@pytest.mark.parametrize("endpoint", STORES)
def test_a_request_may_be_carried_out_again_while_a_deletion_removes_what_it_stored(endpoint: str) -> None:
    """The deletion has read the segments of the first time, and removes them after the second."""
    pair, repeated = Pair(), list[Call]()

    def repeat(call: Call, answer: Any) -> Any:
        if repeated or not _has_segments(call, endpoint):
            return answer
        repeated.append(call)
        deletion = pair.harness.begin(pair.harness.process().delete_thread())
        deletion.until(lambda each: each.method == "batch_write_item" and "S#" in repr(each.params))
        answer = pair.ask(call.method, call.params)
        deletion.finish()
        return answer

    pair.change = repeat
    STORES[endpoint](pair)
    stored = pair.harness.items("C#")
    assert repeated
    assert stored
    needed = {items.segment_sk(each) for each in items.named_ids(stored.values())}
    assert needed
    assert needed <= pair.harness.items("S#").keys()


@pytest.mark.parametrize("endpoint", ["put", "put-writes"])
def test_what_was_sent_ahead_is_not_named_once_a_deletion_has_removed_it(endpoint: str) -> None:
    pair, deleted = Pair(), list[Call]()

    def delete(call: Call, answer: Any) -> Any:
        if not deleted and _has_segments(call, "put-segments"):
            deleted.append(call)
            pair.harness.run(pair.harness.process().delete_thread())
        return answer

    pair.change = delete
    STORES[endpoint](pair)
    stored = pair.harness.items("C#")
    assert deleted
    needed = {items.segment_sk(each) for each in items.named_ids(stored.values())}
    assert needed
    assert needed <= pair.harness.items("S#").keys()


@pytest.mark.usefixtures("_roomy")
@pytest.mark.parametrize("endpoint", STORES)
def test_segments_without_a_thread_are_refused(endpoint: str) -> None:
    pair = Pair()
    STORES[endpoint](pair)
    [sent, *_] = [each.params for each in pair.asked if _has_segments(each, endpoint)]
    with pytest.raises(CheckpointerInputError, match="put-segments without segments returns it"):
        pair.ask(endpoint, {**sent, "thread": None})


# What the service is told


def test_a_service_whose_clock_is_ahead_asks_what_is_reused() -> None:
    """What the client takes for far from its expiry has to be extended by the service's clock."""
    pair = Pair(ttl_seconds=1000)
    pair.put("1", {"x": noise(50_000)})
    options = pair.gateway.storage_options
    pair.gateway.storage_options = {**options, "clock": lambda: pair.harness.now - 1500}
    pair.harness.now += 2500
    at = thread_config(THREAD, "", "1")
    checkpoint = checkpoint_of("2", {"x": noise(50_000), "y": 1})
    pair.run(pair.operations.put(at, checkpoint, METADATA, {"y": 1}))
    assert [len(each.params["reused"]) > 0 for each in pair.asked if each.method == "put"][-2:] == [
        False,
        True,
    ]
    pair.harness.now += 999
    assert pair.values() == {"x": noise(50_000), "y": 1}


def test_a_service_whose_clock_is_ahead_asks_what_writes_reuse() -> None:
    pair = Pair(ttl_seconds=1000)
    pair.put("1", {"x": noise(50_000)})
    options = pair.gateway.storage_options
    pair.gateway.storage_options = {**options, "clock": lambda: pair.harness.now - 2100}
    pair.harness.now += 2500
    at = thread_config(THREAD, "", "1")
    pair.run(pair.operations.put_writes(at, [("x", noise(50_000))], "task", ""))
    sent = [len(each.params["reused"]) > 0 for each in pair.asked if each.method == "put-writes"]
    assert sent == [False, True]


def test_what_replaces_something_has_to_name_it() -> None:
    pair = Pair()
    pair.put("1", {"x": "a"})
    pair.asked.clear()
    pair.run(pair.operations.put_writes(thread_config(THREAD, "", "1"), [("y", 1)], "task", ""))
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
    assert items.binary(pair.harness.items("C#")["C#1#"], items.BODY) == body


def test_a_copy_takes_as_many_requests_as_it_needs_and_shows_nothing_before_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "_SEGMENTS_OF_SLICE", 0)
    pair = Pair()
    for number in range(4):
        pair.put(str(number), {"noise": noise(20_000, number)})
    seen: list[bool] = []

    def look(call: Call, answer: Any) -> Any:
        if call.method == "copy-thread":
            seen.append(pair.harness.process().get(thread="copy") is not None)
        return answer

    pair.change = look
    pair.run(pair.operations.copy_thread(THREAD, "copy"))
    assert seen == [False, False, False, False, True]
    for number in range(4):
        assert pair.harness.process().values(str(number), thread="copy") == {"noise": noise(20_000, number)}


def test_a_client_cannot_say_that_a_copy_begins_later_to_have_it_live_longer() -> None:
    pair = Pair(ttl_seconds=1000)
    pair.put("1", {"x": 1})
    copy = {"source_thread_id": THREAD, "target_thread_id": "copy"}
    progress = pair.ask("copy-thread", copy)["progress"]
    anew = {"namespace": None, "below": None, "hidden": None, "began_at": 2**50}
    pair.ask("copy-thread", {**copy, "progress": {**progress, **anew}})
    assert items.ends_at(pair.harness.items("C#", "copy")["C#1#"]) == pair.harness.now + 1000


@pytest.mark.parametrize("part_seconds", [0.0, 60.0])
@pytest.mark.parametrize("damaged", [(), ("0",), ("1", "3"), ("0", "1", "2", "3", "4")])
def test_a_prune_takes_as_many_requests_as_it_needs(
    damaged: tuple[str, ...], part_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each prunes one thread, or what it has time for; one that cannot be pruned keeps no other from it."""
    monkeypatch.setattr(remote, "PART_SECONDS", part_seconds)
    monkeypatch.setattr(operations, "_PRUNED_AT_ONCE", 3)
    pair = Pair()
    threads = [str(number) for number in range(5)]
    for number in (1, 2):
        pair.put(str(number), {"x": number})
    for thread in threads:
        pair.run(pair.operations.copy_thread(THREAD, thread))
        if thread in damaged:
            pair.harness.change(pair.harness.items("C#", thread)["C#2#"], v=None)
    prune = pair.operations.prune(threads, "keep_latest", None)
    if damaged:
        with pytest.raises(CheckpointCorruptionError) as caught:
            pair.run(prune)
        named = f"{len(damaged)} failed, all others were served: "
        assert named in str(caught.value) or len(damaged) == 1
    else:
        pair.run(prune)
    left = [thread for thread in threads if len(pair.harness.items("C#", thread)) == 2]
    assert left == list(damaged)


def test_a_prune_of_nothing_is_no_request() -> None:
    pair = Pair()
    pair.run(pair.operations.prune([], "keep_latest", None))
    assert pair.asked == []
    assert pair.ask("prune", {"thread_ids": []}) == {"left": []}
