"""The backends that LangGraph's checkpoints can be kept in, beside each other: `make bench-backends`.

Everything in the table is measured in one run, on this machine: a latency is worth what it is beside the others of its
row.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, TypeAlias

from benchmarks import report
from benchmarks.contestants import OURS
from benchmarks.months import EXAMPLES, month_cell
from benchmarks.network import ROUND_TRIP_MS
from benchmarks.stores import BACKENDS, Backend, Servers, Store, distant_servers, through_gateway
from benchmarks.trials import OPERATIONS, TRIALS, TURNS, capabilities, fan_out, latencies, usage
from tools.postgres import run_postgres

if TYPE_CHECKING:
    from tools.engine import Engine

_STATE_BYTES = (1_000, 360_000)
_TIMES = "\N{MULTIPLICATION SIGN}"
_STEPS = 20
_NETWORKS = ("", f", network of {ROUND_TRIP_MS} ms")

# By the title of a row and the name of a backend. Of a number, less is better; nothing is a refusal.
Rows: TypeAlias = dict[str, dict[str, "str | float | None"]]


def measure(servers: Servers) -> Rows:
    """Put all backends to all trials, each on a store of its own."""
    rows: Rows = defaultdict(dict)
    for backend in BACKENDS:
        rows["package"][backend.name] = f"{backend.package} {metadata.version(backend.package)}"
        for title, cell in tried(backend, servers):
            rows[title][backend.name] = cell
    with distant_servers(servers) as far:
        for network, place in zip(_NETWORKS, (servers, far), strict=True):
            for state_bytes in _STATE_BYTES:
                with _stores(place, [each for each in BACKENDS if each.has_server or not network]) as stores:
                    found = latencies(stores, state_bytes, _STEPS)
                for operation in OPERATIONS:
                    title = _latency_title(state_bytes, network, operation)
                    rows[title] = {name: times[operation].p50_ms for name, times in found.items()}
    for backend in BACKENDS:
        rows["limits"][backend.name] = backend.limits
    return rows


def tried(backend: Backend, servers: Servers) -> Iterator[tuple[str, str | float | None]]:
    """Yield the rows of one backend."""
    with backend.new(servers) as store:
        yield from asyncio.run(capabilities(store)).items()
    with backend.new(servers) as store:
        yield from asyncio.run(fan_out(store)).items()
    for trial in TRIALS:
        with backend.new(servers) as store:
            yield from trial(store).items()
    with backend.new(servers) as store:
        used = usage(store)
    for turns in TURNS:
        yield f"stored after {turns} turns of a conversation, KB", used[turns].stored.bytes / 1000
    for example in EXAMPLES:
        yield example.title, month_cell(backend.name, example, used)


def latency_titles() -> list[str]:
    """Return the titles of the rows of single operations."""
    return [
        _latency_title(size, network, operation)
        for network in _NETWORKS
        for size in _STATE_BYTES
        for operation in OPERATIONS
    ]


def _latency_title(state_bytes: int, network: str, operation: str) -> str:
    return f"{operation} of {state_bytes / 1000:.0f} KB{network}, p50 in ms"


@contextmanager
def _stores(servers: Servers, backends: Sequence[Backend]) -> Iterator[dict[str, Store]]:
    with ExitStack() as stack:
        yield {each.name: stack.enter_context(each.new(servers)) for each in backends}


def table(rows: Rows) -> str:
    """Return the table, one column for each backend."""
    names = [backend.name for backend in BACKENDS]
    return report.table(["", *names], [(title, *_cells(rows[title], names)) for title in rows])


def _cells(row: Mapping[str, str | float | None], names: Sequence[str]) -> Iterator[str]:
    ours = row.get(OURS.name)
    for name in names:
        cell = row.get(name)
        if isinstance(cell, float) and isinstance(ours, float):
            number = f"{cell:,.1f}" if cell < 100 else f"{cell:,.0f}"
            yield number if name == OURS.name else f"{number} ({cell / ours:.2f}{_TIMES})"
        else:
            yield cell if isinstance(cell, str) else "-"


def gateway_times(engine: Engine, servers: Servers) -> str:
    """Return how long single operations take by a saver, and through a service."""
    [ours] = (each for each in BACKENDS if each.name == OURS.name)
    size = _STATE_BYTES[-1]
    with ours.new(servers) as itself, through_gateway(engine) as through:
        found = latencies({"the saver itself": itself, "one service": through}, size, _STEPS)
    rows = [(name, *(each.p50_ms for each in times.values())) for name, times in found.items()]
    return report.table(["by", *(_latency_title(size, "", operation) for operation in OPERATIONS)], rows)


def run(engine: Engine) -> report.Section:
    """Measure all backends, and the gateway beside the saver."""
    with run_postgres(settings=()) as postgres:
        servers = Servers(engine, postgres)
        return report.Section(
            {"backends": table(measure(servers)), "gateway-times": gateway_times(engine, servers)}
        )
