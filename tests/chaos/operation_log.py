"""What agents asked of the saver and what was acknowledged, line by line in a file that outlives their processes.

A line is written before an operation and one after it; the number of a line is the moment of the history. Only one
process writes to a file at a time: that of one agent, until it is killed, and then its successor.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.content import next_values, original, writes_of
from tests.simulation.history import START, Copy, Deletion, History, Moment, Put, Record, Writes

Line = Mapping[str, Any]


@dataclass
class Turn(Record):
    """A turn of a graph's conversation, begun or resumed."""

    number: int = 0


@dataclass
class Turns:
    """The turns of one conversation."""

    begun: list[Turn] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """How many turns were begun."""
        return max((turn.number + 1 for turn in self.begun), default=0)

    @property
    def acknowledged(self) -> int:
        """How many turns returned."""
        return max((turn.number + 1 for turn in self.begun if turn.acknowledged), default=0)


class OperationLog:
    """An agent's file, and a history of what it says for each conversation and its copies."""

    def __init__(self, path: Path) -> None:
        """Read what the former processes of the agent have left."""
        self.histories: defaultdict[str, History] = defaultdict(History)
        self.turns: defaultdict[str, Turns] = defaultdict(Turns)
        self.operations: Counter[str] = Counter()
        """How many operations each conversation has had."""
        self.moment = START
        self._open: dict[str, Record] = {}
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        for line in read_lines(path):
            self._apply(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def history(self, thread: str) -> History:
        """The history of a conversation and its copies."""
        return self.histories[original(thread)]

    def ask(self, operation: str, kind: str, **about: Any) -> Moment:
        """Note that an operation begins, and return the moment."""
        return self._note({"asked": operation, "kind": kind, **about})

    def acknowledge(self, operation: str) -> None:
        """Note that an operation returned."""
        self._note({"acknowledged": operation})

    def fail(self, operation: str, error: BaseException) -> None:
        """Note what an operation raised."""
        kinds = [each.__name__ for each in type(error).__mro__]
        self._note({"failed": operation, "kinds": kinds, "message": str(error)[:400]})

    def settle(self) -> None:
        """Note that nothing that was asked before is under way any more."""
        self._note({"settled": True})

    def violate(self, message: str) -> None:
        """Note that something was seen that must never be."""
        self._note({"violation": message})

    def _note(self, line: Line) -> Moment:
        # One write of one line to a file that is appended to: whole, or not there.
        os.write(self._file, json.dumps(line).encode() + b"\n")
        self._apply(line)
        return self.moment

    def _apply(self, line: Line) -> None:
        self.moment = Moment(self.moment.move + 1, 0.0)
        if "asked" in line:
            self.operations[original(line["thread"])] += 1
            begin = _RECORDS.get(line["kind"])
            if begin is not None:
                self._open[line["asked"]] = begin(self, self.moment, line)
        elif "settled" in line:
            for record in self._open.values():
                record.ended, record.clean = self.moment, False
            self._open.clear()
        elif "acknowledged" in line or "failed" in line:
            self._end(line.get("acknowledged") or line["failed"], acknowledged="acknowledged" in line)

    def _end(self, operation: str, *, acknowledged: bool) -> None:
        if operation in self._open:
            record = self._open.pop(operation)
            record.ended, record.acknowledged = self.moment, acknowledged
            record.clean = record.clean and acknowledged


def read_lines(path: Path) -> list[Line]:
    """Read an operation log's lines."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# Beginnings of records. A call that is repeated after an error goes on with the record of the first one.


def _put(operation_log: OperationLog, moment: Moment, line: Line) -> Record:
    thread, namespace, checkpoint_id = line["thread"], line["namespace"], line["id"]
    history = operation_log.history(thread)
    place = thread, namespace, checkpoint_id
    if place not in history.puts:
        parent = history.put_at(thread, namespace, line["parent"]) if line["parent"] else None
        values = next_values(thread, checkpoint_id, {} if parent is None else parent.values)
        history.puts[place] = Put(
            began=moment,
            thread=thread,
            namespace=namespace,
            checkpoint_id=checkpoint_id,
            parent_id=line["parent"],
            values=values,
            run_id=line["run"],
        )
    history.puts[place].ended = None
    return history.puts[place]


def _put_writes(operation_log: OperationLog, moment: Moment, line: Line) -> Record:
    thread, namespace, checkpoint_id, task_id = line["thread"], line["namespace"], line["id"], line["task"]
    history = operation_log.history(thread)
    place = thread, namespace, checkpoint_id, task_id
    if place not in history.writes:
        history.writes[place] = Writes(
            began=moment,
            thread=thread,
            namespace=namespace,
            checkpoint_id=checkpoint_id,
            task_id=task_id,
            writes=writes_of(thread, checkpoint_id, task_id),
        )
    history.writes[place].ended = None
    return history.writes[place]


def _delete(operation_log: OperationLog, moment: Moment, line: Line) -> Record:
    deletion = Deletion(
        began=moment,
        kind=line["kind"],
        threads=() if line["kind"] == "delete_for_runs" else (line["thread"],),
        run_ids=line.get("runs", ()),
        kept=line.get("kept", 0),
    )
    operation_log.history(line["thread"]).deletions.append(deletion)
    return deletion


def _copy(operation_log: OperationLog, moment: Moment, line: Line) -> Record:
    copy = Copy(began=moment, source=line["thread"], target=line["target"])
    operation_log.history(copy.source).copies[copy.target] = copy
    return copy


def _turn(operation_log: OperationLog, moment: Moment, line: Line) -> Record:
    turn = Turn(began=moment, number=line["turn"])
    operation_log.turns[line["thread"]].begun.append(turn)
    return turn


_RECORDS: Mapping[str, Callable[[OperationLog, Moment, Line], Record]] = {
    "put": _put,
    "put_writes": _put_writes,
    "prune": _delete,
    "delete_for_runs": _delete,
    "delete_thread": _delete,
    "copy_thread": _copy,
    "turn": _turn,
    "resumed turn": _turn,
}
