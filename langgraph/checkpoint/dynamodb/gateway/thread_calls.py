"""The calls of threads: each runs the saver's own operation, on values that the service does not open.

docs/wire.md says what arguments and responses mean.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from .._format import content, inert, items, limits
from .._operations import compose, copy, delete, entries, overview, threads
from .._operations import delete_owner as delete_owner_
from .._operations import get as get_
from .._operations import put_writes as put_writes_
from .._operations.delete_owner import DeletedThreads
from .._operations.delta_history import find_history
from .._operations.error_collector import OF_ONE_THREAD, ErrorCollector
from .._operations.list import Position, Selection
from .._operations.put import snapshot_arguments, store
from .._operations.thread_lock import Attempt, Hold, TableHolder
from .._runtime.steps import Op, collected, work
from .._runtime.storage import Storage
from ..errors import CheckpointerInputError, CheckpointNotFoundError, ThreadLockLostError
from . import call, opaque
from .serving import Principal, Serving

Strategy: TypeAlias = Literal["keep_latest", "keep_last", "delete", "delete_all"]
# How many checkpoints a page of a list has at most.
_LISTED_MAX = 1000
# A byte of JSON can take some twenty in memory as objects, and what is read counts three times.
_TIMES_JSON = 8
# How far ahead a client's clock may be.
_AHEAD_SECONDS_MAX = 24 * 3600
Write: TypeAlias = tuple[str, str, opaque.Value]
ThreadPrefix: TypeAlias = Annotated[str, call.named_by("threads")]
IdsOfRuns: TypeAlias = Annotated[list[call.Text], Field(max_length=call.IDS_MAX)]
# Epoch seconds that have a day: up to the end of the year 9999.
Moment: TypeAlias = Annotated[float, Field(ge=0, le=253_402_300_799)]
LockSeconds: TypeAlias = Annotated[float, Field(ge=limits.LOCK_TTL_SECONDS_MIN, le=limits.TTL_SECONDS_MAX)]


# Arguments and responses


@with_config(ConfigDict(extra="allow", strict=True))
class CheckpointFields(TypedDict):
    """A checkpoint without its channel_values. It may have more fields, which are stored with it."""

    id: call.Text
    channel_versions: dict[str, Any]


StoredFields: TypeAlias = Annotated[CheckpointFields, AfterValidator(call.finite_json)]


@dataclass(frozen=True)
class Checkpoint(call.Response):
    """A checkpoint with its pending writes: the task, the channel and the value of each."""

    thread_id: call.Text
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    typed_metadata: opaque.Value | None
    values: dict[str, opaque.Value]
    pending_writes: list[Write]


@dataclass(frozen=True)
class FoundCheckpoint(call.Response):
    """The checkpoint; null if there is none."""

    checkpoint: Checkpoint | None


@dataclass(frozen=True)
class Place(call.Argument):
    """The last checkpoint of a list's page."""

    thread_id: Annotated[call.Text, call.named_by("position")]
    checkpoint_ns: str
    checkpoint_id: call.Text


@dataclass(frozen=True)
class Page(call.Response):
    """A page of a list, which `after` continues; null: this was the last one."""

    checkpoints: list[Checkpoint]
    after: Place | None = None
    problem: dict[str, Any] | None = None
    """The problem with a thread, as in a problem body. The list goes on without it."""


@dataclass(frozen=True)
class ChannelHistory(call.Response):
    """The writes of a delta channel, oldest first, the checkpoint of each, and its stored value."""

    writes: list[Write]
    checkpoint_ids: list[str]
    seed: opaque.Value | None = None


@dataclass(frozen=True)
class History(call.Response):
    """A page of what delta channels are rebuilt from. With `after`, ask again for the channels without a seed."""

    channels: dict[str, ChannelHistory]
    after: str | None = None


@dataclass(frozen=True)
class PutResult(call.Response):
    """The checkpoint is stored, unless channels are wanted, whose values the service needs whole."""

    wanted: list[str]


@dataclass(frozen=True)
class CopiedTo(call.Argument):
    """The last checkpoint that a part of a copy has stored."""

    seed: call.Digest
    checkpoint_ns: str
    checkpoint_id: call.Text


