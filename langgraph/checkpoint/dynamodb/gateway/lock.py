"""The lock of a thread through the gateway: each request is one attempt, and the client waits between attempts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import LOCK_TTL_SECONDS_MIN, TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._operations.thread_lock import (
    TOKEN_BYTES,
    Hold,
    release,
    renew,
    try_to_acquire,
)
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import ThreadLockLostError
from langgraph.checkpoint.dynamodb.gateway.answers import Answer
from langgraph.checkpoint.dynamodb.gateway.wire import Bytes, Message, Text


class Lock(Message):
    """Acquire, renew or release the lock of a thread."""

    thread_id: Text
    action: Literal["acquire", "renew", "release"]
    token: Annotated[
        Bytes,
        Field(
            min_length=TOKEN_BYTES,
            max_length=TOKEN_BYTES,
            description="8 random bytes of the client's, which tell its hold from others.",
        ),
    ]
    ttl_seconds: Annotated[float, Field(ge=LOCK_TTL_SECONDS_MIN, le=TTL_SECONDS_MAX)] = Field(
        60, description="For how long the lock is held from now on."
    )


class LockAnswer(Answer):
    """Whether the client holds the lock now."""

    held: bool
    free_in_seconds: float = Field(
        description="If another client holds the lock: in how long that ends, if it has died."
    )


def lock(storage: Storage, request: Lock) -> Op[dict[str, Any]]:
    """Acquire, renew or release the lock of a thread."""
    hold = Hold(items.partition_of(request.thread_id), request.ttl_seconds, request.token)
    if request.action == "acquire":
        attempt = yield from try_to_acquire(storage, hold)
        return {"held": attempt.held_until is not None, "free_in_seconds": attempt.free_in_seconds}
    if request.action == "release":
        yield from release(storage, hold)
        return {"held": False, "free_in_seconds": 0.0}
    try:
        yield from renew(storage, hold)
    except ThreadLockLostError:
        return {"held": False, "free_in_seconds": 0.0}
    return {"held": True, "free_in_seconds": 0.0}
