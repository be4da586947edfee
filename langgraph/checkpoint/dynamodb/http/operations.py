"""The saver's operations through the gateway: serialize what is sent, ask the service, deserialize what is received.

Each has the name and the arguments of the one on the table, in whose place it is run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError, metadata_json, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import no_metadata
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.unserializable import unserializable_part
from langgraph.checkpoint.dynamodb._format.wire import delta_of, digest_of
from langgraph.checkpoint.dynamodb._operations import arguments
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.delete import checked_count
from langgraph.checkpoint.dynamodb._operations.directory import (
    MOMENT_MAX,
    ThreadPage,
    ThreadQuery,
    ThreadSummary,
)
from langgraph.checkpoint.dynamodb._operations.entries import (
    ThreadDescription,
    checked_owner,
    described,
    owner_in,
)
from langgraph.checkpoint.dynamodb._operations.error_collector import ErrorCollector
from langgraph.checkpoint.dynamodb._operations.list import has_values
from langgraph.checkpoint.dynamodb._operations.put_writes import checked_task
from langgraph.checkpoint.dynamodb._operations.runs import RunSummary
from langgraph.checkpoint.dynamodb._operations.threads import tell_of_missing_owner
from langgraph.checkpoint.dynamodb._runtime.cache import Facts
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, work
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointSerializationError,
)
from langgraph.checkpoint.dynamodb.http.documents import Document, packed, size_of
from langgraph.checkpoint.dynamodb.http.memory import Known, KnownCheckpoints
from langgraph.checkpoint.dynamodb.http.problems import failure_in
from langgraph.checkpoint.dynamodb.http.service import Service, ask
from langgraph.checkpoint.dynamodb.http.values import dumped, loaded

# A service that wants values wants all of them at once. A deletion meanwhile may make it want more.
_PUT_ATTEMPTS_MAX = 4
# The digest of a smaller value takes as many bytes as the value.
_HAVE_BYTES_MIN = 256
# The first page of a list without a limit; its consumer may stop at any time. Later ones grow.
_PAGE_FIRST = 8
_PAGE_MAX = 256
# How many threads one request names; their ids may be long.
_PRUNED_AT_ONCE = 1000


@dataclass(frozen=True)
class Client:
    """All that the operations of a saver need."""

    service: Service
    memory: KnownCheckpoints
    codec: Codec
    prefix: str = ""
    """The beginning of thread ids and owners in the table, which the agent does not know: a tenant and a slash."""
    owner_from: str | None = None
    facts: Facts = field(default_factory=Facts)
    clock: Callable[[], float] = time.time

    def inside(self, partition: Partition) -> Partition:
        """Return a namespace that the agent names, as the table has it."""
        if not self.prefix:
            return partition
        return items.partition_of(self.prefix + partition.thread_id, partition.namespace)

    def id_inside(self, given: Any, name: str) -> str:
        """Return the id of a thread, or the name of an owner, as the table has it."""
        return self.prefix + checked_id(given, name)

    def thread_inside(self, given: Any, name: str = "thread_id") -> str:
        """Return the id of a thread as the table has it, if that can be one."""
        inside = self.id_inside(given, name)
        items.partition_of(inside)
        return inside

    def outside(self, name: str) -> str:
        """Return the id of a thread, or the name of an owner, as the agent knows it."""
        return name.removeprefix(self.prefix)

    def target(self, config: RunnableConfig) -> tuple[Partition, str | None]:
        """Return the namespace, as the table has it, and the checkpoint that a config names."""
        return self.inside(arguments.target(config)), arguments.checkpoint_id_in(config)

    def config_of(self, partition: Partition, checkpoint_id: str) -> RunnableConfig:
        """Return the config of a checkpoint, as the agent knows it."""
        config = arguments.config_of(partition, checkpoint_id)
        config["configurable"]["thread_id"] = self.outside(partition.thread_id)
        return config


def _place_of(partition: Partition) -> Document:
    return {"thread_id": partition.thread_id, "checkpoint_ns": partition.namespace}


def _plain(value: Any) -> Any:
    """Return plain data as JSON has it. What is changed in the value later does not change it.

    Raises:
        ValueError: JSON, or msgpack, cannot hold it.
    """
    text = metadata_json(value)
    if text is None:
        raise ValueError("JSON cannot hold it")
    copy = json.loads(text)
    packed(copy)
    return copy


def _as_json(value: Any, what: str) -> Any:
    """Return plain data as JSON has it.

    Raises:
        CheckpointSerializationError: It has something that JSON cannot hold.
    """
    try:
        return _plain(value)
    except ValueError as error:
        where, part = unserializable_part(value, what, _plain)
        msg = (
            f"{where} is of type {type(part).__name__}, and beside values the gateway takes only what JSON and msgpack"
            " hold; it was not stored"
        )
        raise CheckpointSerializationError(msg) from error


# Reading


def get_tuple(client: Client, config: RunnableConfig) -> Op[CheckpointTuple | None]:
    """Read the checkpoint that a config names, or the newest of its namespace."""
    partition, checkpoint_id = client.target(config)
    yield from client.service.about()
    known = [each["data"] for each in client.memory.newest(partition).values.values()]
    have = {digest_of(data): data for data in known if len(data) >= _HAVE_BYTES_MIN}
    wanted = {**_place_of(partition), "checkpoint_id": checkpoint_id, "have": list(have)}
    while True:
        first: Document | None = (yield from ask("get-tuple", wanted))["checkpoint"]
        if first is None:
            return None
        found = yield from _all_of_checkpoint(first, have)
        if found is not None:
            break
        # It was deleted before all of it came. If it was the newest one, another is that now.
        if checkpoint_id is not None:
            return None
    # Answers of a later release may say more of a value than a request may.
    values = {name: {"type": each["type"], "data": each["data"]} for name, each in found["values"].items()}
    versions = found["checkpoint"].get("channel_versions", {})
    client.memory.remember(partition, Known(found["checkpoint_id"], dict(versions), values))
    return (yield from work(partial(_opened, client, found), size_of(found["values"])))


def _all_of_checkpoint(found: Document, have: Mapping[bytes, bytes]) -> Op[Document | None]:
    """Ask for what of a checkpoint did not fit; return `None` if it was deleted meanwhile."""
    place = {name: found[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}

    def again(have: Sequence[bytes]) -> Op[Any]:
        return (yield from ask("get-tuple", {**place, "have": have}))["checkpoint"]

    whole: Document | None = yield from _all_of(found, _shown, again, have)
    return whole


def _all_of(
    found: Document,
    values_of: Callable[[Document], Sequence[Document]],
    again: Callable[[Sequence[bytes]], Op[Any]],
    have: Mapping[bytes, bytes],
) -> Op[Any]:
    """Ask again, with the digests of what came, until no value is left out; return `None` if an answer is that."""
    known = dict(have)
    while any("left" in each for each in values_of(found)):
        known |= {digest_of(each["data"]): each["data"] for each in values_of(found) if "data" in each}
        more = yield from again(list(known))
        if more is None:
            return None
        found = more
    for each in values_of(found):
        if "same" in each:
            each["data"] = known[each.pop("same")]
    return found


def _shown(found: Document) -> list[Document]:
    """Return the values and the pending writes of a checkpoint."""
    return [*found["values"].values(), *(value for *_, value in found["pending_writes"])]


def _opened(client: Client, found: Document) -> CheckpointTuple:
    """Return a checkpoint with its values deserialized."""
    partition = items.partition_of(found["thread_id"], found["checkpoint_ns"])
    checkpoint_id, parent_id = found["checkpoint_id"], found["parent_checkpoint_id"]
    loading = partial(_loaded, client, partition)
    metadata, typed = found["metadata"], found.get("typed_metadata")
    if typed is not None:
        metadata = loading(typed, "the metadata")
        if not isinstance(metadata, dict):
            raise UnreadableError(
                no_metadata(f"checkpoint {checkpoint_id!r} of thread {partition.thread_id!r}")
            )
    state = {name: loading(each, f"channel {name!r}") for name, each in found["values"].items()}
    return CheckpointTuple(
        config=client.config_of(partition, checkpoint_id),
        checkpoint=cast("Checkpoint", {**found["checkpoint"], "channel_values": state}),
        metadata=metadata,
        parent_config=None if parent_id is None else client.config_of(partition, parent_id),
        pending_writes=[
            (task, channel, loading(value, f"the write to channel {channel!r}"))
            for task, channel, value in found["pending_writes"]
        ],
    )


def _loaded(client: Client, partition: Partition, document: Document, what: str) -> Any:
    where = f"in namespace {partition.namespace!r} of thread {partition.thread_id!r}"
    return loaded(client.codec, document, f"{what} {where}")


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
    wanted: Document = {"filter": asked, "before": arguments.checked_before(before)}
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


def _plain_part(given: Mapping[Any, Any]) -> Document:
    """Return what JSON can hold of a dict."""
    with suppress(ValueError):
        whole: Document = _plain(given)
        return whole
    found: Document = {}
    for name, value in given.items():
        with suppress(ValueError):
            found |= _plain({name: value})
    return found


def _list(
    client: Client, wanted: Document, matching: Mapping[str, Any], limit: int | None
) -> Stream[CheckpointTuple]:
    """List checkpoints page by page. If threads were not named, an error of one is raised at the end."""
    yield from client.service.about()
    left = math.inf if limit is None else limit
    # A scan of all threads pays for what is behind a page, too.
    first = _PAGE_FIRST if limit is None and "thread_id" in wanted else _PAGE_MAX
    after, count, errors = None, first if limit is None else min(limit, first), ErrorCollector()
    while left:
        page = yield from ask("list", {**wanted, "limit": count, "after": after})
        for document in page["checkpoints"]:
            name = f"namespace {document['checkpoint_ns']!r} of thread {document['thread_id']!r}"
            # What is older than what cannot be read is left out, too: it would look like the newest.
            if not left or name in errors or not document["thread_id"].startswith(client.prefix):
                continue
            found = None
            with errors.capture(name):
                found = yield from _listed(client, document, matching)
            if "thread_id" in wanted:
                errors.raise_first()
            if found is not None:
                yield Emit(found)
                left -= 1
        if page["problem"] is not None:
            errors.add(f"what a page from {after} leaves out", failure_in(page["problem"]))
        after, count = page["after"], min(2 * count, _PAGE_MAX)
        if after is None:
            break
    errors.raise_first()


def _listed(client: Client, document: Document, matching: Mapping[str, Any]) -> Op[CheckpointTuple | None]:
    """Return a checkpoint of a list; `None` if its metadata do not match, or it was deleted before all of it came."""
    whole = yield from _all_of_checkpoint(document, {})
    if whole is None:
        return None
    found = yield from work(partial(_opened, client, whole), size_of(whole["values"]))
    return found if has_values(cast("Mapping[str, Any]", found.metadata), matching) else None


def get_delta_channel_history(
    client: Client, config: RunnableConfig, channels: Sequence[str]
) -> Op[Mapping[str, DeltaChannelHistory]]:
    """Collect each channel's nearest stored value and the writes since."""
    partition, checkpoint_id = client.target(config)
    names = arguments.checked_channels(channels)
    if not names:
        return {}
    yield from client.service.about()
    wanted: Document = {**_place_of(partition), "checkpoint_id": checkpoint_id}
    found: dict[str, Document] = {name: {"writes": [], "checkpoint_ids": []} for name in names}
    passed = set[str]() if checkpoint_id is None else {checkpoint_id}
    while True:
        wanted["channels"] = [name for name, each in found.items() if "seed" not in each]
        page = yield from _history_page(wanted)
        after = wanted["after"] = page["after"]
        again = passed & {after}
        for name, older in page["channels"].items():
            again |= {*older["checkpoint_ids"]} & {*found[name]["checkpoint_ids"], *passed}
            joined = {each: older[each] + found[name][each] for each in ("writes", "checkpoint_ids")}
            found[name] = older | joined
        if again:
            # A page does not know what others before it had: their writes would be applied twice.
            msg = f"the history of thread {partition.thread_id!r} has no beginning: {min(again)!r} is its own ancestor"
            raise CheckpointCorruptionError(msg)
        if after is None:
            break
        passed.add(after)

    def opened() -> dict[str, DeltaChannelHistory]:
        return {name: _history(client, partition, name, each) for name, each in found.items()}

    return (yield from work(opened, size_of(found)))


