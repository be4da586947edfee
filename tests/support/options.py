"""Each option of saver, store and cache, on the table and through the gateway, with values it takes and refuses.

An option of the same name is the same option in each class, so it has one row here. The tests find the names in the
constructors' signatures: a new option needs a row in both tables.
"""

import math
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import aioboto3
import aiobotocore.session
import boto3
import botocore.session
import httpx
from botocore.config import Config
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._runtime.options import _METHODS
from langgraph.checkpoint.dynamodb.observe import Event, Events
from tests.support.observed import Collected
from tools.options import CLASSES, parameters

EACH_OPTION = [(kind, name) for kinds in CLASSES.values() for kind in kinds for name in parameters(kind)]
REGION: dict[str, Any] = {"region_name": "us-east-1"}
PRIVATE = "that-nobody-may-see"
URL = "https://gateway.example"


class Plain:
    """A class that has nothing to do with AWS."""


class SessionOfMine:
    """A session in the place of boto3's, of which nothing but clients is known."""

    def client(self, service: Any, **options: Any) -> Any:
        """Make a client."""
        return boto3.Session().client(service, **options)


ClientOfMine = type("ClientOfMine", (), dict.fromkeys(_METHODS, print))


def boto3_client(service: str = "dynamodb") -> Any:
    """Return a client of a service."""
    return boto3.Session().client(cast("Any", service), **REGION)


