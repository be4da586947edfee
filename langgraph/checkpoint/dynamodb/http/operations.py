"""What the client does of the saver's operations: it composes and opens, and the service does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import read_writes
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._operations import put, put_with_writes, put_writes
from langgraph.checkpoint.dynamodb._operations.arguments import (
    checked_before,
    checked_filter,
    checked_ids,
    checked_limit,
    checkpoint_id_in,
    target,
)
from langgraph.checkpoint.dynamodb._operations.delete import checked_count
from langgraph.checkpoint.dynamodb._operations.delta_history import collect_history
from langgraph.checkpoint.dynamodb._operations.get import decode, decode_tuple, read_bytes
from langgraph.checkpoint.dynamodb._operations.put_with_writes import HeldWrites
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments, config_of
from langgraph.checkpoint.dynamodb._operations.unserved import Unserved
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, collected, work
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerConfigurationError,
    CheckpointerInputError,
    CheckpointNotFoundError,
)
from langgraph.checkpoint.dynamodb.http.access import (
    About,
    GatewayAccess,
    Newest,
    ask,
    group_of,
    place_of,
)
from langgraph.checkpoint.dynamodb.http.documents import can_be_packed
from langgraph.checkpoint.dynamodb.http.prefix import ThreadPrefix

T = TypeVar("T")

WIRE_VERSION = 1
# The first page of a list without a limit; its consumer may stop at any time. Later ones grow.
_PAGE_FIRST = 8
_PAGE_MAX = 256
# Checkpoints of a list share segments, so these are kept, of so many namespaces and up to so many bytes of each.
_NAMESPACES_KEPT = 16
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024
# Ancestors that are asked for at first; later pages grow.
_ANCESTORS_FIRST = 8
_ANCESTORS_MAX = 512
# How many threads one request names; their ids may be long.
_PRUNED_AT_ONCE = 1000


@dataclass
class Gateway:
    """One service, with what its client remembers and composes with."""

    table: Table
    # The keyword arguments of a codec, but for the table that what it encrypts is bound to.
    codec_options: Mapping[str, Any]
    bound_to: str | None = None
    prefix: ThreadPrefix = field(default_factory=ThreadPrefix)
    about: About | None = None
    newest: Newest = field(default_factory=Newest)

    def codec(self, serde: SerializerProtocol) -> Codec:
        """What values are serialized with. What is encrypted is bound to the table, once its name is known."""
        table_name = self.bound_to or ("" if self.about is None else self.about.table_name)
        return Codec(serde, bound_to=table_name, **self.codec_options)

    def access(self, serde: SerializerProtocol) -> Op[GatewayAccess]:
        """Access for one call; the first one of a process asks the service what it is."""
        if self.about is None:
            answer = yield from ask("about", {})
            if answer["wire_version"] != WIRE_VERSION:
                msg = (
                    f"the gateway speaks version {answer['wire_version']} of the wire format, and this client"
                    f" {WIRE_VERSION}; use the same release of langgraph-dynamodb in both"
                )
                raise CheckpointerConfigurationError(msg)
            limits = answer["limits"]
            self.about = About(
                answer["table_name"].rpartition("/")[2], limits["body_bytes_max"], limits["items_max"]
            )
        return GatewayAccess(self.table, self.codec(serde), self.about, self.newest)


# Reading


def get_tuple(
    gateway: Gateway, serde: SerializerProtocol, config: RunnableConfig
) -> Op[CheckpointTuple | None]:
    """Read the checkpoint that a config names, or the newest of its namespace."""
    at, checkpoint_id = target(gateway.prefix.inside(config)), checkpoint_id_in(config)
    access = yield from gateway.access(serde)
    read = yield from access.read(at, checkpoint_id)
    if read is None:
        return None
    found, entry = yield from work(partial(decode, at, access.codec, *read), read_bytes(*read))
    gateway.table.memory.remember_checkpoint(at.pk, read[0].checkpoint_id, entry)
    return gateway.prefix.shown(found)


def list_checkpoints(
    gateway: Gateway,
    serde: SerializerProtocol,
    config: RunnableConfig | None,
    metadata_filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Stream[CheckpointTuple]:
    """List the checkpoints that match, newest first. What cannot be listed is refused at once."""
    matching = checked_filter(metadata_filter)
    # What cannot travel, such as a set, is looked for here alone, as everything is in what comes.
    asked = {name: value for name, value in matching.items() if can_be_packed({name: value})}
    wanted: dict[str, Any] = {"filter": asked, "before": checked_before(before)}
    checked_limit(limit)
    if config is not None:
        at, checkpoint_id = target(gateway.prefix.inside(config)), checkpoint_id_in(config)
        namespace = None if config["configurable"].get("checkpoint_ns") is None else at.namespace
        wanted |= {"thread_id": at.thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    # Of all threads there is one page, which ends too early where some of it is left out here.
    page_limit = limit if config is not None or not (matching or gateway.prefix) else None
    listed = _listed(gateway, serde, wanted, page_limit, decode_tuple)
    return _matching(listed, matching, gateway.prefix, limit)


def _matching(
    found: Stream[CheckpointTuple],
    metadata_filter: Mapping[str, Any],
    prefix: ThreadPrefix,
    limit: int | None,
) -> Stream[CheckpointTuple]:
    """Leave out what does not match: the service knows no prefix, and cannot look into metadata that are sealed."""
    left = limit
    outcomes: Any = None
    while left is None or left > 0:
        try:
            step = found.send(outcomes)
        except StopIteration:
            return
        if not isinstance(step, Emit):
            outcomes = yield step
            continue
        outcomes = None
        metadata: Mapping[str, Any] = step.value.metadata
        if prefix.has(step.value) and all(
            metadata.get(name) == value for name, value in metadata_filter.items()
        ):
            left = None if left is None else left - 1
            yield Emit(prefix.shown(step.value))


def _listed(
    gateway: Gateway,
    serde: SerializerProtocol,
    wanted: Mapping[str, Any],
    limit: int | None,
    decode: Callable[[Partition, Codec, Group, Segments], T],
) -> Stream[T]:
    """Give what `decode` makes of the checkpoints of a list, page by page."""
    access = yield from gateway.access(serde)
    pages, segments = _Pages(wanted, limit), dict[str, Segments]()
    while not pages.done:
        for document in (yield from pages.next()):
            at = items.partition(document["thread_id"], document["checkpoint_ns"])
            if at.pk not in segments and len(segments) > _NAMESPACES_KEPT:
                segments.clear()
            known = segments.setdefault(at.pk, Segments())
            group = group_of(at, document)
            yield from access.take(at, known, document)
            if (yield from access.fill(at, known, group.ids())):
                read = yield from access.read(at, group.checkpoint_id, "checked")
                if read is None:
                    # It was deleted meanwhile.
                    continue
                group, known = read
            sealed_bytes = sum(len(known.contents.get(each, b"")) for each in group.ids())
            yield Emit((yield from work(partial(decode, at, access.codec, group, known), sealed_bytes)))
            if sum(map(len, known.contents.values())) > _SEGMENT_BYTES_KEPT:
                segments.clear()


class _Pages:
    """The pages of a list.

    A service with another key refuses the cursor. The list then begins anew as near to its place as `before` can name,
    which is above all checkpoints with the last id, and skips what it gave.
    """

    def __init__(self, wanted: Mapping[str, Any], limit: int | None) -> None:
        """Take what every page is asked for with, and how many checkpoints the list is to have."""
        self.done = False
        self._wanted = wanted
        self._limit = limit
        self._count = limit or _PAGE_FIRST
        self._cursor: str | None = None
        # The id and the namespace of the checkpoint that came last, and how many came with its id.
        self._last: tuple[str, str] | None = None
        self._same_id = 0
        self._above: str | None = wanted.get("before")
        self._refused_at: tuple[str, str] | None = None

    def next(self) -> Op[list[Any]]:
        """Ask for a page and return its checkpoints.

        Raises:
            CheckpointerInputError: The list cannot be asked for like this; or cursors are refused again and again, and
                it does not get on.
        """
        try:
            documents = yield from self._page()
        except CheckpointerInputError:
            # The first page was not refused, so it is the cursor that is.
            if self._cursor is None or self._refused_at == self._last:
                raise
            self._refused_at = self._last
            self._cursor, self._wanted = None, {**self._wanted, "before": self._above}
            documents = [each for each in (yield from self._page()) if not self._has_given(each)]
        # Of all threads there is one page: where another one began would move with whatever is stored meanwhile.
        self.done = self._cursor is None or "thread_id" not in self._wanted
        for document in documents:
            self._note(document)
        return documents

    def _page(self) -> Op[list[Any]]:
        size = self._limit
        if "thread_id" in self._wanted:
            size = min(self._count, _PAGE_MAX) + (self._same_id if self._cursor is None else 0)
        page = {**self._wanted, "limit": size, "cursor": self._cursor}
        documents: list[Any] = yield from ask("list", page)
        self._cursor, self._count = documents[-1]["cursor"], min(2 * self._count, _PAGE_MAX)
        return documents[:-1]

    def _has_given(self, document: Mapping[str, Any]) -> bool:
        last_id, namespace = self._last or ("", "")
        checkpoint_id: str = document["checkpoint_id"]
        return checkpoint_id > last_id or (
            checkpoint_id == last_id and document["checkpoint_ns"] <= namespace
        )

    def _note(self, document: Mapping[str, Any]) -> None:
        """Remember where the list is."""
        last, self._last = self._last, (document["checkpoint_id"], document["checkpoint_ns"])
        if last is not None and last[0] != self._last[0]:
            self._above, self._same_id = last[0], 0
        self._same_id += 1


def get_delta_channel_history(
    gateway: Gateway, serde: SerializerProtocol, config: RunnableConfig, channels: Sequence[str]
) -> Op[Mapping[str, DeltaChannelHistory]]:
    """Collect, for each channel, the writes since its nearest stored value, and that value."""
    at, checkpoint_id = target(gateway.prefix.inside(config)), checkpoint_id_in(config)
    access = yield from gateway.access(serde)
    source = _GatewaySource(access, at)
    return (yield from collect_history(source, access.codec, at, checkpoint_id, channels))


class _GatewaySource:
    """The ancestors of a checkpoint, as the gateway gives them page by page."""

    def __init__(self, access: GatewayAccess, at: Partition) -> None:
        self.known = Segments()
        self.read: dict[str, Group] = {}
        self._access = access
        self._at = at
        self._last: str | None = None
        self._ended = False
        self._count = _ANCESTORS_FIRST

    def start(self, checkpoint_id: str | None) -> Op[Group | None]:
        """The checkpoint that the way starts from, or the newest."""
        yield from self._page({"checkpoint_id": checkpoint_id})
        return next(iter(self.read.values()), None)

    def group(self, checkpoint_id: str, at_least: Callable[[], int]) -> Op[Group | None]:
        """The next ancestor."""
        del at_least
        while checkpoint_id not in self.read and not self._ended:
            yield from self._page({"after": self._last})
        return self.read.get(checkpoint_id)

    def segments(self, group: Group, ids: Iterable[bytes], *, indexes_only: bool = False) -> Op[Group]:
        """Read segments that did not come with the items.

        Raises:
            CheckpointNotFoundError: They have gone meanwhile.
        """
        # Index segments, and what the items' own content is in, come with them.
        if not indexes_only and (yield from self._access.fill(self._at, self.known, ids)):
            msg = f"checkpoint {group.checkpoint_id!r} of thread {self._at.thread_id!r} was deleted while it was read"
            raise CheckpointNotFoundError(msg)
        return group

    def _page(self, wanted: Mapping[str, Any]) -> Op[None]:
        document = {**place_of(self._at), **wanted, "count": self._count}
        answer = yield from ask("delta-channel-history", document)
        self._count = min(4 * self._count, _ANCESTORS_MAX)
        self._ended = answer["ended"]
        for document in answer["checkpoints"]:
            self._last = document["checkpoint_id"]
            self.read.setdefault(document["checkpoint_id"], group_of(self._at, document))
            yield from self._access.take(self._at, self.known, document)


# Writing


def store(
    gateway: Gateway,
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    """Store a checkpoint."""
    inside = gateway.prefix.inside(config)
    stored = yield from _store(gateway, serde, inside, checkpoint, metadata, new_versions)
    return gateway.prefix.outside(stored)


def _store(
    gateway: Gateway,
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    codec = gateway.codec(serde)
    request = put.take(gateway.table, codec, config, checkpoint, metadata, new_versions)
    if gateway.about is None:
        # Requests come before the head is composed.
        yield from work(partial(request.dumps_all, codec), rough_bytes(request.values))
    access = yield from gateway.access(serde)
    return (yield from put.store(access, request))


def store_writes(
    gateway: Gateway,
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Op[None]:
    """Store a task's writes."""
    inside = gateway.prefix.inside(config)
    taken = yield from put_writes.take(gateway.codec(serde), inside, writes, task_id, task_path)
    if taken is not None:
        access = yield from gateway.access(serde)
        yield from put_writes.store(access, *taken)


