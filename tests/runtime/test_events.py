"""Events: what each operation's one says, that nothing is measured without them, and that they disturb no call."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any, cast

import boto3
import pytest

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver, ThreadBusyError
from langgraph.checkpoint.dynamodb._runtime.events import Event, Events
from tests.conftest import MakeSaver
from tests.support.checkpoints import Conversation, noise, thread_config
from tests.support.observed import Collected
from tests.support.operations import OPERATIONS, Side, ask, ask_all, both_sides
from tests.support.scripted import Scripted
from tests.support.traffic import Traffic

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

LOCK = {"acquire", "release"}
DELETIONS = ["prune", "delete_for_runs", "delete_thread"]


class Units:
    """The units that DynamoDB reports to a client, whoever asks for them."""

    def __init__(self, client: Any) -> None:
        """Listen to a client."""
        self.total = 0.0
        client.meta.events.register("after-call.dynamodb", self._record)

    def _record(self, parsed: dict[str, Any], **_: Any) -> None:
        reported = parsed.get("ConsumedCapacity", [])
        for each in [reported] if isinstance(reported, dict) else reported:
            self.total += each["CapacityUnits"]


@pytest.fixture
def collected() -> Collected:
    """Give a place for events."""
    return Collected()


# Each operation has one


@both_sides
def test_each_operation_has_one_and_a_deletion_two(
    make_unclosed: MakeSaver, collected: Collected, side: Side
) -> None:
    saver = make_unclosed(on_event=collected)
    ask_all(side, saver, "acme/1")
    saver.close()
    told = [(each.operation, each.outcome) for each in collected.events if each.operation not in LOCK]
    assert [each for each in told if each[1] == "ok"] == [(name, "ok") for name in OPERATIONS]
    assert [each for each in told if each[1] != "ok"] == [(name, "began") for name in DELETIONS]
    assert all(told.index((name, "began")) < told.index((name, "ok")) for name in DELETIONS)
    assert all(each.requests == each.attempts > 0 for each in collected.events)


# What an event says


def test_nothing_is_asked_of_dynamodb_without_them(saver: DynamoDBSaver, traffic: Traffic) -> None:
    ask_all("sync", saver, "thread-1")
    assert not [each for each in traffic.requests if "ReturnConsumedCapacity" in each.params]


def test_units_are_those_that_dynamodb_reports(
    make_saver: MakeSaver, own_client: Any, collected: Collected
) -> None:
    units = Units(own_client)
    ask_all("sync", make_saver(client=own_client, on_event=collected), "thread-1")
    ended = [each for each in collected.events if each.outcome == "ok"]
    assert sum((each.read_units or 0) + (each.write_units or 0) for each in ended) == units.total > 0
    put, read = collected.last("put"), collected.last("get_tuple")
    assert put.write_units is not None
    assert put.write_units * 1024 >= put.bytes_written > 0
    assert (read.write_units, read.bytes_written) == (None, 0)


def test_a_step_reuses_segments_and_finds_its_parent_in_the_cache(
    make_saver: MakeSaver, collected: Collected
) -> None:
    thread = Conversation(make_saver(on_event=collected), "acme/1")
    thread.put(big=noise(100_000))
    first = collected.last("put")
    thread.put(other="x")
    second = collected.last("put")
    assert first.segments_written > 4
    assert first.segments_reused == 0
    # Nothing is stored again.
    assert second.segments_written == 0
    assert second.segments_reused == first.segments_written
    assert second.cache_hits > first.cache_hits
    assert second.cache_misses == 0

    other = Collected()
    assert make_saver(on_event=other).get_tuple(thread.config) is not None
    assert thread.saver.get_tuple(thread.config) is not None
    cold, warm = other.last("get_tuple"), collected.last("get_tuple")
    assert cold.bytes_read > 100_000 > warm.bytes_read
    assert warm.cache_hits > cold.cache_hits == 0


def test_bytes_of_writes_count(make_saver: MakeSaver, collected: Collected) -> None:
    thread = Conversation(make_saver(on_event=collected), "acme/1")
    thread.put(a=1)
    thread.saver.put_writes(thread.config, [("a", noise(3000))], "task")
    assert 3000 < collected.last("put_writes").bytes_written < 4000


@pytest.mark.parametrize(
    ("threads", "tenant"),
    [(["acme/1", "acme/2"], "acme"), (["acme/1", "other/1"], None), (["plain"], None), (["/x"], None)],
)
def test_the_tenant_is_that_of_all_threads(
    make_saver: MakeSaver, collected: Collected, threads: list[str], tenant: str | None
) -> None:
    make_saver(on_event=collected).prune(threads)
    assert collected.last("prune").tenant == tenant


def test_a_new_thread_has_its_tenant_though_other_savers_are_looked_for(
    make_saver: MakeSaver, collected: Collected
) -> None:
    assert make_saver(on_event=collected).get_tuple(thread_config("acme/1")) is None
    event = collected.last("get_tuple")
    assert event.tenant == "acme"
    assert event.requests > 1


def test_ids_are_told_only_where_they_are_asked_for(make_saver: MakeSaver) -> None:
    silent, open_ = Collected(), Collected()
    for on_event in (silent, Events(open_, tenant_of=str.upper, with_ids=True)):
        ask_all("sync", make_saver(on_event=on_event), "thread-of-ada")
    assert "ada" not in repr(silent.events)
    put = open_.last("put")
    assert (put.thread_id, put.tenant) == ("thread-of-ada", "THREAD-OF-ADA")
    assert open_.last("copy_thread").thread_id is None


@both_sides
def test_attempts_waits_and_throttles_are_told(endpoint: Scripted, collected: Collected, side: Side) -> None:
    endpoint.script = [(400, "ThrottlingException"), (500, "InternalServerError")]
    saver = DynamoDBSaver(
        "the-table", endpoint_url=endpoint.address, region_name="us-east-1", on_event=collected
    )
    ask(side, saver, "get_tuple", thread_config())
    saver.close()
    event = collected.last("get_tuple")
    assert event.attempts == event.requests + 2
    assert event.throttled == 1
    assert event.waited_seconds > 0


def test_attempts_of_a_client_s_own_are_told(endpoint: Scripted, collected: Collected) -> None:
    endpoint.script = [(500, "InternalServerError")]
    client = boto3.client("dynamodb", endpoint_url=endpoint.address, region_name="us-east-1")
    with contextlib.closing(client):
        DynamoDBSaver("the-table", client=client, on_event=collected).get_tuple(thread_config())
    event = collected.last("get_tuple")
    assert event.attempts == event.requests + 1


@both_sides
def test_an_error_is_told_by_its_code_or_class(
    make_saver: MakeSaver, endpoint: Scripted, collected: Collected, side: Side
) -> None:
    endpoint.always = (400, "ThrottlingException")
    away = DynamoDBSaver(
        "the-table",
        endpoint_url=endpoint.address,
        region_name="us-east-1",
        retry_seconds=0,
        on_event=collected,
    )
    with pytest.raises(Exception, match="Throttling"):
        ask(side, away, "delete_thread", "acme/1")
    away.close()
    assert [(each.outcome, each.error, each.tenant) for each in collected.events] == [
        ("began", None, "acme"),
        ("error", "ThrottlingException", "acme"),
    ]
    with pytest.raises(CheckpointerInputError):
        make_saver(on_event=collected).delete_thread("")
    assert collected.last("delete_thread").error == "CheckpointerInputError"


def test_waiting_for_a_lock_is_told(make_saver: MakeSaver, collected: Collected) -> None:
    saver = make_saver(on_event=collected)
    with saver.thread_lock("acme/1"), pytest.raises(ThreadBusyError), saver.thread_lock("acme/1", wait=0.2):
        pass
    first, second = collected.of("acquire")
    assert (first.outcome, first.waited_seconds, first.tenant) == ("ok", 0, "acme")
    # That a lock keeps others out is no error, on which an alarm would ring.
    assert (second.outcome, second.error) == ("refused", None)
    assert 0 < second.waited_seconds <= 0.2


async def test_a_cancelled_call_is_interrupted(make_saver: MakeSaver, collected: Collected) -> None:
    saver = make_saver(on_event=collected)
    await saver.aget_tuple(thread_config("acme/1"))
    task = asyncio.create_task(saver.aget_tuple(thread_config("acme/1")))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert collected.last("get_tuple").outcome == "interrupted"


# Lists


def test_a_list_ends_where_its_consumer_stops_and_measures_nothing_of_it(
    make_saver: MakeSaver, collected: Collected
) -> None:
    saver = make_saver(on_event=collected)
    thread = Conversation(saver, "acme/1")
    for number in range(3):
        thread.put(a=number)
    listed = saver.list(thread_config("acme/1"))
    next(listed)
    saver.get_tuple(thread_config("other/1"))
    assert not collected.of("list")
    cast("Generator[Any, None, None]", listed).close()
    event = collected.last("list")
    assert (event.outcome, event.tenant, event.requests) == ("ok", "acme", 1)


async def test_an_async_list_too(make_saver: MakeSaver, collected: Collected) -> None:
    saver = make_saver(on_event=collected)
    thread = Conversation(saver, "acme/1")
    for number in range(3):
        await thread.aput(a=number)
    listing = cast("AsyncGenerator[Any, None]", saver.alist(thread_config("acme/1")))
    async with contextlib.aclosing(listing) as listed:
        await anext(listed)
        await saver.aget_tuple(thread_config("other/1"))
    event = collected.last("list")
    assert (event.outcome, event.tenant, event.requests) == ("ok", "acme", 1)
    assert len([each async for each in saver.alist(thread_config("acme/1"))]) == 3
    assert len(collected.of("list")) == 2


# No call is disturbed


class Tracer:
    """An `on_event` with spans, which notes what is called, and may fail at one place."""

    def __init__(self, fails_at: str = "nowhere") -> None:
        """Take where it fails."""
        self.fails_at = fails_at
        self.seen: list[str] = []

    def _reach(self, here: str) -> None:
        self.seen.append(here)
        if here == self.fails_at:
            raise ValueError("broken on purpose")

    def begin(self, event: Event) -> Tracer:
        """Begin a span."""
        assert event.operation
        assert event.table_name
        self._reach("begin")
        return self

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make it current."""
        self._reach("current")
        yield
        self._reach("left")

    def end(self, event: Event) -> None:
        """End the span."""
        del event
        self._reach("end")

    def __call__(self, event: Event) -> None:
        """Receive an event."""
        del event
        self._reach("event")

    def tenant_of(self, thread_id: str) -> str:
        """Return a tenant."""
        self._reach("tenant_of")
        return thread_id


