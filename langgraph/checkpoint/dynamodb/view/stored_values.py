"""Values as the inert serializer returns them: their contents, paths, sizes, fingerprints and differences.

They are plain data and `Stored`. Nothing here recurses as deep in Python's stack as a value may be nested.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import ormsgpack

from .._format.inert import Stored, labelled
from ..errors import CheckpointNotFoundError

# All types that the serializer returns for a list.
LISTS = (list, tuple, set, frozenset)
BYTES = (bytes, bytearray, memoryview)
# An attribute that neither `==` nor ormsgpack looks at.
_KNOWN = "_fingerprint"
# How a delta channel that is not stored is shown: as what it is rebuilt from.
REBUILT = "delta channel"
# The steps of a path within a value.
Steps: TypeAlias = tuple[str | int, ...]
# Deeper differences are reported as one.
_DEPTH_MAX = 64
# Lists with more pairs than this to compare, between their common beginning and end, are reported as gone and added.
_PAIRS_MAX = 4_000_000
_ROLES = ("user", "assistant", "system", "tool", "human", "ai", "developer", "function")


def inside(value: Any) -> Any:
    """Return the content of an object. Return any other value as it is."""
    while isinstance(value, Stored):
        value = value.content
    return value


def message_fields(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a message, LangChain's or one in the form of a model's API; None for any other value."""
    if isinstance(value, Stored):
        return value.content if value.is_message else None
    is_message = isinstance(value, Mapping) and "content" in value and value.get("role") in _ROLES
    return value if is_message else None


def part_at(value: Any, path: Sequence[str | int]) -> Any:
    """Return the part of a value at the end of a path.

    Raises:
        CheckpointNotFoundError: Nothing is there.
    """
    for step in path:
        content = inside(value)
        if isinstance(step, int) and isinstance(content, LISTS) and 0 <= step < len(content):
            value = list(content)[step]
            continue
        entries = labelled(content) if isinstance(content, Mapping) and isinstance(step, str) else {}
        if step not in entries:
            raise CheckpointNotFoundError(f"there is nothing at {step!r} of the path")
        value = entries[str(step)]
    return value


def size_bytes(value: Any) -> int:
    """Return the approximate size of a value in bytes."""
    if isinstance(value, str):
        return len(value.encode(errors="surrogatepass"))
    if isinstance(value, BYTES):
        return len(value)
    packed = _packed(value)
    return len(packed) if packed is not None else sum(len(each) for each in _tokens(value))


def fingerprint(value: Any) -> bytes:
    """Return a hash that two values share only if they are the same, types included: 1, 1.0 and True are three.

    The order of an object's entries is ignored. Objects are never changed, so their hash is computed once.
    """
    if not isinstance(value, Stored):
        return _fingerprint(value)
    known: bytes | None = value.__dict__.get(_KNOWN)
    if known is None:
        known = value.__dict__[_KNOWN] = _fingerprint(value)
    return known


def _fingerprint(value: Any) -> bytes:
    packed = _packed(value)
    if packed is not None:
        return blake2b(packed, digest_size=16).digest()
    digest = blake2b(digest_size=16)
    for each in _tokens(value):
        digest.update(len(each).to_bytes(8, "big") + each)
    return digest.digest()


