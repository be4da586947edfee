"""`setup`: the table for development, and what it says where that is not what is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from tests.cli.conftest import Run

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def name(client: DynamoDBClient) -> Iterator[str]:
    """Give the name of a table that is made by the test, and goes with it."""
    yield "set-up-by-command"
    client.delete_table(TableName="set-up-by-command")


def test_a_table_for_development_is_made(run: Run, name: str) -> None:
    assert run("threads", "--table", name).code == 4
    ended = run("setup", "--table", name)
    assert ended.out.startswith(f"table {name} is ready at http")
    again = run("setup", "--table", name, "--json").json
    assert again["table_name"] == name
    assert run("threads", "--table", name, "--json").json == []


def test_on_aws_it_says_how_to_deploy_and_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://dynamodb.eu-west-1.amazonaws.com"
    monkeypatch.setattr(CommandContext, "client", SimpleNamespace(meta=SimpleNamespace(endpoint_url=address)))
    run("setup", "--table", "agents").fails(7, "make deploy", "anyway?")
