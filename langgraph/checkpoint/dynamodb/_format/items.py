"""Keys and item shapes: the only module that names an attribute or builds a key.

Six kinds of item share the table. `esc` percent-encodes every byte up to 0x25. So the separator and the escape itself
never come from data, and escaped text sorts as the text does.

    checkpoint head   PK esc(thread)#esc(namespace)   SK C#esc(checkpoint)#
    pending writes    PK the same                     SK C#esc(checkpoint)#W#esc(task)
    segment           PK the same                     SK S#<id in hexadecimal>
    namespace marker  PK esc(thread)#                 SK N#esc(namespace)
    thread item       PK esc(thread)#                 SK T
    lock              PK esc(thread)#                 SK L
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

from langgraph.checkpoint.base import WRITES_IDX_MAP

from ..errors import CheckpointCorruptionError, CheckpointerInputError, CheckpointFormatError
from .limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX, TTL_SECONDS_MAX
from .schema import ALIVE_UNTIL, PARTITION_KEY, RUN_ID, SORT_KEY, TTL_ATTRIBUTE

Item: TypeAlias = dict[str, dict[str, Any]]
"""A DynamoDB item in the low-level client's form: typed values by attribute name."""

# The format versions of heads, and of parts.
FORMAT_VERSION = 1
_PART_VERSION = 1

FORMAT = "v"
PARENT = "parent"
STARTED_FROM = "started_from"
REBUILT_FROM = "rebuilt_from"
METADATA = "metadata"
SEALED_METADATA = "sealed_metadata"
BODY = "body"
EPOCH = "epoch"
PREVIOUS = "previous"
PENDING = "pending"
TTL_SECONDS = "ttl_seconds"
REGISTERED = "registered"
KEPT_UNTIL = "kept_until"
KEPT_BEFORE = "kept_before"
# Until when readers see an item that is kept for longer: a head that others are rebuilt from, or a deleted memory.
SHOWN_UNTIL = "shown_until"
CREATED_AT = "created_at"
ORDER = "order"
DATA = "data"
WRITES = "writes"
SPECIAL_WRITES = {index: f"special_{-index}" for index in WRITES_IDX_MAP.values()}
CLAIM = "claim"
CLAIMED_UNTIL = "claimed_until"
HOLDER = "holder"
HELD_UNTIL = "held_until"
ABOUT = "about"

CHECKPOINTS = "C#"
AFTER_CHECKPOINTS = "C$"
NAMESPACES = "N#"
SEGMENTS = "S#"
THREAD = "T"
LOCK = "L"

_PART = struct.Struct(">BHH")
SEGMENT_ID_BYTES = 8
CHECKSUM_BYTES = 12
_ESCAPES = {code: f"%{code:02X}" for code in range(0x26)}
_ESCAPED = re.compile("%([0-9A-F]{2})")
# Only text that escaping produces, so that no two keys parse as the same ids.
_ESCAPED_TEXT = r"([^\0-%]*(?:%(?:[01][0-9A-F]|2[0-5])[^\0-%]*)*)"
_CHECKPOINT_KEY = re.compile(rf"{CHECKPOINTS}{_ESCAPED_TEXT}#(?:W#{_ESCAPED_TEXT})?")
# The root's namespace has no marker.
_NAMESPACE_KEY = re.compile(rf"{NAMESPACES}(?!$){_ESCAPED_TEXT}")
_SEGMENT_KEY = re.compile(rf"{SEGMENTS}([0-9a-f]{{{2 * SEGMENT_ID_BYTES}}})")


# Keys


def escape(text: str, name: str) -> str:
    """Percent-encode every byte up to 0x25; raise `CheckpointerInputError` if DynamoDB cannot store the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CheckpointerInputError(
            f"{name} {text!r} holds a lone surrogate, which DynamoDB cannot store; use valid Unicode"
        ) from None
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def checked_key(key: str, limit: int, name: str) -> str:
    """Return a key; raise `CheckpointerInputError` if it is over DynamoDB's limit."""
    size = len(key.encode())
    if size > limit:
        raise CheckpointerInputError(
            f"{name} makes a key of {size} bytes, over DynamoDB's limit of {limit}; use a shorter one"
        )
    return key


