"""The shapes of the answers, for the API description and for tests. The service does not validate its own answers."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.problems import TYPE_PREFIX
from langgraph.checkpoint.dynamodb.gateway.wire import Digest, Message, Object, Position, Value


class ConsumedCapacity(Message):
    """The capacity that a request consumed, in DynamoDB's units."""

    read: float | None = Field(description="Null: it read nothing.")
    write: float | None = Field(description="Null: it wrote nothing.")


class ResponseMessage(Message):
    """The base of every answer, with the fields that any may have."""

    units: ConsumedCapacity | None = Field(
        None, description="Only if the request had the header X-Units, and its client may know them."
    )


class Problem(Message):
    """A problem, as RFC 9457 has it. It may have more fields."""

    type: str = Field(pattern=f"^{TYPE_PREFIX}", description="Names the exception that the client raises.")
    title: str
    status: int
    detail: str | None = None
    request_id: str


class Done(ResponseMessage):
    """The operation is done."""


class Joined(ResponseMessage):
    """The answer of an operation that may take longer than one request."""

    done: bool = Field(description="Whether it is done. If not, send the same request again, which joins it.")


class PutResponse(ResponseMessage):
    """The checkpoint is stored, unless values are wanted."""

    wanted: list[str] = Field(
        description="The channels whose values the service needs whole: nothing was stored."
    )


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


class ListResponse(ResponseMessage):
    """A page of a list."""

    checkpoints: list[Checkpoint | Object]
    after: Position | None = Field(
        description="Where it stopped: send the request again with it. Null: this was the last page."
    )
    problem: Object | None = Field(
        description="What was wrong with a thread, as in a problem body. The list goes on without it."
    )


class ChannelHistory(Message):
    """The writes of a delta channel, oldest first, and its stored value."""

    writes: list[Write]
    checkpoint_ids: list[str] = Field(description="The checkpoint of each write.")
    seed: Value | None = None


class DeltaChannelHistoryResponse(ResponseMessage):
    """The values and writes from which delta channels are rebuilt."""

    channels: dict[str, ChannelHistory]


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


class LockResponse(ResponseMessage):
    """Whether the client holds the lock now."""

    held: bool
    free_in_seconds: float = Field(
        description="If another client holds the lock: in how long that ends, if it has died."
    )


class AboutResponse(Message):
    """The service's version and limits."""

    wire_version: int
    features: list[str] = Field(description="Fields of requests that came after the first release.")
    limits: Limits
    owner: str | None = Field(description="The owner that these credentials are bound to.")


class Health(Message):
    """The process runs."""

    status: Literal["ok"]


class Ready(Message):
    """The table answers."""

    status: Literal["ready"]
