"""`HttpCache`: the cache for agents without AWS access, with the requests of `DynamoDBCache` through the gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.cache.base import ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph.cache.dynamodb.cache import TableCache
from langgraph.checkpoint.dynamodb._format.limits import CACHE_RETRY_SECONDS
from langgraph.checkpoint.dynamodb._runtime.accounting import table_observer
from langgraph.checkpoint.dynamodb._runtime.events import Events, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import check_codec_options, check_on_event
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb.http.options import Auth
from langgraph.checkpoint.dynamodb.http.table import TableTransport, check_binding
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS


class HttpCache(TableCache[ValueT]):
    """A LangGraph node cache that reaches the table through the gateway, for sync and async code alike.

    A failure counts as a miss, with a line in the log. It never makes a run fail, as with `DynamoDBCache`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCache

        graph = builder.compile(cache=HttpCache("https://gateway.example", auth="token", prefix=("acme",)))
        ```

    Args:
        url: The gateway's address.
        auth: As for `HttpCheckpointSaver`, as are the options up to `client_options`.
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request that gets no response, or one that says to retry.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.
        serde: As for `DynamoDBCache`, as are the options from here on.
        consistent_read: Whether reads are strongly consistent.
        allow_unencrypted: Whether a cache with a cipher reads values that are not encrypted.
        bound_to: The name of the gateway's table, to which encrypted values are bound. Needed with a cipher.
        prefix: Labels in front of every namespace, such as the tenant of the token. `clear()` deletes only entries
            under it.
        on_event: As for `DynamoDBCache`. The gateway reports units only to some clients.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Auth = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = CACHE_RETRY_SECONDS,
        allow_http: bool = False,
        client_options: Mapping[str, Any] | None = None,
        serde: SerializerProtocol | None = None,
        consistent_read: bool = False,
        allow_unencrypted: bool = False,
        bound_to: str | None = None,
        prefix: Sequence[str] = (),
        on_event: OnEvent | Events | None = None,
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        transport = TableTransport(
            url,
            auth=auth,
            timeout=timeout,
            retry_seconds=retry_seconds,
            allow_http=allow_http,
            client_options=client_options,
            asks_units=on_event is not None,
        )
        check_codec_options(serde=serde, allow_unencrypted=allow_unencrypted, bound_to=bound_to)
        check_on_event(on_event)
        check_binding(serde, bound_to)
        super().__init__(
            transport,
            Table(f"of the gateway at {url}", retry_seconds),
            serde=serde,
            consistent_read=consistent_read,
            allow_unencrypted=allow_unencrypted,
            bound_to=bound_to or "",
            prefix=prefix,
            observer=table_observer(
                on_event, None, "cache.", labels_are_tenants=bool(prefix), asks_units=False
            ),
        )