def _packed(value: Any) -> bytes | None:
    """Return a value as MessagePack, or None if that cannot hold or sort it: long numbers, keys that are not texts."""
    try:
        return ormsgpack.packb(value, option=ormsgpack.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        return None


def _tokens(value: Any) -> Iterator[bytes]:
    """Yield everything in a value, in a fixed order."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Stored):
            yield f"object {each.kind}".encode(errors="surrogatepass")
            waiting.append(each.content)
        elif isinstance(each, LISTS):
            yield f"list {len(each)}".encode()
            waiting += reversed(list(each))
        elif isinstance(each, Mapping):
            yield f"map {len(each)}".encode()
            entries = sorted(each.items(), key=lambda entry: fingerprint(entry[0]), reverse=True)
            waiting += (part for entry in entries for part in reversed(entry))
        elif isinstance(each, str):
            yield each.encode(errors="surrogatepass")
        elif isinstance(each, int):
            # Python refuses to print very long ones in decimal digits, but never in hexadecimal ones.
            yield f"{type(each).__name__} {each:x}".encode()
        else:
            yield f"{type(each).__name__} {each!r}".encode()


def number_text(value: float) -> str:
    """Format a number for the page."""
    if isinstance(value, int):
        # Python refuses to print very long ones in decimal digits, but never in hexadecimal ones.
        return str(value) if value.bit_length() < 10_000 else hex(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def texts(value: Any, path: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Yield every text and number in a value with its path. A key is a text at the path of its entry."""
    waiting: list[tuple[Steps, Any]] = [(path, value)]
    while waiting:
        at, each = waiting.pop()
        content = inside(each)
        if isinstance(content, str):
            yield at, content
        elif isinstance(content, (int, float)) and not isinstance(content, bool):
            yield at, number_text(content)
        elif isinstance(content, Mapping):
            entries = labelled(content)
            for key in entries:
                yield (*at, key), key
            waiting += [((*at, key), part) for key, part in reversed(entries.items())]
        elif isinstance(content, LISTS):
            waiting += reversed([((*at, place), part) for place, part in enumerate(content)])


# Differences


@dataclass(frozen=True)
class Difference:
    """A part that differs between two values."""

    kind: Literal["added", "changed", "gone"]
    before_path: Steps | None
    path: Steps | None
    before: Any = None
    after: Any = None


def differences(before: Any, after: Any, before_path: Steps = (), path: Steps = ()) -> Iterator[Difference]:
    """Yield the differences that turn one value into another, as deep as they can be located."""
    if before is after or fingerprint(before) == fingerprint(after):
        return
    inner, outer = inside(before), inside(after)
    if _are_alike(before, after) and len(path) < _DEPTH_MAX:
        if isinstance(inner, Mapping) and isinstance(outer, Mapping):
            yield from _of_objects(labelled(inner), labelled(outer), before_path, path)
            return
        if isinstance(inner, LISTS) and isinstance(outer, LISTS):
            yield from _of_lists(list(inner), list(outer), before_path, path)
            return
    yield Difference("changed", before_path, path, before, after)


def _are_alike(before: Any, after: Any) -> bool:
    """Tell whether two values are of the same class, so that the difference is in their parts."""
    while isinstance(before, Stored) and isinstance(after, Stored):
        if before.kind != after.kind:
            return False
        before, after = before.content, after.content
    return not isinstance(before, Stored) and not isinstance(after, Stored)


def _of_objects(
    before: Mapping[str, Any], after: Mapping[str, Any], before_path: Steps, path: Steps
) -> Iterator[Difference]:
    for key in dict.fromkeys([*before, *after]):
        if key not in before:
            yield Difference("added", None, (*path, key), after=after[key])
        elif key not in after:
            yield Difference("gone", (*before_path, key), None, before=before[key])
        else:
            yield from differences(before[key], after[key], (*before_path, key), (*path, key))


def _identity(value: Any) -> bytes:
    """Return the identity of a list's part: a message's id, or else its whole value."""
    fields = message_fields(value)
    message_id = None if fields is None else fields.get("id")
    return fingerprint(value) if message_id is None else b"id " + fingerprint(message_id)


def _of_lists(
    before: Sequence[Any], after: Sequence[Any], before_path: Steps, path: Steps
) -> Iterator[Difference]:
    old, new = [_identity(each) for each in before], [_identity(each) for each in after]
    for operation, start, stop, new_start, new_stop in _opcodes(old, new):
        pairs = stop - start if stop - start == new_stop - new_start else 0
        for at, now in zip(range(start, start + pairs), range(new_start, new_start + pairs), strict=True):
            is_message = message_fields(before[at]) is not None or message_fields(after[now]) is not None
            # Messages with the same id may still differ. Those with another id are others.
            if operation == "equal" or not is_message:
                yield from differences(before[at], after[now], (*before_path, at), (*path, now))
            else:
                yield Difference("gone", (*before_path, at), None, before=before[at])
                yield Difference("added", None, (*path, now), after=after[now])
        for at in range(start + pairs, stop):
            yield Difference("gone", (*before_path, at), None, before=before[at])
        for now in range(new_start + pairs, new_stop):
            yield Difference("added", None, (*path, now), after=after[now])


def _opcodes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield how one list becomes the other. The common beginning and end are not compared any further."""
    front = common(old, new)
    limit = min(len(old), len(new)) - front
    back = min(limit, common(old[::-1], new[::-1]))
    yield "equal", 0, front, 0, front
    within, now_within = old[front : len(old) - back], new[front : len(new) - back]
    if len(within) * len(now_within) > _PAIRS_MAX:
        yield "replace", front, len(old) - back, front, len(new) - back
    else:
        matcher = SequenceMatcher(None, within, now_within, autojunk=False)
        for operation, start, stop, new_start, new_stop in matcher.get_opcodes():
            yield operation, start + front, stop + front, new_start + front, new_stop + front
    yield "equal", len(old) - back, len(old), len(new) - back, len(new)


def common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many parts two sequences have in common at their beginning."""
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: one[:length] != other[:length])
