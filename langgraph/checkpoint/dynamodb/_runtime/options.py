"""The options of constructors: those that saver, store and cache share, and checks before anything is opened.

Each constructor takes the shared options as `**options: Unpack[TableKeywords]` and hands them on. Editors complete
them, and type checkers check them, as if each constructor named them. Each message says what to pass instead.

No client library is imported for it, since importing the saver should cost little. If an object of a library was given,
the library is loaded already.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict
from urllib.parse import urlsplit

from langgraph.checkpoint.serde.base import SerializerProtocol

from .._format.codec import Codec
from .._format.limits import CHECKPOINT_BYTES_MAX, CONNECT_SECONDS, READ_SECONDS, TTL_SECONDS_MAX
from ..errors import CheckpointerInputError
from .clients import ClientOptions, Clients
from .events import Events, Observer, OnEvent, TableAccounting
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

    def codec(
        self, serde: SerializerProtocol, kind: type[Codec] = Codec, bytes_max: int = CHECKPOINT_BYTES_MAX
    ) -> Codec:
        """Return a codec of a serializer for what the table holds."""
        allows = self.allow_unencrypted
        return kind(serde, bound_to=self.bound_to, allow_unencrypted=allows, bytes_max=bytes_max)

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
    serde: Any,
    retry_seconds: float,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
) -> Connection:
    """Check the options that saver, store and cache have in common, and return what those make that they hand on.

    The time-outs are those of the default `client_config`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        TypeError: The constructor of `kind` does not have an option.
    """
    refuse_unknown(kind, options.keys() - TableKeywords.__annotations__.keys(), TableKeywords)
    check_table_name(table_name)
    check_serde(serde)
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


# Checks

_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}|arn:.+")

# The methods that operations call on a blocking client. boto3's resources and clients of other services lack most.
_METHODS = (
    "batch_get_item", "batch_write_item", "delete_item", "get_item", "put_item", "query", "scan", "update_item",
)  # fmt: skip


def check_table_name(value: Any, name: str = "table_name") -> None:
    """Raise if a value cannot be the name of a table."""
    if not isinstance(value, str) or not is_table_name(value):
        _refuse(name, value, "give the table's name, of 3 to 255 letters, digits, _, - and dots, or its ARN")


def check_region(table_name: str, region_name: str | None) -> None:
    """Raise if the table's ARN names another region than the option: requests would look for the table there."""
    parts = table_name.split(":")
    if region_name is not None and len(parts) > 3 and parts[3] != region_name:
        msg = f"region_name is {region_name!r}, but the ARN in table_name names {parts[3]!r}; leave out the wrong one"
        raise CheckpointerInputError(msg)


def is_table_name(name: str) -> bool:
    """Tell whether DynamoDB allows a table's name, or whether it is an ARN."""
    return _TABLE_NAME.fullmatch(name) is not None


def check_seconds(name: str, value: Any, *, at_least: float) -> None:
    """Raise if a value is not a finite number of seconds, or is too small."""
    if type(value) not in (int, float) or not at_least <= value < math.inf:
        _refuse(name, value, f"give a number of seconds, {at_least} or more")


def check_ttl(name: str, value: Any, *, at_least: float) -> None:
    """Raise if a value is not a number of seconds, or is out of the range of ttls."""
    if type(value) not in (int, float) or not at_least <= value <= TTL_SECONDS_MAX:
        _refuse(name, value, f"give a number of seconds from {at_least} to {TTL_SECONDS_MAX:,}")


def check_thread_ttl(value: Any) -> None:
    """Raise if a value cannot be the ttl of threads."""
    wanted = f"give a whole number of seconds from 1 to {TTL_SECONDS_MAX:,}, or None"
    if value is not None and (type(value) is not int or not 1 <= value <= TTL_SECONDS_MAX):
        _refuse("ttl_seconds", value, wanted)


def check_flag(name: str, value: Any) -> None:
    """Raise if a value is neither True nor False: the text "false" would be taken for true."""
    if type(value) is not bool:
        _refuse(name, value, "give True or False")


OTHER_NAMES = {
    "boto_config": "it is client_config here",
    "enable_checkpoint_compression": "leave it out: everything is compressed",
    "s3_offload_config": "leave it out: the table takes a checkpoint of any size",
    "ttl": "it is ttl_seconds here",
}
"""Options of other savers, most of them of langgraph-checkpoint-aws's of the same name, and what to pass instead."""


def refuse_unknown(kind: type, unknown: Iterable[str], handed_on: type) -> None:
    """Raise if a constructor got unknown options, and suggest the option that was meant.

    Args:
        kind: The constructor's class.
        unknown: The names of the options.
        handed_on: The `TypedDict` of the options that the constructor hands on.

    Raises:
        TypeError: As Python does for an unexpected keyword argument.
    """
    for name in sorted(unknown):
        named = inspect.signature(kind).parameters.values()
        known = [*handed_on.__annotations__, *(each.name for each in named if each.kind is each.KEYWORD_ONLY)]
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"
        raise TypeError(f"{kind.__name__} has no option {name}; {OTHER_NAMES.get(name, meant)}")


def check_bytes(name: str, value: Any, *, at_least: int) -> None:
    """Raise if a value is not a number of bytes, or is too small."""
    if type(value) is not int or value < at_least:
        _refuse(name, value, f"give a whole number of bytes, {at_least} or more")


