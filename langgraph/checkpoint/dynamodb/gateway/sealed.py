"""A codec that opens nothing: what a segment holds stays as it is stored, for the client to open."""

from __future__ import annotations

from typing_extensions import override

from langgraph.checkpoint.dynamodb._format.codec import Codec, Ids
from langgraph.checkpoint.dynamodb._format.items import Item


class SealedCodec(Codec):
    """Reads what the saver's operations read, and leaves it sealed. The service has no key."""

    opens = False

    @override
    def open(self, sealed: bytes, item: Item, name: str, ids: Ids = ((), ())) -> bytes:
        """Give the sealed bytes themselves."""
        return sealed
