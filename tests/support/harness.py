"""Processes with the saver in them, on a DynamoDB in memory, whose requests a test performs when it likes.

The simulator looks for schedules; here a test has one in mind. Operations are as the drivers run them, round by round,
the clock is the test's, and nothing else moves.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from botocore.exceptions import ClientError
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import Self

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._operations import delete, get, put, put_writes
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, Step, Stream, Wait, Work, collected
from langgraph.checkpoint.dynamodb._runtime.storage import Cache, Storage
from tests.support.checkpoints import checkpoint_of, thread_config
from tests.support.dynamodb_model import DynamoDBModel

TABLE = "checkpoints"
THREAD = "t"
TTL_SECONDS = 1000
CODEC = Codec(JsonPlusSerializer())
ENCRYPTED = Codec(EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef"))

_T = TypeVar("_T")


def result_of(step: Work) -> Any:
    """Do work that an operation asks for; return what it raised, if it did."""
    try:
        return step.function()
    except Exception as error:  # noqa: BLE001 - the operation is told.
        return error


class Stage(ABC):
    """What performs the steps of an operation, and whose time passes meanwhile."""

    now: float

    @abstractmethod
    def answer(self, call: Call) -> Any:
        """Carry out a request; what it fails with is its outcome."""

    def perform(self, step: Step) -> Any:
        """Carry out one step; what it fails with is its outcome."""
        if isinstance(step, Work):
            return result_of(step)
        if isinstance(step, Wait):
            self.now += 0.0 if step.ended.done() else step.seconds_max
            return None
        return self.answer(step)


class Harness(Stage):
    """One table and a clock."""

    def __init__(self) -> None:
        """Start with an empty table, at some time."""
        self.now = 1_700_000_000.0
        self.model = DynamoDBModel(table_schema(TABLE), lambda: self.now)
        self._processes = 0

    def process(self, ttl_seconds: int | None = None, codec: Codec | None = None) -> Process:
        """Start a process that remembers nothing."""
        self._processes += 1
        rng = random.Random(self._processes)
        storage = Storage(
            codec=CODEC if codec is None else codec,
            cache=Cache(1 << 20),
            table=Table(TABLE, rng=rng),
            ttl_seconds=ttl_seconds,
            clock=lambda: self.now,
            rng=rng,
        )
        return Process(self, storage)

    def copy(self, seconds: float = 0.0) -> Harness:
        """Return a table with the same items, at a later time. Its processes are new ones."""
        copy = Harness()
        copy.model.load(self.model.items())
        copy.now, copy._processes = self.now + seconds, self._processes
        return copy

    def items(self, begins: str, thread: str = THREAD) -> dict[str, Any]:
        """What a thread has in the table, by those sort keys that begin so."""
        return {
            item["SK"]["S"]: item
            for item in self.model.items()
            if item["PK"]["S"].startswith(f"{thread}#") and item["SK"]["S"].startswith(begins)
        }

    def change(self, item: Any, **attributes: Any) -> None:
        """Put an item with other attributes, behind everybody's back; what is None is left out."""
        new = {name: value for name, value in {**item, **attributes}.items() if value is not None}
        self.model.handle("put_item", {"TableName": TABLE, "Item": new})

    def remove(self, item: Any) -> None:
        """Delete an item, behind everybody's back."""
        key = {name: item[name] for name in ("PK", "SK")}
        self.model.handle("delete_item", {"TableName": TABLE, "Key": key})

    def begin(self, operation: Op[_T]) -> Run[_T]:
        """Let an operation ask for its first round."""
        return Run(self, operation)

    def run(self, operation: Op[_T]) -> _T:
        """Run an operation to its end."""
        return self.begin(operation).finish()

    def answer(self, call: Call) -> Any:
        """Carry out a request; what it fails with is its outcome."""
        try:
            return self.model.handle(call.method, call.params)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationException":
                raise AssertionError(f"DynamoDB never accepts {call}") from error
            return error


