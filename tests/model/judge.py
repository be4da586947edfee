"""What must hold in every state. The rules are those of the simulation's history; here they are asked everywhere.

An actor may have died wherever it stands, so each state is also one after crashes: a new process reads the thread in
it, and finds all that was acknowledged and nothing that is torn; and a deletion, once all claims have run out, leaves
nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import THREAD as THREAD_ITEM
from langgraph.checkpoint.dynamodb._format.items import Item, parts_of
from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS
from langgraph.checkpoint.dynamodb._runtime.steps import Op, collected
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import Thread, is_committed
from tests.model.actors import Call, Start
from tests.model.states import Actor, Contents, Key, Local, Status, Storage, Table
from tests.simulation.history import Deletion, History, Moment, Put, Violation, Writes
from tests.support.harness import THREAD, Process

_LATER = 4000.0
_OWNERS = 200
# When readers look, in ttls from now.
_SHARES = (0.0, 0.2, 0.5, 0.85, 0.95, 1.0, 1.05, 1.5, 1.75, 2.05)
ENDED = frozenset({Status.SUCCEEDED, Status.FAILED})


@dataclass(frozen=True)
class Progress:
    """How far one call is, as far as the history asks."""

    status: Status
    has_begun: bool
    after: int
    """The calls that had ended when it began, as bits, of those with which the order matters."""
    began_at: float
    """In epoch seconds, with a ttl."""


def order_matters(one: Call, other: Call) -> bool:
    """Tell whether the history asks if one call had ended before the other one began."""
    return not one.reads and (other.reads or one.deletes != other.deletes)


class Judge:
    """Reads and deletes in copies of tables, and asks the history."""

    def __init__(self, start: Start, calls: Sequence[Call], storage: Storage) -> None:
        """Take what there was, and who takes part."""
        self._start = start
        self._calls = calls
        self._storage = storage
        puts = {each.checkpoint_id: each for each in start.puts}
        puts |= {each.record.checkpoint_id: each.record for each in calls if isinstance(each.record, Put)}
        self._reads = {
            each: self._actor(Call(f"read {each}", partial(_read, each))) for each in (None, *sorted(puts))
        }
        self._list = self._actor(Call("list", lambda process: collected(process.listed())))
        self._delete = self._actor(Call("delete", lambda process: process.delete_thread()))
        self._seen: dict[int, tuple[Mapping[Any, Local], frozenset[str]]] = {}
        self._emptied: set[frozenset[Key]] = set()
        self._judged: set[Any] = set()

    def _actor(self, call: Call) -> Actor:
        return Actor(call.name, self._start.flow(call, _OWNERS), self._storage)

    def check(self, table: Table, now: float, progress: Sequence[Progress]) -> None:
        """Check one state.

        Raises:
            Violation: Something is lost, torn, or back again.
        """
        known = self._seen.get(table.digest)
        if known is None:
            known = self._seen[table.digest] = self._read_all(table, now), _uncommitted(table)
            self._check_emptied(table, now)
        seen, uncommitted = known
        key = (*map(id, seen.values()), uncommitted, *progress)
        if key in self._judged:
            return
        self._judged.add(key)
        history, began = self._ledger(progress)
        if self._start.ttl_seconds is not None:
            # Whatever is older than the ttl may be gone; what must be there is looked at below.
            history.ttls[THREAD] = {self._start.ttl_seconds}
            history.now = lambda: now - self._start.harness.now
        self._check_committed(history, uncommitted, began)
        for name, local in seen.items():
            result = _result(local, f"a new process that reads {name or 'the newest checkpoint'}")
            if name is None:
                history.check_latest((THREAD, ""), result, began)
            elif name == "list":
                history.check_list(THREAD, result, began)
            else:
                history.check_one(history.puts[THREAD, "", name], result, began)
        if self._start.ttl_seconds is not None:
            self._check_future(table, now, self._start.ttl_seconds, progress)

    def _check_future(self, table: Table, now: float, ttl_seconds: int, progress: Sequence[Progress]) -> None:
        """Check what readers will see, and when, if nothing else happens. No call deletes anything.

        A dead call may leave its head as the newest, which nobody was told of. It may hide the others, but no longer
        than until the thread is used again.
        """
        if any(each.has_begun and each.status not in ENDED for each in progress):
            return
        acknowledged = [
            (call.record, each.began_at)
            for call, each in zip(self._calls, progress, strict=True)
            if each.status is Status.SUCCEEDED and isinstance(call.record, (Put, Writes))
        ]
        newest = max(each.checkpoint_id for each in [*self._start.puts, *(each for each, _ in acknowledged)])
        # Writes of the newest checkpoint are a use of it.
        used_at = max((at for each, at in acknowledged if each.checkpoint_id == newest), default=0.0)
        for share in _SHARES:
            at = now + share * ttl_seconds
            # DynamoDB has removed all that has expired, which brings forth what it hid.
            left = {key: each for key, each in table.contents.items() if not _may_be_removed(each.item, at)}
            local = self._alone(left, self._reads[None], at)
            seen = _result(local, "a new process that reads the newest checkpoint, later")
            if seen is not None and seen.checkpoint["id"] < newest:
                raise Violation(f"{seen.checkpoint['id']} is shown {share} ttls later in place of {newest}")
            if seen is None and at < used_at + 0.9 * ttl_seconds:
                raise Violation(f"{newest} was used at {used_at:.0f}, and is gone at {at:.0f}")

    def check_end(self, position: int, local: Local, progress: Sequence[Progress]) -> None:
        """Check what a call returned or raised that has just ended.

        Raises:
            Violation: It must not.
        """
        call, error = self._calls[position], local.result
        if local.status is Status.FAILED:
            if not isinstance(error, ThreadBusyError):
                raise Violation(f"{call.name} failed: {error!r}") from error
            if local.now - _first(local).now < CLAIM_SECONDS:
                # Deletions that wait do not give up here: they wait until the claim is free, or has run out.
                raise Violation(f"{call.name} failed, though no time has passed: {error!r}") from error
        elif call.reads:
            history, _ = self._ledger(progress)
            history.check_latest((THREAD, ""), local.result, self._moments[position][0])

    # Reading and deleting in a copy.

    def _read_all(self, table: Table, now: float) -> Mapping[Any, Local]:
        seen: dict[Any, Local] = {
            name: self._alone(dict(table.contents), actor, now) for name, actor in self._reads.items()
        }
        seen["list"] = self._alone(dict(table.contents), self._list, now)
        return seen

    def _alone(self, contents: Contents, actor: Actor, now: float) -> Local:
        """Run a call to its end, with nobody else there."""
        local = actor.receive(actor.start, {}, now)
        while local.status is Status.RUNNING:
            answers = {}
            for position, request in enumerate(local.effects):
                answers[position], changes = self._storage.perform(contents, request)
                for key, stored in changes.items():
                    contents.pop(key, None)
                    if stored is not None:
                        contents[key] = stored
            local = actor.receive(local, answers, now)
        return local

    def _check_committed(self, history: History, uncommitted: Collection[str], began: Moment) -> None:
        """Let all that is acknowledged and there be committed. What was put twice may be there unacknowledged."""
        records: list[Put | Writes] = [*history.puts.values(), *history.writes.values()]
        for record in records:
            name = (
                record.checkpoint_id
                if isinstance(record, Put)
                else f"{record.checkpoint_id} {record.task_id}"
            )
            if name in uncommitted and record.clean and record.acknowledged_before(began):
                raise Violation(f"{name} is acknowledged and there, but not committed")

    def _check_emptied(self, table: Table, now: float) -> None:
        """Let a deletion find all that is there, once no claim holds and what nothing names is old."""
        # It deletes by their keys what it finds, and one segment like another.
        keys = frozenset((pk, "S#" if sk.startswith("S#") else sk) for pk, sk in table.contents)
        if keys in self._emptied:
            return
        self._emptied.add(keys)
        contents = dict(table.contents)
        _result(self._alone(contents, self._delete, now + _LATER), "a deletion of everything")
        if contents:
            raise Violation(f"orphans after the thread was deleted: {sorted(contents)}")

    # What the history is told.

    def _ledger(self, progress: Sequence[Progress]) -> tuple[History, Moment]:
        """Return the history of what has begun and ended, and the moment after all of it."""
        moments = self._moments = _moments(self._calls, progress)
        history = History()
        for put in self._start.puts:
            before = replace(put, began=Moment(-2, 0.0), ended=Moment(-1, 0.0), acknowledged=True)
            history.puts[THREAD, "", put.checkpoint_id] = before
        for call, each, (began, ended) in zip(self._calls, progress, moments, strict=True):
            succeeded = each.status is Status.SUCCEEDED
            facts: Any = {
                "began": began if each.has_begun else None,
                "ended": ended if each.status in ENDED else None,
                "acknowledged": succeeded,
                "clean": succeeded,
            }
            record = call.record
            if isinstance(record, Put):
                key = (THREAD, "", record.checkpoint_id)
                history.puts[key] = _merged(replace(record, **facts), history.puts.get(key))
            elif isinstance(record, Writes):
                history.writes[THREAD, "", record.checkpoint_id, record.task_id] = replace(record, **facts)
            elif isinstance(record, Deletion):
                history.deletions.append(replace(record, **facts))
        return history, Moment(1_000, 0.0)


def _read(checkpoint_id: str | None, process: Process) -> Op[Any]:
    return process.read(checkpoint_id)


def _uncommitted(table: Table) -> frozenset[str]:
    """Return the checkpoints, and the tasks' writes to those that are there, that no rule keeps whole."""
    found = {sk: stored.item for (_, sk), stored in table.contents.items()}
    thread = Thread.parse(found[THREAD_ITEM]) if THREAD_ITEM in found else None
    names = set()
    for sk, item in found.items():
        checkpoint_id, _, task = sk.removeprefix("C#").partition("#")
        if not sk.startswith("C#") or f"C#{checkpoint_id}#" not in found:
            continue
        if not all(is_committed(item, name, thread) for name, _ in parts_of(item)):
            names.add(f"{checkpoint_id} {task.removeprefix('W#')}".strip())
    return frozenset(names)


