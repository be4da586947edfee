"""Which calls are explored together: each pair, triples, and all six."""

from collections.abc import Sequence
from itertools import combinations

from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS, ORPHAN_SECONDS
from tests.model.explore import Configuration

# Past a deletion's claim, and past what counts as an orphan.
CLAIM_PASSES = (CLAIM_SECONDS + 10.0,)
HOUR_PASSES = (ORPHAN_SECONDS + 400.0,)

# The four that write, the one that reads, and three deletions.
_ALL = ("put", "fork", "writes", "read", "prune", "delete", "delete run")

PAIRS: Sequence[Configuration] = (
    *(Configuration(pair, jumps=CLAIM_PASSES) for pair in [*combinations(_ALL, 2), ("prune", "prune")]),
    Configuration(("prune", "prune"), jumps=CLAIM_PASSES, jumps_anywhere=True),
    Configuration(("put again", "prune"), jumps=HOUR_PASSES, jumps_anywhere=True),
    Configuration(("put", "prune"), jumps=HOUR_PASSES, jumps_anywhere=True),
    Configuration(("writes", "prune"), jumps=HOUR_PASSES, jumps_anywhere=True),
)
BY_EFFECT: Sequence[Configuration] = tuple(
    Configuration(pair, by_effect=True, jumps=CLAIM_PASSES)
    for pair in [
        ("fork", "prune"),
        ("put", "prune"),
        ("put", "delete"),
        ("fork", "delete run"),
        ("writes", "prune"),
        ("read", "prune"),
        ("prune", "prune"),
        ("prune", "delete"),
    ]
)
TRIPLES: Sequence[Configuration] = (
    Configuration(("put", "prune", "prune"), jumps=HOUR_PASSES, jumps_anywhere=True),
    Configuration(("put again", "put again", "prune")),
    Configuration(("writes", "delete", "put again"), jumps=CLAIM_PASSES),
    Configuration(("warm read", "put", "delete")),
    Configuration(("cold put", "cold fork", "prune")),
    *(
        Configuration((*one, *two), jumps=CLAIM_PASSES)
        for one in [("put",), ("fork",), ("writes",)]
        for two in [("prune", "prune"), ("prune", "delete"), ("prune", "delete run"), ("read", "delete")]
    ),
    Configuration(("put", "fork", "prune")),
    Configuration(("put", "fork", "delete")),
    Configuration(("put", "writes", "prune")),
    Configuration(("fork", "read", "prune")),
)
# Most of a ttl passes within a superstep, or more than one.
WAITING: Sequence[Configuration] = tuple(
    Configuration(calls, jumps=(seconds,), jumps_anywhere=True, ttl_seconds=1000)
    for seconds, calls in [
        *((700.0, each) for each in [("writes",), ("put", "fork"), ("writes", "put"), ("writes", "fork")]),
        *((1300.0, each) for each in [("writes",), ("writes", "put"), ("writes", "cold put")]),
    ]
)
SIX: Sequence[Configuration] = (
    Configuration(("put", "fork", "writes", "read", "prune", "prune"), jumps=CLAIM_PASSES),
    Configuration(("put", "fork", "writes", "read", "prune", "delete"), jumps=CLAIM_PASSES),
)
