"""The tables and the diagram of docs/design.md that follow from the protocol.

    python -m tools.protocol_tables

writes them into the document, each between a pair of comments that name it. A test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb.protocol import TRANSITIONS, WRITE_ORDER, State

DOCUMENT = Path(__file__).parents[1] / "docs" / "design.md"
_BLOCK = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def _diagram() -> Iterator[str]:
    """Draw the states of a thread item."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    for each in TRANSITIONS:
        for before in each.before:
            after = before if each.after is None else each.after
            if after is not before:
                yield f"    {_state(before)} --> {_state(after)}: {each.change} ({each.by})"
    yield "```"


def _state(state: State) -> str:
    return "[*]" if state is State.ABSENT else state.value


def _transitions() -> Iterator[str]:
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


def _crashes() -> Iterator[str]:
    yield "| operation | the process dies after | what a reader sees | what is left behind |"
    yield "|---|---|---|---|"
    for operation, steps in WRITE_ORDER.items():
        for step in steps:
            yield f"| {operation} | {step.name} | {step.seen} | {step.left} |"


BLOCKS: Mapping[str, Callable[[], Iterator[str]]] = {
    "diagram": _diagram,
    "transitions": _transitions,
    "crashes": _crashes,
}


def rendered(text: str) -> str:
    """Return the document with its blocks as the protocol has them."""
    return _BLOCK.sub(lambda match: f"{match[1]}\n" + "\n".join(BLOCKS[match[2]]()) + f"\n\n{match[3]}", text)


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
