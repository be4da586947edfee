"""Deadlines: the service does not begin or continue a request that its client has given up.

A client that gets no answer asks again. The request that it gave up may still arrive later: a deletion would then
remove what was stored since. So a request says until when its client waits for an answer, by the service's clock, which
every answer tells in its `Date`.
"""

from __future__ import annotations

import math
import time

from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

HEADER = "X-Deadline"


def seconds_left(headers: Headers, now: float | None = None) -> float:
    """Return how many seconds the client still waits for a request. Without a deadline, return infinity.

    Args:
        headers: The request's headers; the deadline is in epoch seconds.
        now: The time in epoch seconds, or None for the clock's.

    Raises:
        ProblemError: The deadline has passed (a 503, since a client that still waits may ask again), or it is no
            number.
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
            400, f"{HEADER} is not a number; send epoch seconds by the clock of the service's Date"
        )
    left = deadline - (time.time() if now is None else now)
    if left < 0:
        msg = (
            f"the request arrived after its {HEADER}, so nothing was done; send it again, by the clock of this"
            " answer's Date. If sending it takes that long, give the client a longer timeout"
        )
        raise ProblemError(503, msg, CheckpointerError, retry_seconds=0)
    return left
