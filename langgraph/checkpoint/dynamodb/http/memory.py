"""The checkpoints that a client knows: bounded, and never a source of truth. With them, it sends and receives less."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process
from langgraph.checkpoint.dynamodb.http.documents import Document

# What an entry takes, and each of its values, beside the bytes of the values.
_ENTRY_BYTES = 1000
_VALUE_BYTES = 300


@dataclass(frozen=True)
class Known:
    """A checkpoint that the service has acknowledged or returned: its values, as the service has them."""

    checkpoint_id: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Document] = field(default_factory=dict)
    """By channel, as requests have them."""

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        return _ENTRY_BYTES + sum(_VALUE_BYTES + len(each["data"]) for each in self.values.values())


class KnownCheckpoints:
    """The newest known checkpoint of each namespace, up to a total size. Safe to use from several OS threads."""

    def __init__(self, bytes_max: int) -> None:
        """Take the bound on the estimated size of all entries."""
        self._bytes_max = bytes_max
        start_in_every_process(self)

    def start(self) -> None:
        """Start empty; also after a fork, which may have come while another OS thread was changing the entries."""
        self._bytes = 0
        # The least recently used first.
        self._entries: OrderedDict[Partition, Known] = OrderedDict()
        self._lock = threading.Lock()

    def newest(self, partition: Partition) -> Known:
        """Return the newest known checkpoint of a namespace; one without values if none is known."""
        with self._lock:
            if partition in self._entries:
                self._entries.move_to_end(partition)
            return self._entries.get(partition, Known())

    def keep(self, partition: Partition, known: Known) -> None:
        """Keep a checkpoint instead of the one before."""
        with self._lock:
            self._drop(partition)
            self._entries[partition] = known
            self._bytes += known.size_bytes
            while self._bytes > self._bytes_max and self._entries:
                self._drop(next(iter(self._entries)))

    def forget(self, thread_id: str | None = None) -> None:
        """Forget a thread, or all."""
        with self._lock:
            for partition in [each for each in self._entries if thread_id in (None, each.thread_id)]:
                self._drop(partition)

    def _drop(self, partition: Partition) -> None:
        dropped = self._entries.pop(partition, None)
        if dropped is not None:
            self._bytes -= dropped.size_bytes
