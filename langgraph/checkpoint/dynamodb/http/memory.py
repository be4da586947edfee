"""All that the client remembers of the newest checkpoint of each namespace: its values' bytes, as the service has them.

With them, a put sends only what has changed in a value, and a read gets only values that are new. The memory is
bounded, and never a source of truth: the service says if it does not have what the client believes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process
from langgraph.checkpoint.dynamodb.http.values import Typed

Namespace: TypeAlias = tuple[str, str]
"""The id of a thread, and a namespace."""

_ENTRY_BYTES = 1000
_VALUE_BYTES = 300


@dataclass(frozen=True)
class KnownCheckpoint:
    """A checkpoint that the service has acknowledged or returned."""

    checkpoint_id: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Typed] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        return _ENTRY_BYTES + sum(_VALUE_BYTES + len(each.data) for each in self.values.values())


class LastValues:
    """The newest known checkpoint of each namespace, up to a total size. Safe to use from several OS threads."""

    def __init__(self, bytes_max: int) -> None:
        """Take the bound on the estimated size of all entries."""
        self._bytes_max = bytes_max
        start_in_every_process(self)

    def start(self) -> None:
        """Start empty; also after a fork, which may have come while another OS thread was changing the entries."""
        self._bytes = 0
        self._entries: OrderedDict[Namespace, KnownCheckpoint] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, namespace: Namespace) -> KnownCheckpoint:
        """Return what is known of a namespace."""
        with self._lock:
            if namespace in self._entries:
                self._entries.move_to_end(namespace)
            return self._entries.get(namespace, KnownCheckpoint())

    def remember(self, namespace: Namespace, known: KnownCheckpoint) -> None:
        """Remember a checkpoint instead of the one before."""
        with self._lock:
            self._drop(namespace)
            self._entries[namespace] = known
            self._bytes += known.size_bytes
            while self._bytes > self._bytes_max and self._entries:
                self._drop(next(iter(self._entries)))

    def forget(self, thread_id: str | None = None) -> None:
        """Forget a thread, or all."""
        with self._lock:
            for namespace in [each for each in self._entries if thread_id in (None, each[0])]:
                self._drop(namespace)

    def _drop(self, namespace: Namespace) -> None:
        known = self._entries.pop(namespace, None)
        if known is not None:
            self._bytes -= known.size_bytes
