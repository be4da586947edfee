"""The saver's operations through the gateway: the client composes and opens, and the service does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
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

from langgraph.checkpoint.dynamodb import errors
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import read_writes
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._operations import arguments, put, put_with_writes, put_writes
from langgraph.checkpoint.dynamodb._operations.delete import checked_count
from langgraph.checkpoint.dynamodb._operations.delta_history import collect_history, deleted_meanwhile
from langgraph.checkpoint.dynamodb._operations.directory import ThreadPage, list_threads, set_thread
from langgraph.checkpoint.dynamodb._operations.entries import with_entry
from langgraph.checkpoint.dynamodb._operations.error_collector import ErrorCollector
from langgraph.checkpoint.dynamodb._operations.get import decode, decode_tuple, read_bytes
from langgraph.checkpoint.dynamodb._operations.put_with_writes import HeldWrites
from langgraph.checkpoint.dynamodb._operations.put_writes import Serialized
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments, StoredCheckpoint
from langgraph.checkpoint.dynamodb._operations.runs import RunSummary
from langgraph.checkpoint.dynamodb._runtime.cache import Cache
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, collected, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.http.backend import About, RemoteBackend, ask, place_of
from langgraph.checkpoint.dynamodb.http.documents import can_be_packed
from langgraph.checkpoint.dynamodb.http.prefix import ThreadPrefix

T = TypeVar("T")

WIRE_VERSION = 1
# The first page of a list without a limit; its consumer may stop at any time. Later ones grow.
_PAGE_FIRST = 8
_PAGE_MAX = 256
# Checkpoints of a list share segments, so segments are kept for this many namespaces, up to this many bytes each.
_NAMESPACES_KEPT = 16
_SEGMENT_BYTES_KEPT = 64 * 1024 * 1024
# The number of ancestors in the first page; later pages grow.
_ANCESTORS_FIRST = 8
_ANCESTORS_MAX = 512
# How many threads one request names; their ids may be long.
_PRUNED_AT_ONCE = 1000


@dataclass
class Gateway:
    """One service, with the client's cache and options for composing."""

    cache: Cache
    codec_options: Mapping[str, Any]
    """The keyword arguments of a codec, except for `bound_to`."""
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    """The keyword arguments of a storage, except for codec and cache."""
    bound_to: str | None = None
    prefix: ThreadPrefix = field(default_factory=ThreadPrefix)
    about: About | None = None

    def storage(self, serde: SerializerProtocol) -> Storage:
        """Return the storage for operations. Encrypted data is bound to the table, once its name is known."""
        table_name = self.bound_to or ("" if self.about is None else self.about.table_name)
        codec = Codec(serde, bound_to=table_name, **self.codec_options)
        owner = None if self.about is None else self.about.owner
        return Storage(codec=codec, cache=self.cache, owner=owner, **self.storage_options)

    def backend(self, serde: SerializerProtocol) -> Op[RemoteBackend]:
        """Return the backend for one call. The first call of a process asks the service for its description."""
        if self.about is None:
            answer = yield from ask("about", {})
            if answer["wire_version"] != WIRE_VERSION:
                msg = (
                    f"the gateway speaks version {answer['wire_version']} of the wire format, and this client"
                    f" {WIRE_VERSION}; use the same release of langgraph-dynamodb in both"
                )
                raise errors.CheckpointerConfigurationError(msg)
            limits = answer["limits"]
            self.about = About(
                answer["table_name"].rpartition("/")[2],
                limits["body_bytes_max"],
                limits["items_max"],
                answer["owner"],
            )
        return RemoteBackend(self.storage(serde), self.about)


