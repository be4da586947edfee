"""The saver's operations through the gateway: serialize what is sent, ask the service, deserialize what is received.

Each has the name and the arguments of the one on the table, in whose place it is run.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)

from .. import errors
from .._format import content, items, limits, wire
from .._format.codec import Codec, UnreadableError, metadata_json, rough_bytes, unserializable_part
from .._format.items import Partition
from .._operations import arguments, delete, overview, thread_item, threads
from .._operations.arguments import checked_id
from .._operations.delete_owner import AT_ONCE, DeletedThreads
from .._operations.entries import ThreadDescription, checked_owner, described, owner_in
from .._operations.error_collector import ErrorCollector
from .._operations.list import has_values
from .._operations.put_writes import checked_task
from .._runtime.steps import Emit, Op, Stream, work
from .._runtime.storage import Facts, LruCache
from ..gateway import opaque, thread_calls
from ..gateway.thread_calls import ChannelHistory, CheckpointFields, FoundCheckpoint, History, Write
from ..gateway.thread_calls import Checkpoint as Shown
from .exchange import encoded, failure_in, size_of
from .service import Service, data_of, dumped, loaded

# What an entry takes, and each of its values, beside the bytes of the values.
_ENTRY_BYTES = 1000
_VALUE_BYTES = 300


@dataclass(frozen=True)
class Known:
    """A checkpoint that the service has acknowledged or returned: its values, as the service has them."""

    checkpoint_id: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, opaque.SentValue] = field(default_factory=dict)
    """By channel, as requests have them."""

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        return _ENTRY_BYTES + sum(_VALUE_BYTES + len(each.data) for each in self.values.values())


class KnownCheckpoints(LruCache[Partition, Known]):
    """The newest known checkpoint of each namespace, up to a total size."""

    def newest(self, partition: Partition) -> Known:
        """Return the newest known checkpoint of a namespace; one without values if none is known."""
        return self.get(partition) or Known()

    def remember(self, partition: Partition, known: Known) -> None:
        """Keep a checkpoint instead of the one before."""
        self.keep(partition, known, known.size_bytes)

    def forget_thread(self, thread_id: str | None = None) -> None:
        """Forget a thread, or all."""
        for partition, _ in self.entries():
            if thread_id in (None, partition.thread_id):
                self.forget(partition)


# A service that wants values wants all of them at once. A deletion meanwhile may make it want more.
_PUT_ATTEMPTS_MAX = 4
# The digest of a smaller value takes as many bytes as the value.
_HAVE_BYTES_MIN = 256
# The first page of a list without a limit; its consumer may stop at any time. Later ones grow.
_PAGE_FIRST = 8
_PAGE_MAX = 256

T = TypeVar("T")
Full: TypeAlias = Callable[[opaque.Value], opaque.Value]


@dataclass(frozen=True)
class Client:
    """All that the operations of a saver need."""

    service: Service
    memory: KnownCheckpoints
    codec: Codec
    owner_from: str | None = None
    facts: Facts = field(default_factory=Facts)
    clock: Callable[[], float] = time.time

    def inside(self, partition: Partition) -> Partition:
        """Return a namespace that the agent names, as the table has it."""
        return items.partition_of(self.service.prefix + partition.thread_id, partition.namespace)

    def target(self, config: RunnableConfig) -> tuple[Partition, str | None]:
        """Return the namespace and the checkpoint that a config names, if the table can have it."""
        partition = arguments.target(config)
        self.inside(partition)
        return partition, arguments.checkpoint_id_in(config)


def _plain(value: Any) -> Any:
    """Return plain data as JSON has it. What is changed in the value later does not change it."""
    text = metadata_json(value)
    if text is None:
        raise ValueError("JSON cannot hold it")
    copy = json.loads(text)
    encoded(copy)
    return copy


def _as_json(value: Any, what: str) -> Any:
    """Return plain data as JSON has it."""
    try:
        return _plain(value)
    except ValueError as error:
        where, part = unserializable_part(value, what, _plain)
        msg = (
            f"{where} is of type {type(part).__name__}, and beside values the gateway takes only what JSON holds;"
            " it was not stored"
        )
        raise errors.CheckpointSerializationError(msg) from error


# Reading


def get_tuple(client: Client, config: RunnableConfig) -> Op[CheckpointTuple | None]:
    """Read the checkpoint that a config names, or the newest of its namespace."""
    partition, checkpoint_id = client.target(config)
    known = [each.data for each in client.memory.newest(partition).values.values()]
    have = {wire.digest_of(data): data for data in known if len(data) >= _HAVE_BYTES_MIN}
    place = (partition.thread_id, partition.namespace, checkpoint_id)
    while True:
        first = (yield from client.service.ask(thread_calls.get_tuple, *place, have=tuple(have))).checkpoint
        if first is None:
            return None
        found = yield from _all_of_checkpoint(client, first, have)
        if found is not None:
            break
        # It was deleted before all of it came. If it was the newest one, another is that now.
        if checkpoint_id is not None:
            return None
    values = {name: opaque.SentValue(each.type, data_of(each)) for name, each in found.values.items()}
    versions = found.checkpoint.get("channel_versions", {})
    client.memory.remember(partition, Known(found.checkpoint_id, dict(versions), values))
    return (yield from work(partial(_opened, client, found), size_of(values)))


def _all_of_checkpoint(client: Client, found: Shown, have: Mapping[bytes, bytes]) -> Op[Shown | None]:
    """Ask for what of a checkpoint did not fit; return `None` if it was deleted meanwhile."""
    thread_id = client.service.outside(found.thread_id)
    place = (thread_id, found.checkpoint_ns, found.checkpoint_id)

    def again(have: Sequence[bytes]) -> Op[Shown | None]:
        response: FoundCheckpoint = yield from client.service.ask(
            thread_calls.get_tuple, *place, have=tuple(have)
        )
        return response.checkpoint

    def filled(found: Shown, full: Full) -> Shown:
        values = {name: full(each) for name, each in found.values.items()}
        writes = _writes(found.pending_writes, full)
        return replace(found, thread_id=thread_id, values=values, pending_writes=writes)

    return (yield from _all_of(found, filled, again, have))


def _writes(writes: Sequence[Write], full: Full) -> list[Write]:
    return [(task, channel, full(each)) for task, channel, each in writes]


def _all_of(
    found: T,
    filled: Callable[[T, Full], T],
    again: Callable[[Sequence[bytes]], Op[T | None]],
    have: Mapping[bytes, bytes],
) -> Op[T | None]:
    """Ask again, with the digests of what came, until no value is without data; return `None` if a response is that."""
    known = dict(have)
    came: list[bytes] = []
    missing: list[opaque.Value] = []

    def full(value: opaque.Value) -> opaque.Value:
        data = known.get(value.digest or b"") if value.data is None else value.data
        if data is None:
            missing.append(value)
            return value
        came.append(data)
        return replace(value, data=data)

    while True:
        whole = filled(found, full)
        if not missing:
            return whole
        known.update({wire.digest_of(each): each for each in came})
        came.clear()
        missing.clear()
        more = yield from again([*known])
        if more is None:
            return None
        found = more


def _opened(client: Client, found: Shown) -> CheckpointTuple:
    """Return a checkpoint with its values deserialized."""
    partition = items.partition_of(found.thread_id, found.checkpoint_ns)
    parent_id, loading = found.parent_checkpoint_id, partial(_loaded, client, partition)
    state = {name: loading(each, f"channel {name!r}") for name, each in found.values.items()}
    return CheckpointTuple(
        config=arguments.config_of(partition, found.checkpoint_id),
        checkpoint=cast("Checkpoint", {**found.checkpoint, "channel_values": state}),
        metadata=_opened_metadata(client, found),
        parent_config=None if parent_id is None else arguments.config_of(partition, parent_id),
        pending_writes=_opened_writes(loading, found.pending_writes),
    )


def _opened_metadata(client: Client, found: Shown) -> CheckpointMetadata:
    metadata, partition = found.metadata, items.partition_of(found.thread_id, found.checkpoint_ns)
    if found.typed_metadata is not None:
        metadata = _loaded(client, partition, found.typed_metadata, "the metadata")
        if not isinstance(metadata, dict):
            raise UnreadableError(
                content.no_metadata(f"checkpoint {found.checkpoint_id!r} of thread {partition.thread_id!r}")
            )
    return cast("CheckpointMetadata", metadata)


def _opened_writes(
    loading: Callable[[opaque.Value, str], Any], writes: Sequence[Write]
) -> list[tuple[str, str, Any]]:
    return [
        (task, channel, loading(each, f"the write to channel {channel!r}")) for task, channel, each in writes
    ]


def _loaded(client: Client, partition: Partition, value: opaque.Value, what: str) -> Any:
    where = f"in namespace {partition.namespace!r} of thread {partition.thread_id!r}"
    return loaded(client.codec, value, f"{what} {where}")


def list_checkpoints(
    client: Client,
    config: RunnableConfig | None,
    metadata_filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Stream[CheckpointTuple]:
    """List the checkpoints that match, newest first. Invalid arguments raise here, before the first step."""
    matching = arguments.checked_filter(metadata_filter)
    # A tuple equals no list, as which JSON has it.
    asked = {name: value for name, value in matching.items() if _plain_part({name: value}) == {name: value}}
    wanted: dict[str, Any] = {"filter": asked, "before": arguments.checked_before(before)}
    arguments.checked_limit(limit)
    config = arguments.listed_config(config)
    if config is not None:
        partition, checkpoint_id = client.target(config)
        # What was not given is not the root namespace, but all of them.
        has_namespace = config["configurable"].get("checkpoint_ns") is not None
        wanted |= {
            "thread_id": partition.thread_id,
            "checkpoint_ns": partition.namespace if has_namespace else None,
            "checkpoint_id": checkpoint_id,
        }
    return _list(client, wanted, matching, limit)


def _plain_part(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what JSON can hold of a dict."""
    with suppress(ValueError):
        whole: dict[str, Any] = _plain(given)
        return whole
    found: dict[str, Any] = {}
    for name, value in given.items():
        with suppress(ValueError):
            found |= _plain({name: value})
    return found