@dataclass(frozen=True)
class CopyResult(call.Response):
    """The copy is complete, unless `after` says where to go on."""

    after: CopiedTo | None


@dataclass(frozen=True)
class WritesResult(call.Response):
    """The writes are stored, unless those of a later call are there, with this order."""

    later: int | None


# Reading


@call.serve("read", absent=lambda _: FoundCheckpoint(None))
def get_tuple(
    it: Serving,
    thread_id: call.ThreadId,
    checkpoint_ns: str = "",
    checkpoint_id: call.Text | None = None,
    channels: tuple[str, ...] | None = None,
    have: tuple[call.Digest, ...] = (),
) -> Op[FoundCheckpoint]:
    """Read a checkpoint, or the newest one of the namespace. `have` are the digests of values that you have."""
    found = yield from get_.get_tuple(it.storage, _config(thread_id, checkpoint_ns, checkpoint_id))
    if found is None:
        return FoundCheckpoint(None)
    show = partial(_shown, it, found, channels, frozenset(have))
    return FoundCheckpoint((yield from work(show, opaque.size_of(found))))


def _is_scan(who: Principal, arguments: Any) -> bool:
    """Tell whether a list reads all threads.

    An index answers a list by run id, of which a tenant sees only its own threads (see list.py).
    """
    is_indexed = who.owner is None and items.indexable_run_id(arguments.filter or {}) is not None
    return arguments.thread_id is None and not is_indexed


@call.serve("read", name="list", operation="list", absent=lambda _: Page([]), is_about_all=_is_scan)
def list_checkpoints(
    it: Serving,
    thread_id: call.ThreadId | None = None,
    checkpoint_ns: str | None = None,
    checkpoint_id: call.Text | None = None,
    filter: call.Object | None = None,
    before: call.Text | None = None,
    limit: call.Number | None = None,
    after: Place | None = None,
) -> Op[Page]:
    """List checkpoints, newest first, as many as fit and there is time for. What is null stands for all."""
    if thread_id is None and (checkpoint_ns is not None or checkpoint_id is not None):
        raise CheckpointerInputError("checkpoint_ns and checkpoint_id need a thread_id; leave them out")
    page, errors = _PageInProgress(limit, it.fullness(), it.held), ErrorCollector()
    selection = Selection(
        storage=it.storage,
        metadata_filter=filter or {},
        before=before,
        left=limit,
        after=None if after is None else Position(after.thread_id, after.checkpoint_ns, after.checkpoint_id),
        # Even an error names no thread of others.
        prefix=it.who.prefix,
        matches=opaque.may_match,
        errors=errors,
        ends_behind=page.ends_behind,
    )
    problem = None
    try:
        config = None if thread_id is None else _config(thread_id, checkpoint_ns, checkpoint_id)
        yield from collected(selection.of(config), page.add)
        errors.raise_first()
    except OF_ONE_THREAD as error:
        if not page.found and page.end is None:
            raise
        problem = it.note(error)

    def shown() -> Page:
        return Page([_shown(it, each, None, frozenset()) for each in page.found], page.end, problem)

    return (yield from work(shown, page.size_bytes))


def _gone_history(arguments: Any) -> History:
    if arguments.after is None:
        return History({})
    # Nothing would be taken for the end of what the pages before had.
    raise CheckpointNotFoundError(
        f"thread {arguments.thread_id!r} was deleted while its history was read; retry the call"
    )


@call.serve("read", name="delta-channel-history", absent=_gone_history)
def get_delta_channel_history(
    it: Serving,
    thread_id: call.ThreadId,
    channels: tuple[str, ...],
    checkpoint_ns: str = "",
    checkpoint_id: call.Text | None = None,
    have: tuple[call.Digest, ...] = (),
    after: call.Text | None = None,
) -> Op[History]:
    """Read what delta channels are rebuilt from. `after` is where the last response stopped."""
    config = _config(thread_id, checkpoint_ns, checkpoint_id)
    page = yield from find_history(it.storage, config, channels, after=after, is_full=it.fullness())

    def shown() -> History:
        value = opaque.values_for(frozenset(have), it.response_bytes)
        return History(
            {name: _history(each, page.checkpoint_ids[name], value) for name, each in page.channels.items()},
            page.after,
        )

    return (yield from work(shown, it.response_bytes))


