"""Shares: who is one too many, who waits, whose turn it is, and that nothing is left over."""

import asyncio
from concurrent.futures import Future
from functools import partial

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, app
from langgraph.checkpoint.dynamodb.gateway.limits import Held, MoreMemory, Shares, Slot
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from tests.gateway.conftest import MakeApp, Script, client_of


class Hall:
    """A resource, and who has a part of it, by hand."""

    def __init__(self, total: int = 4, waiting_max: int = 100) -> None:
        """Make the resource."""
        self.places = Shares(total, waiting_max)
        self.served: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """Let requests come one after the other: the tenant, in capitals, the name, a number, and after = how much."""
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
        who, _, amount = name.partition("=")
        who = who.rstrip("0123456789")
        tenant = who.rstrip("abcdefghijklmnopqrstuvwxyz")
        async with self.places.turn(Principal(who, tenant or who), int(amount or 1)):
            self.served.append(name)
            await self._leave[name].wait()

    async def empty(self) -> None:
        """Let all go, and see that everything is free again."""
        await self.go(*self._leave)
        assert all(each.done() for each in self.tasks.values())
        before, everything = len(self.served), [f"{tenant}={self.places.share}" for tenant in "YZ"]
        await self.come(*everything)
        assert self.served[before:] == everything
        await self.go(*everything)
        assert not self.places.waiting()


async def test_who_has_least_is_next_and_then_who_waited_longest() -> None:
    hall = Hall(total=2)
    await hall.come("A1", "B1", "A2", "A3", "B2", "C1", "D1")
    assert hall.served == ["A1", "B1"]
    await hall.go("A1")
    # These two have none, and these have waited longer.
    assert hall.served[2:] == ["A2"]
    await hall.go("B1")
    assert hall.served[3:] == ["B2"]
    await hall.go("A2", "B2")
    assert hall.served[4:] == ["C1", "D1"]
    await hall.empty()


async def test_tenants_share_evenly_however_many_principals_each_has() -> None:
    hall = Hall(total=2)
    many = [f"A{name}1" for name in "abcdefghij"]
    await hall.come("Y1=2", "Z1", *many, "B1", "B2", "B3")
    for _ in range(6):
        await hall.go(hall.served[-1])
    assert [name[0] for name in hall.served] == list("YZABABAB")
    await hall.empty()


async def test_those_who_take_all_they_can_leave_some_to_whoever_comes_next() -> None:
    hall = Hall(total=64, waiting_max=1000)
    await hall.come(*(f"Aa{number}" for number in range(60)))
    await hall.come(*(f"Ab{number}" for number in range(60)))
    # One principal has three quarters of its tenant's half, another one three quarters of what it leaves.
    assert [sum(each.startswith(who) for each in hall.served) for who in ("Aa", "Ab")] == [24, 6]
    await hall.come("Ac1", "Ad1", *(f"B{number}" for number in range(60)))
    assert [sum(each.startswith(who) for each in hall.served) for who in ("Ac", "Ad", "B")] == [1, 1, 24]
    await hall.come("C1", "D1", "E1")
    assert hall.served[-3:] == ["C1", "D1", "E1"]
    await hall.empty()


async def test_who_has_nothing_may_have_the_share_of_its_tenant_and_others_wait_for_it() -> None:
    hall = Hall(total=200)
    await hall.come("Aa1=1000", "Ab1=10", "Aa2=10", "B1=60", "B2=60")
    # More than a share is not to be had, so who asks for it has the share to itself.
    assert hall.served == ["Aa1=1000", "B1=60"]
    await hall.go("Aa1=1000")
    assert hall.served[2:] == ["Ab1=10", "Aa2=10"]
    await hall.empty()


async def test_who_waits_for_much_is_not_overtaken_by_those_who_want_little() -> None:
    hall = Hall(total=200)
    await hall.come("Aa1=50", "Ab1=70", "Ac1=10", "Aa2=10", "B1=90")
    # Of the tenant's hundred, fifty are free, which is not enough for who is next.
    assert hall.served == ["Aa1=50", "B1=90"]
    await hall.come("C1=80", "D1=10")
    # Nor are sixty of all.
    assert hall.served[2:] == []
    await hall.go("B1=90")
    assert hall.served[2:] == ["C1=80", "D1=10"]
    await hall.go("Aa1=50")
    assert hall.served[4:] == ["Ab1=70", "Ac1=10", "Aa2=10"]
    await hall.empty()


