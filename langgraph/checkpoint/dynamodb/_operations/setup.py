"""`setup`: create the table for development, with the schema that `infra/table.yaml` declares too."""

from collections.abc import Mapping
from typing import Any

from .._format.items import key
from .._format.schema import INDEX_REMEDY, INDEXES, TTL_ATTRIBUTE, table_schema
from .._runtime.clients import Clients
from .._runtime.drivers import TransportOwner
from .._runtime.failures import error_code
from .._runtime.options import Connection
from .._runtime.requests import Table
from .._runtime.steps import Call, Op
from ..errors import CheckpointerConfigurationError

_POLL_SECONDS = 0.5
_POLLS_MAX = 240


def setup(table: Table) -> Op[None]:
    """Create the table if it does not exist, and check its schema if it does."""
    schema = table_schema(table.name)
    description = yield from _describe(table)
    if description is None:
        outcomes = yield (Call("create_table", schema),)
        if error_code(outcomes[0]) != "ResourceInUseException":
            table.checked(outcomes[0])
        description = yield from _describe(table)
    for _ in range(_POLLS_MAX):
        if description is not None and description["TableStatus"] == "ACTIVE":
            break
        description = yield from _describe(table, _POLL_SECONDS)
    else:
        seconds = _POLL_SECONDS * _POLLS_MAX
        raise CheckpointerConfigurationError(
            f"table {table.name} did not become active within {seconds:.0f} s; call setup() again"
        )
    _check(table.name, description, schema)
    yield from _enable_expiry(table)


def _describe(table: Table, delay_seconds: float = 0.0) -> Op[Any]:
    outcomes = yield (Call("describe_table", {"TableName": table.name}, delay_seconds),)
    if error_code(outcomes[0]) == "ResourceNotFoundException":
        return None
    return table.checked(outcomes[0])["Table"]


def _enable_expiry(table: Table) -> Op[None]:
    response = yield from table.send("describe_time_to_live")
    expiry = response["TimeToLiveDescription"]
    if expiry["TimeToLiveStatus"] in ("DISABLED", "DISABLING"):
        specification = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
        outcomes = yield (
            Call(
                "update_time_to_live",
                {"TableName": table.name, "TimeToLiveSpecification": specification},
            ),
        )
        # Another process may be setting up the same table.
        if "already enabled" not in str(outcomes[0]):
            table.checked(outcomes[0])
    elif expiry["AttributeName"] != TTL_ATTRIBUTE:
        raise CheckpointerConfigurationError(
            f"table {table.name} has its time to live on attribute {expiry['AttributeName']!r}; the saver needs"
            f" it on {TTL_ATTRIBUTE!r}: change it with `aws dynamodb update-time-to-live`, or use another table"
        )


def _check(table_name: str, description: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raise if an existing table differs from the schema, and say how."""
    wrong = [each for each in differences(description, schema).values() if each]
    if wrong:
        raise CheckpointerConfigurationError(
            f"table {table_name} exists with another schema: {'; '.join(wrong)}. Give another table_name, or delete"
            f" that table if nothing needs it. If only an index is absent, {INDEX_REMEDY}"
        )


def differences(description: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, str]:
    """Describe how a table's keys and indexes differ from the schema; the text is empty for those that do not."""
    compared = {
        "key schema": (_keys(description), _keys(schema)),
        **{name: (_index(description, name), _index(schema, name)) for name in INDEXES},
        "key types": (_types(description, schema), _types(schema, description)),
    }
    return {
        what: "" if found == wanted else f"{what}: {found}, not {wanted}"
        for what, (found, wanted) in compared.items()
    }


def _keys(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"{each['AttributeName']} {each['KeyType']}" for each in schema["KeySchema"])


def _index(schema: Mapping[str, Any], name: str) -> str:
    for index in schema.get("GlobalSecondaryIndexes", []):
        if index["IndexName"] == name:
            others = sorted(index.get("Projection", {}).get("NonKeyAttributes", []))
            return f"on {_keys(index)}" + (f" with {', '.join(others)}" if others else "")
    return "absent"


def _types(schema: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the types of the key attributes that both schemas have, as text."""
    names = {each["AttributeName"] for each in other["AttributeDefinitions"]}
    return ", ".join(
        sorted(
            f"{each['AttributeName']} {each['AttributeType']}"
            for each in schema["AttributeDefinitions"]
            if each["AttributeName"] in names
        )
    )


# Savers, the store and the cache that reach their table directly: its set-up, and the request that warms them up


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
