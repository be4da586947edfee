"""The messages between client and service: one schema, as JSON (bytes are base64 text) or as msgpack.

A client serializes, cuts, compresses, encrypts and seals. So the service receives parts of items, which it never opens,
except for plain JSON. The service decides their keys, their expiry and the order of writes. The client, not the
service, caches what is known of a thread: it sends the hint that an operation needs, and receives the new one.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._operations.arguments import COUNT_MAX

VERSION = 1
"""The version of the schema. `GET /about` tells it."""


def _decoded(value: Any) -> Any:
    """Return the bytes of a msgpack body, or decode the base64 text of a JSON body."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        msg = "not valid base64"
        raise ValueError(msg) from None


# Complete groups of four characters; the last one may be padded.
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def _in_json(bytes_min: int = 0, bytes_max: int | None = None, pattern: str = _BASE64) -> WithJsonSchema:
    """Return the schema of the base64 text of so many bytes.

    Four characters stand for one to three bytes, so the smallest number of bytes must be one more than a multiple of
    three, and the largest a multiple of three, unless the type has a pattern of its own.
    """
    schema: dict[str, Any] = {"type": "string", "contentEncoding": "base64", "pattern": pattern}
    if bytes_min:
        schema["minLength"] = 4 * -(-bytes_min // 3)
    if bytes_max is not None:
        schema["maxLength"] = 4 * -(-bytes_max // 3)
    return WithJsonSchema(schema)


Bytes: TypeAlias = Annotated[bytes, BeforeValidator(_decoded), _in_json()]


def _whole(value: Any) -> Any:
    """Return a whole number, which JSON, and so many a client, may write as 8.0, as an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)
Text: TypeAlias = Annotated[str, Field(min_length=1)]
# From 0, and from 1.
Number: TypeAlias = Annotated[int, Field(ge=0, le=COUNT_MAX), _WHOLE]
Count: TypeAlias = Annotated[int, Field(ge=1, le=COUNT_MAX), _WHOLE]
Seconds: TypeAlias = Number
Ttl: TypeAlias = Annotated[int, Field(ge=1, le=TTL_SECONDS_MAX), _WHOLE]
# Epoch seconds that have a day: up to the end of the year 9999.
Moment: TypeAlias = Annotated[int, Field(ge=0, le=253_402_300_799), _WHOLE]
Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=1024)]
# DynamoDB's limit is 400 KB for an item; what a saver stores in one stays far below it.
Group: TypeAlias = Annotated[Bytes, Field(max_length=80_001), _in_json(0, 80_001)]
Body: TypeAlias = Annotated[Bytes, Field(max_length=128 * 1024 + 1), _in_json(0, 128 * 1024 + 1)]
SegmentId: TypeAlias = Annotated[
    Bytes, Field(min_length=8, max_length=8), _in_json(8, 8, r"^[A-Za-z0-9+/]{11}=$")
]
Epoch: TypeAlias = Annotated[Bytes, Field(min_length=1, max_length=66), _in_json(1, 66)]


class Message(BaseModel):
    """Base class of all messages. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Namespace(Message):
    """A namespace of a thread."""

    thread_id: Text
    checkpoint_ns: str = ""


# What is remembered


class ThreadHint(Message):
    """A hint on a thread. The client sends the hint of the last answer with its next request about the thread."""

    epoch: Epoch = Field(description="The epoch under which stored and reused segments are safe.")
    ttl_seconds: Ttl | None = Field(None, description="The thread's ttl; null: none.")
    registered: bool = Field(False, description="Whether the namespace has its marker.")
    registered_until: Seconds | None = Field(
        None, description="When the marker expires, in epoch seconds; null: never."
    )


class Held(Message):
    """A checkpoint that a reader already has, with all its segments."""

    checkpoint_id: Text = Field(description="A checkpoint that was `committed` when the reader read it.")
    epoch: Epoch = Field(description="The epoch that its head had then.")


# The directory


class Entry(Message):
    """The entry of a thread in the directory."""

    owner: Id | None = Field(
        None,
        description="The owner's name, or its digest if the client encrypts; null: none.",
    )
    about: Annotated[Bytes, Field(max_length=1024), _in_json(0, 1024)] | None = Field(
        None, description="The owner's name, title and metadata, sealed; null: none."
    )


# What is stored


class NewSegment(Message):
    """A segment that is to be stored."""

    id: SegmentId
    data: Body = Field(description="The sealed bytes.")


class ReusedSegment(Message):
    """A segment that is stored already and is named again."""

    id: SegmentId
    expires_at: Seconds | None = Field(
        None, description="In epoch seconds, from an earlier answer; null: never."
    )


class NewSegments(Namespace):
    """New segments, and the thread that they are stored under."""

    thread: ThreadHint | None = Field(
        None,
        description="The thread under whose epoch it is stored; null if you do not know it and send no segments.",
    )
    segments: list[NewSegment] = []
    entry: Entry | None = Field(
        None, description="The directory's entry for the thread if it is new there; null keeps it out."
    )


class Stored(NewSegments):
    """Common fields of the requests that store an item."""

    checkpoint_id: Text
    reused: list[ReusedSegment] = Field([], description="Reused segments that may have to live longer.")
    reused_until: Seconds | None = Field(
        None, description="When the first of the others expires; null: never, or there are none."
    )
    uploading_seconds: float = Field(
        0,
        ge=0,
        le=COUNT_MAX,
        description="How many seconds ago you sent the first of the segments that went ahead.",
    )


class Lifetime(Message):
    """How long a checkpoint lives, in epoch seconds. Null: forever."""

    ends_at: Seconds | None = None
    history_expires_at: Seconds | None = Field(
        None, description="When the first ancestor expires that delta channels are rebuilt from."
    )


class Head(Message):
    """A checkpoint's head: its parts as they are stored, and its readable attributes."""

    body: Body
    metadata: str | None = Field(
        None, max_length=64 * 1024, description="Readable metadata: the text of a JSON object."
    )
    sealed_metadata: Body | None = Field(None, description="Metadata that are sealed.")
    parent: Id | None = None
    started_from: Id | None = None
    rebuilt_from: Annotated[str, Field(max_length=1024)] | None = None
    run_id: Annotated[str, Field(min_length=1, max_length=2048)] | None = None


class Put(Stored):
    """Store a checkpoint."""

    head: Head
    has_delta_channels: bool = False
    parent_lifetime: Lifetime | None = Field(
        None,
        description="How long its parent lives; null if the parent is not stored.",
    )


class Attributes(Message):
    """Parts of a task's writes: each attribute as it is stored."""

    writes: Group | None = None
    special_1: Group | None = None
    special_2: Group | None = None
    special_3: Group | None = None
    special_4: Group | None = None


class OldWrites(Message):
    """The attributes of a task's item that tell whether it has changed since."""

    writes: Bytes | None = None
    created_at: Seconds | None = None
    expires_at: Seconds | None = None


class PutWrites(Stored):
    """Store a task's pending writes."""

    task_id: str
    parts: Attributes
    order: Number | None = Field(
        None, description="For special writes: milliseconds, larger than the stored number."
    )
    old: OldWrites | None = Field(
        None,
        description="The task's stored writes from an earlier answer, if the parts were merged with them.",
    )
    replaces: bool = Field(False, description="Whether the parts replace those, as when they have gone.")


class PutSegments(NewSegments):
    """Send segments ahead of the request that will name them, so that no request is too large.

    Without segments it returns the thread that they would be stored under.
    """


# What is read


class GetTuple(Namespace):
    """Read a checkpoint, or the newest one of the namespace."""

    checkpoint_id: Text | None = None
    thread: ThreadHint | None = None
    held: Held | None = None
    segments: Literal["fitting", "none", "checked"] = Field(
        "fitting",
        description="Which of its segments are wanted: those that fit into an answer, or none of them; or it is to be"
        " made sure first that all are there, however many.",
    )
    tasks: list[str] | None = Field(
        None,
        description="The tasks whose writes are wanted, as an earlier answer left them; null: all. With them, a"
        " checkpoint is also found that is kept only because later ones are rebuilt from it.",
    )


class GetSegments(Namespace):
    """Read segments. An answer has as many as fit."""

    ids: list[SegmentId]


class List(Message):
    """List checkpoints, newest first."""

    thread_id: Text | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: Text | None = None
    filter: dict[str, Any] = {}
    before: Text | None = None
    limit: Number | None = None
    cursor: str | None = None


class DeltaChannelHistory(Namespace):
    """Read the ancestors of a checkpoint, the nearest first."""

    checkpoint_id: Text | None = None
    after: Text | None = Field(None, description="The ancestor that the last answer ended with.")
    count: Annotated[int, Field(ge=1, le=1000), _WHOLE] = Field(
        16, description="How many ancestors you want."
    )


# What is read as plain JSON


class GetPlain(Namespace):
    """Read a checkpoint, or the newest one of the namespace, as plain JSON."""

    checkpoint_id: Text | None = None
    channels: list[str] | None = Field(None, description="The channels that you want; null: all.")


class ListPlain(Message):
    """List the checkpoints of a thread as plain JSON, newest first."""

    thread_id: Text
    checkpoint_ns: str | None = Field(None, description="The namespace; null: all of the thread.")
    channels: list[str] | None = Field(None, description="The channels that you want; null: all.")
    limit: Annotated[int, Field(ge=1, le=100), _WHOLE] = Field(
        10, description="How many checkpoints a page has at most."
    )
    cursor: str | None = None


# The rest


class DeleteThread(Message):
    """Delete a thread."""

    thread_id: Text


class DeleteForRuns(Message):
    """Delete the checkpoints of runs."""

    run_ids: list[Text]


class CopyProgress(Message):
    """How far a copy is. The next request sends what the last answer returned."""

    # The hash that derives ids from it takes at most 64 bytes.
    seed: Annotated[Bytes, Field(min_length=1, max_length=63), _in_json(1, 63)] = Field(
        description="The seed of the ids of the copy's segments."
    )
    epoch: Epoch = Field(description="The target's epoch when the attempt began.")
    ttl_seconds: Ttl | None = Field(None, description="The target's ttl then; null: none.")
    began_at: float = Field(ge=0, le=COUNT_MAX, description="When it began, in epoch seconds.")
    attempts: Count = Field(1, description="Which attempt it is.")
    namespace: str | None = Field(None, description="The namespace that is being copied.")
    below: Text | None = Field(None, description="Its last checkpoint that was copied.")
    hidden: str | None = Field(
        None, description="Its newest checkpoint while that hides the others; empty: nothing is hidden."
    )


class CopyThread(Message):
    """Copy a thread, or continue a copy: an answer has `progress` until the copy is complete."""

    source_thread_id: Text
    target_thread_id: Text
    progress: CopyProgress | None = None
    entry: Entry | None = Field(
        None, description="The directory's entry for a new target; null: that of the source."
    )


class Prune(Message):
    """Remove old checkpoints. An answer says which threads are left."""

    thread_ids: list[Text]
    strategy: Literal["keep_latest", "keep_last", "delete", "delete_all"] = "keep_latest"
    keep_last: Count | None = None


class OldEntry(Message):
    """The attributes of a thread item that tell whether its entry has changed since."""

    epoch: Epoch
    about: Bytes | None = None


class SetThread(Message):
    """Enter a thread in the directory, or replace its entry."""

    thread_id: Text
    entry: Entry
    old: OldEntry | None = Field(None, description="The entry to replace, from the last answer.")


class ThreadPosition(Message):
    """The place of an entry in a list. It reaches nothing by itself."""

    last_active: Moment
    at: Text = Field(description="The id of the entry's thread.")


class Threads(Message):
    """List entries of the directory, newest activity first."""

    owner: Id | None = Field(None, description="The owner, as in an entry; null: all threads.")
    since: Moment = Field(0, description="The last activity at which the list ends, in epoch seconds.")
    before: ThreadPosition | None = Field(None, description="The last entry of the page before.")
    count: Annotated[int, Field(ge=1, le=1000), _WHOLE] = Field(
        20, description="How many entries you want. An answer may have more."
    )


class ThreadStatus(Message):
    """Read the newest checkpoint of each of some threads, without its values."""

    thread_ids: list[Text]


class Runs(Message):
    """List the runs of a thread."""

    thread_id: Text


# Requests to the table, for memories and cached nodes: DynamoDB's own, without the table's name


class KeyText(Message):
    """A text of a key."""

    S: Annotated[str, Field(min_length=1, max_length=2048)]


class TableKey(Message):
    """The key of an item."""

    PK: KeyText
    SK: KeyText


class AttributeValue(Message):
    """An attribute in DynamoDB's own form: one of the three types."""

    S: str | None = None
    N: str | None = None
    B: Bytes | None = None


class TableItem(TableKey):
    """An item: its key, and any other attributes."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    __pydantic_extra__: dict[str, AttributeValue]


class GetItem(Message):
    """Read an item."""

    Key: TableKey
    ConsistentRead: bool = False


class BatchGetItem(Message):
    """Read items. An answer has as many as fit."""

    Keys: Annotated[list[TableKey], Field(min_length=1, max_length=100)]
    ConsistentRead: bool = False


class Query(Message):
    """Read a page of a partition; or all keys that an index lists, as far as the credentials reach them."""

    KeyConditionExpression: Literal[
        "#pk = :pk", "#pk = :pk AND begins_with(#sk, :a)", "#pk = :pk AND #sk BETWEEN :a AND :b"
    ]
    ExpressionAttributeNames: dict[str, str]
    ExpressionAttributeValues: dict[str, KeyText]
    ProjectionExpression: str | None = None
    ConsistentRead: bool = False
    ScanIndexForward: bool = True
    Limit: Count | None = None
    ExclusiveStartKey: TableKey | None = None
    IndexName: Literal["run_id-index"] | None = None


class PutItem(Message):
    """Store an item."""

    Item: TableItem


class DeleteItem(Message):
    """Delete an item under a condition."""

    Key: TableKey
    ConditionExpression: str
    ExpressionAttributeNames: dict[str, str]
    ExpressionAttributeValues: dict[str, AttributeValue]
    ReturnValuesOnConditionCheckFailure: Literal["ALL_OLD"]


class UpdateItem(DeleteItem):
    """Change an item under a condition."""

    UpdateExpression: str
    ReturnValues: Literal["ALL_OLD"] | None = None


class ItemToPut(Message):
    """An item to store."""

    Item: TableItem


class ItemToDelete(Message):
    """The key of an item to delete."""

    Key: TableKey


class WriteRequest(Message):
    """One write of a batch: one of the two."""

    PutRequest: ItemToPut | None = None
    DeleteRequest: ItemToDelete | None = None


class BatchWriteItem(Message):
    """Store and delete items."""

    requests: Annotated[list[WriteRequest], Field(min_length=1, max_length=25)]


TableRequest: TypeAlias = GetItem | BatchGetItem | Query | PutItem | DeleteItem | UpdateItem | BatchWriteItem


def keys_in(request: Message) -> list[TableKey]:
    """Return the keys of items that a request to the table names."""
    if isinstance(request, BatchGetItem):
        return request.Keys
    if isinstance(request, BatchWriteItem):
        puts: list[TableKey] = [each.PutRequest.Item for each in request.requests if each.PutRequest]
        return puts + [each.DeleteRequest.Key for each in request.requests if each.DeleteRequest]
    if isinstance(request, PutItem):
        return [request.Item]
    return [request.Key] if isinstance(request, (GetItem, DeleteItem)) else []
