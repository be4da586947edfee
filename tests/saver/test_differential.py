"""Random sequences of every operation, on the saver and on LangGraph's InMemorySaver: the results are equal.

The caller has the habits of LangGraph's runtime: it makes the next checkpoint in the very one that it was given, puts
copies of checkpoints beside them, and changes whatever it gave or was given, even while requests are on their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    copy_checkpoint,
    empty_checkpoint,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb import CheckpointNotFoundError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import thread_config
from tests.support.examples import percent
from tests.support.reference import ReferenceSaver
from tests.support.sync_adapter import SyncAsAsync

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Saver: TypeAlias = "DynamoDBSaver | HttpCheckpointSaver"
MakeSaver: TypeAlias = Callable[[], Saver]

THREADS = ["a", "a#b", "%23"]
NAMESPACES = ["", "sub", "sub|inner:1", "#"]
CHANNELS = ["messages", "text", "number", "delta", "blob"]
TASKS = ["task-1", "task-2", "00000000-0000-0000-0000-000000000000"]
RUNS = ["run-1", "run-2"]

small_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.lists(st.integers(0, 9), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=3),
    st.sets(st.integers(0, 9), max_size=3),
    st.tuples(st.integers(0, 9), st.text(max_size=3)),
)


def _message(number: int) -> AIMessage:
    """A message of some hundred bytes that is the same each time."""
    return AIMessage(
        " ".join(f"word{number}x{each * number % 97}" for each in range(60)), id=f"message-{number}"
    )


def _big(seed: int, size: int) -> bytes:
    return b"".join(bytes([seed, each % 251, each // 251]) for each in range(size // 3))


big_values = st.builds(_big, st.integers(0, 3), st.sampled_from([3_000, 20_000, 70_000]))
changes = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(["text", "number"]), small_values),
    st.tuples(st.just("set"), st.just("blob"), big_values),
    st.tuples(st.just("append"), st.just("messages"), st.integers(1, 40)),
    st.tuples(st.just("trim"), st.just("messages"), st.integers(1, 20)),
    st.tuples(st.just("snapshot"), st.just("delta"), st.lists(st.integers(0, 9), max_size=5)),
    st.tuples(st.just("advance"), st.just("delta"), st.none()),
    st.tuples(st.just("drop"), st.sampled_from(CHANNELS), st.none()),
)
writes = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(CHANNELS), small_values),
        st.tuples(st.just("blob"), big_values),
        st.tuples(
            st.sampled_from(["__error__", "__interrupt__", "__resume__", "__scheduled__"]), small_values
        ),
    ),
    max_size=4,
)


def _comparable(found: CheckpointTuple | None) -> Any:
    """A tuple as plain data; a config says the same with and without what the caller added to it."""
    if found is None:
        return None
    return found._replace(pending_writes=list(found.pending_writes or []))._asdict()


def _by_namespace(found: Sequence[CheckpointTuple]) -> dict[tuple[str, str], list[Any]]:
    """Lists by thread and namespace: InMemorySaver lists one after the other, ours merges those of a thread."""
    lists: dict[tuple[str, str], list[Any]] = {}
    for each in found:
        configurable = each.config["configurable"]
        place = (configurable["thread_id"], configurable["checkpoint_ns"])
        lists.setdefault(place, []).append(_comparable(each))
    return lists


def _spoil(thing: Any) -> None:
    """Change in place whatever can be changed, as deep as it goes."""
    if isinstance(thing, dict):
        _spoil(list(thing.values()))
        thing.update(dict.fromkeys(thing, "spoiled"), spoiled="spoiled")
    elif isinstance(thing, (list, tuple)):
        for each in thing:
            _spoil(each)
        if isinstance(thing, list):
            thing.append("spoiled")
    elif isinstance(thing, set):
        thing.add("spoiled")
    elif isinstance(thing, AIMessage):
        thing.content = "spoiled"


def _and_spoil(given: Any) -> Any:
    """What a saver gave, as it was before the caller changed it."""
    kept = deepcopy(given)
    _spoil(given)
    return kept


class DifferentialMachine(RuleBasedStateMachine):
    """Does each operation on both savers."""

    checkpoints = Bundle("checkpoints")

    make_saver: MakeSaver
    wrap: Callable[[Any], BaseCheckpointSaver[Any]]
    cold: bool
    is_sealed: bool
    clear: Callable[[], None]
    loop: asyncio.AbstractEventLoop

    @initialize()
    def start(self) -> None:
        """Start with nothing stored."""
        self.clear()
        self.counter = 0
        self._saver = self.make_saver()
        self.expected = ReferenceSaver(serde=self._saver.serde)

    @property
    def actual(self) -> BaseCheckpointSaver[Any]:
        """The saver, which remembers nothing if the run is a cold one."""
        if self.cold:
            self._saver = self.make_saver()
        return type(self).wrap(self._saver)

    def teardown(self) -> None:
        """Compare what every thread has, and close the client of the machine's event loop."""
        try:
            for thread in THREADS:
                self.list_some(thread=thread, namespace=None, before=None, metadata=None, limit=None)
        finally:
            self._run(self._saver.aclose())

    def _run(self, operation: Any) -> Any:
        return self.loop.run_until_complete(operation)

    def _run_and_spoil(self, operation: Coroutine[Any, Any, Any], *given: Any) -> Any:
        """Run an operation that was given dicts and lists which its caller empties once it is under way."""

        async def run() -> Any:
            task = asyncio.ensure_future(operation)
            await asyncio.sleep(0)
            for each in given:
                each.clear()
            return await task

        return self._run(run())

    def _get_both(self, config: RunnableConfig) -> tuple[CheckpointTuple | None, CheckpointTuple | None]:
        """What InMemorySaver gives and what ours does."""
        # InMemorySaver hands back the very config that it was given.
        return self.expected.get_tuple(deepcopy(config)), self._run(self.actual.aget_tuple(deepcopy(config)))

    def _all(self, config: RunnableConfig | None, **options: Any) -> list[CheckpointTuple]:
        async def collect() -> list[CheckpointTuple]:
            return [_and_spoil(each) async for each in self.actual.alist(config, **options)]

        found: list[CheckpointTuple] = self._run(collect())
        return found

    @rule(
        target=checkpoints,
        thread=st.sampled_from(THREADS),
        namespaces=st.lists(st.sampled_from(NAMESPACES), unique=True, min_size=1),
        values=st.lists(changes, max_size=3),
    )
    def put_first(self, thread: str, namespaces: list[str], values: list[Any]) -> RunnableConfig:
        """Store a checkpoint without a parent, in several namespaces with the same id."""
        self.counter += 1
        for namespace in namespaces:
            stored = self._put(thread_config(thread, namespace), values, None)
        return stored

    @rule(
        target=checkpoints,
        parent=checkpoints,
        values=st.lists(changes, max_size=3),
        run_id=st.none() | st.sampled_from(RUNS),
        copied=st.booleans(),
    )
    def put_child(
        self, parent: RunnableConfig, values: list[Any], run_id: str | None, copied: bool
    ) -> RunnableConfig:
        """Store a checkpoint on top of another, which may be old, or gone by now."""
        self.counter += 1
        stored = self._put(parent, values, run_id)
        return self._put_copy(stored) if copied else stored

    def _put(self, config: RunnableConfig, values: list[Any], run_id: str | None) -> RunnableConfig:
        found: Sequence[CheckpointTuple | None] = (None, None)
        if "checkpoint_id" in config["configurable"]:
            found = self._get_both(config)
        expected, actual = (self._next_step(each, deepcopy(values), run_id) for each in found)
        return self._put_both(config, expected, actual)

    def _next_step(
        self, found: CheckpointTuple | None, values: list[Any], run_id: str | None
    ) -> tuple[Checkpoint, CheckpointMetadata, dict[str, Any]]:
        """The arguments of a put that the runtime makes of the very checkpoint that it was given."""
        checkpoint = empty_checkpoint() if found is None else found.checkpoint
        checkpoint["id"], checkpoint["ts"] = f"{self.counter:06}", "2026-01-01T00:00:00+00:00"
        # Only a delta channel's snapshot is absent from the values of a checkpoint that inherits it.
        checkpoint["channel_values"].pop("delta", None)
        new_versions: dict[str, Any] = {}
        for kind, channel, value in values:
            _apply(checkpoint["channel_values"], kind, channel, value)
            new_versions[channel] = self.counter
        checkpoint["channel_versions"].update(new_versions)
        checkpoint["versions_seen"].setdefault("node", {}).update(new_versions)
        metadata: CheckpointMetadata = {"source": "loop", "step": self.counter % 3, "parents": {}}
        if run_id is not None:
            metadata["run_id"] = run_id
        # The runtime goes on with the one that it was given.
        return copy_checkpoint(checkpoint), metadata, new_versions

    def _put_copy(self, config: RunnableConfig) -> RunnableConfig:
        """Put a checkpoint again beside itself, as `update_state` does as the node `__copy__`."""
        expected, actual = self._get_both(config)
        if expected is None or actual is None:
            assert actual is expected
            return config
        self.counter += 1
        expected.checkpoint["id"] = actual.checkpoint["id"] = f"{self.counter:06}"
        place = config["configurable"]
        beside = expected.parent_config or thread_config(place["thread_id"], place["checkpoint_ns"])
        metadata: CheckpointMetadata = {"source": "loop", "step": 1, "parents": {}}
        stored = self._put_both(
            beside, (expected.checkpoint, metadata, {}), (actual.checkpoint, deepcopy(metadata), {})
        )
        self._compare(stored)
        return stored

    def _put_both(
        self, config: RunnableConfig, expected: tuple[Any, Any, Any], actual: tuple[Any, Any, Any]
    ) -> RunnableConfig:
        stored: RunnableConfig = _and_spoil(self.expected.put(deepcopy(config), *expected))
        given = deepcopy(config)
        checkpoint, metadata, new_versions = actual
        dicts = [checkpoint[name] for name in ("channel_values", "channel_versions", "versions_seen")]
        dicts += [checkpoint, metadata["parents"], metadata, new_versions, given["configurable"], given]
        values = list(checkpoint["channel_values"].values())
        put = self._run_and_spoil(self.actual.aput(given, *actual), *dicts)
        assert _and_spoil(put) == stored
        _spoil([expected, values])
        return stored

    @rule(
        config=checkpoints,
        entries=writes,
        task_id=st.sampled_from(TASKS),
        path=st.sampled_from(["", "~__pregel_pull, a", "~__pregel_push, 10", "~__pregel_push, 9"]),
    )
    def put_writes(self, config: RunnableConfig, entries: list[Any], task_id: str, path: str) -> None:
        """Store writes, whose task may have some already."""
        mine, given = deepcopy(entries), deepcopy(entries)
        values = [value for _, value in given]
        place = deepcopy(config)
        self.expected.put_writes(config, mine, task_id, path)
        self._run_and_spoil(
            self.actual.aput_writes(place, given, task_id, path), given, place["configurable"], place
        )
        _spoil([mine, values])

    @rule(config=checkpoints)
    def get_by_id(self, config: RunnableConfig) -> None:
        """Read one checkpoint."""
        self._compare(config)

    @rule(thread=st.sampled_from(THREADS), namespace=st.sampled_from(NAMESPACES))
    def get_latest(self, thread: str, namespace: str) -> None:
        """Read the newest checkpoint of a namespace."""
        self._compare(thread_config(thread, namespace))

    def _compare(self, config: RunnableConfig) -> None:
        expected, found = map(_and_spoil, self._get_both(config))
        assert _comparable(found) == _comparable(expected)

    @rule(
        thread=st.none() | st.sampled_from(THREADS),
        namespace=st.none() | st.sampled_from(NAMESPACES),
        before=st.none() | st.integers(0, 30),
        metadata=st.sampled_from([None, {}, {"step": 1}, {"step": 2, "source": "loop"}, {"run_id": "run-1"}]),
        limit=st.none() | st.integers(0, 5),
    )
    def list_some(
        self,
        thread: str | None,
        namespace: str | None,
        before: int | None,
        metadata: dict[str, Any] | None,
        limit: int | None,
    ) -> None:
        """List by all arguments. What comes first under a limit is only comparable within one namespace."""
        config: RunnableConfig | None = None
        if thread is not None:
            config = {"configurable": {"thread_id": thread}}
            if namespace is not None:
                config["configurable"]["checkpoint_ns"] = namespace
        options: dict[str, Any] = {
            "filter": metadata,
            "before": None if before is None else thread_config("any", "", f"{before:06}"),
        }
        everything = list(self.expected.list(config, **options))
        found = self._all(config, **options, limit=limit)
        if thread is not None:
            # With one id by namespace.
            everything.sort(key=lambda each: str(each.config["configurable"]["checkpoint_ns"]))
            everything.sort(key=lambda each: each.checkpoint["id"], reverse=True)
            kept = everything if limit is None else everything[:limit]
            assert [_comparable(each) for each in found] == [_comparable(each) for each in kept]
        elif limit is None:
            assert _by_namespace(found) == _by_namespace(everything)
        else:
            assert len(found) == min(limit, len(everything))

    @rule(config=checkpoints, by_id=st.booleans())
    def delta_history(self, config: RunnableConfig, by_id: bool) -> None:
        """Collect a delta channel's writes, unless an ancestor is missing."""
        if self.expected.has_lost_ancestor(config):
            return
        place = config["configurable"]
        config = config if by_id else thread_config(place["thread_id"], place["checkpoint_ns"])
        if self.expected.has_lost_ancestor(config):
            return
        channels = ["delta", "text", "absent"]
        found = _and_spoil(
            self._run(self.actual.aget_delta_channel_history(config=config, channels=channels))
        )
        assert found == self.expected.get_delta_channel_history(config=config, channels=channels)

    @rule(thread=st.sampled_from(THREADS))
    def delete_thread(self, thread: str) -> None:
        """Delete a thread."""
        self.expected.delete_thread(thread)
        self._run(self.actual.adelete_thread(thread))

    @rule(runs=st.lists(st.sampled_from(RUNS), max_size=2))
    def delete_for_runs(self, runs: list[str]) -> None:
        """Delete runs."""
        self.expected.delete_for_runs(runs)
        self._run(self.actual.adelete_for_runs(runs))

    @rule(threads=st.permutations(THREADS))
    def copy_thread(self, threads: list[str]) -> None:
        """Copy a thread to another, which may have checkpoints of its own."""
        is_there = any(self.expected.storage[threads[0]].values())
        self.expected.copy_thread(*threads[:2])
        with nullcontext() if is_there else pytest.raises(CheckpointNotFoundError, match="to copy"):
            self._run(self.actual.acopy_thread(*threads[:2]))

    @rule(thread=st.sampled_from(THREADS), keep_last=st.integers(1, 3))
    def prune(self, thread: str, keep_last: int) -> None:
        """Keep the newest checkpoints."""
        self.expected.prune_to([thread], keep_last, is_sealed=self.is_sealed)
        options: dict[str, Any] = {"strategy": "keep_last", "keep_last": keep_last}
        self._run(self.actual.aprune([thread], **options))