class Run(Generic[_T]):
    """An operation under way: the round that it has asked for, and its result once there is no other."""

    def __init__(self, stage: Stage, operation: Op[_T]) -> None:
        """Ask for the first round."""
        self._stage = stage
        self._operation = operation
        self._result: list[_T] = []
        self.round: Sequence[Step] = ()
        self._ask(None)

    @property
    def calls(self) -> list[Call]:
        """The requests of the round that is to be performed next."""
        return [step for step in self.round if isinstance(step, Call)]

    @property
    def done(self) -> bool:
        """Whether the operation has ended."""
        return bool(self._result)

    def perform(self) -> list[Any]:
        """Perform the round; the operation does not know its outcomes yet."""
        self._stage.now += max((call.delay_seconds for call in self.calls), default=0.0)
        return [self._stage.perform(step) for step in self.round]

    def go_on(self, outcomes: Sequence[Any] | None = None) -> None:
        """Ask for the next round, given the outcomes of this one, which is performed now where they are not."""
        self._ask(self.perform() if outcomes is None else outcomes)

    def until(self, wanted: Callable[[Call], bool]) -> Self:
        """Perform rounds up to the first with such a request, which is still to be performed."""
        while not any(map(wanted, self.calls)):
            assert not self.done, "the operation has ended without such a request"
            self.go_on()
        return self

    def finish(self) -> _T:
        """Perform what is left."""
        while not self.done:
            self.go_on()
        return self._result[0]

    def drop(self) -> None:
        """Let nobody perform what is left: the process dies."""
        self._operation.close()

    def trace(self) -> list[Call]:
        """Perform what is left; return the requests."""
        calls: list[Call] = []
        while not self.done:
            calls += self.calls
            self.go_on()
        return calls

    def _ask(self, outcomes: Sequence[Any] | None) -> None:
        try:
            self.round = next(self._operation) if outcomes is None else self._operation.send(outcomes)
        except StopIteration as stop:
            self._result, self.round = [stop.value], ()


@dataclass(frozen=True)
class Process:
    """The saver's operations on one thread, unless another one is named, and what they remember."""

    harness: Harness
    storage: Storage

    def put(
        self,
        checkpoint_id: str,
        values: Mapping[str, Any],
        parent_id: str | None = None,
        new: Sequence[str] | None = None,
        *,
        thread: str = THREAD,
        namespace: str = "",
        versions: Mapping[str, int] = MappingProxyType({}),
        **metadata: Any,
    ) -> Op[RunnableConfig]:
        """Store a checkpoint, in which some channels are new, or all; every version is 1, but for those given.

        Of a delta channel, `versions` has that of this step, though the step may store no value.
        """
        checkpoint = checkpoint_of(checkpoint_id, values)
        checkpoint["channel_versions"] |= versions
        arguments: tuple[Any, ...] = (
            thread_config(thread, namespace, parent_id),
            checkpoint,
            {"source": "loop", "step": 1, **metadata},
            {**dict.fromkeys(values if new is None else new, 1), **versions},
        )
        return put.put(self.storage, *arguments)

    def put_writes(
        self,
        checkpoint_id: str,
        writes: Sequence[tuple[str, Any]],
        task_id: str = "task",
        *,
        thread: str = THREAD,
        namespace: str = "",
    ) -> Op[None]:
        """Store a task's writes."""
        at = thread_config(thread, namespace, checkpoint_id)
        return put_writes.put_writes(self.storage, at, writes, task_id, "")

    def prune(self, kept: int = 1, thread: str = THREAD) -> Op[None]:
        """Keep the newest checkpoints only."""
        return delete.prune(self.storage, [thread], "keep_last", kept)

    def delete_for_runs(self, run_id: str) -> Op[None]:
        """Delete the checkpoints of a run."""
        return delete.delete_for_runs(self.storage, [run_id])

    def delete_thread(self, thread: str = THREAD) -> Op[None]:
        """Delete a thread."""
        return delete.delete_thread(self.storage, thread)

    def copy_thread(self, target: str) -> Op[None]:
        """Copy the thread."""
        return copy_thread(self.storage, THREAD, target)

    def read(self, checkpoint_id: str | None = None) -> Op[CheckpointTuple | None]:
        """Read a checkpoint, or the newest one."""
        return get.get_tuple(self.storage, thread_config(THREAD, "", checkpoint_id))

    def listed(self) -> Stream[CheckpointTuple]:
        """List the thread's checkpoints."""
        return list_checkpoints(self.storage, thread_config(THREAD), None, None, None)

    def ids(self, thread: str = THREAD) -> list[str]:
        """List the ids of a thread's checkpoints at once."""
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        listed = collected(list_checkpoints(self.storage, config, None, None, None))
        return [each.checkpoint["id"] for each in self.harness.run(listed)]

    def get(
        self, checkpoint_id: str | None = None, *, thread: str = THREAD, namespace: str = ""
    ) -> CheckpointTuple | None:
        """Read a checkpoint, or the newest one, at once."""
        at = thread_config(thread, namespace, checkpoint_id)
        return self.harness.run(get.get_tuple(self.storage, at))

    def found(
        self, checkpoint_id: str | None = None, *, thread: str = THREAD, namespace: str = ""
    ) -> CheckpointTuple:
        """Read a checkpoint that is there, or the newest one, at once."""
        found = self.get(checkpoint_id, thread=thread, namespace=namespace)
        assert found is not None
        return found

    def values(
        self, checkpoint_id: str | None = None, *, thread: str = THREAD, namespace: str = ""
    ) -> dict[str, Any] | None:
        """The values of a checkpoint, or of the newest one; None where there is none."""
        found = self.get(checkpoint_id, thread=thread, namespace=namespace)
        return None if found is None else found.checkpoint["channel_values"]

    def pending(
        self, checkpoint_id: str, *, namespace: str = "", thread: str = THREAD
    ) -> list[tuple[str, str, Any]]:
        """The writes of a checkpoint that is there."""
        return self.found(checkpoint_id, namespace=namespace, thread=thread).pending_writes or []


