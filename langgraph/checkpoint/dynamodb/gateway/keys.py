"""The issuer's public keys, fetched off the event loop, at a rate that strangers cannot raise."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt
from anyio import to_thread

from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

logger = logging.getLogger(__name__)

# A key that the issuer has withdrawn is accepted for this long.
_FRESH_SECONDS = 300
# For an unknown key, or after a failure, the keys are fetched again once in this time, however many keys strangers make
# up.
_PAUSE_SECONDS = 10
# While the issuer does not answer, the keys that were fetched last stay valid for a day.
_KEPT_SECONDS = 24 * 60 * 60
_TIMEOUT_SECONDS = 5


def fetcher(url: str) -> Callable[[], Mapping[str, Any]]:
    """Return a blocking function that fetches a key set from an address."""
    return jwt.PyJWKClient(url, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS).fetch_data


class KeySet:
    """The keys of one issuer, by their ids."""

    def __init__(
        self, fetch: Callable[[], Mapping[str, Any]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start without keys.

        Args:
            fetch: Returns the JSON Web Key Set.
            clock: Returns the time in seconds.
        """
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key of an id, or None if the issuer does not have it.

        None is certain: the keys were fetched for this request. A client gives up on a 401. So while the issuer may not
        be asked again, a request with a key that it may have published since is answered with 503.

        Raises:
            ProblemError: The keys cannot be had, or may have changed since; a 503 that says when to come again.
        """
        is_certain = False
        # A request whose key was valid a moment ago does not wait for the fetch of another.
        if self._is_due(key_id) and not (key_id in self._keys and self._fetching.locked()):
            async with self._fetching:
                is_certain = await self._refresh(key_id)
        if self._clock() - self._fetched_at > _KEPT_SECONDS:
            raise self._unsettled("the keys that tokens are verified with cannot be fetched")
        found = self._keys.get(key_id)
        if found is None and not is_certain:
            raise self._unsettled("the token's key is not known yet")
        return found

    def _unsettled(self, says: str) -> ProblemError:
        retry_seconds = self._tried_at + _PAUSE_SECONDS - self._clock()
        return ProblemError(
            503, f"{says}; send the request again", CheckpointerError, retry_seconds=retry_seconds
        )

    def _is_due(self, key_id: str | None) -> bool:
        now = self._clock()
        is_wanted = key_id not in self._keys or now - self._fetched_at > _FRESH_SECONDS
        return is_wanted and now - self._tried_at >= _PAUSE_SECONDS

    async def _refresh(self, key_id: str | None) -> bool:
        """Fetch the keys, unless another request has done so meanwhile; tell whether they came for this one."""
        if not self._is_due(key_id):
            return False
        try:
            found = await to_thread.run_sync(self._fetch)
            keys = jwt.PyJWKSet.from_dict(dict(found)).keys
        except (jwt.PyJWTError, OSError, ValueError) as error:
            logger.warning("the keys that tokens are verified with cannot be fetched: %s", error)
            return False
        finally:
            # Not before: whoever comes meanwhile waits for these keys.
            self._tried_at = self._clock()
        self._keys = {each.key_id: each for each in keys if each.public_key_use in ("sig", None)}
        self._fetched_at = self._tried_at
        return True