def _history_page(wanted: Document) -> Op[Any]:
    """Return a page of a history with all its values."""

    def values_of(page: Document) -> list[Document]:
        histories = page["channels"].values()
        writes = [value for each in histories for *_, value in each["writes"]]
        return [*writes, *(each["seed"] for each in histories if "seed" in each)]

    def again(have: Sequence[bytes]) -> Op[Any]:
        return (yield from ask("delta-channel-history", {**wanted, "have": have}))

    return (yield from _all_of((yield from again([])), values_of, again, {}))


def _history(client: Client, partition: Partition, name: str, document: Document) -> DeltaChannelHistory:
    loading = partial(_loaded, client, partition)
    history: DeltaChannelHistory = {
        "writes": [
            (task, channel, loading(value, f"the write to channel {channel!r}"))
            for task, channel, value in document["writes"]
        ]
    }
    if "seed" in document:
        history["seed"] = loading(document["seed"], f"channel {name!r}")
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
    document: Document = {
        **_place_of(partition),
        "parent_checkpoint_id": parent_id,
        "checkpoint_map": _checkpoint_map(config),
        "checkpoint": _as_json(fields, "checkpoint"),
        **_metadata(client, get_checkpoint_metadata(config, metadata)),
        "new_versions": _as_json(dict(new_versions), "new_versions"),
        "listed": client.owner_from is not None,
        "owner": _owner(client, config, metadata, partition),
    }
    given = dict(checkpoint["channel_values"])
    known = client.memory.newest(partition)
    if known.checkpoint_id != parent_id:
        known = Known()
    # Serialize before the first request: LangGraph may change a value while we wait.
    changed = {name for name in given if name in new_versions}
    versions = document["checkpoint"]["channel_versions"]
    serializing = partial(_serialized, client.codec, given, known, versions, changed)
    values = yield from work(serializing, rough_bytes({name: given[name] for name in changed}))
    what, wanted = f"checkpoint {checkpoint_id!r} of thread {partition.thread_id!r}", set[str]()
    for _ in range(_PUT_ATTEMPTS_MAX):
        describing = partial(_sent, values, known, changed, wanted)
        sent = yield from work(describing, sum(len(values[name]["data"]) for name in changed))
        asked = {**document, "values": sent, "kept": [name for name in values if name not in sent]}
        answer = yield from ask("put", (yield from client.service.fitting(asked, what)))
        if not answer["wanted"]:
            client.memory.remember(partition, Known(checkpoint_id, versions, values))
            if parent_id is None and document["owner"] is None:
                yield from _tell_of_missing_owner(client, partition)
            return client.config_of(partition, checkpoint_id)
        wanted |= values.keys() & set(answer["wanted"])
    raise CheckpointerError(f"the gateway keeps asking for values of {what} that it was sent; retry the call")


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
) -> dict[str, Document]:
    """Return all values serialized, kept ones as the service is known to have them."""
    found: dict[str, Document] = {}
    for name, value in given.items():
        is_known = name in known.values and known.versions.get(name, known) == versions.get(name)
        if is_known and name not in changed:
            found[name] = known.values[name]
        else:
            found[name] = dumped(codec, value, f"channel {name!r}", name)
    return found


