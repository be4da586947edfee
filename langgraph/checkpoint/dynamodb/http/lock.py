"""The lock of a thread as a client of the gateway reaches it: each attempt is a request, and the client waits."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from .._operations.thread_lock import Attempt, Hold, lost
from .._runtime.steps import Op, result
from ..gateway import threads
from .service import call_to

Action: TypeAlias = Literal["acquire", "renew", "release"]


@dataclass(frozen=True)
class GatewayHolder:
    """Reaches the holds on threads through a gateway."""

    prefix: str
    """The beginning of thread ids in the table, which the agent does not know."""
    rng: random.Random = field(default_factory=random.SystemRandom)

    def clock(self) -> float:
        """Return the time in epoch seconds, by this process's clock."""
        return time.time()

    def attempt(self, hold: Hold, delay_seconds: float) -> Op[Attempt]:
        """Try to acquire a hold after a delay."""
        held_until, free_in_seconds = yield from self._asked("acquire", hold, delay_seconds)
        return Attempt(held_until, free_in_seconds)

    def renew(self, hold: Hold) -> Op[float]:
        """Renew a hold; return when it ends.

        Raises:
            ThreadLockLostError: Another runner has acquired the thread, or the hold has been released.
        """
        held_until, _ = yield from self._asked("renew", hold)
        if held_until is None:
            raise lost(hold)
        return held_until

    def release(self, hold: Hold, after: BaseException | None = None) -> Op[None]:
        """Release a hold."""
        del after
        yield from self._asked("release", hold)

    def _asked(
        self, action: Action, hold: Hold, delay_seconds: float = 0.0
    ) -> Op[tuple[float | None, float]]:
        asked = call_to(
            threads.lock, self.prefix, hold.root.thread_id, action, hold.token, float(hold.ttl_seconds)
        )
        # The hold begins when the service has the request, which is later.
        held_until = self.clock() + delay_seconds + hold.ttl_seconds
        outcomes = yield (replace(asked, delay_seconds=delay_seconds),)
        answer: Attempt = result(outcomes[0])
        return None if answer.held_until is None else held_until, answer.free_in_seconds
