"""`HttpCheckpointSaver`: the saver for agents without AWS access, and how it reaches the locks of threads."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Concatenate, Literal, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Unpack, override

from .._operations.thread_lock import Attempt, Hold, lost
from .._runtime.options import check_bytes, check_owner_options
from .._runtime.steps import Op
from .._runtime.storage import Facts, Storage
from ..base_saver import CACHE_BYTES, P, T, TableSaver
from ..gateway import thread_calls
from ..locks import ThreadLocks
from . import operations
from .exchange import call_to
from .operations import Client, KnownCheckpoints
from .service import Service, ServiceClient, client_serde, codec_of
from .transport import GatewayKeywords, check_prefix

Action: TypeAlias = Literal["acquire", "renew", "release"]


@dataclass(frozen=True)
class GatewayHolder:
    """Reaches the holds on threads through a gateway."""

    service: Service
    rng: random.Random = field(default_factory=random.SystemRandom)

    def clock(self) -> float:
        """Return the time in epoch seconds, by this process's clock."""
        return time.time()

    def attempt(self, hold: Hold, delay_seconds: float) -> Op[Attempt]:
        """Try to acquire a hold after a delay."""
        return self._asked("acquire", hold, delay_seconds)

    def renew(self, hold: Hold) -> Op[float]:
        """Renew a hold; return when it ends."""
        renewed = yield from self._asked("renew", hold)
        if renewed.held_until is None:
            raise lost(hold)
        return renewed.held_until

    def release(self, hold: Hold, after: BaseException | None = None) -> Op[None]:
        """Release a hold."""
        del after
        yield from self._asked("release", hold)

    def _asked(self, action: Action, hold: Hold, delay_seconds: float = 0.0) -> Op[Attempt]:
        named = (hold.root.thread_id, action, hold.token, float(hold.ttl_seconds))
        call = replace(call_to(thread_calls.lock, self.service.prefix, *named), delay_seconds=delay_seconds)
        # The hold begins when the service has the request, which is later.
        held_until = self.clock() + delay_seconds + hold.ttl_seconds
        found: Attempt = yield from self.service.send(call)
        return found if found.held_until is None else replace(found, held_until=held_until)


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
        self._connect(url, options, thread_prefix=thread_prefix)
        self._memory = KnownCheckpoints(cache_bytes)
        self.owner_from = owner_from
        self._facts = Facts()

    @property
    def holder(self) -> GatewayHolder:
        """The way to the locks of threads."""
        return GatewayHolder(self._service)

    @property
    def storage(self) -> Client:
        """All that its operations need, with the saver's current serializer; public inside the package."""
        codec = codec_of(self.serde)
        return Client(self._service, self._memory, codec, self.owner_from, self._facts)

    @property
    @override
    def _prefix(self) -> str:
        return self._service.prefix

    @override
    def _operation(
        self, operation: Callable[Concatenate[Storage, P], T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        asking: Callable[Concatenate[Client, P], T] = getattr(operations, operation.__name__)
        return asking(self.storage, *args, **options)
