"""`HttpCheckpointSaver`: the checkpoint saver for agents without AWS access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX, RETRY_SECONDS
from langgraph.checkpoint.dynamodb._runtime.cache import Cache
from langgraph.checkpoint.dynamodb._runtime.events import Events, Observer, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import check_owner_options, check_storage_options
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES, BackendSaver
from langgraph.checkpoint.dynamodb.http.accounting import GatewayAccounting
from langgraph.checkpoint.dynamodb.http.operations import Gateway, RemoteOperations
from langgraph.checkpoint.dynamodb.http.options import Auth
from langgraph.checkpoint.dynamodb.http.prefix import ThreadPrefix
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS, Transport


class HttpCheckpointSaver(BackendSaver):
    """A LangGraph checkpoint saver that reaches the table through the gateway, for `invoke` and `ainvoke` alike.

    It stores the same items as `DynamoDBSaver`. The client serializes, cuts, compresses and encrypts values, and the
    gateway never opens them. Each method behaves like that of `DynamoDBSaver`, with the same results and errors.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

        graph = builder.compile(checkpointer=HttpCheckpointSaver("https://gateway.example", auth="token"))
        graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        url: The gateway's address.
        auth: A bearer token, a function that returns one, `SigV4(...)`, or an `httpx.Auth`.
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request that gets no response, or one that says to retry; 0
            sends each once.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.
        thread_prefix: The prefix of every thread id and owner in the table, such as `acme/` with a token of the tenant
            `acme`. The agent uses ids and names without it.
        serde: The serializer. By default LangGraph's `JsonPlusSerializer` in strict mode: it creates only harmless
            types and those that `with_allowlist` adds, because others may have written the stored bytes. LangGraph
            adds the types of the graph's schema if `LANGGRAPH_STRICT_MSGPACK=true` is set. Otherwise name yours:
            `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.
        encrypt_metadata: As for `DynamoDBSaver`.
        share_equal_pieces: As for `DynamoDBSaver`.
        allow_unencrypted: As for `DynamoDBSaver`.
        bound_to: The name of the table that encrypted data is bound to; `None` for the name that the gateway reports.
        checkpoint_bytes_max: As for `DynamoDBSaver`.
        cache_bytes: The maximum memory for the cache of recent checkpoints and their segments, in bytes. The
            cache also saves transfer, because the gateway does not send cached segments again.
        on_event: As for `DynamoDBSaver`. The gateway reports units only to some clients.
        owner_from: As for `DynamoDBSaver`. Names do not have the `thread_prefix`. Credentials that the gateway binds to
            an owner need no option: new threads get that owner.
        owner_key: As for `DynamoDBSaver`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
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
        thread_prefix: str = "",
        serde: SerializerProtocol | None = None,
        encrypt_metadata: bool | None = None,
        share_equal_pieces: bool = True,
        allow_unencrypted: bool = False,
        bound_to: str | None = None,
        checkpoint_bytes_max: int = CHECKPOINT_BYTES_MAX,
        cache_bytes: int = CACHE_BYTES,
        on_event: OnEvent | Events | None = None,
        owner_from: str | None = None,
        owner_key: bytes | None = None,
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        check_storage_options(
            serde=serde,
            encrypt_metadata=encrypt_metadata,
            share_equal_pieces=share_equal_pieces,
            allow_unencrypted=allow_unencrypted,
            bound_to=bound_to,
            checkpoint_bytes_max=checkpoint_bytes_max,
            cache_bytes=cache_bytes,
            on_event=on_event,
        )
        check_owner_options(owner_from=owner_from, owner_key=owner_key)
        transport = Transport(
            url,
            auth=auth,
            timeout=timeout,
            retry_seconds=retry_seconds,
            allow_http=allow_http,
            client_options=client_options,
            asks_units=on_event is not None,
        )
        super().__init__(
            JsonPlusSerializer(allowed_msgpack_modules=None) if serde is None else serde,
            transport,
            None if on_event is None else Observer(on_event, GatewayAccounting()),
        )
        self._gateway = Gateway(
            Cache(cache_bytes),
            codec_options={"allow_unencrypted": allow_unencrypted, "bytes_max": checkpoint_bytes_max},
            storage_options={
                "encrypt_metadata": encrypt_metadata,
                "share_equal_pieces": share_equal_pieces,
                "owner_from": owner_from,
                "owner_key": owner_key,
            },
            bound_to=bound_to,
            prefix=ThreadPrefix(thread_prefix),
        )

    @property
    def operations(self) -> RemoteOperations:
        """The saver's operations, with its current serializer."""
        return RemoteOperations(self._gateway, self.serde)
