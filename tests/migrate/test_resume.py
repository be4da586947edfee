"""A migration that is broken off goes on; what is not the source's any more is left alone."""

import gc
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langgraph.checkpoint.dynamodb import CheckpointerError, CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb._operations import delete, reads
from langgraph.checkpoint.dynamodb._operations.delete import delete_thread
from langgraph.checkpoint.dynamodb._operations.reads import ChangedMeanwhileError, load
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, Status, TableEndpoint, endpoint_of, migrate
from langgraph.checkpoint.dynamodb.migrate import table as table_module
from langgraph.checkpoint.dynamodb.migrate.move import ThreadReport, _Move
from langgraph.checkpoint.dynamodb.migrate.record import Record, Ref
from tests.migrate.threads import WAITING, answer, begin, empty, statuses
from tests.support.checkpoints import Conversation, noise, store, thread_config
from tests.support.moving_clock import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


def a_talk(saver: Any, steps: int = 1) -> Conversation:
    """A thread of so many checkpoints."""
    talk = Conversation(saver, "talk")
    for number in range(steps):
        talk.put(log=number)
    return talk


def a_thread() -> SaverEndpoint:
    """A thread that waits, with a subgraph's namespaces."""
    source = empty()
    build, start = WAITING["subgraphs"]
    build(source.saver).invoke(start, thread_config("subgraphs"))
    return source


# Whose writes LangGraph applies first: what a person has answered.
NULL_TASK = "00000000-0000-0000-0000-000000000000"


class PowerCutError(Exception):
    """The process ends here."""


class Failing(SaverEndpoint):
    """A saver that fails at its nth call."""

    def __init__(self, calls_left: int) -> None:
        """Start empty."""
        super().__init__(InMemorySaver())
        self.calls_left = calls_left

    def _call(self) -> None:
        self.calls_left -= 1
        if self.calls_left == 0:
            raise PowerCutError

    def put(self, thread_id: str, record: Record) -> None:
        self._call()
        super().put(thread_id, record)

    def put_writes(self, thread_id: str, record: Record) -> None:
        self._call()
        super().put_writes(thread_id, record)


def test_a_thread_whose_ttl_has_passed_is_as_if_it_were_not_there() -> None:
    """It is moved again as a whole, though all of it is still stored; and as a source it is absent."""
    engine, source = Engine(), a_thread()
    target = endpoint_of(engine.saver(ttl_seconds=3600))
    for _ in range(2):
        assert statuses(migrate(source, target, ["subgraphs"])) == {"subgraphs": Status.MOVED}
        assert statuses(migrate(source, target, ["subgraphs"])) == {"subgraphs": Status.COMPLETE}
        # Nothing of this is to be seen when the same ids are stored again.
        newest: Any = target.saver.get_tuple(thread_config("subgraphs"))
        target.saver.put_writes(newest.config, [("log", ["old"])], "task")
        engine.advance(1.5 * 3600)
    assert statuses(migrate(target, empty(), ["subgraphs"])) == {"subgraphs": Status.ABSENT}


def test_a_thread_that_begins_anew_while_a_move_clears_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, source = Engine(), a_thread()
    target = endpoint_of(engine.saver(ttl_seconds=3600))
    list(migrate(source, target, ["subgraphs"]))
    engine.advance(1.5 * 3600)
    begun = list[Conversation]()

    def deleting(storage: Any, thread_id: str) -> Op[None]:
        talk = Conversation(engine.saver(ttl_seconds=3600), thread_id)
        talk.put(log="begun anew")
        begun.append(talk)
        yield from delete_thread(storage, thread_id)

    monkeypatch.setattr(delete, "delete_thread", deleting)
    [report] = migrate(source, target, ["subgraphs"])
    assert report.status is Status.FAILED
    assert report.problems[0].startswith(
        "ThreadBusyError: thread 'subgraphs' was begun in the target meanwhile"
    )
    assert target.saver.get_tuple(begun[0].config) is not None


def test_a_move_that_fails_at_any_call_goes_on_from_there() -> None:
    source = a_thread()
    size = len(source.refs("subgraphs"))
    for calls in count(1):
        target = Failing(calls)
        [report] = migrate(source, target, ["subgraphs"])
        if report.status is not Status.FAILED:
            break
        assert report.problems == ["PowerCutError: "]
        before = len(target.refs("subgraphs"))
        [report] = migrate(source, target, ["subgraphs"])
        assert not report.problems
        assert report.status is Status.MOVED
        assert report.checkpoints == size - before
    assert calls == 2 * size + 1


