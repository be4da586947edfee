"""The terms that clients and service of the gateway share, beside the shapes of their messages (see docs/wire.md)."""

from __future__ import annotations

from hashlib import sha256

WIRE_VERSION = 2
"""The version of the wire. `GET /about` tells it. It changes only if a client of today could not go on."""
DIGEST_BYTES = 16


def digest_of(data: bytes) -> bytes:
    """Return the digest by which client and service name the data of a value."""
    return sha256(data).digest()[:DIGEST_BYTES]