def _sent(
    values: Mapping[str, Document], known: Known, changed: Iterable[str], wanted: Iterable[str]
) -> dict[str, Document]:
    """Return the values that are sent: what the service wants whole, and what has changed, if possible as a delta."""
    sent = {name: values[name] for name in wanted}
    for name in changed:
        base, value = known.values.get(name), values[name]
        delta = None if base is None or name in sent else delta_of(base["data"], value["data"])
        if base is not None and delta is not None:
            sent[name] = {"type": value["type"], "base": digest_of(base["data"]), "delta": delta}
        else:
            sent[name] = value
    return sent


def _metadata(client: Client, metadata: CheckpointMetadata) -> Document:
    """Return metadata as requests have it: typed as well if JSON and msgpack cannot hold all of it."""
    readable = _plain_part(metadata)
    if len(readable) == len(metadata):
        return {"metadata": readable}
    text = metadata_json(metadata)
    if text is not None:
        # All of it is JSON, and msgpack cannot hold its whole numbers.
        return {"metadata": readable, "typed_metadata": {"type": "json", "data": text.encode()}}
    return {
        "metadata": readable,
        "typed_metadata": dumped(client.codec, metadata, "the metadata", "metadata"),
    }


def _owner(
    client: Client, config: RunnableConfig, metadata: CheckpointMetadata, partition: Partition
) -> str | None:
    """Return the owner that a checkpoint names, as the table has it."""
    named = None if client.owner_from is None else owner_in(config, metadata, client.owner_from)
    if named is None:
        return None
    return checked_owner(client.id_inside(named, "owner"), items.partition_of(partition.thread_id))


