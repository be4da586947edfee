"""The table of the site's page *Stored format* that follows from the protocol: how a thread item changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format.items import Life
from langgraph.checkpoint.dynamodb.protocol import Change, Thread


class Transition(NamedTuple):
    """A change of a thread item, apart from claims: who sends it, and from which states to which it leads."""

    change: Callable[..., Change]
    arguments: Sequence[object]
    """Any arguments with which the change can be made, for its condition."""
    by: str
    before: Sequence[str]
    after: str | None
    """`None`: as before."""
    options: Mapping[str, Any] = {}


_ABSENT, _PENDING, _ACTIVE, _COPIED = "absent", "pending", "active", "copied"
_PRESENT = (_PENDING, _ACTIVE, _COPIED)
_LIFE = Life(1, 1, 1)
_THREAD = Thread(b"", False, frozenset(), None, None, None, _LIFE, has_ttl=False)
_PUTS, _WRITES, _LISTED = "put, put_writes, copy", "put, put_writes", "put, put_writes, set_thread, copy"
_DAMAGED = {name: {"B": b""} for name in ("epoch", "claim", "claimed_until")}
_OF_DAMAGED = "deletion of a thread whose item is damaged"
_SOMETHING, _NOTHING = "deletion that leaves something", "deletion that leaves nothing"

TRANSITIONS: Sequence[Transition] = (
    Transition(protocol.create_thread, (b"", _LIFE, 0), _PUTS, [_ABSENT], _ACTIVE),
    Transition(
        protocol.begin_anew, (b"", b"", _LIFE, 0), _PUTS, [_PENDING, _ACTIVE], _ACTIVE, {"is_listed": True}
    ),
    Transition(protocol.create_pending_thread, (b"", 0), "deletion", [_ABSENT], _PENDING),
    Transition(protocol.begin_epoch, (_THREAD, _LIFE, 0, None), _PUTS, [_PENDING], _ACTIVE),
    Transition(protocol.begin_copy, (b"", b"", _LIFE, None), "copy", [_ABSENT, *_PRESENT], _COPIED),
    Transition(protocol.end_copy, (b"", _LIFE), "copy", [_COPIED], _ACTIVE),
    Transition(protocol.note_use, (_THREAD, 0), _WRITES, [_ACTIVE], None),
    Transition(protocol.begin_renewal, (_THREAD, 0), _WRITES, [_ACTIVE], None),
    Transition(protocol.end_renewal, (_THREAD, 10, 0), _WRITES, [_ACTIVE], None),
    Transition(protocol.list_thread, (b"", {}, 0, 0), _LISTED, _PRESENT, None),
    Transition(protocol.touch_thread, (b"", 0, 0), _WRITES, _PRESENT, None),
    Transition(protocol.describe_thread, (b"", {}, {}), "set_thread", _PRESENT, None),
    Transition(protocol.claim_thread, (b"", 0), "deletion", _PRESENT, None),
    Transition(protocol.extend_claimed_thread, (b"", 0), "deletion", _PRESENT, None),
    Transition(protocol.reset_thread, (_DAMAGED, b""), _OF_DAMAGED, _PRESENT, _PENDING),
    Transition(protocol.end_epoch, (b"", b"", b"", 0), "deletion", _PRESENT, _PENDING),
    Transition(protocol.finalize, (b"", b""), _SOMETHING, _PRESENT, _ACTIVE, {"stays_pending": False}),
    Transition(
        protocol.finalize,
        (b"", b""),
        f"{_NOTHING}, or before any put",
        _PRESENT,
        None,
        {"stays_pending": True},
    ),
    Transition(protocol.release_thread, (b"",), "deletion", _PRESENT, None),
    Transition(protocol.remove_thread, (b"",), _NOTHING, [_PENDING], _ABSENT),
)


def transitions() -> Iterator[str]:
    """List the changes of a thread item, with their conditions."""
    yield "| change | by | from | to | condition |"
    yield "|---|---|---|---|---|"
    for each in TRANSITIONS:
        before, after = ", ".join(each.before), each.after or "as before"
        condition = _condition(each.change(*each.arguments, **each.options))
        yield f"| `{each.change.__name__}` | {each.by} | {before} | {after} | `{condition}` |"


def _condition(change: Change) -> str:
    """Return the condition of a change, with the names of attributes for their placeholders."""
    return re.sub(r"#\w+", lambda match: change.names[match[0]], change.condition)
