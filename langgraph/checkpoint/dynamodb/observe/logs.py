"""Events as log records: one for each operation, with its fields."""

import json
import logging
import re
from dataclasses import asdict

from .._runtime.events import Event

logger = logging.getLogger(__name__)

_LEVELS = {"ok": logging.DEBUG, "error": logging.WARNING}


# Texts with spaces, quotation marks, `=` or control characters could look like further fields or lines.
_PLAIN = re.compile(r"[!#-&(-<>-~]+")


class LogEvents:
    """Logs each event: `ok` at the level DEBUG, errors at WARNING, and the rest at INFO.

    A record has the event's fields in `record.event`, for a formatter that writes JSON.

    Args:
        to: The logger; `None` for the one of this module.
    """

    def __init__(self, to: logging.Logger | None = None) -> None:
        """Take the logger."""
        self._logger = to or logger

    def __call__(self, event: Event) -> None:
        """Log an event."""
        level = _LEVELS.get(event.outcome, logging.INFO)
        if self._logger.isEnabledFor(level):
            fields = given(event)
            told = " ".join(f"{name}={_told(value)}" for name, value in fields.items())
            self._logger.log(level, "%s", told, extra={"event": fields})


def given(event: Event) -> dict[str, object]:
    """Return the fields of an event that say something."""
    return {name: value for name, value in asdict(event).items() if value is not None}


def _told(value: object) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value)
    return f"{value:.6g}" if isinstance(value, float) and value < 1e6 else str(value)
