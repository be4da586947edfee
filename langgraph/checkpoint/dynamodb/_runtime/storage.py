"""Storage: codec, cache, clock and table for operations. Savers, command line, gateway and viewer pass it to them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from typing_extensions import Self

from .._format.codec import Codec
from .._format.items import Item
from ..errors import CheckpointerUnavailableError
from .cache import Cache, CachedThread
from .requests import Table


def _nothing(_size_bytes: int) -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """All that operations need: the table, codec, cache, clock, id source, and a saver's options."""

    codec: Codec
    cache: Cache
    table: Table
    ttl_seconds: int | None = None
    """The ttl that a new thread gets; `None` for none."""
    share_equal_pieces: bool = True
    """Whether pieces that are stored already are named again, by their digests."""
    clock: Callable[[], float] = time.time
    """Returns the time, in epoch seconds."""
    rng: random.Random = field(default_factory=random.SystemRandom)
    """The source of epochs, tokens and segment ids."""
    owner_from: str | None = None
    """The key of a config whose value names the owner of its thread; `None` keeps new threads out of the directory."""
    owner_key: bytes | None = field(default=None, repr=False)
    """The key of the digests that stand for owners, if the codec encrypts."""
    owner: str | None = None
    """The owner of new threads whose config names none, and whose threads a list shows that is not told."""
    entry: Callable[[], Item] | None = None
    """Makes what the directory holds of a thread that is new in it: its owner. `None` keeps the thread out of it."""
    pinned: CachedThread | None = None
    """The only state of its thread that an operation may store under. `None`: whatever epoch the thread has."""
    on_read: Callable[[int], None] = _nothing
    """Told about how many bytes an operation reads. It may raise, which ends the operation."""

    def counting(self, on_read: Callable[[int], None]) -> Self:
        """Return the storage that tells `on_read` what is read and opened: an estimate first, which is taken back."""
        return replace(self, on_read=on_read, codec=self.codec.counting(on_read))

    def after(self, error: BaseException) -> Storage:
        """Return the storage with which an operation cleans up after an error.

        If a request was retried for all of `retry_seconds` already, the caller must not wait for as long again.
        """
        if not isinstance(error, CheckpointerUnavailableError):
            return self
        return replace(self, table=replace(self.table, sends_once=True))
