"""`HttpCache`: the node cache for agents without AWS access. The gateway stores its values as the client made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langgraph.cache.base import FullKey, Namespace, ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import override

from langgraph.cache.dynamodb.cache import TableCache
from langgraph.cache.dynamodb.entries import Values, attempt, entry_key
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import pack_typed, unpack_typed
from langgraph.checkpoint.dynamodb._format.limits import CACHE_RETRY_SECONDS
from langgraph.checkpoint.dynamodb._runtime.events import Events, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import check_codec_options, check_ttl
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.http.labels import Document, LabelAccounting, in_requests
from langgraph.checkpoint.dynamodb.http.options import Auth
from langgraph.checkpoint.dynamodb.http.service import ServiceClient, ask

# Running the node is better than waiting for its cache.
CACHE_TIMEOUT_SECONDS = 5.0
# The type of a value that the client has sealed for its place.
_SEALED = "sealed"
_ENTRY_BYTES = 200


class HttpCache(ServiceClient, TableCache[ValueT]):
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
        serde: The serializer, by default LangGraph's `JsonPlusSerializer` without pickle. `EncryptedSerializer`
            encrypts values before they are sent, bound to their namespace and key.
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
        timeout: float = CACHE_TIMEOUT_SECONDS,
        retry_seconds: float = CACHE_RETRY_SECONDS,
        allow_http: bool = False,
        client_options: Mapping[str, Any] | None = None,
        serde: SerializerProtocol | None = None,
        prefix: Sequence[str] = (),
        on_event: OnEvent | Events | None = None,
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        check_codec_options(serde=serde, allow_unencrypted=False, bound_to=None)
        super().__init__(serde=serde, prefix=prefix)
        self._connect(
            url,
            auth=auth,
            timeout=timeout,
            retry_seconds=retry_seconds,
            allow_http=allow_http,
            client_options=client_options,
            on_event=on_event,
            accounting=LabelAccounting(has_tenants=bool(prefix)),
            events_prefix="cache.",
        )
        self._codec = Codec(self.serde)

    @override
    def _get(self, keys: Sequence[FullKey]) -> Op[dict[FullKey, ValueT]]:
        wanted: dict[FullKey, Document] = {}
        for namespace, key in keys:
            full_key = (tuple(namespace), key)
            place = yield from attempt(work(partial(self._place, full_key)), "read", full_key)
            if place is not None:
                wanted[full_key] = place
        found: dict[FullKey, Document] = {}
        yield from attempt(self._read(wanted, found), "read", list(wanted))
        values: dict[FullKey, ValueT] = {}
        for full_key, value in found.items():
            opened = yield from attempt(self._opened(full_key, value), "read", full_key)
            if opened:
                values[full_key] = opened[0]
        return values

    def _read(self, wanted: Mapping[FullKey, Document], found: dict[FullKey, Document]) -> Op[None]:
        """Fill in what is found, as far as that goes."""
        for group in (yield from in_requests(self._service, list(wanted.items()), _size_of_key, _name_of)):
            left = group
            while left:
                answer = yield from ask("cache/get", {"keys": [place for _, place in left]})
                for (full_key, _), value in zip(left, answer["values"], strict=True):
                    if value is not None:
                        found[full_key] = value
                for each in answer["refused"]:
                    yield from attempt(_refused(each), "read", left[each["position"]][0])
                left = [left[position] for position in answer["left"]]

    @override
    def _put(self, values: Values) -> Op[None]:
        new: dict[FullKey, Document] = {}
        for (namespace, key), (value, ttl_seconds) in values.items():
            full_key = (tuple(namespace), key)
            entry = yield from attempt(self._entry(full_key, value, ttl_seconds), "store", full_key)
            if entry is not None:
                new[full_key] = entry
        yield from attempt(self._store(new), "store", list(new))

    def _store(self, new: Mapping[FullKey, Document]) -> Op[None]:
        for group in (yield from in_requests(self._service, list(new.items()), _size_of_entry, _name_of)):
            answer = yield from ask("cache/set", {"entries": [entry for _, entry in group]})
            for each in answer["refused"]:
                yield from attempt(_refused(each), "store", group[each["position"]][0])

    @override
    def _clear(self, namespaces: Sequence[Namespace] | None) -> Op[None]:
        named = None if namespaces is None else [[*self._prefix, *each] for each in namespaces]
        yield from ask("cache/clear", {"namespaces": named, "prefix": list(self._prefix)})

    # Values

    def _place(self, full_key: FullKey) -> Document:
        namespace, key = full_key
        entry_key(self._prefix, full_key)
        return {"namespace": [*self._prefix, *namespace], "key": key}

    def _entry(self, full_key: FullKey, value: Any, ttl_seconds: float | None) -> Op[Document]:
        def made() -> Document:
            if ttl_seconds is not None:
                check_ttl("ttl", ttl_seconds, at_least=0)
            place = self._place(full_key)
            kind, data = self._codec.dumps(value, f"the value of node cache entry {full_key}")
            if self._codec.encrypts:
                item_key = entry_key(self._prefix, full_key)
                kind, data = _SEALED, self._codec.seal(pack_typed(kind, data), item_key, items.DATA)
            return {**place, "type": kind, "data": data, "ttl_seconds": ttl_seconds}

        return (yield from work(made, rough_bytes(value)))

    def _opened(self, full_key: FullKey, value: Document) -> Op[list[Any]]:
        def opened() -> list[Any]:
            item_key, kind, data = entry_key(self._prefix, full_key), value["type"], value["data"]
            if not self._codec.encrypts:
                return [self._codec.loads(kind, data, item_key)]
            if kind != _SEALED:
                msg = (
                    "it is not encrypted, but the cache has a cipher: somebody without the key has stored it"
                )
                raise CheckpointerError(msg)
            return [unpack_typed(self._codec, item_key, self._codec.open(data, item_key, items.DATA))]

        return (yield from work(opened, len(value["data"])))


def _refused(refusal: Document) -> Op[None]:
    yield from ()
    raise CheckpointerError(refusal["reason"])


def _size_of_key(wanted: tuple[FullKey, Document]) -> int:
    place = wanted[1]
    return _ENTRY_BYTES + 4 * (len(place["key"]) + sum(map(len, place["namespace"])))


def _size_of_entry(new: tuple[FullKey, Document]) -> int:
    return _size_of_key(new) + len(new[1]["data"])


def _name_of(named: tuple[FullKey, Document]) -> str:
    return f"node cache entry {named[0]}"
