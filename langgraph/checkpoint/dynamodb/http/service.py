"""The base of saver, store and cache through the gateway: a transport, values, and what fits into a request."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .._format.codec import Codec, UnreadableError
from .._format.wire import WIRE_VERSION
from .._runtime import events, requests
from .._runtime.drivers import TransportOwner
from .._runtime.options import check_on_event, check_serde, refuse_unknown
from .._runtime.steps import Call, Op, result
from ..errors import CheckpointerConfigurationError, CheckpointerInputError
from ..gateway import opaque, serving
from ..gateway.call import MANY_MAX
from .exchange import asked_in, call_to, encoded, size_of
from .transport import GatewayKeywords, GatewayTransport


def client_serde(serde: SerializerProtocol | None) -> SerializerProtocol:
    """Return a client's serializer: by default LangGraph's in strict mode, since others may write what it reads."""
    check_serde(serde)
    serde = JsonPlusSerializer(allowed_msgpack_modules=None) if serde is None else serde
    codec_of(serde)
    return serde


def codec_of(serde: SerializerProtocol) -> Codec:
    """Return the codec of a client's serializer."""
    codec = Codec(serde)
    if codec.encrypts:
        msg = (
            f"serde is a {type(serde).__name__}, and a client of the gateway cannot encrypt: all of a value would be"
            " new to the service whenever a part of it changes. Give the key to the service, as encryption_key of its"
            " checkpointer (`langgraph-dynamodb docs encrypt`), and the client a serde without a cipher"
        )
        raise CheckpointerConfigurationError(msg)
    return codec


def dumped(codec: Codec, value: Any, what: str, path: str = "value") -> opaque.SentValue:
    """Serialize a value, and return it as requests have it."""
    return opaque.SentValue(*codec.dumps(value, what, path))


def loaded(codec: Codec, value: opaque.Value | opaque.SentValue, what: str) -> Any:
    """Deserialize a value of a response."""
    try:
        return codec.loads_typed((value.type, data_of(value)))
    except Exception as error:
        msg = (
            f"{what} is intact, but the saver's serde cannot read its {value.type!r} data ({error}); give the"
            " saver the serde that it was written with"
        )
        raise UnreadableError(msg) from error


def data_of(value: opaque.Value | opaque.SentValue) -> bytes:
    """Return the data of a value that is complete."""
    if value.data is None:
        raise ValueError("the response has no data of it")
    return value.data


P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")

# What a request has beside its values.
_REST_BYTES = 64 << 10
# What surrounds the memories or cached nodes of a request.
_FRAME_BYTES = 1_000
# No more goes into one request, unless one thing alone is larger.
_TOGETHER_BYTES_MAX = 4_000_000


@dataclass
class Service:
    """One service, as far as a process knows it."""

    prefix: str = ""
    """The beginning of thread ids and owners in the table, which the agent does not know: a tenant and a slash."""
    _about: dict[str, Any] = field(default_factory=dict, init=False)

    def ask(
        self, function: Callable[Concatenate[serving.Serving, P], Op[T]], /, *args: P.args, **named: P.kwargs
    ) -> Op[T]:
        """Call a function of the service, and return what it returns. See `call_to`."""
        return self.send(call_to(function, self.prefix, *args, **named))

    def send(self, call: Call) -> Op[Any]:
        """Send a call, if the service speaks this version; return its result."""
        yield from self.about()
        outcomes = yield (call,)
        return result(outcomes[0])

    def outside(self, thread_id: str) -> str:
        """Return the id of a thread as the agent has it; the empty text for one of another prefix."""
        return thread_id.removeprefix(self.prefix) if thread_id.startswith(self.prefix) else ""

    def about(self) -> Op[dict[str, Any]]:
        """Return the service's description of itself. The first call of a process asks for it."""
        if not self._about:
            outcomes = yield (Call("about", {}),)
            response = result(outcomes[0])
            if response["wire_version"] != WIRE_VERSION:
                msg = (
                    f"the gateway speaks version {response['wire_version']} of the wire format, and this client"
                    f" {WIRE_VERSION}; use releases of langgraph-dynamodb that speak the same"
                )
                raise CheckpointerConfigurationError(msg)
            self._about = response
        return self._about

    def _bytes_max(self) -> Op[int]:
        """Return the size of the largest request, before it is compressed."""
        return int((yield from self.about())["limits"]["decompressed_bytes_max"])

    def check_fit(self, sent: Any, what: str) -> Op[None]:
        """Raise if the values of a request are too large for the service."""
        bytes_max = yield from self._bytes_max()
        # Base64 takes four characters for three bytes.
        _check_size(size_of(sent) * 4 // 3, max(bytes_max - _REST_BYTES, bytes_max // 2), what)

    def groups(self, things: Mapping[K, Any], name_of: Callable[[K], str]) -> Op[list[list[K]]]:
        """Return groups of things that fit into one request."""
        sizes = {each: len(encoded(thing)) for each, thing in things.items()}
        bytes_max = (yield from self._bytes_max()) - _FRAME_BYTES
        for each, size in sizes.items():
            _check_size(size, bytes_max, name_of(each))
        together = min(bytes_max, _TOGETHER_BYTES_MAX)
        return [each for each in requests.grouped(list(sizes), sizes.__getitem__, together, MANY_MAX) if each]


def _check_size(size: int, bytes_max: int, what: str) -> None:
    if size > bytes_max:
        msg = (
            f"{what} has {size:,} bytes, and {bytes_max:,} fit into a request to this gateway; make it smaller,"
            " for example with files in S3, or raise body_bytes_max and decompressed_bytes_max in the gateway's limits"
            " as far as its host allows"
        )
        raise CheckpointerInputError(msg)


class GatewayAccounting:
    """Knows the calls of a gateway: their threads, tenants and bytes. Only the gateway knows their units."""

    def __init__(self, *, has_tenants: bool) -> None:
        """Take whether the first label of a namespace names a tenant."""
        self._has_tenants = has_tenants

    def prepared(self, call: Call) -> Call:
        """Return the request."""
        return call

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads that a request names, as the table has them."""
        asked = asked_in(call)
        return () if asked is None else asked.inside.named

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return the first labels of the namespaces that a request names."""
        asked = asked_in(call)
        return asked.inside.tenants if asked is not None and self._has_tenants else ()

    def count(self, meter: events.Meter, call: Call, response: Any) -> None:
        """Count the bytes of requests and responses, before they are compressed."""
        del response
        asked = asked_in(call)
        if asked is not None:
            meter.bytes_written += asked.sent_bytes
            meter.bytes_read += asked.received_bytes


class ServiceClient(TransportOwner):
    """An object that reaches the table through a gateway. As a context manager it closes its connections."""

    def _connect(
        self,
        url: str,
        options: GatewayKeywords,
        *,
        events_prefix: str = "",
        thread_prefix: str = "",
        has_tenants: bool = True,
    ) -> None:
        """Check the options of the connection. Nothing is opened before the first request."""
        refuse_unknown(type(self), options.keys() - GatewayKeywords.__annotations__.keys(), GatewayKeywords)
        of_transport: dict[str, Any] = {**options}
        on_event = of_transport.pop("on_event", None)
        check_on_event(on_event)
        accounting = GatewayAccounting(has_tenants=has_tenants)
        self._own(
            GatewayTransport(url, **of_transport),
            None if on_event is None else events.Observer(on_event, accounting, None, events_prefix),
        )
        self._service = Service(thread_prefix)
