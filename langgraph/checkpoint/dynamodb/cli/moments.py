"""Times and ages as text."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

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
