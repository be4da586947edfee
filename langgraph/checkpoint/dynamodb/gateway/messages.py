"""The types of arguments and answers, as JSON in LangGraph's own terms. Bytes are base64.

An argument that names a thread, an owner or a namespace says so by its type, so that no call can forget to check it.
docs/wire.md says what the fields mean. Requests with an unknown field are refused, and clients ignore those of answers.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    with_config,
)
from typing_extensions import NotRequired, TypedDict

from langgraph.checkpoint.dynamodb._format.limits import LOCK_TTL_SECONDS_MIN, TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.wire import DIGEST_BYTES, described_bytes
from langgraph.checkpoint.dynamodb._operations.arguments import COUNT_MAX
from langgraph.checkpoint.dynamodb._operations.thread_lock import TOKEN_BYTES

ARGUMENTS = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, val_json_bytes="base64")
ANSWERS = ConfigDict(val_json_bytes="base64")


class _Argument:
    """The base of what requests have: an unknown field is refused."""

    __pydantic_config__ = ARGUMENTS


class _Answer:
    """The base of what answers have: a client ignores unknown fields, so answers can grow."""

    __pydantic_config__ = ANSWERS


# How many runs one request may name, and how many operations, keys or entries: each may take a request to the table.
IDS_MAX = 10_000
MANY_MAX = 250


class Names(Protocol):
    """Takes each name that is received or sent, and returns it, perhaps in another form, or raises."""

    def thread(self, thread_id: str) -> str:
        """Take the id of a thread."""

    def position(self, thread_id: str) -> str:
        """Take the id of the thread at which a list stopped, as the list had it."""

    def owner(self, name: str) -> str:
        """Take the name of an owner."""

    def threads(self, prefix: str) -> str:
        """Take what the ids of threads begin with."""

    def memories(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Take a namespace of memories, or what namespaces begin with."""

    def searched(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Take the beginning of the namespaces to search, of which only one's own are."""

    def nodes(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Take a namespace of cached nodes, or what namespaces begin with."""


def _named(kind: str) -> AfterValidator:
    def told(name: Any, info: ValidationInfo) -> Any:
        return name if info.context is None else getattr(info.context, kind)(name)

    return AfterValidator(told)


def _in_json(length: int | None = None) -> WithJsonSchema:
    """Return the schema of the base64 text of bytes, or of so many bytes."""
    schema: dict[str, Any] = {
        "type": "string",
        "contentEncoding": "base64",
        # Complete groups of four characters; the last one may be padded.
        "pattern": r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
    }
    if length is not None:
        characters, padding = divmod(8 * length, 6)[0], -length % 3
        last = {1: "[AEIMQUYcgkosw048]", 2: "[AQgw]"}.get(padding, "[A-Za-z0-9+/]")
        schema["pattern"] = f"^[A-Za-z0-9+/]{{{characters}}}{last}{'=' * padding}$"
    return WithJsonSchema(schema)


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _whole(value: Any) -> Any:
    """Return a whole number, which JSON, and so many a client, may write as 8.0, as an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _finite(value: Any) -> Any:
    """Return a JSON value; raise `ValueError` if it has a number that JSON has not, as which 1e999 is read."""
    json.dumps(value, allow_nan=False)
    return value


_TEXT = PlainSerializer(_base64, return_type=str)
_WHOLE = BeforeValidator(_whole)
Bytes: TypeAlias = Annotated[bytes, _TEXT, _in_json()]
Digest: TypeAlias = Annotated[
    bytes, Field(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES), _TEXT, _in_json(DIGEST_BYTES)
]
LockToken: TypeAlias = Annotated[
    bytes, Field(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES), _TEXT, _in_json(TOKEN_BYTES)
]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Object: TypeAlias = Annotated[dict[str, Any], AfterValidator(_finite)]
"""A JSON object."""
# From 0, and from 1.
Number: TypeAlias = Annotated[int, Field(ge=0, le=COUNT_MAX), _WHOLE]
Count: TypeAlias = Annotated[int, Field(ge=1, le=COUNT_MAX), _WHOLE]
# Epoch seconds that have a day: up to the end of the year 9999.
Moment: TypeAlias = Annotated[float, Field(ge=0, le=253_402_300_799)]
TtlSeconds: TypeAlias = Annotated[int, Field(ge=1, le=TTL_SECONDS_MAX)]
LockSeconds: TypeAlias = Annotated[float, Field(ge=LOCK_TTL_SECONDS_MIN, le=TTL_SECONDS_MAX)]
CacheSeconds: TypeAlias = Annotated[float, Field(ge=0, le=TTL_SECONDS_MAX)]
# Json, since a value may be nested more deeply than a request, and have larger numbers.
JsonText: TypeAlias = Annotated[str, Field(description="JSON, as text.")]

ThreadId: TypeAlias = Annotated[Text, _named("thread")]
ThreadPrefix: TypeAlias = Annotated[str, _named("threads")]
Owner: TypeAlias = Annotated[Text, _named("owner")]
IdsOfRuns: TypeAlias = Annotated[list[Text], Field(max_length=IDS_MAX)]
MemoryLabels: TypeAlias = Annotated[tuple[str, ...], _named("memories")]
SearchedLabels: TypeAlias = Annotated[tuple[str, ...], _named("searched")]
NodeLabels: TypeAlias = Annotated[tuple[str, ...], _named("nodes")]


# Values


@dataclass(frozen=True)
class SentValue(_Argument):
    """A value to store, as LangGraph's serializer returns it.

    With a `base`, the digest of the parent's data in the same channel, `data` is the difference to these: a frame of
    zstd whose prefix they are, and which says its size.
    """

    type: str
    data: Bytes
    base: Digest | None = None

    @property
    def size_bytes(self) -> int:
        """The size of the whole value. A few bytes can describe gigabytes.

        Raises:
            ValueError: A delta does not say it.
        """
        return len(self.data) if self.base is None else described_bytes(self.data)


@dataclass(frozen=True)
class Value(_Answer):
    """A value as LangGraph's serializer returned it.

    One without `data` is among those that the client has, or did not fit into the answer: the same request brings it,
    with the digests of what came.
    """

    type: str
    data: Bytes | None = None
    digest: Digest | None = None


Write: TypeAlias = tuple[str, str, Value]


# Threads


@with_config(ConfigDict(extra="allow", strict=True))
class CheckpointFields(TypedDict):
    """A checkpoint without its channel_values. It may have more fields, which are stored with it."""

    id: Text
    channel_versions: NotRequired[dict[str, Any]]


StoredFields: TypeAlias = Annotated[CheckpointFields, AfterValidator(_finite)]


@dataclass(frozen=True)
class Checkpoint(_Answer):
    """A checkpoint with its pending writes: the task, the channel and the value of each."""

    thread_id: ThreadId
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    typed_metadata: Value | None
    values: dict[str, Value]
    pending_writes: list[Write]


@dataclass(frozen=True)
class FoundCheckpoint(_Answer):
    """The checkpoint; null if there is none."""

    checkpoint: Checkpoint | None


@dataclass(frozen=True)
class Place(_Argument):
    """The last checkpoint of a list's page."""

    thread_id: Annotated[Text, _named("position")]
    checkpoint_ns: str
    checkpoint_id: Text


@dataclass(frozen=True)
class Page(_Answer):
    """A page of a list, which `after` continues; null: this was the last one."""

    checkpoints: list[Checkpoint]
    after: Place | None = None
    problem: dict[str, Any] | None = None
    """The problem with a thread, as in a problem body. The list goes on without it."""


@dataclass(frozen=True)
class ChannelHistory(_Answer):
    """The writes of a delta channel, oldest first, the checkpoint of each, and its stored value."""

    writes: list[Write]
    checkpoint_ids: list[str]
    seed: Value | None = None


@dataclass(frozen=True)
class History(_Answer):
    """A page of what delta channels are rebuilt from. With `after`, ask again for the channels without a seed."""

    channels: dict[str, ChannelHistory]
    after: str | None = None


@dataclass(frozen=True)
class PutResult(_Answer):
    """The checkpoint is stored, unless channels are wanted, whose values the service needs whole."""

    wanted: list[str]


@dataclass(frozen=True)
class WritesResult(_Answer):
    """The writes are stored, unless those of a later call are there, with this order."""

    later: int | None


# Memories


@dataclass(frozen=True)
class MemoryKey(_Argument):
    """A memory's namespace and key."""

    namespace: MemoryLabels
    key: str


@dataclass(frozen=True)
class Seen(_Argument):
    """A memory, as the page before ended with it. Its time is needed in the order of that time."""

    namespace: tuple[str, ...]
    key: str
    created_at: str | None = None
    updated_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class StoreGet(MemoryKey):
    """Read a memory."""

    op: Literal["get"]
    refresh_ttl: bool = True


@dataclass(frozen=True, kw_only=True)
class StoreSearch(_Argument):
    """Search under a namespace."""

    op: Literal["search"]
    namespace_prefix: SearchedLabels
    filter: JsonText | None = None
    limit: Number = 10
    offset: Number = 0
    refresh_ttl: bool = True
    vector: Bytes | None = None
    distance: Literal["cosine", "l2", "inner_product"] = "cosine"
    order: Literal["updated_at", "created_at", "key"] = "updated_at"
    after: Seen | None = None


@dataclass(frozen=True, kw_only=True)
class StorePut(MemoryKey):
    """Store a memory, or delete it if the value is null. Without a ttl it never expires.

    With a token, 8 random bytes in hexadecimal by which a repeated request is known, it takes effect only if the memory
    has the revision that was read; null: if there is none. `times` are those of a memory to import, which replaces no
    newer one.
    """

    op: Literal["put"]
    value: JsonText | None
    vectors: list[Bytes] | None = None
    ttl_seconds: TtlSeconds | None = None
    revision: Text | None = None
    token: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    times: dict[str, str | None] | None = None


@dataclass(frozen=True)
class MatchCondition(_Argument):
    """A condition on a namespace."""

    match_type: Literal["prefix", "suffix"]
    path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StoreListNamespaces(_Argument):
    """List namespaces."""

    op: Literal["list_namespaces"]
    match_conditions: list[MatchCondition] | None = None
    max_depth: Number | None = None
    limit: Number = 100
    offset: Number = 0


StoreOp: TypeAlias = Annotated[
    StoreGet | StoreSearch | StorePut | StoreListNamespaces, Field(discriminator="op")
]


@dataclass(frozen=True)
class Memory(_Answer):
    """A memory. Times are those of ISO 8601. Without a score it was not compared.

    One without a value was found, and did not fit. Get it, and compare it with the filter: it may be a new one.
    """

    namespace: tuple[str, ...]
    key: str
    value: JsonText | None
    created_at: str
    updated_at: str
    ttl_minutes: float | None
    expires_at: str | None
    revision: str
    score: float | None = None


@dataclass(frozen=True)
class PutRevision(_Answer):
    """The result of a put with a condition or times: the new revision; null: something else came first."""

    revision: str | None


StoreResult: TypeAlias = Memory | list[Memory] | list[tuple[str, ...]] | PutRevision | None


@dataclass(frozen=True)
class StoreResults(_Answer):
    """The results, in the order of the operations. `left` are the positions of those that were not run."""

    results: list[StoreResult]
    left: list[int]


@dataclass(frozen=True)
class Removed(_Answer):
    """How many memories were deleted. With `after`, send the request again; null: this was all."""

    deleted: int
    after: MemoryKey | None = None


# Cached nodes


@dataclass(frozen=True)
class NodeKey(_Argument):
    """A cached node's namespace and key."""

    namespace: NodeLabels
    key: str


@dataclass(frozen=True, kw_only=True)
class CacheEntry(NodeKey):
    """A value to cache. Without a ttl it never expires."""

    type: str
    data: Bytes
    ttl_seconds: CacheSeconds | None = None


@dataclass(frozen=True)
class Refused(_Answer):
    """Why one of several was not read, or not stored."""

    position: int
    reason: str


@dataclass(frozen=True)
class CachedValues(_Answer):
    """The values in the order of the keys; null where nothing is cached. `left` are the keys that had no room."""

    values: list[Value | None]
    refused: list[Refused]
    left: list[int]


@dataclass(frozen=True)
class CachedEntries(_Answer):
    """All values are cached but those that are refused."""

    refused: list[Refused]
