"""The type `http`: the options of saver, store and cache as a file has them, for agents without AWS access."""

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, SecretStr

from .._format.limits import CACHE_RETRY_SECONDS, RETRY_SECONDS
from ..base_saver import CACHE_BYTES
from ..errors import CheckpointerInputError
from ..http import HttpCache, HttpCheckpointSaver, HttpStore
from ..http.node_cache import CACHE_TIMEOUT_SECONDS
from ..http.transport import TIMEOUT_SECONDS
from ..version import requirement
from . import fields
from .serde import Serde, made_serde


class AuthOptions(fields.Alternatives):
    """Credentials: a bearer token, or a file that has one."""

    alternatives = ("token", "token_file")

    token: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="The token itself, from the environment as ${...}; never shown.",
    )
    token_file: str | None = Field(
        default=None,
        min_length=1,
        description="The path of a file with the token. It is read again when the gateway refuses the token.",
    )


class ConnectionOptions(fields.Options):
    """The options of the connection to a gateway."""

    other_names: ClassVar[Mapping[str, str]] = {
        "encryption_key": "a client of the gateway cannot encrypt: give the key to the service, as encryption_key of"
        " its checkpointer"
    }

    url: fields.Address = Field(description="The gateway's address, such as `https://gateway.example`.")
    auth: AuthOptions | None = Field(
        default=None,
        description="The credentials: a bearer token, a function that returns one, or an `httpx.Auth`. In a"
        " configuration, `token` or `token_file`.",
    )
    timeout: fields.Seconds = Field(
        default=TIMEOUT_SECONDS, description="Seconds to wait for the next piece of a response."
    )
    retry_seconds: fields.SecondsOrZero = Field(
        default=RETRY_SECONDS,
        description="For how many seconds to retry a request that gets no response, or one that says to retry; 0 sends"
        " each once.",
    )
    allow_http: bool = Field(
        default=False,
        description="Whether to send `auth` over http:// to another machine. Everybody on the way can read it.",
    )
    ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="The path of a file with the CA certificates to trust, by default certifi's.",
    )
    proxy: SecretStr | None = Field(
        default=None, description="The address of a proxy, by default the environment's. Never shown."
    )
    headers: dict[str, SecretStr] | None = Field(
        default=None, description="Headers of every request, by their names. Never shown."
    )
    on_event: fields.OnEvent = None


class HttpOptions(ConnectionOptions):
    """The options of `HttpCheckpointSaver`."""

    thread_prefix: str = Field(
        default="",
        description="The prefix of every thread id and owner in the table, such as `acme/` with a token of the tenant"
        " `acme`. The agent uses ids and names without it.",
    )
    serde: Serde | None = Field(
        default=None,
        description="The serializer, by default LangGraph's `JsonPlusSerializer` in strict mode. That creates only"
        " harmless types and those that `with_allowlist` adds, because others may have written the stored bytes."
        " LangGraph adds the types of the graph's schema if `LANGGRAPH_STRICT_MSGPACK=true` is set. Otherwise name"
        " yours: `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.",
    )
    cache_bytes: fields.NotNegative = Field(
        default=CACHE_BYTES,
        description="The maximum memory for the values of the newest checkpoint of recent threads, in bytes. They save"
        " transfer: only what is new in a value is sent, and known values are not received again.",
    )
    owner_from: fields.OwnerFrom = None


class HttpStoreOptions(ConnectionOptions, fields.StoreOptions):
    """The options of `HttpStore`."""

    index: fields.DistanceIndexOptions | None = Field(
        default=None,
        description="Lets the store embed texts and search by similarity. Takes `dims`, `embed` and `fields` of"
        " LangGraph's `IndexConfig`, and `distance_type`: `cosine`, `l2` or `inner_product`. The client embeds, and the"
        " gateway compares.",
    )


class HttpCacheOptions(ConnectionOptions):
    """The options of `HttpCache`."""

    timeout: fields.Seconds = Field(
        default=CACHE_TIMEOUT_SECONDS, description="Seconds to wait for the next piece of a response."
    )
    retry_seconds: fields.SecondsOrZero = Field(
        default=CACHE_RETRY_SECONDS,
        description="For how many seconds to retry a request; then it is a miss.",
    )
    serde: Serde | None = Field(
        default=None,
        description="The serializer, by default LangGraph's `JsonPlusSerializer` in strict mode. Of an object of"
        " any other type, a run that finds the value cached gets the fields as a dict. So name the types of your nodes'"
        " results: `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.",
    )
    prefix: fields.CachePrefix = ()


# The constructors take these in another form.
_OWN = ("auth", "ca_file", "proxy", "headers", "serde", "on_event", "index", "ttl")


def _made_saver(options: HttpOptions) -> HttpCheckpointSaver:
    serde = made_serde(options.serde, is_strict=True)
    return _made(HttpCheckpointSaver, options, serde=serde)


def _made_store(options: HttpStoreOptions) -> HttpStore:
    return _made(HttpStore, options, **options.configs())


def _made_cache(options: HttpCacheOptions) -> HttpCache[Any]:
    return _made(HttpCache[Any], options, serde=made_serde(options.serde, is_strict=True))


def _made(constructor: Callable[..., fields.Made], options: ConnectionOptions, **more: Any) -> fields.Made:
    """Make an object from its options, without a request.

    Raises:
        OptionError, CheckpointerInputError: An option cannot be used.
    """
    given = {name: getattr(options, name) for name in options.model_fields_set - {*_OWN}} | more
    given["on_event"] = fields.made_function("on_event", options.on_event)
    return constructor(auth=_auth(options.auth), client_options=_client_options(options), **given)


def _auth(options: AuthOptions | None) -> Any:
    if options is None:
        return None
    if options.token_file is not None:
        return partial(_read_token, options.token_file)
    return None if options.token is None else options.token.get_secret_value()


def _read_token(name: str) -> str:
    try:
        return Path(name).expanduser().read_text(encoding="utf-8").strip()
    except OSError as error:
        msg = f"auth.token_file names the file {name}, which cannot be read: {error.strerror}"
        raise CheckpointerInputError(msg) from error


def _client_options(options: ConnectionOptions) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if options.headers is not None:
        given["headers"] = {name: each.get_secret_value() for name, each in options.headers.items()}
    if options.proxy is not None:
        given["proxy"] = options.proxy.get_secret_value()
    if options.ca_file is not None:
        try:
            given["verify"] = ssl.create_default_context(cafile=Path(options.ca_file).expanduser())
        except OSError as error:
            says = f"names a file that cannot be used: {error.strerror or error}"
            raise fields.OptionError("ca_file", says) from error
    return given


_INSTALL = requirement("http")
TYPES = {
    ("http", "checkpointer"): fields.ComponentType(HttpOptions, _made_saver, _INSTALL),
    ("http", "store"): fields.ComponentType(HttpStoreOptions, _made_store, _INSTALL),
    ("http", "cache"): fields.ComponentType(HttpCacheOptions, _made_cache, _INSTALL),
}
