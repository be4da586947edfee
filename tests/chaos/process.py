"""One process of an agent, which works until it is killed or until whoever started it has ended."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import threading
import traceback
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.chaos.access import open_saver
from tests.chaos.agent import Agent
from tests.chaos.graph_agent import GraphAgent
from tests.chaos.operation_log import OperationLog
from tests.chaos.proxy import SETTLED_PATH
from tests.chaos.recorder import Methods, Recorder

THREADS = 32


@dataclass(frozen=True)
class Duty:
    """What a process of an agent is told."""

    kind: str
    """Which methods of the saver it uses: `sync` or `async`, or those that a `graph` uses."""
    incarnation: int
    table_name: str
    operation_log: Path
    seed: int
    settle: bool
    """Whether to begin only after all that a killed predecessor has sent took effect."""
    endpoint_url: str
    environment: Mapping[str, str] = field(repr=False)


def serve(duty: Duty) -> None:
    """Do a duty; what goes wrong is in the operation log."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(duty.environment)
    operation_log = OperationLog(duty.operation_log)
    try:
        if duty.settle:
            address = f"{duty.endpoint_url}{SETTLED_PATH}{duty.kind}/"
            urllib.request.urlopen(address).close()  # noqa: S310 - it is the proxy's.
            operation_log.settle()
        asyncio.run(_work(duty, operation_log))
    except BaseException:
        operation_log.violate(traceback.format_exc())
        raise


async def _work(duty: Duty, operation_log: OperationLog) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    rng = random.Random(f"{duty.seed}/{duty.kind}/{duty.incarnation}")
    recorder = Recorder(operation_log, f"{duty.kind}/{duty.incarnation:04}", rng)
    await _worker(duty.kind, open_saver(duty.table_name), recorder, rng).work()


def _worker(kind: str, saver: DynamoDBSaver, recorder: Recorder, rng: random.Random) -> Agent | GraphAgent:
    if kind == "graph":
        return GraphAgent(saver, recorder, rng)
    return Agent(Methods(saver, blocking=kind == "sync"), recorder, kind, rng)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
