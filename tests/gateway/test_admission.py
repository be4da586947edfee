"""Rates and places: who is one too many, who waits, whose turn it is, and that nothing is left over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb._runtime.steps import Op, Wait
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal
from langgraph.checkpoint.dynamodb.gateway.concurrency import Concurrency
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.rates import Rates
from tests.gateway.conftest import MakeClient, Script

# Rates


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        """Begin somewhere."""
        self.now = 1000.0

    def __call__(self) -> float:
        """Say what time it is."""
        return self.now


def refused(rates: Rates, who: Principal) -> float | None:
    """Count a request; give the seconds of its Retry-After where it is one too many."""
    try:
        rates.take(who)
    except ProblemError as problem:
        return float(problem.headers["Retry-After"])
    return None


A, B = Principal("a", "acme"), Principal("b", "acme")
# Of another tenant, under the same name.
OTHER = Principal("a", "other")


def test_a_tenant_has_its_burst_and_then_its_rate_and_a_principal_three_quarters_of_both() -> None:
    clock = Clock()
    rates = Rates(Limits(requests_per_second=0.25, burst_requests=4), clock)
    assert [refused(rates, A) for _ in range(4)] == [None, None, None, 6]
    # What the one was refused costs the other nothing.
    assert [refused(rates, B) for _ in range(2)] == [None, 4]
    assert refused(rates, OTHER) is None
    clock.now += 4
    assert refused(rates, A) == 2
    assert [refused(rates, B) for _ in range(2)] == [None, 4]
    clock.now += 1000
    assert [refused(rates, A) for _ in range(4)] == [None, None, None, 6]


def test_a_tenant_has_no_more_for_having_many_principals() -> None:
    rates = Rates(Limits(requests_per_second=1, burst_requests=100), Clock())
    answers = [refused(rates, Principal(f"agent-{number}", "acme")) for number in range(300)]
    assert answers.count(None) == 100
    assert refused(rates, OTHER) is None


def test_a_burst_of_one_is_one_for_a_principal_too() -> None:
    assert refused(Rates(Limits(requests_per_second=1, burst_requests=1), Clock()), A) is None


def test_names_that_anybody_can_make_up_take_a_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.rates._BUCKETS_MAX", 3)
    rates = Rates(Limits(requests_per_second=1, burst_requests=10), Clock())
    for name in "abcdef":
        rates.take(Principal(name, "acme"))
    # Who asks goes on to be known, and so does its tenant.
    assert list(rates._buckets) == [("acme", "e"), ("acme", "f"), ("acme",)]  # noqa: SLF001
    assert [refused(rates, Principal("g", "acme")) for _ in range(5)] == [None] * 4 + [1]


def test_a_burst_is_twice_the_rate_unless_it_is_configured() -> None:
    rates = Rates(Limits(requests_per_second=7), Clock())
    answers = [refused(rates, Principal(f"agent-{number}", "acme")) for number in range(20)]
    assert answers.count(None) == 14


async def test_without_a_configured_rate_nobody_is_refused_for_one(
    make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=Principal("agents"))
    limits = (await client.get("/about")).json()["limits"]
    assert (limits["requests_per_second"], limits["burst_requests"]) == (None, None)
    posts = [client.post("/checkpoints/get-tuple", json={"thread_id": "a"}) for _ in range(300)]
    assert {each.status_code for each in await asyncio.gather(*posts)} == {200}
    rates = Rates(Limits(), Clock())
    assert [refused(rates, A) for _ in range(1000)] == [None] * 1000


async def test_too_many_requests_are_told_when_to_come_again(make_client: MakeClient, script: Script) -> None:
    limits = Limits(requests_per_second=0.5, burst_requests=3)
    client = make_client(principal=Principal("agents"), limits=limits)
    answers = [await client.post("/checkpoints/get-tuple", json={"thread_id": "a"}) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] in ("1", "2", "3")
    assert len(script.asked) == 2
    assert (await client.get("/health")).status_code == 200


# Places


class Hall:
    """Places, and who is served in them, by hand."""

    def __init__(self, in_flight_max: int = 2, waiting_max: int = 6, waiting_seconds_max: float = 60) -> None:
        """Make places."""
        self._in_flight_max = in_flight_max
        limits = Limits(
            in_flight_max=in_flight_max, waiting_max=waiting_max, request_seconds_max=waiting_seconds_max
        )
        self.places = Concurrency(limits)
        self.served: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """Let requests come one after the other; before the number are the tenant, in capitals, and the name."""
        for name in names:
            self.set_out(name)
            await self.settle()

    def set_out(self, name: str) -> None:
        """Let a request come once the event loop goes on."""
        self._leave[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._visit(name))

    async def go(self, *names: str) -> None:
        """Let requests be done."""
        for name in names:
            self._leave[name].set()
            await self.settle()

    async def give_up(self, name: str) -> None:
        """Cancel a request."""
        self.tasks[name].cancel()
        await self.settle()

    async def settle(self) -> None:
        """Let everybody do what they can."""
        for _ in range(20):
            await asyncio.sleep(0)

    def refused(self) -> list[str]:
        """Those who were told to come again."""
        done = {name: each for name, each in self.tasks.items() if each.done() and not each.cancelled()}
        return [name for name, each in done.items() if isinstance(each.exception(), ProblemError)]

    async def _visit(self, name: str) -> None:
        who = name.rstrip("0123456789")
        tenant = who.rstrip("abcdefghijklmnopqrstuvwxyz")
        async with self.places.place(Principal(who, tenant or who)):
            self.served.append(name)
            await self._leave[name].wait()

    async def empty(self) -> None:
        """Let all go, and see that all places are free again."""
        await self.go(*self._leave)
        assert all(each.done() for each in self.tasks.values())
        before, all_places = len(self.served), [f"{each}y" for each in range(self._in_flight_max)]
        await self.come(*all_places)
        assert self.served[before:] == all_places
        await self.go(*all_places)


async def test_who_has_fewest_places_is_next_and_then_who_waited_longest() -> None:
    hall = Hall()
    await hall.come("a1", "a2", "a3", "a4", "b1", "a5", "c1")
    assert hall.served == ["a1", "a2"]
    await hall.go("a1")
    assert hall.served[2:] == ["b1"]
    # Both have none now, and this one has waited longer.
    await hall.go("a2")
    assert hall.served[3:] == ["a3"]
    await hall.go("b1")
    assert hall.served[4:] == ["c1"]
    await hall.empty()


async def test_two_that_both_want_all_share_evenly() -> None:
    hall = Hall(waiting_max=100)
    await hall.come(*(f"a{each}" for each in range(20)), *(f"b{each}" for each in range(10)))
    for _ in range(10):
        await hall.go(hall.served[-2], hall.served[-1])
    assert sum(name[0] == "b" for name in hall.served[2:22]) == 10
    await hall.empty()


async def test_one_who_takes_all_it_can_keeps_nobody_else_waiting() -> None:
    hall = Hall(in_flight_max=4, waiting_max=100)
    await hall.come(*(f"a{each}" for each in range(10)))
    assert hall.served == ["a0", "a1", "a2"]
    await hall.come("b1", "c1")
    assert hall.served[3:] == ["b1"]
    await hall.go("b1")
    assert hall.served[4:] == ["c1"]
    await hall.go("c1")
    assert len(hall.served) == 5
    await hall.go("a0")
    assert hall.served[5:] == ["a3"]
    await hall.go(*(f"a{each}" for each in range(1, 10)))
    assert len(hall.served) == 12


async def test_tenants_share_evenly_however_many_principals_each_has() -> None:
    hall = Hall(in_flight_max=1, waiting_max=100)
    many = [f"A{name}1" for name in "abcdefghij"]
    await hall.come("Z1", *many, "B1", "B2", "B3")
    for _ in range(7):
        await hall.go(hall.served[-1])
    assert [name[0] for name in hall.served] == list("ZABABABA")
    await hall.empty()


async def test_those_who_take_all_they_can_leave_places_to_whoever_comes_next() -> None:
    hall = Hall(in_flight_max=64, waiting_max=1000)
    crowds = [[f"{tenant}{name}{number}" for name in "ab" for number in range(60)] for tenant in "AB"]
    await hall.come(*crowds[0])
    # One principal has 36, another one of its tenant most of what is left to it.
    assert [sum(each.startswith(who) for each in hall.served) for who in ("Aa", "Ab")] == [36, 9]
    await hall.come(*crowds[1])
    assert sum(each.startswith("B") for each in hall.served) == 14
    await hall.come("C1", "D1", "E1")
    assert hall.served[-3:] == ["C1", "D1", "E1"]


async def test_where_too_many_wait_the_tenant_that_has_most_is_refused_before_its_neighbours() -> None:
    hall = Hall(in_flight_max=1, waiting_max=4)
    await hall.come("Z1", "Aa1", "Aa2", "Ab1", "B1")
    await hall.come("B2")
    assert hall.refused() == ["Aa2"]
    await hall.come("Ac1")
    assert hall.refused() == ["Aa2", "Ac1"]
    await hall.empty()


async def test_a_newcomer_does_not_overtake_who_waits() -> None:
    hall = Hall(in_flight_max=1)
    await hall.come("a1", "a2")
    hall._leave["a1"].set()  # noqa: SLF001
    await hall.come("a3")
    await hall.go("a2", "a3")
    assert hall.served == ["a1", "a2", "a3"]
    await hall.empty()


async def test_where_too_many_wait_who_has_most_is_refused() -> None:
    hall = Hall(in_flight_max=1, waiting_max=4)
    await hall.come("a1", "a2", "a3", "a4", "a5")
    await hall.come("a6")
    assert hall.refused() == ["a6"]
    await hall.come("b1")
    assert hall.refused() == ["a5", "a6"]
    await hall.come("b2")
    assert hall.refused() == ["a4", "a5", "a6"]
    await hall.come("b3", "b4")
    assert hall.refused() == ["a4", "a5", "a6", "b3", "b4"]
    await hall.empty()


async def test_who_gives_up_leaves_no_place_behind() -> None:
    hall = Hall(in_flight_max=1)
    await hall.come("a1", "a2", "b1", "a3")
    await hall.give_up("a2")
    await hall.give_up("a1")
    assert hall.served == ["a1", "a3"]
    # The turn comes, and the request is given up before it has noticed.
    hall._leave["a3"].set()  # noqa: SLF001
    await asyncio.sleep(0)
    hall.tasks["b1"].cancel()
    await hall.settle()
    assert hall.served == ["a1", "a3"]
    await hall.empty()


async def test_who_gave_up_a_moment_ago_is_passed_over() -> None:
    hall = Hall(in_flight_max=1, waiting_max=2)
    await hall.come("a1", "a2", "a3")
    hall._leave["a1"].set()  # noqa: SLF001
    # Neither has run since, so both still wait in line when the place is free.
    hall.tasks["a3"].cancel()
    hall.tasks["a2"].cancel()
    await hall.come("b1")
    assert hall.served[-1] == "b1"
    await hall.empty()


@pytest.mark.parametrize("is_late", [False, True])
async def test_who_is_sent_away_may_give_up_at_that_very_moment(is_late: bool) -> None:
    hall = Hall(in_flight_max=1, waiting_max=2)
    await hall.come("a1", "a2", "a3")
    hall.set_out("b1")
    if is_late:
        # It is told, and has not heard it yet.
        asyncio.get_running_loop().call_soon(hall.tasks["a3"].cancel)
    else:
        hall.tasks["a3"].cancel()
    await hall.settle()
    assert hall.tasks["a3"].cancelled()
    await hall.go("a1")
    assert hall.served == ["a1", "a2"]
    await hall.empty()


async def test_nobody_waits_for_ever() -> None:
    hall = Hall(in_flight_max=1, waiting_seconds_max=0.01)
    await hall.come("a1", "a2")
    with pytest.raises(ProblemError) as caught:
        await hall.tasks["a2"]
    assert caught.value.status == 503
    assert caught.value.headers["Retry-After"] in ("1", "2", "3")
    await hall.empty()


async def test_requests_wait_for_their_turn_and_are_all_served(
    make_app: Callable[..., Starlette], client_of: Any, script: Script
) -> None:
    running = most = 0

    def run(_storage: Storage, _request: Any) -> Op[dict[str, Any]]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        yield (Wait(Future(), 0),)
        running -= 1
        return {}

    script.__dict__["_run"] = run
    client = client_of(make_app(insecure=True, limits=Limits(in_flight_max=5)))
    posts = [client.post("/checkpoints/get-tuple", json={"thread_id": "a"}) for _ in range(100)]
    assert {each.status_code for each in await asyncio.gather(*posts)} == {200}
    # Of five places, four are a tenant's, and three of these one principal's.
    assert most == 3
    counted = (await client.get("/metrics")).text
    assert 'in_flight{endpoint="checkpoints/get-tuple"} 0' in counted


async def test_a_gateway_that_is_full_says_so(
    make_app: Callable[..., Starlette], client_of: Any, script: Script
) -> None:
    go_on: Future[None] = Future()

    def run(_storage: Storage, _request: Any) -> Op[dict[str, Any]]:
        yield (Wait(go_on, 60),)
        return {}

    script.__dict__["_run"] = run
    client = client_of(make_app(insecure=True, limits=Limits(in_flight_max=1, waiting_max=1)))
    posts = [
        asyncio.create_task(client.post("/checkpoints/get-tuple", json={"thread_id": "a"})) for _ in range(3)
    ]
    done, _ = await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
    full = done.pop().result()
    assert 'waiting{tenant="(none)"} 1' in (await client.get("/metrics")).text
    assert full.status_code == 503
    assert full.headers["retry-after"] in ("1", "2", "3")
    go_on.set_result(None)
    assert sorted([each.status_code for each in await asyncio.gather(*posts)]) == [200, 200, 503]
    assert "waiting{" not in (await client.get("/metrics")).text
