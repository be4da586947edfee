"""Times: when a checkpoint was stored, by its id, and epoch seconds as a `datetime`."""

from datetime import datetime, timedelta, timezone
from uuid import UUID

# The ids that LangGraph makes are UUIDs of version 6, which begin with the time in steps of 100 ns since this day.
_UUID6_EPOCH = datetime(1582, 10, 15, tzinfo=timezone.utc)


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
