"""Delta channels: collect the stored value of each channel, and the writes since, from a checkpoint's ancestors.

A delta channel's value is its nearest stored value and the writes of the checkpoints since. All these ancestors must
outlive the checkpoint, so pruning and expiry keep them too. A missing ancestor is an error: it must never pass for a
shorter state.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, DeltaChannelHistory, PendingWrite

from .._format import items, limits
from .._format.codec import Codec
from .._format.content import Body, Contents, delta_counters, pending_writes, read_body, read_metadata
from .._format.items import Item, Partition
from .._runtime.steps import Op, work
from .._runtime.storage import Storage
from ..errors import CheckpointNotFoundError
from . import arguments, other_savers
from .reads import AncestorReader, ChangedMeanwhileError, LoadedSegments, StoredCheckpoint, find, load


def _steps_since(metadata: CheckpointMetadata, channels: AbstractSet[str]) -> int:
    """Return how many checkpoints back the stored values of these channels lie, as far as the metadata tell."""
    farthest = 0
    for channel in delta_counters(metadata) & channels:
        match metadata["counters_since_delta_snapshot"][channel]:
            case [_, int(supersteps)]:
                farthest = max(farthest, supersteps)
    return farthest


def _deleted_meanwhile(checkpoint_id: str, partition: Partition) -> CheckpointNotFoundError:
    return CheckpointNotFoundError(
        f"checkpoint {checkpoint_id!r} of thread {partition.thread_id!r} was deleted while it was read; retry the call"
    )


@dataclass(frozen=True)
class Ancestor:
    """One ancestor of a checkpoint: its items and its body."""

    checkpoint: StoredCheckpoint
    body: Body


class Ancestors(AncestorReader):
    """Reads the ancestors of a checkpoint with their bodies."""

    def __init__(self, storage: Storage, partition: Partition, *, below: str | None = None) -> None:
        """Start below a checkpoint, or at the newest one."""
        super().__init__(storage, partition, below=below)
        self._codec = storage.codec
        self.known = LoadedSegments(partition.pk)

    def start(self, checkpoint_id: str | None, *, as_ancestor: bool = False) -> Op[StoredCheckpoint | None]:
        """Find the checkpoint, or the newest one. If there is none, raise if the thread is another saver's.

        One that is read as an ancestor may have expired for readers.
        """
        if checkpoint_id is None:
            found = yield from self.newest()
        else:
            found = yield from find(self._storage, self._partition, checkpoint_id, as_ancestor=as_ancestor)
        if found is None:
            yield from other_savers.look_for_other_savers(self._storage, self._partition)
        return found

    def segments(
        self, checkpoint: StoredCheckpoint, ids: Iterable[bytes], *, indexes_only: bool = False
    ) -> Op[StoredCheckpoint]:
        """Read some of the segments that a checkpoint names; return it without writes that were never acknowledged.

        Raises:
            CheckpointNotFoundError: The checkpoint was deleted meanwhile.
        """
        read = self.known.read_indexes if indexes_only else self.known.read
        missing = yield from read(self._storage, ids)
        if not missing:
            return checkpoint
        try:
            whole = yield from load(self._storage, checkpoint, self.known)
        except ChangedMeanwhileError:
            whole = None
        if whole is None:
            raise _deleted_meanwhile(checkpoint.checkpoint_id, self._partition)
        return whole

    def with_body(self, checkpoint: StoredCheckpoint) -> Op[Ancestor]:
        """Read a checkpoint's body, which confirms its link to the parent."""
        checkpoint = yield from self.segments(checkpoint, checkpoint.ids(), indexes_only=True)
        checkpoint = yield from self.segments(checkpoint, checkpoint.own_ids())
        return Ancestor(checkpoint, read_body(self._codec, checkpoint.head, self.known.contents))

    def with_bodies(
        self, head: Item, channels: Iterable[str], is_full: Callable[[int], bool]
    ) -> Op[tuple[list[Ancestor], bool]]:
        """Walk back from a head's parent until every channel has a stored value, or to the first checkpoint.

        Args:
            head: The head.
            channels: The channels.
            is_full: Tells, given about how many bytes were read, whether to stop before that.

        Returns:
            The ancestors, and whether there may be more.

        Raises:
            CheckpointNotFoundError: An ancestor is not in the table any more.
        """
        remaining, path, size_bytes = set(channels), list[Ancestor](), 0
        passed = {items.checkpoint_id_of(head)}
        while remaining:
            parent_id = items.text(head, items.PARENT)
            if parent_id is None or parent_id in passed:
                # This is the first checkpoint, or one that was put again as a child of its own descendants.
                break
            passed.add(parent_id)
            checkpoint = yield from self.checkpoint(parent_id, partial(self._items_back, head, remaining))
            if checkpoint is None:
                if (yield from self._is_first(head)):
                    break
                raise CheckpointNotFoundError(
                    f"delta channels {sorted(remaining)} cannot be rebuilt: checkpoint {parent_id!r} of thread"
                    f" {self._partition.thread_id!r}, namespace {self._partition.namespace!r}, is no longer in the"
                    " table; resume from a checkpoint that has a snapshot, or start a new thread"
                )
            ancestor = yield from self.with_body(checkpoint)
            path.append(ancestor)
            remaining -= ancestor.body.values.keys()
            checkpoint = ancestor.checkpoint
            head = checkpoint.head
            size_bytes += checkpoint.sealed_bytes()
            size_bytes += sum(len(self.known.contents[each]) for each in checkpoint.own_ids())
            if remaining and is_full(size_bytes):
                return path, True
        return path, False

    def _is_first(self, head: Item) -> Op[bool]:
        """Tell whether a head belongs to a run that found nothing stored, although its config named a checkpoint."""
        checkpoint = yield from self.segments(StoredCheckpoint(head), StoredCheckpoint(head).own_ids())
        step = read_metadata(self._codec, checkpoint.head, self.known.contents).get("step")
        return isinstance(step, int) and step < 0

    def _items_back(self, head: Item, channels: AbstractSet[str]) -> int:
        """Estimate how many items the ancestors of a head have; return 0 if that is not known yet."""
        contents = self.known.contents
        if not StoredCheckpoint(head).own_ids() <= contents.keys():
            return 0
        steps = _steps_since(read_metadata(self._codec, head, contents), channels)
        # Assume a head and one task's writes each, or more if the checkpoints read so far have more, plus a quarter.
        checkpoints = self.read.values()
        read = sum(len(checkpoint.members) for checkpoint in checkpoints)
        per_step = max(2, -(-read // max(1, len(checkpoints))))
        return limits.PAGE_ITEMS_FIRST + steps * per_step * 5 // 4


def get_delta_channel_history(
    storage: Storage, config: RunnableConfig, channels: Sequence[str]
) -> Op[Mapping[str, DeltaChannelHistory]]:
    """Collect each channel's nearest stored value and the writes since."""
    page = yield from find_history(storage, config, channels)
    return page.channels


@dataclass(frozen=True)
class HistoryPage:
    """The newest part of a history, or all of it."""

    channels: Mapping[str, DeltaChannelHistory] = field(default_factory=dict)
    checkpoint_ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By channel, the checkpoint of each write."""
    after: str | None = None
    """The last checkpoint of the page, if another page follows."""


def find_history(
    storage: Storage,
    config: RunnableConfig,
    channels: Sequence[str],
    *,
    after: str | None = None,
    is_full: Callable[[int], bool] = lambda _: False,
) -> Op[HistoryPage]:
    """Collect as `get_delta_channel_history` does, in pages.

    Args:
        storage: The storage.
        config: The checkpoint.
        channels: The channels, on a later page only those that had no stored value yet.
        after: The last checkpoint of the page before.
        is_full: Tells, given about how many bytes were read, whether the page ends.

    Raises:
        CheckpointNotFoundError: A checkpoint that the history needs is not in the table any more.
    """
    partition, checkpoint_id = arguments.target(config), after or arguments.checkpoint_id_in(config)
    channels, codec = arguments.checked_channels(channels), storage.codec
    if not channels:
        return HistoryPage()
    ancestors = Ancestors(storage, partition, below=checkpoint_id)
    start = yield from ancestors.start(checkpoint_id, as_ancestor=after is not None)
    if start is None and after is not None:
        raise _deleted_meanwhile(after, partition)
    path, has_more = list[Ancestor](), False
    if start is not None:
        start = (yield from ancestors.with_body(start)).checkpoint
        path, has_more = yield from ancestors.with_bodies(start.head, channels, is_full)
    # How far back each channel's writes are needed: the ancestor with the stored value has the first of them.
    depths = {
        channel: next((depth for depth, each in enumerate(path) if channel in each.body.values), len(path))
        for channel in channels
    }
    for channel, depth in depths.items():
        if depth < len(path):
            stored = path[depth].body.values[channel]
            yield from ancestors.segments(path[depth].checkpoint, stored.segments)
    contents = ancestors.known.contents

    after = path[-1].checkpoint.checkpoint_id if has_more else None
    collect = partial(_page, codec, path, depths, contents, after)
    return (yield from work(collect, sum(map(len, contents.values()))))


def _page(
    codec: Codec, path: Sequence[Ancestor], depths: Mapping[str, int], contents: Contents, after: str | None
) -> HistoryPage:
    """Collect what each channel needs of the ancestors up to its depth."""
    writes: dict[str, list[PendingWrite]] = {channel: [] for channel in depths}
    checkpoint_ids: dict[str, list[str]] = {channel: [] for channel in depths}
    for depth, each in reversed(list(enumerate(path))):
        wanted = frozenset(channel for channel in depths if depth <= depths[channel])
        for write in pending_writes(codec, each.checkpoint.writes, contents, wanted):
            writes[write[1]].append(write)
            checkpoint_ids[write[1]].append(each.checkpoint.checkpoint_id)
    found: dict[str, DeltaChannelHistory] = {channel: {"writes": writes[channel]} for channel in depths}
    for channel, depth in depths.items():
        if depth < len(path):
            value = path[depth].body.values[channel]
            found[channel]["seed"] = codec.loads(
                value.kind, value.join(contents), path[depth].checkpoint.head
            )
    return HistoryPage(found, checkpoint_ids, after)
