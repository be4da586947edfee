"""The exact differences between two values, and the changes between two checkpoints, channel by channel."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Literal

from .._format.inert import Stored
from .._format.plain import labelled
from .._operations.reads import StoredCheckpoint
from .._runtime.steps import Op
from ..errors import CheckpointerError
from . import documents
from .documents import ChangeDocument, Changes, ChannelChanges
from .namespace_view import NamespaceView
from .nodes import TEXT_MAX, Shower
from .plain import LISTS, Steps, fingerprint, inside, message_fields, size_bytes
from .state import channel_value, channel_versions

_CHANGES_MAX = 200
# Deeper differences are reported as one.
_DEPTH_MAX = 64
# Lists with more pairs than this to compare, between their common beginning and end, are reported as gone and added.
_PAIRS_MAX = 4_000_000
# How many characters are shown before the first difference of long texts.
_CONTEXT = 200


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


# Checkpoints


def changes(namespace: NamespaceView, checkpoint: StoredCheckpoint, shower: Shower) -> Op[Changes]:
    """Return the changes of a checkpoint against its parent. Without a parent, everything is added."""
    now = yield from channel_versions(namespace, checkpoint)
    parent = yield from namespace.parent(checkpoint)
    before = yield from channel_versions(namespace, parent)
    found, unchanged = list[ChannelChanges](), list[str]()
    for name in sorted(now.keys() | before.keys()):
        if name in now and name in before and now[name] == before[name]:
            unchanged.append(name)
            continue
        sides = parent if name in before else None, checkpoint if name in now else None
        told = yield from _of_channel(namespace, name, *sides, shower)
        if told["changes"] or told["problem"]:
            found.append(told)
        else:
            unchanged.append(name)
    parent_id = None if parent is None else parent.checkpoint_id
    return Changes(parent=parent_id, channels=found, unchanged=unchanged)


def _of_channel(
    namespace: NamespaceView,
    name: str,
    before: StoredCheckpoint | None,
    after: StoredCheckpoint | None,
    shower: Shower,
) -> Op[ChannelChanges]:
    """Return the changes of a channel between two checkpoints; None stands for one without the channel."""
    root: Steps = ("values", name)
    told = ChannelChanges(
        channel=name, kind="changed", before_bytes=None, after_bytes=None, changes=[], more=0, problem=None
    )
    try:
        old = None if before is None else (yield from channel_value(namespace, before, name))
        new = None if after is None else (yield from channel_value(namespace, after, name))
    except CheckpointerError as error:
        told["problem"] = str(error)
        return told
    found = differences(old, new, root, root)
    if before is None:
        told["kind"], found = "added", iter([Difference("added", None, root, after=new)])
    elif after is None:
        told["kind"], found = "gone", iter([Difference("gone", root, None, before=old)])
    told["before_bytes"] = None if before is None else size_bytes(old)
    told["after_bytes"] = None if after is None else size_bytes(new)
    told["changes"] = [_change(each, shower.of(name)) for each in islice(found, _CHANGES_MAX)]
    told["more"] = sum(1 for _ in found)
    return told


def _change(difference: Difference, shower: Shower) -> ChangeDocument:
    start = _first_difference(difference.before, difference.after)
    return ChangeDocument(
        kind=difference.kind,
        before_path=_path(difference.before_path),
        path=_path(difference.path),
        before=None if difference.kind == "added" else shower.node(difference.before, start=start),
        after=None if difference.kind == "gone" else shower.node(difference.after, start=start),
    )


def _first_difference(before: Any, after: Any) -> int:
    """Return where to begin showing two texts, so that their difference is visible."""
    if not (isinstance(before, str) and isinstance(after, str)) or max(len(before), len(after)) <= TEXT_MAX:
        return 0
    return max(0, common(before, after) - _CONTEXT)


def _path(path: Steps | None) -> documents.Path | None:
    return None if path is None else list(path)
