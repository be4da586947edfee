"""Charts of what was measured, as SVG: bars on a logarithmic scale, and lines on two of them.

Text is text, numbers stand beside what they belong to, and colours suit light and dark pages alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# The first colour is ours, in every chart; the last line is dashed, since it lies on another one.
_LIGHT = ("#0b6bcb", "#8a8f98", "#d9822b", "#b8529a", "#3f8f5f")
_DARK = ("#6cb6ff", "#8b949e", "#e8a15c", "#d98bc4", "#6fc28f")
_WIDTH = 760
_MARGIN = 16
_TITLE_HEIGHT = 40
_LEGEND_HEIGHT = 22
_SHAPES = (
    ".small{font-size:11px}.title{font-size:15px;font-weight:600}"
    "polyline,path{fill:none}polyline{stroke-width:2}.l4{stroke-dasharray:7 5}"
)


@dataclass(frozen=True)
class Bar:
    """An amount, and the text that stands behind it; no amount where there is only the text."""

    name: str
    amount: float | None
    text: str


@dataclass(frozen=True)
class Line:
    """Points from left to right, and what is said at the end of the line."""

    name: str
    points: Sequence[tuple[float, float]]
    end: str = ""


@dataclass(frozen=True)
class _Scale:
    """A logarithmic scale between two positions."""

    low: float
    high: float
    start: float
    end: float

    def at(self, amount: float) -> float:
        share = math.log(amount / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)


def bars(title: str, groups: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """Draw groups of bars, all groups with the same names in the same order."""
    left, row, gap = 120, 15, 12
    amounts = [bar.amount for _, group in groups for bar in group if bar.amount is not None]
    scale = _Scale(min(amounts) / 2, max(amounts), left, _WIDTH - 90)
    names = [bar.name for bar in groups[0][1]]
    top = _TITLE_HEIGHT + _LEGEND_HEIGHT * math.ceil(len(names) / 2) + gap
    drawn = [*_legend(names)]
    for label, group in groups:
        middle = top + len(group) * row / 2
        drawn.append(_text(left - 8, middle + 4, label, "end"))
        for index, bar in enumerate(group):
            end = left if bar.amount is None else scale.at(bar.amount)
            y = top + index * row
            drawn.append(
                f'<rect class="c{index}" x="{left}" y="{y:g}" width="{end - left:.1f}" height="{row - 3}" rx="1.5"/>'
            )
            drawn.append(_text(end + 5, y + row - 5, bar.text, kind="small"))
        top += len(group) * row + gap
    return _picture(f"{title} (logarithmic)", top, drawn)


def lines(title: str, unit: str, drawn_lines: Sequence[Line]) -> str:
    """Draw lines over an axis of some unit; both axes are logarithmic."""
    points = [point for line in drawn_lines for point in line.points]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    names = [line.name for line in drawn_lines]
    top = _TITLE_HEIGHT + _LEGEND_HEIGHT * math.ceil(len(names) / 2) + 16
    bottom = top + 260
    across = _Scale(min(xs), max(xs), 50, _WIDTH - 90)
    upward = _Scale(10 ** math.floor(math.log10(min(ys))), max(ys), bottom, top)
    drawn = [*_legend(names), _text(_WIDTH - _MARGIN, bottom + 18, unit, "end")]
    drawn += [_text(across.at(x), bottom + 18, f"{x:g}", "middle") for x in _ticks(min(xs), max(xs), 2)]
    for y in _ticks(upward.low, max(ys), 10):
        height = upward.at(y)
        drawn.append(f'<path class="grid" d="M50 {height:.1f}H{_WIDTH - 90}"/>')
        drawn.append(_text(44, height + 4, f"{y:g}", "end"))
    labels: list[tuple[float, float]] = []
    for index, line in enumerate(drawn_lines):
        path = " ".join(f"{across.at(x):.1f},{upward.at(y):.1f}" for x, y in line.points)
        x, y = line.points[-1]
        end, height = across.at(x), upward.at(y)
        drawn.append(f'<polyline class="l{index}" points="{path}"/>')
        drawn.append(f'<circle class="c{index}" cx="{end:.1f}" cy="{height:.1f}" r="3"/>')
        label = _free(labels, end + 7, height + 4)
        labels.append(label)
        drawn.append(_text(*label, f"{y:,.1f} {line.end}".strip(), kind="small"))
    return _picture(f"{title} (logarithmic)", bottom + 30, drawn)


def _free(labels: Sequence[tuple[float, float]], x: float, y: float) -> tuple[float, float]:
    """Return a place for a label, lower than wanted where it would lie on another one."""
    while any(abs(x - left) < 90 and abs(y - height) < 12 for left, height in labels):
        y += 4
    return x, y


def _ticks(low: float, high: float, factor: int) -> list[float]:
    """Return the lowest amount and its multiples by powers of the factor."""
    count = int(math.log(high / low) / math.log(factor) + 1e-9)
    return [low * factor**power for power in range(count + 1)]


def _legend(names: Sequence[str]) -> list[str]:
    """Return a coloured square and a name each, in two columns."""
    drawn = []
    for index, name in enumerate(names):
        x = _MARGIN + index % 2 * _WIDTH / 2
        y = _TITLE_HEIGHT + index // 2 * _LEGEND_HEIGHT
        drawn.append(f'<rect class="c{index}" x="{x:g}" y="{y}" width="11" height="11" rx="2"/>')
        drawn.append(_text(x + 17, y + 10, name))
    return drawn


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "text") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _picture(title: str, height: float, drawn: Sequence[str]) -> str:
    light, dark = _style("#24292f", "#d8dee4", _LIGHT), _style("#d0d7de", "#3d444d", _DARK)
    label = escape(title, {'"': "&quot;"})
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:g}"'
        f' viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{label}"'
        ' font-family="system-ui, sans-serif" font-size="13">'
    )
    style = f"<style>{_SHAPES}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
    return "\n".join([head, style, _text(_MARGIN, 24, title, kind="title"), *drawn, "</svg>"]) + "\n"


def _style(text: str, grid: str, colours: Sequence[str]) -> str:
    """Return the colours of one scheme as rules."""
    series = (
        f".c{index}{{fill:{colour}}}.l{index}{{stroke:{colour}}}" for index, colour in enumerate(colours)
    )
    return f"text{{fill:{text}}}.grid{{stroke:{grid}}}{''.join(series)}"
