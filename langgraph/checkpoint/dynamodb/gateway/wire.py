"""The requests of the wire, in LangGraph's own terms: one schema, as JSON (bytes are base64 text) or as msgpack.

The client serializes values, and the service stores them as they are. Everything else is plain JSON. docs/wire.md says
what the fields mean and in which order a client uses them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from langgraph.checkpoint.dynamodb._format.limits import LOCK_TTL_SECONDS_MIN, TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.wire import DIGEST_BYTES
from langgraph.checkpoint.dynamodb._operations.arguments import COUNT_MAX
from langgraph.checkpoint.dynamodb._operations.thread_lock import TOKEN_BYTES

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
        msg = "not valid base64"
        raise ValueError(msg) from None


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


# Values


class Value(Message):
    """A value as LangGraph's serializer returns it."""

    type: str
    data: Bytes


class Delta(Message):
    """A value as its difference to the one that the parent has in the same channel."""

    type: str
    base: Digest = Field(description="The first 16 bytes of the SHA-256 of that value's data.")
    pieces: list[Annotated[tuple[Number, Number, Bytes], Field(strict=False)]] = Field(
        description="From which offset how many bytes of the base are copied, and the bytes to append to them."
    )

    @property
    def size_bytes(self) -> int:
        """The size of the whole value, in bytes. A few bytes can name gigabytes."""
        return sum(length + len(data) for _, length, data in self.pieces)


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


class PutWritesRequest(Namespace):
    """Store a task's pending writes."""

    checkpoint_map: dict[str, str] = _MAP
    checkpoint_id: Text
    task_id: str
    task_path: str = ""
    writes: list[Annotated[tuple[str, Value], Field(strict=False)]] = Field(
        description="Pairs of a channel and a value."
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


class Position(Message):
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
    after: Position | None = Field(None, description="Where the last answer stopped.")


class DeltaChannelHistoryRequest(Namespace):
    """Read what delta channels are rebuilt from."""

    checkpoint_id: Text | None = None
    channels: list[str]


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


class RunsRequest(Message):
    """List the runs of a thread."""

    thread_id: Text


# One runner at a time


class LockRequest(Message):
    """Acquire, renew or release the lock of a thread."""

    thread_id: Text
    action: Literal["acquire", "renew", "release"]
    token: Token = Field(description="8 random bytes of the client's, which tell its hold from others.")
    ttl_seconds: Annotated[float, Field(ge=LOCK_TTL_SECONDS_MIN, le=TTL_SECONDS_MAX)] = Field(
        60, description="For how long the lock is held from now on."
    )