@dataclass(frozen=True)
class Partition:
    """One namespace of one thread: the items that share a partition key."""

    thread_id: str
    namespace: str
    pk: str

    @cached_property
    def root(self) -> str:
        """The partition key of the thread's root namespace, which also has the thread-level items."""
        return self.pk[: self.pk.index("#") + 1]


def partition_of(thread_id: str, namespace: str = "") -> Partition:
    """Return the partition of a thread's namespace; raise `CheckpointerInputError` if DynamoDB cannot store its key."""
    pk = f"{escape(thread_id, 'thread_id')}#{escape(namespace, 'checkpoint_ns')}"
    checked_key(pk, PARTITION_KEY_BYTES_MAX, "thread_id with checkpoint_ns")
    checked_key(namespace_sk(namespace), SORT_KEY_BYTES_MAX, "checkpoint_ns")
    return Partition(thread_id, namespace, pk)


def parse_partition(pk: str) -> Partition:
    """Parse a partition key."""
    thread_id, _, namespace = pk.partition("#")
    return Partition(unescape(thread_id), unescape(namespace), pk)


def checkpoint_prefix(checkpoint_id: str) -> str:
    """Return the sort key of a checkpoint's head, which is the prefix of the sort keys of all its items."""
    key = f"{CHECKPOINTS}{escape(checkpoint_id, 'checkpoint_id')}#"
    return checked_key(key, SORT_KEY_BYTES_MAX, "checkpoint_id")


def after_checkpoint(checkpoint_id: str) -> str:
    """Return the sort key directly after all items of a checkpoint. No item has it."""
    return f"{checkpoint_prefix(checkpoint_id)[:-1]}$"


def is_checkpoint_id(text: str) -> bool:
    """Tell whether there can be a checkpoint with this id."""
    try:
        checkpoint_prefix(text)
    except CheckpointerInputError:
        return False
    return True


def writes_sk(checkpoint_id: str, task_id: str) -> str:
    """Return the sort key of one task's pending writes."""
    key = f"{checkpoint_prefix(checkpoint_id)}W#{escape(task_id, 'task_id')}"
    return checked_key(key, SORT_KEY_BYTES_MAX, "checkpoint_id with task_id")


def segment_sk(segment_id: bytes) -> str:
    """Return the sort key of a segment."""
    return SEGMENTS + segment_id.hex()


def namespace_sk(namespace: str) -> str:
    """Return the sort key of a namespace marker."""
    return NAMESPACES + escape(namespace, "checkpoint_ns")


def owner_key(owner: str) -> str:
    """Return the key of an owner in the index; raise `CheckpointerInputError` if DynamoDB cannot store it."""
    return checked_key(escape(owner, "owner"), PARTITION_KEY_BYTES_MAX, "owner")


def key(pk: str, sk: str) -> Item:
    """Return a primary key."""
    return {PARTITION_KEY: {"S": pk}, SORT_KEY: {"S": sk}}


def thread_key(partition: Partition) -> Item:
    """Return the key of the thread item of a namespace's thread."""
    return key(partition.root, THREAD)


def key_of(item: Item) -> Item:
    """Return an item's primary key."""
    return key(partition_key(item), sort_key(item))


def sort_key(item: Item) -> str:
    """Return an item's sort key."""
    return str(item[SORT_KEY]["S"])


def partition_key(item: Item) -> str:
    """Return an item's partition key."""
    return str(item[PARTITION_KEY]["S"])


def namespace_of(item: Item) -> str:
    """Return the namespace that a marker names."""
    return unescape(_matched(_NAMESPACE_KEY, item)[1])


def segment_id_of(item: Item) -> bytes:
    """Return the id in a segment's sort key."""
    return bytes.fromhex(_matched(_SEGMENT_KEY, item)[1])


def checkpoint_id_of(item: Item) -> str:
    """Return the id of the checkpoint that a head or a writes item belongs to."""
    return unescape(_matched(_CHECKPOINT_KEY, item)[1])


def task_id_of(item: Item) -> str:
    """Return the id of the task that a writes item belongs to."""
    return unescape(_matched(_CHECKPOINT_KEY, item)[2])


