"""A saver whose every request is seen, and one that nothing but the test closes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine


@pytest.fixture
def own_client(engine: Engine) -> Iterator[DynamoDBClient]:
    """Give a client that is the saver's alone."""
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as dynamodb:
        yield dynamodb


@pytest.fixture
def traffic(own_client: DynamoDBClient) -> Traffic:
    """Give what the saver of the test sends."""
    return Traffic(own_client.meta.events)


@pytest.fixture
def saver(own_client: DynamoDBClient, table_name: str, traffic: Traffic) -> Iterator[DynamoDBSaver]:
    """Give a saver whose every request is recorded."""
    del traffic
    with DynamoDBSaver(table_name, client=own_client) as saver:
        yield saver


@pytest.fixture
def make_unclosed(engine: Engine, table_name: str) -> Callable[..., DynamoDBSaver]:
    """Give a factory of savers that nothing closes but the test."""

    def make(**options: Any) -> DynamoDBSaver:
        reach = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        return DynamoDBSaver(table_name, **(reach | options))

    return make