def store_with_writes(
    gateway: Gateway,
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    pending_writes: Iterable[HeldWrites],
) -> Op[RunnableConfig]:
    """Store a checkpoint, and before it the writes that a reader will find."""
    codec, inside = gateway.codec(serde), gateway.prefix.inside
    held = [(inside(at), writes, task_id, path) for at, writes, task_id, path in pending_writes]
    taken = yield from put_with_writes.take(
        gateway.table, codec, inside(config), checkpoint, metadata, new_versions, held
    )
    access = yield from gateway.access(serde)
    return gateway.prefix.outside((yield from put_with_writes.store(access, *taken)))


# Deleting and copying


def delete_thread(gateway: Gateway, thread_id: str) -> Op[None]:
    """Delete a thread."""
    checked = gateway.prefix.added(thread_id, "thread_id")
    yield from _deleting(gateway, ask("delete-thread", {"thread_id": checked}), [checked])


def delete_for_runs(gateway: Gateway, run_ids: Sequence[str]) -> Op[None]:
    """Delete the checkpoints of runs."""
    yield from _deleting(gateway, ask("delete-for-runs", {"run_ids": checked_ids(run_ids, "run_ids")}))


def prune(gateway: Gateway, thread_ids: Sequence[str], strategy: str, keep_last: int | None) -> Op[None]:
    """Remove old checkpoints."""
    checked_count(strategy, keep_last)
    checked = [gateway.prefix.added(each, "an id") for each in checked_ids(thread_ids, "thread_ids")]
    yield from _deleting(gateway, _prune(checked, {"strategy": strategy, "keep_last": keep_last}), checked)


