"""The saver with one rule of an operation broken. What the rule is for shows in the test that catches the mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from unittest import mock

import pytest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._operations import (
    collect,
    copy,
    delta_history,
    get,
    item_builder,
    put,
    put_writes,
    reads,
    renew,
    thread_item,
)
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory
from langgraph.checkpoint.dynamodb._operations.needs import Before, Needs
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments, NamespaceReader, StoredCheckpoint
from langgraph.checkpoint.dynamodb._runtime.cache import CachedThread, SharedReads
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.protocol import Change

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
    patch.setattr(protocol, "put_head", lambda _epoch: Change("", "", {}, {}))


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
        storage: Storage, _inventory: object, item: Item, change_of: Callable[[Item], Change | None]
    ) -> Op[None]:
        change = change_of(item)
        if change is not None:
            yield from storage.table.try_update(items.key_of(item), change)

    patch.setattr(collect, "_restamp_item", once)


def settled_heads_are_replaced_at_once(patch: pytest.MonkeyPatch) -> None:
    """A put replaces a head without a mark that deletions pass over."""
    patch.setattr(protocol, "is_passed_over", lambda _head, _epoch: False)


def settled_heads_are_of_any_life(patch: pytest.MonkeyPatch) -> None:
    """A head that was settled is committed in each later life of its thread."""
    patch.setattr(protocol, "is_of_one_life", lambda _epoch, _other: True)


def uploads_take_their_time(patch: pytest.MonkeyPatch) -> None:
    """A put commits what it uploaded long ago."""
    patch.setattr(protocol, "is_too_late", lambda _started_at, _now: False)


def pending_epochs_are_confirmed(patch: pytest.MonkeyPatch) -> None:
    """A put is acknowledged under an epoch that is pending."""

    def confirm(storage: Storage, at: Partition, _epoch: bytes) -> Op[CachedThread | None]:
        thread = yield from thread_item.read_thread(storage, at)
        return None if thread is None else thread_item.cached_thread(storage, at, thread)

    patch.setattr(put, "confirm_epoch", confirm)


def segments_that_have_gone_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """What is reused is extended where it is there, and named all the same."""
    extend_segments = thread_item.extend_segments

    def extend(
        storage: Storage, at: Partition, ids: Iterable[bytes], expires_at: int | None
    ) -> Op[set[bytes]]:
        yield from extend_segments(storage, at, ids, expires_at)
        return set()

    patch.setattr(item_builder, "extend_segments", extend)


def the_first_special_write_wins(patch: pytest.MonkeyPatch) -> None:
    """Within one call, a special write stays that another one follows."""
    serialize = put_writes.serialize

    def first_ones(codec: Any, writes: Sequence[tuple[str, Any]], task_path: str) -> Any:
        regular, special = serialize(codec, writes, task_path)
        return regular, special | serialize(codec, writes[::-1], task_path)[1]

    patch.setattr(put_writes, "serialize", first_ones)


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


def what_is_remembered_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """A reader that remembers what a checkpoint needs does not ask whether it counts."""

    def read_all(loaded: LoadedSegments, storage: Storage, checkpoint: StoredCheckpoint) -> Op[set[bytes]]:
        loaded.is_committed = loaded.epoch is not None
        return (yield from loaded.read(storage, checkpoint.ids(), from_cache=loaded.is_committed))

    patch.setattr(LoadedSegments, "read_all", read_all)


def copies_end_with_the_newest_head(patch: pytest.MonkeyPatch) -> None:
    """A copy stores its newest head last."""
    copy_segments_of = copy._Copy._copy_segments_of

    def newest_last(self: Any, checkpoints: Sequence[Any]) -> Op[list[Any]]:
        newest, *others = yield from copy_segments_of(self, checkpoints)
        return [*others, newest]

    patch.setattr(copy._Copy, "_copy_segments_of", newest_last)


def copies_keep_segment_ids(patch: pytest.MonkeyPatch) -> None:
    """The segments of a copy have the ids that they have in its source."""
    patch.setattr(copy._Copy, "_new_id", lambda _self, segment_id: segment_id)


def abandoned_writes_go_though_their_head_has_come(patch: pytest.MonkeyPatch) -> None:
    """A deletion does not look again whether writes without a head have one now."""
    abandoned_writes, known = collect.abandoned_writes, dict[Partition, set[str]]()

    def as_at_first(inventory: Inventory, now: float) -> set[str]:
        return known.setdefault(inventory.partition, abandoned_writes(inventory, now))

    patch.setattr(collect, "abandoned_writes", as_at_first)


def abandoned_writes_go_though_somebody_adds_to_them(patch: pytest.MonkeyPatch) -> None:
    """A deletion deletes abandoned writes without a condition."""
    patch.setattr(protocol, "delete_untouched", lambda _writes: Change("", "", {}, {}))


def pages_without_heads_are_read_on_from(patch: pytest.MonkeyPatch) -> None:
    """The newest checkpoint is looked for on a second page, behind one that has writes only."""

    def find_newest(storage: Storage, at: Partition, *, below: str | None) -> Op[StoredCheckpoint | None]:
        found = yield from NamespaceReader(storage, at, below=below).page()
        return found[0] if found else None

    patch.setattr(get, "find_newest", find_newest)


def expired_ancestors_are_served(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint is rebuilt from whatever is still in the table."""
    live = reads._live

    def whatever_is_there(
        storage: Storage, head: Item, writes: Sequence[Item], *, as_ancestor: bool
    ) -> StoredCheckpoint | None:
        return (
            StoredCheckpoint(head, writes) if as_ancestor else live(storage, head, writes, as_ancestor=False)
        )

    patch.setattr(reads, "_live", whatever_is_there)


