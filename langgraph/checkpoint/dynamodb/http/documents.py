"""The body of a response: how it is compressed, and whether all of it came."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MEDIA_TYPE = "application/json"
ENCODING = "zstd"

_ZSTD_LEVEL = 3


@dataclass(frozen=True)
class Reply:
    """A response as it was received."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes
    """Compressed as its Content-Encoding says: with zstd, or not at all."""

    @property
    def content(self) -> bytes:
        """The decompressed body.

        Raises:
            CutOffError: The body is not complete.
            BadDocumentError: It is compressed in another way.
        """
        encoding = self.headers.get("Content-Encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return self.body
        if encoding != ENCODING:
            raise BadDocumentError(f"it is compressed as {encoding}")
        try:
            return zstd.decompress(self.body)
        except zstd.ZstdError as error:
            raise CutOffError(f"its compressed body is not complete ({error})") from error


class BadDocumentError(ValueError):
    """The received bytes are not an answer."""


class CutOffError(BadDocumentError):
    """The received bytes are only a part of the response."""


def compressed(data: bytes) -> bytes:
    """Compress a body for the service."""
    return zstd.compress(data, _ZSTD_LEVEL)