def _prune(thread_ids: Sequence[str], how: Mapping[str, Any]) -> Op[None]:
    """Prune as many threads with each request as the service has time for; go on behind one that cannot be pruned."""
    unserved, left = Unserved(), list(thread_ids)
    while left:
        some, left = left[:_PRUNED_AT_ONCE], left[_PRUNED_AT_ONCE:]
        # The one that cannot be is the first of its request.
        others = some[1:]
        with unserved.left_out(f"thread {some[0]!r}"):
            others = (yield from ask("prune", {"thread_ids": some, **how}))["left"]
        left = [*others, *left]
    unserved.raise_first()


def _deleting(gateway: Gateway, deletion: Op[Any], thread_ids: Sequence[str] | None = None) -> Op[None]:
    """Delete, and forget what was known of the threads, or of all: whatever came of it, some of that has gone."""
    try:
        yield from deletion
    finally:
        for root in [""] if thread_ids is None else [items.partition(each).root for each in thread_ids]:
            gateway.table.memory.forget_all(root)


def copy_thread(
    gateway: Gateway, serde: SerializerProtocol, source_thread_id: str, target_thread_id: str
) -> Op[None]:
    """Copy a thread: by the service where nothing is encrypted, or else by reading and storing it."""
    source = gateway.prefix.added(source_thread_id, "source_thread_id")
    to = gateway.prefix.added(target_thread_id, "target_thread_id")
    if source == to:
        msg = f"source and target are both thread {source!r}; give another id for the copy"
        raise CheckpointerInputError(msg)
    if not gateway.codec(serde).encrypts:
        yield from _copy_parts({"source_thread_id": source, "target_thread_id": to})
        return
    listing = _listed(gateway, serde, {"thread_id": source}, None, _decode_with_writes)
    found = yield from collected(listing)
    if not found:
        msg = f"thread {source!r} has no checkpoint to copy; check its id"
        raise CheckpointNotFoundError(msg)
    # The newest first, and the root's last: who finds a part of the copy is not to take an older state for the latest.
    for at, checkpoint, writes in sorted(found, key=lambda each: not each[0].namespace):
        yield from _copy(gateway, serde, items.partition(to, at.namespace), checkpoint, writes)


