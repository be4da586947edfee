"""What the simulated processes do: conversations, deletions, copies and readers, and what is looked at in the end."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, CheckpointTuple
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb import _format, _operations, errors
from langgraph.checkpoint.dynamodb._format import items, limits, schema
from langgraph.checkpoint.dynamodb._operations import threads, verify
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, Wait, collected
from tests.simulation.directory import OWNER_FROM, OWNERS, DirectoryHistory, owner_of
from tests.simulation.history import (
    DELTA,
    RESUME,
    SKEW_SECONDS_MAX,
    START,
    Answer,
    Copy,
    Deletion,
    History,
    Put,
    Record,
    Violation,
    Writes,
)
from tests.simulation.savers import TableSaver
from tests.simulation.schedule import Choices
from tests.simulation.simulator import FAIR, MEMORY_BYTES, Actor, Faults, Process, Simulator, keys_of
from tests.simulation.snapshot import Snapshot
from tests.support.checkpoints import checkpoint_of, thread_config

# Everything that the real sizes make happen to states of megabytes, these make happen to states of a few hundred bytes.
SMALL_LIMITS = {
    "SEGMENT_BYTES_MIN": 48,
    "LARGE_SEGMENT_BYTES_MIN": 96,
    "CUT_RANGE_BYTES": 112,
    "SEGMENT_BYTES_MAX": 320,
    "INLINE_STATE_BYTES_MAX": 100,
    "SEALED_TAIL_BYTES_MIN": 40,
    "SHARED_BYTES_MIN": 60,
    "NEW_BYTES_INLINE_MAX": 60,
    "WRITE_UNIT_BYTES": 128,
    "BODY_BYTES_MAX": 700,
    "METADATA_BYTES_MAX": 400,
    "WRITES_BYTES_MAX": 120,
    "INDEX_GROUP": 2,
    "HEAD_IDS_MAX": 8,
    "QUERIED_SEGMENTS_MIN": 3,
    "QUERIED_SEGMENTS_MAX": 12,
    "_SEGMENTS_AT_ONCE": 3,
    "_CHECKPOINTS_AT_ONCE": 2,
    # No schedule takes longer, and a list of all threads asks for each day.
    "DAYS_LISTED": 8,
}
TEXT_BYTES = 60
SMALL_BYTES = 20
# One of so many small values changes in each step.
SMALL_CHANNELS = 8
_EVER = 1e9
NOTHING: Mapping[str, Any] = {}
OWN_RUN = "a run for each"
# The namespaces of stateful subgraphs.
SUBGRAPHS = ("inner", "beside")
# Of the checkpoints that a list has shown, every so many are also read by their ids.
READ_EVERY = 3
# Every so many checkpoints hold a snapshot of the delta channel.
SNAPSHOT_STEPS = 4

NETWORK_ERRORS = (EndpointConnectionError, ReadTimeoutError, ClientError)

# As a history prints it.
_MOMENT = re.compile(r"Moment\(move=(\d+), seconds=([\d.]+)\)")

_T = TypeVar("_T")
Flow = Generator[Any, Any, None]
MakeSaver = Callable[[Simulator, Process], TableSaver]


def use_small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale sizes down, so that small states have segments, index segments and tails, and small values segments."""
    # Packages above the saver have none of their own, and modules that are made to be run.
    for module in (
        module
        for package in (_format, _operations)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ):
        loaded = importlib.import_module(module.name)
        for name in SMALL_LIMITS.keys() & vars(loaded).keys():
            monkeypatch.setattr(loaded, name, SMALL_LIMITS[name])
    # All that the store has of its own.
    monkeypatch.setattr("langgraph.store.dynamodb.put.INLINE_VALUE_BYTES_MAX", 80)