@pytest.mark.parametrize("kind", ["subgraphs", "approvals", "delta"])
def test_what_came_since_to_any_older_checkpoint_is_moved_too(kind: str) -> None:
    """Somebody goes back and answers an old question again, at each checkpoint that there is."""
    source, target = empty(), empty()
    begin(source.saver, [kind])
    answer(source.saver, kind)
    for ref in source.refs(kind):
        assert statuses(migrate(source, target, [kind])).keys() == {kind}
        at = thread_config(kind, ref.namespace, ref.checkpoint_id)
        source.saver.put_writes(at, [("log", ["again"]), ("__resume__", ref.checkpoint_id)], NULL_TASK)
        [report] = migrate(source, target, [kind])
        assert (report.status, report.problems, report.checkpoints) == (Status.MOVED, [], 0)
        [report] = migrate(source, target, [kind])
        assert (report.status, report.problems, report.writes) == (Status.COMPLETE, [], 0)


@pytest.mark.parametrize("damage", ["value", "metadata", "parent", "write", "checkpoint"])
def test_what_a_comparison_finds_is_mended_by_the_next_move(damage: str) -> None:
    memory = InMemorySaver()
    source, target = a_thread(), SaverEndpoint(memory)
    assert statuses(migrate(source, target, ["subgraphs"])) == {"subgraphs": Status.MOVED}
    ref = source.refs("subgraphs")[0]
    held = memory.storage["subgraphs"][ref.namespace]
    checkpoint, metadata, parent = held[ref.checkpoint_id]
    if damage == "value":
        for key in [key for key in memory.blobs if key[0] == "subgraphs"]:
            memory.blobs[key] = memory.serde.dumps_typed("damaged")
    elif damage == "metadata":
        held[ref.checkpoint_id] = (checkpoint, memory.serde.dumps_typed({"step": 77}), parent)
    elif damage == "parent":
        held[ref.checkpoint_id] = (checkpoint, metadata, "another")
    elif damage == "checkpoint":
        del held[ref.checkpoint_id]
    else:
        memory.writes.clear()
    before = list(target.records("subgraphs", target.refs("subgraphs")))
    [dry] = migrate(source, target, ["subgraphs"], dry_run=True)
    assert list(target.records("subgraphs", target.refs("subgraphs"))) == before
    [report] = migrate(source, target, ["subgraphs"])
    assert (report.status, report.problems) == (Status.MOVED, [])
    assert (dry.status, dry.checkpoints, dry.writes) == (report.status, report.checkpoints, report.writes)
    [report] = migrate(source, target, ["subgraphs"])
    assert (report.status, report.checkpoints, report.writes) == (Status.COMPLETE, 0, 0)


def test_what_cannot_be_mended_is_told() -> None:
    class Frozen(SaverEndpoint):
        is_frozen = False

        def put_writes(self, thread_id: str, record: Record) -> None:
            if not self.is_frozen:
                super().put_writes(thread_id, record)

    source, target = empty(), Frozen(InMemorySaver())
    talk = a_talk(source.saver)
    assert statuses(migrate(source, target, ["talk"])) == {"talk": Status.MOVED}
    source.saver.put_writes(talk.config, [("log", "more")], "task")
    target.is_frozen = True
    [report] = migrate(source, target, ["talk"])
    assert report.status is Status.FAILED
    assert "the pending writes differ" in report.problems[0]
    assert "delete the thread in the target" in report.problems[0]


@pytest.mark.parametrize("goes_on", [False, True])
def test_writes_that_the_target_alone_has_are_left_alone(goes_on: bool) -> None:
    source, target = empty(), empty()
    talk = a_talk(source.saver)
    source.saver.put_writes(talk.config, [("log", "ours")], "task")
    assert statuses(migrate(source, target, ["talk"])) == {"talk": Status.MOVED}
    target.saver.put_writes(talk.config, [("log", "theirs")], "another")
    if goes_on:
        source.saver.put_writes(talk.config, [("log", "more")], "third")
    before = list(target.records("talk", target.refs("talk")))
    [report] = migrate(source, target, ["talk"])
    assert report.status is (Status.FAILED if goes_on else Status.AHEAD)
    assert list(target.records("talk", target.refs("talk"))) == before


