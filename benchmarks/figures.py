"""What a benchmark returns: tables of what was measured, and the figures to reach with what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """A promise, and what became of it."""

    name: str
    target: str
    measured: str
    reached: bool
    # What stands in the way of a figure that was not reached.
    remark: str = ""

    @property
    def verdict(self) -> str:
        """Say in a word or two what became of it."""
        return "reached" if self.reached else "NOT REACHED"


@dataclass(frozen=True)
class Section:
    """One part of the report."""

    title: str
    # Plain text, as `benchmarks.report.table` makes it.
    tables: Sequence[str]
    figures: Sequence[Figure] = ()
    # Everything that was measured, as JSON can hold it.
    data: Mapping[str, object] = field(default_factory=dict)
    # SVG by the name of the file.
    charts: Mapping[str, str] = field(default_factory=dict)


def at_least(name: str, target: float, ratio: float) -> Figure:
    """Return the figure of a ratio that is to be so many times or more."""
    return Figure(name, f"at least {target:g} times", f"{ratio:.1f} times", ratio >= target)


def at_most(name: str, target: int, count: int) -> Figure:
    """Return the figure of a count that is to be so much or less."""
    return Figure(name, f"at most {target:,}" if target else "none", f"{count:,}", count <= target)


def within(name: str, target: float, ratio: float, remark: str = "") -> Figure:
    """Return the figure of a ratio that is to be so much or less."""
    return Figure(name, f"within {target:g} times", f"{ratio:.2f} times", ratio <= target, remark)


def under(name: str, target: float, amount: float, unit: str = "", remark: str = "") -> Figure:
    """Return the figure of an amount that is to be less than the target."""
    return Figure(name, f"under {target:g}{unit}", f"{amount:,.1f}{unit}", amount < target, remark)
