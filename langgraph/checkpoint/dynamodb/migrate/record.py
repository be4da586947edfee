"""A checkpoint as it is moved: all that a saver keeps of it, with the places of its writes; and how two compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_metadata,
)

WRITES_DIFFER = "the pending writes differ"

Dumps: TypeAlias = Callable[[Any], tuple[str, bytes]]
"""Serializes a value, without encrypting it."""


class Ref(NamedTuple):
    """Which checkpoint of a thread; sorted, the older ones come first."""

    checkpoint_id: str
    namespace: str


class Place(NamedTuple):
    """Where a write stands among those of its checkpoint: sorted, in the order in which a run applies them."""

    task_path: str
    task_id: str
    position: int


class Write(NamedTuple):
    """A pending write with its place, which `put_writes` is given and `get_tuple` does not return."""

    place: Place
    channel: str
    value: Any


@dataclass(frozen=True)
class Record:
    """A checkpoint with everything that belongs to it but its thread."""

    namespace: str
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_id: str | None
    writes: Sequence[Write]

    @property
    def ref(self) -> Ref:
        """Which checkpoint it is."""
        return Ref(self.checkpoint["id"], self.namespace)


def record_of(found: CheckpointTuple, places: Sequence[Place]) -> Record:
    """The record of what a saver has returned, given the places of its pending writes."""
    parent = found.parent_config
    return Record(
        found.config["configurable"].get("checkpoint_ns", ""),
        found.checkpoint,
        found.metadata,
        None if parent is None else parent["configurable"]["checkpoint_id"],
        [
            Write(place, channel, value)
            for place, (_, channel, value) in zip(places, found.pending_writes or (), strict=True)
        ],
    )


def guessed_places(writes: Sequence[PendingWrite]) -> list[Place]:
    """Places that keep writes in the order that they are in, for savers of which nothing more can be learned.

    Paths of tasks are made up only where the tasks' ids alone would put them in another order.
    """
    counts = dict[str, int]()
    indexes = []
    for task_id, channel, _ in writes:
        if channel in WRITES_IDX_MAP:
            indexes.append(WRITES_IDX_MAP[channel])
        else:
            indexes.append(counts.setdefault(task_id, 0))
            counts[task_id] += 1
    places = [Place("", task_id, index) for (task_id, *_), index in zip(writes, indexes, strict=True)]
    if sorted(places) == places:
        return places
    ranks = {task_id: rank for rank, task_id in enumerate(dict.fromkeys(task_id for task_id, *_ in writes))}
    # Those that LangGraph gives begin with a tilde, behind all digits.
    return [place._replace(task_path=f"{ranks[place.task_id]:08}") for place in places]


def calls_of(
    writes: Sequence[Write],
) -> Iterator[tuple[str, str, list[tuple[str, Any]]]]:
    """The calls of `put_writes` that give writes their places: task, its path, and what it wrote.

    A write's position is that in its call, so where a call had special writes among others it has to have them again.
    """
    tasks = dict[tuple[str, str], list[Write]]()
    for write in sorted(writes, key=lambda each: each.place):
        tasks.setdefault((write.place.task_id, write.place.task_path), []).append(write)
    for (task_id, task_path), found in tasks.items():
        special = [(each.channel, each.value) for each in found if each.place.position < 0]
        regular = [each for each in found if each.place.position >= 0]
        if special:
            yield task_id, task_path, special
        call = list[tuple[str, Any]]()
        for each in regular:
            call += special[: max(0, each.place.position - len(call))]
            call.append((each.channel, each.value))
        if call:
            yield task_id, task_path, call


def own_writes(one: Record, other: Record) -> bool:
    """Whether a record has writes that another one of its checkpoint lacks, by their tasks and channels."""
    counts, others = (
        Counter((each.place.task_id, each.channel) for each in record.writes) for record in (one, other)
    )
    return bool(counts - others)


@dataclass(frozen=True)
class Comparison:
    """How records of the same checkpoint are compared: serialized, by what the target's saver makes of values."""

    dumps: Dumps
    same: Callable[[Any, Any], bool]
    """Whether two values are equal."""
    places: bool
    """Whether the places of writes are known of both, and not only their order."""

    def differences(self, one: Record, other: Record) -> list[str]:
        """What is not equal, in words."""
        found = []
        if one.parent_id != other.parent_id:
            found.append(f"the parent is {one.parent_id!r} and {other.parent_id!r}")
        if self._in_order(_metadata(one)) != self._in_order(_metadata(other)):
            found.append("the metadata differ")
        if self._in_order(_rest(one.checkpoint)) != self._in_order(_rest(other.checkpoint)):
            found.append("the versions or another part of the checkpoint differ")
        values, others = one.checkpoint["channel_values"], other.checkpoint["channel_values"]
        for name in dict.fromkeys(chain(values, others)):
            if name not in values or name not in others:
                found.append(f"channel {name!r} is in only one of them")
            elif not self.same(values[name], others[name]):
                found.append(f"channel {name!r} differs")
        if not self.same_writes(one, other):
            found.append(WRITES_DIFFER)
        return found

    def same_writes(self, one: Record, other: Record) -> bool:
        """Whether both have the same writes in the same places, or at least in the same order."""
        writes, others = (sorted(record.writes, key=lambda each: each.place) for record in (one, other))
        return len(writes) == len(others) and all(map(self._same_write, writes, others))

    def _same_write(self, one: Write, other: Write) -> bool:
        here, there = (each.place if self.places else each.place.task_id for each in (one, other))
        return (here, one.channel) == (there, other.channel) and self.same(one.value, other.value)

    def _in_order(self, value: Any) -> Any:
        """A value whose keys have no order, which some databases do not keep."""
        if isinstance(value, Mapping):
            return sorted((self.dumps(name), self._in_order(each)) for name, each in value.items())
        if isinstance(value, (list, tuple)):
            return [self._in_order(each) for each in value]
        return self.dumps(value)


def _metadata(record: Record) -> CheckpointMetadata:
    # Savers leave out null characters, as LangGraph asks them to.
    return get_checkpoint_metadata({}, record.metadata)


def _rest(checkpoint: Checkpoint) -> dict[str, Any]:
    return {name: value for name, value in checkpoint.items() if name != "channel_values"}
