"""The faults of a run are those of its seed."""

from __future__ import annotations

from tests.chaos.faults import Fault, Faults

REQUESTS = 2_000


def faults(seed: str) -> list[Fault | None]:
    """Return what happens to the first requests."""
    return [Faults(seed).of(number)[0] for number in range(REQUESTS)]


def test_a_seed_has_the_same_faults_each_time_and_another_seed_has_others() -> None:
    assert faults("1") == faults("1")
    assert faults("1") != faults("2")


def test_every_fault_befalls_some_requests_and_most_requests_are_spared() -> None:
    found = faults("1")
    assert set(found) == {*Fault, None}
    assert found.count(None) > REQUESTS / 2
