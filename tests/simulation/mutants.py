"""The saver with one rule of its write order broken. What the rules are for shows when a mutant is caught."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Life, Partition
from langgraph.checkpoint.dynamodb._operations import collect, put, put_writes, thread_item
from langgraph.checkpoint.dynamodb._operations.collect import Inventory, _Namespace
from langgraph.checkpoint.dynamodb._operations.thread_item import Claim
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import CachedThread, Storage
from langgraph.checkpoint.dynamodb.protocol import Change

Mutation: TypeAlias = Callable[[pytest.MonkeyPatch], None]


def replace_for(patch: pytest.MonkeyPatch, user: ModuleType, used: ModuleType, name: str, by: Any) -> None:
    """Replace what one module calls in another, for that one alone."""
    patch.setattr(user, used.__name__.rpartition(".")[2], SimpleNamespace(**{**vars(used), name: by}))


def head_first(patch: pytest.MonkeyPatch) -> None:
    """A put commits its head before what the head names is stored."""
    store, confirm = put.store_segments, thread_item.confirm_epoch
    left: dict[Storage, Any] = {}

    def store_nothing(storage: Storage, *arguments: Any) -> Op[bool]:
        left[storage] = arguments
        yield from ()
        return True

    def confirm_late(storage: Storage, at: Partition, epoch: bytes) -> Op[CachedThread | None]:
        yield from store(storage, *left.pop(storage))
        return (yield from confirm(storage, at, epoch))

    patch.setattr(put, "store_segments", store_nothing)
    replace_for(patch, put, thread_item, "confirm_epoch", confirm_late)


def _confirm_blindly(storage: Storage, _at: Partition, epoch: bytes) -> Op[CachedThread | None]:
    yield from ()
    return CachedThread(epoch, Life(storage.ttl_seconds))


def put_does_not_confirm(patch: pytest.MonkeyPatch) -> None:
    """A put does not confirm the thread's epoch after the commit."""
    replace_for(patch, put, thread_item, "confirm_epoch", _confirm_blindly)


def no_reread(patch: pytest.MonkeyPatch) -> None:
    """A deletion trusts what it read at first, and does not read again what is left."""

    def subtract(_storage: Storage, _claim: Claim, namespaces: Sequence[_Namespace]) -> Op[list[Inventory]]:
        for each in namespaces:
            before, gone = each.before, each.gone
            heads = {name: head for name, head in before.heads.items() if name not in gone}
            writes = {name: some for name, some in before.writes.items() if name not in gone}
            each.after = replace(before, heads=heads, writes=writes)
            each.after.indexes = before.indexes
        yield from ()
        return []

    patch.setattr(collect, "_read_again", subtract)


def what_took_a_heads_place_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    """A deletion restamps what it has read, and does not care for what it is now."""

    def once(
        storage: Storage,
        _claim: Claim,
        _inventory: object,
        item: Item,
        change_of: Callable[[Item], Change | None],
    ) -> Op[None]:
        change = change_of(item)
        if change is not None:
            yield from storage.table.try_update(items.key_of(item), change)

    patch.setattr(collect, "_restamp_item", once)


def writes_reuse_across_epochs(patch: pytest.MonkeyPatch) -> None:
    """Writes name what their checkpoint had under whatever epoch it is remembered."""
    patch.setattr(put_writes, "_safe", lambda head, _thread: head)


def anybody_releases(patch: pytest.MonkeyPatch) -> None:
    """A release takes any claim, whose ever it is."""
    release = thread_item.release

    def release_any(storage: Storage, root: Partition, claim: bytes, **options: bool) -> Op[None]:
        thread = yield from thread_item.read_thread(storage, root)
        yield from release(storage, root, claim if thread is None else thread.claim or claim, **options)

    patch.setattr(thread_item, "release", release_any)
