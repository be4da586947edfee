"""An attacker: a process of its own that sends a service the same request over and over, on many connections at once.

`python -m tests.gateway.attacker PORT TOKEN KIND THREAD`; its input ends it. It reads answers unless the kind says no.
"""

import asyncio
import gzip
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb._format.compression import zstd

MIB = 1 << 20
CONNECTIONS = 48
# A bound, so that an attack ends if whoever began it has not ended it.
REQUESTS_MAX = 2000
SLOW_CONNECTIONS = 3000


@dataclass(frozen=True)
class Attack:
    """What is sent: the endpoint, the body, how it is answered and encoded, and how many connections send it."""

    endpoint: str
    body: Callable[[str], bytes]
    status: int | None
    """The status of the answers, if they are waited for."""
    encoding: str = "gzip"
    accepted: str = "gzip"
    connections: int = CONNECTIONS
    reads: bool = True
    sent: float = 1
    """Which part of the body is sent."""


def _named(thread_id: str) -> bytes:
    return json.dumps({"thread_id": thread_id}).encode()


def _filtered(text: str) -> bytes:
    """A list of somebody else's thread, which is refused once it is decoded."""
    return f'{{"thread_id":"victim/1","filter":{{"a":{text}}}}}'.encode()


def _lying(content: bytes) -> bytes:
    """A body that says that it is small."""
    return gzip.compress(content)[:-4] + (10).to_bytes(4, "little")


ATTACKS = {
    "66 MiB, too large": Attack("list", lambda _: gzip.compress(_filtered(f'"{"a" * (66 * MIB)}"')), 413),
    "63 MiB, forbidden": Attack("list", lambda _: gzip.compress(_filtered(f'"{"a" * (63 * MIB)}"')), 403),
    "63 MiB in 2 KB": Attack(
        "list", lambda _: zstd.compress(_filtered(f'"{"a" * (63 * MIB)}"')), 403, "zstd"
    ),
    "a gzip that lies": Attack("list", lambda _: _lying(_filtered(f'"{"a" * (63 * MIB)}"')), 400),
    "escapes": Attack("list", lambda _: gzip.compress(_filtered('"' + r"\u0041" * 990_000 + '"')), 403),
    "brackets": Attack("list", lambda _: gzip.compress(_filtered("[" + "[]," * 330_000 + "0]")), 413),
    "lists": Attack("list", lambda _: gzip.compress(_filtered("[" + "[]," * 49_000 + "0]")), 403),
    "reads": Attack("get-tuple", _named, 200, ""),
    "reads as they are": Attack("get-tuple", _named, 200, "", accepted="identity"),
    "slow readers": Attack("get-tuple", _named, None, "", accepted="identity", reads=False),
    "slow senders": Attack("get-tuple", _named, None, "", connections=SLOW_CONNECTIONS, sent=0.5),
    "slow senders of much": Attack("list", lambda _: os.urandom(MIB), None, "", connections=400, sent=0.9),
}


async def _attack(attack: Attack, head: bytes, body: bytes, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for _ in range(REQUESTS_MAX):
            writer.write(head + body[: round(len(body) * attack.sent)])
            await writer.drain()
            if attack.sent < 1 or not attack.reads:
                await asyncio.sleep(600)
            status, *headers = (await reader.readuntil(b"\r\n\r\n")).lower().splitlines()
            length = next(int(each[15:]) for each in headers if each.startswith(b"content-length:"))
            while length:
                length -= len(await reader.read(min(length, 1 << 16)))
            print(status[9:12].decode(), flush=True)  # noqa: T201 - this is its output.
    finally:
        writer.close()


async def _main(port: int, token: str, kind: str, thread_id: str) -> None:
    # It shares the machine with the service, as an attacker does not, so it only gets what nobody else wants of it.
    os.nice(19)
    attack = ATTACKS[kind]
    body = attack.body(thread_id)
    headers = {
        "Host": "localhost",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept-Encoding": attack.accepted,
        "Content-Length": len(body),
    } | ({"Content-Encoding": attack.encoding} if attack.encoding else {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST /checkpoints/{attack.endpoint} HTTP/1.1\r\n{lines}\r\n".encode()
    sends = [asyncio.ensure_future(_attack(attack, head, body, port)) for _ in range(attack.connections)]
    await asyncio.sleep(1)
    print("began", flush=True)  # noqa: T201 - this is its output.
    with suppress(KeyboardInterrupt):
        await asyncio.gather(*sends, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), *sys.argv[2:]))
