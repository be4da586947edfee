"""The saver with one rule of its write order broken. What the rules are for shows when a mutant is caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from unittest import mock

import pytest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Life, Partition
from langgraph.checkpoint.dynamodb._operations import (
    collect,
    put,
    put_writes,
    thread_item,
)
from langgraph.checkpoint.dynamodb._operations.collect import _Namespace
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory
from langgraph.checkpoint.dynamodb._operations.thread_item import Claim
from langgraph.checkpoint.dynamodb._runtime.cache import CachedThread
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.protocol import Change, Thread

Mutation: TypeAlias = Callable[[pytest.MonkeyPatch], None]


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
    patch.setattr(put, "confirm_epoch", confirm_late)


def _confirm_blindly(storage: Storage, _at: Partition, epoch: bytes) -> Op[CachedThread | None]:
    yield from ()
    return CachedThread(epoch, Life(storage.ttl_seconds))


def put_does_not_confirm(patch: pytest.MonkeyPatch) -> None:
    """A put does not confirm the thread's epoch after the commit."""
    patch.setattr(put, "confirm_epoch", _confirm_blindly)


def writes_do_not_confirm(patch: pytest.MonkeyPatch) -> None:
    """Nor do writes that need segments."""
    patch.setattr(put_writes, "confirm_epoch", _confirm_blindly)


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


def reread_before_the_epoch_ends(patch: pytest.MonkeyPatch) -> None:
    """A deletion reads again what is left, and ends the epoch only then."""
    delete, read_again = collect._delete_checkpoints, collect._read_again
    since: dict[int, list[Inventory]] = {}

    def delete_and_read(storage: Storage, claim: Claim, namespaces: Sequence[_Namespace]) -> Op[None]:
        yield from delete(storage, claim, namespaces)
        since[id(namespaces)] = yield from read_again(storage, claim, namespaces)

    def read_nothing(
        _storage: Storage, _claim: Claim, namespaces: Sequence[_Namespace]
    ) -> Op[list[Inventory]]:
        yield from ()
        return since.pop(id(namespaces))

    patch.setattr(collect, "_delete_checkpoints", delete_and_read)
    patch.setattr(collect, "_read_again", read_nothing)


def no_exclusion(patch: pytest.MonkeyPatch) -> None:
    """All deletions of a thread take the same claim, so that none keeps another one out."""
    anyone = b"anyone"
    acquire, end, finalize = thread_item.acquire_claim, thread_item.end_epoch, thread_item.finalize
    release = thread_item.release

    def acquire_any(
        storage: Storage, root: Partition, _token: bytes = anyone, *, resets: bool = False
    ) -> Op[Claim]:
        return (yield from acquire(storage, root, anyone, resets=resets))

    def release_any(storage: Storage, root: Partition, _token: bytes, **options: bool) -> Op[None]:
        yield from release(storage, root, anyone, **options)

    def end_any(storage: Storage, claim: Claim) -> Op[Thread]:
        # Another deletion may have let go of it.
        return (yield from end(storage, (yield from acquire_any(storage, claim.root))))

    def finalize_any(storage: Storage, claim: Claim, _thread: Thread, **options: bool) -> Op[None]:
        claim = yield from acquire_any(storage, claim.root)
        yield from finalize(storage, claim, claim.thread, **options)

    patch.setattr(collect, "acquire_claim", acquire_any)
    patch.setattr(collect, "end_epoch", end_any)
    patch.setattr(collect, "finalize", finalize_any)
    patch.setattr(collect, "release", release_any)


def nothing_is_restamped(patch: pytest.MonkeyPatch) -> None:
    """A deletion leaves what it keeps under the epoch that it ended."""

    def leave(_storage: Storage, _claim: Claim, _left: object, _thread: Thread) -> Op[None]:
        yield from ()

    patch.setattr(collect, "_restamp", leave)


def previous_epochs_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Only what carries the thread's epoch is committed, though a deletion has ended that of the rest and died."""
    patch.setattr(Thread, "commits", lambda self, epoch: epoch == self.epoch)


def heads_are_put_without_a_condition(patch: pytest.MonkeyPatch) -> None:
    """A commit takes the place of whatever is there."""
    patch.setattr(protocol, "put_head", lambda _epoch, **_options: Change("", "", {}, {}))


def heads_are_replaced_under_an_epoch_that_ended(patch: pytest.MonkeyPatch) -> None:
    """A put replaces another process's head, whatever became of its own epoch."""
    patch.setattr(put, "read_thread", lambda _storage, _at: _current())


def _current() -> Op[Any]:
    yield from ()
    return _Current()


class _Current:
    """A thread that has every epoch."""

    @property
    def epoch(self) -> Any:
        return mock.ANY


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


def pending_epochs_are_confirmed(patch: pytest.MonkeyPatch) -> None:
    """A put is acknowledged under an epoch that is pending."""

    def confirm(storage: Storage, at: Partition, _epoch: bytes) -> Op[CachedThread | None]:
        thread = yield from thread_item.read_thread(storage, at)
        return None if thread is None else thread_item.cached_thread(storage, at, thread)

    patch.setattr(put, "confirm_epoch", confirm)


def writes_reuse_across_epochs(patch: pytest.MonkeyPatch) -> None:
    """Writes name what their checkpoint had under whatever epoch it is remembered."""
    patch.setattr(put_writes, "_safe", lambda head, _thread: head)


def anybody_releases(patch: pytest.MonkeyPatch) -> None:
    """A release takes any claim, whose ever it is."""
    release = thread_item.release

    def release_any(storage: Storage, root: Partition, claim: bytes, **options: bool) -> Op[None]:
        thread = yield from thread_item.read_thread(storage, root)
        yield from release(storage, root, claim if thread is None else thread.claim or claim, **options)

    patch.setattr("langgraph.checkpoint.dynamodb._operations.collect.release", release_any)
