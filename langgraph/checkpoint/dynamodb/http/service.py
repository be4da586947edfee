"""The base of `HttpCheckpointSaver`, `HttpStore` and `HttpCache`: a transport, and what the service takes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langgraph.checkpoint.dynamodb._format.wire import WIRE_VERSION
from langgraph.checkpoint.dynamodb._runtime.events import Meter, Observer
from langgraph.checkpoint.dynamodb._runtime.options import check_on_event, refuse_unknown
from langgraph.checkpoint.dynamodb._runtime.requests import grouped
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, result
from langgraph.checkpoint.dynamodb._runtime.transport_owner import TransportOwner
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.http.documents import Document, packed, size_of
from langgraph.checkpoint.dynamodb.http.options import GatewayKeywords
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport

T = TypeVar("T")

# What a request has beside its values, and what base64 or msgpack add to them.
_REST_BYTES = 64 << 10
# What surrounds the memories or cached nodes of a request.
_FRAME_BYTES = 1_000
# How many memories or cached nodes a request may have.
_MANY_MAX = 250
# Every gateway takes this much, so that a small request needs no look at the limits.
_BODY_BYTES_SAFE = 500_000
# No more goes into one request, unless one thing alone is larger.
_TOGETHER_BYTES_MAX = 4_000_000
_THREADS = ("thread_id", "source_thread_id", "target_thread_id")
_MANY = ("ops", "records", "keys", "entries")
_LABELS = ("namespace", "namespace_prefix", "prefix")


def ask(endpoint: str, document: Document) -> Op[Any]:
    """Send a document to an endpoint and return the document of the response."""
    outcomes = yield (Call(endpoint, document),)
    return result(outcomes[0])


@dataclass
class Service:
    """One service, as far as a process knows it."""

    _about: Document = field(default_factory=dict, init=False)

    def about(self) -> Op[Document]:
        """Return the service's description of itself. The first call of a process asks for it.

        Raises:
            CheckpointerConfigurationError: The service speaks another version of the wire.
        """
        if not self._about:
            answer = yield from ask("about", {})
            if answer["wire_version"] != WIRE_VERSION:
                msg = (
                    f"the gateway speaks version {answer['wire_version']} of the wire format, and this client"
                    f" {WIRE_VERSION}; use releases of langgraph-dynamodb that speak the same"
                )
                raise CheckpointerConfigurationError(msg)
            self._about = answer
        return self._about

    def _bytes_max(self) -> Op[int]:
        """Return the size of the largest request, before it is compressed."""
        return int((yield from self.about())["limits"]["decompressed_bytes_max"])

    def fitting(self, document: Document, what: str) -> Op[Document]:
        """Return a request's document, if the service takes one of its size.

        Raises:
            CheckpointerInputError: It is too large; the message says what is, and what to change.
        """
        bytes_max = yield from self._bytes_max()
        _check_size(size_of(document), max(bytes_max - _REST_BYTES, bytes_max // 2), what)
        return document

    def groups(self, things: Mapping[T, Document], name_of: Callable[[T], str]) -> Op[list[list[T]]]:
        """Return groups of things whose documents fit into one request.

        Raises:
            CheckpointerInputError: One of them is too large for any request, or cannot be sent.
        """
        sizes = {each: len(packed(document)) for each, document in things.items()}
        bytes_max = _BODY_BYTES_SAFE
        if sum(sizes.values()) > bytes_max:
            bytes_max = (yield from self._bytes_max()) - _FRAME_BYTES
        for each, size in sizes.items():
            _check_size(size, bytes_max, name_of(each))
        together = min(bytes_max, _TOGETHER_BYTES_MAX)
        return [each for each in grouped(list(sizes), sizes.__getitem__, together, _MANY_MAX) if each]


def _check_size(size: int, bytes_max: int, what: str) -> None:
    if size > bytes_max:
        msg = (
            f"{what} has {size:,} bytes, and {bytes_max:,} fit into a request to this gateway; make it smaller,"
            " for example with files in S3, or raise body_bytes_max and decompressed_bytes_max in the gateway's limits"
            " as far as its host allows"
        )
        raise CheckpointerInputError(msg)


class GatewayAccounting:
    """Knows the documents of requests to a gateway: their threads, tenants, units and bytes."""

    def __init__(self, *, has_tenants: bool = True) -> None:
        """Take whether the first label of a namespace names a tenant."""
        self._has_tenants = has_tenants

    def prepared(self, call: Call) -> Call:
        """Return the request: the transport's header asks for its units."""
        return call

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads that a request names, as the table has them."""
        named = [call.params[each] for each in _THREADS if call.params.get(each) is not None]
        return [*named, *call.params.get("thread_ids", ())]

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return the first labels of the namespaces that a request names."""
        return set(_labels_in(call.params)) if self._has_tenants else ()

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count units, and bytes of documents."""
        units = response.get("units") or {}
        if units.get("read") is not None:
            meter.read_units = (meter.read_units or 0.0) + units["read"]
        if units.get("write") is not None:
            meter.write_units = (meter.write_units or 0.0) + units["write"]
        meter.bytes_written += len(packed(call.params))
        meter.bytes_read += len(packed(response))


def _labels_in(params: Mapping[str, Any]) -> Iterator[str]:
    for each in (params, *(inner for name in _MANY for inner in params.get(name, ()))):
        for name in _LABELS:
            yield from (each.get(name) or ())[:1]


class ServiceClient(TransportOwner):
    """An object that reaches the table through a gateway. As a context manager it closes its connections."""

    def _connect(
        self,
        url: str,
        options: GatewayKeywords,
        *,
        timeout: float,
        retry_seconds: float,
        accounting: GatewayAccounting,
        events_prefix: str = "",
    ) -> None:
        """Check the options of the connection. Nothing is opened before the first request.

        Raises:
            CheckpointerInputError: An option has a value that cannot be used.
            TypeError: The constructor does not have an option.
        """
        refuse_unknown(type(self), options.keys() - GatewayKeywords.__annotations__.keys(), GatewayKeywords)
        on_event = options.get("on_event")
        check_on_event(on_event)
        transport = GatewayTransport(
            url,
            auth=options.get("auth"),
            timeout=timeout,
            retry_seconds=retry_seconds,
            allow_http=options.get("allow_http", False),
            client_options=options.get("client_options"),
            asks_units=on_event is not None,
        )
        self._own(
            transport, None if on_event is None else Observer(on_event, accounting, None, events_prefix)
        )
        self._service = Service()