def is_head(item: Item) -> bool:
    """Tell whether an item under the checkpoints' prefix is a head. The others are writes items."""
    return _matched(_CHECKPOINT_KEY, item)[2] is None


def _matched(pattern: re.Pattern[str], item: Item) -> re.Match[str]:
    match = pattern.fullmatch(sort_key(item))
    if match is None:
        raise damaged(item, "its sort key is not one that this package writes")
    return match


def checksum(sk: str, data: bytes) -> bytes:
    """Return the checksum of data of the item with a sort key. The same data has another one in other items."""
    return blake2b(b"\0".join((sk.encode(), data)), digest_size=CHECKSUM_BYTES).digest()


# Parts: sealed attributes of an item, each preceded by the unencrypted ids of the segments that it names


@dataclass(frozen=True)
class Part:
    """One sealed attribute of an item: its sealed bytes or the segments that hold them, and segments it refers to."""

    own: tuple[bytes, ...]
    refs: tuple[bytes, ...]
    sealed: bytes

    @property
    def ids(self) -> tuple[bytes, ...]:
        """All segment ids that the part names."""
        return self.own + self.refs

    def attribute(self, sk: str) -> dict[str, bytes]:
        """Return the part as an attribute value of the item with a sort key."""
        named = _PART.pack(_PART_VERSION, len(self.own), len(self.refs)) + b"".join(self.ids)
        # Sealed bytes have their own checksum.
        return {"B": named + (checksum(sk, named) if self.ids else b"") + self.sealed}


def parse_part(item: Item, name: str) -> Part | None:
    """Read a part from an item; return `None` if the item does not have it."""
    attribute = item.get(name)
    if attribute is None:
        return None
    data = attribute.get("B")
    if data is None or len(data) < _PART.size:
        raise damaged(item, f"its attribute {name} has another form than this package writes")
    version, own, refs = _PART.unpack_from(data)
    check_version(item, version, _PART_VERSION)
    end = _PART.size + (own + refs) * SEGMENT_ID_BYTES
    if len(data) < end:
        raise damaged(item, f"its attribute {name} is cut short")
    named, rest = bytes(data[:end]), bytes(data[end:])
    ids = unpack_ids(named[_PART.size :])
    if ids:
        if rest[:CHECKSUM_BYTES] != checksum(sort_key(item), named):
            raise damaged(item, f"the checksum of its attribute {name} does not match")
        rest = rest[CHECKSUM_BYTES:]
    return Part(ids[:own], ids[own:], rest)


def unpack_ids(data: bytes) -> tuple[bytes, ...]:
    """Split a run of segment ids."""
    return tuple(
        bytes(data[start : start + SEGMENT_ID_BYTES]) for start in range(0, len(data), SEGMENT_ID_BYTES)
    )


PARTS = (SEALED_METADATA, BODY, WRITES, *SPECIAL_WRITES.values())


def parts_of(item: Item) -> Iterator[tuple[str, Part]]:
    """Yield all parts of a head or a writes item, each with the name of its attribute."""
    for name in PARTS:
        part = parse_part(item, name)
        if part is not None:
            yield name, part


def names_segments(item: Item, name: str) -> bool:
    """Tell whether a part names segments; one that cannot be read may."""
    data = item.get(name, {}).get("B", b"")
    if len(data) < _PART.size:
        return name in item
    _, own, refs = _PART.unpack_from(data)
    return bool(own + refs)


# The attribute with a part's epoch. The parts of a writes item may have different epochs.
EPOCH_NAMES = {name: EPOCH if name in (BODY, SEALED_METADATA) else f"{name}_epoch" for name in PARTS}
EPOCHS = tuple(dict.fromkeys(EPOCH_NAMES.values()))


def named_ids(some: Iterable[Item]) -> set[bytes]:
    """Return the ids of all segments that heads and writes items name."""
    return {each for item in some for _, part in parts_of(item) for each in part.ids}


def sealed_bytes(some: Iterable[Item]) -> int:
    """Return how many sealed bytes heads and writes items hold themselves."""
    return sum(len(part.sealed) for item in some for _, part in parts_of(item))


