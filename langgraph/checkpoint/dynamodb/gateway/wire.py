"""The requests and answers of the wire, as JSON (bytes are base64 text) or as msgpack, in LangGraph's own terms.

The client serializes values, and the service stores them as they are. Everything else is plain JSON. docs/wire.md says
what the fields mean and in which order a client uses them. The service does not validate its own answers: their shapes
are for the API description and for tests.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from langgraph.checkpoint.dynamodb._format.limits import LOCK_TTL_SECONDS_MIN, TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.wire import DIGEST_BYTES, described_bytes
from langgraph.checkpoint.dynamodb._operations.arguments import COUNT_MAX
from langgraph.checkpoint.dynamodb._operations.thread_lock import TOKEN_BYTES
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.problems import TYPE_PREFIX

FEATURES: tuple[str, ...] = ()
"""The fields of requests that came after the first release of this version. A client sends one only if it is named."""
IDS_MAX = 10_000
"""How many threads or runs one request may name."""


def _decoded(value: Any) -> Any:
    """Return the bytes of a msgpack body, or decode the base64 text of a JSON body."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError("not valid base64") from None


def _sized(delta: bytes) -> bytes:
    """Return a delta that says the size of its value; raise `ValueError` if it does not."""
    described_bytes(delta)
    return delta


def _in_json(length: int | None = None) -> WithJsonSchema:
    """Return the schema of the base64 text of bytes, or of so many bytes."""
    schema: dict[str, Any] = {
        "type": "string",
        "contentEncoding": "base64",
        # Complete groups of four characters; the last one may be padded.
        "pattern": r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    }
    if length is not None:
        padding = -length % 3
        characters = 4 * (length + padding) // 3 - padding
        schema["pattern"] = f"^[A-Za-z0-9+/]{{{characters}}}{'=' * padding}$"
    return WithJsonSchema(schema)


def _whole(value: Any) -> Any:
    """Return a whole number, which JSON, and so many a client, may write as 8.0, as an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)
Bytes: TypeAlias = Annotated[bytes, BeforeValidator(_decoded), _in_json()]
Digest: TypeAlias = Annotated[
    bytes,
    BeforeValidator(_decoded),
    Field(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES),
    _in_json(DIGEST_BYTES),
]
Token: TypeAlias = Annotated[
    bytes,
    BeforeValidator(_decoded),
    Field(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES),
    _in_json(TOKEN_BYTES),
]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
# From 0, and from 1.
Number: TypeAlias = Annotated[int, Field(ge=0, le=COUNT_MAX), _WHOLE]
Count: TypeAlias = Annotated[int, Field(ge=1, le=COUNT_MAX), _WHOLE]
# Epoch seconds that have a day: up to the end of the year 9999.
Moment: TypeAlias = Annotated[float, Field(ge=0, le=253_402_300_799)]
Ids: TypeAlias = Annotated[list[Text], Field(max_length=IDS_MAX)]
Object: TypeAlias = dict[str, Any]
"""A JSON object."""


class Message(BaseModel):
    """Base class of all messages. A request with a field that the service does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Namespace(Message):
    """A namespace of a thread."""

    thread_id: Text
    checkpoint_ns: str = ""


class ConsumedCapacity(Message):
    """The capacity that a request consumed, in DynamoDB's units."""

    read: float | None = Field(description="Null: it read nothing.")
    write: float | None = Field(description="Null: it wrote nothing.")


class ResponseMessage(Message):
    """The base of every answer, with the fields that any may have."""

    units: ConsumedCapacity | None = Field(
        None, description="Only if the request had the header X-Units, and its client may know them."
    )


class Done(ResponseMessage):
    """The operation is done."""


class Joined(ResponseMessage):
    """The answer of an operation that may take longer than one request."""

    done: bool = Field(description="Whether it is done. If not, send the same request again, which joins it.")


# Values


class Value(Message):
    """A value as LangGraph's serializer returns it."""

    type: str
    data: Bytes


class Delta(Message):
    """A value as its difference to the one that the parent has in the same channel."""

    type: str
    base: Digest = Field(description="The first 16 bytes of the SHA-256 of that value's data.")
    delta: Annotated[Bytes, AfterValidator(_sized)] = Field(
        description="This value as a frame of zstd whose prefix is that value's data, and which says its size."
    )

    @property
    def size_bytes(self) -> int:
        """The size of the whole value, in bytes. A few bytes can describe gigabytes."""
        return described_bytes(self.delta)


