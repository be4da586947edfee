"""Ownership: a principal that is bound to an owner reaches that owner's threads only, for reading and for writing.

Each request of such a principal first reads the items of the threads that it names. Nothing that the client sends, and
nothing that this process remembers, says whose a thread is now (docs/decisions/0024).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.schema import OWNER
from langgraph.checkpoint.dynamodb._operations.entries import owner_keys
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden
from langgraph.checkpoint.dynamodb.gateway.stored import entry_item
from langgraph.checkpoint.dynamodb.protocol import Thread

_Threads = Mapping[str, Item | None]


def admitted(
    storage: LocalStorage, owner: str, endpoint: Endpoint, request: wire.Message
) -> Op[wire.Message | None]:
    """Return a request as far as the threads that it names exist; `None` if nothing is left of it.

    A thread that the request may create is created here, with its owner: it might become another's meanwhile.

    Args:
        storage: The storage of the service.
        owner: The owner that the request's principal is bound to.
        endpoint: The endpoint.
        request: The request.

    Raises:
        ProblemError: The request names another owner, or a thread that is not this owner's.
    """
    keys = owner_keys(storage, owner)
    named = request.owner if isinstance(request, wire.Threads) else None
    entry: wire.Entry | None = getattr(request, "entry", None)
    if entry is not None:
        named = entry.owner
    if (entry is not None or isinstance(request, wire.Threads)) and (
        named is None or items.owner_key(named) not in keys
    ):
        raise forbidden(
            "this names another owner than these credentials are bound to, or none; if the client encrypts, give it and"
            " the gateway's checkpointer the same owner_key"
        )
    threads = yield from _read(storage, filter(None, endpoint.threads(request)))
    _check(threads, keys)
    absent = {thread_id for thread_id, item in threads.items() if item is None}
    new = _created_by(request)
    if absent - {new}:
        return _without(request, absent)
    if new in absent:
        threads = yield from _created(storage, new, entry)
        _check(threads, keys)
    return _under(request, threads)


def _read(storage: LocalStorage, thread_ids: Iterable[str]) -> Op[_Threads]:
    """Read thread items, strongly consistent; `None` for a thread that does not exist, or has expired."""
    roots = {each: items.partition_of(each).root for each in dict.fromkeys(thread_ids)}
    found = yield from gather([storage.table.get(root, items.THREAD) for root in roots.values()])
    now = storage.clock()
    return {
        thread_id: None if item is None or items.is_expired(item, now) else item
        for thread_id, item in zip(roots, found, strict=True)
    }


def _check(threads: _Threads, keys: Collection[str]) -> None:
    if any(item is not None and items.text(item, OWNER) not in keys for item in threads.values()):
        raise forbidden(
            "this names a thread of another owner than these credentials are bound to, or one without an owner; an"
            " operator names its owner by set_thread"
        )


def _created_by(request: Any) -> str | None:
    """Return the thread that a request creates if it does not exist."""
    if isinstance(request, wire.CopyThread):
        return request.target_thread_id
    return request.thread_id if isinstance(request, (wire.NewSegments, wire.SetThread)) else None


def _created(storage: LocalStorage, thread_id: str, entry: wire.Entry | None) -> Op[_Threads]:
    """Create a thread with its owner, and read it: somebody else may have created it before."""
    if entry is None:
        raise forbidden(
            "this creates a thread, and credentials that are bound to an owner have to name the owner of a new thread;"
            " send its entry"
        )
    root = items.partition_of(thread_id)
    item = entry_item(root, entry)
    yield from ensure_epoch(replace(storage, entry=lambda: item), root)
    return (yield from _read(storage, [thread_id]))


def _without(request: wire.Message, absent: Collection[str]) -> wire.Message | None:
    """Return a request without the threads that do not exist; `None` if it needs them."""
    if not isinstance(request, (wire.Prune, wire.ThreadStatus)):
        return None
    kept = [each for each in request.thread_ids if each not in absent]
    return request.model_copy(update={"thread_ids": kept}) if kept else None


def _under(request: wire.Message, threads: _Threads) -> wire.Message:
    """Return a request that stores something under the epoch of the thread that was checked.

    If that thread is deleted and becomes another's meanwhile, nothing that the request stores is ever committed.
    """
    if not isinstance(request, wire.NewSegments) or request.thread is not None:
        return request
    thread = Thread.parse(threads[request.thread_id] or {})
    if thread.is_pending:
        return request
    hint = {"epoch": thread.epoch, "ttl_seconds": thread.ttl_seconds}
    return request.model_copy(update={"thread": wire.ThreadHint.model_validate(hint)})
