"""The tables of the site's page *Stored format* that follow from the protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb.protocol import TRANSITIONS, WRITE_ORDER


def transitions() -> Iterator[str]:
    """List the changes of a thread item, with their conditions."""
    yield "| change | by | from | to | condition |"
    yield "|---|---|---|---|---|"
    for each in TRANSITIONS:
        before = ", ".join(state.value for state in each.before)
        after = "as before" if each.after is None else each.after.value
        yield f"| `{each.change}` | {each.by} | {before} | {after} | `{_condition(each.change)}` |"


def _condition(name: str) -> str:
    """Build a change with any arguments, for its condition."""
    arguments: Mapping[str, tuple[object, ...]] = {
        "create_thread": (b"", None, None, 0),
        "create_pending_thread": (b"", 0),
        "begin_epoch": (b"", None),
        "extend_thread": (b"", 0),
        "keep_thread": (b"", 0, None, None),
        "list_thread": (b"", {}, 0, 0),
        "touch_thread": (b"", 0, 0),
        "describe_thread": (b"", {}, {}),
        "claim_thread": (b"", 0),
        "extend_claimed_thread": (b"", 0),
        "reset_thread": (dict.fromkeys(("epoch", "claim", "claimed_until")), b""),
        "end_epoch": (b"", b"", b"", 0),
        "finalize": (b"", b""),
        "release_thread": (b"",),
        "remove_thread": (b"",),
    }
    options = {"stays_pending": True} if name == "finalize" else {}
    change: protocol.Change = getattr(protocol, name)(*arguments[name], **options)
    return re.sub(r"#(\w+)", lambda match: change.names[match[0]], change.condition)


def crashes() -> Iterator[str]:
    """List the steps of each operation, and what a crash after them leaves."""
    yield "| operation | the process dies after | what a reader sees | what is left behind |"
    yield "|---|---|---|---|"
    for operation, steps in WRITE_ORDER.items():
        for (seen, left), alike in groupby(steps, key=lambda step: (step.seen, step.left)):
            yield f"| {operation} | {' or '.join(step.name for step in alike)} | {seen} | {left} |"