def _apply(values: dict[str, Any], kind: str, channel: str, value: Any) -> None:
    """Change the values as one step of a run does."""
    if kind == "set":
        values[channel] = value
    elif kind == "append":
        messages = values.setdefault(channel, [])
        messages += map(_message, range(len(messages), len(messages) + value))
    elif kind == "trim":
        del values.setdefault(channel, [])[:value]
    elif kind == "snapshot":
        values[channel] = _DeltaSnapshot(value)
    else:
        values.pop(channel, None)


def same(saver: Saver) -> BaseCheckpointSaver[Any]:
    """Return a saver as it is."""
    return saver


# `wrap` makes of a saver what has its methods under async names. In a cold run, each operation is done by a new saver.
VARIANTS: dict[str, dict[str, Any]] = {
    "sync": {"wrap": SyncAsAsync},
    "async": {"wrap": same},
    "cold": {"wrap": SyncAsAsync, "cold": True},
    "encrypted": {"wrap": SyncAsAsync, "encrypted": True},
}


@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize("variant", VARIANTS)
def test_random_operations_equal_in_memory(
    client: DynamoDBClient,
    table_name: str,
    engine: Any,
    event_loop_for_machine: asyncio.AbstractEventLoop,
    variant: str,
) -> None:
    options = VARIANTS[variant]

    def make() -> DynamoDBSaver:
        made: dict[str, Any] = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        if variant != "async":
            # A cold run makes a saver for each operation; they share a client.
            made = {"client": client}
        if options.get("encrypted"):
            made["serde"] = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
        return DynamoDBSaver(table_name, **made)

    compare(make, client, table_name, event_loop_for_machine, variant, percent(8))


def compare(
    make: MakeSaver,
    client: DynamoDBClient,
    table_name: str,
    loop: asyncio.AbstractEventLoop,
    variant: str,
    sequences: int,
) -> None:
    """Run random sequences of operations on savers, and compare each result with that of InMemorySaver.

    Args:
        make: Makes a saver on the table.
        client: A client of the table's engine.
        table_name: The table, which is emptied before each sequence.
        loop: The event loop of the savers.
        variant: The name of the variant.
        sequences: How many. One takes as long as a dozen examples of another test.
    """
    options = VARIANTS[variant]

    def clear() -> None:
        pages = client.get_paginator("scan").paginate(TableName=table_name, ProjectionExpression="PK, SK")
        for page in pages:
            for key in page["Items"]:
                client.delete_item(TableName=table_name, Key=key)

    machine = type(
        "Machine",
        (DifferentialMachine,),
        {
            "make_saver": staticmethod(make),
            "wrap": staticmethod(options["wrap"]),
            "clear": staticmethod(clear),
            "cold": "cold" in options,
            "is_sealed": "encrypted" in options,
            "loop": loop,
        },
    )
    run_state_machine_as_test(machine, settings=settings(max_examples=sequences, stateful_step_count=30))
