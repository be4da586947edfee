"""The item of a memory, and the condition of each request that changes it. Pure: no request, no clock.

A memory is one item, and one UpdateItem commits a value. Its segments and vectors are stored before and belong to its
*revision*, a random id that no other value has. So the old value is whole until the new one is there.

Every change carries its time, and is made only if it is later than what it replaces. So a request that arrives late, or
twice, never replaces what was stored since. For the same reason a deletion leaves a *tombstone*, an item that has
expired for readers. Where the clock of another process was ahead, the condition fails and returns the item that is
there, and the change is made again, later than that.

An erasure also removes segments and vectors that no memory names yet. A put may be about to name them, so the erasure
first leaves a tombstone. A value with segments or vectors is not committed if its memory was deleted since they were
stored: `buried_us` says when that was last, and outlives the tombstone. It also says when a memory was imported, whose
own time is that of its record: what was stored before the import is older than it all the same.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.dynamodb import errors, protocol
from langgraph.checkpoint.dynamodb._format import content, items, limits, schema
from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError
from langgraph.checkpoint.dynamodb._format.items import Item, Part

VERSION = 1
VALUE = "value"
# What a search of keys needs to tell whether a memory is there.
LIVE_ATTRIBUTES = (schema.TTL_ATTRIBUTE, items.SHOWN_UNTIL)
# For how many ttls segments and vectors are stored, so that they have to be extended once in a ttl, not each time.
PART_LIFETIMES = 3
REVISION = "revision"
REGISTERED = "registered_at"
# Of a partition's entry: which erasure or sweep is about to remove it.
LEAVING = "leaving"
# A segment says whose it is, as a vector does in its key: the key of the memory, and the revision of the value.
PART_OF = "part_of"
# How long a tombstone is kept: longer than any request is under way.
TOMBSTONE_SECONDS = limits.ORPHAN_SECONDS

# What Python can show as a time.
_TIME_MIN_US, _TIME_MAX_US = -62_135_596_800_000_000, 253_402_300_799_999_999

_NAMES = {
    "#v": "v",
    "#value": VALUE,
    "#revision": REVISION,
    "#created": "created_us",
    "#updated": "updated_us",
    "#ttl": items.TTL_SECONDS,
    "#expiry": schema.TTL_ATTRIBUTE,
    "#ends": items.SHOWN_UNTIL,
    "#parts": "parts_until",
    "#vectors": "vectors",
    "#replaced": "replaced",
    "#buried": "buried_us",
    "#registered": REGISTERED,
    "#leaving": LEAVING,
}
_PLACEHOLDER = re.compile(r"#\w+")
_LATER = "(attribute_not_exists(#updated) OR #updated < :now)"
_UNBURIED = "(attribute_not_exists(#buried) OR #buried < :now)"
_EXPIRED = "(#expiry <= :seconds OR attribute_exists(#ends))"
# The answer of a change may be lost, and with it the old item. An attribute of the new one says what it was.
_REPLACED = "#replaced = if_not_exists(#revision, :none)"
_NONE = {"S": ""}
_LIVE = "(attribute_not_exists(#expiry) OR #expiry > :seconds) AND attribute_not_exists(#ends)"


@dataclass(frozen=True)
class StoredMemory:
    """A memory's item as it was read; an expired one and a tombstone are none."""

    item: Item
    revision: str
    created_us: int
    updated_us: int
    ttl_seconds: int | None
    expires_at: int | None
    parts_until: int | None
    """When its segments and vectors expire."""
    vectors: int
    part: Part


def parse_memory(item: Item, now: float) -> StoredMemory | None:
    """Return the memory in an item; `None` if it has been deleted or has expired."""
    if items.is_expired(item, now):
        return None
    items.check_version(item, _required(item, "v"), VERSION)
    part = items.parse_part(item, VALUE)
    if part is None:
        raise items.damaged(item, "it has no value")
    return StoredMemory(
        item,
        revision_of(item),
        _shown_time(item, "created_us"),
        _shown_time(item, "updated_us"),
        items.number(item, items.TTL_SECONDS),
        items.number(item, schema.TTL_ATTRIBUTE),
        items.number(item, "parts_until"),
        vectors_of(item),
        part,
    )


def revision_of(item: Item) -> str:
    """Return the revision of a memory or of a tombstone."""
    revision = items.text(item, REVISION)
    if revision is None:
        raise items.damaged(item, "it has no revision")
    return revision


def replaced_revision(item: Item) -> str | None:
    """Return the revision of the value that a memory or a tombstone has replaced; `None` if there was none."""
    return items.text(item, "replaced") or None


