"""What a section returns: tables for the pages, and bounds that have to hold."""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True)
class Bound:
    """What was measured, and how much or how little of it there may be."""

    name: str
    measured: float
    most: float = inf
    least: float = 0

    @property
    def holds(self) -> bool:
        """Whether the measured value is within the bound."""
        return self.least <= self.measured <= self.most

    @property
    def row(self) -> Sequence[object]:
        """The bound as a row of a table."""
        limit = f"at least {self.least:g}" if self.most == inf else f"at most {self.most:,g}"
        return self.name, limit, f"{self.measured:,.2f}", "holds" if self.holds else "BROKEN"


@dataclass(frozen=True)
class Section:
    """What a section measured."""

    # Markdown, by the name of the place in a page where the table belongs.
    tables: Mapping[str, str]
    bounds: Sequence[Bound] = ()
    # SVG, by the name of the file.
    charts: Mapping[str, str] = field(default_factory=dict)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    first, *others = (f"| {' | '.join(map(_text, line))} |\n" for line in (header, *rows))
    return "".join((first, f"|{'---|' * len(header)}\n", *others))


def _text(cell: object) -> str:
    if cell is None:
        return "fails"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell.is_integer() else f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def written(page: str, name: str, made: str, command: str) -> str:
    """Return a page with a table in its place, under the command that made it."""
    place = re.compile(rf"(?<=<!-- measured: {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    if not place.search(page):
        raise ValueError(f"The page has no place for {name}.")
    return place.sub(lambda _: f"By `{command}`, {datetime.date.today():%Y-%m-%d}:\n\n{made}", page, count=1)
