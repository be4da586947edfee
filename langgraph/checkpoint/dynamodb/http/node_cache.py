"""`HttpCache`: the node cache for agents without AWS access. The gateway stores its values as the client made them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langgraph.cache.base import FullKey, Namespace, ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Unpack, override

from langgraph.cache.dynamodb.entries import Values, attempt, entry_key
from langgraph.cache.dynamodb.node_cache import TableCache

from .._format import codec, limits
from .._runtime.options import check_ttl
from .._runtime.steps import Op, work
from ..errors import CheckpointerError
from ..gateway import node_calls, opaque
from .service import ServiceClient, client_serde, codec_of, data_of, dumped, loaded
from .transport import GatewayKeywords

# Running the node is better than waiting for its cache.
CACHE_TIMEOUT_SECONDS = 2.0


class HttpCache(ServiceClient, TableCache[ValueT]):
    """A LangGraph node cache that reaches the table through the gateway, for sync and async code alike.

    A failure counts as a miss, with a line in the log. It never makes a run fail, as with `DynamoDBCache`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCache

        graph = builder.compile(cache=HttpCache("https://gateway.example", auth="token", prefix=("acme",)))
        ```

    Args:
        url: The gateway's address, such as `https://gateway.example`.
        auth: The credentials: a bearer token, a function that returns one, or an `httpx.Auth`. In a configuration,
            `token` or `token_file`.
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request; then it is a miss.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        serde: The serializer, by default LangGraph's `JsonPlusSerializer` in strict mode. Of an object of any other
            type, a run that finds the value cached gets the fields as a dict. So name the types of your nodes' results:
            `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.
        prefix: Labels in front of every namespace, such as the tenant. `clear()` deletes only entries under them.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        CheckpointerConfigurationError: The serializer is an `EncryptedSerializer`.
    """

    def __init__(
        self,
        url: str,
        *,
        serde: SerializerProtocol | None = None,
        prefix: Sequence[str] = (),
        **options: Unpack[GatewayKeywords],
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        super().__init__(serde=client_serde(serde), prefix=prefix)
        given: GatewayKeywords = {
            "timeout": CACHE_TIMEOUT_SECONDS,
            "retry_seconds": limits.CACHE_RETRY_SECONDS,
            **options,
        }
        self._connect(url, given, events_prefix="cache.", has_tenants=bool(prefix))
        self._codec = codec_of(self.serde)

    @override
    def _get(self, keys: Sequence[FullKey]) -> Op[dict[FullKey, ValueT]]:
        wanted: dict[FullKey, node_calls.NodeKey] = {}
        for namespace, key in keys:
            full_key = (tuple(namespace), key)
            place = yield from attempt(work(partial(self._place, full_key)), "read", full_key)
            if place is not None:
                wanted[full_key] = place
        found: dict[FullKey, ValueT] = {}
        yield from attempt(self._read(wanted, found), "read", list(wanted))
        return found

    def _read(self, wanted: Mapping[FullKey, node_calls.NodeKey], found: dict[FullKey, ValueT]) -> Op[None]:
        """Fill in what is found, as far as that goes."""
        for group in (yield from self._service.groups(wanted, _name_of)):
            left = group
            while left:
                response = yield from self._service.ask(node_calls.get, tuple(wanted[each] for each in left))
                for full_key, value in zip(left, response.values, strict=True):
                    if value is not None:
                        yield from attempt(self._open(full_key, value, found), "read", full_key)
                for each in response.refused:
                    yield from attempt(_refused(each), "read", left[each.position])
                left = [left[position] for position in response.left]

    def _open(self, full_key: FullKey, value: opaque.Value, found: dict[FullKey, ValueT]) -> Op[None]:
        loading = partial(loaded, self._codec, value, "the cached value")
        found[full_key] = yield from work(loading, len(data_of(value)))

    @override
    def _put(self, values: Values) -> Op[None]:
        new: dict[FullKey, node_calls.CacheEntry] = {}
        for (namespace, key), (value, ttl_seconds) in values.items():
            full_key = (tuple(namespace), key)
            entry = yield from attempt(self._entry(full_key, value, ttl_seconds), "store", full_key)
            if entry is not None:
                new[full_key] = entry
        yield from attempt(self._store(new), "store", list(new))

    def _store(self, new: Mapping[FullKey, node_calls.CacheEntry]) -> Op[None]:
        for group in (yield from self._service.groups(new, _name_of)):
            response = yield from self._service.ask(
                node_calls.set_entries, tuple(new[each] for each in group)
            )
            for each in response.refused:
                yield from attempt(_refused(each), "store", group[each.position])

    @override
    def _clear(self, namespaces: Sequence[Namespace] | None) -> Op[None]:
        if namespaces is None:
            yield from self._service.ask(node_calls.clear, prefix=self._prefix)
        else:
            yield from self._service.ask(
                node_calls.clear, tuple((*self._prefix, *each) for each in namespaces)
            )

    def _place(self, full_key: FullKey) -> node_calls.NodeKey:
        """Return how a request names an entry; raise `CheckpointerInputError` if there can be none."""
        entry_key(self._prefix, full_key)
        return node_calls.NodeKey((*self._prefix, *full_key[0]), full_key[1])

    def _entry(self, full_key: FullKey, value: Any, ttl_seconds: float | None) -> Op[node_calls.CacheEntry]:
        if ttl_seconds is not None:
            check_ttl("ttl", ttl_seconds, at_least=0)
        place = self._place(full_key)
        dumping = partial(dumped, self._codec, value, "the cached value")
        sent = yield from work(dumping, codec.rough_bytes(value))
        entry = node_calls.CacheEntry(
            place.namespace, place.key, type=sent.type, data=sent.data, ttl_seconds=ttl_seconds
        )
        # One that is too large for any request is refused alone, and not with the others of its call.
        yield from self._service.groups({full_key: entry}, _name_of)
        return entry


def _refused(refusal: node_calls.Refused) -> Op[None]:
    yield from ()
    raise CheckpointerError(refusal.reason)


def _name_of(full_key: FullKey) -> str:
    return f"node cache entry {full_key}"
