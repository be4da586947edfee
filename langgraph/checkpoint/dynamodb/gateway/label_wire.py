"""The messages for memories and cached nodes, which namespaces of labels keep, and not threads.

They are LangGraph's own operations. The client embeds texts, and sends vectors; the service reads, compares and
filters. docs/wire.md says what the fields mean.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb.gateway.wire import Bytes, Message, Number, ResponseMessage, Text, Value

OPERATIONS_MAX = 250
"""How many operations, keys or entries one request may have: each may take a request to the table."""

Labels: TypeAlias = list[str]
# Json, since a value may be nested more deeply than a request, and have larger numbers.
JsonText: TypeAlias = Annotated[str, Field(description="JSON, as text.")]
Vectors: TypeAlias = Annotated[
    list[Bytes], Field(description="Embeddings: the 32-bit floats of each, little-endian.")
]
TtlSeconds: TypeAlias = Annotated[int, Field(ge=1, le=TTL_SECONDS_MAX)]
Token: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class LabelledKey(Message):
    """A memory's namespace and key, or a cached node's."""

    namespace: Labels
    key: str


class Shown(LabelledKey):
    """A memory, as the page before ended with it."""

    created_at: str | None = Field(None, description="Needed in the order of this time.")
    updated_at: str | None = Field(None, description="Needed in the order of this time.")


# The store


class StoreGet(LabelledKey):
    """Read a memory."""

    op: Literal["get"]
    refresh_ttl: bool = True


class StoreSearch(Message):
    """Search under a namespace."""

    op: Literal["search"]
    namespace_prefix: Labels
    filter: JsonText | None = None
    limit: Number = 10
    offset: Number = 0
    refresh_ttl: bool = True
    vector: Bytes | None = Field(None, description="The embedding to compare memories with, as in a put.")
    distance: Literal["cosine", "l2", "inner_product"] = "cosine"
    order: Literal["updated_at", "created_at", "key"] = "updated_at"
    after: Shown | None = Field(None, description="The last memory of the page before.")


class Condition(Message):
    """The condition under which a put takes effect."""

    revision: Text | None = Field(description="The revision that you read; null: there must be no memory.")
    token: Token = Field(
        description="8 random bytes in hexadecimal. If you repeat the request, it is known by them."
    )


class ImportedTimes(Message):
    """The times of a memory to import. Times are those of ISO 8601."""

    created_at: str
    updated_at: str
    expires_at: str | None


class StorePut(LabelledKey):
    """Store a memory, or delete it."""

    op: Literal["put"]
    value: JsonText | None = Field(description="The text of a JSON object; null deletes.")
    vectors: Vectors = Field([])
    ttl_seconds: TtlSeconds | None = Field(None, description="Null: it never expires.")
    condition: Condition | None = None
    times: ImportedTimes | None = Field(None, description="Of an import, which replaces no newer memory.")


class MatchCondition(Message):
    """A condition on a namespace."""

    match_type: Literal["prefix", "suffix"]
    path: Labels


class StoreListNamespaces(Message):
    """List namespaces."""

    op: Literal["list_namespaces"]
    match_conditions: list[MatchCondition] = Field([])
    max_depth: Number | None = None
    limit: Number = 100
    offset: Number = 0


StoreOp: TypeAlias = Annotated[
    StoreGet | StoreSearch | StorePut | StoreListNamespaces, Field(discriminator="op")
]


class BatchRequest(Message):
    """Run operations of the store: first the reads, and then the puts."""

    ops: Annotated[list[StoreOp], Field(max_length=OPERATIONS_MAX)]


class DeleteNamespaceRequest(Message):
    """Delete every memory under a namespace."""

    namespace_prefix: Labels
    after: LabelledKey | None = Field(None, description="Where the last answer stopped.")


class SweepTtlRequest(DeleteNamespaceRequest):
    """Delete expired memories under a namespace."""


class Memory(LabelledKey):
    """A memory. Times are those of ISO 8601."""

    value: JsonText
    created_at: str
    updated_at: str
    ttl_minutes: float | None
    expires_at: str | None
    revision: str
    score: float | None = Field(None, description="How similar it is; null: it was not compared.")


class RestOfMemories(LabelledKey):
    """A memory that was found, and did not fit. Get it, and compare it with the filter: it may be a new one."""

    score: float | None


class FoundMemories(Message):
    """The memories that a search found, in order."""

    found: list[Memory]
    rest: list[RestOfMemories] = Field(description="Those behind them, for which there was no room.")


class FoundNamespaces(Message):
    """A list of namespaces."""

    found: list[Labels]


class PutRevision(Message):
    """The result of a put with a condition or times."""

    revision: str | None = Field(description="The new one; null: something else came first.")


class BatchResponse(ResponseMessage):
    """The results, in the order of the operations."""

    results: list[Memory | FoundMemories | FoundNamespaces | PutRevision | None]
    left: list[Number] = Field(
        description="The positions of operations that were not run, for lack of room: send them again."
    )


class DeleteNamespaceResponse(ResponseMessage):
    """How many memories were deleted."""

    deleted: Number
    after: LabelledKey | None = Field(
        description="Where it stopped: send the request again with it. Null: done."
    )


# The node cache


class CacheGetRequest(Message):
    """Read cached values."""

    keys: Annotated[list[LabelledKey], Field(max_length=OPERATIONS_MAX)]


class CacheEntry(LabelledKey, Value):
    """A value to cache."""

    ttl_seconds: Annotated[float, Field(ge=0, le=TTL_SECONDS_MAX)] | None = Field(
        None, description="Null: it never expires."
    )


class CacheSetRequest(Message):
    """Cache values."""

    entries: Annotated[list[CacheEntry], Field(max_length=OPERATIONS_MAX)]


class CacheClearRequest(Message):
    """Delete cached values."""

    namespaces: list[Labels] | None = Field(
        None, description="The namespaces, each by itself. Null: all under the prefix."
    )
    prefix: Labels = Field([], description="The labels that all namespaces begin with.")


class Refused(Message):
    """Why one of several was not read, or not stored."""

    position: Number
    reason: str


class CacheGetResponse(ResponseMessage):
    """The values in the order of the keys; null where nothing is cached."""

    values: list[Value | None]
    refused: list[Refused]
    left: list[Number] = Field(description="The positions of keys for whose values there was no room.")


class CacheSetResponse(ResponseMessage):
    """All values are cached but those that are refused."""

    refused: list[Refused]