def single_effects(calls: Sequence[Call]) -> Iterator[Call]:
    """Take batches of writes apart, the last first: DynamoDB carries one out in any order."""
    for call in calls:
        for write in reversed(
            call.params["RequestItems"][TABLE] if call.method == "batch_write_item" else ()
        ):
            yield Call(call.method, {"RequestItems": {TABLE: [write]}})


def asks(method: str, begins: str = "", word: str = "") -> Callable[[Call], bool]:
    """Whether a request is of a method, for an item whose sort key begins so if it is for one, and has such a word."""
    return lambda call: (
        call.method == method and _sort_key(call).startswith(begins) and word in str(call.params)
    )


def _sort_key(call: Call) -> str:
    key: str = call.params.get("Key", call.params.get("Item", {})).get("SK", {"S": ""})["S"]
    return key


# Whether a request confirms at the thread, and whether it removes the thread item.
confirms = asks("get_item", "T")
removes_thread = asks("delete_item", "T")


def commits(checkpoint_id: str) -> Callable[[Call], bool]:
    """Whether a request commits a checkpoint."""
    return lambda call: call.method == "put_item" and _sort_key(call) == f"C#{checkpoint_id}#"


def changes_thread(word: str) -> Callable[[Call], bool]:
    """Whether a request changes the thread item, and has such a word."""
    return asks("update_item", "T", word)


def updates(begins: str) -> Callable[[Call], bool]:
    """Whether a request updates an item whose sort key begins so."""
    return asks("update_item", begins)


def deletes_item(begins: str) -> Callable[[Call], bool]:
    """Whether a request deletes one item, whose sort key begins so."""
    return asks("delete_item", begins)


def deletes(begins: str) -> Callable[[Call], bool]:
    """Whether a request is a batch that deletes items whose sort key begins so."""
    return lambda call: (
        call.method == "batch_write_item"
        and any(
            each.get("DeleteRequest", {}).get("Key", {}).get("SK", {}).get("S", "").startswith(begins)
            for each in call.params["RequestItems"][TABLE]
        )
    )
