"""A saver as the place that threads are moved from or to: which threads it has, and their checkpoints as records.

`SaverStore` needs nothing but LangGraph's interface. Stores of savers that are known read ids and the places of writes
where they are kept, which is cheaper and exact.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, PendingWrite

from langgraph.checkpoint.dynamodb.migrate.kept import can_keep, keeping, unencrypted
from langgraph.checkpoint.dynamodb.migrate.record import (
    Place,
    Record,
    Ref,
    calls_of,
    guessed_places,
    record_of,
)

# How often a checkpoint is read again because its writes seem to come in meanwhile.
_ATTEMPTS_MAX = 3


class Source(Protocol):
    """What threads can be moved from."""

    @property
    def knows_places(self) -> bool:
        """Whether the places of writes are read where they are kept, and not guessed."""

    def can_keep(self) -> bool:
        """Whether values can be moved without making the objects in them."""

    def keep_values(self) -> None:
        """From now on, give values with the objects in them as they are stored."""

    def thread_ids(self) -> Iterator[str]:
        """The ids of all threads, each once."""

    def refs(self, thread_id: str) -> list[Ref]:
        """A thread's checkpoints in every namespace, the oldest first."""

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Checkpoints of a thread as they are read one after the other; None for one that is not there any more."""

    def stored_bytes(self, thread_id: str) -> int | None:
        """How much a thread takes up, as it is stored; None where that is not known."""


class SaverStore:
    """Any saver, by what LangGraph asks of all of them."""

    knows_places = False
    """Whether the places of writes are read where they are kept, and not guessed."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        """Take a saver whose blocking methods can be called."""
        self.saver = saver
        # What reads and writes; LangGraph itself copies a saver to give it another serializer.
        self.mover = saver

    # Values

    def can_keep(self) -> bool:
        """Whether values can be moved without making the objects in them."""
        return can_keep(self.saver.serde)

    def keep_values(self) -> None:
        """From now on, give and take values with the objects in them as they are stored."""
        self.mover = copy.copy(self.saver)
        self.mover.serde = keeping(self.saver.serde)

    def dumps(self, value: Any) -> tuple[str, bytes]:
        """Serialize a value as the saver does, but for encryption."""
        return unencrypted(self.mover.serde).dumps_typed(value)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values are equal: serialized, or where objects are made, as objects."""
        if self.dumps(one) == self.dumps(other):
            return True
        # Objects that are equal may be serialized differently, as by pickle; what is kept as it is may not.
        return self.mover is self.saver and is_equal(one, other)

    def loads(self, value: tuple[str, bytes]) -> Any:
        """Read a value that was serialized."""
        return unencrypted(self.mover.serde).loads_typed(value)

    # Reading

    def thread_ids(self) -> Iterator[str]:
        """The ids of all threads, each once."""
        seen = set[str]()
        for found in self.mover.list(None):
            thread_id = str(found.config["configurable"]["thread_id"])
            if thread_id not in seen:
                seen.add(thread_id)
                yield thread_id

    def refs(self, thread_id: str) -> list[Ref]:
        """A thread's checkpoints in every namespace, the oldest first."""
        return sorted(
            Ref(each["checkpoint_id"], each.get("checkpoint_ns", ""))
            for each in (found.config["configurable"] for found in self.mover.list(_config(thread_id)))
        )

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Checkpoints of a thread as they are read one after the other; None for one that is not there any more."""
        for ref in refs:
            yield self._record(_config(thread_id, ref.namespace, ref.checkpoint_id))

    def _record(self, config: RunnableConfig, attempts_left: int = _ATTEMPTS_MAX) -> Record | None:
        found = self.mover.get_tuple(config)
        if found is None:
            return None
        writes = found.pending_writes or []
        places = self._places(config, writes)
        if places is not None:
            return record_of(found, places)
        if attempts_left > 1:
            return self._record(config, attempts_left - 1)
        # The saver leaves out some of them, as langgraph-checkpoint-aws's does with those that have lost their content.
        return record_of(found, guessed_places(writes))

    def _places(self, config: RunnableConfig, writes: Sequence[PendingWrite]) -> list[Place] | None:
        """The places of a checkpoint's pending writes, in their order; None where these are not all that are stored."""
        stored = self.stored_places(config) if writes else []
        if stored is None:
            return guessed_places(writes)
        # What a task wrote has an order of its own in any saver, whatever that of the tasks.
        own = {
            task_id: iter([each for each in stored if each[0].task_id == task_id]) for task_id, *_ in writes
        }
        pairs = [next(own[task_id], None) for task_id, *_ in writes]
        found_pairs = [each for each in pairs if each is not None]
        if len(stored) != len(writes) or [channel for _, channel in found_pairs] != [
            each[1] for each in writes
        ]:
            return None
        return [place for place, _ in found_pairs]

    def stored_places(self, config: RunnableConfig) -> Sequence[tuple[Place, str]] | None:
        """The places and channels of a checkpoint's writes, in the order of its pending writes; None if unknown."""
        del config
        return None

    def stored_bytes(self, thread_id: str) -> int | None:
        """How much a thread takes up, as it is stored; None where that is not known."""
        del thread_id
        return None

    # Writing

    def seconds_to_wait(self) -> float:
        """How long to wait before the next checkpoint, so as to stay within a capacity."""
        return 0.0

    def put(self, thread_id: str, record: Record) -> None:
        """Store a checkpoint, and then its writes."""
        parent = _config(thread_id, record.namespace, record.parent_id)
        # Every value is given as new, so that none depends on what the parent has.
        self.mover.put(parent, record.checkpoint, record.metadata, record.checkpoint["channel_versions"])
        self.put_writes(thread_id, record)

    def put_writes(self, thread_id: str, record: Record) -> None:
        """Store the writes of a checkpoint that is there already."""
        config = _config(thread_id, record.namespace, record.checkpoint["id"])
        for task_id, task_path, writes in calls_of(record.writes):
            self.mover.put_writes(config, writes, task_id, task_path)

    # Versions

    def next_version(self, version: Any) -> Any:
        """The version that the saver would give a channel next, whatever kind it makes of it."""
        return self.saver.get_next_version(version, None)

    def close(self) -> None:
        """Let go of connections."""


def is_equal(one: Any, other: Any) -> bool:
    """Whether two objects say that they are equal; some, such as arrays, do not say it in a word."""
    try:
        return bool(one == other)
    except ValueError:
        return False


def _config(thread_id: str, namespace: str | None = None, checkpoint_id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread_id}
    if namespace is not None:
        configurable["checkpoint_ns"] = namespace
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}
