"""The tables of the demo: the checkpoints of a thread, the items of a table, the requests of each process."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from benchmarks.dollars import CONVERSATIONS, request_dollars
from benchmarks.meter import WRITES
from benchmarks.stored import item_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from langgraph.checkpoint.base import CheckpointTuple

_TEXT_MAX = 60


def history_table(history: Sequence[CheckpointTuple], skip: int = 0) -> str:
    """Return a table of checkpoints, oldest first, without the first so many."""
    oldest_first = list(reversed(history))
    numbers = {found.checkpoint["id"]: number for number, found in enumerate(oldest_first, 1)}
    rows = []
    for found in oldest_first[skip:]:
        parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else ""
        messages = found.checkpoint["channel_values"].get("messages", [])
        rows.append(
            (
                numbers[found.checkpoint["id"]],
                numbers.get(parent, "-"),
                found.metadata["source"],
                found.metadata["step"],
                len(messages),
                _shortened(messages[-1].content if messages else ""),
            )
        )
    return _indented(_table(["checkpoint", "parent", "source", "step", "messages", "last message"], rows))


def stored_table(items: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of how many items of each kind there are, and of their size."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item in items:
        kind = _kind(item["SK"]["S"])
        counts[kind] += 1
        sizes[kind] += item_bytes(item)
    rows = [(kind, counts[kind], sizes[kind]) for kind in sorted(counts)]
    rows.append(("together", counts.total(), sizes.total()))
    return _indented(_table(["items", "number", "bytes"], rows))


def usage_table(usage: Path, checkpoints: Mapping[str, int], *, reports_capacity: bool) -> str:
    """Return a table of the requests of each process, with their capacity and price if the engine computes it."""
    used = [json.loads(line) for line in usage.read_text(encoding="utf-8").splitlines()]
    rows = []
    for action, steps in [*checkpoints.items(), ("together", sum(checkpoints.values()))]:
        mine = [each for each in used if action in (each["action"], "together")]
        written = sum(each["units"] for each in mine if each["call"] in WRITES)
        read = sum(each["units"] for each in mine) - written
        dollars = CONVERSATIONS * request_dollars(written, read)
        capacity = (written, read, written / steps, f"{dollars:.3f}") if reports_capacity else ("-",) * 4
        rows.append((action, steps, len(mine), *capacity))
    header = ["process", "steps", "requests", "write units", "read units", "write units per step"]
    return _indented(_table([*header, f"$ for {CONVERSATIONS:,} of them"], rows))


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return the rows aligned under their header."""
    columns = [_column(name, [row[index] for row in rows]) for index, name in enumerate(header)]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(name: str, cells: Sequence[object]) -> list[str]:
    """Return a header, a rule and the cells, all as wide as the widest of them."""
    texts = [name, *map(_cell_text, cells)]
    width = max(map(len, texts))
    align = str.rjust if any(isinstance(cell, int | float) for cell in cells) else str.ljust
    texts.insert(1, "-" * width)
    return [align(text, width) for text in texts]


def _cell_text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _kind(sort_key: str) -> str:
    """Return what an item is, as its sort key tells."""
    if sort_key.startswith("S#"):
        return "parts of large values"
    if sort_key.startswith("C#"):
        return "pending writes" if "#W#" in sort_key else "checkpoints"
    if sort_key.startswith("M#"):
        return "memories"
    return "about threads and memories"


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


def _indented(text: str) -> str:
    return "\n".join(f"     {line}" for line in text.splitlines())
