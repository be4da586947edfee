"""Readiness: whether the table answers. Load balancers ask every few seconds, often several at once."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable

from langchain_core.runnables import RunnableConfig

from ..errors import CheckpointerError
from ..saver import DynamoDBSaver
from .problems import ProblemError

logger = logging.getLogger(__name__)

_KEPT_SECONDS = 1
# A load balancer waits no longer; the saver itself would retry for a minute.
_ANSWER_SECONDS = 4


class Readiness:
    """Asks the table, once for all callers within a second."""

    def __init__(self, saver: DynamoDBSaver, clock: Callable[[], float] = time.monotonic) -> None:
        """Store the saver.

        Args:
            saver: The saver whose table is asked.
            clock: Returns the time in seconds.
        """
        self._saver = saver
        self._clock = clock
        self._asked_at = float("-inf")
        self._asking: asyncio.Future[bool]

    async def check(self) -> None:
        """Return if the table has answered.

        Raises:
            ProblemError: It has not; a 503.
        """
        if self._clock() - self._asked_at >= _KEPT_SECONDS:
            self._asked_at = self._clock()
            self._asking = asyncio.ensure_future(self._ask())
        # Who gives up leaves the others their answer.
        if not await asyncio.shield(self._asking):
            msg = "the table does not answer, or cannot be used; the gateway's log says why"
            raise ProblemError(503, msg, CheckpointerError, retry_seconds=_KEPT_SECONDS)

    async def _ask(self) -> bool:
        """Read a checkpoint that cannot exist: one query that finds nothing."""
        config: RunnableConfig = {"configurable": {"thread_id": f"gateway-ready-{uuid.uuid4().hex}"}}
        try:
            await asyncio.wait_for(self._saver.aget_tuple(config), _ANSWER_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the table cannot be used.
            # The query names nobody's thread, so the message reveals nothing.
            logger.warning("the table cannot be used: %s: %s", type(error).__name__, error)
            return False
        return True
