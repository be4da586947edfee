"""Times: when a checkpoint was stored, by its id, and how times and ages are written."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from uuid import UUID

# The ids that LangGraph makes are UUIDs of version 6, which begin with the time in steps of 100 ns since this day.
_UUID6_EPOCH = datetime(1582, 10, 15, tzinfo=timezone.utc)


def stored_at(checkpoint_id: str | None) -> datetime | None:
    """When a checkpoint was made, which its id says where LangGraph made the id."""
    try:
        parsed = UUID(checkpoint_id or "")
    except ValueError:
        return None
    if parsed.version != 6:
        return None
    steps = (parsed.int >> 80 << 12) | (parsed.int >> 64 & 0xFFF)
    return _UUID6_EPOCH + timedelta(microseconds=steps // 10)


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(rf"(\d{{1,6}})([{''.join(_UNITS)}])")


def parse_age(text: str) -> timedelta:
    """Read an age such as 30d, or raise `ValueError`."""
    match = _AGE.fullmatch(text)
    if match is None:
        msg = f"{text!r} is no age; give a whole number with m, h, d or w, such as 30d"
        raise ValueError(msg)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def in_epoch_seconds(seconds: int | None) -> datetime | None:
    """A time in epoch seconds, which no calendar may have."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None


def moment(when: datetime | None) -> str | None:
    """A time as people read it, in UTC."""
    return None if when is None else f"{when.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"
