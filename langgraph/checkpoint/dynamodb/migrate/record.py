"""Records of checkpoints as they are moved: their writes in order, their comparison, the kinds of their versions."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint import base

WRITES_DIFFER = "the pending writes differ"

Dumps: TypeAlias = Callable[[Any], tuple[str, bytes]]
"""Serializes a value, without encrypting it."""


class Ref(NamedTuple):
    """The id and namespace of a checkpoint in a thread. Older ones sort first."""

    checkpoint_id: str
    namespace: str


class WritePosition(NamedTuple):
    """The position of a write among those of its checkpoint. They sort in the order in which a run applies them."""

    task_path: str
    task_id: str
    number: int


class WriteRecord(NamedTuple):
    """A pending write with its position, which `put_writes` takes and `get_tuple` does not return."""

    position: WritePosition
    channel: str
    value: Any


@dataclass(frozen=True)
class Record:
    """A checkpoint with everything that belongs to it but its thread."""

    namespace: str
    checkpoint: base.Checkpoint
    metadata: base.CheckpointMetadata
    parent_id: str | None
    writes: Sequence[WriteRecord]

    @property
    def ref(self) -> Ref:
        """The checkpoint's id and namespace."""
        return Ref(self.checkpoint["id"], self.namespace)


def record_of(found: base.CheckpointTuple, positions: Sequence[WritePosition]) -> Record:
    """Return the record of a checkpoint that a saver returned, given the positions of its pending writes."""
    parent = found.parent_config
    return Record(
        found.config["configurable"].get("checkpoint_ns", ""),
        found.checkpoint,
        found.metadata,
        None if parent is None else parent["configurable"]["checkpoint_id"],
        [
            WriteRecord(position, channel, value)
            for position, (_, channel, value) in zip(positions, found.pending_writes or (), strict=True)
        ],
    )


def guessed_positions(writes: Sequence[base.PendingWrite]) -> list[WritePosition]:
    """Return positions that keep writes in their order, for savers that offer nothing better.

    Task paths are made up only if the tasks' ids alone would change the order.
    """
    counts = dict[str, int]()
    indexes = []
    for task_id, channel, _ in writes:
        if channel in base.WRITES_IDX_MAP:
            indexes.append(base.WRITES_IDX_MAP[channel])
        else:
            indexes.append(counts.setdefault(task_id, 0))
            counts[task_id] += 1
    positions = [
        WritePosition("", task_id, index) for (task_id, *_), index in zip(writes, indexes, strict=True)
    ]
    if sorted(positions) == positions:
        return positions
    ranks = {task_id: rank for rank, task_id in enumerate(dict.fromkeys(task_id for task_id, *_ in writes))}
    # LangGraph's own paths begin with a tilde, which sorts after all digits.
    return [position._replace(task_path=f"{ranks[position.task_id]:08}") for position in positions]


def calls_of(writes: Sequence[WriteRecord]) -> Iterator[tuple[str, str, list[tuple[str, Any]]]]:
    """Yield the calls of `put_writes` that put writes in their positions: task, path, and the task's writes.

    A write's position is its position in the call. So if a call had special writes among others, they have to be
    repeated.
    """
    tasks = dict[tuple[str, str], list[WriteRecord]]()
    for write in sorted(writes, key=lambda each: each.position):
        tasks.setdefault((write.position.task_id, write.position.task_path), []).append(write)
    for (task_id, task_path), found in tasks.items():
        special = [(each.channel, each.value) for each in found if each.position.number < 0]
        regular = [each for each in found if each.position.number >= 0]
        if special:
            yield task_id, task_path, special
        call = list[tuple[str, Any]]()
        for each in regular:
            call += special[: max(0, each.position.number - len(call))]
            call.append((each.channel, each.value))
        if call:
            yield task_id, task_path, call


def own_writes(one: Record, other: Record) -> bool:
    """Tell whether a record has writes that another record of the checkpoint lacks, by their tasks and channels."""
    counts, others = (
        Counter((each.position.task_id, each.channel) for each in record.writes) for record in (one, other)
    )
    return bool(counts - others)


