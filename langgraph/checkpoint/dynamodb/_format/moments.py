"""Times: when a checkpoint was stored, by its id, and epoch seconds or text as a `datetime`."""

import re
from datetime import datetime, timedelta, timezone
from uuid import UUID

# The ids that LangGraph makes are UUIDs of version 6, which begin with the time in steps of 100 ns since this day.
_UUID6_EPOCH = datetime(1582, 10, 15, tzinfo=timezone.utc)
# A date, and perhaps a time of day with a fraction and a zone, as RFC 3339 and `isoformat` write them.
_TEXT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?([Zz]|[+-]\d\d:\d\d(?::\d\d)?)?)?",
    re.ASCII,
)


def stored_at(checkpoint_id: str | None) -> datetime | None:
    """Return when a checkpoint was made, by its id; `None` if LangGraph did not make the id."""
    try:
        parsed = UUID(checkpoint_id or "")
    except ValueError:
        return None
    # `UUID.version` is None for the first id of a thread of LangGraph.js, whose variant is none of RFC 9562.
    if (parsed.int >> 76) & 0xF != 6:
        return None
    steps = (parsed.int >> 80 << 12) | (parsed.int >> 64 & 0xFFF)
    return _UUID6_EPOCH + timedelta(microseconds=steps // 10)


def in_epoch_seconds(seconds: int | None) -> datetime | None:
    """Return the time of a number of epoch seconds; `None` if it is missing or out of range."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None


def moment_of(text: str) -> datetime:
    """Return the time of ISO 8601 text, in UTC if it names no zone.

    `datetime.fromisoformat` takes no Z before Python 3.11, and only fractions of three or six digits.

    Raises:
        ValueError: The text is no time.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        msg = f"{text[:40]!r} is no time of ISO 8601"
        raise ValueError(msg)
    day, minute, second, fraction, zone = found.groups()
    whole = f"{day}T{minute or '00:00'}:{second or '00'}.{(fraction or '')[:6]:0<6}"
    return datetime.fromisoformat(whole + (zone if zone and len(zone) > 1 else "+00:00"))