def what_is_kept_for_others_is_rebuilt(patch: pytest.MonkeyPatch) -> None:
    """The history of a checkpoint that has expired is given, as long as later ones are rebuilt from it."""
    find = reads.find

    def find_kept(
        storage: Storage, at: Partition, checkpoint_id: str, **_: Any
    ) -> Op[StoredCheckpoint | None]:
        return (yield from find(storage, at, checkpoint_id, as_ancestor=True))

    patch.setattr(delta_history, "find", find_kept)


def reads_that_were_sent_are_shared(patch: pytest.MonkeyPatch) -> None:
    """A confirmation takes the answer of a read that was sent before its commit."""
    join = SharedReads.join

    def join_late(reads: SharedReads, *arguments: Any) -> Any:
        read, leads, sent = join(reads, *arguments)
        return (read, leads, sent) if sent is None else (sent, False, None)

    patch.setattr(SharedReads, "join", join_late)


def a_cached_activity_counts(patch: pytest.MonkeyPatch) -> None:
    """A thread is taken for active because another operation of the process is about to note that."""
    touched = thread_item._touched

    def touched_by_cache(storage: Storage, partition: Partition, epoch: bytes, thread: Any) -> Any:
        known = storage.cache.thread(partition.root)
        if known is not None and known.last_active is not None and thread is not None:
            thread = replace(thread, last_active=known.last_active)
        return touched(storage, partition, epoch, thread)

    patch.setattr(thread_item, "_touched", touched_by_cache)


def a_touch_is_given_up(patch: pytest.MonkeyPatch) -> None:
    """A put that a deletion overtakes does not touch the thread that the deletion keeps."""
    patch.setattr(thread_item, "_touch_kept", lambda *_: iter(()))


def puts_ignore_renewals(patch: pytest.MonkeyPatch) -> None:
    """A put does not look whether what is stored in its thread is kept for longer now."""

    def same_epoch(_storage: Storage, thread: CachedThread, seen: CachedThread | None) -> bool:
        return seen is not None and protocol.is_reusable(thread.epoch, seen.epoch)

    patch.setattr(put, "is_confirmed", same_epoch)


def renewals_keep_the_newest_only(patch: pytest.MonkeyPatch) -> None:
    """What a run from an older root checkpoint needs of a subgraph is not renewed."""
    patch.setattr(Needs, "before", lambda _: Before())


def former_lives_are_shown(patch: pytest.MonkeyPatch) -> None:
    """Readers see whatever is stored of a thread that is alive."""
    patch.setattr(reads, "is_committed", lambda *_: True)


def dead_threads_go_on(patch: pytest.MonkeyPatch) -> None:
    """Any call goes on with a dead thread."""

    def goes_on(*_: Any) -> Op[bool]:
        yield from ()
        return True

    patch.setattr(renew, "_goes_on", goes_on)


def copies_are_shown_as_they_grow(patch: pytest.MonkeyPatch) -> None:
    """The thread item of a copy says from the start that it is alive."""
    begin_copy = protocol.begin_copy

    def alive(*arguments: Any) -> Change:
        change = begin_copy(*arguments)
        return change._replace(expression=change.expression.replace("#alive = :alive", "#alive = :kept"))

    patch.setattr(protocol, "begin_copy", alive)


def renewals_trust_what_they_have_read(patch: pytest.MonkeyPatch) -> None:
    """A renewal extends whatever has replaced what it has read."""
    unchanged = protocol._unchanged
    patch.setattr(protocol, "_unchanged", lambda *_: unchanged())
