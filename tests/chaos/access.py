"""How an agent's process reaches the table: a saver whose requests say which operation they belong to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import boto3
from aiobotocore.session import get_session
from botocore.config import Config

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.chaos.proxy import OPERATION_HEADER

OPERATION: ContextVar[str] = ContextVar("operation", default="")
ATTEMPTS_MAX = 4


def config() -> Config:
    """Build settings that retry, but not for long."""
    return Config(
        connect_timeout=5,
        read_timeout=30,
        tcp_keepalive=True,
        max_pool_connections=32,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS_MAX},
    )


def open_saver(table_name: str) -> DynamoDBSaver:
    """Open a saver for both kinds of methods, on the endpoint that the environment names."""
    session = boto3.Session()
    session.events.register("before-call.dynamodb", _name_operation)
    async_session = get_session()
    async_session.register("before-call.dynamodb", _name_operation)
    return DynamoDBSaver(
        table_name,
        session=session,
        async_session=async_session,
        client_config=config(),
    )


def _name_operation(params: dict[str, Any], **_: Any) -> None:
    params["headers"][OPERATION_HEADER] = OPERATION.get()
