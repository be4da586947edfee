"""What the gateway adds in units and bytes: a conversation by the saver itself, and through one and four services."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

import uvicorn

from benchmarks.contestants import OURS, Bench, new_bench, run_workload
from benchmarks.conversation import conversation
from benchmarks.report import Bound, Section, table
from benchmarks.workloads import CHAT
from langgraph.checkpoint.dynamodb.cli.servers import listen
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, create_gateway
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from benchmarks.meter import Tally
    from tools.engine import Engine

_TURNS, _SPAN = 60, 10
_SERVICES = 4
_UNITS_TARGET = 1.15
_AFFINE_READS_MAX = 600
# Of a turn, beside one in which the conversation is under way.
_SENT_GROWTH_MAX = 1.15


class _Balancer:
    """Gives each request to a service at random, or by its thread, and counts what clients send.

    At random is the worst for what a service has in its cache.
    """

    def __init__(self, services: Sequence[ASGIApp], *, by_thread: bool) -> None:
        self.sent_bytes = 0
        self._services = services
        self._by_thread = by_thread
        self._random = Random(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted() -> Message:
            message = await receive()
            self.sent_bytes += len(message.get("body", b""))
            return message

        self.sent_bytes += sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])
        await self._chosen(scope)(scope, counted, send)

    def _chosen(self, scope: Scope) -> ASGIApp:
        thread = dict(scope["headers"]).get(b"x-thread") if self._by_thread else None
        if thread is None:
            return self._random.choice(self._services)
        return self._services[int(thread, 16) % len(self._services)]


@contextmanager
def serving(application: ASGIApp) -> Iterator[str]:
    """Serve an application on a thread for the duration of the context, and yield its address."""
    config = uvicorn.Config(
        application, port=0, interface="asgi3", log_level="error", lifespan="off", timeout_keep_alive=75
    )
    server = uvicorn.Server(config)
    with listen(config) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def service(bench: Bench) -> ASGIApp:
    """Return a service that remembers nothing yet, like a process of its own."""
    saver = bench.open()
    bench.meter.watch_async(saver.transport.async_client())
    return create_gateway(saver, authenticate=anybody_on_this_machine)


def run(engine: Engine) -> Section:
    """Run the conversation each way."""
    itself = run_workload(OURS, engine, CHAT).cost
    one, growth = _through(engine, 1)
    random, _ = _through(engine, _SERVICES)
    by_thread, _ = _through(engine, _SERVICES, by_thread=True)
    ways = {
        "the saver itself": itself,
        "one service": one,
        f"{_SERVICES} services, at random": random,
        f"{_SERVICES} services, by thread": by_thread,
    }
    rows = [(name, each.write_units, each.read_units) for name, each in ways.items()]
    return Section(
        {"gateway": table([f"{_TURNS} turns by", "write units", "read units"], rows)},
        [
            Bound(
                "write units through a service, beside the saver's",
                one.write_units / itself.write_units,
                _UNITS_TARGET,
                least=0.9,
            ),
            Bound(
                "read units through a service, beside the saver's",
                one.read_units / itself.read_units,
                _UNITS_TARGET,
                least=0.9,
            ),
            Bound(
                f"read units through {_SERVICES} services, by thread", by_thread.read_units, _AFFINE_READS_MAX
            ),
            Bound("bytes that a late turn sends, beside an early one", growth, _SENT_GROWTH_MAX),
        ],
    )


def _through(engine: Engine, count: int, *, by_thread: bool = False) -> tuple[Tally, float]:
    """Return what a conversation through services costs, and how many times as much its late turns send."""
    with new_bench(OURS, engine) as bench:
        balancer = _Balancer([service(bench) for _ in range(count)], by_thread=by_thread)
        with serving(balancer) as address, HttpCheckpointSaver(address) as saver:
            sent = [balancer.sent_bytes for _ in conversation(saver, "thread", _TURNS)]
        return bench.meter.total, (sent[-1] - sent[-1 - _SPAN]) / (sent[2 * _SPAN] - sent[_SPAN])
