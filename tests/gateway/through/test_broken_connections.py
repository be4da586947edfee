"""Connections that are cut before the effect and after it, and a service that is killed and started again."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.chaos.faults import Fault, Faults
from tests.chaos.proxy import proxied
from tests.support.checkpoints import Conversation, thread_config

if TYPE_CHECKING:
    from tools.engine import Engine

PROJECT_FOLDER = Path(__file__).parents[3]
SERVICE = """
import sys, uvicorn
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, create_gateway

table_name, endpoint_url, region_name, port = sys.argv[1:]
saver = DynamoDBSaver(table_name, endpoint_url=endpoint_url, region_name=region_name)
app = create_gateway(saver, authenticate=anybody_on_this_machine)
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
"""
CHECKPOINTS = 60
# The service is killed once so many checkpoints were acknowledged.
KILLED_AFTER = (15, 40)
CUTS = (Fault.DROPPED, Fault.DROPPED_AFTER)


class Scissors(Faults):
    """Cuts one connection in ten, before the effect or after it."""

    def of(self, number: int) -> tuple[Fault | None, random.Random]:
        """Decide on a request."""
        rng = random.Random(f"{self._seed}/{number}")
        return (rng.choice(CUTS) if rng.random() < 0.1 else None), rng


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def _kill(service: subprocess.Popen[bytes]) -> None:
    service.kill()
    service.wait()


@pytest.mark.search
@pytest.mark.engines("dynamodb-local")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this platform has no SIGKILL")
def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(
    engine: Engine, table_name: str, make_saver: Callable[..., DynamoDBSaver], tell: Callable[[str], None]
) -> None:
    port = _free_port()
    arguments = [table_name, engine.endpoint_url, engine.region_name, str(port)]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  # This interpreter, with a program of this file.
            [sys.executable, "-c", SERVICE, *arguments], cwd=PROJECT_FOLDER, env=engine.environment()
        )

    def replace() -> None:
        _kill(services[-1])
        services.append(start())

    acknowledged: list[tuple[str, list[str]]] = []
    with contextlib.ExitStack() as stack:
        services = [start()]
        stack.callback(lambda: _kill(services[-1]))
        url, proxy = stack.enter_context(proxied(f"http://127.0.0.1:{port}", Scissors("7")))
        saver = stack.enter_context(HttpCheckpointSaver(url, retry_seconds=120))
        conversation, log = Conversation(saver, "besieged"), list[str]()
        for number in range(CHECKPOINTS):
            if number in KILLED_AFTER:
                # While the checkpoint is put, or its writes are.
                replaced = threading.Timer(0.005, replace)
                replaced.start()
            log = [*log, f"line {number} " * 40]
            config = conversation.put(log=log)
            saver.put_writes(config, [("channel", number)], "task")
            acknowledged.append((config["configurable"]["checkpoint_id"], log))
        replaced.join()
    assert all(proxy.counts[each] for each in CUTS)
    tell(f"{proxy.counts.total()} connections cut, {len(KILLED_AFTER)} services killed")
    found = list(make_saver().list(thread_config("besieged")))
    assert [each.checkpoint["id"] for each in found] == [each for each, _ in reversed(acknowledged)]
    assert [each.checkpoint["channel_values"]["log"] for each in found] == [
        each for _, each in reversed(acknowledged)
    ]
    assert [each.pending_writes for each in found] == [
        [("task", "channel", number)] for number in reversed(range(CHECKPOINTS))
    ]
