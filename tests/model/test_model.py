"""Every interleaving of a few calls: nothing is lost or torn; and broken rules are found by one of them."""

import os
from collections.abc import Callable, Sequence

import pytest

from tests.model.configurations import BY_EFFECT, CLAIM_PASSES, HOUR_PASSES, PAIRS, SIX, TRIPLES, WAITING
from tests.model.explore import Configuration, Explorer
from tests.simulation import mutants
from tests.simulation.mutants import Mutation
from tests.simulation.world import use_small_limits

# By numbers of states: a bound by time would search more on a quiet machine. A state takes about two kilobytes.
STATES_MAX = int(os.environ.get("LANGGRAPH_DYNAMODB_STATES", "1500"))
STATES_UNTIL_FOUND_MAX = 20_000


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred bytes be a large state."""
    use_small_limits(monkeypatch)


def test_every_interleaving_of_a_fork_and_a_prune() -> None:
    report = Explorer(Configuration(("fork", "prune")), states_max=STATES_UNTIL_FOUND_MAX).run()
    assert report.violation is None
    assert report.exhausted
    assert report.states > 500


@pytest.mark.search
@pytest.mark.parametrize("configuration", [*PAIRS, *BY_EFFECT, *TRIPLES, *WAITING, *SIX], ids=str)
def test_the_first_interleavings(configuration: Configuration, tell: Callable[[str], None]) -> None:
    """Those with the fewest interruptions; `make model` goes on."""
    report = Explorer(configuration, states_max=STATES_MAX).run()
    tell(str(report))
    assert report.violation is None, report.violation
    assert report.exhausted or report.states > STATES_MAX


# Some for calls of each kind, and one for each way in which time passes.
FOUND_BY: Sequence[tuple[Mutation, Configuration]] = (
    (mutants.head_first, Configuration(("put",))),
    (mutants.put_does_not_confirm, Configuration(("fork", "prune"))),
    (mutants.no_reread, Configuration(("fork", "prune"))),
    (mutants.writes_reuse_across_epochs, Configuration(("writes", "delete", "put again"))),
    (mutants.anybody_releases, Configuration(("prune", "prune"), jumps=CLAIM_PASSES, jumps_anywhere=True)),
    (
        mutants.what_took_a_heads_place_is_not_kept,
        Configuration(("put again", "prune"), jumps=HOUR_PASSES, jumps_anywhere=True),
    ),
)


@pytest.mark.parametrize(
    ("mutation", "configuration"),
    [pytest.param(*each, marks=[pytest.mark.search], id=each[0].__name__) for each in FOUND_BY],
)
def test_a_broken_rule_is_found(
    mutation: Mutation, configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same search finds nothing in the saver."""
    with monkeypatch.context() as patch:
        mutation(patch)
        broken = Explorer(configuration, states_max=STATES_UNTIL_FOUND_MAX).run()
    assert broken.violation is not None
    assert Explorer(configuration, states_max=broken.states).run().violation is None
