"""Checks of the client's options, before anything is opened. Messages say what to pass instead, and show no secret."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict
from urllib.parse import SplitResult, urlsplit

from .._runtime.fork import without_forks
from ..errors import CheckpointerInputError

if TYPE_CHECKING:
    import httpx

    from .._runtime.events import Events, OnEvent

Auth: TypeAlias = "str | Callable[[], str] | httpx.Auth | None"
"""A bearer token, a function that returns one, or an httpx authorization."""


class GatewayKeywords(TypedDict, total=False):
    """The options that the constructors of the gateway's clients hand on. `config/http.py` describes them."""

    auth: Auth
    allow_http: bool
    client_options: Mapping[str, Any] | None
    on_event: OnEvent | Events | None


# The keyword arguments of httpx's clients that callers may set.
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_CLIENT_OPTIONS = ("headers", "http2", "proxy", "trust_env", "verify")


def checked_url(value: Any, *, has_auth: bool, allow_http: bool) -> str:
    """Return the gateway's address without a trailing slash; raise if it is not one, or would expose a secret."""
    parts = _parts(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise CheckpointerInputError(
            'url is not the address of a gateway; begin it with https://, such as "https://gateway.example"'
        )
    # Parsing drops these, and the address would still have them.
    if not value.isprintable() or value != value.strip():
        msg = "url has spaces around it or characters that cannot be sent; if it comes from a file, strip it"
        raise CheckpointerInputError(msg)
    # A query may be empty, and endpoints would still come behind it.
    if parts.username is not None or "?" in value or "#" in value:
        msg = "url has a user, a password, a query or a fragment in it; remove them, and pass credentials as auth="
        raise CheckpointerInputError(msg)
    if has_auth and parts.scheme == "http" and not allow_http and not _is_here(parts.hostname):
        msg = (
            f"url is {value}, where everybody on the way could read what auth= gives; use https, or pass"
            " allow_http=True where the network is your own"
        )
        raise CheckpointerInputError(msg)
    return str(value).rstrip("/")


def _parts(value: Any) -> SplitResult | None:
    if not isinstance(value, str):
        return None
    try:
        parts = urlsplit(value)
        # The port is parsed only when it is accessed, and the name is encoded only when it is looked up.
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    return parts


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_prefix(value: Any) -> None:
    """Raise if a value cannot be the prefix of threads."""
    if not isinstance(value, str):
        msg = f'thread_prefix is {value!r}; give text such as "acme/", or "" for none'
        raise CheckpointerInputError(msg)


def check_auth(value: Any) -> None:
    """Raise if a value is not a kind of authorization."""
    if isinstance(value, str):
        checked_token(value)
        return
    httpx_auth = getattr(sys.modules.get("httpx"), "Auth", ())
    if value is None or isinstance(value, httpx_auth):
        return
    if isinstance(value, type) or not callable(value):
        msg = f"auth is a {type(value).__name__}; give a token, a function that returns one, or an httpx.Auth"
        raise CheckpointerInputError(msg)


def checked_token(value: Any) -> str:
    """Return a token; raise if it cannot be part of a header, without showing it."""
    if not isinstance(value, str) or not value or not all("!" <= each <= "~" for each in value):
        msg = (
            "the token of auth= cannot be sent: it must be ASCII text without spaces or line breaks; if it comes from a"
            " file, strip it"
        )
        raise CheckpointerInputError(msg)
    return value


def checked_client_options(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return keyword arguments for httpx's clients; raise if one is unknown or cannot be set here."""
    options = dict(value or {})
    for name in options:
        if name not in _CLIENT_OPTIONS:
            msg = f"client_options has no option {name!r}; use one of {', '.join(_CLIENT_OPTIONS)}"
            raise CheckpointerInputError(msg)
    for name, text in dict(options.get("headers") or {}).items():
        # httpx would show the header's value in its own error.
        if not isinstance(text, str) or not (text.isascii() and text.isprintable()):
            msg = f"client_options has a header {name!r} with characters that are not allowed; use printable ASCII"
            raise CheckpointerInputError(msg)
    if options.get("proxy") is not None and not _is_proxy(options["proxy"]):
        # httpx would show the address, with the password in it.
        msg = (
            "proxy is not the address of a proxy; give one such as http://user:password@proxy.example:8080, with"
            " special characters of the password percent-encoded"
        )
        raise CheckpointerInputError(msg)
    return options


def _is_proxy(value: Any) -> bool:
    """Tell whether httpx can use a value as a proxy: an address, or an object of its own."""
    with without_forks():
        import httpx  # noqa: PLC0415 - importing the saver should cost little.

    if isinstance(value, httpx.Proxy):
        value = value.url
    try:
        url = httpx.URL(value)
    except (httpx.InvalidURL, TypeError, ValueError):
        return False
    # What follows the port may be the rest of a password, and a proxy has nothing there.
    has_end = url.raw_path != b"/" or bool(url.fragment)
    return url.scheme in _PROXY_SCHEMES and url.host != "" and (url.port or 0) <= 65_535 and not has_end
