"""The shapes of the answers, for the API description and for tests. The service does not validate its own answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, RootModel

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.wire import (
    AttributeValue,
    Bytes,
    CopyProgress,
    Message,
    SegmentId,
    ThreadHint,
)


class Units(Message):
    """The capacity that a request consumed, in DynamoDB's units."""

    read: float | None = Field(description="Null: it read nothing.")
    write: float | None = Field(description="Null: it wrote nothing.")


class Answer(Message):
    """The base of every answer, with the fields that any may have."""

    units: Units | None = Field(
        None, description="Only if the request had the header X-Units, and its client may know them."
    )


class StoredSegment(Message):
    """A segment as it is stored."""

    id: SegmentId
    data: Bytes
    expires_at: int | None = Field(description="In epoch seconds; null: never.")


class SegmentExpiry(Message):
    """A segment's expiry."""

    id: SegmentId
    expires_at: int | None


class StoredCheckpoint(Message):
    """A checkpoint's items, the head first, and its segments, as many as fit."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    items: list[dict[str, AttributeValue]]
    left: list[str] = Field(description="The tasks whose writes did not fit.")
    segments: list[StoredSegment]
    complete: bool = Field(description="Whether all segments that the items name came with them.")
    committed: bool = Field(description="Whether its head has the thread's epoch.")


class GetTupleAnswer(Answer):
    """A checkpoint; null where there is none."""

    checkpoint: StoredCheckpoint | None
    thread: ThreadHint | None


class GetSegmentsAnswer(Answer):
    """Segments, and the ids of those that did not fit. An id in neither is no longer stored."""

    segments: list[StoredSegment]
    left: list[SegmentId]


class ListEnd(Answer):
    """The last document of a list."""

    cursor: str | None = Field(description="Where the next page begins; null: there is none.")


class ListFailed(Message):
    """The last document of a list that failed on the way."""

    problem: dict[str, Any] = Field(description="The reason, as a problem body would give it.")


class ListDocument(RootModel[StoredCheckpoint | ListEnd | ListFailed]):
    """One document of the stream."""


class DeltaChannelHistoryAnswer(Answer):
    """Ancestors, the nearest first."""

    checkpoints: list[StoredCheckpoint]
    ended: bool


class Sealed(Message):
    """An encrypted value. The gateway has no key."""

    sealed: Literal[True]
    bytes: int = Field(description="Its stored size in bytes.")


class Omission(Message):
    """The reason why a value is not shown."""

    reason: Literal["sealed", "too_large", "unreadable", "delta_channel"]
    bytes: int = Field(description="Its stored size in bytes.")


class Omitted(Message):
    """A value that is not shown."""

    omitted: Omission


class PlainWrite(Message):
    """A pending write of a task."""

    task_id: str
    channel: str
    value: Any


class OmittedWrite(Omitted):
    """A pending write of a task that is not shown. Without a channel: all writes of the task."""

    task_id: str
    channel: str | None = None


class SealedWrite(Sealed):
    """A pending write of a task that is encrypted. Without a channel: all writes of the task."""

    task_id: str
    channel: str | None = None


class PlainInterrupt(Message):
    """An interrupt: a task's question to a human."""

    task_id: str
    id: str | None = Field(description="The id that an answer names it by.")
    value: Any


class OmittedInterrupt(Omitted):
    """An interrupt that is not shown."""

    task_id: str
    id: str | None


class SealedInterrupt(Sealed):
    """An interrupt that is encrypted."""

    task_id: str
    id: str | None