def own_ids(some: Iterable[Item]) -> set[bytes]:
    """Return the ids of the segments that hold the items' own content, without those that it refers to."""
    return {each for item in some for _, part in parts_of(item) for each in part.own}


# Items


def with_expiry(item: Item, expires_at: int | None) -> Item:
    """Add the expiry of an item, in epoch seconds."""
    return item if expires_at is None else {**item, TTL_ATTRIBUTE: {"N": str(expires_at)}}


def ttl_of(item: Item) -> int | None:
    """Return the ttl of a thread item or a head, in seconds; `None` if it has none."""
    ttl_seconds = number(item, TTL_SECONDS) or None
    if ttl_seconds is not None and not 0 < ttl_seconds <= TTL_SECONDS_MAX:
        raise damaged(item, f"its attribute {TTL_SECONDS} is not a number in range")
    return ttl_seconds


def life_of(head: Item) -> Life:
    """Return the life of its thread as a head tells it: until when it was alive, and until when the head is kept."""
    return Life(ttl_of(head), number(head, ALIVE_UNTIL), expires_at(head))


def with_life(head: Item, life: Life) -> Item:
    """Add a head's expiry, and the thread's life, so a process that has read the head need not read the thread item."""
    times = {ALIVE_UNTIL: life.alive_until, TTL_SECONDS: life.ttl_seconds, TTL_ATTRIBUTE: life.kept_until}
    return {**head, **{name: {"N": str(value)} for name, value in times.items() if value is not None}}


def head_item(
    head_key: Mapping[str, Any],
    *,
    texts: Mapping[str, str | None],
    metadata: dict[str, dict[str, Any]],
) -> Item:
    """Build a checkpoint's head, without body and epoch, which are added last. Texts that are `None` are left out."""
    return {
        **head_key,
        FORMAT: {"N": str(FORMAT_VERSION)},
        **metadata,
        **{name: {"S": content} for name, content in texts.items() if content is not None},
    }


def segment_item(partition: Partition, segment_id: bytes, data: bytes) -> Item:
    """Build a segment, without its creation time and expiry, which are added when it is stored."""
    return {**key(partition.pk, segment_sk(segment_id)), DATA: {"B": data}}


def created(item: Item, now: float) -> Item:
    """Add the time, in epoch seconds, at which an item is stored."""
    return {**item, CREATED_AT: {"N": str(int(now))}}


def namespace_item(
    partition: Partition, token: bytes, expires_at: int | None, started_from: str | None
) -> Item:
    """Build a namespace marker, with the root checkpoint from which the call of a subgraph started.

    A deletion sees by the token whether the namespace was registered again since.
    """
    item = {**key(partition.root, namespace_sk(partition.namespace)), REGISTERED: {"B": token}}
    if started_from is not None:
        item[STARTED_FROM] = {"S": started_from}
    return with_expiry(item, expires_at)


def indexable_run_id(metadata: Any) -> str | None:
    """Return the run id under which the index lists a head; `None` if it has none that an index key can store."""
    run_id = metadata.get(RUN_ID)
    if type(run_id) is not str:
        return None
    try:
        size = len(run_id.encode())
    except UnicodeEncodeError:
        return None
    return run_id if 0 < size <= PARTITION_KEY_BYTES_MAX else None


def text(item: Item, name: str) -> str | None:
    """Return a string attribute; `None` if the item does not have it."""
    attribute = item.get(name)
    if attribute is None:
        return None
    if "S" not in attribute:
        raise damaged(item, f"its attribute {name} is not a string")
    return str(attribute["S"])


_NUMBER_BOUND = 2**63


def number(item: Item, name: str) -> int | None:
    """Return a whole-number attribute; `None` if the item does not have it."""
    attribute = item.get(name)
    if attribute is None:
        return None
    try:
        digits = attribute["N"]
        # A float has 53 bits only: microseconds from the year 2255 on have more.
        value = int(digits) if digits.lstrip("-").isdecimal() else int(float(digits))
    except (KeyError, ValueError, OverflowError):
        value = _NUMBER_BOUND
    # DynamoDB reads numbers of up to 125 digits, and takes 38: what is made from a larger one could not be stored.
    if abs(value) >= _NUMBER_BOUND:
        raise damaged(item, f"its attribute {name} is not a number in range")
    return value


