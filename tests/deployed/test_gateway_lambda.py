"""The gateway on Lambda, run as Lambda runs it, and reached by an HTTP API."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from langgraph.checkpoint.dynamodb import CheckpointerInputError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.deployed.lambda_environment import Entrance, Environment
from tests.infra.stacks import GATEWAYS
from tests.support.checkpoints import noise, store, thread_config
from tools.engine import Engine

# What is tested here is the process, so one engine does.
pytestmark = pytest.mark.engines("dynamodb-local")
LIMIT = "LANGGRAPH_GATEWAY_LIMITS__BODY_BYTES_MAX"
TOKEN = "t" * 32
PRINCIPALS = {
    "bearer": {"agents": {"sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()], "tenant": "acme"}}
}
FUNCTION = GATEWAYS["Lambda"].properties("Gateway")
HANDLER: str = FUNCTION["Handler"]
VARIABLES: dict[str, str] = FUNCTION["Environment"]["Variables"]


@pytest.fixture(scope="module")
def way_in(engine: Engine, made_table: str) -> Iterator[tuple[Entrance, str]]:
    """Give an HTTP API in front of the function, with its address."""
    variables = {
        **engine.environment(),
        **VARIABLES,
        "LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME": made_table,
        "LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps(PRINCIPALS),
        "PYTHONPATH": str(Path.cwd()),
    }
    with Environment.running(HANDLER, variables) as function:
        entrance = Entrance(function)
        with entrance.serving() as address:
            yield entrance, address


def test_a_token_opens_the_threads_of_its_tenant(way_in: tuple[Entrance, str]) -> None:
    _, address = way_in
    assert httpx.get(f"{address}/about", timeout=60).status_code == 401
    with httpx.Client(base_url=address, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        assert client.get("/about").json()["limits"]["body_bytes_max"] == int(VARIABLES[LIMIT])
        for thread, status in (("acme/1", 200), ("other/1", 403)):
            asked = client.post("/checkpoints/get-tuple", json={"thread_id": thread})
            assert asked.status_code == status


def test_a_value_as_large_as_a_body_goes_in_and_comes_out(way_in: tuple[Entrance, str]) -> None:
    entrance, address = way_in
    value = noise(4_000_000)
    with HttpCheckpointSaver(address, auth=TOKEN) as writer:
        stored = store(writer, thread_config("acme/large"), "1", {"file": value})
        writer.put_writes(stored, [("file", value[::-1])], "task")
        larger = noise(int(VARIABLES[LIMIT]) + 1000, 1)
        with pytest.raises(CheckpointerInputError, match="body"):
            writer.put_writes(stored, [("file", larger)], "another task")
    with HttpCheckpointSaver(address, auth=TOKEN) as reader:
        found = reader.get_tuple(stored)
        listed = list(reader.list(thread_config("acme/large")))
    assert found is not None
    assert found.checkpoint["channel_values"]["file"] == value
    assert found.pending_writes == [("task", "file", value[::-1])]
    assert listed == [found]
    assert entrance.lost == []
