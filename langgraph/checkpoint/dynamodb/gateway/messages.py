"""The types of arguments and answers, as JSON in LangGraph's own terms. Bytes are base64.

An argument that names a thread, an owner or a namespace says so by its type, so that no call can forget to check it.
docs/wire.md says what the fields mean. Requests with an unknown field are refused, and clients ignore those of answers.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

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

from .._format.limits import LOCK_TTL_SECONDS_MIN, TTL_SECONDS_MAX
from .._format.wire import DIGEST_BYTES, described_bytes
from .._operations.arguments import COUNT_MAX
from .._operations.thread_lock import TOKEN_BYTES

ARGUMENTS = ConfigDict(
    extra="forbid",
    frozen=True,
    strict=True,
    allow_inf_nan=False,
    val_json_bytes="base64",
    # A client makes instances, whose names have to be told too.
    revalidate_instances="always",
)
ANSWERS = ConfigDict(val_json_bytes="base64")


class Argument:
    """The base of what requests have: an unknown field is refused."""

    __pydantic_config__ = ARGUMENTS


class Answer:
    """The base of what answers have: a client ignores unknown fields, so answers can grow."""

    __pydantic_config__ = ANSWERS


# How many runs one request may name, and how many operations, keys or entries: each may take a request to the table.
IDS_MAX = 10_000
MANY_MAX = 250


Kind: TypeAlias = Literal["thread", "position", "threads", "owner", "memories", "searched", "nodes"]
"""The kinds of names: the id of a thread, the one at which a list stopped, the beginning of ids, an owner, a namespace
of memories, the beginning of those to search, a namespace of cached nodes."""
Names: TypeAlias = Callable[[Kind, Any], Any]
"""Takes each name that is received or sent, with its kind, and returns it, perhaps in another form, or raises."""


def named_by(kind: Kind) -> AfterValidator:
    """Tell the `Names` of who decodes arguments each name of a kind."""

    def told(name: Any, info: ValidationInfo) -> Any:
        return name if info.context is None else info.context(kind, name)

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
LockSeconds: TypeAlias = Annotated[float, Field(ge=LOCK_TTL_SECONDS_MIN, le=TTL_SECONDS_MAX)]

ThreadId: TypeAlias = Annotated[Text, named_by("thread")]
ThreadPrefix: TypeAlias = Annotated[str, named_by("threads")]
Owner: TypeAlias = Annotated[Text, named_by("owner")]
IdsOfRuns: TypeAlias = Annotated[list[Text], Field(max_length=IDS_MAX)]


# Values


@dataclass(frozen=True)
class SentValue(Argument):
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
class Value(Answer):
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
class Checkpoint(Answer):
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
class FoundCheckpoint(Answer):
    """The checkpoint; null if there is none."""

    checkpoint: Checkpoint | None


@dataclass(frozen=True)
class Place(Argument):
    """The last checkpoint of a list's page."""

    thread_id: Annotated[Text, named_by("position")]
    checkpoint_ns: str
    checkpoint_id: Text


@dataclass(frozen=True)
class Page(Answer):
    """A page of a list, which `after` continues; null: this was the last one."""

    checkpoints: list[Checkpoint]
    after: Place | None = None
    problem: dict[str, Any] | None = None
    """The problem with a thread, as in a problem body. The list goes on without it."""


@dataclass(frozen=True)
class ChannelHistory(Answer):
    """The writes of a delta channel, oldest first, the checkpoint of each, and its stored value."""

    writes: list[Write]
    checkpoint_ids: list[str]
    seed: Value | None = None


@dataclass(frozen=True)
class History(Answer):
    """A page of what delta channels are rebuilt from. With `after`, ask again for the channels without a seed."""

    channels: dict[str, ChannelHistory]
    after: str | None = None


@dataclass(frozen=True)
class PutResult(Answer):
    """The checkpoint is stored, unless channels are wanted, whose values the service needs whole."""

    wanted: list[str]


@dataclass(frozen=True)
class WritesResult(Answer):
    """The writes are stored, unless those of a later call are there, with this order."""

    later: int | None
