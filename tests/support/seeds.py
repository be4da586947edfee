"""Seeds of random searches: of each test's own choice, unless one is asked for."""

import os
import random

VARIABLE = "LANGGRAPH_DYNAMODB_SEED"
# How many random runs of each kind to try.
RUNS_VARIABLE = "LANGGRAPH_DYNAMODB_SCHEDULES"


def seed_asked_for(otherwise: int) -> int:
    """Return the seed asked for, or else this one."""
    return int(os.environ.get(VARIABLE, otherwise))


def fresh_seed() -> int:
    """Return the seed asked for, or one that has not been tried yet."""
    return seed_asked_for(random.SystemRandom().randrange(1 << 32))
