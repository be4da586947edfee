"""The gateway's container: its command, in a process that has the environment of the task definition."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from langgraph.checkpoint.dynamodb.cli import servers
from tests.infra.rendering import INFRA
from tests.infra.stacks import GATEWAYS
from tools.engine import Engine

# What is tested here is the process, so one engine does.
pytestmark = pytest.mark.engines("dynamodb-local")
IMAGE = (INFRA / "gateway" / "Dockerfile").read_text(encoding="utf-8")
[CONTAINER] = GATEWAYS["ECS"].properties("TaskDefinition")["ContainerDefinitions"]
# What the package's script does, which is not installed for every test.
SCRIPT = "from langgraph.checkpoint.dynamodb.cli import main; main()"
TOKENS = ["a" * 32, "b" * 32]
HASHES = [hashlib.sha256(token.encode()).hexdigest() for token in TOKENS]
# What the two secrets hold, by the names that the task definition gives them.
SECRETS = {
    "LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps({"bearer": {"agents": {"sha256": HASHES, "tenant": "acme"}}}),
}


@pytest.fixture
def task(engine: Engine, table_name: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Give a task, on a port of this machine."""
    written = re.search(r"^CMD (\[.*\])$", IMAGE, re.MULTILINE)
    assert written is not None
    program, *words = json.loads(written[1])
    assert program == "langgraph-dynamodb"
    assert words[words.index("--port") + 1] == str(CONTAINER["PortMappings"][0]["ContainerPort"])
    words[words.index("--host") + 1], words[words.index("--port") + 1] = "127.0.0.1", "0"
    assert {each["Name"] for each in CONTAINER["Secrets"]} == SECRETS.keys()
    variables = {each["Name"]: each["Value"] for each in CONTAINER["Environment"]}
    variables["LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME"] = table_name
    with subprocess.Popen(  # noqa: S603  # Our own program, in the interpreter of the tests.
        [sys.executable, "-c", SCRIPT, *words],
        env={**engine.environment(), **variables, **SECRETS, "PYTHONPATH": os.getcwd()},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            serving = re.compile(rf"^serving table {table_name} at http://127\.0\.0\.1:(\d+)$")
            said = next(filter(None, map(serving.match, process.stderr)))
            yield process, int(said[1])
        finally:
            process.kill()


def ask(port: int, path: str, token: str | None = None) -> int:
    """Send a request; the status of the answer."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        return connection.getresponse().status


def test_a_task_serves_whom_its_secret_names_until_it_is_told_to_end(
    task: tuple[subprocess.Popen[str], int],
) -> None:
    process, port = task
    assert ask(port, "/health") == 200
    # On a busy machine the first request makes a client for longer than `/ready` waits.
    until = time.monotonic() + 60
    while ask(port, "/ready") != 200:
        assert time.monotonic() < until
    assert [ask(port, "/about", token) for token in (None, "c" * 32, *TOKENS)] == [401, 401, 200, 200]
    process.terminate()
    process.wait(timeout=60)
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/health")


def test_what_is_under_way_is_answered_before_a_task_is_killed() -> None:
    assert CONTAINER["StopTimeout"] > servers._GRACE_SECONDS  # noqa: SLF001


def test_the_load_balancer_closes_connections_before_a_task_does() -> None:
    """Otherwise it would send a request just as the task closes, and answer by 502."""
    attributes = {
        each["Key"]: each["Value"]
        for each in GATEWAYS["ECS"].properties("LoadBalancer")["LoadBalancerAttributes"]
    }
    assert int(attributes["idle_timeout.timeout_seconds"]) < servers._KEEP_ALIVE_SECONDS  # noqa: SLF001
