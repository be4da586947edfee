"""Collecting the errors of single threads in a call over several, which continues with the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerError,
    CheckpointFormatError,
    ThreadBusyError,
)

OF_ONE_THREAD = (CheckpointCorruptionError, CheckpointFormatError, ThreadBusyError)
"""Errors that concern one thread and do not keep others from being served."""


class ErrorCollector:
    """Collects errors that concern one thread alone: damage, or another deletion. Any other error ends the call."""

    def __init__(self) -> None:
        """Start without errors."""
        self._errors: dict[str, CheckpointerError] = {}

    @contextmanager
    def capture(self, name: str) -> Iterator[None]:
        """Collect an error of one thread or namespace under its name."""
        try:
            yield
        except OF_ONE_THREAD as error:
            self._errors[name] = error

    def raise_first(self) -> None:
        """Raise the collected error. For several, raise one of the first one's type that names all left out.

        Raises:
            CheckpointCorruptionError: Stored data is damaged.
            CheckpointFormatError: Data was stored by a newer release.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        errors = list(self._errors.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            failed = ", ".join(self._errors)
            raise type(errors[0])(
                f"{len(errors)} failed, all others were served: {failed}; the first error: {errors[0]}"
            ) from errors[0]
