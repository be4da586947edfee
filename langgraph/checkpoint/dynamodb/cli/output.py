"""Output: results go to standard output, everything else to standard error, so that pipes receive only results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from .._format.plain import as_json
from .values import readable

# Nobody looks at a pipe, so its lines may have any length, and no id is cut.
_PIPE_COLUMNS = 100_000
_INDENT = "  "
_GAP = 2
# Longer words are ids, which may fold down to this length.
_ID_CHARACTERS = 12

T = TypeVar("T")


class Output:
    """The output of a command."""

    def __init__(self, *, as_json: bool) -> None:
        """Print to the current streams of this process."""
        self.as_json = as_json
        self._results = _console(sys.stdout)
        self._notes = _console(sys.stderr)

    @property
    def is_watched(self) -> bool:
        """Whether there is a person to ask."""
        return sys.stdin.isatty() and self._notes.is_terminal

    def json(self, result: Any) -> None:
        """Print one document for a script, in ASCII, which every pipe accepts."""
        self._results.file.write(json.dumps(as_json(result), indent=2, allow_nan=False) + "\n")

    def result(self, document: Any, text: str) -> None:
        """Print the document for a script, or the text for a person."""
        if self.as_json:
            self.json(document)
        else:
            self.text(text)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows under their headings. None is shown as a dash; numbers are aligned right.

        Where the terminal is too narrow, columns without a value go first, then lines break between words, and then
        ids fold. If words would break, each row becomes a paragraph.
        """
        given = list(rows)
        values = zip(*given, strict=True) if given else [()] * len(header)
        columns = [_Column(*each) for each in zip(header, values, strict=True)]
        if _width([each.whole for each in columns]) > self._results.width:
            columns = [each for each in columns if not each.is_empty]
        lines, widths = (
            list(zip(*(each.cells for each in columns), strict=True)),
            _fitted(columns, self._results.width),
        )
        if widths is None:
            for number, line in enumerate(lines):
                if number:
                    self.text()
                for column, cell in zip(columns, line, strict=True):
                    self.field(column.name, cell.plain)
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.name, overflow="fold", justify=column.justify, width=width)
        for line in lines:
            table.add_row(*line)
        self._results.print(table)

    def text(self, text: str = "", style: str = "") -> None:
        """Print a part of the result for a person."""
        self._results.print(label(text, style))

    def field(self, name: str, value: str) -> None:
        """Print a named part of the result. Several lines are indented below the name."""
        head = label(f"{name}: ", "bold")
        if "\n" in value:
            self._results.print(head)
            for line in label(value).wrap(self._results, self._results.width - len(_INDENT)):
                self._results.print(Text.assemble(_INDENT, line))
        else:
            self._results.print(Text.assemble(head, label(value)))

    def ask(self, question: str) -> bool:
        """Ask the user whether to continue. Anything but yes is no."""
        try:
            return Confirm.ask(label(question), console=self._notes, default=False)
        except EOFError:
            return False

    def note(self, text: str) -> None:
        """Print a message that is not part of the result."""
        self._notes.print(label(text))

    def error(self, text: str) -> None:
        """Print why the command ends."""
        self._notes.print(Text.assemble(label("error: ", "bold red"), label(text)))

    @contextmanager
    def progress(self, what: str, total: float | None) -> Iterator[Callable[[float], None]]:
        """Show progress on a terminal. Yield a function that advances it, which several threads may call."""
        columns = (*Progress.get_default_columns(), MofNCompleteColumn())
        hides = not self._notes.is_terminal
        with Progress(*columns, console=self._notes, transient=True, disable=hides) as bar:
            yield partial(bar.advance, bar.add_task(what, total=total))

    def track(self, what: str, things: Iterable[T], total: int | None = None) -> Iterator[T]:
        """Yield some things, and show how far they are."""
        with self.progress(what, total) as advance:
            for each in things:
                yield each
                advance(1)


def label(text: str, style: str = "") -> Text:
    """Return text for the terminal, without control characters that it would obey."""
    return Text(readable(text), style=style)


def _console(stream: Any) -> Console:
    return Console(
        file=stream,
        width=None if stream.isatty() else _PIPE_COLUMNS,
        highlight=False,
        markup=False,
        emoji=False,
    )


class _Column:
    """A column of a table, and how wide it is."""

    def __init__(self, name: str, values: Sequence[object]) -> None:
        self.name = name
        self.cells = [_cell(each) for each in values]
        self.is_empty = all(each is None for each in values)
        self.justify: Literal["left", "right"] = "right" if any(map(_is_number, values)) else "left"
        shown = [Text(name), *self.cells]
        self.whole = max(
            max((cell_len(line) for line in each.plain.split("\n")), default=0) for each in shown
        )
        self.word = max(max(map(cell_len, each.plain.split()), default=0) for each in shown)


def _fitted(columns: Sequence[_Column], width: int) -> list[int] | None:
    """Return widths of columns that fit into a line. None if words that are no ids would break."""
    widths = [each.word for each in columns]
    while _width(widths) > width:
        if max(widths) <= _ID_CHARACTERS:
            return None
        widths[widths.index(max(widths))] -= 1
    for position, each in enumerate(columns):
        widths[position] += max(0, min(each.whole - widths[position], width - _width(widths)))
    return widths


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * max(0, len(widths) - 1)


def _is_number(value: object) -> bool:
    return isinstance(value, int)


def _cell(value: object) -> Text:
    if value is None:
        return label("-")
    return Text(f"{value:,}") if isinstance(value, int) else label(str(value))
