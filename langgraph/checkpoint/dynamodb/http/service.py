"""The base of `HttpCheckpointSaver`, `HttpStore` and `HttpCache`: a transport, and the service's own description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._runtime.events import Accounting, Events, Observer, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import check_on_event
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, result
from langgraph.checkpoint.dynamodb._runtime.transport_owner import TransportOwner
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.http.documents import size_of
from langgraph.checkpoint.dynamodb.http.options import Auth
from langgraph.checkpoint.dynamodb.http.transport import Transport

Document: TypeAlias = Mapping[str, Any]

WIRE_VERSION = 2
# What a request has beside its values, and what base64 or msgpack add to them.
_REST_BYTES = 64 << 10


def ask(endpoint: str, document: Document) -> Op[Any]:
    """Send a document to an endpoint and return the document of the response."""
    outcomes = yield (Call(endpoint, document),)
    return result(outcomes[0])


@dataclass(frozen=True)
class About:
    """The service's description of itself."""

    features: frozenset[str]
    """The fields of requests that it knows beyond the first release of the wire."""
    decompressed_bytes_max: int
    """The largest request, before it is compressed."""
    owner: str | None
    """The owner that the credentials are bound to."""


@dataclass
class Service:
    """One service, as far as a process knows it."""

    _about: About | None = field(default=None, init=False)

    def about(self) -> Op[About]:
        """Return the service's description of itself. The first call of a process asks for it.

        Raises:
            CheckpointerConfigurationError: The service speaks another version of the wire.
        """
        if self._about is None:
            answer = yield from ask("about", {})
            if answer["wire_version"] != WIRE_VERSION:
                msg = (
                    f"the gateway speaks version {answer['wire_version']} of the wire format, and this client"
                    f" {WIRE_VERSION}; use releases of langgraph-dynamodb that speak the same"
                )
                raise CheckpointerConfigurationError(msg)
            self._about = About(
                frozenset(answer["features"]), answer["limits"]["decompressed_bytes_max"], answer["owner"]
            )
        return self._about

    def fitting(self, document: Document, what: str) -> Op[Document]:
        """Return a request's document, if the service takes one of its size.

        Raises:
            CheckpointerInputError: It is too large; the message says what is, and what to change.
        """
        about, size = (yield from self.about()), size_of(document)
        if size > max(about.decompressed_bytes_max - _REST_BYTES, about.decompressed_bytes_max // 2):
            msg = (
                f"{what} has {size:,} bytes, and the gateway takes requests of {about.decompressed_bytes_max:,}; keep"
                " less in the state, for example files in S3, or raise body_bytes_max and decompressed_bytes_max in the"
                " gateway's limits as far as its host allows"
            )
            raise CheckpointerInputError(msg)
        return document


class ServiceClient(TransportOwner):
    """An object that reaches the table through a gateway. As a context manager it closes its connections."""

    def _connect(
        self,
        url: str,
        *,
        auth: Auth,
        timeout: float,
        retry_seconds: float,
        allow_http: bool,
        client_options: Mapping[str, Any] | None,
        on_event: OnEvent | Events | None,
        accounting: Accounting,
        events_prefix: str = "",
    ) -> None:
        """Check the options of the connection. Nothing is opened before the first request.

        Raises:
            CheckpointerInputError: An option has a value that cannot be used.
        """
        check_on_event(on_event)
        transport = Transport(
            url,
            auth=auth,
            timeout=timeout,
            retry_seconds=retry_seconds,
            allow_http=allow_http,
            client_options=client_options,
            asks_units=on_event is not None,
        )
        self._own(
            transport, None if on_event is None else Observer(on_event, accounting, None, events_prefix)
        )
        self._service = Service()
