"""The seeds of random searches: the same each time, so that no change is refused for what was there before it.

`make soak` asks for others.
"""

import os

VARIABLE = "LANGGRAPH_DYNAMODB_SEED"
# How many random runs of each kind to try.
RUNS_VARIABLE = "LANGGRAPH_DYNAMODB_SCHEDULES"


def first_seed() -> int:
    """Return the seed asked for, or the usual one."""
    return int(os.environ.get(VARIABLE, 20261122))
