"""The lock of a thread as a client of the gateway reaches it: each attempt is a request, and the client waits."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb._operations.thread_lock import Attempt, Hold, another, lost, waited_for
from langgraph.checkpoint.dynamodb._runtime.attempts import backoff_seconds
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, result

_rng = random.SystemRandom()


@dataclass(frozen=True)
class GatewayHolder:
    """Reaches the holds on threads through a gateway."""

    prefix: str
    """The beginning of thread ids in the table, which the agent does not know."""

    def clock(self) -> float:
        """Return the time in epoch seconds, by this process's clock."""
        return time.time()

    def another(self, hold: Hold) -> Hold:
        """Return another hold on the same thread."""
        return another(_rng, hold)

    def acquire(self, hold: Hold, wait_seconds: float) -> Op[float]:
        """Acquire a hold, waiting for the current holder; return when it ends."""

        def attempt(delay_seconds: float) -> Op[Attempt]:
            return self._attempt(hold, delay_seconds)

        def give_up(_: BaseException) -> Op[None]:
            return self.release(hold)

        def backoff(number: int) -> float:
            return backoff_seconds(number, _rng)

        return (yield from waited_for(hold, wait_seconds, self.clock, backoff, attempt, give_up))

    def _attempt(self, hold: Hold, delay_seconds: float) -> Op[Attempt]:
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

    def release(self, hold: Hold) -> Op[None]:
        """Release a hold."""
        yield from self._asked("release", hold)

    def _asked(self, action: str, hold: Hold, delay_seconds: float = 0.0) -> Op[tuple[float | None, float]]:
        document = {
            "thread_id": self.prefix + hold.root.thread_id,
            "action": action,
            "token": hold.token,
            "ttl_seconds": hold.ttl_seconds,
        }
        # The hold begins when the service has the request, which is later.
        held_until = self.clock() + delay_seconds + hold.ttl_seconds
        outcomes = yield (Call("lock", document, delay_seconds),)
        answer = result(outcomes[0])
        return held_until if answer["held"] else None, answer["free_in_seconds"]
