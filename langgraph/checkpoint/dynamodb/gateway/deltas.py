"""Deltas: values that a client describes by their difference to those of the parent checkpoint.

A few bytes can describe gigabytes, so `check_deltas` bounds what they describe before anything is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.segments import StoredValue
from langgraph.checkpoint.dynamodb._format.wire import digest_of, value_of
from langgraph.checkpoint.dynamodb._operations.get import read_entry
from langgraph.checkpoint.dynamodb._operations.reads import open_cached
from langgraph.checkpoint.dynamodb._runtime.cache import CachedCheckpoint
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.opaque import OpaqueValue
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError


def check_deltas(request: wire.Message, limits: Limits) -> int:
    """Return how many bytes the deltas of a request describe.

    Raises:
        ProblemError: More than a body may have; a 413.
    """
    if not isinstance(request, wire.PutRequest):
        return 0
    size = sum(each.size_bytes for each in request.deltas.values())
    if size > limits.decompressed_bytes_max:
        msg = (
            f"the deltas of values describe {size:,} bytes, and {limits.decompressed_bytes_max:,} are allowed; keep"
            " less in the state, or raise decompressed_bytes_max in the gateway's limits"
        )
        raise ProblemError(413, msg)
    return size


def rebuilt(
    storage: Storage, partition: Partition, request: wire.PutRequest
) -> Op[Mapping[str, OpaqueValue]]:
    """Return the values that came as deltas, as far as the parent has what they are based on.

    Raises:
        CheckpointerInputError: A delta is damaged.
    """
    parent_id = request.parent_checkpoint_id
    if not request.deltas or parent_id is None:
        return {}
    entry = storage.cache.checkpoint(partition.pk, parent_id)
    if entry is None:
        entry = yield from read_entry(storage, partition, parent_id)
        if entry is None:
            return {}
        # The put needs it, too.
        storage.cache.remember_checkpoint(partition.pk, parent_id, replace(entry, contents={}))
    size = sum(each.size_bytes for each in request.deltas.values())
    return (yield from work(partial(_rebuilt, storage, partition, request.deltas, entry), size))


def _rebuilt(
    storage: Storage, partition: Partition, deltas: Mapping[str, wire.Delta], entry: CachedCheckpoint
) -> dict[str, OpaqueValue]:
    found: dict[str, OpaqueValue] = {}
    for name, delta in deltas.items():
        stored = entry.values.get(name)
        base = None if stored is None else _base(storage, partition, entry, stored)
        if base is not None and digest_of(base) == delta.base:
            found[name] = OpaqueValue(delta.type, _applied(delta, base, name))
    return found


def _base(
    storage: Storage, partition: Partition, entry: CachedCheckpoint, stored: StoredValue
) -> bytes | None:
    """Return a value of the parent, from what was just read or from cached segments; `None` if some are not cached."""
    contents = entry.contents or open_cached(storage, partition, entry.epoch, stored.segments)
    return stored.join(contents) if contents.keys() >= set(stored.segments) else None


def _applied(delta: wire.Delta, base: bytes, name: str) -> bytes:
    try:
        return value_of(base, delta.delta)
    except ValueError as error:
        raise CheckpointerInputError(
            f"the delta of channel {name!r} is damaged ({error}); send the value whole"
        ) from error
