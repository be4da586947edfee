"""What an agent needs for the client: no AWS library or variable."""

from __future__ import annotations

import pytest

from tests.support.http_stand_in import StandIn
from tests.support.loaded import loaded_by

BASE = (
    "import langgraph.checkpoint.base, langgraph.checkpoint.serde.encrypted, langchain_core.runnables.config"
)
MADE = "from langgraph.checkpoint.dynamodb.http import {name}; made = {name}('{url}', auth='token')"
OF_AWS = {"boto3", "botocore", "aiobotocore", "aioboto3"}


@pytest.mark.parametrize("name", ["HttpCheckpointSaver", "HttpStore", "HttpCache"])
def test_a_client_is_made_without_what_takes_long_to_load(name: str) -> None:
    loaded = loaded_by(MADE.format(name=name, url="https://gateway.example")) - loaded_by(BASE)
    assert not loaded & (OF_AWS | {"fastapi", "starlette", "yaml"})


@pytest.mark.parametrize("send", ["made.warm_up()", "import asyncio; asyncio.run(made.awarm_up())"])
def test_a_request_loads_nothing_of_aws(gateway: StandIn, send: str) -> None:
    loaded = loaded_by(f"{MADE.format(name='HttpCheckpointSaver', url=gateway.address)}; {send}")
    assert "httpx" in loaded
    assert not loaded & OF_AWS
