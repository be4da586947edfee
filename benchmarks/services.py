"""The gateway as it is deployed: processes of their own, in front of one table, that say what they are charged.

On its own: `python -m benchmarks.services TABLE` serves on a port that it prints, until standard input ends. Whoever
asks says in a header which team they are of. `/spent` tells the units of this process, and how much memory it took.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.request import urlopen

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from benchmarks.meter import Meter, Tally, total
from benchmarks.resident import peak_bytes
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli.servers import listen
from langgraph.checkpoint.dynamodb.gateway import Principal, create_gateway
from langgraph.checkpoint.dynamodb.gateway.serving import RIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.engine import Engine

TEAM_HEADER = "x-team"
_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Spent:
    """What services were charged, the most memory that one of them took, in bytes, and their processors' time."""

    tally: Tally
    peak_bytes: int
    cpu_seconds: float


@dataclass(frozen=True)
class Fleet:
    """Services that run."""

    addresses: Sequence[str]

    def spent(self) -> Spent:
        """Return what they were charged so far."""
        found = [_asked(address) for address in self.addresses]
        return Spent(
            total(each.tally for each in found),
            max(each.peak_bytes for each in found),
            sum(each.cpu_seconds for each in found),
        )


def _asked(address: str) -> Spent:
    with urlopen(f"{address}/spent") as answer:  # noqa: S310  # An address of this machine.
        found = json.load(answer)
    return Spent(Tally(**found["tally"]), found["peak_bytes"], found["cpu_seconds"])


@contextmanager
def fleet(engine: Engine, table_name: str, count: int) -> Iterator[Fleet]:
    """Run so many services for the duration of the context."""
    command = (sys.executable, "-m", "benchmarks.services", table_name)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(  # noqa: S603  # Our own module.
                    command,
                    env=engine.environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(count)
        ]
        for process in processes:
            stack.callback(process.communicate)
        yield Fleet([_address(process) for process in processes])


def _address(process: subprocess.Popen[str]) -> str:
    if process.stdout is None:
        raise AssertionError("The process was started with a pipe.")
    return f"http://{_HOST}:{int(process.stdout.readline())}"


def _serve(table_name: str) -> None:
    meter = Meter()
    saver = DynamoDBSaver(table_name)
    meter.watch_async(saver.transport.async_client())
    # Connections stay open as long as the command keeps them.
    config = uvicorn.Config(_application(saver, meter), port=0, log_level="error", timeout_keep_alive=75)
    server = uvicorn.Server(config)
    with closing(listen(config)) as listener:
        print(listener.getsockname()[1], flush=True)
        threading.Thread(target=_end_with_input, args=(server,), daemon=True).start()
        asyncio.run(server.serve([listener]))


def _application(saver: DynamoDBSaver, meter: Meter) -> Starlette:
    async def team(request: HTTPConnection) -> Principal:
        return Principal(request.headers.get(TEAM_HEADER, "one"), rights=RIGHTS)

    async def spent(_request: Request) -> JSONResponse:
        return JSONResponse(asdict(Spent(meter.total, peak_bytes(), time.process_time())))

    gateway = create_gateway(saver, authenticate=team)
    return Starlette(routes=[Route("/spent", spent), Mount("/", gateway)])


def _end_with_input(server: uvicorn.Server) -> None:
    os.read(sys.stdin.fileno(), 1)
    server.should_exit = True


if __name__ == "__main__":
    _serve(sys.argv[1])
