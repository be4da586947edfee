"""A proxy in front of a DynamoDB engine that hurts it from a seed: `python -m tests.chaos.proxy ENDPOINT SEED`.

It prints the address at which it answers, works until its standard input ends, lets the requests that are under way
take effect, and prints what it has counted as JSON. `GET /settled/NAME` answers once no request of the operations
whose names begin so is under way.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import sys
from collections import Counter, defaultdict
from typing import Any
from urllib.parse import urlsplit

from tests.chaos.faults import RATES, Fault, Faults
from tests.chaos.http11 import Message, read_message, response

# Which operation of an agent a request belongs to; the agents say it in this header.
OPERATION_HEADER = "x-chaos-operation"
SETTLED_PATH = "/settled/"

_INVOCATION_HEADER = "amz-sdk-invocation-id"
_TARGET_HEADER = "x-amz-target"
_THROTTLINGS = ("ProvisionedThroughputExceededException", "ThrottlingException")
_ERROR_TYPE = "com.amazonaws.dynamodb.v20120810#"
# Most delays are a few milliseconds. All are far below the agents' read time-out: no client gives up on a request
# that takes effect later, unless it is killed.
_DELAY_SECONDS = (0.002, 0.05)
_LONG_DELAY_SECONDS = (0.2, 1.0)
_LONG_DELAY_RATE = 0.1


class Proxy:
    """Passes requests on to an engine, and does to them what the faults say."""

    def __init__(self, host: str, port: int, faults: Faults) -> None:
        """Take the engine's address and the faults."""
        self._upstream = host, port
        self._faults = faults
        self._numbers = itertools.count()
        self._counts: Counter[Fault] = Counter()
        self._attempts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._under_way: Counter[str] = Counter()
        self._done = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

    def report(self) -> dict[str, Any]:
        """Say how many requests came, what happened to them, and for each operation how often each call was tried."""
        return {
            "requests": next(self._numbers),
            "faults": {fault.value: self._counts[fault] for fault in Fault},
            "attempts": {name: sorted(calls.values()) for name, calls in self._attempts.items()},
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side or the faults end it."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        engine = await asyncio.open_connection(*self._upstream)
        try:
            # A client that was killed cannot be answered any more.
            with contextlib.suppress(ConnectionError):
                while (request := await read_message(reader)) is not None:
                    answer = await self._answer(request, *engine)
                    if answer is None:
                        break
                    writer.write(answer.encoded())
                    await writer.drain()
        finally:
            writer.close()
            engine[1].close()

    async def settle(self, name: str = "") -> None:
        """Wait until no request of these operations is under way."""
        async with self._done:
            await self._done.wait_for(
                lambda: (
                    not any(
                        count for operation, count in self._under_way.items() if operation.startswith(name)
                    )
                )
            )

    async def end(self) -> None:
        """Wait until everything has taken effect and been answered."""
        await self.settle()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _answer(
        self, request: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Message | None:
        """Answer a request, or return None where its connection is to be dropped."""
        path = request.start.split()[1]
        if path.startswith(SETTLED_PATH):
            await self.settle(path.removeprefix(SETTLED_PATH))
            return response(200, {})
        operation = request.headers.get(OPERATION_HEADER, "")
        self._attempts[operation][request.headers.get(_INVOCATION_HEADER, "")] += 1
        self._under_way[operation] += 1
        try:
            return await self._hurt(request, reader, writer)
        finally:
            self._under_way[operation] -= 1
            async with self._done:
                self._done.notify_all()

    async def _hurt(
        self, request: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Message | None:
        fault, rng = self._faults.of(next(self._numbers))
        held: dict[str, Any] = {}
        if fault is Fault.UNPROCESSED:
            request, held = _hold_back(request, rng)
            fault = fault if held else None
        if fault is not None:
            self._counts[fault] += 1
        if fault is Fault.THROTTLED:
            return _error(400, rng.choice(_THROTTLINGS), "The proxy throttled this request.")
        if fault is Fault.FAILED:
            return _error(500, "InternalServerError", "The proxy failed this request.")
        if fault is Fault.DROPPED:
            return None
        if fault is Fault.SLOW:
            long = rng.random() < _LONG_DELAY_RATE
            await asyncio.sleep(rng.uniform(*(_LONG_DELAY_SECONDS if long else _DELAY_SECONDS)))
        writer.write(request.encoded())
        await writer.drain()
        answer = await read_message(reader)
        if fault is Fault.FAILED_AFTER:
            return _error(500, "InternalServerError", "The proxy failed this request after it took effect.")
        if answer is None or fault is Fault.DROPPED_AFTER:
            return None
        return _give_back(answer, held) if held else answer


def _error(status: int, code: str, message: str) -> Message:
    return response(status, {"__type": _ERROR_TYPE + code, "message": message})


def _hold_back(request: Message, rng: random.Random) -> tuple[Message, dict[str, Any]]:
    """Take some of a batch's items out of it, never all; return what was taken as a response names it."""
    name = request.headers.get(_TARGET_HEADER, "").rpartition(".")[2]
    if name not in {"BatchWriteItem", "BatchGetItem"}:
        return request, {}
    content = request.json()
    ((table, wanted),) = content["RequestItems"].items()
    entries = wanted if name == "BatchWriteItem" else wanted["Keys"]
    if len(entries) < 2:
        return request, {}
    rng.shuffle(entries)
    passed = rng.randrange(1, len(entries))
    kept, left = entries[:passed], entries[passed:]
    if name == "BatchWriteItem":
        content["RequestItems"] = {table: kept}
        return request.with_json(content), {"UnprocessedItems": {table: left}}
    content["RequestItems"] = {table: wanted | {"Keys": kept}}
    return request.with_json(content), {"UnprocessedKeys": {table: wanted | {"Keys": left}}}


def _give_back(answer: Message, held: dict[str, Any]) -> Message:
    """Name what was held back in the engine's answer, unless that says that nothing was done."""
    content = answer.json()
    for name, tables in held.items():
        if content.get(name) == {}:
            content[name] = tables
    return answer.with_json(content)


async def _run(endpoint: str, faults: Faults) -> None:
    url = urlsplit(endpoint)
    proxy = Proxy(url.hostname or "", url.port or 80, faults)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201 - for the caller.
    await asyncio.to_thread(sys.stdin.read)
    server.close()
    await proxy.end()
    print(json.dumps(proxy.report()))  # noqa: T201 - for the caller.


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.proxy")
    parser.add_argument("endpoint")
    parser.add_argument("seed")
    parser.add_argument(
        "--rates", type=json.loads, default={}, help="other rates, as JSON: by the faults' names"
    )
    options = parser.parse_args()
    rates = {**RATES, **{Fault[name]: rate for name, rate in options.rates.items()}}
    asyncio.run(_run(options.endpoint, Faults(options.seed, rates)))


if __name__ == "__main__":
    main()
