"""A proxy in front of a DynamoDB engine, or of another server, that hurts it from a seed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tests.chaos.faults import Fault, Faults
from tests.chaos.http11 import Message, read_message, response

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
        self.counts: Counter[Fault] = Counter()
        """How many requests each fault befell."""
        self.attempts: Counter[str] = Counter()
        """How often each call was tried, by its id."""
        self._numbers = itertools.count()
        self._under_way = 0
        self._done = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

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

    async def end(self) -> None:
        """Wait until everything has taken effect and been answered."""
        async with self._done:
            await self._done.wait_for(lambda: self._under_way == 0)
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _answer(
        self, request: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Message | None:
        """Answer a request, or return None where its connection is to be dropped."""
        self.attempts[request.headers.get(_INVOCATION_HEADER, "")] += 1
        self._under_way += 1
        try:
            return await self._hurt(request, reader, writer)
        finally:
            self._under_way -= 1
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
            self.counts[fault] += 1
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


@contextlib.contextmanager
def proxied(endpoint_url: str, faults: Faults) -> Iterator[tuple[str, Proxy]]:
    """Run a proxy in front of a server, and give its address; at the end all that it took has taken effect."""
    url = urlsplit(endpoint_url)
    proxy = Proxy(url.hostname or "", url.port or 80, faults)
    started, ended = threading.Event(), threading.Event()
    addresses: list[str] = []

    async def run() -> None:
        # What a client or a server that was killed leaves is part of the trial.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        addresses.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        started.set()
        await asyncio.to_thread(ended.wait)
        server.close()
        await proxy.end()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait()
    try:
        yield addresses[0], proxy
    finally:
        ended.set()
        thread.join()