def check_on_event(value: Any) -> None:
    """Raise if events cannot be passed to a value, or would be lost: nobody awaits a result, or keeps an object."""
    if value is None:
        return
    events = value if isinstance(value, Events) else Events(value)
    function = _unbound(events.on_event)
    if isinstance(function, type):
        wanted = f"give an object of the class, such as {function.__qualname__}()"
        _refuse("on_event", function, wanted)
    if not callable(function):
        _refuse("on_event", function, "give a function that takes an event, or Events(function)")
    for name, each in (("on_event", function), ("tenant_of", _unbound(events.tenant_of))):
        if _is_suspended(each):
            _refuse(name, each, "give a plain function; an async one, or one with yield, would never run")


def _unbound(function: Any) -> Any:
    """Return the function to which `functools.partial` binds arguments; any other value as it is."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_suspended(function: Any) -> bool:
    """Tell whether a call only makes a coroutine or a generator, which somebody else has to run."""
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(kind(each) for kind in kinds for each in (function, type(function).__call__))


def check_owner_options(*, owner_from: Any, owner_key: Any) -> None:
    """Raise if an option that names threads' owners cannot be used."""
    if owner_from is not None and (not isinstance(owner_from, str) or not owner_from):
        _refuse("owner_from", owner_from, 'give the name of a key, such as "user_id", or None')
    if owner_key is not None and (not isinstance(owner_key, bytes) or not 16 <= len(owner_key) <= 64):
        raise CheckpointerInputError("owner_key cannot be used; give 16 to 64 secret bytes, or None")


def check_serde(value: Any) -> None:
    """Raise if LangGraph cannot use a value as a serializer, be it typed or as in LangGraph's first releases."""
    if value is None:
        return
    methods = (("dumps_typed", "loads_typed"), ("dumps", "loads"))
    has_some = any(all(callable(getattr(value, each, None)) for each in pair) for pair in methods)
    if isinstance(value, type) or not has_some:
        _refuse(
            "serde", value, "give an object with dumps_typed and loads_typed, such as JsonPlusSerializer()"
        )


def check_connection(options: ClientOptions) -> None:
    """Raise if a session or client is of the wrong kind, or if an option would have no effect beside a client."""
    region_name: Any = options.region_name
    client_config = options.client_config
    if region_name is not None and (not isinstance(region_name, str) or not region_name):
        _refuse("region_name", region_name, 'give the name of a region, such as "eu-west-1"')
    if options.endpoint_url is not None:
        _check_endpoint(options.endpoint_url)
    if options.session is not None:
        _check_session(options.session)
    if client_config is not None and not _is_a(client_config, "botocore.config", "Config"):
        _refuse("client_config", client_config, "give a botocore.config.Config")
    if options.client is not None:
        _check_client(options.client)
        for name in ("session", "region_name", "endpoint_url", "client_config"):
            if getattr(options, name) is not None:
                raise CheckpointerInputError(
                    f"{name} has no effect on client=, which is used as it is; give one of the two"
                )


def without_password(address: str) -> str:
    """Return an address; raise if it has a user or a password, which errors and representations would show."""
    if "@" in address:
        raise ValueError(
            "has a user or a password in it; remove them, since DynamoDB takes credentials only as signatures"
        )
    return address


def _check_endpoint(value: Any) -> None:
    try:
        without_password(str(value))
    except ValueError as error:
        raise CheckpointerInputError(f"endpoint_url {error}") from None
    if not _is_address(value):
        _refuse("endpoint_url", value, 'begin it with http:// or https://, such as "http://localhost:8000"')


def _check_session(value: Any) -> None:
    wanted = "give a boto3.Session"
    if _is_async(value):
        wanted += "; async methods use its credentials, too"
    elif _is_a(value, "botocore.session", "Session"):
        wanted += "(botocore_session=...)"
    elif not isinstance(value, type) and callable(getattr(value, "client", None)):
        return
    _refuse("session", value, wanted)


def _check_client(value: Any) -> None:
    wanted = 'give boto3.client("dynamodb")'
    if isinstance(value, type) or not all(callable(getattr(value, each, None)) for each in _METHODS):
        # boto3's resources offer the client that they use.
        has_client = hasattr(getattr(value, "meta", None), "client")
        _refuse("client", value, "give its meta.client" if has_client else wanted)
    if hasattr(type(value), "__aenter__"):
        _refuse("client", value, f"{wanted}, or a boto3.Session as session=, which serves asyncio, too")


def _is_async(value: Any) -> bool:
    return _is_a(value, "aioboto3", "Session") or _is_a(value, "aiobotocore.session", "AioSession")


def _is_a(value: Any, module: str, name: str) -> bool:
    """Tell whether a value is an instance of a library's class. If it is, the library is loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def _is_address(value: Any) -> bool:
    return (
        isinstance(value, str)
        and urlsplit(value).scheme in ("http", "https")
        and bool(urlsplit(value).netloc)
    )


def _refuse(name: str, value: Any, wanted: str) -> NoReturn:
    if isinstance(value, type):
        shown = f"the class {value.__module__}.{value.__qualname__}"
    elif value is None or isinstance(value, (str, int, float)):
        shown = repr(value)
    else:
        # A config or a session may hold secrets, which must not be printed.
        shown = f"a {type(value).__module__}.{type(value).__qualname__}"
    raise CheckpointerInputError(f"{name} is {shown}; {wanted}")
