"""The connection to one table, by the options that the saver, the store and the cache share.

Each constructor takes these options as `**options: Unpack[TableKeywords]` and hands them on. Editors complete them, and
type checkers check them, as if each constructor named them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from .._format.limits import CONNECT_SECONDS, READ_SECONDS
from .accounting import TableAccounting
from .clients import ClientOptions, Clients
from .events import Events, Observer, OnEvent
from .options import (
    check_connection,
    check_flag,
    check_on_event,
    check_region,
    check_seconds,
    check_table_name,
    refuse_unknown,
)
from .requests import Table

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient


class TableKeywords(TypedDict, total=False):
    """The options that the constructors of saver, store and cache hand on. `config/dynamodb.py` describes them."""

    region_name: str | None
    endpoint_url: str | None
    session: boto3.Session | None
    client: DynamoDBClient | None
    client_config: Config | None
    allow_unencrypted: bool
    bound_to: str | None
    on_event: OnEvent | Events | None


@dataclass(frozen=True)
class Connection:
    """The clients that saver, store and cache make of shared options. None is open before the first request."""

    clients: Clients
    table: Table
    bound_to: str
    """The name of the table that encrypted data is bound to."""
    allow_unencrypted: bool
    on_event: OnEvent | Events | None

    def observer(self, prefix: str = "", *, labels_are_tenants: bool = True) -> Observer | None:
        """Return the observer of operations; `None` if nobody receives events.

        Args:
            prefix: The beginning of the operations' names.
            labels_are_tenants: Whether the first label of a namespace names a tenant.
        """
        if self.on_event is None:
            return None
        accounting = TableAccounting(labels_are_tenants=labels_are_tenants)
        return Observer(self.on_event, accounting, self.table.name, prefix)


def connect(
    kind: type,
    table_name: str,
    options: TableKeywords,
    *,
    retry_seconds: float,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
) -> Connection:
    """Check the options that a constructor hands on, and return what they make.

    The time-outs are those of the default `client_config`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        TypeError: The constructor of `kind` does not have an option.
    """
    refuse_unknown(kind, options.keys() - TableKeywords.__annotations__.keys(), TableKeywords)
    check_table_name(table_name)
    of_clients: dict[str, Any] = {**options}
    allow_unencrypted = of_clients.pop("allow_unencrypted", False)
    bound_to = of_clients.pop("bound_to", None)
    on_event = of_clients.pop("on_event", None)
    client_options = ClientOptions(
        **of_clients,
        retry_seconds=retry_seconds,
        connect_seconds=connect_seconds,
        read_seconds=read_seconds,
    )
    check_connection(client_options)
    check_region(table_name, client_options.region_name)
    check_seconds("retry_seconds", retry_seconds, at_least=0)
    check_flag("allow_unencrypted", allow_unencrypted)
    if bound_to is not None:
        check_table_name(bound_to, "bound_to")
    check_on_event(on_event)
    # A table's ARN ends in its name.
    bound_name = (table_name if bound_to is None else bound_to).rpartition("/")[2]
    return Connection(
        Clients(client_options), Table(table_name, retry_seconds), bound_name, allow_unencrypted, on_event
    )
