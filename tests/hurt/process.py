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
from tests.hurt.agent import Agent
from tests.hurt.desk import Desk, Methods
from tests.hurt.graph_agent import GraphAgent
from tests.hurt.journal import Journal
from tests.hurt.proxy import SETTLED_PATH
from tests.hurt.reach import open_saver

THREADS = 32


@dataclass(frozen=True)
class Duty:
    """What a process of an agent is told."""

    kind: str
    """Which methods of the saver it uses: `sync` or `async`, or those that a `graph` uses."""
    incarnation: int
    table_name: str
    journal: Path
    seed: int
    settle: bool
    """Whether to begin only after all that a killed predecessor has sent took effect."""
    endpoint_url: str
    environment: Mapping[str, str] = field(repr=False)


def serve(duty: Duty) -> None:
    """Do a duty; what goes wrong is in the journal."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(duty.environment)
    journal = Journal(duty.journal)
    try:
        if duty.settle:
            address = f"{duty.endpoint_url}{SETTLED_PATH}{duty.kind}/"
            urllib.request.urlopen(address).close()  # noqa: S310 - it is the proxy's.
            journal.settle()
        asyncio.run(_work(duty, journal))
    except BaseException:
        journal.violate(traceback.format_exc())
        raise


async def _work(duty: Duty, journal: Journal) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    rng = random.Random(f"{duty.seed}/{duty.kind}/{duty.incarnation}")
    desk = Desk(journal, f"{duty.kind}/{duty.incarnation:04}", rng)
    await _worker(duty.kind, open_saver(duty.table_name), desk, rng).work()


def _worker(kind: str, saver: DynamoDBSaver, desk: Desk, rng: random.Random) -> Agent | GraphAgent:
    if kind == "graph":
        return GraphAgent(saver, desk, rng)
    return Agent(Methods(saver, blocking=kind == "sync"), desk, kind, rng)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
