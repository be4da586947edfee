"""Threads of every kind in memory, and every operation of the saver on them, run to its end within bounds."""

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, open_plain
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Op, collected
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.format_fixtures import BOUND_TO, KEY, read_items
from tests.support.harness import Harness

Operation = Callable[[Storage], Op[Any]]

ROUNDS_MAX = 2_000
REQUESTS_MAX = 10_000

# Nothing that a mutation makes up is ever called: only types that LangGraph knows to be harmless are revived.
_STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
PLAIN = Codec(_STRICT)
ENCRYPTED = Codec(EncryptedSerializer.from_pycryptodome_aes(serde=_STRICT, key=KEY), bound_to=BOUND_TO)


@dataclass(frozen=True)
class Thread:
    """One thread as it is stored, and what can be asked about it."""

    items: tuple[Item, ...] = field(repr=False)
    codec: Codec

    @functools.cached_property
    def thread_id(self) -> str:
        """The thread's id."""
        return items.parse_partition(items.partition_key(self.items[0])).thread_id

    @functools.cached_property
    def heads(self) -> list[tuple[str, str]]:
        """The namespace and the id of every checkpoint, the newest last."""
        return sorted(
            (items.parse_partition(items.partition_key(item)).namespace, items.checkpoint_id_of(item))
            for item in self.items
            if items.BODY in item
        )

    @functools.cached_property
    def tasks(self) -> list[tuple[str, str, str]]:
        """The namespace, the checkpoint and the task of every item of writes."""
        return [
            (
                items.parse_partition(items.partition_key(item)).namespace,
                items.checkpoint_id_of(item),
                items.task_id_of(item),
            )
            for item in self.items
            if "#W#" in items.sort_key(item)
        ]

    @functools.cached_property
    def indexes(self) -> dict[bytes, bytes]:
        """What the index segments hold."""
        segments = {items.segment_id_of(item): item for item in self.items if items.DATA in item}
        return {
            each: open_plain(item[items.DATA]["B"], item) for each, item in segments.items() if is_index(each)
        }

    def config(self, namespace: str, checkpoint_id: str | None = None) -> RunnableConfig:
        """The config that points to a namespace or one of its checkpoints."""
        return thread_config(self.thread_id, namespace, checkpoint_id)

    def readings(self) -> dict[str, Operation]:
        """Every way to read the thread."""
        asked: dict[str, RunnableConfig] = {f"newest of {ns!r}": self.config(ns) for ns, _ in self.heads}
        asked |= {f"{each} of {ns!r}": self.config(ns, each) for ns, each in self.heads}
        anywhere: RunnableConfig = {"configurable": {"thread_id": self.thread_id}}
        return {
            **{
                f"get_tuple: {name}": self._opened(functools.partial(get_tuple, config=config))
                for name, config in asked.items()
            },
            **{
                f"history: {name}": self._opened(
                    functools.partial(get_delta_channel_history, config=config, channels=["log", "list"])
                )
                for name, config in asked.items()
            },
            "list": self._opened(
                lambda storage: collected(list_checkpoints(storage, anywhere, None, None, None))
            ),
            "list: filtered": self._opened(
                lambda storage: collected(list_checkpoints(storage, anywhere, {"source": "loop"}, None, 2))
            ),
            "list: all threads": self._opened(
                lambda storage: collected(list_checkpoints(storage, None, None, None, None))
            ),
        }

    def changes(self) -> dict[str, Operation]:
        """Every way to change the thread, or to build on what it has."""
        runs = sorted({item[RUN_ID]["S"] for item in self.items if RUN_ID in item})
        return {
            **{f"put on {each} of {ns!r}": self._put(ns, each) for ns, each in self.heads},
            **{
                f"put_writes: {task} of {each} of {ns!r}": self._put_writes(ns, each, task)
                for ns, each, task in self.tasks
            },
            "prune": self._opened(lambda storage: prune(storage, [self.thread_id], "keep_latest", None)),
            "delete_for_runs": self._opened(lambda storage: delete_for_runs(storage, runs)),
            "copy_thread": self._opened(lambda storage: copy_thread(storage, self.thread_id, "copy")),
            "delete_thread": self._opened(lambda storage: delete_thread(storage, self.thread_id)),
        }

    def _opened(self, operation: Operation) -> Operation:
        """The operation with the codec of the thread."""
        return lambda storage: operation(replace(storage, codec=self.codec))

    def _put(self, namespace: str, parent_id: str) -> Operation:
        """A checkpoint that inherits whatever its parent has of these channels."""
        checkpoint = checkpoint_of("9", {"new": "value"})
        checkpoint["channel_versions"] = {"new": 1, "list": 1, "text": 1, "messages": 2, "count": 3, "log": 3}
        config = self.config(namespace, parent_id)
        return self._opened(lambda storage: put(storage, config, checkpoint, METADATA, {"new": 1}))

    def _put_writes(self, namespace: str, checkpoint_id: str, task_id: str) -> Operation:
        writes = [(f"channel {number}", number) for number in range(4)] + [("__interrupt__", "?")]
        config = self.config(namespace, checkpoint_id)
        return self._opened(lambda storage: put_writes(storage, config, writes, task_id, ""))


def loaded(thread: Thread) -> Harness:
    """A table in memory that holds the thread's items."""
    harness = Harness()
    for item in thread.items:
        harness.change(item)
    return harness


def run(harness: Harness, operation: Operation) -> Any:
    """Run an operation to its end, by a process that remembers nothing; fail where it seems to have no end."""
    running = harness.begin(operation(harness.process().storage))
    requests = 0
    for _ in range(ROUNDS_MAX):
        if running.done:
            return running.finish()
        requests += len(running.round)
        assert requests <= REQUESTS_MAX
        running.go_on()
    raise AssertionError(f"An operation went on for {ROUNDS_MAX} rounds.")


# The threads


def _segmented() -> list[Item]:
    """Bodies, metadata, values and writes over their items' size, and index segments of index segments."""

    def words(count: int) -> list[str]:
        return [random.Random(number).randbytes(20).hex() for number in range(count)]

    metadata = cast("CheckpointMetadata", {**METADATA, "run_id": "run-1", "note": {1, 2}, "words": words(20)})
    harness = Harness()
    storage = harness.process(codec=PLAIN).storage
    config = thread_config("segmented", "ns")
    with pytest.MonkeyPatch.context() as patch:
        use_small_limits(patch)
        for number in (1, 2):
            checkpoint = checkpoint_of(
                str(number), {"list": words(50 + number), "text": "x" * 50, **dict.fromkeys(words(8), 1)}
            )
            config = harness.run(put(storage, config, checkpoint, metadata, {"list": number}))
            writes = [("list", words(20)), ("text", 1), ("__interrupt__", words(10))]
            harness.run(put_writes(storage, config, writes, "task", "path"))
    return harness.model.items()


@functools.cache
def threads() -> dict[str, Thread]:
    """One thread of every kind; the fixtures that every release has to read are among them."""
    small = {name: Thread(tuple(read_items(name)), PLAIN) for name in ("plain", "delta")}
    encrypted = Thread(tuple(read_items("encrypted")), ENCRYPTED)
    return {**small, "encrypted": encrypted, "segmented": Thread(tuple(_segmented()), PLAIN)}


def with_item(thread: Thread, old: Item | None, new: Item) -> Thread:
    """The thread with one item replaced or added."""
    return replace(thread, items=(*(each for each in thread.items if each is not old), new))