def updated_us(item: Item) -> int:
    """Return when a memory or a tombstone was stored, in epoch microseconds."""
    return _required(item, "updated_us")


def changed_us(item: Item) -> int:
    """Return the time that a change of an item has to be later than, in epoch microseconds."""
    return max(updated_us(item), items.number(item, "buried_us") or 0)


def vectors_of(item: Item) -> int:
    """Return how many vectors the value in an item has."""
    return items.number(item, "vectors") or 0


def expiry(ttl_seconds: int, now: float) -> int:
    """Return when something expires that is stored now, in epoch seconds; DynamoDB knows whole ones only."""
    return math.ceil(now) + ttl_seconds


def pack_value(codec: Codec, value: Mapping[str, Any], name: str) -> bytes:
    """Serialize the value of a memory, given as plain data.

    Raises:
        CheckpointSerializationError: The serializer cannot write it, or only as what `unpack_value` does not read.
    """
    kind, data = codec.dumps(dict(value), name)
    if kind == "pickle":
        # LangGraph's serializer resorts to it with pickle_fallback. Another one may read what it calls pickle.
        try:
            codec.loads(kind, data, items.key("", ""), plain=True)
        except UnreadableError as error:
            raise errors.CheckpointSerializationError(
                f"{name} has a number of more than 64 bits, which only pickle can hold, and the store reads no pickle;"
                " nothing of the call was stored. Give the number as text"
            ) from error
    return content.pack_typed(kind, data)


def unpack_value(codec: Codec, item: Item, raw: bytes) -> dict[str, Any]:
    """Deserialize the value of a memory. It is plain data, so LangGraph's serializer makes nothing else."""
    return content.unpack_object(codec, item, raw, plain=True)


def _shown_time(item: Item, name: str) -> int:
    value = _required(item, name)
    if not _TIME_MIN_US <= value <= _TIME_MAX_US:
        raise items.damaged(item, f"its {name} is no time that can be shown")
    return value


def _required(item: Item, name: str) -> int:
    value = items.number(item, name)
    if value is None:
        raise items.damaged(item, f"it has no attribute {name}")
    return value


@dataclass(frozen=True)
class ComposedMemory:
    """The content of a put for the item of a memory, but for the times."""

    revision: str
    value: Mapping[str, Any]
    """The part, as an attribute."""
    ttl_seconds: int | None
    expires_at: int | None
    parts_until: int | None
    vectors: int
    has_parts: bool
    """Whether it has segments or vectors."""


@dataclass(frozen=True)
class Expected:
    """A condition on the memory that a change replaces: one revision, or nothing that lives."""

    revision: str | None
    """`None`: nothing may be there that lives."""


def put_value(
    new: ComposedMemory,
    now_us: int,
    *,
    now: float,
    created_us: int | None,
    seen: Item,
    expected: Expected | None,
) -> protocol.Change:
    """Store a value.

    Args:
        new: The value.
        now_us: The time that the memory was stored at, in epoch microseconds.
        now: The time, in epoch seconds, by which others have expired.
        created_us: When the memory was created; `None`: keep the time that is there, if the memory lives.
        seen: The item that a condition failed on before segments and vectors were stored; empty if none did.
        expected: What may be replaced; `None`: any older item.
    """
    optional = {
        "#ttl": (":ttl", new.ttl_seconds),
        "#expiry": (":expiry", new.expires_at),
        "#parts": (":parts", new.parts_until),
        "#vectors": (":vectors", new.vectors or None),
    }
    removed = [name for name, (_, value) in optional.items() if value is None]
    values: dict[str, Any] = {value: _number(each) for value, each in optional.values() if each is not None}
    values |= {
        ":v": _number(VERSION),
        ":value": new.value,
        ":revision": {"S": new.revision},
        ":now": _number(now_us),
        ":none": _NONE,
    }
    sets = ["#v = :v", "#value = :value", "#revision = :revision", "#updated = :now", _REPLACED]
    sets += [f"{name} = {value}" for name, (value, each) in optional.items() if each is not None]
    condition, is_new = _replaceable(
        now, values, seen, expected, has_parts=new.has_parts, is_import=created_us is not None
    )
    if created_us is not None:
        # What was stored until now may be newer than the record, and arrive again.
        values[":imported"] = _number(max(int(now * 1_000_000), changed_us(seen) if seen else 0))
        values[":created"] = _number(created_us)
        sets += ["#created = :created", "#buried = :imported"]
    else:
        sets.append("#created = :now" if is_new else "#created = if_not_exists(#created, :now)")
    expression = f"SET {', '.join(sets)} REMOVE {', '.join([*removed, '#ends'])}"
    return _change(expression, condition, values)


