"""What an agent asked of its graph and what was acknowledged, line by line in a file that outlives its processes.

A line is written before an operation and one after it. Only one process writes to a file at a time: that of one agent,
until it is killed, and then its successor.
"""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

Line = Mapping[str, Any]

ASKED = "asked"
ACKNOWLEDGED = "acknowledged"
FAILED = "failed"
VIOLATED = "violated"


class OperationFailedError(Exception):
    """An operation raised, which is in the operation log."""


@dataclass
class Turns:
    """How many turns of one conversation were asked for, and how many of them returned."""

    asked: int = 0
    acknowledged: int = 0


class OperationLog:
    """An agent's file, and what it says of each conversation."""

    def __init__(self, path: Path) -> None:
        """Read what the former processes of the agent have left."""
        self.turns: defaultdict[str, Turns] = defaultdict(Turns)
        self._path = path
        for line in read_lines(path):
            self._apply(line)

    async def perform(
        self, act: Callable[[], Awaitable[T]], kind: str, thread: str, turn: int | None = None
    ) -> T:
        """Perform an operation, for which a turn gives its number.

        Raises:
            OperationFailedError: It raised.
        """
        operation = {"kind": kind, "thread": thread, "turn": turn}
        self._note({"event": ASKED, **operation})
        try:
            result = await act()
        except Exception as error:
            kinds = [each.__name__ for each in type(error).__mro__]
            self._note({"event": FAILED, **operation, "kinds": kinds, "message": str(error)[:400]})
            raise OperationFailedError from error
        self._note({"event": ACKNOWLEDGED, **operation})
        return result

    def violate(self, message: str) -> None:
        """Note that something was seen that must never be."""
        self._note({"event": VIOLATED, "message": message})

    def _note(self, line: Line) -> None:
        # One write of one line to a file that is appended to: whole, or not there.
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")
        self._apply(line)

    def _apply(self, line: Line) -> None:
        if line.get("turn") is None:
            return
        turns, number = self.turns[line["thread"]], line["turn"] + 1
        if line["event"] == ASKED:
            turns.asked = max(turns.asked, number)
        elif line["event"] == ACKNOWLEDGED:
            turns.acknowledged = max(turns.acknowledged, number)


def read_lines(path: Path) -> list[Line]:
    """Read an operation log's lines."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
