"""Delta channels: the way back from a checkpoint to where each channel's value is stored.

A delta channel's value is its nearest stored value and the writes of the checkpoints since. What is on
that way must outlive the checkpoint, so pruning and expiry ask for it too. A way that is cut is an error:
it must never pass for a shorter state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, DeltaChannelHistory, PendingWrite

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import (
    Body,
    delta_counters,
    pending_writes,
    read_body,
    read_metadata,
)
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import PAGE_ITEMS_FIRST
from langgraph.checkpoint.dynamodb._operations.arguments import checked_channels, checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._operations.lineage import Lineage
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    Segments,
    find,
    load,
    read_segments,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError


def _steps_since(metadata: CheckpointMetadata, channels: AbstractSet[str]) -> int:
    """How many checkpoints back the last stored values of these channels lie, as far as the metadata say so."""
    farthest = 0
    for channel in delta_counters(metadata) & channels:
        match metadata["counters_since_delta_snapshot"][channel]:
            case [_, int(supersteps)]:
                farthest = max(farthest, supersteps)
    return farthest


@dataclass(frozen=True)
class Ancestor:
    """One step of the way back from a checkpoint: its items, its body, and the segments read so far."""

    group: Group
    body: Body


class Source(Protocol):
    """Where checkpoints and their segments come from: the table, or somebody who has access to it."""

    known: Segments

    @property
    def read(self) -> Mapping[str, Group]:
        """The checkpoints that were read so far, by their ids."""

    def start(self, checkpoint_id: str | None) -> Op[Group | None]:
        """The checkpoint that the way starts from, or the newest."""

    def group(self, checkpoint_id: str, at_least: Callable[[], int]) -> Op[Group | None]:
        """A checkpoint's items, of which each page that is read has `at_least()` many."""

    def segments(self, group: Group, ids: Iterable[bytes], *, indexes_only: bool = False) -> Op[Group]:
        """Read some of the segments that a checkpoint names; return it without writes that never counted."""


class TableSource(Lineage):
    """The table itself."""

    def __init__(self, table: Table, codec: Codec, at: Partition, *, below: str | None = None) -> None:
        """Start from below a checkpoint, or from the newest."""
        super().__init__(table, at, below=below)
        self.known = Segments()
        self._codec = codec

    def start(self, checkpoint_id: str | None) -> Op[Group | None]:
        """Find the checkpoint; of a thread that is not there, look whether it is another saver's."""
        if checkpoint_id is None:
            found = yield from self.newest()
        else:
            found = yield from find(self._table, self._at, checkpoint_id)
        if found is None:
            yield from look_for_other_savers(self._table, self._at)
        return found

    def segments(self, group: Group, ids: Iterable[bytes], *, indexes_only: bool = False) -> Op[Group]:
        """Read them.

        Raises:
            CheckpointNotFoundError: The checkpoint was deleted meanwhile.
        """
        codec = None if indexes_only else self._codec
        missing = yield from read_segments(self._table, codec, self._at.pk, ids, self.known)
        if not missing:
            return group
        try:
            whole = yield from load(self._table, self._codec, group, self.known)
        except ChangedMeanwhileError:
            whole = None
        if whole is None:
            msg = f"checkpoint {group.checkpoint_id!r} of thread {self._at.thread_id!r} was deleted while it was read"
            raise CheckpointNotFoundError(msg)
        return whole


