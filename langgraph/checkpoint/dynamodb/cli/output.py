"""Output: results go to standard output, everything else to standard error, so that pipes receive only results."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, Literal, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from .._format.inert import Stored, as_json

# Line ends and tabs stay. Everything else that a terminal may obey, or that reverses text, is spelled out.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
CENT = 0.01
"""The least cost in dollars that is worth a word."""
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Longer ones would begin before the first year.
_AGE = re.compile(rf"(\d{{1,5}})([{''.join(_UNITS)}])")
# Nobody looks at a pipe, so its lines may have any length, and no id is cut.
_PIPE_COLUMNS = 100_000
_INDENT = "  "
_GAP = 2
# Longer words are ids, which may fold down to this length.
_ID_CHARACTERS = 12
T = TypeVar("T")


def readable(text: str) -> str:
    """Return text without anything that a terminal would obey."""
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def sized(size_bytes: float) -> str:
    """Format a number of bytes for people."""
    if size_bytes < 1e3:
        return counted(round(size_bytes), "byte")
    return f"{size_bytes / 1e3:,.1f} KB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number of things."""
    plural = plural or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def priced(units: float, noun: str, unit_dollars: float) -> str:
    """Format capacity units for people, with what they cost on demand if that is a cent or more."""
    dollars = units * unit_dollars
    return counted(round(units), noun) + (f", about ${dollars:,.2f} on demand" if dollars >= CENT else "")


def total(name: str, number: int) -> str:
    """Format a total by its name in a JSON document, which is a plural there, if it has one."""
    plural = name.replace("_", " ")
    singular = "memory" if plural == "memories" else plural.removesuffix("s")
    return counted(number, singular, plural)


def cut(text: str, limit: int | None) -> str:
    """Cut text to a number of characters, and add its full size."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({sized(len(text.encode(errors='replace')))} in all)"


def brief(value: Any, limit: int | None = 500) -> str:
    """Format a value as one piece of text: messages as they were said, everything else as JSON, long values cut."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, (bytes, bytearray)):
        return f"<{sized(len(value))}>"
    if isinstance(value, Stored):
        return _brief_object(value, limit)
    if isinstance(value, Sequence) and any(isinstance(each, Stored) for each in value):
        return "\n".join(brief(each, limit) for each in value)
    return cut(json.dumps(as_json(value), ensure_ascii=False, default=repr), limit)


def _brief_object(value: Stored, limit: int | None) -> str:
    if value.is_message:
        return _message(value.content, limit)
    content = brief(value.content, limit)
    return content if value.is_plain else f"{value.kind.rpartition('.')[2]}({content})"


def _message(fields: Mapping[str, Any], limit: int | None) -> str:
    """Format a message with its author, and the tools that it calls."""
    who = str(fields.get("type", "message"))
    name = fields.get("name")
    said = fields.get("content", "")
    parts = [said if isinstance(said, str) else brief(said, limit)] if said else []
    calls = fields.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, Mapping):
            continue
        arguments = json.dumps(as_json(call.get("args")), ensure_ascii=False)
        parts.append(f"→ {call.get('name')}({arguments})")
    return f"{who}{f' ({name})' if name else ''}: {cut(' '.join(parts), limit)}"


def parse_age(text: str) -> timedelta:
    """Read an age such as 30d, or raise `ValueError`."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not an age; give a whole number up to 99999 with m, h, d or w, such as 30d"
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def moment(when: datetime | None) -> str | None:
    """Format a time for people, in UTC."""
    return None if when is None else f"{when.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"


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

    def table(
        self, documents: Sequence[Any], header: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Print documents for a script, or rows for a person. None is shown as a dash; numbers are aligned right.

        Where the terminal is too narrow, columns without a value go first, then lines break between words, and then
        ids fold. If words would break, each row becomes a paragraph.
        """
        if self.as_json:
            self.json(documents)
            return
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