def _boto3_table() -> Any:
    return boto3.resource("dynamodb", **REGION).Table("the-table")


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts by their lengths."""
    return [[1.0, float(len(each))] for each in texts]


# Functions of events


class Waits:
    """A class whose objects would have to be awaited."""

    async def __call__(self, event: Event) -> None:
        """Do nothing."""

    async def receive(self, event: Event) -> None:
        """Do nothing."""


async def _receive(event: Event) -> None:
    """Do nothing."""


async def _receive_one_by_one(event: Event) -> AsyncGenerator[Event]:
    yield event


def _yields(event: Event) -> Iterator[Event]:
    yield event


# By option: what the error says, and the values of which it is said. Partials make the value when the test runs.
Wrong: TypeAlias = Mapping[str, Sequence[Any]]
_FLAG: Wrong = {"give True or False": ["false", 1, 0, "", None]}
_WHOLE: Wrong = {"give a whole number of bytes": [-1, 1.5, True, "1", None]}
_INDEX: dict[str, Any] = {"dims": 2, "embed": embed}
_NO_TABLES = [
    "",
    None,
    1,
    ["the-table"],
    b"the-table",
    str,
    *["mm", "tables/one", "arn:"],
    "the table",
    "a" * 256,
]
_NO_PROXIES = f"""user:{PRIVATE}@proxy.example:8080 {PRIVATE}@proxy.example ftp://me:{PRIVATE}@proxy.example
http://me:{PRIVATE}@ http://me:{PRIVATE}@proxy.example:port http://me:{PRIVATE}@proxy.example:99999
http://me:12/{PRIVATE}@proxy.example http://me:12#{PRIVATE}@proxy.example""".split()
_NO_GATEWAYS = f"gateway.example ftp://gateway.example https:// {URL}:port https://gateway..example".split()
WRONG: Mapping[str, Wrong] = {
    "table_name": {"give the table's name, of 3 to 255 .* or its ARN": _NO_TABLES},
    "region_name": {"give the name of a region": ["", 1, ["eu-west-1"]]},
    "endpoint_url": {
        'begin it with http.* such as "http': ["", "localhost:8000", "http://", 8000, b"http://localhost"],
        "a user or a password in it; remove them": [f"http://me:{PRIVATE}@[::1]", f"http://[{PRIVATE}@"],
    },
    "session": {
        "the class boto3.session.Session; give a boto3.Session": [boto3.Session],
        "give .* async methods use its credentials": [aioboto3.Session(), aiobotocore.session.get_session()],
        r"give a boto3.Session\(botocore_session=": [botocore.session.Session()],
        "give a boto3.Session": ["default", {}, Plain(), partial(boto3_client)],
    },
    "client": {
        "the class .*Plain; give boto3.client": [Plain],
        r"a botocore.client.S3; give boto3.client\(\"dynamodb\"\)": [partial(boto3_client, "s3")],
        "give boto3.client": [partial(boto3_client, "dynamodbstreams"), "dynamodb", boto3, Plain()],
        "give its meta.client": [partial(boto3.resource, "dynamodb", **REGION), partial(_boto3_table)],
    },
    "client_config": {
        "give a botocore.config.Config": [{"connect_timeout": 1}, {}, Config, "standard", Plain()]
    },
    "retry_seconds": {"give a number of seconds, 0 or more": [-1, "5", True, None, math.inf, math.nan]},
    "serde": {"give an object with dumps_typed": ["msgpack", {}, Plain(), JsonPlusSerializer]},
    "allow_unencrypted": _FLAG,
    "bound_to": {"give the table's name": ["", 1, b"table"]},
    "on_event": {
        "give a function": [1, "print", [print], Events(cast("Any", 1))],
        "give a plain function": [
            *(_receive, _receive_one_by_one, _yields, partial(partial, _receive), partial(partial, Waits())),
            *(Waits(), Waits().receive, Events(_receive), Events(print, tenant_of=cast("Any", _receive))),
        ],
        r"the class .* Collected\(\)": [Collected, Events(cast("Any", Collected))],
    },
    "ttl_seconds": {
        "a whole number of seconds from 1 to 31,622,400,000, or None": [
            *(0, -1, 1.5, True, "60", math.inf, math.nan, TTL_SECONDS_MAX + 1, 10**400)
        ]
    },
    "share_equal_pieces": _FLAG,
    "checkpoint_bytes_max": {**_WHOLE, "1 or more": [0]},
    "cache_bytes": _WHOLE,
    "owner_from": {"give the name of a key": ["", 1, b"user_id"]},
    "owner_key": {"give 16 to 64 secret bytes": [PRIVATE, b"a" * 15, b"a" * 65]},
    "index": {
        "give": [3, {"embed": embed}, {"dims": 2}],
        "dims=0; give the number": [_INDEX | {"dims": 0}],
        'no "embed"; give': [_INDEX | {"embed": None}],
        "cannot be loaded": [_INDEX | {"embed": "nobody:model"}],
        "no option 'text_fields'; use one of": [_INDEX | {"text_fields": []}],
        "distance_type='hamming'; give one of": [_INDEX | {"distance_type": "hamming"}],
        "search='approximate'; give": [_INDEX | {"search": "approximate"}],
        "fields=.*; give a list of paths": [_INDEX | {"fields": each} for each in ("text", [1])],
    },
    "ttl": {
        "give a dict": [60, "60"],
        "no option 'ttl'; use one of": [{"ttl": 1}],
        "give True or False": [{"refresh_on_read": "no"}],
        "minutes": [{"default_ttl": each} for each in (-1, 1e9, math.inf)],
    },
    "consistent_read": _FLAG,
    "search_bytes_max": {**_WHOLE, "1 or more": [0]},
    "prefix": {"give a tuple of labels": ["acme", ("",), (1,), None]},
    "url": {
        "not the address of a gateway; begin it": [None, *_NO_GATEWAYS, f"https://{'a' * 64}.example"],
        "spaces around it or characters that .* strip it": [f"{URL}\n", f" {URL}", f"{URL}/\tpath"],
        "remove them, and pass credentials as auth=": [
            *(f"{URL}/?", f"{URL}/#", f"https://me:{PRIVATE}@gateway.example"),
            *(f"{URL}/?key={PRIVATE}", f"{URL}/#{PRIVATE}"),
        ],
    },
    "auth": {
        "cannot be sent.* strip it": ["", f"{PRIVATE}\n", f"{PRIVATE} ä"],
        "is a (int|type); give a token": [7, httpx.BasicAuth],
    },
    "timeout": {"give a number of seconds, 0.001 or more": [0, "5", True, None]},
    "allow_http": _FLAG,
    "client_options": {
        "no option 'auth'; use one of headers, http2": [{"auth": PRIVATE}],
        "a header 'X-Key' with characters that are not": [{"headers": {"X-Key": f"{PRIVATE}\n"}}],
        "is not the address of a proxy; give one such as": [
            {"proxy": each}
            for each in (
                *_NO_PROXIES,
                f"http://me:{PRIVATE}\n@proxy.example",
                httpx.URL(f"//me:{PRIVATE}@x"),
                7,
            )
        ],
    },
    "thread_prefix": {"give text such as": [7, None, b"acme/"]},
}
OTHER = "other"
# By option: a value, other than the default, as a configuration has it; and as the constructor takes it, if it differs.
# `bool` is the opposite of the default.
RIGHT: Mapping[str, Any] = {
    "table_name": "the-table",
    "region_name": "eu-west-1",
    "endpoint_url": "http://localhost:8000",
    "session": boto3.Session(),
    "client": ClientOfMine(),
    "client_config": Config(),
    "retry_seconds": 7,
    "serde": type("SerializerOfMine", (JsonPlusSerializer,), {})(),
    "allow_unencrypted": bool,
    "bound_to": OTHER,
    "on_event": print,
    "ttl_seconds": 60,
    "share_equal_pieces": bool,
    "checkpoint_bytes_max": 10,
    "cache_bytes": 0,
    "owner_from": "user_id",
    "owner_key": ({"environment": "OWNER_KEY"}, b"0123456789abcdef"),
    "index": (
        {"dims": 2, "embed_function": embed, "fields": "text, more", "distance_type": "l2"},
        {"dims": 2, "embed": embed, "fields": ["text", "more"], "distance_type": "l2"},
    ),
    "ttl": {"default_ttl": 5.5, "refresh_on_read": False, "omit_expired": True, "sweep_interval_minutes": 3},
    "consistent_read": bool,
    "search_bytes_max": 11,
    "prefix": ("acme",),
    "url": "https://other.example",
    "auth": ({"token": "token"}, "token"),
    "timeout": 3.5,
    "allow_http": bool,
    # In a configuration its parts are options.
    "client_options": ({"X-Team": "support"}, {"headers": {"X-Team": "support"}}),
    "thread_prefix": "acme/",
}


def right(kind: type, name: str) -> tuple[Any, Any]:
    """Return a value of an option that is not its default, as a configuration and as the constructor has it."""
    assert name in RIGHT, f"{kind.__name__} has the option {name}, which has no row in RIGHT"
    value = RIGHT[name]
    if value is bool:
        value = not parameters(kind)[name]
    return value if isinstance(value, tuple) and len(value) == 2 else (value, value)