@pytest.mark.parametrize("side", ["comparing", "mending", "storing"])
def test_whoever_stops_waits_for_no_more_than_a_checkpoint(side: str) -> None:
    class Interrupted(SaverEndpoint):
        def records(self, thread_id: str, refs: Any) -> Iterator[Record | None]:
            for record in super().records(thread_id, refs):
                if side == "comparing":
                    stopped.set()
                yield record
            if side == "mending":
                stopped.set()

        def put(self, thread_id: str, record: Record) -> None:
            super().put(thread_id, record)
            stopped.set()

    stopped = threading.Event()
    source, target = empty(), Interrupted(InMemorySaver())
    a_talk(source.saver, 3)
    if side != "storing":
        for ref in source.refs("talk"):
            store(target.saver, thread_config("talk"), ref.checkpoint_id, {"log": "x"})
    report = ThreadReport("talk")
    assert _Move(source, target, report, stopped).run() is Status.FAILED
    assert "interrupted; move the thread again" in report.problems[0]
    assert report.checkpoints == (side == "storing")


def test_what_is_deleted_between_comparing_and_mending_is_left_out() -> None:
    class Pruned(SaverEndpoint):
        def records(self, thread_id: str, refs: Any) -> Iterator[Record | None]:
            yield from super().records(thread_id, refs)
            memory.storage["talk"][""].pop(talk.config["configurable"]["checkpoint_id"], None)

    memory = InMemorySaver()
    source, target = Pruned(memory), empty()
    talk = a_talk(memory)
    store(target.saver, thread_config("talk"), talk.config["configurable"]["checkpoint_id"], {"log": "x"})
    [report] = migrate(source, target, ["talk"])
    assert (report.status, report.checkpoints) == (Status.AHEAD, 0)


@pytest.mark.parametrize("ends_at", [3, 100])
def test_a_conversation_that_goes_on_meanwhile_is_followed(ends_at: int) -> None:
    class GoingOn(SaverEndpoint):
        def refs(self, thread_id: str) -> list[Ref]:
            found = super().refs(thread_id)
            if len(found) < ends_at:
                talk.put(log=len(found))
            return found

    source, target = GoingOn(InMemorySaver()), empty()
    talk = a_talk(source.saver)
    [report] = migrate(source, target, ["talk"])
    ended = ends_at == 3
    assert report.status is (Status.MOVED if ended else Status.GOING_ON)
    assert report.checkpoints == (3 if ended else 5)
    assert len(target.refs("talk")) == report.checkpoints


@pytest.mark.parametrize("both", [False, True])
def test_a_thread_that_was_answered_in_the_target_is_left_alone(both: bool) -> None:
    source, target = a_thread(), empty()
    list(migrate(source, target, ["subgraphs"]))
    answer(target.saver, "subgraphs")
    if both:
        answer(source.saver, "subgraphs")
    there = target.refs("subgraphs")
    [dry] = migrate(source, target, ["subgraphs"], dry_run=True)
    [report] = migrate(source, target, ["subgraphs"])
    assert dry.status is report.status is (Status.FAILED if both else Status.AHEAD)
    assert ["different conversations by now" in each for each in report.problems] == [True] * both
    assert target.refs("subgraphs") == there


@pytest.mark.parametrize("ends_at", [5, 100])
def test_what_was_stored_wrongly_is_found_by_the_comparison_and_mended_or_told(ends_at: int) -> None:
    class Careless(SaverEndpoint):
        puts = 0

        def put(self, thread_id: str, record: Record) -> None:
            self.puts += 1
            if self.puts < ends_at:
                record.checkpoint["channel_values"] |= {"log": "something else", "new": 1}
                record.checkpoint["channel_versions"]["new"] = 1
                wrong: Any = {"step": 7}
                record = Record(record.namespace, record.checkpoint, wrong, "another", ())
            super().put(thread_id, record)

    source, target = empty(), Careless(InMemorySaver())
    a_talk(source.saver, 5)
    [report] = migrate(source, target, ["talk"])
    if ends_at == 5:
        assert (report.status, report.checkpoints, report.problems) == (Status.MOVED, 5 + 4, [])
        return
    assert (report.status, len(report.problems)) == (Status.FAILED, 3)
    for words in ("parent", "metadata", "versions", "'new' is in only one", "channel 'log' differs"):
        assert words in report.problems[0]


