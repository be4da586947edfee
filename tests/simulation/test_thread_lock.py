"""Runners that take a thread's lock under faults, with clocks that differ as far as they may: never two at once."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.limits import LOCK_SKEW_SECONDS
from langgraph.checkpoint.dynamodb._operations.delete import delete_thread
from langgraph.checkpoint.dynamodb._operations.thread_lock import TableHolder, acquire, hold_on
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.protocol import Change
from tests.simulation.history import Violation
from tests.simulation.mutants import Mutation
from tests.simulation.random_runs import FAULTS, PATIENCE
from tests.simulation.schedule import Choices
from tests.simulation.simulator import Simulator
from tests.simulation.world import NETWORK_ERRORS, Flow
from tests.support.seeds import VARIABLE, first_seed

THREAD = "one"
# Shorter than a pause, longer than a wait.
TTL_SECONDS = 100.0
WAIT_SECONDS = 20.0
WORK_SECONDS = (0.0, 3.0, 30.0, 60.0)
ROUNDS = 3
# A schedule of a lock is a small part of a random run.
LOCK_SCHEDULES = 5
MUTANT_SCHEDULES = 1000


class Locks:
    """One run: who believes to hold the thread, and until when by the simulator's clock."""

    def __init__(self, choices: Choices) -> None:
        """Start with a table without the thread."""
        faults = replace(FAULTS[choices.pick(len(FAULTS))], patience=PATIENCE[choices.pick(len(PATIENCE))])
        self.simulator = Simulator(choices, faults, ttls_seconds=(None, 3000))
        self.holders: dict[str, float] = {}
        self.times_held = 0

    def runner(self, name: str) -> None:
        """Start a runner, whose clock may be ahead or behind."""
        skew = (self.simulator.choices.pick(3) - 1) * LOCK_SKEW_SECONDS / 2
        process = self.simulator.process()
        storage = replace(process.storage, clock=lambda: self.simulator.now + skew)
        self.simulator.start(name, process, self._runs(name, storage, skew))

    def _runs(self, name: str, storage: Storage, skew: float) -> Flow:
        """Take the lock a few times, renew it, and let it go or forget to."""
        choices = self.simulator.choices
        for _ in range(ROUNDS):
            hold = hold_on(THREAD, TTL_SECONDS, WAIT_SECONDS, storage.rng.randbytes(8))
            with suppress(CheckpointerError, *NETWORK_ERRORS):
                self._believe(name, (yield from acquire(TableHolder(storage), hold, WAIT_SECONDS)) - skew)
                for _ in range(choices.pick(4)):
                    seconds = WORK_SECONDS[choices.pick(len(WORK_SECONDS))]
                    yield from storage.table.send("get_item", Key=hold.key, delay_seconds=seconds)
                    # One that fails is made again, as in the background.
                    with suppress(*NETWORK_ERRORS):
                        self._believe(name, (yield from TableHolder(storage).renew(hold)) - skew)
                if choices.pick(4):
                    self.holders.pop(name, None)
                    yield from TableHolder(storage).release(hold)
            self.holders.pop(name, None)

    def _believe(self, name: str, until: float) -> None:
        now = self.simulator.now
        living = {actor.name for actor in self.simulator.actors if actor.process.alive}
        others = {
            other: end
            for other, end in self.holders.items()
            if other != name and other in living and now < end
        }
        if others and now < until:
            raise Violation(f"{name} holds the thread until {until}, and so do {others}")
        self.holders[name] = until
        self.times_held += 1

    def deleter(self, name: str) -> None:
        """Delete the thread, which has nothing but its lock."""
        process = self.simulator.process()
        self.simulator.start(name, process, self._deletion(process.storage))

    def _deletion(self, storage: Storage) -> Flow:
        with suppress(CheckpointerError, *NETWORK_ERRORS):
            yield from delete_thread(storage, THREAD)


def random_locks(choices: Choices) -> Locks:
    """Let a few runners and perhaps a deletion at a thread."""
    locks = Locks(choices)
    for number in range(2 + choices.pick(3)):
        locks.runner(f"runner {number}")
    if choices.pick(2):
        locks.deleter("deleter")
    locks.simulator.run()
    for actor in locks.simulator.actors:
        if actor.failure is not None:
            raise actor.failure
    return locks


def test_two_runners_never_hold_a_thread_at_once(schedules: int, tell: Callable[[str], None]) -> None:
    first, count = first_seed(), schedules * LOCK_SCHEDULES
    tell(f"{count} schedules of a lock from {VARIABLE}={first}")
    # Otherwise it would be easy.
    assert _many(count, first) > count


def _clocks_do_not_differ(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "LOCK_SKEW_SECONDS", 0)


def _anybody_renews(patch: pytest.MonkeyPatch) -> None:
    original = Table.update

    def update(table: Table, at: Item, change: Change, **rest: Any) -> Op[Any]:
        condition = change.condition.replace("#holder = :holder AND ", "")
        return original(table, at, change._replace(condition=condition), **rest)

    patch.setattr(Table, "update", update)


@pytest.mark.parametrize(
    "mutation", [pytest.param(_clocks_do_not_differ, marks=pytest.mark.search), _anybody_renews]
)
def test_a_lock_without_one_of_its_rules_is_caught(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation):
        _many(MUTANT_SCHEDULES)


def _many(count: int, first: int = 0) -> int:
    """Run schedules from consecutive seeds; return how often the lock was taken or renewed."""
    return sum(random_locks(Choices(seed=seed)).times_held for seed in range(first, first + count))
