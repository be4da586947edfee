"""Collecting the errors of single threads in a call over several, which continues with the others."""

from collections.abc import Iterator
from contextlib import contextmanager

from .._format.codec import UnreadableError
from ..errors import CheckpointCorruptionError, CheckpointerError, CheckpointFormatError, ThreadBusyError

OF_ONE_THREAD = (CheckpointCorruptionError, CheckpointFormatError, ThreadBusyError, UnreadableError)
"""Errors that concern one thread and do not keep others from being served."""
# How many of them the error of a call names.
_NAMED_MAX = 20


class ErrorCollector:
    """Collects errors that concern one thread alone: damage, another deletion, another key or serializer.

    Any other error ends the call.
    """

    def __init__(self) -> None:
        """Start without errors."""
        self._errors: dict[str, CheckpointerError] = {}

    @contextmanager
    def capture(self, name: str) -> Iterator[None]:
        """Collect an error of one thread or namespace under its name."""
        try:
            yield
        except OF_ONE_THREAD as error:
            self.add(name, error)

    def add(self, name: str, error: CheckpointerError) -> None:
        """Collect an error, unless there is one of that name."""
        self._errors.setdefault(name, error)

    def __contains__(self, name: str) -> bool:
        """Tell whether an error was collected under a name."""
        return name in self._errors

    def raise_first(self) -> None:
        """Raise the collected error. For several, raise one of the first one's type that names all left out.

        Raises:
            CheckpointCorruptionError: Stored data is damaged.
            CheckpointFormatError: Data was stored by a newer release.
            ThreadBusyError: Another deletion of a thread did not end in time.
            UnreadableError: Data was stored with another key or serializer.
        """
        errors = list(self._errors.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            failed = ", ".join(list(self._errors)[:_NAMED_MAX])
            failed += f" and {len(errors) - _NAMED_MAX:,} more" if len(errors) > _NAMED_MAX else ""
            raise type(errors[0])(
                f"{len(errors)} failed, all others were served: {failed}; the first error: {errors[0]}"
            ) from errors[0]
