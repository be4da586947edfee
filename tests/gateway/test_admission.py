"""Places: who is one too many, who waits, whose turn it is, and that nothing is left over."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, shares
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.shares import Concurrency
from tests.gateway.conftest import MakeApp, Script, client_of


class Hall:
    """Places, and who is served in them, by hand."""

    def __init__(self, in_flight_max: int = 2, waiting_max: int = 100) -> None:
        """Make places."""
        self._in_flight_max = in_flight_max
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shares, "_WAITING_MAX", waiting_max)
            self.places = Concurrency(Limits(in_flight_max=in_flight_max))
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


async def test_tenants_share_evenly_however_many_principals_each_has() -> None:
    hall = Hall(in_flight_max=1)
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


async def test_a_newcomer_does_not_overtake_who_waits() -> None:
    hall = Hall(in_flight_max=1)
    await hall.come("a1", "a2")
    hall._leave["a1"].set()  # noqa: SLF001
    await hall.come("a3")
    await hall.go("a2", "a3")
    assert hall.served == ["a1", "a2", "a3"]
    await hall.empty()


async def test_who_makes_others_wait_is_refused_before_them() -> None:
    hall = Hall(in_flight_max=1, waiting_max=8)
    await hall.come("Z1", *(f"Aa{each}" for each in range(8)))
    assert hall.refused() == ["Aa5", "Aa6", "Aa7"]
    await hall.come("Ab1", "B1", "Ab2")
    assert hall.refused() == ["Aa5", "Aa6", "Aa7", "Ab2"]
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
    hall = Hall(in_flight_max=1)
    await hall.come("a1", "a2", "a3")
    hall._leave["a1"].set()  # noqa: SLF001
    # Neither has run since, so both still wait in line when the place is free.
    hall.tasks["a3"].cancel()
    hall.tasks["a2"].cancel()
    await hall.come("b1")
    assert hall.served[-1] == "b1"
    await hall.empty()


async def test_a_request_that_ended_while_it_waited_for_its_place_gives_it_back() -> None:
    hall = Hall(in_flight_max=1)
    who = Principal("a", "a")
    await hall.places.enter(who)
    slot = shares.Slot(hall.places, who)
    resting = asyncio.create_task(slot.rest(0))
    await hall.come("b1")
    assert hall.served == ["b1"]
    await hall.settle()
    slot.end()
    await hall.go("b1")
    await resting
    await hall.empty()


async def test_requests_wait_for_their_turn_and_are_all_served(make_app: MakeApp, script: Script) -> None:
    script.wait = Wait(Future(), 0)
    client = client_of(make_app(limits=Limits(in_flight_max=5)))
    posts = [client.post("/checkpoints/get-tuple", json={"thread_id": "a"}) for _ in range(100)]
    assert {each.status_code for each in await asyncio.gather(*posts)} == {200}
    # Of five places, four are a tenant's, and three of these one principal's.
    assert script.most == 3
    counted = (await client.get("/metrics")).text
    assert 'in_flight{endpoint="checkpoints/get-tuple"} 0' in counted


async def test_a_gateway_that_is_full_says_so(
    make_app: MakeApp, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "_WAITING_MAX", 1)
    go_on: Future[None] = Future()
    script.wait = Wait(go_on, 60)
    client = client_of(make_app(limits=Limits(in_flight_max=1)))
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