def _list(
    client: Client, wanted: Mapping[str, Any], matching: Mapping[str, Any], limit: int | None
) -> Stream[CheckpointTuple]:
    """List checkpoints page by page. If threads were not named, an error of one is raised at the end."""
    left = math.inf if limit is None else limit
    # A scan of all threads pays for what is behind a page, too.
    first = _PAGE_FIRST if limit is None and "thread_id" in wanted else _PAGE_MAX
    after, count, left_out = None, first if limit is None else min(limit, first), ErrorCollector()
    while left:
        page = yield from client.service.ask(
            thread_calls.list_checkpoints, **wanted, limit=count, after=after
        )
        for each in page.checkpoints:
            thread_id = client.service.outside(each.thread_id)
            name = f"namespace {each.checkpoint_ns!r} of thread {thread_id!r}"
            # One of another prefix has no id for this agent. What is older than what cannot be read is left out, too:
            # it would look like the newest.
            if not left or name in left_out or not thread_id:
                continue
            found = None
            with left_out.capture(name):
                found = yield from _listed(client, each, matching)
            if "thread_id" in wanted:
                left_out.raise_first()
            if found is not None:
                yield Emit(found)
                left -= 1
        if page.problem is not None:
            left_out.add(f"what a page from {after} leaves out", failure_in(page.problem))
        after, count = page.after, min(2 * count, _PAGE_MAX)
        if after is None:
            break
    left_out.raise_first()


