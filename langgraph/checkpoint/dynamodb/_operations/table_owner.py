"""Savers, the store and the cache that reach their table directly: its set-up, and the request that warms them up.

`make format` writes the async method from the other.
"""

from __future__ import annotations

from .._format.items import key
from .._runtime.clients import Clients
from .._runtime.connection import Connection
from .._runtime.requests import Table
from .._runtime.steps import Call
from .._runtime.transport_owner import TransportOwner
from .setup import setup


class TableOwner(TransportOwner):
    """Runs operations on one table."""

    transport: Clients
    """The clients that make the requests; public inside the package."""
    _table: Table

    def _connect(self, connection: Connection, prefix: str = "", *, labels_are_tenants: bool = True) -> None:
        """Take the connection, and for events what the names of operations begin with, and what labels are."""
        self._table = connection.table
        self._own(connection.clients, connection.observer(prefix, labels_are_tenants=labels_are_tenants))

    def _first_request(self) -> Call:
        """Return a request for an item that no table has. It costs a read unit, or nothing if it is denied."""
        item_key = key("langgraph-dynamodb#", "?")
        return Call("get_item", {"TableName": self._table.name, "Key": item_key}, is_sent_once=True)

    def setup(self) -> None:
        """Create the table for development, or check it if it exists. In production deploy the template.

        Waits up to 120 seconds for the table.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, does not become
                active, or there are no credentials or no region.
        """
        self.runner.run(setup(self._table))

    async def asetup(self) -> None:
        """Create the table for development, or check it if it exists. In production deploy the template.

        Waits up to 120 seconds for the table.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, does not become
                active, or there are no credentials or no region.
        """
        await self.runner.arun(setup(self._table))