def _copy_parts(document: Mapping[str, Any]) -> Op[None]:
    """Let the service copy a thread, part by part: each request goes on where the last one stopped."""
    progress = None
    while True:
        progress = (yield from ask("copy-thread", {**document, "progress": progress}))["progress"]
        if progress is None:
            return


def _decode_with_writes(
    at: Partition, codec: Codec, group: Group, known: Segments
) -> tuple[Partition, CheckpointTuple, Mapping[str, put_writes.Serialized]]:
    """A checkpoint, and its tasks' writes as they are stored."""
    tasks: dict[str, put_writes.Serialized] = {}
    for item in group.writes:
        regular = {each.index: each for each in read_writes(codec, item, items.WRITES, known.contents)}
        special = {
            each.index: each
            for name in items.SPECIAL_WRITES.values()
            for each in read_writes(codec, item, name, known.contents)
        }
        tasks[items.task_id_of(item)] = (regular, special)
    return at, decode_tuple(at, codec, group, known), tasks


def _copy(
    gateway: Gateway,
    serde: SerializerProtocol,
    to: Partition,
    found: CheckpointTuple,
    writes: Mapping[str, put_writes.Serialized],
) -> Op[None]:
    """Store a checkpoint's writes, and then the checkpoint, in another thread."""
    access = yield from gateway.access(serde)
    checkpoint, parent = found.checkpoint, found.parent_config
    there = (yield from access.read(to, checkpoint["id"], "none")) if writes else None
    old = {} if there is None else {items.task_id_of(item): item for item in there[0].writes}
    for task_id, serialized in writes.items():
        yield from put_writes.store(access, to, checkpoint["id"], task_id, serialized, old.get(task_id))
    config = config_of(to, "" if parent is None else parent["configurable"]["checkpoint_id"])
    yield from _store(gateway, serde, config, checkpoint, found.metadata, checkpoint["channel_versions"])
