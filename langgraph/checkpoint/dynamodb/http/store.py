"""`HttpStore`: the store for agents without AWS access, with the requests of `DynamoDBStore` through the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import TTLConfig

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import RETRY_SECONDS, SEARCH_BYTES_MAX
from langgraph.checkpoint.dynamodb._runtime.accounting import table_observer
from langgraph.checkpoint.dynamodb._runtime.events import Events, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import check_codec_options, check_on_event
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb.http.options import Auth
from langgraph.checkpoint.dynamodb.http.table import TableTransport, check_binding
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS
from langgraph.store.dynamodb.index import StoreIndexConfig
from langgraph.store.dynamodb.storage import StoreStorage
from langgraph.store.dynamodb.store import TableStore, check_reading_options


class HttpStore(TableStore):
    """A LangGraph store that reaches the table through the gateway, for sync and async code alike.

    It stores the same items as `DynamoDBStore`. The client serializes, compresses, encrypts and compares values and
    vectors, and the gateway never opens them. Each method behaves like that of `DynamoDBStore`, with the same results
    and errors.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpStore

        store = HttpStore("https://gateway.example", auth="token")
        store.put(("acme", "user-1", "memories"), "food", {"likes": "pizza"})
        ```

    Args:
        url: The gateway's address.
        auth: As for `HttpCheckpointSaver`, as are the options up to `client_options`.
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request that gets no response, or one that says to retry.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.
        index: As for `DynamoDBStore`, as are the options from here on.
        ttl: LangGraph's `TTLConfig`: `default_ttl` in minutes and `refresh_on_read`.
        serde: LangGraph's `EncryptedSerializer` encrypts values and vectors before they are sent.
        consistent_read: Whether reads are strongly consistent.
        allow_unencrypted: Whether a store with a cipher reads values that are not encrypted.
        bound_to: The name of the gateway's table, to which encrypted values are bound. Needed with a cipher.
        search_bytes_max: The maximum number of bytes that one search may read; one that needs more raises
            `SearchLimitError`.
        on_event: As for `DynamoDBStore`. The gateway reports units only to some clients.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        CheckpointerConfigurationError: `index` is given and numpy is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Auth = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        allow_http: bool = False,
        client_options: Mapping[str, Any] | None = None,
        index: StoreIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: SerializerProtocol | None = None,
        consistent_read: bool = True,
        allow_unencrypted: bool = False,
        bound_to: str | None = None,
        search_bytes_max: int = SEARCH_BYTES_MAX,
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
        check_reading_options(consistent_read=consistent_read, search_bytes_max=search_bytes_max)
        check_on_event(on_event)
        check_binding(serde, bound_to)
        codec = Codec(
            JsonPlusSerializer() if serde is None else serde,
            bound_to=bound_to or "",
            allow_unencrypted=allow_unencrypted,
        )
        storage = StoreStorage(
            codec=codec,
            table=Table(f"of the gateway at {url}", retry_seconds),
            consistent_read=consistent_read,
            search_bytes_max=search_bytes_max,
        )
        observer = table_observer(on_event, None, "store.", asks_units=False)
        super().__init__(transport, storage, index, ttl, observer)