def _listed(client: Client, listed: Shown, matching: Mapping[str, Any]) -> Op[CheckpointTuple | None]:
    """Return a checkpoint of a list; `None` if its metadata do not match, or it was deleted before all of it came."""
    whole = yield from _all_of_checkpoint(client, listed, {})
    if whole is None:
        return None
    found = yield from work(partial(_opened, client, whole), size_of(whole.values))
    return found if has_values(cast("Mapping[str, Any]", found.metadata), matching) else None


def get_delta_channel_history(
    client: Client, config: RunnableConfig, channels: Sequence[str]
) -> Op[Mapping[str, DeltaChannelHistory]]:
    """Collect each channel's nearest stored value and the writes since."""
    partition, checkpoint_id = client.target(config)
    names = arguments.checked_channels(channels)
    if not names:
        return {}
    found = {name: ChannelHistory([], []) for name in names}
    passed = set[str]() if checkpoint_id is None else {checkpoint_id}
    after: str | None = None
    while True:
        wanted = [name for name, each in found.items() if each.seed is None]
        page = yield from _history_page(client, partition, checkpoint_id, wanted, after)
        after = page.after
        again = passed & {after}
        for name, older in page.channels.items():
            again |= {*older.checkpoint_ids} & {*found[name].checkpoint_ids, *passed}
            found[name] = ChannelHistory(
                older.writes + found[name].writes,
                older.checkpoint_ids + found[name].checkpoint_ids,
                older.seed,
            )
        if again:
            # A page does not know what others before it had: their writes would be applied twice.
            msg = f"the history of thread {partition.thread_id!r} has no beginning: {min(again)!r} is its own ancestor"
            raise errors.CheckpointCorruptionError(msg)
        if after is None:
            break
        passed.add(after)

    def opened() -> dict[str, DeltaChannelHistory]:
        return {name: _history(client, partition, name, each) for name, each in found.items()}

    return (yield from work(opened, size_of(found)))


