"""A bounded memory of the newest of each thread and namespace. It saves work, and is never a source of truth."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process

T = TypeVar("T")

_ENTRY_BYTES = 1000


class LastUsed(Generic[T]):
    """The entry that was kept last for each namespace, up to a total size. Safe to use from several OS threads."""

    def __init__(self, bytes_max: int) -> None:
        """Take the bound on the estimated size of all entries."""
        self._bytes_max = bytes_max
        start_in_every_process(self)

    def start(self) -> None:
        """Start empty; also after a fork, which may have come while another OS thread was changing the entries."""
        self._bytes = 0
        # By thread and namespace, the least recently used first.
        self._entries: OrderedDict[tuple[str, str], tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, namespace: tuple[str, str]) -> T | None:
        """Return what was kept for a thread and a namespace."""
        with self._lock:
            if namespace in self._entries:
                self._entries.move_to_end(namespace)
            return self._entries.get(namespace, (None, 0))[0]

    def keep(self, namespace: tuple[str, str], entry: T, size_bytes: int) -> None:
        """Keep an entry of an estimated size instead of the one before."""
        with self._lock:
            self._drop(namespace)
            self._entries[namespace] = entry, size_bytes
            self._bytes += _ENTRY_BYTES + size_bytes
            while self._bytes > self._bytes_max and self._entries:
                self._drop(next(iter(self._entries)))

    def forget(self, thread_id: str | None = None) -> None:
        """Forget a thread, or all."""
        with self._lock:
            for namespace in [each for each in self._entries if thread_id in (None, each[0])]:
                self._drop(namespace)

    def _drop(self, namespace: tuple[str, str]) -> None:
        dropped = self._entries.pop(namespace, None)
        if dropped is not None:
            self._bytes -= _ENTRY_BYTES + dropped[1]