def _history(
    history: Mapping[str, Any],
    checkpoint_ids: Sequence[str],
    shown: Callable[[opaque.OpaqueValue], opaque.Value],
) -> ChannelHistory:
    writes = [(task, channel, shown(each)) for task, channel, each in history["writes"]]
    return ChannelHistory(writes, [*checkpoint_ids], shown(history["seed"]) if "seed" in history else None)


# Writing


@call.serve("write", creates="thread_id")
def put(
    it: Serving,
    thread_id: call.ThreadId,
    checkpoint: StoredFields,
    metadata: call.Object,
    new_versions: call.Object,
    values: dict[str, opaque.SentValue],
    checkpoint_ns: str = "",
    checkpoint_map: dict[str, str] | None = None,
    parent_checkpoint_id: call.Text | None = None,
    typed_metadata: opaque.SentValue | None = None,
    kept: tuple[str, ...] = (),
    listed: bool = False,
    owner: call.Owner | None = None,
) -> Op[PutResult]:
    """Store a checkpoint, unless values are wanted whole.

    `values` are those of the channels in `new_versions`, and `kept` are the other channels that have a value: the
    parent's. `typed_metadata` is all metadata if JSON cannot hold them.
    """
    deltas = {name: each for name, each in values.items() if each.base is not None}
    it.held(opaque.check_deltas(deltas, it.value_bytes_max))
    partition, storage = items.partition_of(thread_id, checkpoint_ns), _entering(it, thread_id, listed, owner)
    given = {
        name: opaque.OpaqueValue(each.type, each.data) for name, each in values.items() if each.base is None
    }
    given |= yield from opaque.rebuilt(storage, partition, parent_checkpoint_id, deltas)
    config = _config(thread_id, checkpoint_ns, parent_checkpoint_id)
    config["configurable"]["checkpoint_map"] = checkpoint_map or {}
    whole: Any = {**checkpoint, "channel_values": given}
    stored_metadata: Any = metadata
    # A delta whose base is not the parent's is as if it had not come.
    missing = {*kept, *values} - given.keys()
    taken = snapshot_arguments(storage, config, whole, stored_metadata, new_versions, missing)
    if typed_metadata is not None:
        taken = replace(taken, metadata=content.pack_typed(typed_metadata.type, typed_metadata.data))
    try:
        yield from store(storage, taken)
    except compose.WantedValuesError as error:
        return PutResult([*error.names])
    return PutResult([])


@call.serve("write", creates="thread_id")
def put_writes(
    it: Serving,
    thread_id: call.ThreadId,
    checkpoint_id: call.Text,
    task_id: str,
    writes: tuple[tuple[str, opaque.SentValue], ...],
    checkpoint_ns: str = "",
    checkpoint_map: dict[str, str] | None = None,
    task_path: str = "",
    order: call.Number | None = None,
    listed: bool = False,
    owner: call.Owner | None = None,
) -> Op[WritesResult]:
    """Store a task's writes, pairs of a channel and a value, unless those of a later `order` are there.

    `order` is when the client's call began, in epoch milliseconds; the same in each attempt. It may be a day ahead.
    """
    _check_order(order, it.storage.clock())
    config = _config(thread_id, checkpoint_ns, checkpoint_id)
    config["configurable"]["checkpoint_map"] = checkpoint_map or {}
    given = [(channel, opaque.OpaqueValue(each.type, each.data)) for channel, each in writes]
    try:
        storage = _entering(it, thread_id, listed, owner)
        yield from put_writes_.put_writes(storage, config, given, task_id, task_path, order)
    except put_writes_.LaterWritesError as error:
        return WritesResult(error.order)
    return WritesResult(None)