class Same(Message):
    """A value whose data the client has."""

    type: str
    same: Digest


class Left(Message):
    """A value that did not fit into the answer. The same request brings it, with the digests of what came."""

    type: str
    left: Literal[True]


Shown: TypeAlias = Value | Same | Left
Write = Annotated[tuple[str, str, Shown], Field(strict=False)]


# Writing


class CheckpointFields(Message):
    """A checkpoint without its channel_values. It may have more fields, which are stored with it."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    id: Text
    channel_versions: Object = {}


_MAP: Any = Field(
    {}, description="For a subgraph: LangGraph's map of the namespaces above it to checkpoints."
)


class PutRequest(Namespace):
    """Store a checkpoint."""

    checkpoint_map: dict[str, str] = _MAP
    parent_checkpoint_id: Text | None = None
    checkpoint: CheckpointFields
    metadata: Object = Field(description="The metadata, as far as JSON can hold them.")
    typed_metadata: Value | None = Field(None, description="All metadata, if JSON cannot hold them.")
    new_versions: Object = Field(description="The channels that changed, with their versions.")
    values: dict[str, Value | Delta] = Field(description="The values of changed channels.")
    kept: list[str] = Field([], description="The other channels that have a value: the parent's.")
    listed: bool = Field(False, description="Whether a thread that is new is entered in the directory.")
    owner: Text | None = Field(
        None, description="Its owner there. Who is bound to an owner need not say more."
    )

    @property
    def deltas(self) -> Mapping[str, Delta]:
        """The values that come as deltas."""
        return {name: each for name, each in self.values.items() if isinstance(each, Delta)}


class PutResponse(ResponseMessage):
    """The checkpoint is stored, unless values are wanted."""

    wanted: list[str] = Field(
        description="The channels whose values the service needs whole: nothing was stored."
    )


class PutWritesRequest(Namespace):
    """Store a task's pending writes."""

    checkpoint_map: dict[str, str] = _MAP
    checkpoint_id: Text
    task_id: str
    task_path: str = ""
    writes: list[Annotated[tuple[str, Value], Field(strict=False)]] = Field(
        description="Pairs of a channel and a value."
    )
    order: Number | None = Field(
        None, description="When the client's call began, in epoch milliseconds; the same in each attempt."
    )


class PutWritesResponse(ResponseMessage):
    """The writes are stored, unless later ones are there."""

    later: Number | None = Field(
        description="Writes of a later call are there, with this order, and nothing replaced them."
    )


# Reading


class Reading(Message):
    """The parts of each checkpoint that a reader wants."""

    channels: list[str] | None = Field(None, description="The channels whose values you want; null: all.")
    plain: bool = Field(False, description="Whether you want values as JSON, if the service offers it.")


class GetTupleRequest(Namespace, Reading):
    """Read a checkpoint, or the newest one of the namespace."""

    checkpoint_id: Text | None = None
    have: list[Digest] = Field([], description="The digests of values that you have.")


class Checkpoint(Message):
    """A checkpoint with its pending writes."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: Object = Field(description="The checkpoint without its channel_values.")
    metadata: Object
    typed_metadata: Value | None = Field(None, description="All metadata, if JSON cannot hold them.")
    values: dict[str, Shown]
    pending_writes: list[Write] = Field(description="Task id, channel and value of each.")


class GetTupleResponse(ResponseMessage):
    """The checkpoint; null if there is none."""

    checkpoint: Checkpoint | Object | None = Field(
        description="With `plain` it is plain JSON, which docs/wire.md describes."
    )


class PageEnd(Message):
    """The last checkpoint of a list's page."""

    thread_id: Text
    checkpoint_ns: str
    checkpoint_id: Text


class ListRequest(Reading):
    """List checkpoints, newest first."""

    thread_id: Text | None = Field(None, description="Null: all threads.")
    checkpoint_ns: str | None = Field(None, description="Null: all namespaces of the thread.")
    checkpoint_id: Text | None = None
    filter: Object = Field({}, description="Keys and values that the metadata must have.")
    before: Text | None = Field(None, description="List only checkpoints with smaller ids.")
    limit: Number | None = None
    after: PageEnd | None = Field(None, description="Where the last answer stopped.")


class ListResponse(ResponseMessage):
    """A page of a list."""

    checkpoints: list[Checkpoint | Object]
    after: PageEnd | None = Field(
        description="Where it stopped: send the request again with it. Null: this was the last page."
    )
    problem: Object | None = Field(
        description="What was wrong with a thread, as in a problem body. The list goes on without it."
    )


