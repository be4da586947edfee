"""The saver with one rule of an operation broken. What the rule is for shows in the test that catches the mutant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations import (
    commit,
    commit_writes,
    copy,
    draft,
    put,
    put_writes,
    reads,
    threads,
)
from langgraph.checkpoint.dynamodb._operations.commit_writes import TaskWrites
from langgraph.checkpoint.dynamodb._runtime.memory import Memory, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op

Mutation: TypeAlias = Callable[[pytest.MonkeyPatch], None]


def unprocessed_writes_are_dropped(patch: pytest.MonkeyPatch) -> None:
    """A batch of writes is sent once, whatever comes back."""
    until_processed = Table._until_processed

    def once(
        table: Table, method: str, left: Sequence[Any], requests: Any, left_over: Callable[[Any], list[Any]]
    ) -> Op[None]:
        def nothing(response: Any) -> list[Any]:
            return left_over(response) if method == "batch_get_item" else []

        yield from until_processed(table, method, left, requests, nothing)

    patch.setattr(Table, "_until_processed", once)


def new_versions_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """A put inherits what has its parent's version, though it was given as new."""
    is_inherited = put._is_inherited

    def by_version(request: Any, parent: Any, name: str) -> bool:
        return is_inherited(replace(request, new_channels=frozenset()), parent, name)

    patch.setattr(put, "_is_inherited", by_version)


def heads_are_put_without_a_condition(patch: pytest.MonkeyPatch) -> None:
    """A commit takes the place of whatever is there."""

    def put_head(table: Table, head: Item) -> Op[None]:
        yield from table.send("put_item", Item=head)

    patch.setattr(commit, "_put_head", put_head)


def uploads_take_their_time(patch: pytest.MonkeyPatch) -> None:
    """A put commits what it uploaded long ago."""
    patch.setattr(commit, "UPLOAD_SECONDS_MAX", math.inf)


def idle_epochs_count(patch: pytest.MonkeyPatch) -> None:
    """A look takes an epoch that has not begun for the thread's."""

    def look(table: Table, at: Partition, _epoch: bytes | None) -> Op[ThreadEntry | None]:
        thread = yield from table.get(at.root, items.THREAD)
        return None if thread is None else threads._remembered(table, at, thread)

    patch.setattr(commit, "look_at_thread", look)


def renewals_make_items(patch: pytest.MonkeyPatch) -> None:
    """A renewal has no condition."""

    def renew(
        table: Table, at: Item, expression: str, expires_at: int | None, names: dict[str, str], values: Item
    ) -> Op[bool]:
        if expires_at is not None:
            values = {":expiry": {"N": str(expires_at)}, **values}
        yield from table.update(at, expression, names={"#expiry": TTL_ATTRIBUTE, **names}, values=values)
        return True

    patch.setattr(threads, "_renew", renew)


def segments_that_have_gone_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """What is reused is renewed where it is there, and named all the same."""
    renew_segments = threads.renew_segments

    def renew(table: Table, at: Partition, ids: Iterable[bytes], expires_at: int | None) -> Op[set[bytes]]:
        yield from renew_segments(table, at, ids, expires_at)
        return set()

    patch.setattr(draft, "renew_segments", renew)


def the_first_special_write_wins(patch: pytest.MonkeyPatch) -> None:
    """Within one call, a special write stays that another one follows."""
    serialize = put_writes.serialize

    def first_ones(codec: Any, writes: Sequence[tuple[str, Any]], task_path: str) -> Any:
        regular, special = serialize(codec, writes, task_path)
        return regular, special | serialize(codec, writes[::-1], task_path)[1]

    patch.setattr(put_writes, "serialize", first_ones)


def later_writes_prolong_a_tasks_item(patch: pytest.MonkeyPatch) -> None:
    """Each call gives the item of its task a new expiry, whatever that needs."""
    store_parts = commit_writes._store_parts

    def prolong(table: Table, writes: TaskWrites, epoch: bytes | None) -> Op[Any]:
        found = yield from store_parts(table, writes, epoch)
        yield from threads.renew(table, items.key(writes.at.pk, writes.sk), table.expires_at(2))
        return found

    patch.setattr(commit_writes, "_store_parts", prolong)


def writes_reuse_across_epochs(patch: pytest.MonkeyPatch) -> None:
    """Writes name what their checkpoint had under whatever epoch it is remembered."""
    patch.setattr(put_writes, "_safe", lambda head, _epoch: head)


def anybody_releases(patch: pytest.MonkeyPatch) -> None:
    """A release takes any claim, whose ever it is."""
    release = threads.release

    def release_any(table: Table, root: Partition, claim: bytes, **options: bool) -> Op[None]:
        thread = yield from table.get(root.pk, items.THREAD)
        claim = claim if thread is None else items.binary(thread, items.CLAIM)
        yield from release(table, root, claim, **options)

    patch.setattr("langgraph.checkpoint.dynamodb._operations.collect.release", release_any)


def what_is_remembered_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """A reader that remembers what a checkpoint needs does not ask whether it counts."""
    patch.setattr(reads, "_is_known_to_count", lambda *_: True)


def expiries_are_remembered_across_epochs(patch: pytest.MonkeyPatch) -> None:
    """What was known of a segment before a deletion is believed after it."""
    segments, remember = Memory.segments, Memory.remember_segments
    patch.setattr(Memory, "segments", lambda self, pk, _epoch, ids: segments(self, pk, b"", ids))
    patch.setattr(Memory, "remember_segments", lambda self, pk, _epoch, new: remember(self, pk, b"", new))


def copies_begin_with_the_oldest_head(patch: pytest.MonkeyPatch) -> None:
    """A copy stores its heads in the order in which they were put."""
    copy_segments_of = copy._Copy._copy_segments_of

    def oldest_first(self: Any, groups: Sequence[Any]) -> Op[list[Any]]:
        return (yield from copy_segments_of(self, groups))[::-1]

    patch.setattr(copy._Copy, "_copy_segments_of", oldest_first)


def copies_keep_segment_ids(patch: pytest.MonkeyPatch) -> None:
    """The segments of a copy have the ids that they have in its source."""
    patch.setattr(copy._Copy, "_new_id", lambda _self, segment_id: segment_id)
