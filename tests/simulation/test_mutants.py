"""The simulator catches broken write orders: what these runs find, the same runs find nothing of in the saver."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest

from tests.simulation.mutants import Mutation, head_first, no_reread, put_does_not_confirm
from tests.simulation.scenarios import prepared, race
from tests.simulation.schedule import Choices, every_schedule
from tests.simulation.simulator import Faults
from tests.simulation.test_crash_points import cut_short

Runs = Callable[[], Iterator[int]]

# One run in about ten of the mutant's shows it.
RANDOM_RUNS_MAX = 200


def _crash_points(name: str) -> Iterator[int]:
    """Let a call die before and after each of its rounds."""
    start, rounds, seen = prepared(), 0, set[str]()
    while cut_short(start, name, warm=True, rounds=rounds, effects=(), seen=seen) is not None:
        rounds += 1
        yield rounds


def _races(*names: str) -> Iterator[int]:
    """Let calls interrupt each other once, anywhere."""
    start, ends = prepared(switches_max=1), set[str]()
    yield every_schedule(lambda choices: race(choices, names, start, ends=ends), 1_000)


def _random_races(*names: str) -> Iterator[int]:
    """Let calls interrupt each other as the seeds say, rarely."""
    start = prepared(Faults(patience=0.9))
    for seed in range(RANDOM_RUNS_MAX):
        race(Choices(seed=seed), names, start)
        yield seed


# One for each way to search. tests/model finds these and others.
CATCHERS: Mapping[Mutation, Runs] = {
    head_first: partial(_crash_points, "inner put"),
    put_does_not_confirm: partial(_races, "fork", "prune"),
    no_reread: partial(_random_races, "fork", "prune"),
}


@pytest.mark.parametrize("mutation", CATCHERS, ids=lambda mutation: mutation.__name__)
def test_a_mutant_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The saver passes as many runs as it took to catch the mutant, and the mutant does not."""
    runs = CATCHERS[mutation]
    with monkeypatch.context() as patch:
        mutation(patch)
        needed = _runs_until_caught(runs)
    for count, _ in enumerate(runs()):
        if count > needed:
            break


def _runs_until_caught(runs: Runs) -> int:
    count = 0
    try:
        for _ in runs():
            count += 1
    except AssertionError:
        return count
    pytest.fail(f"not caught in {count} runs")
