"""Attacks by one tenant: the service's memory stays bounded, and another tenant is served almost as before."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.gateway.attacker import ATTACKS, MIB
from tests.infra.rendering import INFRA
from tests.support.checkpoints import Conversation, noise
from tests.support.gateway_service import gateway_process
from tools.engine import Engine

pytestmark = [
    pytest.mark.engines("dynamodb-local"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc, which tells a process's memory"),
]

RSS_BYTES_MAX = 600 * MIB
TIMES_MAX = 4
PUTS = 15
STATE_BYTES = 300_000
# Another process may have kept the machine busy for one of them.
ATTEMPTS = 3


class Service:
    """The service in a process of its own, as the image runs it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        """Take the process and its address."""
        self.process = process
        self.url = url
        self.port = url.rpartition(":")[2]

    def memory(self, name: str) -> int:
        """How many bytes of memory it has (VmRSS), or has had at most (VmHWM)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kibibytes,) = re.findall(rf"{name}:\s+(\d+) kB", status)
        return int(kibibytes) << 10

    def agent(self, tenant: str) -> HttpCheckpointSaver:
        """A tenant's agent."""
        return HttpCheckpointSaver(self.url, auth=f"{tenant}-writes", thread_prefix=f"{tenant}/")


@pytest.fixture
def service(engine: Engine, table_name: str) -> Iterator[Service]:
    """Start a service."""
    principals = {
        name: {"tenant": tenant, "rights": [right, "read"], "sha256": [sha256(name.encode()).hexdigest()]}
        for tenant in ("victim", "attacker")
        for right in ("read", "write")
        for name in (f"{tenant}-{right}s",)
    }
    allocation = dict(re.findall(r"(MALLOC_\w+)=(\d+)", (INFRA / "gateway" / "Dockerfile").read_text()))
    environment = {
        "AWS_ENDPOINT_URL_DYNAMODB": engine.endpoint_url,
        "LANGGRAPH_CHECKPOINTER_TYPE": "dynamodb",
        "LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME": table_name,
        "LANGGRAPH_CHECKPOINTER_CONFIG__REGION_NAME": engine.region_name,
        "LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps({"bearer": principals}),
    }
    resource: Any = import_module("resource")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As most systems start a program: with fewer files, and so connections, than some attacks have.
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, files[1]))
    with gateway_process("gateway", "--port", "0", env=os.environ | allocation | environment) as started:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        address, process, said = started
        # It would wait where nobody takes its log.
        threading.Thread(target=said.read, daemon=True).start()
        yield Service(process, address)


@contextmanager
def attacking(service: Service, kind: str) -> Iterator[None]:
    """Attack the service while the block runs."""
    words = (service.port, "attacker-reads", kind, "attacker/large")
    command = [sys.executable, "-m", "tests.gateway.attacker", *words]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - as above.
    try:
        assert attacker.stdout is not None
        for line in attacker.stdout:
            if line == "began\n":
                break
        yield
    finally:
        attacker.kill()
        answered = {int(each) for each in attacker.communicate()[0].split()}
    # The others are told that it takes too long: their turn comes late.
    assert answered <= {ATTACKS[kind].status, 503, 504}


def seconds_of_puts(agent: HttpCheckpointSaver, seed: int) -> float:
    """The median of how long puts of new states take."""
    talk, took = Conversation(agent, "1"), list[float]()
    for number in range(PUTS):
        state = noise(STATE_BYTES, 1000 * seed + number)
        began = time.perf_counter()
        talk.put(state=state)
        took.append(time.perf_counter() - began)
    return median(took)


# What the others would show first.
FEW = ("63 MiB, forbidden", "reads as they are", "slow senders")


@pytest.mark.parametrize(
    "kind", [each if each in FEW else pytest.param(each, marks=pytest.mark.search) for each in ATTACKS]
)
def test_an_attack_leaves_memory_and_another_tenants_time_bounded(
    kind: str, service: Service, tell: Callable[[str], None]
) -> None:
    with service.agent("attacker") as attacker, service.agent("victim") as victim:
        _store_large(attacker, kind)
        seconds_of_puts(victim, 0)
        times = list[float]()
        for attempt in range(1, 1 + ATTEMPTS):
            alone = seconds_of_puts(victim, 2 * attempt)
            with attacking(service, kind):
                attacked = seconds_of_puts(victim, 2 * attempt + 1)
            times.append(attacked / alone)
            if times[-1] <= TIMES_MAX:
                break
    peak, after = service.memory("VmHWM"), service.memory("VmRSS")
    tell(f"{kind}: {alone:.3f} s, {times} times; {peak / MIB:.0f} MiB at most, {after / MIB:.0f} MiB after")
    assert peak <= RSS_BYTES_MAX
    assert min(times) <= TIMES_MAX


def _store_large(agent: HttpCheckpointSaver, kind: str) -> None:
    """Store what the attacker reads."""
    if "read" not in kind:
        return
    size = 24 * MIB
    Conversation(agent, "large").put(large=noise(size) if kind == "reads" else bytes(size))