@both_sides
@pytest.mark.parametrize("where", ["begin", "current", "left", "end", "event", "tenant_of"])
def test_a_callable_that_fails_fails_no_call_and_is_logged_once(
    make_unclosed: MakeSaver, caplog: pytest.LogCaptureFixture, side: Side, where: str
) -> None:
    broken = Tracer(where)
    saver = make_unclosed(on_event=Events(broken, tenant_of=broken.tenant_of))
    ask_all(side, saver, "thread-1")
    saver.close()
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
    assert "on_event failed" in caplog.text
    assert "broken on purpose" in caplog.text


def test_a_callable_that_blocks_is_logged_once(
    make_saver: MakeSaver, caplog: pytest.LogCaptureFixture
) -> None:
    saver = make_saver(on_event=lambda event: time.sleep(0.2))
    for _ in range(2):
        saver.get_tuple(thread_config())
    (record,) = caplog.records
    assert "on_event took 0.2" in record.getMessage()


def test_a_span_is_current_while_its_operation_runs(make_saver: MakeSaver, own_client: Any) -> None:
    tracer = Tracer()
    own_client.meta.events.register("before-call.dynamodb", lambda model, **_: tracer.seen.append(model.name))
    make_saver(client=own_client, on_event=tracer).get_tuple(thread_config())
    assert tracer.seen[:3] == ["begin", "current", "Query"]
    assert tracer.seen[-3:] == ["left", "event", "end"]
