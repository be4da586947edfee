"""The gateway's container: its command, in a process that has the environment of the task definition."""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb.cli import servers
from tests.infra.rendering import INFRA
from tests.infra.stacks import GATEWAYS
from tests.support.gateway_service import gateway_process
from tools.engine import Engine

# What is tested here is the process, so one engine does.
pytestmark = pytest.mark.engines("dynamodb-local")
IMAGE = (INFRA / "gateway" / "Dockerfile").read_text(encoding="utf-8")
[CONTAINER] = GATEWAYS["ECS"].properties("TaskDefinition")["ContainerDefinitions"]
TOKENS = ["a" * 32, "b" * 32]
HASHES = [hashlib.sha256(token.encode()).hexdigest() for token in TOKENS]
# What the secret holds, by the name that the task definition gives it.
PRINCIPALS = {"bearer": {"agents": {"sha256": HASHES, "tenant": "acme"}}}
SECRETS = {"LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps(PRINCIPALS)}


@pytest.fixture
def task(engine: Engine, table_name: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Give a task with its address, on a port of this machine."""
    written: Any = re.search(r"^CMD (\[.*\])$", IMAGE, re.MULTILINE)
    program, *words = json.loads(written[1])
    assert program == "langgraph-dynamodb"
    assert words[words.index("--port") + 1] == str(CONTAINER["PortMappings"][0]["ContainerPort"])
    words[words.index("--host") + 1], words[words.index("--port") + 1] = "127.0.0.1", "0"
    assert {each["Name"] for each in CONTAINER["Secrets"]} == SECRETS.keys()
    variables = {each["Name"]: each["Value"] for each in CONTAINER["Environment"]}
    variables["LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME"] = table_name
    env = {**engine.environment(), **variables, **SECRETS}
    with gateway_process(*words, env=env) as (address, process, _):
        yield address, process


def ask(url: str, token: str | None = None) -> int:
    """Send a request; the status of the response."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.get(url, headers=headers, timeout=60).status_code


def test_a_task_serves_whom_its_secret_names_until_it_is_told_to_end(
    task: tuple[str, subprocess.Popen[str]],
) -> None:
    address, process = task
    assert ask(f"{address}/health") == 200
    assert [ask(f"{address}/about", token) for token in (None, "c" * 32, *TOKENS)] == [401, 401, 200, 200]
    process.terminate()
    process.wait(timeout=60)
    with pytest.raises(httpx.ConnectError):
        ask(f"{address}/health")


def test_what_is_under_way_is_answered_before_a_task_is_killed() -> None:
    assert CONTAINER["StopTimeout"] > servers._GRACE_SECONDS  # noqa: SLF001


def test_the_load_balancer_closes_connections_before_a_task_does() -> None:
    """Otherwise it would send a request just as the task closes, and answer by 502."""
    attributes = {
        each["Key"]: each["Value"]
        for each in GATEWAYS["ECS"].properties("LoadBalancer")["LoadBalancerAttributes"]
    }
    assert int(attributes["idle_timeout.timeout_seconds"]) < servers._KEEP_ALIVE_SECONDS  # noqa: SLF001
