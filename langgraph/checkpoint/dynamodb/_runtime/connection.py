"""The connection to one table, by the options that the saver, the store and the cache share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from langgraph.checkpoint.dynamodb._format.limits import CONNECT_SECONDS, READ_SECONDS
from langgraph.checkpoint.dynamodb._runtime.clients import ClientOptions, Clients
from langgraph.checkpoint.dynamodb._runtime.options import check_connection, check_seconds, check_table_name

if TYPE_CHECKING:
    import boto3
    from aioboto3 import Session as AsyncSession
    from aiobotocore.session import AioSession
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient

tenant_sessions: WeakSet[object] = WeakSet()
"""The sessions of `TenantCredentials`, which sign each request for the tenant of its context."""


def connect(
    table_name: str,
    *,
    region_name: str | None,
    endpoint_url: str | None,
    session: boto3.Session | None,
    async_session: AsyncSession | AioSession | None,
    client: DynamoDBClient | None,
    client_config: Config | None,
    retry_seconds: float,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
) -> Clients:
    """Check the options of a connection, and return its clients. None is opened before the first request.

    The time-outs are those of the default `client_config`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """
    check_table_name(table_name)
    check_connection(
        region_name=region_name,
        endpoint_url=endpoint_url,
        session=session,
        async_session=async_session,
        client=client,
        client_config=client_config,
    )
    check_seconds("retry_seconds", retry_seconds, at_least=0)
    return Clients(
        ClientOptions(
            region_name,
            endpoint_url,
            session,
            async_session,
            client,
            client_config,
            retry_seconds,
            connect_seconds,
            read_seconds,
        )
    )


def bound_name(table_name: str, bound_to: str | None) -> str:
    """Return the name of the table that encrypted data is bound to. A table's ARN ends in its name."""
    return (table_name if bound_to is None else bound_to).rpartition("/")[2]
