"""What this process holds open and how much memory it has; None where the platform does not tell."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")
_MEMORY = Path("/proc/self/statm")
_SAMPLE_SECONDS = 0.02


def open_sockets() -> set[str] | None:
    """Return the names that the system has for the sockets of this process."""
    if not _DESCRIPTORS.exists():
        return None
    return {name for name in map(_target, _DESCRIPTORS.iterdir()) if name.startswith("socket:")}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        # That of the listing itself has gone by now.
        return ""


def resident_bytes() -> int | None:
    """Return how much memory of this process is resident."""
    if not _MEMORY.exists():
        return None
    return int(_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class MemoryGrowth:
    """The most memory that was resident at any time within the context, beyond what was at its start."""

    def __init__(self) -> None:
        """Measure nothing yet."""
        self.bytes_max: int | None = None
        self._before: int | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="memory")

    def __enter__(self) -> MemoryGrowth:
        """Begin to measure."""
        self._before = resident_bytes()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """End measuring."""
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while self._before is not None:
            self.bytes_max = max(self.bytes_max or 0, (resident_bytes() or 0) - self._before)
            if self._done.wait(_SAMPLE_SECONDS):
                return
