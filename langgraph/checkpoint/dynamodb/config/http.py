"""The type `http`: the options of saver, store and cache as a file has them, for agents without AWS access."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr

from langgraph.checkpoint.dynamodb._format.limits import CACHE_RETRY_SECONDS, RETRY_SECONDS
from langgraph.checkpoint.dynamodb.config.fields import Seconds, SecondsOrZero, made_function, split
from langgraph.checkpoint.dynamodb.config.serde import made_serde
from langgraph.checkpoint.dynamodb.config.storage import (
    EventOptions,
    SaverOptions,
    SerializerOptions,
    openers,
)
from langgraph.checkpoint.dynamodb.config.stores import DistanceIndexOptions, StoreOptions
from langgraph.checkpoint.dynamodb.config.types import (
    Alternatives,
    CacheType,
    CheckpointerType,
    Made,
    OptionError,
    Options,
    StoreType,
)
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore, SigV4
from langgraph.checkpoint.dynamodb.http.cache import CACHE_TIMEOUT_SECONDS
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS


class AuthOptions(Alternatives):
    """Credentials: a bearer token, a file that has one, or AWS's signature."""

    alternatives = ("token", "token_file", "sigv4")

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
    sigv4: Literal["lambda", "execute-api"] | None = Field(
        default=None,
        description="AWS's signature by the credentials that boto3 finds: lambda for a function URL, execute-api for"
        " API Gateway.",
    )
    region_name: str | None = Field(
        default=None, min_length=1, description="The region for sigv4; otherwise as boto3 finds it."
    )


class ConnectionOptions(Options):
    """The options of the connection to a gateway."""

    url: str = Field(
        pattern="^https?://[^/]", description="The gateway's address, such as https://gateway.example."
    )
    auth: AuthOptions | None = Field(
        default=None, description="Credentials: one of token, token_file and sigv4 (with region_name)."
    )
    timeout: Seconds = Field(
        default=TIMEOUT_SECONDS, description="Seconds to wait for the next piece of an answer."
    )
    retry_seconds: SecondsOrZero = Field(
        default=RETRY_SECONDS,
        description="The seconds for which to retry a request that gets no answer, or one that says to retry.",
    )
    allow_http: bool = Field(
        default=False,
        description="Whether to send credentials over http:// to another machine. Anybody on the way can read them.",
    )
    ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="The path of a file with the CA certificates to trust for the gateway.",
    )
    proxy: SecretStr | None = Field(
        default=None, description="The address of a proxy; by default from the environment. Never shown."
    )
    headers: dict[str, SecretStr] | None = Field(
        default=None, description="Headers of every request, by their names; never shown."
    )


class HttpOptions(ConnectionOptions, SaverOptions):
    """The options of `HttpCheckpointSaver`'s constructor, `encryption_key`, and options of the connection."""

    thread_prefix: str = Field(
        default="",
        description="A prefix for every thread id in the table, such as acme/ with a token of the tenant acme.",
    )


class HttpStoreOptions(ConnectionOptions, StoreOptions, EventOptions):
    """The options of `HttpStore`'s constructor, and of the connection."""

    index: DistanceIndexOptions | None = Field(
        default=None, description="Makes the store search by similarity: dims, embed, fields, distance_type."
    )


class HttpCacheOptions(ConnectionOptions, SerializerOptions):
    """The options of `HttpCache`'s constructor, `encryption_key`, and options of the connection."""

    timeout: Seconds = Field(
        default=CACHE_TIMEOUT_SECONDS, description="Seconds to wait for the next piece of an answer."
    )
    retry_seconds: SecondsOrZero = Field(
        default=CACHE_RETRY_SECONDS,
        description="The seconds for which to retry a request; then it is a miss.",
    )
    prefix: Annotated[tuple[str, ...], BeforeValidator(split)] = Field(
        default=(),
        description="Labels in front of every namespace, such as the tenant.",
    )


# The constructors take these in another form.
_OWN = ("auth", "ca_file", "proxy", "headers", "serde", "encryption_key", "on_event", "index", "ttl")


def _made_saver(options: HttpOptions) -> HttpCheckpointSaver:
    serde = made_serde(options.serde, options.encryption_key, is_strict=True)
    return _made(HttpCheckpointSaver, options, options.on_event, serde=serde)


def _made_store(options: HttpStoreOptions) -> HttpStore:
    return _made(HttpStore, options, options.on_event, index=options.index_config(), ttl=options.ttl_config())


def _made_cache(options: HttpCacheOptions) -> HttpCache[Any]:
    serde = made_serde(options.serde, options.encryption_key)
    return _made(HttpCache[Any], options, options.on_event, serde=serde)


def _made(constructor: Callable[..., Made], options: ConnectionOptions, on_event: Any, **more: Any) -> Made:
    """Make an object from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError: An option cannot be used.
    """
    given = {name: getattr(options, name) for name in options.model_fields_set - {*_OWN}} | more
    given["on_event"] = made_function("on_event", on_event)
    try:
        return constructor(auth=_auth(options.auth), client_options=_client_options(options), **given)
    except CheckpointerInputError as error:
        # The message begins with the option's name, unless it is about the token.
        name, _, says = str(error).partition(" ")
        if name not in type(options).model_fields:
            name, says = "auth" if "auth=" in str(error) else "headers", str(error)
        raise OptionError(name, says) from error


def _auth(options: AuthOptions | None) -> Any:
    if options is None:
        return None
    if options.token is not None:
        return options.token.get_secret_value()
    if options.token_file is not None:
        return partial(_read_token, options.token_file)
    return SigV4(options.sigv4 or "lambda", options.region_name)


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
            raise OptionError("ca_file", says) from error
    return given


_INSTALL = '"langgraph-dynamodb[http]"'
CHECKPOINTER = CheckpointerType(HttpOptions, *openers(_made_saver), install=_INSTALL)
STORE = StoreType(HttpStoreOptions, *openers(_made_store), install=_INSTALL)
CACHE = CacheType(HttpCacheOptions, *openers(_made_cache), install=_INSTALL)