def text(*seed: object) -> str:
    """Return text that does not compress and is the same for the same seed."""
    return random.Random(repr(seed)).randbytes(TEXT_BYTES // 2).hex()


class World:
    """One simulated run: the simulator, and the history of what the actors were told."""

    def __init__(
        self,
        choices: Choices,
        faults: Faults = FAIR,
        *,
        switches_max: int | None = None,
        ttls_seconds: Sequence[int | None] = (None,),
        memories_bytes: Sequence[int] = (MEMORY_BYTES,),
        delta: bool = False,
        directory: bool = False,
        saver: MakeSaver = TableSaver,
    ) -> None:
        """Start with an empty table.

        Args:
            choices: What decides.
            faults: How likely each kind of bad luck is.
            switches_max: See `Simulator`.
            ttls_seconds: The savers' option: each process has one of these.
            memories_bytes: How much processes remember: each has one of these.
            delta: Whether the checkpoints have a delta channel.
            directory: Whether puts enter their threads in the directory.
            saver: The saver of a process.
        """
        self._make_saver = saver
        self._savers: dict[str, TableSaver] = {}
        self.simulator = Simulator(
            choices,
            faults,
            switches_max=switches_max,
            ttls_seconds=ttls_seconds,
            memories_bytes=memories_bytes,
        )
        self.history = History(index_lags=faults.stale > 0, now=self.simulator.clock)
        self.directory = DirectoryHistory(self.history) if directory else None
        self.simulator.owner_from = OWNER_FROM if directory else None
        self.simulator.nobody_waits = self._note_unwatched
        self.simulator.took_effect = self._note_shown
        self._unwatched: set[tuple[str, str]] = set()
        self._delta = delta
        self._checkpoints = 0

    def saver(self, process: Process) -> TableSaver:
        """Return the saver of a process."""
        if process.name not in self._savers:
            self._savers[process.name] = self._make_saver(self.simulator, process)
        return self._savers[process.name]

    # Flows of actors.

    def _newest(
        self, process: Process, place: tuple[str, str]
    ) -> Op[tuple[CheckpointTuple | None, Put | None]]:
        """Read and check the newest checkpoint; return it, and the record of its put."""
        began = self.simulator.moment
        latest = yield from self.saver(process).ask("get_tuple", thread_config(*place))
        self.history.check_latest(place, latest, began)
        return latest, None if latest is None else self.history.ways(*place, latest.checkpoint["id"])[0]

    def conversation(
        self,
        process: Process,
        thread: str,
        length: int,
        *,
        namespace: str = "",
        run_id: str = "run",
        tries: int = 1,
    ) -> Flow:
        """Go on with a conversation from where it stands: put checkpoints, and writes of one task each."""
        latest, parent = yield from self._newest(process, (thread, namespace))
        renew = parent is None or parent.run_id != run_id
        pending = latest.pending_writes or [] if latest else []
        applied = {channel: value for _, channel, value in pending if channel == "b"}
        _use_up(latest)
        yield from self.go_on(
            process,
            (thread, namespace),
            parent,
            length,
            run_id=run_id,
            tries=tries,
            renew=renew,
            applied=applied,
        )

    def fork(
        self,
        process: Process,
        place: tuple[str, str],
        back: int,
        *,
        run_id: str = "run",
        tries: int = 1,
        length: int = 2,
    ) -> Flow:
        """Go on from a checkpoint some way back, whatever became of it."""
        puts = sorted(self.history.puts_at(place), key=_checkpoint_id)
        parent = puts[-1 - back % len(puts)] if puts else None
        yield from self.go_on(process, place, parent, length, run_id=run_id, tries=tries)

    def clone(self, process: Process, place: tuple[str, str], *, run_id: str = "run", tries: int = 1) -> Flow:
        """Run from a checkpoint, which changes what was read of it, and copy its child to a sibling of that."""
        children = [each for each in self.history.puts.values() if each.place == place and each.parent_id]
        if not children or self._delta:
            return
        child = max(children, key=_checkpoint_id)
        parent = yield from self.saver(process).ask("get_tuple", thread_config(*place, child.parent_id))
        if parent is not None:
            parent.checkpoint["channel_versions"].update(child.versions)
        self._checkpoints += 1
        checkpoint_id = f"{self._checkpoints:04}"
        record = replace(
            child,
            checkpoint_id=checkpoint_id,
            run_id=run_id,
            cloned=True,
            began=None,
            ended=None,
            acknowledged=False,
        )
        self.history.puts[(*place, checkpoint_id)] = record
        yield from self.repeated(record, partial(self.put, process, record), tries)

    def go_on(
        self,
        process: Process,
        place: tuple[str, str],
        parent: Put | None,
        length: int,
        *,
        run_id: str,
        tries: int,
        renew: bool = False,
        applied: Mapping[str, Any] = NOTHING,
    ) -> Flow:
        """Put checkpoints, each the child of the one before, and writes of one task for each.

        `renew` lets the first of them have another large text than its parent, and `applied` what was pending. With
        `OWN_RUN` each of them is of a run of its own.
        """
        for number in range(length):
            own = f"run of {self._checkpoints + 1}" if run_id == OWN_RUN else run_id
            record = self.next_put(
                *place, parent, own, renew=renew or (number > 0 and own != run_id), applied=applied
            )
            renew, applied = False, NOTHING
            yield from self.repeated(record, partial(self.put, process, record), tries)
            writes = self.next_writes(record)
            yield from self.repeated(writes, partial(self.put_writes, process, writes), tries)
            parent = record

    def next_put(
        self,
        thread: str,
        namespace: str,
        parent: Put | None,
        run_id: str = "run",
        *,
        renew: bool = False,
        applied: Mapping[str, Any] = NOTHING,
    ) -> Put:
        """Make the next checkpoint of a conversation: a log that grows, a text that a run keeps, and small values."""
        self._checkpoints += 1
        checkpoint_id = f"{self._checkpoints:04}"
        before: Any = parent.values if parent else {"log": []}
        log = [*before["log"], text(thread, checkpoint_id)]
        changed = {**applied, "log": log, "id": checkpoint_id}
        for number in range(SMALL_CHANNELS) if parent is None else [len(log) % SMALL_CHANNELS]:
            changed[f"small-{number}"] = text(thread, checkpoint_id, number)[:SMALL_BYTES]
        if parent is None or renew:
            changed["big"] = text(thread, namespace, checkpoint_id, "big") * 5
        values = {**before, **changed}
        values.pop(DELTA, None)
        if self._delta and len(values["log"]) % SNAPSHOT_STEPS == 0:
            values[DELTA] = _DeltaSnapshot([text(thread, checkpoint_id, DELTA)])
        record = Put(
            thread=thread,
            namespace=namespace,
            checkpoint_id=checkpoint_id,
            parent_id=parent.checkpoint_id if parent else None,
            values=values,
            versions={**(parent.versions if parent else {}), **dict.fromkeys(changed, len(log))},
            run_id=run_id,
            delta=self._delta,
        )
        self.history.puts[thread, namespace, checkpoint_id] = record
        return record

    def next_writes(self, record: Put, task_id: str = "task") -> Writes:
        """Make writes of one task that belong to a checkpoint.

        Every other time it writes what it was given as well, and now and then so little that it needs no segment.
        """
        given = record.values.items() if int(record.checkpoint_id) % 2 else ()
        values = [("a", text(record.checkpoint_id, task_id)[:SMALL_BYTES])]
        values += [
            *([("b", text(record.checkpoint_id, task_id, "b") * 3)] if int(record.checkpoint_id) % 3 else []),
            *((channel, value) for channel, value in given if channel in ("log", "big")),
            *([(DELTA, text(record.checkpoint_id, task_id, DELTA))] if self._delta else []),
        ]
        writes = Writes(
            thread=record.thread,
            namespace=record.namespace,
            checkpoint_id=record.checkpoint_id,
            task_id=task_id,
            task_path="~" + task_id,
            writes=values,
        )
        self.history.writes[record.thread, record.namespace, record.checkpoint_id, task_id] = writes
        return writes

    def background(
        self, process: Process, place: tuple[str, str], length: int, *, run_id: str = "run", tries: int = 1
    ) -> Flow:
        """Go on as LangGraph does by default: tasks write while their checkpoint, and those before, are being put."""
        latest, parent = yield from self._newest(process, place)
        _use_up(latest)
        before: Future[bool] | None = None
        for _ in range(length):
            record = self.next_put(*place, parent, run_id)
            # It may wait for those before it, while others delete, and put newer ones that expire.
            record.began = self.simulator.moment
            writes, ended = self.next_writes(record), Future[bool]()
            put = self._put_after(process, record, tries, before, ended)
            self.simulator.start(f"put of {record.checkpoint_id}", process, put)
            flow = self.repeated(writes, partial(self.put_writes, process, writes), tries)
            self.simulator.start(f"writes of {record.checkpoint_id}", process, flow)
            parent, before = record, ended

    def _put_after(
        self, process: Process, record: Put, tries: int, before: Future[bool] | None, ended: Future[bool]
    ) -> Flow:
        """Put a checkpoint once its parent has been put, unless that has failed."""
        try:
            if before is not None:
                yield (Wait(before, _EVER),)
            if before is None or before.result():
                yield from self.repeated(record, partial(self.put, process, record), tries)
        finally:
            ended.set_result(record.acknowledged)

    def superstep(
        self, process: Process, place: tuple[str, str], waits_seconds: Sequence[float], tries: int = 1
    ) -> Flow:
        """Put a checkpoint, and the writes of its tasks, each some time after the one before."""
        latest, parent = yield from self._newest(process, place)
        _use_up(latest)
        record = self.next_put(*place, parent)
        yield from self.repeated(record, partial(self.put, process, record), tries)
        for number, seconds in enumerate(waits_seconds):
            yield (Wait(Future(), seconds),)
            writes = self.next_writes(record, f"task {number}")
            yield from self.repeated(writes, partial(self.put_writes, process, writes), tries)

    def subgraphs(
        self, process: Process, thread: str, waits_seconds: Sequence[float], tries: int = 1
    ) -> Flow:
        """Put a checkpoint, then those of two stateful subgraphs side by side, some time apart, and one after them."""
        yield from self.superstep(process, (thread, ""), waits_seconds[:1], tries)
        for number, seconds in enumerate(waits_seconds[1:]):
            yield (Wait(Future(), seconds),)
            namespace = SUBGRAPHS[number % 2]
            yield from self.conversation(process, thread, 1, namespace=namespace, tries=tries)
        yield from self.conversation(process, thread, 1, tries=tries)

    def put(self, process: Process, record: Put) -> Op[Any]:
        """Store a checkpoint, and let its caller use what it gave for something else afterwards."""
        self._note_ttl(process, record.thread)
        arguments = self._put_arguments(record)
        yield from self.saver(process).ask("put", *arguments)
        _, *used_up = arguments
        for each in used_up:
            each.clear()

    def _note_ttl(self, process: Process, thread: str) -> None:
        """Note the option of a saver that may give the thread its ttl."""
        self.history.ttls.setdefault(thread, set()).add(process.storage.ttl_seconds)

    def _put_arguments(self, record: Put) -> tuple[RunnableConfig, Any, Any, ChannelVersions]:
        length = len(record.values["log"])
        versions: ChannelVersions = dict(record.versions)
        checkpoint: Any = checkpoint_of(record.checkpoint_id, record.values)
        checkpoint["channel_versions"] = versions
        new: ChannelVersions = {}
        if not record.cloned:
            new = {name: number for name, number in versions.items() if number == length}
        metadata: Any = {"source": "loop", "step": length, "run_id": record.run_id}
        if record.delta:
            versions[DELTA] = length
            new |= {} if record.cloned else {DELTA: length}
            if DELTA not in record.values:
                metadata["counters_since_delta_snapshot"] = {DELTA: (length, length)}
        at = thread_config(record.thread, record.namespace, record.parent_id)
        at["configurable"][OWNER_FROM] = owner_of(record.checkpoint_id)
        return at, checkpoint, metadata, new

    def put_writes(self, process: Process, record: Writes) -> Op[None]:
        """Store a task's writes."""
        self._note_ttl(process, record.thread)
        at = thread_config(record.thread, record.namespace, record.checkpoint_id)
        yield from self.saver(process).ask("put_writes", at, record.writes, record.task_id, record.task_path)

    def answers(self, process: Process, place: tuple[str, str], times: int, tries: int = 1) -> Flow:
        """Answer the newest checkpoint's task, and change the answer: special writes, which replace each other."""
        latest, _ = yield from self._newest(process, place)
        key = (*place, latest.checkpoint["id"] if latest else "", "task")
        for number in range(times):
            if key not in self.history.writes:
                return
            answers = self.history.answers.setdefault(key, [])
            record = Answer(value=text(key, len(answers)) * (1 if number else 4))
            answers.append(record)
            yield from self.repeated(record, partial(self._answer, process, key, record), tries)

    def _answer(self, process: Process, key: tuple[str, str, str, str], record: Answer) -> Op[None]:
        self._note_ttl(process, key[0])
        at, writes = thread_config(*key[:3]), [(RESUME, record.value)]
        yield from self.saver(process).ask("put_writes", at, writes, key[3], "~" + key[3])

    def undo(self, process: Process, place: tuple[str, str], times: int, tries: int = 1) -> Flow:
        """Take back the newest run, and the one before."""
        for _ in range(times):
            _, newest = yield from self._newest(process, place)
            if newest is None:
                return
            yield from self.delete_for_runs(process, newest.run_id, tries)

    def delete_thread(self, process: Process, thread: str, tries: int = 1) -> Flow:
        """Delete a thread."""
        record = self._deletion(Deletion(kind="delete_thread", threads=[thread]))
        yield from self.repeated(record, lambda: self.saver(process).ask("delete_thread", thread), tries)

    def prune(self, process: Process, thread: str, kept: int = 1, tries: int = 1) -> Flow:
        """Keep only a thread's newest checkpoints."""
        record = self._deletion(Deletion(kind="prune", threads=[thread], kept=kept))
        yield from self.repeated(
            record, lambda: self.saver(process).ask("prune", [thread], "keep_last", kept), tries
        )

    def delete_for_runs(self, process: Process, run_id: str, tries: int = 1) -> Flow:
        """Delete the checkpoints of a run."""
        record = self._deletion(Deletion(kind="delete_for_runs", run_ids=[run_id]))
        yield from self.repeated(record, lambda: self.saver(process).ask("delete_for_runs", [run_id]), tries)

    def repair(self, process: Process, thread: str, tries: int = 1) -> Flow:
        """Remove what nothing can reach, which is a deletion that takes no checkpoint."""
        record = self._deletion(Deletion(kind="delete_for_runs", run_ids=[]))

        def attempt() -> Op[None]:
            found = yield from verify.verify_thread(process.storage, thread)
            _check_sound(found)
            yield from verify.repair_thread(process.storage, found)

        yield from self.repeated(record, attempt, tries)

    def copy_thread(self, process: Process, source: str, target: str) -> Flow:
        """Copy a thread."""
        self._note_ttl(process, target)
        record = Copy(source=source, target=target)
        self.history.copies.append(record)
        yield from self.repeated(record, lambda: self.saver(process).ask("copy_thread", source, target), 1)

    def reader(self, process: Process, thread: str, times: int, namespace: str = "") -> Flow:
        """Read a conversation in every way, over and over."""
        for _ in range(times):
            yield from self._newest(process, (thread, namespace))
            yield from self.read_everything(process, thread)

    def read_everything(self, process: Process, thread: str) -> Flow:
        """List a thread, and read by their ids what the list lacks and a share of what it has."""
        began = self.simulator.moment
        all_namespaces: RunnableConfig = {"configurable": {"thread_id": thread}}
        listed = yield from collected(
            self.saver(process).ask("list_checkpoints", all_namespaces, None, None, None)
        )
        self.history.check_list(thread, listed, began)
        found = {(each.config["configurable"]["checkpoint_ns"], each.checkpoint["id"]) for each in listed}
        known = {(each.namespace, each.checkpoint_id): each for each in self.history.puts_in(thread)}
        for position, record in enumerate(known.values(), self.simulator.moves):
            if (record.namespace, record.checkpoint_id) in found and position % READ_EVERY:
                continue
            began = self.simulator.moment
            at = thread_config(thread, record.namespace, record.checkpoint_id)
            seen = yield from self.saver(process).ask("get_tuple", at)
            self.history.check_one(record, seen, began)
            if record.delta and DELTA not in record.values:
                yield from self._rebuild(process, record)

    def lister(self, process: Process, times: int) -> Flow:
        """List the threads of each owner, and all with their status and runs, over and over."""
        assert self.directory is not None
        for _ in range(times):
            for owner in OWNERS:
                yield from self._listed(process, owner)
            for each in (yield from self._listed(process, None, with_status=True)):
                runs = yield from self.saver(process).ask("list_runs", each.thread_id)
                self.directory.check_runs(each.thread_id, runs)

    def _listed(
        self, process: Process, owner: str | None, *, with_status: bool = False
    ) -> Op[list[threads.ThreadSummary]]:
        """List threads, one to a page."""
        found: list[threads.ThreadSummary] = []
        cursor: str | None = None
        while True:
            query = threads.ThreadQuery(owner=owner, limit=1, before=cursor, with_status=with_status)
            page = yield from self.saver(process).ask("list_threads", query)
            found += page.threads
            cursor = page.cursor
            if cursor is None:
                break
        if self.directory is not None:
            self.directory.check_list(owner, found)
        return found

    def describe(self, process: Process, thread: str, tries: int = 1, *, takes_back: bool = False) -> Flow:
        """Give a thread a title, and perhaps take it back."""
        assert self.directory is not None
        self._note_ttl(process, thread)
        titles = self.directory.titles.setdefault(thread, [])
        titles.append(f"title {len(titles)}")
        entitle = partial(self.saver(process).ask, "set_thread", thread, None)
        yield from self.repeated(Record(), lambda: entitle(titles[-1], None), tries)
        self.directory.told.add(thread)
        if takes_back:
            self.directory.taken_back.add(thread)
            yield from self.repeated(Record(), lambda: entitle("", None), tries)

    def check_directory(self) -> None:
        """Compare the lists of all threads with the checkpoints that are there."""
        if self.directory is None:
            return
        process = self.simulator.process()
        owned = {each: [one.thread_id for one in self.alone(self._listed(process, each))] for each in OWNERS}
        readable = [
            put_
            for put_ in self.history.puts.values()
            if self.alone(
                self.saver(process).ask("get_tuple", thread_config(*put_.place, put_.checkpoint_id))
            )
            is not None
        ]
        copies = [
            copy.target
            for copy in self.history.copies
            if copy.acknowledged
            and self.alone(self.saver(process).ask("get_tuple", thread_config(copy.target, ""))) is not None
        ]
        everything = self.alone(self._listed(process, None))
        self.directory.check_all(everything, owned, readable, self.simulator.now)
        self.directory.check_copies(everything, copies, self.simulator.now)

    def _rebuild(self, process: Process, record: Put) -> Flow:
        """Read what a checkpoint's delta channel is rebuilt from."""
        began = self.simulator.moment
        at = thread_config(record.thread, record.namespace, record.checkpoint_id)
        try:
            histories = yield from self.saver(process).ask("get_delta_channel_history", at, [DELTA])
        except errors.CheckpointNotFoundError as error:
            self.history.check_history(record, error, began)
        else:
            self.history.check_history(record, histories[DELTA], began)

    def seen(self) -> list[Any]:
        """Return what a new process lists of both threads, checkpoints and writes."""
        process = self.simulator.process()
        flows = [
            collected(
                self.saver(process).ask(
                    "list_checkpoints", {"configurable": {"thread_id": thread}}, None, None, None
                )
            )
            for thread in ("one", "two")
        ]
        return [self.alone(flow) for flow in flows]

    def repeated(self, record: Record, attempt: Callable[[], Op[Any]], tries: int) -> Flow:
        """Make a call, and again if the network fails it, and note how it ended."""
        if record.began is None:
            record.began = self.simulator.moment
        left_behind = self._left_behind()
        try:
            for left in reversed(range(tries)):
                record.acknowledged = yield from self._tried(record, attempt, last=left == 0)
                if record.acknowledged:
                    return
        finally:
            # Of one whose process dies, something may still be under way; or of one that was given up and made again.
            record.goes_on = self._left_behind() != left_behind
            record.clean = record.clean and record.acknowledged and not record.goes_on
            record.ended = self.simulator.moment

    def _left_behind(self) -> int:
        return sum(each.left_behind for each in self._savers.values())

    def _tried(self, record: Record, attempt: Callable[[], Op[Any]], *, last: bool) -> Op[bool]:
        """Make a call once; False where the network failed it and it is to be made again."""
        try:
            yield from attempt()
        except NETWORK_ERRORS:
            record.clean = False
            if last:
                raise
            return False
        except errors.ThreadBusyError as error:
            self._check_busy(record, error)
            raise
        return True

    def _check_busy(self, record: Record, error: Exception) -> None:
        """Let a deletion be kept out by another one only, or by its own attempt that failed, or stood still."""
        others = [each for each in self.history.deletions if each is not record and each.began is not None]
        if (
            isinstance(record, Deletion)
            and record.clean
            and not any(each.was_hurt for each in self._savers.values())
            and self.simulator.now < (record.began or START).seconds + limits.CLAIM_SECONDS
            and all(each.clean and each.acknowledged_before(record.began or START) for each in others)
            # A copy that begins again ends the epoch of its target.
            and all(each.over_before(record.began or START) for each in self.history.copies)
        ):
            raise Violation("a deletion locked itself out") from error

    def _deletion(self, record: Deletion) -> Deletion:
        self.history.deletions.append(record)
        return record

    # Running.

    def alone(self, flow: Generator[Any, Any, _T]) -> _T:
        """Run one flow to its end without faults."""
        self.simulator.moves += 1
        try:
            result = self.simulator.run_alone(flow)
        except errors.CheckpointCorruptionError as error:
            raise Violation(f"a new process finds damage: {error}") from error
        self.simulator.moves += 1
        return result

    def cut_short(self, flow: Generator[Any, Any, _T], rounds: int, effects: Sequence[int]) -> int | None:
        """Run one flow up to some effects of a round, where its process dies; see `Simulator.run_partly`."""
        self.simulator.moves += 1
        size = self.simulator.run_partly(flow, rounds, effects)
        self.simulator.moves += 1
        return size

    def together(
        self, flows: Sequence[Callable[[Process], Flow]], warm: Process | None = None
    ) -> list[Actor]:
        """Run flows side by side, each in a process of its own, but the first in one that remembers something."""
        actors = []
        for number, flow in enumerate(flows):
            process = warm if warm is not None and number == 0 else self.simulator.process()
            actors.append(self.simulator.start(f"actor {number}", process, flow(process)))
        self.simulator.run()
        self.check_failures()
        return actors

    def check_failures(self) -> None:
        """Let an actor fail only for what the faults did to it."""
        for actor in self.simulator.actors:
            error = actor.failure
            if error is None:
                continue
            is_fault = isinstance(error, (errors.BrokenRuleError, errors.CheckpointCorruptionError))
            if is_fault or not isinstance(error, (*NETWORK_ERRORS, errors.CheckpointerError)):
                raise Violation(f"{actor.name} failed: {error!r}") from error

    def check_end(self, *, go_on: bool = True) -> None:
        """Look at everything with a new process, perhaps go on, then delete everything and find nothing left."""
        self.look()
        self.check_directory()
        if go_on:
            self.check_parts()
            self.check_directory()
        self.check_nothing_left()

    def check_both_ends(self) -> None:
        """Do what `check_end` does when nothing goes on, and what it does when something does."""
        self.look()
        self.check_directory()
        self.copy().check_nothing_left()
        self.check_parts()
        self.check_directory()
        self.check_nothing_left()

    def copy(self) -> World:
        """Return a world that goes on from here by itself; nothing may be under way."""
        return Snapshot(self).copy(self.simulator.choices)

    def state(self) -> str:
        """Return a text that is the same for worlds in which whatever comes next goes the same way.

        Of moments it has their order, and their time to ten seconds: no shorter time makes a difference.
        """
        known = f"{self.history} {self.directory} {sorted(self._unwatched)}"
        moves = sorted({int(moment[1]) for moment in _MOMENT.finditer(known)})
        order = {move: position for position, move in enumerate(moves)}
        known = _MOMENT.sub(lambda each: f"{order[int(each[1])]} at {_tens(float(each[2]))}", known)
        stored = [
            sorted((name, _coarse(name, value)) for name, value in item.items())
            for item in self.simulator.model.items()
        ]
        return f"{stored} {known} {_tens(self.simulator.now)}"

    def check_nothing_left(self) -> None:
        """Delete every thread, and find the table empty."""
        self.simulator.settle()
        # By now no claim holds, and what nothing names is old enough to go.
        self.simulator.now += 4000
        unfindable = self._unfindable()
        for thread in dict.fromkeys(
            item["PK"]["S"].partition("#")[0] for item in self.simulator.model.items()
        ):
            self.alone(self.delete_thread(self.simulator.process(), thread))
        # What has an expiry goes by itself, also where DynamoDB removed first what led there.
        left = {_key_of(item) for item in self.simulator.model.items() if schema.TTL_ATTRIBUTE not in item}
        left -= unfindable
        if self.directory is not None and (shown := self.alone(self._listed(self.simulator.process(), None))):
            raise Violation(f"threads are listed after every thread was deleted: {shown}")
        if left:
            raise Violation(f"orphans after every thread was deleted: {sorted(left)}")

    def _note_shown(self, call: Call) -> None:
        """Note when a copy is shown as a whole."""
        if "#alive = :zero" in call.params.get("ConditionExpression", ""):
            self.history.shown[call.params["Key"]["PK"]["S"].removesuffix("#")] = self.simulator.moment

    def _note_unwatched(self, call: Call) -> None:
        self._unwatched |= {_key_of(key) for key in keys_of(call.params)}

    def _unfindable(self) -> set[tuple[str, str]]:
        """Return what came to a namespace that was deleted, of who cannot notice; docs/design.md names it."""
        there = {_key_of(item) for item in self.simulator.model.items()}
        parts = {key: key[0].partition("#") for key in self._unwatched & there}
        return {
            key
            for key, (thread, _, namespace) in parts.items()
            if namespace and (f"{thread}#", f"N#{namespace}") not in there
        }

    def look(self) -> None:
        """Look at everything with a new process, when nothing is under way any more."""
        self.simulator.settle()
        self.simulator.forget_actors()
        places = self.history.places()
        process = self.simulator.process()
        for thread, namespace in places:
            self.alone(self.conversation(process, thread, 0, namespace=namespace))
        for thread in dict.fromkeys(thread for thread, _ in places):
            self.alone(self.read_everything(process, thread))
            _check_sound(self.alone(verify.verify_thread(process.storage, thread)))

    def check_parts(self) -> None:
        """Let a conversation go on from what it left: a further put and its writes are whole."""
        places = self.history.places()
        for thread, namespace in places:
            if not self._goes_on(thread, namespace):
                # Whoever finds a copy that has died deletes it, once no claim of another deletion holds.
                self.simulator.now += limits.CLAIM_SECONDS + SKEW_SECONDS_MAX
                self.alone(self.delete_thread(self.simulator.process(), thread))
                self.alone(self.conversation(self.simulator.process(), thread, 2, namespace=namespace))
        for thread in dict.fromkeys(thread for thread, _ in places):
            self.alone(self.read_everything(self.simulator.process(), thread))

    def _goes_on(self, thread: str, namespace: str) -> bool:
        """Let a conversation go on; return False if its thread is a copy that has died."""
        try:
            self.alone(self.conversation(self.simulator.process(), thread, 2, namespace=namespace))
        except errors.ThreadBusyError:
            if all(each.acknowledged for each in self.history.copies if each.target == thread):
                raise
            return False
        return True


def _check_sound(found: verify.Verification) -> None:
    """Let a verification find no damage. Deletions of runs take what delta channels are rebuilt from.

    And a simulated step gives its delta channel a new version also where no task has written to it.
    """
    flaws = [each for each in found.messages if "delta channels" not in each]
    if flaws:
        raise Violation(f"a verification finds damage: {flaws}")


def _tens(seconds: float) -> int:
    return round(seconds / 10)


def _coarse(name: str, value: Mapping[str, Any]) -> object:
    """Return a stored attribute, with ten seconds instead of a time."""
    if name == items.REGISTERED:
        # Milliseconds, and two random bytes; see `protocol.registration`.
        milliseconds, rest = value["B"][:-2], value["B"][-2:]
        return _tens(int.from_bytes(milliseconds, "big") / 1000), rest
    number = float(value.get("N", 0))
    # No other number in these worlds is as large as a time.
    return _tens(number) if abs(number) > 1e9 else value


def _use_up(found: CheckpointTuple | None) -> None:
    """Change what a read gave, as LangGraph's loop does while it runs."""
    if found is not None:
        versions = found.checkpoint["channel_versions"]
        versions.update(dict.fromkeys(versions, 999))
        found.checkpoint["channel_values"].clear()
        dict(found.metadata).clear()
        (found.pending_writes or []).clear()


def _key_of(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["PK"]["S"], item["SK"]["S"]


def _checkpoint_id(record: Put) -> str:
    return record.checkpoint_id
