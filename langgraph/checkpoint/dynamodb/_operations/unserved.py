"""What a call over several threads or namespaces could not serve, while it served the others."""

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
"""What is wrong with one thread and keeps no other from being served."""


class Unserved:
    """Collects what concerns one thread alone: damage, or another deletion. Whatever else fails ends the call."""

    def __init__(self) -> None:
        """Start with nothing left out."""
        self._errors: dict[str, CheckpointerError] = {}

    @contextmanager
    def left_out(self, name: str) -> Iterator[None]:
        """Serve one thread or namespace, or note under its name why not."""
        try:
            yield
        except OF_ONE_THREAD as error:
            self._errors[name] = error

    def raise_first(self) -> None:
        """Raise the error if there was one; of several, one like the first that names all that were left out.

        Raises:
            CheckpointCorruptionError: Stored data is damaged.
            CheckpointFormatError: It was stored by a newer release.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        errors = list(self._errors.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            msg = f"{len(errors)} were left out, all others served: {', '.join(self._errors)}; the first: {errors[0]}"
            raise type(errors[0])(msg) from errors[0]
