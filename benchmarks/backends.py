"""The backends that LangGraph's checkpoints can be kept in, beside each other: `make bench-backends`.

Everything in the table is measured in one run, on this machine: a latency is worth what it is beside the others of its
row. `--write` puts the table into docs/choosing.md, and what a checkpointer adds to an agent into docs/cost.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from langgraph.checkpoint.conformance.capabilities import BASE_CAPABILITIES, EXTENDED_CAPABILITIES

from benchmarks import overhead
from benchmarks.clock import Times
from benchmarks.contestants import OURS
from benchmarks.months import EXAMPLES, Usage, month_cell
from benchmarks.network import ROUND_TRIP_MS
from benchmarks.stores import BACKENDS, Backend, Servers, Store, distant_servers
from benchmarks.trials import (
    LARGE_BYTES,
    OPERATIONS,
    SENDS,
    FanOut,
    Large,
    capabilities,
    fan_out,
    large,
    latencies,
    usage,
)
from tools.engine import DYNAMODB_LOCAL, find
from tools.postgres import run_postgres
from tools.server import ServerUnavailableError

DOCS = Path(__file__).parents[1] / "docs"
CHOOSING, COST = DOCS / "choosing.md", DOCS / "cost.md"
COMMAND = "make bench-backends"

STATE_BYTES = (1_000, 360_000)
_TIMES = "\N{MULTIPLICATION SIGN}"
_STEPS = 20
_TURNS = tuple(sorted({example.turns for example in EXAMPLES}))
_NETWORKS = ("", f", network of {ROUND_TRIP_MS} ms")
_BASE = sorted(each.value for each in BASE_CAPABILITIES)
_MORE = sorted(each.value for each in EXTENDED_CAPABILITIES)
# What is generated stands between these in a document.
_MEASURED = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end of what was measured -->)", re.DOTALL)


@dataclass
class Measured:
    """What the trials of one backend showed."""

    capabilities: dict[str, str] = field(default_factory=dict)
    # By the size of the state and the network.
    times: dict[tuple[int, str], dict[str, Times]] = field(default_factory=dict)
    large: Large = field(default_factory=Large)
    fan_out: FanOut = field(default_factory=FanOut)
    # By the number of turns.
    usage: dict[int, Usage] = field(default_factory=dict)


def row_titles() -> list[str]:
    """The first column of the table."""
    return [
        "package",
        f"conformance: {', '.join(_BASE)}",
        f"conformance: {', '.join(_MORE)}",
        *(_latency_title(*each) for each in _latency_rows()),
        f"a state of {LARGE_BYTES / 1e6:.0f} MB: first put, get_tuple by another saver, ms",
        f"a step of {SENDS} `Send`s, CPU of the agent's process: invoke, ainvoke, ms",
        *(f"stored after {turns} turns of a conversation, KB" for turns in _TURNS),
        *(example.title for example in EXAMPLES),
        "limits",
        "needs",
    ]


def _latency_rows() -> Iterator[tuple[int, str, str]]:
    for network in _NETWORKS:
        for state_bytes in STATE_BYTES:
            for operation in OPERATIONS:
                yield state_bytes, network, operation


def _latency_title(state_bytes: int, network: str, operation: str) -> str:
    return f"{operation} of {state_bytes / 1000:.0f} KB{network}, p50 in ms"


def measure(
    servers: Servers, backends: Sequence[Backend] = BACKENDS, steps: int = _STEPS
) -> dict[str, Measured]:
    """Put all backends to all trials, each on a store of its own."""
    found = {each.name: Measured() for each in backends}
    for backend in backends:
        with backend.new(servers) as store:
            found[backend.name].capabilities = asyncio.run(capabilities(store))
        with backend.new(servers) as store:
            found[backend.name].large = large(store)
        with backend.new(servers) as store:
            found[backend.name].fan_out = asyncio.run(fan_out(store))
        with backend.new(servers) as store:
            found[backend.name].usage = usage(store, _TURNS)
        _progress(backend.name)
    remote = [each for each in backends if each.has_server]
    with distant_servers(servers) as far:
        for network, place, there in zip(_NETWORKS, (servers, far), (backends, remote), strict=True):
            for state_bytes in STATE_BYTES:
                with _stores(place, there) as stores:
                    for name, times in latencies(stores, state_bytes, steps).items():
                        found[name].times[state_bytes, network] = times
                _progress(f"latency{network}, {state_bytes:,} bytes")
    return found


def _progress(what: str) -> None:
    print(f"{datetime.datetime.now():%H:%M:%S} measured: {what}", file=sys.stderr, flush=True)


@contextmanager
def _stores(servers: Servers, backends: Sequence[Backend]) -> Iterator[dict[str, Store]]:
    with ExitStack() as stack:
        yield {each.name: stack.enter_context(each.new(servers)) for each in backends}


def table(measured: Mapping[str, Measured]) -> str:
    """Return the table in Markdown, one column for each backend."""
    columns = [_column(backend, measured) for backend in BACKENDS]
    lines = [["", *(backend.name for backend in BACKENDS)], ["---"] * (1 + len(BACKENDS))]
    lines += [list(row) for row in zip(row_titles(), *columns, strict=True)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _column(backend: Backend, measured: Mapping[str, Measured]) -> list[str]:
    own, ours = measured[backend.name], measured[OURS.name]
    return [
        f"{backend.package} {metadata.version(backend.package)}",
        _of(own.capabilities, _BASE),
        _of(own.capabilities, _MORE),
        *(_latency_cell(own, ours, *each) for each in _latency_rows()),
        "refused" if own.large.refusal else f"{own.large.put_ms:,.1f}, {own.large.get_ms:,.1f}",
        _fan_out_cell(own.fan_out, ours.fan_out),
        *(_bytes_cell(own.usage[turns], ours.usage[turns]) for turns in _TURNS),
        *(month_cell(backend.name, example, own.usage) for example in EXAMPLES),
        backend.limits,
        backend.needs,
    ]


def _of(found: Mapping[str, str], names: Sequence[str]) -> str:
    passed = [name for name in names if found[name] == "passed"]
    count = f"{len(passed)} of {len(names)}"
    return f"{count}: {', '.join(passed)}" if 0 < len(passed) < len(names) else count


def _latency_cell(own: Measured, ours: Measured, state_bytes: int, network: str, operation: str) -> str:
    times = own.times.get((state_bytes, network), {}).get(operation)
    if times is None:
        return "-"
    ratio = times.p50_ms / ours.times[state_bytes, network][operation].p50_ms
    return f"{times.p50_ms:,.1f}" + ("" if own is ours else f" ({ratio:.2f}{_TIMES})")


def _fan_out_cell(own: FanOut, ours: FanOut) -> str:
    pairs = ((own.invoke_ms, ours.invoke_ms), (own.ainvoke_ms, ours.ainvoke_ms))
    return ", ".join(
        f"{ms:,.0f}" + ("" if own is ours else f" ({ms / reference:.2f}{_TIMES})") for ms, reference in pairs
    )


def _bytes_cell(own: Usage, ours: Usage) -> str:
    ratio = own.stored.bytes / ours.stored.bytes
    return f"{own.stored.bytes / 1000:,.0f}" + ("" if own is ours else f" ({ratio:.1f}{_TIMES})")


def written(document: str, what: str) -> str:
    """Return a document with what was measured in its place."""
    if not _MEASURED.search(document):
        raise ValueError("The document has no place for what was measured.")
    note = f"By `{COMMAND}`, {datetime.date.today():%Y-%m-%d}:\n\n"
    return _MEASURED.sub(lambda _: note + what, document)


def _as_json(measured: Mapping[str, Measured]) -> dict[str, Any]:
    return {
        name: {
            "capabilities": each.capabilities,
            "large": asdict(each.large),
            "fan_out": asdict(each.fan_out),
            "usage": {turns: asdict(usage) for turns, usage in each.usage.items()},
            "seconds": {
                _latency_title(size, network, operation): times.seconds
                for (size, network), operations in each.times.items()
                for operation, times in operations.items()
            },
        }
        for name, each in measured.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.backends", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="put the tables into the documents")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write everything that was measured here"
    )
    options = parser.parse_args(arguments)
    # It reports the failures that a large state is known to cause, which the table shows.
    logging.getLogger("langgraph_checkpoint_aws").setLevel(logging.CRITICAL)
    try:
        with find(DYNAMODB_LOCAL).run() as engine, run_postgres(settings=()) as postgres:
            measured = measure(Servers(engine, postgres))
            added = overhead.measure(engine)
    except ServerUnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    tables = {CHOOSING: table(measured), COST: overhead.markdown(added)}
    for document, what in tables.items():
        print(what)
        if options.write:
            document.write_text(written(document.read_text(encoding="utf-8"), what), encoding="utf-8")
    for name, each in measured.items():
        if each.large.refusal:
            print(f"{name}: {LARGE_BYTES:,} bytes: {each.large.refusal}")
    if options.json:
        options.json.write_text(json.dumps(_as_json(measured), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
