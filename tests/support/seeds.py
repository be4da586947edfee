"""Seeds of random searches: a new one each time, unless one is asked for."""

from __future__ import annotations

import os
import random

VARIABLE = "LANGGRAPH_DYNAMODB_SEED"


def fresh_seed() -> int:
    """Return the seed asked for, or one that has not been tried yet."""
    return int(os.environ.get(VARIABLE, random.SystemRandom().randrange(1 << 32)))
