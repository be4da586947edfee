"""Ownership: a principal that is bound to an owner reaches that owner's threads only, for reading and for writing.

Each request of such a principal first reads the items of the threads that it names. Nothing that the client sends, and
nothing that this process remembers, says whose a thread is now (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.schema import OWNER
from langgraph.checkpoint.dynamodb._operations.entries import owner_keys, with_owner
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch
from langgraph.checkpoint.dynamodb._runtime.cache import CachedThread
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.principals import threads_of
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden
from langgraph.checkpoint.dynamodb.protocol import Thread

_Threads = Mapping[str, Item | None]


@dataclass(frozen=True)
class Admitted:
    """A request as far as the threads that it names exist."""

    request: wire.Message
    pinned: CachedThread | None = None
    """The state under which the request may store something in its thread."""


def admitted(storage: Storage, owner: str, request: wire.Message) -> Op[Admitted | None]:
    """Return a request as far as the threads that it names exist; `None` if nothing is left of it.

    A thread that the request may create is created here, with its owner: it might become another's meanwhile.

    Args:
        storage: The storage of the service.
        owner: The owner that the request's principal is bound to.
        request: The request.

    Raises:
        ProblemError: The request names another owner, or a thread that is not this owner's.
        CheckpointNotFoundError: The request asks for the rest of a history whose thread is gone.
    """
    keys = owner_keys(storage, owner)
    named = getattr(request, "owner", None)
    if named is not None and named != owner:
        raise forbidden("this names another owner than these credentials are bound to; leave owner out")
    threads = yield from _read(storage, filter(None, threads_of(request)))
    _check(threads, keys)
    absent = {thread_id for thread_id, item in threads.items() if item is None}
    stored = _stored_by(request)
    if absent - {stored}:
        return _without(request, absent)
    if stored is None:
        return Admitted(request)
    thread = None if stored in absent else Thread.parse(threads[stored] or {})
    if thread is None or thread.is_pending:
        root = items.partition_of(stored)
        yield from ensure_epoch(with_owner(storage, root, owner), root)
        # Somebody else may have created it before.
        threads = yield from _read(storage, [stored])
        _check(threads, keys)
        thread = Thread.parse(threads[stored] or {})
    # If that thread is deleted and becomes another's meanwhile, nothing that the request stores is ever committed.
    return Admitted(request, CachedThread(thread.epoch, thread.life))


def _read(storage: Storage, thread_ids: Iterable[str]) -> Op[_Threads]:
    """Read thread items, strongly consistent; `None` for a thread that does not exist, or is dead and nobody's."""
    roots = {each: items.partition_of(each).root for each in dict.fromkeys(thread_ids)}
    found = yield from gather([storage.table.get(root, items.THREAD) for root in roots.values()])
    now = storage.clock()
    return {
        thread_id: item if item is not None and (OWNER in item or Thread.parse(item).is_alive(now)) else None
        for thread_id, item in zip(roots, found, strict=True)
    }


def _check(threads: _Threads, keys: Collection[str]) -> None:
    if any(item is not None and items.text(item, OWNER) not in keys for item in threads.values()):
        raise forbidden(
            "this names a thread of another owner than these credentials are bound to, or one without an owner; an"
            " operator names its owner by set_thread"
        )


def _stored_by(request: Any) -> str | None:
    """Return the thread in which a request stores something. It is created if it does not exist."""
    if isinstance(request, wire.CopyThreadRequest):
        return request.target_thread_id
    return (
        request.thread_id
        if isinstance(request, (wire.PutRequest, wire.PutWritesRequest, wire.SetThreadRequest))
        else None
    )


def _without(request: wire.Message, absent: Collection[str]) -> Admitted | None:
    """Return a request without the threads that do not exist; `None` if it needs them."""
    if isinstance(request, wire.LockRequest):
        # A run takes the lock before its first checkpoint creates the thread.
        return Admitted(request)
    if isinstance(request, wire.DeltaChannelHistoryRequest) and request.after is not None:
        # Nothing would be taken for the end of what the pages before had.
        raise CheckpointNotFoundError(
            f"thread {request.thread_id!r} was deleted while its history was read; retry the call"
        )
    if not isinstance(request, wire.PruneRequest):
        return None
    kept = [each for each in request.thread_ids if each not in absent]
    return Admitted(request.model_copy(update={"thread_ids": kept})) if kept else None
