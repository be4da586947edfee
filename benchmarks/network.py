"""A network of 5 ms to an engine on this machine.

A process of its own passes bytes between its clients and the engine and holds them back on the way. Whatever
is under way at a time is held back together, as on a real line: bandwidth is not limited, only distance is
added. Connections stay open as long as both ends want them.

On its own: `python -m benchmarks.network HOST PORT` prints the port that it listens on.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.engine import Engine

ROUND_TRIP_MS = 5
_HOST = "127.0.0.1"
# Whole milliseconds, because the timers of an event loop on epoll know no smaller ones.
_THERE_SECONDS = 0.002
_BACK_SECONDS = 0.003
_READ_BYTES = 256 * 1024


@contextmanager
def distant(engine: Engine) -> Iterator[Engine]:
    """Yield the same engine, each round trip to which takes so much longer."""
    address = urlsplit(engine.endpoint_url)
    with line_to(str(address.hostname), address.port or 80) as near_end:
        yield replace(engine, endpoint_url=f"http://{near_end}")


@contextmanager
def line_to(host: str, port: int) -> Iterator[str]:
    """Yield the host and port of a line to a server, each round trip over which takes so much longer."""
    command = (sys.executable, "-m", "benchmarks.network", host, str(port))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # Our own module.
        try:
            if process.stdout is None:
                raise AssertionError("The process was started with a pipe.")
            yield f"{_HOST}:{int(process.stdout.readline())}"
        finally:
            process.terminate()


async def _serve(host: str, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Both ends have TCP_NODELAY, as asyncio sets it.
        engine_reader, engine_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(
            _carry(reader, engine_writer, _THERE_SECONDS), _carry(engine_reader, writer, _BACK_SECONDS)
        )

    # As many clients at once as a benchmark may have.
    server = await asyncio.start_server(connected, _HOST, 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_seconds: float) -> None:
    """Write what is read, so much later, until the end is read."""
    loop = asyncio.get_running_loop()
    try:
        while data := await reader.read(_READ_BYTES):
            loop.call_later(delay_seconds, writer.write, data)
    except ConnectionError:
        pass
    finally:
        loop.call_later(delay_seconds, writer.close)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