def binary(item: Item, name: str) -> bytes:
    """Return a binary attribute that the item must have."""
    value = item.get(name, {}).get("B")
    if value is None:
        raise damaged(item, f"it has no binary attribute {name}")
    return bytes(value)


# Lives. Times are epoch seconds; `None` is never


@dataclass(frozen=True)
class Life:
    """How long a thread lives: what is stored in it now gets these times. See `_operations/renew.py`."""

    ttl_seconds: int | None = None
    alive_until: int | None = None
    """Until when readers see the thread; what a copy stores has 0: the thread item tells."""
    kept_until: int | None = None
    """Until when everything that is stored now is kept."""

    def latest(self, other: Life) -> Life:
        """Return the life as it is known after two looks at a thread of one epoch: its times only rise."""
        if self.ttl_seconds is None:
            return other
        alive_until = max(self.alive_until or 0, other.alive_until or 0)
        return Life(self.ttl_seconds, alive_until, max(self.kept_until or 0, other.kept_until or 0))


def expires_before(expires_at: int | None, other: int | None) -> bool:
    """Tell whether one expiry comes before another."""
    return expires_at is not None and (other is None or expires_at < other)


def earlier(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two expiries."""
    return one if expires_before(one, other) else other


def later(one: int | None, other: int | None) -> int | None:
    """Return the later of two expiries."""
    return other if expires_before(one, other) else one


def expires_at(item: Item) -> int | None:
    """Return when DynamoDB may remove an item, in epoch seconds; `None` for never."""
    return number(item, TTL_ATTRIBUTE)


def is_expired(item: Item, now: float, *, as_ancestor: bool = False) -> bool:
    """Tell whether an item has expired, even if DynamoDB has not removed it yet.

    A checkpoint that is kept only because others are rebuilt from it is there as their ancestor, not for readers.
    """
    end = expires_at(item) if as_ancestor or SHOWN_UNTIL not in item else number(item, SHOWN_UNTIL)
    return end is not None and end <= now


def is_shown(head: Item, now: float) -> bool:
    """Tell whether a checkpoint that is stored is there for readers, too.

    A run from a root checkpoint may take a ttl until it stores something, as any step may. So that it finds in other
    namespaces what it needs, a root checkpoint is not shown any more once it expires within a ttl. The state of a
    thread in use never does (`protocol.SURE_PERCENT`).
    """
    is_root = partition_key(head).endswith("#")
    ttl_seconds = number(head, TTL_SECONDS) if is_root else None
    return not is_expired(head, now + (ttl_seconds or 0))


def check_format(item: Item) -> None:
    """Raise if a newer release wrote a head, or if its parent cannot be a checkpoint."""
    version = number(item, FORMAT)
    if version is None:
        raise damaged(item, f"it has no format version in {FORMAT}")
    check_version(item, version, FORMAT_VERSION)
    try:
        checkpoint_prefix(text(item, PARENT) or "")
    except CheckpointerInputError as error:
        raise damaged(item, f"its parent cannot be a checkpoint ({error})") from error


def check_version(item: Item, version: int, newest: int) -> None:
    """Raise if a newer release wrote an item, or none."""
    if version > newest:
        raise newer_format(item, version, newest)
    if version < 1:
        raise damaged(item, f"there is no format version {version}")


def name_of(item: Item) -> str:
    """Return the name of an item for error messages."""
    return f"item PK={partition_key(item)!r} SK={sort_key(item)!r}"


def newer_format(item: Item, version: int, newest: int) -> CheckpointFormatError:
    """Return the error for an item of a newer format than this release knows."""
    return CheckpointFormatError(
        f"{name_of(item)} has format version {version}, and this release of langgraph-dynamodb reads"
        f" up to {newest}; upgrade langgraph-dynamodb"
    )


def damaged(item: Item, why: str) -> CheckpointCorruptionError:
    """Return the error for an item that is not as it was written."""
    return CheckpointCorruptionError(
        f"{name_of(item)} is damaged: {why}; restore it from a backup or point-in-time recovery"
    )
