"""What the gateway adds: units, bytes on the wire and time, beside a saver that reaches the table itself.

The services are processes of their own. Where there are several, each request goes to one of them at random, or by its
thread. The conversation is the one of the section on reads; a state of 360 KB is one that it ends with.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks.balancer import Balancer
from benchmarks.clock import Times, interleaved
from benchmarks.contestants import OURS, Bench, session_of
from benchmarks.conversation import STEPS_PER_TURN, config_of, conversation
from benchmarks.dollars import request_dollars
from benchmarks.figures import Figure, Section, at_most, under, within
from benchmarks.raw import new_table
from benchmarks.report import table
from benchmarks.services import TEAM_HEADER, fleet
from benchmarks.states import Thread, chat, message
from langgraph.checkpoint.dynamodb import CheckpointerError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from benchmarks.meter import Tally
    from tools.engine import Engine

MIB = 1024 * 1024
TURNS = 60
_LATE_TURNS = 10
_SERVICES = (1, 2, 4)
_UNITS_TARGET = 1.15
_BYTES_BESIDE_MAX = 4_096
_THREAD = "thread"
_PLAIN = JsonPlusSerializer()

_STATE_BYTES = 360_000
_REPETITIONS = 40
_LATENCY_MS = 5

_CONVERSATIONS = 2_000
_FEW = 100
_STEPS = 2
_CROWD_SERVICES = 4
_FAIRNESS_MIN = 0.9
# What a service takes before its first request is some 110 MiB.
_PEAK_MIB_MAX = 512

_PROCESSES = 15
_IMPORT_MS_MAX = 60
_IMPORT = """
import sys, time
import langgraph.checkpoint.base
before = set(sys.modules)
started = time.perf_counter()
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
print(time.perf_counter() - started)
print(len({"boto3", "botocore", "aiobotocore", "pydantic", "starlette", "httpx"} & (set(sys.modules) - before)))
"""


def run(engine: Engine) -> Section:
    """Measure each row."""
    busy = _busy()
    parts = (_conversations(engine), _latency(engine, busy), _crowd(engine), _imports(busy))
    return Section(
        "The gateway, beside the saver itself",
        [text for part in parts for text in part.tables],
        [figure for part in parts for figure in part.figures],
        {part.title: part.data for part in parts},
    )


def _busy() -> str:
    """Say so where other programs keep the machine busy: what is timed here takes longer then."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"the machine had other work: a load of {load:.1f} on {cores} cores" if load > cores else ""


# What a conversation costs


@dataclass(frozen=True)
class Talk:
    """What a conversation cost, and for one through services, what the client sent in each of its last turns."""

    tally: Tally
    late_bytes: int = 0
    # What those turns added, serialized: messages, each once, and checkpoints and metadata without values.
    added_bytes: int = 0

    @property
    def dollars(self) -> float:
        """What it cost, on demand in us-east-1."""
        return request_dollars(self.tally.write_units, self.tally.read_units)