def _check_order(order: int | None, now: float) -> None:
    """Refuse an order in the far future, which would lock the task's special writes for every other client."""
    if order is not None and order > (now + _AHEAD_SECONDS_MAX) * 1000:
        raise CheckpointerInputError(
            f"order is {order}, more than a day from now; give the time at which the call began, in epoch milliseconds,"
            " and set the client's clock"
        )


def _entering(it: Serving, thread_id: str, listed: bool, owner: str | None) -> Storage:
    """Return the storage of what may begin a thread, and enters it in the directory then."""
    storage = it.of(thread_id)
    if listed or owner is not None or storage.owner is not None:
        return entries.with_owner(storage, items.partition_of(thread_id), owner)
    return storage


# Deleting and copying


@call.serve("administer", absent=lambda _: None)
def delete_thread(it: Serving, thread_id: call.ThreadId) -> Op[None]:
    """Delete a thread."""
    return delete.delete_thread(it.of(thread_id), thread_id)


@call.serve("administer")
def delete_owner(it: Serving, owner: call.Owner) -> Op[DeletedThreads]:
    """Delete all threads of an owner, and look again."""
    return delete_owner_.delete_owner(it.storage, owner, checks_keys=False)


@call.serve(
    "administer", is_about_all=lambda who, arguments: not arguments.thread_prefix or who.owner is not None
)
def delete_for_runs(it: Serving, run_ids: IdsOfRuns, thread_prefix: ThreadPrefix = "") -> Op[None]:
    """Delete the checkpoints of runs, in threads whose ids begin with a prefix."""
    return delete.delete_for_runs(it.storage, run_ids, thread_prefix)


def _no_source(_arguments: Any) -> None:
    raise CheckpointNotFoundError("the thread has no checkpoint to copy; check its id")


@call.serve("administer", absent=_no_source, creates="target_thread_id")
def copy_thread(
    it: Serving,
    source_thread_id: call.ThreadId,
    target_thread_id: call.ThreadId,
    after: CopiedTo | None = None,
    owner: call.Owner | None = None,
) -> Op[CopyResult]:
    """Copy a thread, as much of it as there is time for. The copy of a thread without an owner gets `owner`."""
    pin, is_full, storage = it.pins.get(source_thread_id), it.fullness(), it.of(target_thread_id)
    stopped_at = yield from copy.copy_part(
        storage if owner is None else replace(storage, owner=owner),
        source_thread_id,
        target_thread_id,
        source_epoch=None if pin is None else pin.epoch,
        after=None
        if after is None
        else copy.CopyPosition(after.seed, after.checkpoint_ns, after.checkpoint_id),
        is_over=lambda: is_full(0),
    )
    if stopped_at is None:
        return CopyResult(None)
    return CopyResult(CopiedTo(stopped_at.seed, stopped_at.checkpoint_ns, stopped_at.checkpoint_id))


@call.serve("administer", absent=lambda _: None)
def prune(
    it: Serving,
    thread_id: call.ThreadId,
    strategy: Strategy = "keep_latest",
    keep_last: call.Count | None = None,
) -> Op[None]:
    """Remove old checkpoints of a thread."""
    return delete.prune(it.of(thread_id), [thread_id], strategy, keep_last)


# One runner at a time


@call.serve("write")
def lock(
    it: Serving,
    thread_id: call.ThreadId,
    action: Literal["acquire", "renew", "release"],
    token: call.LockToken,
    ttl_seconds: LockSeconds = 60,
) -> Op[Attempt]:
    """Acquire, renew or release the lock of a thread, which may not exist yet. The client waits between its attempts.

    `token` are 8 random bytes of the client's, which tell its hold from others.
    """
    holder, hold = TableHolder(it.storage), Hold(items.partition_of(thread_id), ttl_seconds, token)
    if action == "acquire":
        return (yield from holder.attempt(hold))
    if action == "release":
        yield from holder.release(hold)
        return Attempt(None)
    try:
        return Attempt((yield from holder.renew(hold)))
    except ThreadLockLostError:
        return Attempt(None)


# The directory