def _history_page(
    client: Client,
    partition: Partition,
    checkpoint_id: str | None,
    channels: Sequence[str],
    after: str | None,
) -> Op[History]:
    """Return a page of a history with all its values."""

    def filled(page: History, full: Full) -> History:
        channels = {
            name: replace(
                each, writes=_writes(each.writes, full), seed=None if each.seed is None else full(each.seed)
            )
            for name, each in page.channels.items()
        }
        return replace(page, channels=channels)

    def again(have: Sequence[bytes]) -> Op[History]:
        return client.service.ask(
            thread_calls.get_delta_channel_history,
            partition.thread_id,
            tuple(channels),
            partition.namespace,
            checkpoint_id,
            tuple(have),
            after,
        )

    whole = yield from _all_of((yield from again([])), filled, again, {})
    return History({}) if whole is None else whole


def _history(client: Client, partition: Partition, name: str, found: ChannelHistory) -> DeltaChannelHistory:
    loading = partial(_loaded, client, partition)
    history: DeltaChannelHistory = {"writes": _opened_writes(loading, found.writes)}
    if found.seed is not None:
        history["seed"] = loading(found.seed, f"channel {name!r}")
    return history


# Writing


def put(
    client: Client,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    """Store a checkpoint. Only what is new in its values is sent, if the service has the parent's."""
    (partition, parent_id), checkpoint_id = client.target(config), arguments.id_of(checkpoint)
    items.checkpoint_prefix(checkpoint_id)
    fields = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    sent_fields = _as_json(fields, "checkpoint")
    owner = _owner(client, config, metadata, partition)
    told_versions, above = _as_json(dict(new_versions), "new_versions"), _checkpoint_map(config)
    readable, typed = _metadata(client, get_checkpoint_metadata(config, metadata))
    given = dict(checkpoint["channel_values"])
    known = client.memory.newest(partition)
    if known.checkpoint_id != parent_id:
        known = Known()
    # Serialize before the first request: LangGraph may change a value while we wait.
    changed = {name for name in given if name in new_versions}
    versions = sent_fields["channel_versions"]
    serializing = partial(_serialized, client.codec, given, known, versions, changed)
    values = yield from work(serializing, rough_bytes({name: given[name] for name in changed}))
    what, wanted = f"checkpoint {checkpoint_id!r} of thread {partition.thread_id!r}", set[str]()
    for _ in range(_PUT_ATTEMPTS_MAX):
        describing = partial(_sent, values, known, changed, wanted)
        sent = yield from work(describing, sum(len(values[name].data) for name in changed))
        yield from client.service.check_fit(sent, what)
        response = yield from client.service.ask(
            thread_calls.put,
            partition.thread_id,
            cast("CheckpointFields", sent_fields),
            readable,
            told_versions,
            sent,
            checkpoint_ns=partition.namespace,
            checkpoint_map=above,
            parent_checkpoint_id=parent_id,
            typed_metadata=typed,
            kept=tuple(name for name in values if name not in sent),
            listed=client.owner_from is not None,
            owner=owner,
        )
        if not response.wanted:
            client.memory.remember(partition, Known(checkpoint_id, versions, values))
            if parent_id is None and owner is None:
                yield from _tell_of_missing_owner(client, partition)
            return arguments.config_of(partition, checkpoint_id)
        wanted |= values.keys() & {*response.wanted}
    raise errors.CheckpointerError(
        f"the gateway keeps asking for values of {what} that it was sent; retry the call"
    )


def _checkpoint_map(config: RunnableConfig) -> dict[str, str]:
    """Return LangGraph's map of the namespaces above a subgraph's to their checkpoints."""
    given = config["configurable"].get("checkpoint_map")
    if not isinstance(given, Mapping):
        return {}
    return {str(name): str(each) for name, each in given.items()}


def _serialized(
    codec: Codec,
    given: Mapping[str, Any],
    known: Known,
    versions: Mapping[str, Any],
    changed: Iterable[str],
) -> dict[str, opaque.SentValue]:
    """Return all values serialized, kept ones as the service is known to have them."""
    found: dict[str, opaque.SentValue] = {}
    for name, value in given.items():
        is_known = name in known.values and known.versions.get(name, known) == versions.get(name)
        if is_known and name not in changed:
            found[name] = known.values[name]
        else:
            found[name] = dumped(codec, value, f"channel {name!r}", name)
    return found


def _sent(
    values: Mapping[str, opaque.SentValue], known: Known, changed: Iterable[str], wanted: Iterable[str]
) -> dict[str, opaque.SentValue]:
    """Return the values that are sent: what the service wants whole, and what has changed, if possible as a delta."""
    sent = {name: values[name] for name in wanted}
    for name in changed:
        base, value = known.values.get(name), values[name]
        delta = None if base is None or name in sent else wire.delta_of(base.data, value.data)
        if base is not None and delta is not None:
            sent[name] = opaque.SentValue(value.type, delta, wire.digest_of(base.data))
        else:
            sent[name] = value
    return sent


def _metadata(client: Client, metadata: CheckpointMetadata) -> tuple[dict[str, Any], opaque.SentValue | None]:
    """Return metadata as requests have it: typed as well if JSON in UTF-8 cannot hold all of it."""
    readable = _plain_part(metadata)
    if len(readable) == len(metadata):
        return readable, None
    return readable, dumped(client.codec, metadata, "the metadata", "metadata")


def _owner(
    client: Client, config: RunnableConfig, metadata: CheckpointMetadata, partition: Partition
) -> str | None:
    """Return the owner that a checkpoint names, if the table can have it."""
    named = None if client.owner_from is None else owner_in(config, metadata, client.owner_from)
    if named is None:
        return None
    name = checked_id(named, "owner")
    checked_owner(client.service.prefix + name, client.inside(partition))
    return name


def _tell_of_missing_owner(client: Client, partition: Partition) -> Op[None]:
    """Log once that a thread begins without an owner, unless the service gives it that of the credentials."""
    if partition.namespace == "" and (yield from client.service.about())["owner"] is None:
        thread_item.tell_of_missing_owner(client.facts, partition.thread_id, client.owner_from)


def put_writes(
    client: Client, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> Op[None]:
    """Store a task's writes."""
    partition, checkpoint_id = checked_task(config, task_id, task_path)
    client.inside(partition)
    if not writes:
        return
    # They may come before the first put of their thread.
    owner = _owner(client, config, {}, partition)
    # LangGraph may change its arguments while we wait.
    given, above = tuple(writes), _checkpoint_map(config)

    def serialized() -> tuple[tuple[str, opaque.SentValue], ...]:
        return tuple(
            (channel, dumped(client.codec, value, f"the write to channel {channel!r}", channel))
            for channel, value in given
        )

    sent = yield from work(serialized, sum(rough_bytes(value) for _, value in given))
    yield from client.service.check_fit(sent, f"the writes of task {task_id!r}")
    task = (partition.thread_id, checkpoint_id, task_id, sent, partition.namespace, above, task_path)
    listed = client.owner_from is not None
    # A service may still carry out a request that we gave up. Only we know that this call is still waited for.
    order: int | None = int(client.clock() * 1000)
    while order is not None:
        later = (
            yield from client.service.ask(thread_calls.put_writes, *task, order, listed=listed, owner=owner)
        ).later
        order = None if later is None else later + 1


# Deleting and copying


def delete_thread(client: Client, thread_id: str) -> Op[None]:
    """Delete a thread."""
    checked = checked_id(thread_id, "thread_id")
    client.memory.forget_thread(checked)
    yield from client.service.ask(thread_calls.delete_thread, checked)


def delete_owner(client: Client, owner: str, parallel: int = AT_ONCE) -> Op[DeletedThreads]:
    """Delete the threads of an owner."""
    del parallel
    client.memory.forget_thread()
    found = yield from client.service.ask(thread_calls.delete_owner, checked_id(owner, "owner"))
    # An owner may have threads of another prefix. Their whole ids say which.
    prefix = client.service.prefix
    return DeletedThreads(
        [each.removeprefix(prefix) for each in found.deleted],
        {each.removeprefix(prefix): reason for each, reason in found.failed.items()},
    )


def delete_for_runs(client: Client, run_ids: Sequence[str]) -> Op[None]:
    """Delete the checkpoints of runs."""
    checked = arguments.checked_ids(run_ids, "run_ids")
    client.memory.forget_thread()
    yield from client.service.ask(thread_calls.delete_for_runs, checked, thread_prefix="")


def prune(client: Client, thread_ids: Sequence[str], strategy: str, keep_last: int | None) -> Op[None]:
    """Remove old checkpoints."""
    delete.checked_count(strategy, keep_last)
    collector = ErrorCollector()
    for each in arguments.checked_ids(thread_ids, "thread_ids"):
        client.memory.forget_thread(each)
        with collector.capture(f"thread {each!r}"):
            yield from client.service.ask(
                thread_calls.prune, each, cast("thread_calls.Strategy", strategy), keep_last
            )
    collector.raise_first()


def copy_thread(client: Client, source_thread_id: str, target_thread_id: str) -> Op[None]:
    """Copy a thread."""
    source = checked_id(source_thread_id, "source_thread_id")
    to = checked_id(target_thread_id, "target_thread_id")
    if source == to:
        msg = f"source and target are both thread {source!r}; give another id for the copy"
        raise errors.CheckpointerInputError(msg)
    owner = yield from _owner_of_copy(client, source, to)
    after: thread_calls.CopiedTo | None = None
    seeds = set[bytes]()
    while len(seeds) <= limits.ATTEMPTS_MAX:
        after = (yield from client.service.ask(thread_calls.copy_thread, source, to, after, owner)).after
        if after is None:
            return
        # Another one means that it began again.
        seeds.add(after.seed)
    raise errors.ThreadBusyError(
        f"thread {source!r} could not be copied to {to!r}: one of them was deleted, pruned or used during"
        f" each of {limits.ATTEMPTS_MAX} attempts; try again when that has ended"
    )


def _owner_of_copy(client: Client, source: str, to: str) -> Op[str | None]:
    """Return the owner that the newest checkpoint of a thread names, if the table can have it."""
    if client.owner_from is None:
        return None
    found = (yield from client.service.ask(thread_calls.get_tuple, source, channels=())).checkpoint
    if found is None:
        return None
    return _owner(client, {}, _opened_metadata(client, found), items.partition_of(to))


# The directory


def set_thread(
    client: Client, thread_id: str, owner: Any, title: Any, metadata: Mapping[str, Any] | None
) -> Op[None]:
    """Say whose thread it is and what it is about."""
    checked = checked_id(thread_id, "thread_id")
    named = None if owner is None else checked_id(owner, "owner")
    # Checked here, so that errors name the arguments as the caller has them.
    prefix = client.service.prefix
    owner = None if named is None else prefix + named
    described(ThreadDescription(), items.partition_of(prefix + checked), owner, title, metadata)
    told = None if metadata is None else _as_json(metadata, "metadata")
    yield from client.service.ask(thread_calls.set_thread, checked, named, title, told)


def list_threads(client: Client, query: threads.ThreadQuery) -> Op[threads.ThreadPage]:
    """List the threads of an owner, or all threads with the prefix, newest activity first."""
    page = yield from client.service.ask(
        thread_calls.list_threads,
        None if query.owner is None else checked_id(query.owner, "owner"),
        query.status,
        query.wanted_metadata() or None,
        query.limit,
        query.before,
        query.with_status,
        None if query.since is None else min(max(0.0, query.since.timestamp()), threads.MOMENT_MAX),
    )
    prefix = client.service.prefix
    shown = [
        replace(each, thread_id=thread_id, owner=each.owner and each.owner.removeprefix(prefix))
        for each in page.threads
        if (thread_id := client.service.outside(each.thread_id))
    ]
    return threads.ThreadPage(shown, page.cursor)


def list_runs(client: Client, thread_id: str) -> Op[list[overview.RunSummary]]:
    """List the runs of a thread."""
    return (yield from client.service.ask(thread_calls.list_runs, checked_id(thread_id, "thread_id"))).runs
