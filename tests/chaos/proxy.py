"""A proxy in front of a DynamoDB engine, or of another server, that hurts it from a seed."""

import asyncio
import contextlib
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from aiohttp import ClientError, ClientSession, web

from tests.chaos.faults import Fault, Faults

_INVOCATION_HEADER = "amz-sdk-invocation-id"
_TARGET_HEADER = "x-amz-target"
# What belongs to a connection or to the very bytes of a body.
_NOT_PASSED_ON = frozenset({"connection", "content-length", "transfer-encoding", "x-amz-crc32"})
_BODY_BYTES_MAX = 1 << 26
_THROTTLINGS = ("ProvisionedThroughputExceededException", "ThrottlingException")
_ERROR_TYPE = "com.amazonaws.dynamodb.v20120810#"
# Most delays are a few milliseconds. All are far below the agents' read time-out: no client gives up on a request
# that takes effect later, unless it is killed.
_DELAY_SECONDS = (0.002, 0.05)
_LONG_DELAY_SECONDS = (0.2, 1.0)
_LONG_DELAY_RATE = 0.1


class Proxy:
    """Passes requests on to a server, and does to them what the faults say."""

    def __init__(self, endpoint_url: str, faults: Faults) -> None:
        """Take the server's address and the faults."""
        self._endpoint_url = endpoint_url
        self._faults = faults
        self.counts: Counter[Fault] = Counter()
        """How many requests each fault befell."""
        self.attempts: Counter[str] = Counter()
        """How often each call was tried, by its id."""
        self._numbers = itertools.count()

    async def run(self, addresses: list[str], started: threading.Event, ended: threading.Event) -> None:
        """Serve until it ends, and then until everything has taken effect."""
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, auto_decompress=False)
        async with ClientSession(auto_decompress=False) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            addresses.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
            started.set()
            await asyncio.to_thread(ended.wait)
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.attempts[request.headers.get(_INVOCATION_HEADER, "")] += 1
        body = await request.read()
        fault, rng = self._faults.of(next(self._numbers))
        held: dict[str, Any] = {}
        if fault is Fault.UNPROCESSED:
            body, held = _hold_back(request, body, rng)
            fault = fault if held else None
        if fault is not None:
            self.counts[fault] += 1
        if fault is Fault.THROTTLED:
            return _error(400, rng.choice(_THROTTLINGS), "The proxy throttled this request.")
        if fault is Fault.FAILED:
            return _error(500, "InternalServerError", "The proxy failed this request.")
        if fault is Fault.DROPPED:
            return _dropped(request)
        if fault is Fault.SLOW:
            long = rng.random() < _LONG_DELAY_RATE
            await asyncio.sleep(rng.uniform(*(_LONG_DELAY_SECONDS if long else _DELAY_SECONDS)))
        try:
            answer = await self._pass_on(request, body)
        except ClientError:
            # The server was killed.
            return _dropped(request)
        if fault is Fault.FAILED_AFTER:
            return _error(500, "InternalServerError", "The proxy failed this request after it took effect.")
        if fault is Fault.DROPPED_AFTER:
            return _dropped(request)
        return _give_back(answer, held) if held else answer

    async def _pass_on(self, request: web.Request, body: bytes) -> web.Response:
        url = f"{self._endpoint_url.rstrip('/')}{request.path_qs}"
        headers = _passed_on(request.headers)
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            content = await answer.read()
            return web.Response(status=answer.status, body=content, headers=_passed_on(answer.headers))


def _passed_on(headers: Any) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON]


def _dropped(request: web.Request) -> web.Response:
    """Drop the connection, on which the response is then not sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _error(status: int, code: str, message: str) -> web.Response:
    content = {"__type": _ERROR_TYPE + code, "message": message}
    return web.json_response(content, status=status, content_type="application/x-amz-json-1.0")


def _hold_back(request: web.Request, body: bytes, rng: random.Random) -> tuple[bytes, dict[str, Any]]:
    """Take some of a batch's items out of it, never all; return what was taken as a response names it."""
    name = request.headers.get(_TARGET_HEADER, "").rpartition(".")[2]
    if name not in {"BatchWriteItem", "BatchGetItem"}:
        return body, {}
    content = json.loads(body)
    ((table, wanted),) = content["RequestItems"].items()
    entries = wanted if name == "BatchWriteItem" else wanted["Keys"]
    if len(entries) < 2:
        return body, {}
    rng.shuffle(entries)
    passed = rng.randrange(1, len(entries))
    kept, left = entries[:passed], entries[passed:]
    if name == "BatchWriteItem":
        content["RequestItems"] = {table: kept}
        return json.dumps(content).encode(), {"UnprocessedItems": {table: left}}
    content["RequestItems"] = {table: wanted | {"Keys": kept}}
    return json.dumps(content).encode(), {"UnprocessedKeys": {table: wanted | {"Keys": left}}}


def _give_back(answer: web.Response, held: dict[str, Any]) -> web.Response:
    """Name what was held back in the engine's answer, unless that says that nothing was done."""
    content = json.loads(answer.text or "")
    for name, tables in held.items():
        if content.get(name) == {}:
            content[name] = tables
    answer.body = json.dumps(content).encode()
    return answer


@contextlib.contextmanager
def proxied(endpoint_url: str, faults: Faults) -> Iterator[tuple[str, Proxy]]:
    """Run a proxy in front of a server, and give its address; at the end all that it took has taken effect."""
    proxy = Proxy(endpoint_url, faults)
    started, ended, addresses = threading.Event(), threading.Event(), list[str]()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.run(addresses, started, ended)))
    thread.start()
    started.wait()
    try:
        yield addresses[0], proxy
    finally:
        ended.set()
        thread.join()
