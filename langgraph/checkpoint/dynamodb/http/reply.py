"""A response of the gateway, as it was received."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb.http import documents


@dataclass(frozen=True)
class Reply:
    """A response as it was received."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes
    """Compressed as its Content-Encoding says."""

    @property
    def content(self) -> bytes:
        """The decompressed body.

        Raises:
            BadDocumentError: It is not what its Content-Encoding says.
        """
        return documents.decompressed(self.body, self.headers.get("Content-Encoding", ""))
