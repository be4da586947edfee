"""Values between client and service: what is sent, what the service wants, and what it makes of crafted requests.

Both run on a DynamoDB in memory, with nothing in between, and a test may change what is sent.
"""

import base64
import itertools
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from sys import getsizeof
from typing import Any, TypeVar

import ormsgpack
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic_core import to_json

from langgraph.checkpoint.dynamodb import errors
from langgraph.checkpoint.dynamodb._format.codec import UnreadableError
from langgraph.checkpoint.dynamodb._format.compression import zstd
from langgraph.checkpoint.dynamodb._format.items import partition_of
from langgraph.checkpoint.dynamodb._format.wire import delta_of, digest_of
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, collected
from langgraph.checkpoint.dynamodb._runtime.storage import Cache
from langgraph.checkpoint.dynamodb.gateway import problems, thread_calls
from langgraph.checkpoint.dynamodb.gateway.call import endpoints_of
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.http import exchange, operations
from langgraph.checkpoint.dynamodb.http.operations import KnownCheckpoints
from tests.gateway.through import remote
from tests.gateway.through.remote import answered, asking, client_of, content_of
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import THREAD, Harness

T = TypeVar("T")

METADATA: Any = {"source": "loop", "step": 1}
SERDE = JsonPlusSerializer()
ENDPOINTS = {each.name: each for each in endpoints_of(thread_calls)}
PLACE = partition_of(THREAD)