class PlainCheckpoint(Message):
    """A checkpoint as plain JSON."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    ts: str | None = Field(description="When LangGraph created it; null if that is sealed.")
    metadata: Sealed | Omitted | dict[str, Any]
    values: Sealed | Omitted | dict[str, Any] = Field(description="The values by channel.")
    omitted: dict[str, Omission] = Field(description="The channels whose values are not shown.")
    pending_writes: list[SealedWrite | OmittedWrite | PlainWrite]
    interrupts: list[SealedInterrupt | OmittedInterrupt | PlainInterrupt] | None = Field(
        description="The questions of tasks to a human; null if all writes of some task are sealed or omitted."
    )


class GetPlainAnswer(Answer):
    """A checkpoint; null where there is none."""

    checkpoint: PlainCheckpoint | None


class ListPlainAnswer(Answer):
    """A page of checkpoints."""

    checkpoints: list[PlainCheckpoint]
    cursor: str | None = Field(description="Where the next page begins; null: there is none.")


class WantsReused(Answer):
    """Nothing was stored: the service needs the expiries of all segments that are reused."""

    wants_reused: Literal[True]


class Committed(Answer):
    """The outcome of storing a checkpoint."""

    under: ThreadHint = Field(description="The thread under whose epoch it was stored.")
    thread: ThreadHint | None = Field(description="The thread afterwards; null: nothing can be built on it.")
    confirmed: bool = Field(description="Whether no deletion came between, so that the checkpoint stays.")
    ends_at: int | None
    history_expires_at: int | None
    segments: list[SegmentExpiry]


class PutAnswer(RootModel[Committed | WantsReused]):
    """The answer of put."""


class FoundSegment(Message):
    """A segment of the writes that a task already has."""

    id: SegmentId
    data: Bytes


class FoundWrites(Message):
    """The writes that a task already has."""

    item: dict[str, AttributeValue] | None
    is_gone: bool
    is_safe: bool
    segments: list[FoundSegment] | None = Field(
        description="The segments of the regular writes, as many as fit; null: they were never committed."
    )


class WritesOutcome(Answer):
    """The outcome of storing a task's writes."""

    stored: bool
    thread: ThreadHint | None
    segments: list[SegmentExpiry]
    found: FoundWrites | None


class PutWritesAnswer(RootModel[WritesOutcome | WantsReused]):
    """The answer of put-writes."""


class PutSegmentsAnswer(Answer):
    """The expiries of the segments."""

    thread: ThreadHint | None
    segments: list[SegmentExpiry]


class Done(Answer):
    """It is done."""


class CopyThreadAnswer(Answer):
    """How far the copy is. Null: it is complete."""

    progress: CopyProgress | None


class PruneAnswer(Answer):
    """The threads that there was no time for."""

    left: list[str]


class ThreadItem(Message):
    """The attributes of a thread item that the directory shows."""

    epoch: AttributeValue | None = None
    about: AttributeValue | None = None
    last_active: AttributeValue | None = None
    owner: AttributeValue | None = None


class SetThreadAnswer(Answer):
    """The entry that was found instead of the one to be replaced; null: it is done."""

    found: ThreadItem | None


class ListedThread(Message):
    """An entry of the directory."""

    thread_id: str
    item: dict[str, AttributeValue]


class ThreadsAnswer(Answer):
    """Entries of the directory, those that a list leaves out included."""

    entries: list[ListedThread]
    is_last: bool


class NewestCheckpoint(Message):
    """The newest checkpoint of a thread."""

    thread_id: str
    status: Literal["idle", "waiting", "failed"]
    head: dict[str, AttributeValue] = Field(description="Its head without the body.")


class ThreadStatusAnswer(Answer):
    """The newest checkpoints of the threads that have one."""

    threads: list[NewestCheckpoint]


class Run(Message):
    """A run of a thread."""

    run_id: str
    first_checkpoint_id: str
    last_checkpoint_id: str
    checkpoints: int
    status: Literal["idle", "waiting", "failed"]


class RunsAnswer(Answer):
    """The runs of a thread, the newest first."""

    runs: list[Run]


class TableResponse(Message):
    """The fields of DynamoDB's response."""

    Item: dict[str, AttributeValue] | None = None
    Items: list[dict[str, AttributeValue]] | None = None
    LastEvaluatedKey: dict[str, AttributeValue] | None = None
    Attributes: dict[str, AttributeValue] | None = None


class TableAnswer(Answer):
    """The response of DynamoDB to one request."""

    response: TableResponse
    conflict: dict[str, AttributeValue] | None = Field(
        description="The item on which the condition failed, empty if there is none; null: it held."
    )


class BatchGetItemAnswer(Answer):
    """Items, and the keys of those that did not fit or that DynamoDB did not read."""

    items: list[dict[str, AttributeValue]]
    left: list[dict[str, AttributeValue]]


class BatchWriteItemAnswer(Answer):
    """The writes that DynamoDB did not make."""

    left: list[dict[str, Any]]


class About(Message):
    """The service's version, table and limits."""

    wire_version: int
    table_name: str
    limits: Limits
    owner: str | None = Field(description="The owner that these credentials are bound to.")


class Health(Message):
    """The process runs."""

    status: Literal["ok"]


class Ready(Message):
    """The table answers."""

    status: Literal["ready"]