def _conversations(engine: Engine) -> Section:
    serde = JsonPlusSerializer()
    talks = {"itself": _itself(engine, serde)}
    for count in _SERVICES:
        talks[f"{count} services, random"] = _through_services(engine, serde, count)
        talks[f"{count} services, by thread"] = _through_services(engine, serde, count, by_thread=True)
    each = list(talks.values())
    itself, through = each[0], talks["1 services, random"]
    affine = talks[f"{_SERVICES[-1]} services, by thread"]
    steps = _LATE_TURNS * STEPS_PER_TURN
    rows: list[tuple[object, ...]] = [
        ("write units", *(talk.tally.write_units for talk in each)),
        ("read units", *(talk.tally.read_units for talk in each)),
        ("dollars of a thousand conversations", *(f"{1000 * talk.dollars:.2f}" for talk in each)),
        ("bytes that a late step sends", *(talk.late_bytes // steps for talk in each)),
        ("bytes that it adds, serialized", *(talk.added_bytes // steps for talk in each)),
    ]
    return Section(
        "conversation",
        (
            f"A conversation of {TURNS} turns, by the saver itself and through services",
            table(["", *talks], rows),
        ),
        (
            within(
                "write units through a service, to the saver itself",
                _UNITS_TARGET,
                through.tally.write_units / itself.tally.write_units,
            ),
            within("the same, read units", _UNITS_TARGET, through.tally.read_units / itself.tally.read_units),
            at_most(
                f"read units through {_SERVICES[-1]} services, by thread", 600, round(affine.tally.read_units)
            ),
            at_most(
                "bytes that a late step sends, beyond what it adds",
                _BYTES_BESIDE_MAX,
                (through.late_bytes - through.added_bytes) // steps,
            ),
        ),
        {name: asdict(talk) for name, talk in talks.items()},
    )


def _itself(engine: Engine, serde: SerializerProtocol) -> Talk:
    with closing(Bench(OURS, engine, serde)) as bench:
        for _ in conversation(bench.saver, _THREAD, TURNS):
            pass
        return Talk(bench.meter.total)


class _WeighedSaver(HttpCheckpointSaver):
    """Adds up how large the checkpoints are that it is given, serialized: without values, but with new messages."""

    weighed_bytes = 0
    _known: frozenset[str] = frozenset()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Weigh, and store."""
        messages = {each.id: each for each in checkpoint["channel_values"].get("messages", [])}
        new = [each for name, each in messages.items() if name not in self._known]
        frame = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        self._known = frozenset(messages)
        self.weighed_bytes += sum(len(_PLAIN.dumps_typed(each)[1]) for each in (frame, metadata, *new))
        return super().put(config, checkpoint, metadata, new_versions)


def _through_services(
    engine: Engine, serde: SerializerProtocol, count: int, *, by_thread: bool = False
) -> Talk:
    with (
        new_table(engine, OURS) as table_name,
        fleet(engine, table_name, count) as services,
        Balancer(services.addresses, by_thread=by_thread).serving() as balancer,
        _WeighedSaver(balancer.address, serde=serde) as saver,
    ):
        sizes = [(balancer.sent_bytes, saver.weighed_bytes) for _ in conversation(saver, _THREAD, TURNS)]
        (sent, weighed), (sent_before, weighed_before) = sizes[-1], sizes[-1 - _LATE_TURNS]
        return Talk(services.spent().tally, sent - sent_before, weighed - weighed_before)


# What a step takes longer


def _latency(engine: Engine, busy: str) -> Section:
    serde = JsonPlusSerializer()
    messages = chat(serde, _STATE_BYTES)
    with (
        new_table(engine, OURS) as table_name,
        fleet(engine, table_name, 1) as services,
        closing(
            DynamoDBSaver(table_name, session=session_of(engine), endpoint_url=engine.endpoint_url)
        ) as itself,
        HttpCheckpointSaver(services.addresses[0], serde=serde) as through,
    ):
        threads = [Thread(saver, name) for saver, name in ((itself, "itself"), (through, "through"))]
        states = [list(messages) for _ in threads]
        for thread, state in zip(threads, states, strict=True):
            thread.put(messages=state)

        def put(number: int) -> None:
            states[number] = [*states[number], message(len(states[number]))]
            threads[number].put(messages=states[number])

        def get(number: int) -> None:
            threads[number].saver.get_tuple(threads[number].config)

        began = services.spent().cpu_seconds
        puts = interleaved([lambda: put(0), lambda: put(1)], _REPETITIONS)
        between = services.spent().cpu_seconds
        gets = interleaved([lambda: get(0), lambda: get(1)], _REPETITIONS)
        ended = services.spent().cpu_seconds
    dumped = serde.dumps_typed(messages)
    dumps, loads = interleaved(
        [lambda: serde.dumps_typed(messages), lambda: serde.loads_typed(dumped)], _REPETITIONS
    )
    rows = [
        _latency_row("put", puts, dumps, between - began),
        _latency_row("get_tuple", gets, loads, ended - between),
    ]
    return Section(
        "latency",
        (
            f"A state of {_STATE_BYTES / 1000:.0f} KB, one service, milliseconds (p50)",
            table(
                ("", "itself", "through", "added", "serialization", "of through", "CPU of the service"), rows
            ),
        ),
        [
            under(
                f"latency that the gateway adds to {name} of {_STATE_BYTES / 1000:.0f} KB, p50",
                _LATENCY_MS,
                times[1].p50_ms - times[0].p50_ms,
                " ms",
                busy,
            )
            for name, times in (("put", puts), ("get_tuple", gets))
        ],
        {
            "puts": [each.seconds for each in puts],
            "gets": [each.seconds for each in gets],
            "serialization": [dumps.seconds, loads.seconds],
            "service_cpu_seconds": [between - began, ended - between],
        },
    )


def _latency_row(
    name: str, times: Sequence[Times], serialization: Times, cpu_seconds: float
) -> tuple[object, ...]:
    itself, through = (each.p50_ms for each in times)
    return (
        name,
        *(f"{each:.1f}" for each in (itself, through, through - itself, serialization.p50_ms)),
        f"{serialization.p50_ms / through:.0%}",
        f"{1000 * cpu_seconds / _REPETITIONS:.1f}",
    )


# Many at once


@dataclass(frozen=True)
class Team:
    """What the conversations of a team had: how long each request took, when each was done, and what failed."""

    name: str
    seconds: list[float] = field(default_factory=list)
    done_seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def _crowd(engine: Engine) -> Section:
    with new_table(engine, OURS) as table_name, fleet(engine, table_name, _CROWD_SERVICES) as services:
        idle = services.spent().peak_bytes
        teams = asyncio.run(_teams(services.addresses))
        peak = services.spent().peak_bytes
    crowd, few = teams
    slow, fast = (statistics.median(each.seconds) for each in (crowd, few))
    fairness = [_fairness(each.done_seconds) for each in teams]
    rows = [
        (
            f"{len(team.done_seconds):,} conversations of {team.name}",
            len(team.seconds),
            f"{Times(team.seconds).p50_ms:.0f}",
            f"{Times(team.seconds).p99_ms:.0f}",
            f"{min(team.done_seconds):.1f} to {max(team.done_seconds):.1f}",
            f"{fair:.2f}",
        )
        for team, fair in zip(teams, fairness, strict=True)
    ]
    header = ("", "requests", "p50 ms", "p99 ms", "done after seconds", "fairness")
    return Section(
        "crowd",
        (
            f"{_CONVERSATIONS:,} conversations at once, of two teams, against {_CROWD_SERVICES} services",
            table(header, rows),
            f"Memory of a service: {idle / MIB:.0f} MiB before, {peak / MIB:.0f} MiB at most",
        ),
        (
            at_most(
                f"of {_CONVERSATIONS:,} conversations at once, failed",
                0,
                sum(len(each.failures) for each in teams),
            ),
            under("the most memory that a service took", _PEAK_MIB_MAX, peak / MIB, " MiB"),
            Figure(
                "fairness among the conversations of one team (Jain's index of their speeds)",
                f"at least {_FAIRNESS_MIN}",
                f"{min(fairness):.2f}",
                min(fairness) >= _FAIRNESS_MIN,
            ),
            within(
                f"a request of the team with {_FEW}, to one of the team with the rest, p50", 1, fast / slow
            ),
        ),
        {team.name: asdict(team) for team in teams} | {"peak_bytes": peak, "idle_bytes": idle},
    )


def _fairness(done_seconds: Sequence[float]) -> float:
    """Jain's index: 1 where all were as fast, one in n where one had everything."""
    speeds = [1 / each for each in done_seconds]
    return sum(speeds) ** 2 / (len(speeds) * sum(each * each for each in speeds))


async def _teams(addresses: Sequence[str]) -> list[Team]:
    """Run all conversations side by side."""
    sizes = (("the crowd", _CONVERSATIONS - _FEW), ("a few", _FEW))
    return await asyncio.gather(*(_team(name, count, addresses) for name, count in sizes))


async def _team(name: str, count: int, addresses: Sequence[str]) -> Team:
    options = {"headers": {TEAM_HEADER: name}}
    savers = [HttpCheckpointSaver(address, client_options=options) for address in addresses]
    team, began = Team(name), time.perf_counter()

    async def talk(number: int) -> None:
        thread, said = Thread(savers[number % len(savers)], f"{name}-{number}"), list[Any]()
        for step in range(_STEPS):
            # Each request goes to another service than the one before.
            thread.saver = savers[(number + step) % len(savers)]
            said = [*said, message(step)]
            started = time.perf_counter()
            await thread.aput(messages=said)
            await thread.saver.aput_writes(thread.config, [("messages", said[-1:])], "task")
            await thread.saver.aget_tuple(config_of(f"{name}-{number}"))
            team.seconds.append((time.perf_counter() - started) / 3)
        team.done_seconds.append(time.perf_counter() - began)

    async def attempt(number: int) -> None:
        try:
            await talk(number)
        except CheckpointerError as error:
            team.failures.append(str(error))

    await asyncio.gather(*map(attempt, range(count)))
    for saver in savers:
        await saver.aclose()
    return team


# What importing takes


def _imports(busy: str) -> Section:
    with tempfile.TemporaryDirectory() as compiled:
        # The first process compiles what it imports, as pip does when it installs.
        _, *found = [_imported(compiled) for _ in range(1 + _PROCESSES)]
    times = Times([seconds for seconds, _ in found])
    return Section(
        "imports",
        (f"Importing HttpCheckpointSaver after langgraph.checkpoint.base: {times.p50_ms:.0f} ms",),
        (
            under(
                "import of HttpCheckpointSaver, over langgraph.checkpoint.base",
                _IMPORT_MS_MAX,
                times.p50_ms,
                " ms",
                busy,
            ),
            at_most("of AWS's libraries, pydantic, starlette and httpx with it", 0, found[0][1]),
        ),
        {"seconds": times.seconds},
    )


def _imported(compiled: str) -> tuple[float, int]:
    """Return how many seconds the import took in a new process, and how many of the libraries it loaded."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    seconds, count = subprocess.run(  # noqa: S603  # Our own program.
        (sys.executable, "-c", _IMPORT), env=environment, check=True, capture_output=True, text=True
    ).stdout.split()
    return float(seconds), int(count)
