"""Decisions of a simulated run: drawn from a seed, replayed from a script, or gone through one by one.

A run asks for one decision after the other, and nothing else in it is random. The list of its answers is therefore the
whole run: it can be replayed, shortened, and varied systematically.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

# Above this number of effects, all subsets are too many; prefixes and single losses and survivors stand for them.
EFFECTS_MAX = 4


class Choices:
    """Answers a run's questions and keeps the answers; 0 always means that nothing out of the ordinary happens."""

    def __init__(self, script: Sequence[int] = (), seed: int | None = None) -> None:
        """Answer from the script first, and then from the seed, or with 0 without one."""
        self._script = script
        self._random = None if seed is None else random.Random(seed)
        self.taken: list[int] = []
        self.options: list[int] = []

    def pick(self, options: int) -> int:
        """Choose one of so many options."""
        if options <= 1:
            return 0
        return self._note(options, lambda random: random.randrange(options))

    def chance(self, probability: float) -> bool:
        """Say whether something out of the ordinary happens that has this probability."""
        if not 0 < probability < 1:
            return probability >= 1
        return self._note(2, lambda random: int(random.random() < probability)) == 1

    def subset(self, size: int) -> list[int]:
        """Choose some of so many positions."""
        return [position for position in range(size) if self.pick(2)]

    def _note(self, options: int, draw: Callable[[random.Random], int]) -> int:
        position = len(self.taken)
        if position < len(self._script):
            answer = min(self._script[position], options - 1)
        else:
            answer = draw(self._random) if self._random else 0
        self.taken.append(answer)
        self.options.append(options)
        return answer


def search(run: Callable[[Choices], object], seeds: Iterable[int], variable: str) -> None:
    """Run a schedule for each seed; shrink the first one that fails.

    Raises:
        AssertionError: A run failed. The message has the seed, as a value of the variable, and the shrunk script.
    """
    for seed in seeds:
        choices = Choices(seed=seed)
        try:
            run(choices)
        except AssertionError as violation:
            script = shrink(choices.taken, lambda script: failure_of(run, Choices(script)) is not None)
            shown = failure_of(run, Choices(script))
            message = f"{variable}={seed}: {violation}\nshrunk to {script}: {shown}"
            raise AssertionError(message) from violation


def failure_of(run: Callable[[Choices], object], choices: Choices) -> str | None:
    """Return what a schedule violates; None if it violates nothing."""
    try:
        run(choices)
    except AssertionError as violation:
        return str(violation)
    return None


def subsets(size: int) -> list[tuple[int, ...]]:
    """Return the subsets of a round's effects to try, the empty one first."""
    everything = range(size)
    if size <= EFFECTS_MAX:
        return [subset for count in range(size + 1) for subset in combinations(everything, count)]
    prefixes = [tuple(everything[:count]) for count in range(size + 1)]
    survivors = [(position,) for position in everything[1:]]
    losses = [(*everything[:position], *everything[position + 1 :]) for position in everything[:-1]]
    return [*prefixes, *survivors, *losses]


def every_schedule(run: Callable[[Choices], None], runs_max: int) -> int:
    """Run once for every combination of answers, depth first; return how many there were.

    Raises:
        AssertionError: There are more than `runs_max`, so not all were tried.
    """
    script: list[int] | None = []
    for count in range(runs_max):
        if script is None:
            return count
        choices = Choices(script)
        run(choices)
        script = _next_script(choices)
    message = f"there are more than {runs_max} schedules"
    raise AssertionError(message)


def _next_script(choices: Choices) -> list[int] | None:
    """Return the script that differs from the last run as late as possible, or None after the last one."""
    for position in reversed(range(len(choices.taken))):
        if choices.taken[position] + 1 < choices.options[position]:
            return [*choices.taken[:position], choices.taken[position] + 1]
    return None


def shrink(script: list[int], fails: Callable[[list[int]], bool], runs_max: int = 400) -> list[int]:
    """Return a shorter and more ordinary script that still fails."""
    best = script
    left = runs_max
    improved = True
    while improved:
        improved = False
        for candidate in _simpler(best):
            if left == 0:
                return best
            left -= 1
            if fails(candidate):
                best, improved = candidate, True
                break
    return best


def _simpler(script: list[int]) -> Iterator[list[int]]:
    """Yield variations with a part cut out or made ordinary, the largest parts first."""
    size = len(script)
    while size:
        for start in range(0, len(script), size):
            yield _trimmed(script[:start] + script[start + size :])
            if any(script[start : start + size]):
                yield _trimmed(
                    script[:start] + [0] * len(script[start : start + size]) + script[start + size :]
                )
        size //= 2


def _trimmed(script: list[int]) -> list[int]:
    """Drop the zeros at the end: a script that has ended answers 0."""
    while script and script[-1] == 0:
        script = script[:-1]
    return script
