"""Deadlines: a request is not begun any more, and not gone on with, once its client has given it up.

A client that gets no answer asks again. What it gave up may still be on the way, and arrive when all is long done: a
deletion would then take what was stored since. So a request says until when its client waits for an answer, by the
clock of the service, which every answer tells in its `Date`.
"""

from __future__ import annotations

import math
import time

from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

HEADER = "X-Deadline"


def seconds_left(headers: Headers, now: float | None = None) -> float:
    """Return for how long a request is still waited for; without a deadline, for ever.

    Args:
        headers: Those of the request; the deadline is in epoch seconds.
        now: The time; None for the clock's.

    Raises:
        ProblemError: It comes too late, a 503, since who still waits may ask again; or the deadline is no number.
    """
    given = headers.get(HEADER)
    if given is None:
        return math.inf
    try:
        deadline = float(given)
    except ValueError:
        deadline = math.nan
    if math.isnan(deadline):
        raise ProblemError(
            400, f"{HEADER} is no number; give epoch seconds, by the clock of the service's Date"
        )
    left = deadline - (time.time() if now is None else now)
    if left < 0:
        msg = f"the request came after its {HEADER}, so nothing was done; ask again, by the clock of this answer's Date"
        raise ProblemError(503, msg, CheckpointerError, retry_seconds=0)
    return left