@dataclass(frozen=True)
class RemoteOperations:
    """The operations of a saver through the gateway."""

    gateway: Gateway
    serde: SerializerProtocol

    def _target(self, config: RunnableConfig) -> tuple[Partition, str | None]:
        """Return the namespace and the checkpoint that a config names, as the table has them."""
        inside = self.gateway.prefix.inside(config)
        return arguments.target(inside), arguments.checkpoint_id_in(config)

    def get_tuple(self, config: RunnableConfig) -> Op[CheckpointTuple | None]:
        """Read the checkpoint that a config names, or the newest of its namespace."""
        partition, checkpoint_id = self._target(config)
        backend = yield from self.gateway.backend(self.serde)
        read = yield from backend.read(partition, checkpoint_id)
        if read is None:
            return None
        found, entry = yield from work(
            partial(decode, partition, backend.storage.codec, *read), read_bytes(*read)
        )
        self.gateway.cache.remember_checkpoint(partition.pk, read[0].checkpoint_id, entry)
        return self.gateway.prefix.shown(found)

    def list(
        self,
        config: RunnableConfig | None,
        metadata_filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Stream[CheckpointTuple]:
        """List the checkpoints that match, newest first. Invalid arguments raise here, before the first step."""
        matching = arguments.checked_filter(metadata_filter)
        # Values that cannot be sent, such as a set, are compared only here. All others are compared here, too.
        asked = {name: value for name, value in matching.items() if can_be_packed({name: value})}
        wanted: dict[str, Any] = {"filter": asked, "before": arguments.checked_before(before)}
        arguments.checked_limit(limit)
        if config is not None:
            partition, checkpoint_id = self._target(config)
            namespace = None if config["configurable"].get("checkpoint_ns") is None else partition.namespace
            wanted |= {
                "thread_id": partition.thread_id,
                "checkpoint_ns": namespace,
                "checkpoint_id": checkpoint_id,
            }
        # A list of all threads is one page. With a limit it would end too early if checkpoints are left out here.
        page_limit = limit if config is not None or not (matching or self.gateway.prefix) else None
        listed = self._listed(wanted, page_limit, decode_tuple)
        return _matching(listed, matching, self.gateway.prefix, limit)

    def _listed(
        self,
        wanted: Mapping[str, Any],
        limit: int | None,
        decode: Callable[[Partition, Codec, StoredCheckpoint, LoadedSegments], T],
    ) -> Stream[T]:
        """List checkpoints page by page, as `decode` returns them."""
        backend = yield from self.gateway.backend(self.serde)
        pages, segments = _Pages(wanted, limit), dict[str, LoadedSegments]()
        codec = backend.storage.codec.for_many()
        while not pages.done:
            for document in (yield from pages.next()):
                partition = items.partition_of(document["thread_id"], document["checkpoint_ns"])
                if partition.pk not in segments and len(segments) > _NAMESPACES_KEPT:
                    segments.clear()
                loaded = segments.setdefault(partition.pk, LoadedSegments(partition.pk))
                checkpoint = yield from backend.whole(partition, document)
                yield from backend.open(partition, loaded, document["segments"])
                if checkpoint is None or (yield from backend.fill(partition, loaded, checkpoint.ids())):
                    read = yield from backend.read(partition, document["checkpoint_id"], "checked")
                    if read is None:
                        # It was deleted meanwhile.
                        continue
                    checkpoint, loaded = read
                sealed_bytes = sum(len(loaded.contents.get(each, b"")) for each in checkpoint.ids())
                decoding = partial(decode, partition, codec, checkpoint, loaded)
                yield Emit((yield from work(decoding, sealed_bytes)))
                if sum(map(len, loaded.contents.values())) > _SEGMENT_BYTES_KEPT:
                    segments.clear()

    def get_delta_channel_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Op[Mapping[str, DeltaChannelHistory]]:
        """Collect each channel's nearest stored value and the writes since."""
        partition, checkpoint_id = self._target(config)
        backend = yield from self.gateway.backend(self.serde)
        source = _GatewaySource(backend, partition)
        return (yield from collect_history(source, backend.storage.codec, partition, checkpoint_id, channels))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Op[RunnableConfig]:
        """Store a checkpoint."""
        inside = self.gateway.prefix.inside(config)
        stored = yield from self._put(inside, checkpoint, metadata, new_versions)
        return self.gateway.prefix.outside(stored)

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Op[RunnableConfig]:
        storage = self.gateway.storage(self.serde)
        request = put.snapshot_arguments(storage, config, checkpoint, metadata, new_versions)
        if self.gateway.about is None:
            # Serialize before the first request: LangGraph may change a value while we wait.
            yield from work(partial(request.dumps_all, storage.codec), rough_bytes(request.values))
        backend = yield from self._backend_for(config)
        return (yield from put.store(backend, request))

    def _backend_for(self, config: RunnableConfig) -> Op[RemoteBackend]:
        """Return the backend for a put, which enters a new thread in the directory as its config says."""
        backend = yield from self.gateway.backend(self.serde)
        return replace(backend, storage=with_entry(backend.storage, config, self.gateway.prefix.text))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Op[None]:
        """Store a task's writes."""
        inside = self.gateway.prefix.inside(config)
        taken = yield from put_writes.snapshot_arguments(
            self.gateway.storage(self.serde).codec, inside, writes, task_id, task_path
        )
        if taken is not None:
            backend = yield from self.gateway.backend(self.serde)
            yield from put_writes.store_after_put(backend, *taken)

    def put_with_writes(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        pending_writes: Iterable[HeldWrites],
    ) -> Op[RunnableConfig]:
        """Store a checkpoint, and before it those writes whose checkpoint exists."""
        inside = self.gateway.prefix.inside
        held = [
            (inside(each_config), writes, task_id, path)
            for each_config, writes, task_id, path in pending_writes
        ]
        taken = yield from put_with_writes.snapshot_arguments(
            self.gateway.storage(self.serde), inside(config), checkpoint, metadata, new_versions, held
        )
        backend = yield from self._backend_for(inside(config))
        return self.gateway.prefix.outside((yield from put_with_writes.store(backend, *taken)))

    def delete_thread(self, thread_id: str) -> Op[None]:
        """Delete a thread."""
        checked = self.gateway.prefix.added(thread_id, "thread_id")
        yield from self._deleting(ask("delete-thread", {"thread_id": checked}), [checked])

    def delete_for_runs(self, run_ids: Sequence[str]) -> Op[None]:
        """Delete the checkpoints of runs."""
        yield from self._deleting(
            ask("delete-for-runs", {"run_ids": arguments.checked_ids(run_ids, "run_ids")})
        )

    def prune(self, thread_ids: Sequence[str], strategy: str, keep_last: int | None) -> Op[None]:
        """Remove old checkpoints."""
        checked_count(strategy, keep_last)
        checked = [
            self.gateway.prefix.added(each, "an id")
            for each in arguments.checked_ids(thread_ids, "thread_ids")
        ]
        yield from self._deleting(_prune(checked, {"strategy": strategy, "keep_last": keep_last}), checked)

    def _deleting(self, deletion: Op[Any], thread_ids: Sequence[str] | None = None) -> Op[None]:
        """Run a deletion and drop the cache of the threads, or of all: even if it fails, some items may be deleted."""
        try:
            yield from deletion
        finally:
            roots = [""] if thread_ids is None else [items.partition_of(each).root for each in thread_ids]
            for root in roots:
                self.gateway.cache.forget_all(root)

    def set_thread(
        self, thread_id: str, owner: Any, title: Any, metadata: Mapping[str, Any] | None
    ) -> Op[None]:
        """Say whose thread it is and what it is about."""
        inside = self.gateway.prefix.added(thread_id, "thread_id")
        named = None if owner is None else self.gateway.prefix.added(owner, "owner")
        backend = yield from self.gateway.backend(self.serde)
        yield from set_thread(backend, inside, named, title, metadata)

    def list_threads(
        self,
        owner: Any,
        status: str | None,
        metadata: Mapping[str, Any] | None,
        limit: Any,
        before: str | None,
        with_status: bool,
        since: datetime | None,
    ) -> Op[ThreadPage]:
        """List the threads of an owner, or all threads with the prefix, newest activity first."""
        prefix = self.gateway.prefix
        named = None if owner is None else prefix.added(owner, "owner")
        backend = yield from self.gateway.backend(self.serde)
        page = yield from list_threads(backend, named, status, metadata, limit, before, with_status, since)
        shown = [
            replace(
                each,
                thread_id=prefix.removed(each.thread_id),
                owner=None if each.owner is None else prefix.removed(each.owner),
            )
            for each in page.threads
            if prefix.has(each.thread_id)
        ]
        return replace(page, threads=shown)

    def list_runs(self, thread_id: str) -> Op[Sequence[RunSummary]]:
        """List the runs of a thread."""
        inside = self.gateway.prefix.added(thread_id, "thread_id")
        items.partition_of(inside)
        answer = yield from ask("runs", {"thread_id": inside})
        return [RunSummary(**each) for each in answer["runs"]]

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> Op[None]:
        """Copy a thread: by the service if nothing is encrypted, otherwise by reading and storing it."""
        source = self.gateway.prefix.added(source_thread_id, "source_thread_id")
        to = self.gateway.prefix.added(target_thread_id, "target_thread_id")
        if source == to:
            msg = f"source and target are both thread {source!r}; give another id for the copy"
            raise errors.CheckpointerInputError(msg)
        if not self.gateway.storage(self.serde).codec.encrypts:
            backend = yield from self.gateway.backend(self.serde)
            entry = backend.entry_of(items.partition_of(to))
            yield from _copy_parts({"source_thread_id": source, "target_thread_id": to, "entry": entry})
            return
        listing = self._listed({"thread_id": source}, None, _decode_with_writes)
        found = yield from collected(listing)
        if not found:
            msg = f"thread {source!r} has no checkpoint to copy; check its id"
            raise errors.CheckpointNotFoundError(msg)
        # The newest comes first, and the root's come last: a reader of an incomplete copy must not take an older state
        # for the latest.
        for partition, checkpoint, writes in sorted(found, key=lambda each: not each[0].namespace):
            yield from self._copy(items.partition_of(to, partition.namespace), checkpoint, writes)

    def _copy(
        self,
        to: Partition,
        found: CheckpointTuple,
        writes: Mapping[str, Serialized],
    ) -> Op[None]:
        """Store a checkpoint's writes, and then the checkpoint, in another thread."""
        backend = yield from self.gateway.backend(self.serde)
        checkpoint, parent = found.checkpoint, found.parent_config
        there = (yield from backend.read(to, checkpoint["id"], "none")) if writes else None
        old = {} if there is None else {items.task_id_of(item): item for item in there[0].writes}
        for task_id, serialized in writes.items():
            yield from put_writes.store(backend, to, checkpoint["id"], task_id, serialized, old.get(task_id))
        config = arguments.config_of(to, "" if parent is None else parent["configurable"]["checkpoint_id"])
        yield from self._put(config, checkpoint, found.metadata, checkpoint["channel_versions"])


# Reading


def _matching(
    found: Stream[CheckpointTuple],
    metadata_filter: Mapping[str, Any],
    prefix: ThreadPrefix,
    limit: int | None,
) -> Stream[CheckpointTuple]:
    """Leave out checkpoints that do not match: the service knows no prefix, and cannot open sealed metadata."""
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
        if prefix.has(step.value.config["configurable"]["thread_id"]) and all(
            metadata.get(name) == value for name, value in metadata_filter.items()
        ):
            left = None if left is None else left - 1
            yield Emit(prefix.shown(step.value))


class _Pages:
    """The pages of a list.

    A service with another key refuses the cursor. The list then starts again as near to its place as `before` allows,
    which is above all checkpoints with the last id, and skips those that it has returned.
    """

    def __init__(self, wanted: Mapping[str, Any], limit: int | None) -> None:
        """Take the arguments of every page, and the maximum number of checkpoints in the list."""
        self.done = False
        self._wanted = wanted
        self._limit = limit
        self._count = limit or _PAGE_FIRST
        self._cursor: str | None = None
        # The id and the namespace of the last checkpoint, and how many checkpoints with its id were returned.
        self._last: tuple[str, str] | None = None
        self._same_id = 0
        self._above: str | None = wanted.get("before")
        self._refused_at: tuple[str, str] | None = None

    def next(self) -> Op[list[Any]]:
        """Ask for a page and return its checkpoints.

        Raises:
            CheckpointerInputError: The list's arguments are refused, or cursors are refused again without progress.
        """
        try:
            documents = yield from self._page()
        except errors.CheckpointerInputError:
            # The first page was not refused, so the service refuses the cursor.
            if self._cursor is None or self._refused_at == self._last:
                raise
            self._refused_at = self._last
            self._cursor, self._wanted = None, {**self._wanted, "before": self._above}
            documents = [each for each in (yield from self._page()) if not self._has_given(each)]
        # A list of all threads is one page: the start of another one would move with checkpoints stored meanwhile.
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
        """Note a returned checkpoint as the list's place."""
        last, self._last = self._last, (document["checkpoint_id"], document["checkpoint_ns"])
        if last is not None and last[0] != self._last[0]:
            self._above, self._same_id = last[0], 0
        self._same_id += 1


class _GatewaySource:
    """The ancestors of a checkpoint, read page by page from the gateway."""

    def __init__(self, backend: RemoteBackend, partition: Partition) -> None:
        self.known = LoadedSegments(partition.pk)
        self.read: dict[str, StoredCheckpoint] = {}
        self._backend = backend
        self._partition = partition
        self._last: str | None = None
        self._ended = False
        self._count = _ANCESTORS_FIRST

    def start(self, checkpoint_id: str | None) -> Op[StoredCheckpoint | None]:
        """Return the checkpoint whose ancestors are wanted, or the newest one."""
        yield from self._page({"checkpoint_id": checkpoint_id})
        return next(iter(self.read.values()), None)

    def checkpoint(self, checkpoint_id: str, at_least: Callable[[], int]) -> Op[StoredCheckpoint | None]:
        """Return the items of the next ancestor."""
        del at_least
        while checkpoint_id not in self.read and not self._ended:
            yield from self._page({"after": self._last})
        return self.read.get(checkpoint_id)

    def segments(
        self, checkpoint: StoredCheckpoint, ids: Iterable[bytes], *, indexes_only: bool = False
    ) -> Op[StoredCheckpoint]:
        """Read segments that did not come with the items. Most index segments do, and those of the items' own content.

        Raises:
            CheckpointNotFoundError: The segments were deleted meanwhile.
        """
        if (yield from self._backend.fill(self._partition, self.known, ids, indexes_only=indexes_only)):
            raise deleted_meanwhile(self._partition, checkpoint.checkpoint_id)
        return checkpoint

    def _page(self, wanted: Mapping[str, Any]) -> Op[None]:
        document = {**place_of(self._partition), **wanted, "count": self._count}
        answer = yield from ask("delta-channel-history", document)
        self._count = min(4 * self._count, _ANCESTORS_MAX)
        self._ended = answer["ended"]
        for document in answer["checkpoints"]:
            self._last = document["checkpoint_id"]
            checkpoint = yield from self._backend.whole(self._partition, document)
            if checkpoint is None:
                raise deleted_meanwhile(self._partition, document["checkpoint_id"])
            self.read.setdefault(checkpoint.checkpoint_id, checkpoint)
            yield from self._backend.open(self._partition, self.known, document["segments"])


# Deleting and copying


def _prune(thread_ids: Sequence[str], how: Mapping[str, Any]) -> Op[None]:
    """Prune as many threads with each request as the service has time for; continue after one that fails."""
    collector, left = ErrorCollector(), list(thread_ids)
    while left:
        some, left = left[:_PRUNED_AT_ONCE], left[_PRUNED_AT_ONCE:]
        # A thread that cannot be pruned is the first of its request: the service returns the others as left.
        others = some[1:]
        with collector.capture(f"thread {some[0]!r}"):
            others = (yield from ask("prune", {"thread_ids": some, **how}))["left"]
        left = [*others, *left]
    collector.raise_first()


def _copy_parts(document: Mapping[str, Any]) -> Op[None]:
    """Let the service copy a thread in parts: each request continues where the last one stopped."""
    progress = None
    while True:
        progress = (yield from ask("copy-thread", {**document, "progress": progress}))["progress"]
        if progress is None:
            return


def _decode_with_writes(
    partition: Partition, codec: Codec, checkpoint: StoredCheckpoint, loaded: LoadedSegments
) -> tuple[Partition, CheckpointTuple, Mapping[str, Serialized]]:
    """Decode a checkpoint, and its tasks' writes in their serialized form."""
    tasks: dict[str, Serialized] = {}
    for item in checkpoint.writes:
        regular = {each.index: each for each in read_writes(codec, item, items.WRITES, loaded.contents)}
        special = {
            each.index: each
            for name in items.SPECIAL_WRITES.values()
            for each in read_writes(codec, item, name, loaded.contents)
        }
        tasks[items.task_id_of(item)] = (regular, special)
    return partition, decode_tuple(partition, codec, checkpoint, loaded), tasks
