"""`put`, `put_if` and `delete`: one request stores or deletes a memory.

In this order: the partition's entry; segments and vectors of the new value; the memory's item, which commits it. Then
the segments and vectors of the old value are removed, and the entry is looked at again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.dynamodb._format import codec, items, limits, pricing
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._operations.compose import ItemBuilder
from langgraph.checkpoint.dynamodb._runtime.requests import conflicting_item
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import Change

from . import memory_items, partitions, reads, similarity
from .keys import Address, part_of, vector_sk
from .memory_items import ComposedMemory, Expected, pack_value
from .resources import INLINE_VALUE_BYTES_MAX, VALUE_BYTES_MAX, StoreStorage

# The bytes that a memory has beside its key and value: version, times, revision and the one before, without a ttl.
_PLAIN_BYTES = 94


@dataclass(frozen=True)
class Times:
    """The times of a memory that is imported: epoch microseconds, and its expiry in epoch seconds."""

    created_us: int
    updated_us: int
    expires_at: int | None
    """`None`: after its ttl, if it has one."""


@dataclass(frozen=True)
class NewMemory:
    """A value to store, which has been checked; or none, to delete what is there."""

    address: Address
    value: dict[str, Any] | None
    texts: Sequence[str] = ()
    """The texts of the value to embed."""
    ttl_seconds: int | None = None
    expected: Expected | None = None
    times: Times | None = None
    kept_seconds: int | None = None
    """For how long to leave a new tombstone, even where nothing lives, so that no put that is under way commits."""
    vectors: Sequence[similarity.NewVector] = ()
    """The vectors of its texts, once these are embedded."""
    token: str = ""
    """With what the revision begins that the value gets, so that a call that is repeated elsewhere is known again."""


def _as_it_is(operation: Op[Any]) -> Op[Any]:
    return operation


def put_all(
    storage: StoreStorage,
    new: Sequence[NewMemory],
    guard: Callable[[Op[Any]], Op[Any]] = _as_it_is,
) -> Op[list[Any]]:
    """Store and delete memories side by side; return their new revisions.

    Args:
        storage: The storage.
        new: The memories.
        guard: Wraps the operation for each memory. It may return an error instead of raising it.
    """
    packed = yield from gather([_packed(storage, each) for each in new])
    yield from partitions.register(storage, [each.address.pk for each in new if each.value is not None])
    puts = [guard(put(storage, each, raw)) for each, raw in zip(new, packed, strict=True)]
    with storage.listings.changing([each.address.namespace for each in new]):
        outcomes = yield from gather(puts)
    stored = {
        each.address.pk: position
        for position, (each, outcome) in enumerate(zip(new, outcomes, strict=True))
        if each.value is not None and isinstance(outcome, str)
    }
    registered = yield from gather([guard(partitions.stay_registered(storage, pk)) for pk in stored])
    for position, outcome in zip(stored.values(), registered, strict=True):
        # One put that is repeated is enough to look again.
        if outcome is not None:
            outcomes[position] = outcome
    return outcomes


def _packed(storage: StoreStorage, new: NewMemory) -> Op[bytes | None]:
    if new.value is None:
        return None
    name = f"value of memory {new.address.key!r}"
    raw = yield from work(partial(pack_value, storage.codec, new.value, name), codec.rough_bytes(new.value))
    if len(raw) > VALUE_BYTES_MAX:
        msg = f"{name} has {len(raw)} bytes, serialized, over the limit of {VALUE_BYTES_MAX}; split it"
        raise CheckpointerInputError(msg)
    return raw


def put(storage: StoreStorage, new: NewMemory, packed: bytes | None = None) -> Op[str | None]:
    """Store a memory in a partition that is registered, or delete one.

    Args:
        storage: The storage.
        new: The memory.
        packed: Its value, serialized by `memory_items.pack_value`; `None` for a deletion.

    Returns:
        The new revision; `None` if something else is there than was expected, or something newer than an import.

    Raises:
        ThreadBusyError: Other puts of the same memory kept interfering.
    """
    seen: Item = {}
    # Segments and vectors of the attempts before.
    unused: list[Item] = []
    for delay in _delays(storage, new.address):
        upload = yield from _upload(storage, new, packed)
        if storage.clock() - upload.began_at > limits.UPLOAD_SECONDS_MAX:
            # A sweep may take them for leftovers by the time of the commit.
            unused += upload.parts
            continue
        # The time of the commit: over what others store during an upload, an earlier time would never get through.
        change = _change(new, upload, storage.clock() + delay, seen)
        old: Item = {}
        conflict = yield from conflicting_item(_commit(storage, new.address, change, old, delay))
        if conflict is None:
            yield from similarity.remove(storage, [*(yield from reads.belongings(storage, old)), *unused])
            return upload.revision
        if conflict and memory_items.revision_of(conflict) == upload.revision:
            # The response to an earlier attempt was lost, and the old item with it.
            yield from similarity.remove(storage, [*(yield from reads.parts_of(storage, conflict)), *unused])
            return upload.revision
        unused += upload.parts
        is_over, revision = yield from _met(storage, new, upload.revision, conflict, unused)
        if is_over:
            return revision
        seen = conflict
    raise AssertionError("the delays end with an error")


def _delays(storage: StoreStorage, address: Address) -> Iterator[float]:
    """Yield the seconds to wait before each attempt, and raise once they are too many."""
    waited = 0.0
    for attempt in itertools.count():
        # The first repetition is at once: most of them are later than what the first attempt met.
        delay = storage.table.backoff(max(0, attempt - 1))
        if waited + delay > storage.table.retry_seconds:
            raise ThreadBusyError(
                f"memory {address.key!r} of namespace {address.namespace} is being written by other calls, of this"
                f" process or of others ({attempt} attempts, {waited:.0f} s of waiting); retry the call, or store less"
                " often under one key"
            )
        waited += delay
        yield delay


def _met(
    storage: StoreStorage, new: NewMemory, revision: str, found: Item, unused: Sequence[Item]
) -> Op[tuple[bool, str | None]]:
    """Tell whether a put is over whose condition failed on an item, empty if there is none, and its result."""
    if found and new.token and memory_items.revision_of(found).startswith(new.token):
        # An earlier call, or an attempt that came late, has stored this very value. What belongs to it stays.
        own = yield from reads.belongings(storage, found)
        yield from similarity.remove(storage, [each for each in unused if items.key_of(each) not in own])
        return True, memory_items.revision_of(found)
    live = found if found and not items.is_expired(found, storage.clock()) else None
    if not _may_replace(new, live):
        yield from similarity.remove(storage, unused)
        return True, None
    return new.value is None and live is None and new.kept_seconds is None, revision


def _may_replace(new: NewMemory, live: Item | None) -> bool:
    """Tell whether a put goes on over what its condition failed on: the clock of another process was ahead.

    An import goes on over an older memory only: one that was deleted or imported within the hour takes no segments that
    were stored before it was seen.

    Args:
        new: The put.
        live: The memory that is there; `None` if it has expired, or was deleted.
    """
    if new.expected is not None:
        return new.expected.revision == (None if live is None else memory_items.revision_of(live))
    return live is None or new.times is None or memory_items.updated_us(live) < new.times.updated_us


def _commit(storage: StoreStorage, address: Address, change: Change, old: Item, delay: float) -> Op[None]:
    """Change the item after a delay in seconds, and fill in the item that was there before."""
    response = yield from storage.table.update(
        address.item_key,
        change,
        delay_seconds=delay,
        ReturnValues="ALL_OLD",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    old.update(response.get("Attributes", {}))


def _change(new: NewMemory, upload: Upload, now: float, seen: Item) -> Change:
    """Return the change that commits a value, or a deletion, later than the item that a condition failed on."""
    times = new.times
    now_us = int(now * 1_000_000) if times is None else times.updated_us
    if seen and times is None:
        now_us = max(now_us, memory_items.changed_us(seen) + 1)
    if upload.memory is None:
        kept_seconds = new.kept_seconds or memory_items.TOMBSTONE_SECONDS
        return memory_items.bury(
            upload.revision, now_us, kept_seconds, now=now, seen=seen, expected=new.expected
        )
    created_us = None if times is None else times.created_us
    return memory_items.put_value(
        upload.memory, now_us, now=now, created_us=created_us, seen=seen, expected=new.expected
    )


class Upload(NamedTuple):
    """The segments and vectors of one attempt, which are stored, and what the memory's item gets."""

    revision: str
    began_at: float
    parts: list[Item]
    memory: ComposedMemory | None


