"""A simulated world as bytes, from which any number of runs go on: each gets a world of its own.

What many runs begin with happens once so, and a run can end in more than one way. A world has no generators in it as
long as nothing is under way. What it shares with its copies knows nothing of a run.
"""

import io
import pickle
import threading
from typing import Any, Generic, TypeVar

from langgraph.checkpoint.dynamodb._format.codec import Codec
from tests.simulation.schedule import Choices

_World = TypeVar("_World")

_LOCKS: dict[type, Any] = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}


class Snapshot(Generic[_World]):
    """One world, or several objects of one, as they are when this is made."""

    def __init__(self, world: _World) -> None:
        """Take what a run may go on from."""
        written = io.BytesIO()
        pickler = _Pickler(written)
        pickler.dump(world)
        self._bytes = written.getvalue()
        self._codecs = pickler.codecs

    def copy(self, choices: Choices) -> _World:
        """Return a world of its own, in which these decide what is still to be decided."""
        world: _World = _Unpickler(io.BytesIO(self._bytes), choices, self._codecs).load()
        return world


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.codecs: list[Codec] = []

    def persistent_id(self, obj: Any) -> object:
        if isinstance(obj, Choices):
            return "choices"
        if isinstance(obj, Codec):
            self.codecs.append(obj)
            return len(self.codecs) - 1
        return None

    def reducer_override(self, obj: Any) -> Any:
        return (_LOCKS[type(obj)], ()) if type(obj) in _LOCKS else NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, choices: Choices, codecs: list[Codec]) -> None:
        super().__init__(file)
        self._choices = choices
        self._codecs = codecs

    def persistent_load(self, pid: Any) -> Any:
        return self._choices if pid == "choices" else self._codecs[pid]
