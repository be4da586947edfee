"""A codec that opens nothing: the content of a segment stays sealed, for the client to open."""

from __future__ import annotations

from typing_extensions import override

from langgraph.checkpoint.dynamodb._format.codec import Codec, Ids
from langgraph.checkpoint.dynamodb._format.items import Item


class OpaqueCodec(Codec):
    """A codec that leaves everything sealed, since the service has no key."""

    opens = False

    @override
    def open(self, sealed: bytes, item: Item, name: str, ids: Ids = ((), ())) -> bytes:
        """Return the sealed bytes themselves."""
        return sealed
