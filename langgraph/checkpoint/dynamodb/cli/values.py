"""Stored values, sizes and times in a form that a person may safely see."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from .._format.inert import Stored
from .._format.plain import as_json

# Line ends and tabs stay. Everything else that a terminal may obey, or that reverses text, is spelled out.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


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
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


CENT = 0.01
"""The least cost in dollars that is worth a word."""


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


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(rf"(\d{{1,6}})([{''.join(_UNITS)}])")


def parse_age(text: str) -> timedelta:
    """Read an age such as 30d, or raise `ValueError`."""
    match = _AGE.fullmatch(text)
    if match is None:
        msg = f"{text!r} is not an age; give a whole number with m, h, d or w, such as 30d"
        raise ValueError(msg)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def moment(when: datetime | None) -> str | None:
    """Format a time for people, in UTC."""
    return None if when is None else f"{when.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"