def bury(
    revision: str, now_us: int, kept_seconds: int, *, now: float, seen: Item, expected: Expected | None
) -> protocol.Change:
    """Replace a memory by a tombstone, which DynamoDB removes later."""
    values: dict[str, Any] = {
        ":revision": {"S": revision},
        ":now": _number(now_us),
        ":expiry": _number(int(now) + kept_seconds),
        ":never": _number(0),
        ":none": _NONE,
    }
    sets = f"#revision = :revision, #updated = :now, #buried = :now, #expiry = :expiry, #ends = :never, {_REPLACED}"
    condition, _ = _replaceable(now, values, seen, expected, has_parts=False, is_import=False)
    return _change(f"SET {sets} REMOVE #v, #value, #created, #ttl, #parts, #vectors", condition, values)


def _unburied(now: float, values: dict[str, Any], seen: Item) -> str:
    """Return the condition that a memory was not deleted since segments and vectors of its new value were stored.

    They were stored after the item was seen, or if none was, less than the life of a tombstone ago. The second bound is
    a multiple of what a put may take, since the clocks of processes differ.
    """
    lately_us = int((now - TOMBSTONE_SECONDS) * 1_000_000)
    buried_us = items.number(seen, "buried_us")
    if buried_us is not None and buried_us > lately_us:
        values[":buried"] = _number(buried_us)
        return " AND #buried = :buried"
    values[":lately"] = _number(lately_us)
    return " AND (attribute_not_exists(#buried) OR #buried <= :lately)"


def _replaceable(
    now: float,
    values: dict[str, Any],
    seen: Item,
    expected: Expected | None,
    *,
    has_parts: bool,
    is_import: bool,
) -> tuple[str, bool]:
    """Return the condition of a change, and whether nothing that lives is there if it holds."""
    seconds = int(now)
    if expected is not None and expected.revision is not None:
        values |= {":expected": {"S": expected.revision}, ":seconds": _number(seconds)}
        return f"#revision = :expected AND #updated < :now AND {_LIVE}", False
    values[":seconds"] = _number(seconds)
    if seen and items.is_expired(seen, now):
        # The change is later than it. The memory begins anew, unless another put has begun it or a read has renewed it.
        values[":expected"] = {"S": revision_of(seen)}
        return f"#revision = :expected AND {_EXPIRED}", True
    unburied = _unburied(now, values, seen) if has_parts else ""
    if not is_import:
        unburied += f" AND {_UNBURIED}"
    if expected is not None:
        return f"attribute_not_exists(#updated) OR ({_EXPIRED} AND #updated < :now{unburied})", True
    return f"{_LATER} AND {_LIVE}{unburied}", False


def refresh(memory: StoredMemory, expires_at: int, parts_until: int | None, now: float) -> protocol.Change:
    """Renew the expiry of a memory that still has the value that was read, and has not expired."""
    values: dict[str, Any] = {
        ":expected": {"S": memory.revision},
        ":seconds": _number(int(now)),
        ":expiry": _number(expires_at),
    }
    expression = "SET #expiry = :expiry"
    if parts_until is not None:
        expression += ", #parts = :parts"
        values[":parts"] = _number(parts_until)
    return _change(expression, "#revision = :expected AND #expiry > :seconds AND #expiry < :expiry", values)


def remove_revision(revision: str) -> protocol.Change:
    """Delete a memory's item, or a tombstone, if it still has a revision."""
    return _change("", "#revision = :expected", {":expected": {"S": revision}})


def remove_expired(revision: str, now: float) -> protocol.Change:
    """Delete the item of a memory that has expired, unless a read has renewed it meanwhile."""
    values = {":expected": {"S": revision}, ":seconds": _number(int(now))}
    return _change("", "#revision = :expected AND #expiry <= :seconds", values)


def leave(mark: bytes, until: int) -> protocol.Change:
    """Mark a partition's entry that was written by then as about to be removed."""
    values = {":mark": {"B": mark}, ":until": _number(until)}
    return _change("SET #leaving = :mark", "#registered <= :until", values)


def unregister(mark: bytes) -> protocol.Change:
    """Delete a partition's entry, unless the partition was registered again since it was marked."""
    return _change("", "#leaving = :mark", {":mark": {"B": mark}})


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _change(expression: str, condition: str, values: Mapping[str, Any]) -> protocol.Change:
    names = {each: _NAMES[each] for each in _PLACEHOLDER.findall(f"{expression} {condition}")}
    return protocol.Change(expression, condition, names, values)
