"""Deltas: values that a client describes by their difference to those of the parent checkpoint.

A few bytes can describe gigabytes, so `check_deltas` bounds what they describe before anything is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from .._format.items import Partition
from .._format.segments import StoredValue
from .._format.wire import digest_of, value_of
from .._operations.get import read_entry
from .._operations.reads import open_cached
from .._runtime.cache import CachedCheckpoint
from .._runtime.steps import Op, work
from .._runtime.storage import Storage
from ..errors import CheckpointerInputError
from .messages import SentValue
from .opaque import OpaqueValue
from .problems import ProblemError


def check_deltas(deltas: Mapping[str, SentValue], bytes_max: int) -> int:
    """Return how many bytes deltas describe.

    Raises:
        CheckpointerInputError: One does not say how large its value is.
        ProblemError: More than a body may have; a 413.
    """
    try:
        size = sum(each.size_bytes for each in deltas.values())
    except ValueError as error:
        raise CheckpointerInputError(
            f"a delta cannot be read ({error}); send it as a frame of zstd with its content size"
        ) from None
    if size > bytes_max:
        msg = (
            f"the deltas of values describe {size:,} bytes, and {bytes_max:,} are allowed; keep"
            " less in the state, or raise decompressed_bytes_max in the gateway's limits"
        )
        raise ProblemError(413, msg)
    return size


def rebuilt(
    storage: Storage, partition: Partition, parent_id: str | None, deltas: Mapping[str, SentValue]
) -> Op[Mapping[str, OpaqueValue]]:
    """Return the values that came as deltas, as far as the parent has what they are based on.

    Raises:
        CheckpointerInputError: A delta is damaged.
    """
    if not deltas or parent_id is None:
        return {}
    entry = storage.cache.checkpoint(partition.pk, parent_id)
    if entry is None:
        entry = yield from read_entry(storage, partition, parent_id)
        if entry is None:
            return {}
        # The put needs it, too.
        storage.cache.remember_checkpoint(partition.pk, parent_id, replace(entry, contents={}))
    size = sum(each.size_bytes for each in deltas.values())
    return (yield from work(partial(_rebuilt, storage, partition, deltas, entry), size))


def _rebuilt(
    storage: Storage, partition: Partition, deltas: Mapping[str, SentValue], entry: CachedCheckpoint
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


def _applied(delta: SentValue, base: bytes, name: str) -> bytes:
    try:
        return value_of(base, delta.data)
    except ValueError as error:
        raise CheckpointerInputError(
            f"the delta of channel {name!r} is damaged ({error}); send the value whole"
        ) from error
