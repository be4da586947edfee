"""The checkpoints that a client knows: bounded, and never a source of truth. With them, it sends and receives less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._format.items import Partition
from .._runtime.cache import LruCache
from ..gateway.messages import SentValue

# What an entry takes, and each of its values, beside the bytes of the values.
_ENTRY_BYTES = 1000
_VALUE_BYTES = 300


@dataclass(frozen=True)
class Known:
    """A checkpoint that the service has acknowledged or returned: its values, as the service has them."""

    checkpoint_id: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, SentValue] = field(default_factory=dict)
    """By channel, as requests have them."""

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        return _ENTRY_BYTES + sum(_VALUE_BYTES + len(each.data) for each in self.values.values())


class KnownCheckpoints(LruCache[Partition, Known]):
    """The newest known checkpoint of each namespace, up to a total size."""

    def newest(self, partition: Partition) -> Known:
        """Return the newest known checkpoint of a namespace; one without values if none is known."""
        return self.get(partition) or Known()

    def remember(self, partition: Partition, known: Known) -> None:
        """Keep a checkpoint instead of the one before."""
        self.keep(partition, known, known.size_bytes)

    def forget_thread(self, thread_id: str | None = None) -> None:
        """Forget a thread, or all."""
        for partition in self.keys():
            if thread_id in (None, partition.thread_id):
                self.forget(partition)