@call.serve("write", creates="thread_id")
def set_thread(
    it: Serving,
    thread_id: call.ThreadId,
    owner: call.Owner | None = None,
    title: str | None = None,
    metadata: call.Object | None = None,
) -> Op[None]:
    """Describe a thread. What is null stays as it is."""
    return threads.set_thread(it.of(thread_id), thread_id, owner, title, metadata)


@call.serve(
    "read",
    name="threads",
    is_about_all=lambda who, arguments: arguments.owner is None and who.owner is None,
)
def list_threads(
    it: Serving,
    owner: call.Owner | None = None,
    status: str | None = None,
    metadata: call.Object | None = None,
    limit: call.Count = 20,
    before: call.Text | None = None,
    with_status: bool = False,
    since: Moment | None = None,
) -> Op[threads.ThreadPage]:
    """List threads, newest activity first: those of an owner; null: all, or those of the owner you are bound to.

    `since` is in epoch seconds, and `before` the cursor of the page before.
    """
    at = None if since is None else datetime.fromtimestamp(since, timezone.utc)
    query = threads.ThreadQuery(
        owner=owner,
        status=status,
        metadata=metadata,
        limit=limit,
        before=before,
        with_status=with_status,
        since=at,
    )
    return threads.list_threads(it.storage, query)


@dataclass(frozen=True)
class Runs:
    """The runs of a thread, the newest first."""

    runs: list[overview.RunSummary]


@call.serve("read", name="runs", absent=lambda _: Runs([]))
def list_runs(it: Serving, thread_id: call.ThreadId) -> Op[Runs]:
    """List the runs of a thread."""
    return Runs((yield from overview.list_runs(it.storage, thread_id)))


# Responses


@dataclass
class _PageInProgress:
    """A page of a list: as many checkpoints as are wanted and fit, and as there is time for."""

    count_max: int | None
    is_over: Callable[[int], bool]
    held: Callable[[int], None]
    found: list[CheckpointTuple] = field(default_factory=list)
    size_bytes: int = 0
    end: Place | None = None
    """Where the next page begins; `None` at the end of the list."""

    def add(self, found: CheckpointTuple) -> bool:
        """Add a checkpoint, and tell whether the page ends with it."""
        fields = {name: each for name, each in found.checkpoint.items() if name != "channel_values"}
        text = json.dumps([fields, found.metadata], default=repr, skipkeys=True)
        objects_bytes = _TIMES_JSON * len(text)
        self.held(objects_bytes)
        self.found.append(found)
        self.size_bytes += objects_bytes + opaque.size_of(found)
        if len(self.found) in (self.count_max, _LISTED_MAX) or self.is_over(self.size_bytes):
            self.end = Place(**{name: found.config["configurable"][name] for name in Place.__annotations__})
        return self.end is not None

    def ends_behind(self, place: Position) -> bool:
        """Tell whether the page ends behind a place, since its time is over, however few checkpoints match."""
        if self.is_over(self.size_bytes):
            self.end = Place(*place)
        return self.end is not None


def _config(thread_id: str, namespace: str | None, checkpoint_id: str | None) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": configurable}


def _shown(
    it: Serving, found: CheckpointTuple, channels: Sequence[str] | None, have: frozenset[bytes]
) -> Checkpoint:
    """Return a checkpoint as a response has it, with the values of some channels, or of all."""
    shown = opaque.values_for(have, it.response_bytes)
    configurable, parent = found.config["configurable"], found.parent_config
    state: Mapping[str, Any] = found.checkpoint["channel_values"]
    metadata: Any = found.metadata
    return Checkpoint(
        configurable["thread_id"],
        configurable["checkpoint_ns"],
        configurable["checkpoint_id"],
        None if parent is None else parent["configurable"]["checkpoint_id"],
        inert.as_json({name: each for name, each in found.checkpoint.items() if name != "channel_values"}),
        metadata,
        opaque.Value(*metadata.typed) if isinstance(metadata, opaque.OpaqueMetadata) else None,
        {name: shown(each) for name, each in state.items() if channels is None or name in channels},
        [(task, channel, shown(each)) for task, channel, each in found.pending_writes or ()],
    )