def _merged(put: Put, other: Put | None) -> Put:
    """Return the record of a checkpoint that two calls put."""
    if other is None or put.began is None:
        return other or put
    if other.began is None:
        return put
    ends = [each.ended for each in (put, other) if each.acknowledged and each.ended is not None]
    # What one of them stores may come after a deletion.
    return replace(
        put,
        began=min(put.began, other.began),
        ended=min(ends, default=None),
        acknowledged=bool(ends),
        clean=False,
    )


def _moments(calls: Sequence[Call], progress: Sequence[Progress]) -> list[tuple[Moment, Moment]]:
    """Return when each call began and ended, in some order of which all that is known is true."""
    sorter: TopologicalSorter[tuple[int, str]] = TopologicalSorter()
    for one, other in _pairs(calls):
        sorter.add((other, "ended"), (other, "began"))
        if not progress[other].has_begun:
            continue
        if progress[other].after >> one & 1:
            sorter.add((other, "began"), (one, "ended"))
        else:
            sorter.add((one, "ended"), (other, "began"))
    order = {event: Moment(number, 0.0) for number, event in enumerate(sorter.static_order(), 1)}
    return [
        (order.get((position, "began"), Moment(0, 0.0)), order.get((position, "ended"), Moment(999, 0.0)))
        for position in range(len(calls))
    ]


def _pairs(calls: Sequence[Call]) -> Iterator[tuple[int, int]]:
    for one, call in enumerate(calls):
        for other, later in enumerate(calls):
            if one != other and order_matters(call, later):
                yield one, other


def _first(local: Local) -> Local:
    """Return where a call was when it began."""
    while local.before is not None and local.before.before is not None:
        local = local.before
    return local


def _may_be_removed(item: Item, now: float) -> bool:
    """Tell whether DynamoDB may have removed an item."""
    expires_at = items.expires_at(item)
    return expires_at is not None and expires_at <= now


def began_at(local: Local) -> float:
    """Return when a call began, in epoch seconds."""
    return _first(local).now


def _result(local: Local, who: str) -> Any:
    if local.status is Status.FAILED:
        raise Violation(f"{who} fails: {local.result!r}") from local.result
    return local.result