async def test_who_makes_others_wait_is_refused_before_them() -> None:
    hall = Hall(total=2, waiting_max=16)
    await hall.come("Z1", *(f"Aa{each}" for each in range(8)))
    assert hall.refused() == ["Aa7"]
    await hall.come("Ab1", "Ab2", "Ab3", "B1", "B2")
    assert hall.refused() == ["Aa7", "Ab2", "Ab3"]
    await hall.empty()


async def test_who_gives_up_leaves_nothing_behind() -> None:
    hall = Hall(total=2)
    await hall.come("Aa1", "Aa2", "Ab1", "Ab2")
    await hall.give_up("Aa2")
    await hall.give_up("Aa1")
    assert hall.served == ["Aa1", "Ab1"]
    # The turn comes, and the request is given up before it has noticed.
    hall._leave["Ab1"].set()  # noqa: SLF001
    await asyncio.sleep(0)
    hall.tasks["Ab2"].cancel()
    await hall.settle()
    assert hall.served == ["Aa1", "Ab1"]
    await hall.empty()


async def test_who_gave_up_a_moment_ago_is_passed_over() -> None:
    hall = Hall(total=2)
    await hall.come("a1", "a2", "a3")
    hall._leave["a1"].set()  # noqa: SLF001
    # Neither has run since, so both still wait in line when the place is free.
    hall.tasks["a3"].cancel()
    hall.tasks["a2"].cancel()
    await hall.come("a4")
    assert hall.served[-1] == "a4"
    await hall.empty()


async def test_a_request_that_ended_while_it_waited_for_its_place_gives_it_back() -> None:
    hall = Hall(total=2)
    who = Principal("a", "a")
    await hall.places.enter(who)
    held = Slot(hall.places, who)
    await hall.come("B1", "C1")
    resting = asyncio.create_task(held.rest(0))
    await hall.settle()
    assert hall.served == ["B1", "C1"]
    held.end()
    await hall.go("B1")
    await resting
    await hall.empty()


async def test_a_part_of_a_request_waits_for_the_place_that_another_part_has_given_back() -> None:
    hall = Hall(total=2)
    who, began = Principal("a", "a"), list[str]()
    await hall.places.enter(who)
    held = Slot(hall.places, who)
    resting = asyncio.create_task(held.rest(60))
    await hall.come("B1", "C1")

    async def ask() -> None:
        async with held.busy():
            began.append("now")

    asking = asyncio.create_task(ask())
    await hall.settle()
    assert (hall.served, began) == (["B1", "C1"], [])
    await hall.go("B1")
    await asking
    assert began == ["now"]
    # The other part still waits, so the place is free again.
    await hall.come("D1")
    assert hall.served[-1] == "D1"
    resting.cancel()
    held.end()
    await hall.empty()


# What is read


async def test_what_is_read_is_counted_and_waits_for_its_turn_if_there_is_no_room() -> None:
    who, neighbour, memory = Principal("a", "a"), Principal("b", "a"), Shares(1600)
    held, other = (Held(memory, each, read_bytes_max=400) for each in (who, neighbour))
    await held.take(100, 100)
    held.add(100)
    # An estimate is corrected, and counts no more.
    held.add(-50)
    held.add(100)
    await other.take(100, 100)
    with pytest.raises(MoreMemory) as more:
        other.add(100)
    other.give_back()
    # It needs four hundred; of what is not known yet, twice as much as it had may come.
    waiting = asyncio.create_task(other.take(100, more.value.size_bytes))
    await asyncio.sleep(0)
    assert (more.value.size_bytes, waiting.done()) == (400, False)
    held.give_back()
    await waiting
    other.add(100)
    # With the whole share it may go on, to the limit of one request.
    other.give_back()
    await other.take(100, 10**9)
    other.add(400)
    with pytest.raises(ProblemError, match="over 400 bytes"):
        other.add(1)
    other.give_back()
    assert memory.grow(who, 800)
    # Of what is free all may be taken, and no more.
    assert memory.grow(Principal("c", "c"), 500)
    assert not memory.grow(Principal("d", "d"), 301)
    assert memory.grow(Principal("d", "d"), 300)


def test_a_tenants_share_is_what_its_largest_request_needs_with_room_for_small_ones() -> None:
    for limits in (Limits(body_bytes_max=5000), Limits(decompressed_bytes_max=5000)):
        largest = 64 << 20
        # Its text, its values, and the items made of them.
        assert Shares(limits.memory_bytes).share == limits.needed_bytes(largest) == 3 * largest
        assert Shares(limits.wire_bytes).share == largest + (32 << 20)
    assert [Limits(request_seconds_max=each).part_seconds for each in (16, 1000)] == [4, 8]


async def test_a_gateway_that_is_full_says_so(
    make_app: MakeApp, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "Shares", partial(Shares, waiting_max=2))
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
