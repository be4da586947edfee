"""All interleavings of a few calls: every state that they can come to, each visited once.

States are visited in the order of how often one call had to interrupt another one, or to die within a round: what a
bound leaves out needs the most of that. Two schedules that differ in the order of steps that do not touch each other
come to the same state, which goes on from there once.
"""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tests.model.actors import CALLS, Start
from tests.model.judge import ENDED, Judge, Progress, began_at, order_matters
from tests.model.states import Actor, Local, Status, Storage, Table
from tests.simulation.history import Violation
from tests.simulation.schedule import subsets
from tests.simulation.simulator import answered, described

# Rounds of more effects than this have them one after the other, where each effect is a step.
EFFECTS_IN_ANY_ORDER = 4
# Who moves where the clock jumps.
_NOBODY = -1

_T = TypeVar("_T")


@dataclass(frozen=True)
class Configuration:
    """Which calls take part, and how finely their rounds are divided."""

    calls: Sequence[str]
    by_effect: bool = False
    """Whether each effect is a step; otherwise each round is, or the effects after which a process dies in it."""
    jumps: Sequence[float] = ()
    """By how many seconds the clock may jump, one after the other, where a deletion waits for another one."""
    jumps_anywhere: bool = False
    ttl_seconds: int | None = None

    def __str__(self) -> str:
        """Name it."""
        where = "anywhere" if self.jumps_anywhere else "where a deletion waits"
        jumps = [f"{each:.0f} s pass {where}" for each in self.jumps]
        ttl = [] if self.ttl_seconds is None else [f"ttl of {self.ttl_seconds} s"]
        return ", ".join([" | ".join(self.calls), *(["by effect"] if self.by_effect else []), *jumps, *ttl])


@dataclass
class Report:
    """What was found."""

    configuration: Configuration
    states: int = 0
    transitions: int = 0
    interruptions: int = 0
    """All schedules with fewer were explored."""
    exhausted: bool = False
    violation: str | None = None

    def __str__(self) -> str:
        """Say it in a line."""
        how = "exhausted" if self.exhausted else f"all with fewer than {self.interruptions} interruptions"
        return f"{self.configuration}: {self.states:,} states, {self.transitions:,} transitions, {how}"


class State(NamedTuple):
    """A state of everything."""

    table: Table
    places: tuple[Local, ...]
    after: tuple[int, ...]
    """For each call that has begun, those that had ended by then, as bits, as far as it matters."""
    jumps: int = 0


class Step(NamedTuple):
    """One way for an actor to move: some effects of its round, by their positions."""

    positions: Sequence[int]
    dies: bool = False