@dataclass(frozen=True)
class Comparison:
    """A comparison of records of the same checkpoint, by their values as the target's saver serializes them."""

    dumps: Dumps
    same: Callable[[Any, Any], bool]
    """Tells whether two values are equal."""
    positions: bool
    """Whether both sides know the positions of writes, and not only their order."""

    def differences(self, one: Record, other: Record) -> list[str]:
        """Return the differences, in words."""
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
        """Tell whether both have the same writes in the same positions, or at least in the same order."""
        writes, others = (sorted(record.writes, key=lambda each: each.position) for record in (one, other))
        return len(writes) == len(others) and all(map(self._same_write, writes, others))

    def _same_write(self, one: WriteRecord, other: WriteRecord) -> bool:
        here, there = (each.position if self.positions else each.position.task_id for each in (one, other))
        return (here, one.channel) == (there, other.channel) and self.same(one.value, other.value)

    def _in_order(self, value: Any) -> Any:
        """Return a value in which the order of keys does not matter, since some databases do not keep it."""
        if isinstance(value, Mapping):
            return sorted((self.dumps(name), self._in_order(each)) for name, each in value.items())
        if isinstance(value, (list, tuple)):
            return [self._in_order(each) for each in value]
        return self.dumps(value)


def _metadata(record: Record) -> base.CheckpointMetadata:
    # Savers remove null characters, as LangGraph asks them to.
    return base.get_checkpoint_metadata({}, record.metadata)


def _rest(checkpoint: base.Checkpoint) -> dict[str, Any]:
    return {name: value for name, value in checkpoint.items() if name != "channel_values"}


# Versions of channels
#
# This package's saver and langgraph-checkpoint-aws count in whole numbers; LangGraph's own savers use padded strings
# with a random end. A saver cannot continue from versions of the other kind, and savers that store values by channel
# and version would mix the values of two forks under one number. So each whole number becomes a string that ends with a
# digest of the channel's value, and each string becomes its number.

# The end of a version whose value is not in the checkpoint: the channel is empty, or a node has seen an older version.
_NO_VALUE = "0" * 16


def kind_of_versions(next_version: Callable[[Any], Any], checkpoint: base.Checkpoint) -> type | None:
    """Return the type of versions that a saver gives, or None if those of the checkpoint are of that type.

    A saver that can count on from others begins a channel with its own: LangGraph does so when it first stores a delta
    channel, and cannot compare the two.
    """
    version = next(iter(checkpoint["channel_versions"].values()), None)
    first = type(next_version(None))
    return None if version is None or type(version) is first else first


def translated(record: Record, kind: type, dumps: Dumps) -> Record:
    """Return a record with versions of another kind.

    Args:
        record: The record as the source has it.
        kind: The type of the new versions, `str` or `int`.
        dumps: Serializes the values of channels.
    """
    checkpoint = record.checkpoint
    own, values = checkpoint["channel_versions"], checkpoint["channel_values"]

    def to(name: str, version: Any) -> Any:
        number = int(str(version).split(".")[0])
        if kind is int:
            return number
        is_here = name in values and own.get(name) == version
        return f"{number:032}.{_digits(*dumps(values[name])) if is_here else _NO_VALUE}"

    seen = {
        node: {name: to(name, version) for name, version in channels.items()}
        for node, channels in checkpoint["versions_seen"].items()
    }
    versions = {name: to(name, version) for name, version in own.items()}
    new: Any = {**checkpoint, "channel_versions": versions, "versions_seen": seen}
    return replace(record, checkpoint=new)


def _digits(kind: str, data: bytes) -> str:
    """Return sixteen characters, in the form of a random number, that depend on a serialized value alone."""
    digest = blake2b(kind.encode() + data, digest_size=8).digest()
    return f"0.{int.from_bytes(digest, 'big') % 10**14:014}"
