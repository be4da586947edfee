"""The saver's operations by hand: arguments that change while a call waits, and answers that are rare."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import errors
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import partition_of
from langgraph.checkpoint.dynamodb._operations.thread_lock import Attempt, hold_on
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Work, collected
from langgraph.checkpoint.dynamodb.gateway import thread_calls
from langgraph.checkpoint.dynamodb.gateway.opaque import SentValue, Value
from langgraph.checkpoint.dynamodb.gateway.thread_calls import (
    ChannelHistory,
    CopiedTo,
    CopyResult,
    History,
    Page,
    PutResult,
    WritesResult,
)
from langgraph.checkpoint.dynamodb.http import operations
from langgraph.checkpoint.dynamodb.http.exchange import Exchange, Inside, ServiceClock, asked_in, call_to
from langgraph.checkpoint.dynamodb.http.operations import Known, KnownCheckpoints
from langgraph.checkpoint.dynamodb.http.saver import GatewayHolder
from langgraph.checkpoint.dynamodb.http.service import Service, loaded
from tests.support.checkpoints import checkpoint_of, thread_config

T = TypeVar("T")

ABOUT = {"wire_version": 3, "owner": None, "limits": {"decompressed_bytes_max": 1 << 20}}
ANSWERS = {"about": ABOUT, "put": PutResult([]), "put-writes": WritesResult(None)}


def _run(
    operation: Generator[Any, Any, T],
    answers: Mapping[str, Any] = ANSWERS,
    then: Callable[[], None] = lambda: None,
) -> tuple[T, list[dict[str, Any]]]:
    """Run an operation, and something else as soon as it waits; return its result and the documents that it sends."""
    sent: list[dict[str, Any]] = []
    try:
        steps = next(operation)
        then()
        while True:
            [step] = steps
            outcome: Any
            if isinstance(step, Work):
                outcome = step.function()
            else:
                assert isinstance(step, Call)
                asked, outcome = asked_in(step), answers[step.method]
                sent += [] if asked is None else [vars(asked.arguments)]
                outcome = next(outcome) if isinstance(outcome, Iterator) else outcome
            steps = operation.send([outcome])
    except StopIteration as stop:
        return stop.value, sent


def _client() -> operations.Client:
    return operations.Client(Service(), KnownCheckpoints(0), Codec(JsonPlusSerializer()))


def _config() -> Any:
    above = {"": "root"}
    return {
        "configurable": {
            "thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1", "checkpoint_map": above
        }
    }  # fmt: skip


def test_a_put_stores_what_it_was_given() -> None:
    config, checkpoint = _config(), checkpoint_of("2", {"x": [1]})
    metadata: Any = {"source": "loop", "parents": {"": "root"}}
    new_versions: Any = {"x": 1}

    def change() -> None:
        for each in (config["configurable"]["checkpoint_map"], config, metadata["parents"], metadata):
            each.clear()
        for name in ("channel_values", "channel_versions", "versions_seen"):
            vars_of: Any = checkpoint
            vars_of[name].clear()
        new_versions.clear()

    _, [sent] = _run(operations.put(_client(), config, checkpoint, metadata, new_versions), then=change)
    assert sent["checkpoint_map"] == {"": "root"}
    assert sent["metadata"] == {"source": "loop", "parents": {"": "root"}}
    assert sent["new_versions"] == sent["checkpoint"]["channel_versions"] == {"x": 1}
    assert list(sent["values"]) == ["x"]


def test_writes_are_stored_as_they_were_given() -> None:
    config, writes = _config(), [("x", 1), ("y", 2)]

    def change() -> None:
        config["configurable"].clear()
        config.clear()
        writes.clear()

    _, [sent] = _run(operations.put_writes(_client(), config, writes, "task", ""), then=change)
    assert sent["checkpoint_map"] == {"": "root"}
    assert [name for name, _ in sent["writes"]] == ["x", "y"]


def test_writes_that_are_still_waited_for_come_behind_those_of_a_clock_that_is_ahead() -> None:
    client = replace(_client(), clock=lambda: 5.0)
    answers = {**ANSWERS, "put-writes": iter([WritesResult(9000), WritesResult(None)])}
    writes = operations.put_writes(client, _config(), [("__resume__", 1)], "task", "")
    assert [each["order"] for each in _run(writes, answers)[1]] == [5000, 9001]


def test_a_list_may_end_with_an_error_that_only_a_later_release_knows() -> None:
    problem = {"type": "urn:langgraph-dynamodb:error:OfALaterRelease", "detail": "it is new"}
    answers = {**ANSWERS, "list": Page([], None, problem)}
    with pytest.raises(errors.CheckpointerError, match="it is new"):
        _run(collected(operations.list_checkpoints(_client(), None, None, None, None)), answers)


def test_a_history_whose_beginning_continues_what_an_earlier_page_had_is_an_error() -> None:
    answers = {**ANSWERS, "delta-channel-history": History({"x": ChannelHistory([], [])}, "1")}
    with pytest.raises(errors.CheckpointCorruptionError, match="has no beginning: '1' is its own ancestor"):
        _run(operations.get_delta_channel_history(_client(), _config(), ["x"]), answers)


def test_a_thread_is_not_copied_onto_itself() -> None:
    with pytest.raises(errors.CheckpointerInputError, match="source and target are both thread 't'"):
        _run(operations.copy_thread(_client(), "t", "t"))


def test_a_copy_that_begins_again_at_every_request_is_given_up() -> None:
    begun = (CopyResult(CopiedTo(bytes([each] * 16), "", "1")) for each in range(100))
    with pytest.raises(errors.ThreadBusyError, match="could not be copied"):
        _run(operations.copy_thread(_client(), "t", "copy"), {**ANSWERS, "copy-thread": begun})


def test_a_value_of_another_serializer_is_named() -> None:
    value = Value("another", b"")
    with pytest.raises(
        errors.CheckpointerConfigurationError, match=r"'x' is intact, but .* its 'another' data"
    ):
        loaded(Codec(JsonPlusSerializer()), value, "channel 'x'")
    with pytest.raises(errors.CheckpointerConfigurationError, match="the response has no data of it"):
        loaded(Codec(JsonPlusSerializer()), Value("msgpack", None), "channel 'x'")


def test_a_place_in_a_list_of_the_table_goes_back_as_it_came() -> None:
    inside = Inside("acme/")
    assert (inside("thread", "t"), inside("position", "acme/t")) == ("acme/t", "acme/t")
    assert inside.named == ["acme/t"]


def test_a_lock_that_another_has_is_lost() -> None:
    hold = hold_on("t", 60, 0, bytes(8))
    answers = {**ANSWERS, "lock": Attempt(None, 1.0)}
    with pytest.raises(errors.ThreadLockLostError):
        _run(GatewayHolder(Service("acme/")).renew(hold), answers)
    _, [sent] = _run(GatewayHolder(Service("acme/")).release(hold), answers)
    assert (sent["thread_id"], sent["action"]) == ("acme/t", "release")


def test_nothing_is_asked_where_nothing_is_wanted() -> None:
    client = _client()
    assert _run(operations.put_writes(client, _config(), [], "task", "")) == (None, [])
    listing = collected(operations.list_checkpoints(client, thread_config("t"), None, None, 0))
    assert _run(listing) == ([], [])
    assert _run(operations.get_delta_channel_history(client, _config(), [])) == ({}, [])


def test_arguments_are_checked_as_the_service_would_before_anything_is_sent() -> None:
    unchecked: Any = "keep_some"
    with pytest.raises(errors.CheckpointerInputError, match="strategy: Input should be 'keep_latest'"):
        _run(Service().ask(thread_calls.prune, "t", unchecked))
    with pytest.raises(errors.CheckpointerInputError, match="makes a key of"):
        _run(Service("acme/").ask(thread_calls.list_runs, "t" * 2045))


@pytest.mark.parametrize(("bytes_max", "text_bytes"), [(1 << 20, (1 << 20) - (64 << 10)), (100_000, 50_000)])
def test_values_that_fit_as_base64_are_sent_and_a_byte_more_is_refused(
    bytes_max: int, text_bytes: int
) -> None:
    answers = {"about": {**ABOUT, "limits": {"decompressed_bytes_max": bytes_max}}}
    fitting = bytes(text_bytes // 4 * 3)
    _run(Service().check_fit(fitting, "it"), answers)
    with pytest.raises(errors.CheckpointerInputError, match=f"and {text_bytes:,} fit into a request"):
        _run(Service().check_fit(fitting + b"0", "it"), answers)


def test_small_things_go_together_and_a_large_one_alone_if_it_fits() -> None:
    answers = {"about": {**ABOUT, "limits": {"decompressed_bytes_max": 64 << 20}}}
    megabytes = dict.fromkeys("abcde", "x" * 999_998)
    assert _run(Service().groups(megabytes, str), answers)[0] == [[*"abcd"], ["e"]]
    largest = "x" * ((64 << 20) - 1002)
    assert _run(Service().groups({"a": largest}, str), answers)[0] == [["a"]]
    with pytest.raises(errors.CheckpointerInputError, match="a has 67,107,865 bytes, and 67,107,864 fit"):
        _run(Service().groups({"a": largest + "x"}, str), answers)


def test_requests_of_a_thread_go_to_one_process() -> None:
    """Proxies choose the process by the header, which the page of the wire describes."""
    call = call_to(thread_calls.list_runs, "acme/", "1")
    headers = Exchange("https://gateway.example", call, 0.0, ServiceClock(30.0)).request()["headers"]
    assert headers["X-Thread"] == sha256(b"acme/1").hexdigest()[:16]


def known(size_bytes: int = 1) -> Known:
    """A checkpoint with a value of this size."""
    return Known("1", {"x": 1}, {"x": SentValue("bytes", bytes(size_bytes))})


def test_the_least_recently_used_is_forgotten() -> None:
    memory = KnownCheckpoints(20_000)
    places = [partition_of(f"thread {number}") for number in range(4)]
    for each in places[:2]:
        memory.remember(each, known(8000))
    assert memory.newest(places[0]) == known(8000)
    memory.remember(places[2], known(8000))
    assert [memory.newest(each) != Known() for each in places] == [True, False, True, False]
    # A new entry takes the place of the one before.
    memory.remember(places[2], known(8100))
    assert memory.newest(places[0]) == known(8000)
    # One for which there is no room drops no other.
    memory.remember(places[3], known(30_000))
    assert [memory.newest(each) != Known() for each in places] == [True, False, True, False]


def test_a_thread_is_forgotten_with_all_its_namespaces() -> None:
    memory = KnownCheckpoints(20_000)
    places = [partition_of("a"), partition_of("a", "inner"), partition_of("b")]
    for each in places:
        memory.remember(each, known())
    memory.forget_thread("a")
    assert [memory.newest(each) for each in places] == [Known(), Known(), known()]
    memory.forget_thread()
    assert memory.newest(places[2]) == Known()