class Explorer:
    """The search through the states of one configuration."""

    def __init__(self, configuration: Configuration, *, states_max: int) -> None:
        """Prepare the thread and the actors."""
        self._configuration = configuration
        self._states_max = states_max
        self._calls = [CALLS[name] for name in configuration.calls]
        self._storage = Storage()
        start = Start(ttl_seconds=configuration.ttl_seconds)
        self._times = [start.harness.now + sum(configuration.jumps[:count]) for count in range(3)]
        self._judge = Judge(start, self._calls, self._storage)
        self._actors = [
            Actor(each.name, start.flow(each, owner), self._storage)
            for owner, each in enumerate(self._calls, 1)
        ]
        places = tuple(each.start for each in self._actors)
        self._start = State(self._storage.table(start.items()), places, (0,) * len(places))
        self._order = [
            sum(1 << one for one, each in enumerate(self._calls) if order_matters(each, call))
            for call in self._calls
        ]
        self._steps: dict[Local, Sequence[Step]] = {}
        # How many interruptions a state needs, and who may go on from it without one more, as bits.
        self._visited: dict[int, tuple[int, int]] = {}
        self._came_from: dict[int, tuple[int, int, Step | None]] = {}
        self._trying: tuple[State, int, Step | None] = (self._start, _NOBODY, None)

    def run(self) -> Report:
        """Search until everything is visited or a bound is met; stop at the first violation."""
        report = Report(self._configuration)
        # Next to nothing of what is made here is garbage, and looking for it takes longer than all the rest.
        gc.disable()
        try:
            report.exhausted = self._search(report)
        except Violation as violation:
            report.violation = "\n".join([str(violation), *self._story()])
        finally:
            gc.enable()
        report.states = len(self._visited)
        return report

    def _search(self, report: Report) -> bool:
        """Visit states with ever more interruptions, those with one more after all others."""
        self._visit(self._start)
        visited = self._visited
        visited[_name(self._start)] = 0, 0
        now: list[tuple[State, int, bool]] = [(self._start, _NOBODY, True)]
        while now:
            later: list[tuple[State, int, bool]] = []
            while now:
                if len(visited) > self._states_max:
                    return False
                state, last, is_new = now.pop()
                moves = list(self._moves(state, None if is_new else last))
                goes_on = any(mover == last for mover, _, _ in moves)
                report.transitions += len(moves)
                for mover, step, new in moves:
                    interrupts = (goes_on and mover != last) or (step is not None and step.dies)
                    cost, bit = report.interruptions + interrupts, 1 << mover if mover >= 0 else 0
                    key = _name(new)
                    known, movers = visited.get(key, (None, 0))
                    if known is not None and (known < cost or (known == cost and movers & bit == bit)):
                        continue
                    self._came_from.setdefault(key, (_name(state), mover, step))
                    if known is None:
                        self._trying = state, mover, step
                        self._visit(new)
                    visited[key] = cost, (movers | bit if known == cost else bit)
                    (later if interrupts else now).append((new, mover, known is None))
            now = later
            report.interruptions += 1
        return True

    def _visit(self, state: State) -> None:
        self._judge.check(state.table, self._times[state.jumps], self._progress(state))

    def _progress(self, state: State) -> list[Progress]:
        return [
            Progress(local.status, local is not actor.start, after, began_at(local))
            for local, actor, after in zip(state.places, self._actors, state.after, strict=True)
        ]

    # Moves.

    def _moves(self, state: State, only: int | None = None) -> Iterator[tuple[int, Step | None, State]]:
        """Yield who may move, how, and what comes of it; the clock is nobody."""
        somebody_waits = False
        for mover, local in enumerate(state.places):
            if local.status is not Status.RUNNING or only not in (None, mover):
                continue
            begun = self._begun(state, mover)
            for step in self._steps_of(begun.places[mover]):
                self._trying = state, mover, step
                new = self._moved(begun, mover, step)
                if new is None:
                    somebody_waits = True
                else:
                    yield mover, step, new
        may_jump = (somebody_waits or self._configuration.jumps_anywhere) and only is None
        if may_jump and state.jumps < len(self._configuration.jumps):
            yield _NOBODY, None, state._replace(jumps=state.jumps + 1)

    def _begun(self, state: State, mover: int) -> State:
        """Return the state with a call at its first round."""
        local = state.places[mover]
        if local is not self._actors[mover].start:
            return state
        first = self._actors[mover].receive(local, {}, self._times[state.jumps])
        ended = sum(1 << other for other, each in enumerate(state.places) if each.status in ENDED)
        after = _replaced(state.after, mover, ended & self._order[mover])
        return state._replace(places=_replaced(state.places, mover, first), after=after)

    def _steps_of(self, local: Local) -> Sequence[Step]:
        """Return how a round may go on: all of it, or some of its writes and then never again; or effect by effect."""
        known = self._steps.get(local)
        if known is not None:
            return known
        effects = local.effects
        left = [position for position in range(len(effects)) if position not in local.done]
        if self._configuration.by_effect:
            known = [Step((each,)) for each in left[: None if len(effects) <= EFFECTS_IN_ANY_ORDER else 1]]
        else:
            writes = [position for position in left if not effects[position].is_read]
            some = [each for each in subsets(len(writes)) if 0 < len(each) < len(writes)]
            dying = [Step([writes[each] for each in subset], dies=True) for subset in some]
            known = [Step(left), *dying]
        self._steps[local] = known
        return known

    def _moved(self, state: State, mover: int, step: Step) -> State | None:
        """Return the state after a step; `None` where it would wait."""
        local, table, answers = state.places[mover], state.table, {}
        effects = local.effects
        for position in step.positions:
            request = effects[position]
            answers[position], changes = self._storage.perform(table.contents, request)
            if answers[position].failed and request.call.delay_seconds and request.keys[0] in table.contents:
                return None
            if changes:
                table = self._storage.changed(table, changes)
        actor = self._actors[mover]
        if step.dies:
            return state._replace(table=table, places=_replaced(state.places, mover, actor.end(Status.DEAD)))
        place = actor.receive(local, answers, self._times[state.jumps])
        if place.status not in ENDED:
            return state._replace(table=table, places=_replaced(state.places, mover, place))
        new = state._replace(table=table, places=_replaced(state.places, mover, actor.end(place.status)))
        self._judge.check_end(mover, place, self._progress(new))
        return new

    # What led to a violation.

    def _story(self) -> list[str]:
        """Tell the schedule that led to what was being tried."""
        state, mover, step = self._trying
        path = [(mover, step)]
        name = _name(state)
        while name in self._came_from:
            name, mover, step = self._came_from[name]
            path.append((mover, step))
        lines: list[str] = []
        state = self._start
        for mover, step in reversed(path):
            if step is None:
                lines.append("The clock jumps")
                state = state._replace(jumps=state.jumps + 1)
                continue
            begun = self._begun(state, mover)
            effects = begun.places[mover].effects
            contents = dict(state.table.contents)
            for position in step.positions:
                outcome, changes = self._storage.perform(contents, effects[position])
                contents.update({key: each for key, each in changes.items() if each is not None})
                answer = answered(outcome.value)
                lines.append(f"{self._calls[mover].name}: {described(effects[position].call)} -> {answer}")
            if step.dies:
                lines.append(f"{self._calls[mover].name} dies")
            try:
                state = self._moved(begun, mover, step) or state
            except Violation:
                break
        return lines


def _name(state: State) -> int:
    places = [each.digest for each in state.places]
    return hash((state.table.digest, *places, *state.after, state.jumps))


def _replaced(some: tuple[_T, ...], position: int, value: _T) -> tuple[_T, ...]:
    return (*some[:position], value, *some[position + 1 :])