class Unreadable(SaverEndpoint):
    """A saver whose checkpoints are gone when they are read."""

    def records(self, thread_id: str, refs: Any) -> Iterator[Record | None]:
        return (None for _ in refs)


def test_what_is_deleted_before_it_is_read_is_not_compared_and_lost_in_the_target() -> None:
    source, target = a_thread(), empty()
    assert statuses(migrate(source, target, ["subgraphs"])) == {"subgraphs": Status.MOVED}
    [report] = migrate(Unreadable(source.saver), target, ["subgraphs"])
    assert report.status is Status.COMPLETE
    [report] = migrate(source, Unreadable(InMemorySaver()), ["subgraphs"])
    assert "the target lacks it" in report.problems[0]


def test_a_failure_that_is_not_a_threads_own_ends_the_migration() -> None:
    class Gone(SaverEndpoint):
        def refs(self, thread_id: str) -> list[Ref]:
            msg = "connection refused"
            raise OSError(msg)

    reports = migrate(Gone(InMemorySaver()), empty(), map(str, range(100)))
    with pytest.raises(
        CheckpointerError, match="20 threads in a row failed; the last: OSError: connection refused"
    ):
        list(reports)


def test_a_report_that_nobody_waits_for_ends_the_migration() -> None:
    source, target = empty(), empty()
    for number in range(20):
        Conversation(source.saver, f"thread-{number}").put(log=1)
    reports = migrate(source, target, source.thread_ids(), parallel=1)
    next(iter(reports))
    del reports
    gc.collect()
    assert 1 <= len(list(target.thread_ids())) < 20


def test_versions_are_translated_alike_by_a_move_that_goes_on(table: TableEndpoint) -> None:
    begin(table.saver, ["fork"])
    target = Failing(3)
    failures = 0
    while next(iter(migrate(table, target, ["fork"]))).status is Status.FAILED:
        failures += 1
        target.calls_left = 5
    [report] = migrate(table, target, ["fork"])
    assert failures > 3
    assert (report.status, report.problems) == (Status.COMPLETE, [])
    versions = {
        version
        for found in target.saver.list(thread_config("fork"))
        for version in found.checkpoint["channel_versions"].values()
    }
    # Two forks have a version each of the same number.
    assert len(versions) > len({str(version).split(".")[0] for version in versions})


@pytest.mark.parametrize("parallel", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(parallel: Any) -> None:
    store = empty()
    with pytest.raises(CheckpointerInputError, match="parallel is"):
        migrate(store, store, [], parallel=parallel)


# Reading our table


def test_a_checkpoint_that_is_replaced_meanwhile_is_read_again(
    table: TableEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(table.saver, thread_config(), "1", {"a": 1})
    left = [1]

    def changing(*arguments: Any) -> Op[Any]:
        left[0] -= 1
        if left[0] >= 0:
            raise ChangedMeanwhileError
        return (yield from load(*arguments))

    monkeypatch.setattr(reads, "load", changing)
    [record] = table.records("thread-1", [Ref("1", "")])
    assert record is not None
    left[0] = 100
    with pytest.raises(CheckpointNotFoundError, match="8 times"):
        list(table.records("thread-1", [Ref("1", "")]))


def test_a_head_that_never_was_a_checkpoint_is_not_moved(
    table: TableEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(table.saver, thread_config(), "1", {"a": 1})

    def nothing(*_: Any) -> Op[None]:
        return None
        yield

    monkeypatch.setattr(reads, "load", nothing)
    target = empty()
    assert statuses(migrate(table, target, ["thread-1"])) == {"thread-1": Status.ABSENT}


def test_the_memory_for_segments_is_bounded(table: TableEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "_SEGMENT_BYTES_KEPT", 10)
    store(table.saver, thread_config(), "1", {"a": noise(50_000)})
    values = [
        record.checkpoint["channel_values"]
        for record in table.records("thread-1", [Ref("1", ""), Ref("1", ""), Ref("2", "")])
        if record is not None
    ]
    assert values == [{"a": noise(50_000)}] * 2