class Ancestors:
    """The way back through a namespace's parents."""

    def __init__(self, source: Source, codec: Codec, at: Partition) -> None:
        """Take where they come from."""
        self._source = source
        self._codec = codec
        self._at = at

    def back(self, head: Item, channels: Iterable[str]) -> Op[list[Ancestor]]:
        """Walk from a head's parent to where every channel has a stored value, or to the first checkpoint.

        Raises:
            CheckpointNotFoundError: A parent on the way is not in the table any more.
        """
        remaining, path = set(channels), list[Ancestor]()
        passed = {items.checkpoint_id_of(head)}
        while remaining:
            parent_id = items.text(head, items.PARENT)
            if parent_id is None or parent_id in passed:
                # The first checkpoint; or one that was put again as a child of its own descendants.
                break
            passed.add(parent_id)
            group = yield from self._source.group(parent_id, partial(self._items_back, head, remaining))
            if group is None:
                if (yield from self._is_first(head)):
                    break
                msg = (
                    f"checkpoint {parent_id!r} of thread {self._at.thread_id!r}, namespace"
                    f" {self._at.namespace!r}, which delta channels {sorted(remaining)} are rebuilt from, is not"
                    " in the table any more; resume from a checkpoint that has a snapshot, or start a new thread"
                )
                raise CheckpointNotFoundError(msg)
            group = yield from self._source.segments(group, group.ids(), indexes_only=True)
            group = yield from self._source.segments(group, group.own_ids())
            body = read_body(self._codec, group.head, self._source.known.contents)
            path.append(Ancestor(group, body))
            remaining -= body.values.keys()
            head = group.head
        return path

    def _is_first(self, head: Item) -> Op[bool]:
        """Whether a head is of a run that found nothing stored, though it was told of a checkpoint to start from."""
        group = yield from self._source.segments(Group(head), Group(head).own_ids())
        step = read_metadata(self._codec, group.head, self._source.known.contents).get("step")
        return isinstance(step, int) and step < 0

    def load_value(self, ancestor: Ancestor, channel: str) -> Op[None]:
        """Read the segments of a channel's stored value."""
        yield from self._source.segments(ancestor.group, ancestor.body.values[channel].segments)

    def _items_back(self, head: Item, channels: AbstractSet[str]) -> int:
        """About how many items the way back from a head has; 0 where that is not known yet."""
        contents = self._source.known.contents
        if not Group(head).own_ids() <= contents.keys():
            return 0
        steps = _steps_since(read_metadata(self._codec, head, contents), channels)
        # A head and one task's writes each, unless those that were read have more; and some to spare.
        groups = self._source.read.values()
        read = sum(len(group.members) for group in groups)
        per_step = max(2, -(-read // max(1, len(groups))))
        return PAGE_ITEMS_FIRST + steps * per_step * 5 // 4


def get_delta_channel_history(
    table: Table, codec: Codec, config: RunnableConfig, channels: Sequence[str]
) -> Op[Mapping[str, DeltaChannelHistory]]:
    """Collect, for each channel, the writes since its nearest stored value, and that value."""
    at, checkpoint_id = target(config), checkpoint_id_in(config)
    source = TableSource(table, codec, at, below=checkpoint_id)
    return (yield from collect_history(source, codec, at, checkpoint_id, channels))


def collect_history(
    source: Source, codec: Codec, at: Partition, checkpoint_id: str | None, channels: Sequence[str]
) -> Op[Mapping[str, DeltaChannelHistory]]:
    """Collect, for each channel, the writes since its nearest stored value, and that value."""
    channels = checked_channels(channels)
    if not channels:
        return {}
    ancestors = Ancestors(source, codec, at)
    start = yield from source.start(checkpoint_id)
    path = [] if start is None else (yield from ancestors.back(start.head, channels))
    # How far back each channel's writes count; the ancestor with the stored value has the first of them.
    depths = {
        channel: next((depth for depth, each in enumerate(path) if channel in each.body.values), len(path))
        for channel in channels
    }
    for channel, depth in depths.items():
        if depth < len(path):
            yield from ancestors.load_value(path[depth], channel)
    contents = source.known.contents

    def collect() -> dict[str, DeltaChannelHistory]:
        writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
        for depth, each in reversed(list(enumerate(path))):
            wanted = frozenset(channel for channel in channels if depth <= depths[channel])
            for write in pending_writes(codec, each.group.writes, contents, wanted):
                writes[write[1]].append(write)
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": writes[channel]} for channel in channels}
        for channel, depth in depths.items():
            if depth < len(path):
                value = path[depth].body.values[channel]
                found[channel]["seed"] = codec.loads(value.kind, value.join(contents), path[depth].group.head)
        return found

    return (yield from work(collect, sum(map(len, contents.values()))))
