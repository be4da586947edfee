"""Times: when a checkpoint was stored, by its id, and what a number of epoch seconds is."""

from __future__ import annotations

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


def in_epoch_seconds(seconds: int | None) -> datetime | None:
    """A time in epoch seconds, which no calendar may have."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
