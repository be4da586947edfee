"""As much of HTTP/1.1 as DynamoDB and its clients use: persistent connections, bodies of a known length."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import dataclass
from typing import Any

_LENGTH = "content-length"
_CHECKSUM = "x-amz-crc32"


@dataclass
class Message:
    """A request or a response: its first line, its headers by their names in lower case, its body."""

    start: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return what the body says."""
        return json.loads(self.body)

    def with_json(self, content: Any) -> Message:
        """Return the message with another body, and with the headers that depend on it."""
        body = json.dumps(content).encode()
        headers = self.headers | {_LENGTH: str(len(body))}
        if _CHECKSUM in headers:
            headers[_CHECKSUM] = str(zlib.crc32(body))
        return Message(self.start, headers, body)

    def encoded(self) -> bytes:
        """Return the message as it goes over the wire."""
        lines = [self.start, *(f"{name}: {value}" for name, value in self.headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


def response(status: int, content: Any) -> Message:
    """Build a response as DynamoDB does."""
    headers = {"content-type": "application/x-amz-json-1.0", _CHECKSUM: ""}
    return Message(f"HTTP/1.1 {status} -", headers, b"").with_json(content)


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """Read the next message; None where the connection has ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)
        }
        if "transfer-encoding" in headers:
            raise ValueError(f"{start!r} has a body of unknown length, which this proxy cannot pass on")
        return Message(start, headers, await reader.readexactly(int(headers.get(_LENGTH, "0"))))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