@dataclass
class Pair:
    """A client and a service that keeps its cache, until it is replaced."""

    harness: Harness = field(default_factory=Harness)
    limits: Limits = field(default_factory=Limits)
    change: Callable[[Call], Call] = lambda call: call
    asked: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start both."""
        self.storage = self.harness.process().storage
        self.client = client_of(self.storage)

    def another_service(self) -> None:
        """Let the next requests meet a service that has just started."""
        self.storage = replace(self.storage, cache=Cache(1 << 20))

    def run(self, operation: Op[T]) -> T:
        """Run an operation of the client to its end."""
        return self.harness.run(asking(operation, self._asked))

    def ask(self, endpoint: str, **document: Any) -> Any:
        """Send a request by hand."""
        content = to_json(document, bytes_mode="base64")
        found = content_of(self.storage, ENDPOINTS[endpoint], content, self.limits)
        return json.loads(self.harness.run(found))

    def _asked(self, call: Call) -> Op[Any]:
        call = self.change(call)
        self.asked.append(call)
        try:
            return (yield from answered(self.storage, call, self.limits))
        except errors.CheckpointerError as error:
            return error

    def put(
        self, step: int, values: dict[str, Any], new: Sequence[str] | None = None, thread: str = THREAD
    ) -> list[Call]:
        """Store a checkpoint whose parent is the one before; return the requests for it."""
        config = thread_config(thread, "", str(step - 1) if step else None)
        checkpoint = checkpoint_of(str(step), values)
        new_versions: dict[str, str | int | float] = dict.fromkeys(values if new is None else new, step + 1)
        checkpoint["channel_versions"] = {name: new_versions.get(name, 1) for name in values}
        before = len(self.asked)
        self.run(operations.put(self.client, config, checkpoint, METADATA, new_versions))
        return [each for each in self.asked[before:] if each.method == "put"]

    def values(self, client: operations.Client | None = None) -> Any:
        """Read the newest values with a client, by default one that remembers nothing."""
        config = thread_config(THREAD)
        found: Any = self.run(operations.get_tuple(client or client_of(self.storage), config))
        return found.checkpoint["channel_values"]


def sent_in(call: Call) -> Any:
    """The arguments of a request."""
    asked: Any = exchange.asked_in(call)
    return asked.arguments


def log(count: int) -> list[str]:
    """Messages of a thread."""
    return [noise(500, each).hex() for each in range(count)]


# What is sent


def test_a_later_step_sends_what_it_adds() -> None:
    pair = Pair()
    sizes = []
    for step in range(6):
        if step == 4:
            # Which takes the bases from the table.
            pair.another_service()
        [call] = pair.put(step, {"log": log(10 + step), "kept": "x" * 5000}, None if step == 0 else ["log"])
        sizes.append(exchange.size_of(exchange.asked_in(call)))
    assert sizes[0] > 15_000
    assert max(sizes[1:]) < 2500
    assert pair.values() == {"log": log(15), "kept": "x" * 5000}


def test_what_the_agent_changes_while_the_service_wants_more_is_not_stored() -> None:
    pair = Pair()
    kept = {"messages": ["as it was"]}
    pair.put(0, {"log": log(40), "kept": kept})
    # A client that knows nothing of the thread, and a parent that is gone.
    pair.client = client_of(pair.storage)
    pair.harness.run(pair.harness.process().delete_thread())
    pair.another_service()

    def change(call: Call) -> Call:
        kept["messages"].append("changed")
        return call

    pair.change = change
    first, second = pair.put(1, {"log": log(41), "kept": kept}, ["log"])
    sent = [json.loads(exchange.encoded(sent_in(call))) for call in (first, second)]
    assert (sent[0]["values"].keys(), sent[0]["kept"]) == ({"log"}, ["kept"])
    assert sent[1]["values"].keys() == {"log", "kept"}
    assert pair.values() == {"log": log(41), "kept": {"messages": ["as it was"]}}


def test_a_service_that_never_has_enough_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()

    def wants(*_given: Any) -> Op[Any]:
        yield from ()
        return thread_calls.PutResult(["log"]) if _given[1].method == "put" else remote.ABOUT

    monkeypatch.setattr("tests.gateway.through.test_values.answered", wants)
    with pytest.raises(errors.CheckpointerError, match="keeps asking"):
        pair.put(0, {"log": []})


def test_a_reader_gets_what_it_does_not_have() -> None:
    pair = Pair()
    pair.put(0, {"log": log(40), "kept": noise(9000)})
    writer = pair.client
    pair.client = client_of(pair.storage)
    assert pair.values(pair.client) == {"log": log(40), "kept": noise(9000)}
    have = pair.client.memory.newest(PLACE)
    digests = {name: digest_of(each.data) for name, each in have.values.items()}
    pair.client = writer
    pair.put(1, {"log": log(41), "kept": noise(9000)}, ["log"])
    found = pair.ask("get-tuple", thread_id=THREAD, have=[*digests.values()])
    values = found["checkpoint"]["values"]
    same = base64.b64encode(digests["kept"]).decode()
    assert values["kept"] == {"type": "bytes", "data": None, "digest": same}
    assert (values["log"]["data"] is None, values["log"]["digest"]) == (False, None)
    reader = replace(writer, memory=KnownCheckpoints(1 << 20))
    reader.memory.remember(PLACE, have)
    assert pair.values(reader) == {"log": log(41), "kept": noise(9000)}


def test_what_does_not_fit_into_an_answer_is_asked_for() -> None:
    pair = Pair(limits=Limits(body_bytes_max=20_000))
    values = {f"channel {number}": noise(6000, number) for number in range(7)}
    pair.put(0, values)
    writes = [(f"written {number}", noise(5000, 10 + number)) for number in range(7)]
    pair.run(operations.put_writes(pair.client, thread_config(THREAD, "", "0"), writes, "task", "path"))
    assert pair.values() == values
    assert sum(each.method == "get-tuple" for each in pair.asked) > 7
    before = len(pair.asked)
    listed = operations.list_checkpoints(client_of(pair.storage), thread_config(THREAD), None, None, None)
    [found] = pair.run(collected(listed))
    assert found.checkpoint["channel_values"] == values
    assert found.pending_writes == [("task", *each) for each in writes]
    assert {each.method for each in pair.asked[before:]} == {"list", "get-tuple", "about"}


@pytest.mark.parametrize(("checkpoint_id", "found_id"), [(None, "0"), ("1", None)])
@pytest.mark.parametrize("first", ["get-tuple", "list"])
def test_what_is_deleted_before_all_of_it_came_is_gone(
    first: str, checkpoint_id: str | None, found_id: str | None
) -> None:
    pair = Pair(limits=Limits(body_bytes_max=20_000))
    values = {f"channel {number}": noise(6000, number) for number in range(7)}
    for step in range(2):
        pair.put(step, values)
    pair.asked.clear()

    def delete_in_between(call: Call) -> Call:
        if [each.method for each in pair.asked] == ["about", first]:
            (head,) = pair.harness.items("C#1#").values()
            pair.harness.remove(head)
        return call

    pair.change = delete_in_between
    client, config = client_of(pair.storage), thread_config(THREAD, "", checkpoint_id)
    if first == "list":
        found = pair.run(collected(operations.list_checkpoints(client, config, None, None, None)))
    else:
        # If it was the newest one, another is that now.
        found = list(filter(None, [pair.run(operations.get_tuple(client, config))]))
    shown = [(each.checkpoint["id"], each.checkpoint["channel_values"]) for each in found]
    assert shown == ([] if found_id is None else [(found_id, values)])


@pytest.mark.parametrize("what", [{"checkpoint_ns": ""}, {"checkpoint_id": "1"}])
def test_a_list_of_all_threads_cannot_be_of_a_part_of_each(what: dict[str, Any]) -> None:
    with pytest.raises(errors.CheckpointerInputError, match="need a thread_id"):
        Pair().ask("list", **what)


def test_a_request_that_is_too_large_is_refused_by_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(remote.ABOUT, "limits", {"decompressed_bytes_max": 200_000})
    pair = Pair()
    with pytest.raises(errors.CheckpointerInputError, match=r"checkpoint '0' of .* raise body_bytes_max"):
        pair.put(0, {"x": noise(200_000)})
    assert [each.method for each in pair.asked] == ["about"]


def test_another_version_of_the_wire_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(remote.ABOUT, "wire_version", 99)
    with pytest.raises(errors.CheckpointerConfigurationError, match="speaks version 99 of the wire format"):
        Pair().values()


def test_a_checkpoint_has_only_json_beside_its_values() -> None:
    pair = Pair()
    checkpoint: Any = {**checkpoint_of("1", {}), "more": {1, 2}}
    with pytest.raises(errors.CheckpointSerializationError, match=r"checkpoint\['more'\] is of type set"):
        pair.run(operations.put(pair.client, thread_config(THREAD), checkpoint, METADATA, {}))
    assert pair.asked == []


# Crafted requests


def crafted(**more: Any) -> dict[str, Any]:
    """A put of a child of the first checkpoint."""
    return {
        "thread_id": THREAD,
        "parent_checkpoint_id": "0",
        "checkpoint": {"id": "1", "channel_versions": {"log": 2}},
        "metadata": {},
        "new_versions": {"log": 2},
        "values": {},
        **more,
    }


def digest(value: Any) -> bytes:
    """The digest of a value as the client names it."""
    return sha256(SERDE.dumps_typed(value)[1]).digest()[:16]


def delta_to(value: Any, data: bytes = bytes(3000)) -> dict[str, Any]:
    """A value as its delta to another one."""
    return {"type": "msgpack", "base": digest(value), "data": delta_of(SERDE.dumps_typed(value)[1], data)}


# A frame of zstd says the size of its content in front, here in four bytes behind five.
SIZE = slice(5, 9)


@pytest.mark.parametrize(
    "crafts",
    [
        lambda delta: delta[:-1],
        lambda delta: delta + b"more",
        lambda delta: delta_of(noise(40_000, 9), noise(40_000, 9)),
        lambda delta: delta[: SIZE.start] + (10).to_bytes(4, "little") + delta[SIZE.stop :],
        lambda delta: delta[: SIZE.start] + (60 << 20).to_bytes(4, "little") + delta[SIZE.stop :],
    ],
    ids=["cut off", "continued", "to another base", "larger than it says", "smaller than it says"],
)
def test_a_delta_that_does_not_fit_its_base_is_refused(crafts: Callable[[bytes], bytes]) -> None:
    pair = Pair()
    pair.put(0, {"log": log(40)})
    delta = delta_to(log(40), noise(50_000).hex().encode())
    with pytest.raises(errors.CheckpointerInputError, match="the delta of channel 'log' is damaged"):
        pair.ask("put", **crafted(values={"log": delta | {"data": crafts(delta["data"])}}))
    assert pair.harness.process().get("1") is None


def test_a_delta_that_describes_gigabytes_is_refused_before_it_is_built() -> None:
    pair = Pair()
    pair.put(0, {"log": log(40)})
    large = delta_to(log(40), bytes(50 << 20))
    assert len(large["data"]) < 10_000
    with pytest.raises(problems.ProblemError, match="104,857,600 bytes"):
        pair.ask("put", **crafted(values={"log": large, "other": large}))


@pytest.mark.parametrize("where", ["another thread", "another namespace", "another channel", "nowhere"])
def test_a_base_is_only_what_the_parent_has_in_the_channel(where: str) -> None:
    """Whoever knows a digest does not get what it is of."""
    pair = Pair()
    pair.put(0, {"log": log(2)})
    places = {
        "another thread": ("0", "other", ""),
        "another namespace": ("0", THREAD, "inner"),
        "another channel": ("9", THREAD, ""),
    }
    if where in places:
        checkpoint_id, thread, namespace = places[where]
        process = pair.harness.process()
        values = {"log": log(40)} if where != "another channel" else {"secret": log(40)}
        pair.harness.run(process.put(checkpoint_id, values, thread=thread, namespace=namespace))
    assert pair.ask("put", **crafted(values={"log": delta_to(log(40))})) == {"wanted": ["log"]}
    assert pair.harness.process().get("1") is None


DELTA = zstd.compress(b"x")
_STREAM = zstd.ZstdCompressor()
UNSIZED = _STREAM.compress(b"x") + _STREAM.flush()


@pytest.mark.parametrize(
    ("field_name", "value"),
    [
        ("checkpoint", {"id": "1", "channel_versions": []}),
        ("checkpoint", {"id": "1"}),
        ("values", {"log": {"type": "msgpack"}}),
        ("values", {"log": {"type": "msgpack", "data": b"", "base": bytes(16), "delta": DELTA}}),
        ("values", {"log": {"type": "msgpack", "base": b"short", "data": DELTA}}),
        ("values", {"log": {"type": "msgpack", "base": bytes(16), "data": b"no frame"}}),
        ("values", {"log": {"type": "msgpack", "base": bytes(16), "data": UNSIZED}}),
    ],
)
def test_what_is_no_request_is_refused(field_name: str, value: Any) -> None:
    with pytest.raises(errors.CheckpointerInputError):
        Pair().ask("put", **crafted(**{field_name: value}))


def test_an_order_in_the_far_future_is_refused() -> None:
    pair = Pair()
    pair.put(0, {"x": 1})
    asked: dict[str, Any] = {"thread_id": THREAD, "checkpoint_id": "0", "task_id": "task"}
    writes = [["__interrupt__", {"type": "null", "data": b""}]]
    latest = int(pair.storage.clock() * 1000) + 24 * 3600 * 1000
    with pytest.raises(errors.CheckpointerInputError, match="more than a day from now"):
        pair.ask("put-writes", **asked, writes=writes, order=latest + 1)
    assert not pair.harness.items("C#0#W#")
    assert pair.ask("put-writes", **asked, writes=writes, order=latest) == {"later": None}
    assert pair.ask("put-writes", **asked, writes=writes, order=latest - 1) == {"later": latest}


# Metadata


DEEP = b"\x91" * 5000 + b"\xc0"
BOMB = b"\xdd\x00\x00\xff\x00" + bytes(0xFF00)
HOSTILE = {
    "a deep list": ("msgpack", DEEP),
    "a deep list as JSON": ("json", b"[" * 9000),
    "a deep object as JSON": ("json", b'{"a":' + b"[" * 500 + b"]" * 500 + b"}"),
    "many values": ("msgpack", BOMB),
    "too large": ("msgpack", ormsgpack.packb({"a": bytes(70_000)})),
    "no msgpack": ("msgpack", b"\xc1"),
    "no object": ("msgpack", ormsgpack.packb([1])),
    "keys that are no text": ("msgpack", ormsgpack.packb({1: 2}, option=ormsgpack.OPT_NON_STR_KEYS)),
    "objects in each other": (
        "msgpack",
        ormsgpack.packb({"a": ormsgpack.Ext(0, b"\x93\xa1a\xa1B\x91" + DEEP)}),
    ),
    "encrypted": ("msgpack+aes", bytes(50)),
    "a pickle": ("pickle", b"cos\nsystem\n(S'x'\ntR."),
}


@pytest.mark.parametrize(("kind", "data"), HOSTILE.values(), ids=HOSTILE)
def test_typed_metadata_is_returned_as_it_came_costs_little_and_is_no_damage(kind: str, data: bytes) -> None:
    """A list of all goes on behind it, and no backup has anything better."""
    pair = Pair()
    typed = {"type": kind, "data": data}
    assert pair.ask("put", **crafted(metadata={"step": 1}, typed_metadata=typed)) == {"wanted": []}
    found = pair.ask("get-tuple", thread_id=THREAD)["checkpoint"]
    assert found["typed_metadata"] == {"type": kind, "data": base64.b64encode(data).decode(), "digest": None}
    # Only its client can tell whether it matches.
    listed = pair.ask("list", thread_id=THREAD, filter={"a": 1})["checkpoints"]
    assert len(listed) in (0, 1)
    assert exchange.size_of(found) < 200_000
    direct: Op[Any] = get_tuple(pair.harness.process().storage, thread_config(THREAD))
    through: Op[Any] = operations.get_tuple(pair.client, thread_config(THREAD))
    for run, read in ((pair.harness.run, direct), (pair.run, through)):
        with suppress(UnreadableError):
            assert isinstance(run(read).metadata, dict)


def test_the_metadata_of_a_list_count_as_memory() -> None:
    pair, held = Pair(), list[int]()
    lists: list[Any] = [[] for _ in range(2000)]
    pair.harness.run(pair.harness.process().put("1", {}, lists=lists))
    serving = replace(remote.served_on(pair.harness.process().storage), held=held.append)
    pair.harness.run(thread_calls.list_checkpoints(serving, THREAD))
    taken = getsizeof(lists) + len(lists) * getsizeof([])
    # What counts as read is held three times.
    assert taken <= 3 * sum(held) < 2 * taken


def test_a_list_that_can_read_nothing_ends_its_pages_in_time_and_comes_to_its_end() -> None:
    pair, pages = Pair(), list[Any]()
    for thread in "abc":
        pair.harness.run(pair.harness.process().put("0", {"x": 1}, thread=thread, run_id="r"))
        [head] = pair.harness.items("C#", thread).values()
        pair.harness.change(head, body={"B": b"\0"})
    pair.limits = Limits().model_copy(update={"request_seconds_max": -1})
    asked = {"filter": {"run_id": "r"}, "before": None, "limit": 10}
    while not pages or pages[-1]["after"]:
        asked["after"] = pages[-1]["after"] if pages else None
        pages.append(pair.ask("list", **asked))
    assert [each["problem"] and each["problem"]["detail"][:12] for each in pages] == [
        *(f"item PK='{each}#'" for each in "abc"),
        None,
    ]
    assert not any(each["checkpoints"] for each in pages)


@pytest.mark.parametrize("data", [rb'{"a":["\ud800"],"b":1}', rb'{"\ud800":1,"b":1}'])
def test_text_that_utf_8_cannot_hold_is_only_in_typed_metadata(data: bytes) -> None:
    pair = Pair()
    typed = {"type": "json", "data": data}
    pair.ask("put", **crafted(typed_metadata=typed))
    found = pair.ask("get-tuple", thread_id=THREAD)["checkpoint"]
    assert found["metadata"] == {}
    assert base64.b64decode(found["typed_metadata"]["data"]) == data
    assert pair.ask("list", thread_id=THREAD)["checkpoints"] == [found]


def long_history(pair: Pair) -> RunnableConfig:
    """Store a thread of eight steps with a large value, and several writes a step; return its newest checkpoint."""
    config = thread_config(THREAD)
    for number in range(8):
        new: dict[str, str | int | float] = {} if number else {"log": 1}
        checkpoint = checkpoint_of(str(number), {} if number else {"log": [noise(1500, 100)]})
        config = pair.run(operations.put(pair.client, config, checkpoint, METADATA, new))
        for task in range(3):
            writes = [("log", [noise(400, 3 * number + task)])]
            pair.run(operations.put_writes(pair.client, config, writes, f"{task}", ""))
    return config


def test_a_history_that_is_larger_than_an_answer_comes_in_pages() -> None:
    pair = Pair(limits=Limits(body_bytes_max=2000))
    config, sizes = long_history(pair), list[int]()

    def ask(call: Call) -> Op[Any]:
        answer = yield from answered(pair.storage, call, pair.limits)
        sizes.append(exchange.size_of(answer))
        return answer

    reading = operations.get_delta_channel_history(pair.client, config, ["log", "none"])
    history = pair.harness.run(asking(reading, ask))
    assert history["log"]["seed"] == [noise(1500, 100)]
    assert [value for *_, value in history["log"]["writes"]] == [[noise(400, each)] for each in range(21)]
    assert history["none"] == {"writes": []}
    # The seed is larger than half a body, so it comes alone.
    assert max(sizes) < 1900
    assert len(sizes) < 30


def test_a_history_whose_checkpoints_are_deleted_between_pages_is_no_shorter_one() -> None:
    pair = Pair(limits=Limits(body_bytes_max=2000))
    config = long_history(pair)

    def ask(call: Call) -> Op[Any]:
        asked = exchange.asked_in(call)
        if asked is not None and getattr(asked.arguments, "after", None) is not None:
            content = to_json({"thread_id": THREAD})
            yield from content_of(pair.storage, ENDPOINTS["delete-thread"], content)
        return (yield from answered(pair.storage, call, pair.limits))

    reading = operations.get_delta_channel_history(pair.client, config, ["log"])
    with pytest.raises(errors.CheckpointNotFoundError, match="was deleted while it was read"):
        pair.harness.run(asking(reading, ask))


@pytest.mark.parametrize(("seconds_max", "speed"), [(16, 1 / 8), (1000, 1 / 4)])
def test_a_page_ends_after_a_quarter_of_its_time_or_8_seconds_also_if_nothing_matches(
    seconds_max: float, speed: float
) -> None:
    pair = Pair(limits=Limits(request_seconds_max=seconds_max))
    config = thread_config(THREAD)
    for number in range(40):
        metadata: Any = {"source": "loop", "wanted": number == 3}
        config = pair.run(
            operations.put(pair.client, config, checkpoint_of(f"{number:02}", {}), metadata, {})
        )
    ticking = itertools.count()
    # Reading a page of the table takes a little more than four seconds of it, or than eight.
    pair.storage = replace(pair.storage, clock=lambda: next(ticking) * speed)
    page = pair.ask("list", thread_id=THREAD, filter={"wanted": True})
    assert page["checkpoints"] == []
    assert page["after"] == {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": "24"}
    listed = operations.list_checkpoints(pair.client, thread_config(THREAD), {"wanted": True}, None, None)
    assert [each.checkpoint["id"] for each in pair.run(collected(listed))] == ["03"]
