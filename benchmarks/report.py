"""Tables of plain text: columns with numbers in them to the right, all others to the left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return the rows aligned under their header."""
    columns = [_column(name, [row[index] for row in rows]) for index, name in enumerate(header)]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(name: str, cells: Sequence[object]) -> list[str]:
    """Return a header, a rule and the cells, all as wide as the widest of them."""
    texts = [name, *map(_text, cells)]
    width = max(map(len, texts))
    align = str.rjust if any(isinstance(cell, int | float) for cell in cells) else str.ljust
    texts.insert(1, "-" * width)
    return [align(text, width) for text in texts]


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