def _tell_of_missing_owner(client: Client, partition: Partition) -> Op[None]:
    """Log once that a thread begins without an owner, unless the service gives it that of the credentials."""
    if partition.namespace == "" and (yield from client.service.about())["owner"] is None:
        tell_of_missing_owner(client.facts, client.outside(partition.thread_id), client.owner_from)


def put_writes(
    client: Client, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> Op[None]:
    """Store a task's writes."""
    named, checkpoint_id = checked_task(config, task_id, task_path)
    partition = client.inside(named)
    if not writes:
        return
    # LangGraph may change its arguments while we wait.
    given, above = tuple(writes), _checkpoint_map(config)

    def serialized() -> list[Any]:
        return [
            (channel, dumped(client.codec, value, f"the write to channel {channel!r}", channel))
            for channel, value in given
        ]

    sent = yield from work(serialized, sum(rough_bytes(value) for _, value in given))
    task = {"checkpoint_id": checkpoint_id, "task_id": task_id, "task_path": task_path}
    document = {**_place_of(partition), "checkpoint_map": above, **task, "writes": sent}
    # A service may still carry out a request that we gave up. Only we know that this call is still waited for.
    order: int | None = int(client.clock() * 1000)
    while order is not None:
        request = yield from client.service.fitting(
            {**document, "order": order}, f"the writes of task {task_id!r}"
        )
        later = (yield from ask("put-writes", request))["later"]
        order = None if later is None else later + 1


# Deleting and copying


def delete_thread(client: Client, thread_id: str) -> Op[None]:
    """Delete a thread."""
    checked = client.thread_inside(thread_id)
    client.memory.forget_thread(checked)
    yield from ask("delete-thread", {"thread_id": checked})


def delete_for_runs(client: Client, run_ids: Sequence[str]) -> Op[None]:
    """Delete the checkpoints of runs."""
    checked = arguments.checked_ids(run_ids, "run_ids")
    client.memory.forget_thread()
    within = {"thread_prefix": client.prefix} if client.prefix else {}
    yield from ask("delete-for-runs", {"run_ids": checked, **within})


def prune(client: Client, thread_ids: Sequence[str], strategy: str, keep_last: int | None) -> Op[None]:
    """Remove old checkpoints."""
    checked_count(strategy, keep_last)
    checked = [
        client.thread_inside(each, "an id") for each in arguments.checked_ids(thread_ids, "thread_ids")
    ]
    for each in checked:
        client.memory.forget_thread(each)
    collector = ErrorCollector()
    for start in range(0, len(checked), _PRUNED_AT_ONCE):
        some = checked[start : start + _PRUNED_AT_ONCE]
        with collector.capture(f"thread {some[0]!r}"):
            how = {"strategy": strategy, "keep_last": keep_last}
            yield from _until_done("prune", {"thread_ids": some, **how})
    collector.raise_first()


def copy_thread(client: Client, source_thread_id: str, target_thread_id: str) -> Op[None]:
    """Copy a thread."""
    source = client.thread_inside(source_thread_id, "source_thread_id")
    to = client.thread_inside(target_thread_id, "target_thread_id")
    if source == to:
        msg = f"source and target are both thread {source!r}; give another id for the copy"
        raise CheckpointerInputError(msg)
    yield from _until_done("copy-thread", {"source_thread_id": source, "target_thread_id": to})


def _until_done(endpoint: str, document: Document) -> Op[None]:
    """Repeat a request until the service has done what takes longer than one."""
    while not (yield from ask(endpoint, document))["done"]:
        pass


# The directory


def set_thread(
    client: Client, thread_id: str, owner: Any, title: Any, metadata: Mapping[str, Any] | None
) -> Op[None]:
    """Say whose thread it is and what it is about."""
    inside = client.id_inside(thread_id, "thread_id")
    named = None if owner is None else client.id_inside(owner, "owner")
    # Checked here, so that errors name the arguments as the caller has them.
    described(ThreadDescription(), items.partition_of(inside), named, title, metadata)
    told = None if metadata is None else _as_json(metadata, "metadata")
    yield from ask("set-thread", {"thread_id": inside, "owner": named, "title": title, "metadata": told})


def list_threads(client: Client, query: ThreadQuery) -> Op[ThreadPage]:
    """List the threads of an owner, or all threads with the prefix, newest activity first."""
    named = None if query.owner is None else client.id_inside(query.owner, "owner")
    wanted = query.wanted_metadata()
    document = {
        "owner": named,
        "status": query.status,
        "metadata": wanted or None,
        "limit": query.limit,
        "before": query.before,
        "with_status": query.with_status,
        "since": None if query.since is None else min(max(0.0, query.since.timestamp()), MOMENT_MAX),
    }
    answer = yield from ask("threads", document)
    shown = [
        _summary(client, each) for each in answer["threads"] if each["thread_id"].startswith(client.prefix)
    ]
    return ThreadPage(shown, answer["cursor"])


def _summary(client: Client, document: Document) -> ThreadSummary:
    def moment(seconds: float | None) -> datetime | None:
        return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)

    owner = document["owner"]
    return ThreadSummary(
        client.outside(document["thread_id"]),
        None if owner is None else client.outside(owner),
        document["title"],
        document["metadata"],
        moment(document["created_at"]),
        moment(document["last_active"]),
        document["status"],
        document["step"],
    )


def list_runs(client: Client, thread_id: str) -> Op[list[RunSummary]]:
    """List the runs of a thread."""
    inside = client.thread_inside(thread_id)
    names = ("run_id", "first_checkpoint_id", "last_checkpoint_id", "checkpoints", "status")
    answer = yield from ask("runs", {"thread_id": inside})
    return [RunSummary(*(each[name] for name in names)) for each in answer["runs"]]