def _upload(storage: StoreStorage, new: NewMemory, packed: bytes | None) -> Op[Upload]:
    """Compose a value, and store its segments and vectors."""
    # They belong to a revision, so each attempt, also of a repeated call, needs another one.
    revision = new.token + storage.rng.randbytes(8).hex()
    if packed is None:
        return Upload(revision, storage.clock(), [], None)
    composing = partial(_compose, storage, new, packed, revision, storage.clock())
    upload: Upload = yield from work(composing, len(packed))
    yield from storage.table.batch_write(puts=upload.parts)
    own = upload.parts[len(upload.parts) - len(new.vectors) :]
    yield from similarity.keep(storage, new.address, own, new.vectors)
    return upload


def _compose(storage: StoreStorage, new: NewMemory, packed: bytes, revision: str, now: float) -> Upload:
    """Return the segments and vectors of a new value, and what its item gets."""
    address, times = new.address, new.times
    belongs = {memory_items.PART_OF: {"S": part_of(address, revision)}}
    builder = ItemBuilder(storage, Partition("", "", address.pk), address.item_key, None, belongs)
    beside = pricing.item_bytes(address.item_key) + _PLAIN_BYTES
    part = builder.part(memory_items.VALUE, packed, INLINE_VALUE_BYTES_MAX, beside=beside)
    parts = [*builder.segments.values(), *_vectors(storage, new, revision)]
    expires_at = memory_items.expiry(new.ttl_seconds, now) if new.ttl_seconds else None
    if times is not None and times.expires_at is not None:
        expires_at = times.expires_at
    parts_until = None
    if parts and expires_at is not None:
        lifetimes = memory_items.PART_LIFETIMES * (new.ttl_seconds or 0)
        parts_until = max(expires_at, memory_items.expiry(lifetimes, now))
    memory = ComposedMemory(
        revision,
        part.attribute(address.sk),
        new.ttl_seconds,
        expires_at,
        parts_until,
        len(new.vectors),
        bool(parts),
    )
    stored = [items.with_expiry(items.created(each, now), parts_until) for each in parts]
    return Upload(revision, now, stored, memory)


def _vectors(storage: StoreStorage, new: NewMemory, revision: str) -> Iterator[Item]:
    for number, vector in enumerate(new.vectors):
        item = items.key(new.address.pk, vector_sk(new.address, revision, number))
        if vector.data is not None:
            item[items.DATA] = {"B": storage.codec.seal(vector.data, item, items.DATA)}
        yield item