class DeltaChannelHistoryRequest(Namespace):
    """Read what delta channels are rebuilt from."""

    checkpoint_id: Text | None = None
    channels: list[str]
    have: list[Digest] = Field([], description="The digests of values that you have.")
    after: Text | None = Field(None, description="The checkpoint at which the last answer stopped.")


class ChannelHistory(Message):
    """The writes of a delta channel, oldest first, and its stored value."""

    writes: list[Write]
    checkpoint_ids: list[str] = Field(description="The checkpoint of each write.")
    seed: Shown | None = None


class DeltaChannelHistoryResponse(ResponseMessage):
    """A page of the values and writes from which delta channels are rebuilt."""

    channels: dict[str, ChannelHistory]
    after: str | None = Field(
        description="Where it stopped: ask again with it for the channels without a seed. Null: this was all."
    )


# Deleting and copying


class DeleteThreadRequest(Message):
    """Delete a thread."""

    thread_id: Text


class DeleteForRunsRequest(Message):
    """Delete the checkpoints of runs."""

    run_ids: Ids
    thread_prefix: str = Field("", description="Only in threads whose ids begin with it.")


class CopyThreadRequest(Message):
    """Copy a thread. Send it again until it is done: the service goes on meanwhile."""

    source_thread_id: Text
    target_thread_id: Text


class PruneRequest(Message):
    """Remove old checkpoints. Send it again until it is done: the service goes on meanwhile."""

    thread_ids: Ids
    strategy: Literal["keep_latest", "keep_last", "delete", "delete_all"] = "keep_latest"
    keep_last: Count | None = None


# The directory


class SetThreadRequest(Message):
    """Describe a thread. What is null stays as it is."""

    thread_id: Text
    owner: Text | None = None
    title: str | None = None
    metadata: Object | None = None


class ThreadsRequest(Message):
    """List threads, newest activity first."""

    owner: Text | None = Field(None, description="Null: all threads, or those of the owner you are bound to.")
    status: str | None = None
    metadata: Object | None = Field(None, description="Keys and values that the thread's metadata must have.")
    limit: Count = 20
    before: str | None = Field(None, description="The cursor of the page before.")
    with_status: bool = False
    since: Moment | None = Field(
        None, description="The last activity at which the list ends, in epoch seconds."
    )


class ThreadMessage(Message):
    """A thread in a list. Times are epoch seconds."""

    thread_id: str
    owner: str | None
    title: str | None
    metadata: Object
    created_at: float | None
    last_active: float | None
    status: Literal["idle", "waiting", "failed"] | None
    step: int | None


class ThreadsResponse(ResponseMessage):
    """A page of a list of threads."""

    threads: list[ThreadMessage]
    cursor: str | None = Field(description="Continues the list, as `before`; null at its end.")


class RunsRequest(Message):
    """List the runs of a thread."""

    thread_id: Text


class Run(Message):
    """A run of a thread."""

    run_id: str
    first_checkpoint_id: str
    last_checkpoint_id: str
    checkpoints: int
    status: Literal["idle", "waiting", "failed"]


class RunsResponse(ResponseMessage):
    """The runs of a thread, the newest first."""

    runs: list[Run]


# One runner at a time


class LockRequest(Message):
    """Acquire, renew or release the lock of a thread."""

    thread_id: Text
    action: Literal["acquire", "renew", "release"]
    token: Token = Field(description="8 random bytes of the client's, which tell its hold from others.")
    ttl_seconds: Annotated[float, Field(ge=LOCK_TTL_SECONDS_MIN, le=TTL_SECONDS_MAX)] = Field(
        60, description="For how long the lock is held from now on."
    )


class LockResponse(ResponseMessage):
    """Whether the client holds the lock now."""

    held: bool
    free_in_seconds: float = Field(
        description="If another client holds the lock: in how long that ends, if it has died."
    )


# The service itself


class Problem(Message):
    """A problem, as RFC 9457 has it. It may have more fields."""

    type: str = Field(pattern=f"^{TYPE_PREFIX}", description="Names the exception that the client raises.")
    title: str
    status: int
    detail: str | None = None
    request_id: str


class AboutResponse(Message):
    """The service's version and limits."""

    wire_version: int
    features: list[str] = Field(description="Fields of requests that came after the first release.")
    limits: Limits
    owner: str | None = Field(description="The owner that these credentials are bound to.")


class ServiceStatus(Message):
    """The process runs (`ok`), or the table answers (`ready`)."""

    status: Literal["ok", "ready"]
