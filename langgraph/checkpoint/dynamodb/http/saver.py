"""`HttpCheckpointSaver`: the checkpoint saver for agents without AWS access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate

from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Unpack, override

from .._format.limits import RETRY_SECONDS
from .._runtime.cache import Facts
from .._runtime.options import check_bytes, check_owner_options
from .._runtime.storage import Storage
from ..base_saver import CACHE_BYTES, P, T, TableSaver
from ..locks import ThreadLocks
from . import operations
from .lock import GatewayHolder
from .memory import KnownCheckpoints
from .operations import Client
from .options import GatewayKeywords, check_prefix
from .service import GatewayAccounting, ServiceClient
from .transport import TIMEOUT_SECONDS
from .values import client_serde, codec_of


class HttpCheckpointSaver(ServiceClient, ThreadLocks, TableSaver):
    """A LangGraph checkpoint saver that reaches the table through the gateway, for `invoke` and `ainvoke` alike.

    The client serializes values, and the service stores them as `DynamoDBSaver` does. Each method has the arguments,
    results and errors of the one of `DynamoDBSaver`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

        graph = builder.compile(checkpointer=HttpCheckpointSaver("https://gateway.example", auth="token"))
        graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        url: The gateway's address, such as `https://gateway.example`.
        auth: The credentials: a bearer token, a function that returns one, or an `httpx.Auth`. In a configuration,
            `token` or `token_file`.
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request that gets no response, or one that says to retry; 0 sends
            each once.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        thread_prefix: The prefix of every thread id and owner in the table, such as `acme/` with a token of the tenant
            `acme`. The agent uses ids and names without it.
        serde: The serializer, by default LangGraph's `JsonPlusSerializer` in strict mode. That creates only harmless
            types and those that `with_allowlist` adds, because others may have written the stored bytes. LangGraph adds
            the types of the graph's schema if `LANGGRAPH_STRICT_MSGPACK=true` is set. Otherwise name yours:
            `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.
        cache_bytes: The maximum memory for the values of the newest checkpoint of recent threads, in bytes. They save
            transfer: only what is new in a value is sent, and known values are not received again.
        owner_from: The key of a config's `configurable`, or of its `metadata`, that names the owner of a thread, such
            as `user_id`. The first put of each thread then enters it in the directory, which `threads` lists; without
            the option only `set_thread` does. A later run never changes an owner.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        CheckpointerConfigurationError: The serializer is an `EncryptedSerializer`.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        thread_prefix: str = "",
        serde: SerializerProtocol | None = None,
        cache_bytes: int = CACHE_BYTES,
        owner_from: str | None = None,
        **options: Unpack[GatewayKeywords],
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        serde = client_serde(serde)
        check_bytes("cache_bytes", cache_bytes, at_least=0)
        check_owner_options(owner_from=owner_from, owner_key=None)
        check_prefix(thread_prefix)
        super().__init__(serde=serde)
        self._connect(
            url,
            options,
            timeout=timeout,
            retry_seconds=retry_seconds,
            accounting=GatewayAccounting(),
        )
        self._memory = KnownCheckpoints(cache_bytes)
        self._prefix = thread_prefix
        self.owner_from = owner_from
        self._facts = Facts()

    @property
    def holder(self) -> GatewayHolder:
        """The way to the locks of threads."""
        return GatewayHolder(self._prefix)

    @property
    def storage(self) -> Client:
        """All that its operations need, with the saver's current serializer; public inside the package."""
        codec = codec_of(self.serde)
        return Client(self._service, self._memory, codec, self._prefix, self.owner_from, self._facts)

    @override
    def _operation(
        self, operation: Callable[Concatenate[Storage, P], T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        asking: Callable[Concatenate[Client, P], T] = getattr(operations, operation.__name__)
        return asking(self.storage, *args, **options)
