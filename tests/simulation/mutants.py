"""The saver with one rule of its write order broken. What the rules are for shows when a mutant is caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._operations import (
    collect,
    commit,
    commit_writes,
    draft,
    threads,
)
from langgraph.checkpoint.dynamodb._operations.collect import Choice
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, take_inventory
from langgraph.checkpoint.dynamodb._operations.threads import Claim
from langgraph.checkpoint.dynamodb._runtime.memory import ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather

Mutation: TypeAlias = Callable[[pytest.MonkeyPatch], None]

Inventories: TypeAlias = dict[tuple[Table, str], Inventory]


def head_first(patch: pytest.MonkeyPatch) -> None:
    """A put commits its head before what the head names is stored."""
    store, look = draft.store_needs, threads.look_at_thread
    left: dict[Table, Any] = {}

    def store_nothing(table: Table, *draft: Any) -> Op[bool]:
        left[table] = draft
        yield from ()
        return True

    def look_late(table: Table, at: Partition, epoch: bytes | None) -> Op[ThreadEntry | None]:
        yield from store(table, *left.pop(table))
        return (yield from look(table, at, epoch))

    patch.setattr(commit, "store_needs", store_nothing)
    patch.setattr(commit, "look_at_thread", look_late)


def _look_away(table: Table, _at: Partition, epoch: bytes | None) -> Op[ThreadEntry | None]:
    yield from ()
    return None if epoch is None else ThreadEntry(epoch, table.ttl_seconds)


def put_does_not_look(patch: pytest.MonkeyPatch) -> None:
    """A put does not look at the thread's epoch after the commit."""
    patch.setattr(commit, "look_at_thread", _look_away)


def writes_do_not_look(patch: pytest.MonkeyPatch) -> None:
    """Nor do writes that need segments."""
    patch.setattr(commit_writes, "look_at_thread", _look_away)


def _read_once(patch: pytest.MonkeyPatch, left_over: Callable[..., Op[Sequence[Inventory]]]) -> None:
    """Let a deletion take what `left_over` says, before the epoch moves, for what is left after that."""
    delete, take = collect._delete_checkpoints, take_inventory
    left: Inventories = {}

    def delete_and_note(table: Table, before: Sequence[Inventory], gone: Choice) -> Op[None]:
        yield from delete(table, before, gone)
        for each in (yield from left_over(take, table, before, gone)):
            left[table, each.at.pk] = each

    def take_noted(table: Table, at: Partition, **options: bool) -> Op[Inventory]:
        if (table, at.pk) in left:
            return left.pop((table, at.pk))
        return (yield from take(table, at, **options))

    patch.setattr(collect, "_delete_checkpoints", delete_and_note)
    patch.setattr(collect, "take_inventory", take_noted)


def no_reread(patch: pytest.MonkeyPatch) -> None:
    """A deletion trusts what it read at first, and does not read again what is left."""

    def subtract(
        _take: Any, _table: Table, before: Sequence[Inventory], gone: Choice
    ) -> Op[Sequence[Inventory]]:
        yield from ()
        return [
            replace(
                each,
                heads={name: head for name, head in each.heads.items() if name not in gone[each.at.pk]},
                writes={name: some for name, some in each.writes.items() if name not in gone[each.at.pk]},
            )
            for each in before
        ]

    _read_once(patch, subtract)


def reread_before_the_epoch_moves(patch: pytest.MonkeyPatch) -> None:
    """A deletion reads again what is left, and gives the thread a new epoch only then."""

    def read(take: Any, table: Table, before: Sequence[Inventory], _gone: Choice) -> Op[Sequence[Inventory]]:
        return (yield from gather([take(table, each.at) for each in before]))

    _read_once(patch, read)


def no_exclusion(patch: pytest.MonkeyPatch) -> None:
    """All deletions of a thread take the same claim, so that none keeps another one out."""
    anyone = b"anyone"
    take, end, settle, release = threads.take_claim, threads.end_epoch, threads.settle, threads.release

    def take_any(table: Table, root: Partition, _token: bytes = anyone) -> Op[Claim]:
        return (yield from take(table, root, anyone))

    def release_any(table: Table, root: Partition, _token: bytes, **options: bool) -> Op[None]:
        yield from release(table, root, anyone, **options)

    def end_any(table: Table, claim: Claim) -> Op[bytes]:
        # Another deletion may have let go of it.
        return (yield from end(table, (yield from take_any(table, claim.root))))

    def settle_any(table: Table, claim: Claim, **options: bool) -> Op[None]:
        yield from settle(table, (yield from take_any(table, claim.root)), **options)

    patch.setattr(collect, "take_claim", take_any)
    patch.setattr(collect, "end_epoch", end_any)
    patch.setattr(collect, "settle", settle_any)
    patch.setattr(collect, "release", release_any)
