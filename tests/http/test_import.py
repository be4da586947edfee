"""What an agent needs for the client: no AWS library or variable, and httpx with the first request only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.http_stand_in import StandIn

PROJECT_FOLDER = Path(__file__).parents[2]
BASE = (
    "import langgraph.checkpoint.base, langgraph.checkpoint.serde.encrypted, langchain_core.runnables.config"
)
MADE = """
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
transport = GatewayTransport("{url}", auth="token")
"""
OF_AWS = {"boto3", "botocore", "aiobotocore", "aioboto3"}


def _loaded_by(program: str) -> set[str]:
    program += "\nimport sys; print(*sys.modules)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS")}
    done = subprocess.run(  # noqa: S603  # This interpreter, with a program of this file.
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT_FOLDER,
        env=environment,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_client_is_made_without_what_takes_long_to_load() -> None:
    loaded = _loaded_by(MADE.format(url="https://gateway.example")) - _loaded_by(BASE)
    assert not loaded & (OF_AWS | {"httpx", "anyio", "pydantic", "fastapi", "starlette", "yaml"})


@pytest.mark.parametrize(
    "send", ["transport.send(Call('put', {}))", "asyncio.run(transport.asend(Call('put', {})))"]
)
def test_a_request_loads_nothing_of_aws(gateway: StandIn, send: str) -> None:
    loaded = _loaded_by(MADE.format(url=gateway.address) + f"import asyncio; {send}")
    assert "httpx" in loaded
    assert not loaded & OF_AWS


@pytest.mark.parametrize("name", ["HttpStore", "HttpCache"])
def test_the_store_and_the_cache_load_nothing_of_aws(name: str) -> None:
    program = f"from langgraph.checkpoint.dynamodb.http import {name}; {name}('https://gateway.example')"
    assert not _loaded_by(program) & OF_AWS
