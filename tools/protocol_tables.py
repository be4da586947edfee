"""The table of the site's page *Stored format* that follows from the protocol: how a thread item changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb.protocol import Change


class Transition(NamedTuple):
    """A change of a thread item, apart from claims: who sends it, and from which states to which it leads."""

    name: str
    by: str
    before: Sequence[str]
    after: str | None
    """`None`: as before."""
    change: Change
    """The change, made with any arguments, for its condition."""


_ABSENT, _PENDING, _ACTIVE = "absent", "pending", "active"
_PRESENT = (_PENDING, _ACTIVE)
_PUTS, _WRITES = "put, put_writes, copy", "put, put_writes"
_DAMAGED = {name: {"B": b""} for name in ("epoch", "claim", "claimed_until")}

TRANSITIONS: Sequence[Transition] = (
    Transition("create_thread", _PUTS, [_ABSENT], _ACTIVE, protocol.create_thread(b"", None, None, 0)),
    Transition(
        "create_pending_thread", "deletion", [_ABSENT], _PENDING, protocol.create_pending_thread(b"", 0)
    ),
    Transition("begin_epoch", _PUTS, [_PENDING], _ACTIVE, protocol.begin_epoch(b"", None)),
    Transition("extend_thread", _PUTS, [_ACTIVE], None, protocol.extend_thread(b"", 0)),
    Transition("keep_thread", _WRITES, _PRESENT, None, protocol.keep_thread(b"", 0, None, None)),
    Transition(
        "list_thread",
        "put, put_writes, set_thread, copy",
        _PRESENT,
        None,
        protocol.list_thread(b"", {}, 0, 0),
    ),
    Transition("touch_thread", _WRITES, _PRESENT, None, protocol.touch_thread(b"", 0, 0)),
    Transition("describe_thread", "set_thread", _PRESENT, None, protocol.describe_thread(b"", {}, {})),
    Transition("claim_thread", "deletion", _PRESENT, None, protocol.claim_thread(b"", 0)),
    Transition("extend_claimed_thread", "deletion", _PRESENT, None, protocol.extend_claimed_thread(b"", 0)),
    Transition(
        "reset_thread",
        "deletion of a thread whose item is damaged",
        _PRESENT,
        _PENDING,
        protocol.reset_thread(_DAMAGED, b""),
    ),
    Transition("end_epoch", "deletion", _PRESENT, _PENDING, protocol.end_epoch(b"", b"", b"", 0)),
    Transition(
        "finalize",
        "deletion that leaves something",
        _PRESENT,
        _ACTIVE,
        protocol.finalize(b"", b"", stays_pending=False),
    ),
    Transition(
        "finalize",
        "deletion that leaves nothing, or before any put",
        _PRESENT,
        None,
        protocol.finalize(b"", b"", stays_pending=True),
    ),
    Transition("release_thread", "deletion", _PRESENT, None, protocol.release_thread(b"")),
    Transition(
        "remove_thread", "deletion that leaves nothing", [_PENDING], _ABSENT, protocol.remove_thread(b"")
    ),
)


def transitions() -> Iterator[str]:
    """List the changes of a thread item, with their conditions."""
    yield "| change | by | from | to | condition |"
    yield "|---|---|---|---|---|"
    for each in TRANSITIONS:
        before, after = ", ".join(each.before), each.after or "as before"
        yield f"| `{each.name}` | {each.by} | {before} | {after} | `{_condition(each.change)}` |"


def _condition(change: Change) -> str:
    """Return the condition of a change, with the names of attributes for their placeholders."""
    return re.sub(r"#\w+", lambda match: change.names[match[0]], change.condition)
