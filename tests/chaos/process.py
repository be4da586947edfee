"""One process of an agent, which works until it is killed or until whoever started it has ended."""

import asyncio
import multiprocessing
import os
import random
import threading
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from botocore.config import Config

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.chaos.graph_agent import GraphAgent
from tests.chaos.operation_log import OperationLog

THREADS = 32
ATTEMPTS_MAX = 4


@dataclass(frozen=True)
class Duty:
    """What a process of an agent is told."""

    agent: str
    incarnation: int
    table_name: str
    operation_log: Path
    seed: int
    environment: Mapping[str, str] = field(repr=False)
    """Where the table is, among other things."""


def serve(duty: Duty) -> None:
    """Do a duty; what goes wrong is in the operation log."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(duty.environment)
    operation_log = OperationLog(duty.operation_log)
    try:
        asyncio.run(_work(duty, operation_log))
    except BaseException:
        operation_log.violate(traceback.format_exc())
        raise


async def _work(duty: Duty, operation_log: OperationLog) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    # It retries, but not for long.
    config = Config(
        connect_timeout=5,
        read_timeout=30,
        tcp_keepalive=True,
        max_pool_connections=32,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS_MAX},
    )
    saver = DynamoDBSaver(duty.table_name, client_config=config)
    rng = random.Random(f"{duty.seed}/{duty.agent}/{duty.incarnation}")
    await GraphAgent(duty.agent, saver, operation_log, rng).work()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
