"""Cursors: positions in a list, as texts that only this service can make, for one principal and one request.

They are Fernet tokens: signed with HMAC, so that nobody can forge one, and encrypted, since a position may name
threads.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from cryptography.fernet import Fernet, InvalidToken

from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.wire import Message

_DIGEST_BYTES = 32
# These do not change the contents of the list, so they may change from page to page.
_FREE = {"cursor", "limit"}


class Cursors:
    """Makes cursors, and opens those that a process with the same key has made."""

    def __init__(self, key: bytes) -> None:
        """Derive the signing key from the secret, which has 16 bytes or more."""
        own = hmac.digest(key, b"langgraph-dynamodb cursors", "sha256")
        self._fernet = Fernet(base64.urlsafe_b64encode(own))

    def seal(self, position: str, principal: Principal, request: Message) -> str:
        """Return the cursor of a position."""
        return self._fernet.encrypt(_binding(principal, request) + position.encode()).decode()

    def open(self, cursor: str, principal: Principal, request: Message) -> str:
        """Return the position of a cursor.

        Raises:
            ProblemError: This service did not make it, or made it for another principal or request.
        """
        try:
            content = self._fernet.decrypt(cursor.encode("utf-8", "replace"))
        except InvalidToken:
            content = b""
        binding, position = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if not hmac.compare_digest(binding, _binding(principal, request)):
            raise ProblemError(400, "cursor does not belong to this request; start the list again without it")
        return position.decode()


def _binding(principal: Principal, request: Message) -> bytes:
    whose = [principal.name, principal.tenant, type(request).__name__]
    asked = request.model_dump(exclude=_FREE)
    # A filter in msgpack may have bytes.
    text = json.dumps([whose, asked], sort_keys=True, default=bytes.hex)
    return hashlib.sha256(text.encode()).digest()
