"""Each option of saver, store and cache, on the table and through the gateway, with values it takes and refuses.

An option of the same name is the same option in each class, so it has one row here. The tests find the names in the
constructors' signatures: a new option needs a row in both tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

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


# By option: values that it cannot have, and what the error says of them. Partials make the value when the test runs.
_FLAG: list[tuple[list[Any], str]] = [(["false", 1, 0, "", None], "give True or False")]
_WHOLE: list[tuple[list[Any], str]] = [([-1, 1.5, True, "1", None], "give a whole number of bytes")]
_INDEX: dict[str, Any] = {"dims": 2, "embed": embed}
WRONG: Mapping[str, list[tuple[list[Any], str]]] = {
    "table_name": [
        (
            [
                "",
                None,
                1,
                ["the-table"],
                b"the-table",
                str,
                "mm",
                "a" * 256,
                "the table",
                "tables/one",
                "arn:",
            ],
            "give the table's name, of 3 to 255 .* or its ARN",
        )
    ],
    "region_name": [(["", 1, ["eu-west-1"]], "give the name of a region")],
    "endpoint_url": [
        (["", "localhost:8000", "http://", 8000, b"http://localhost"], 'begin it with http.* such as "http'),
        (
            [f"http://me:{PRIVATE}@127.0.0.1:1", f"me:{PRIVATE}@127.0.0.1:1", f"http://[{PRIVATE}@"],
            "a user or a password in it; remove them",
        ),
    ],
    "session": [
        ([boto3.Session], "the class boto3.session.Session; give a boto3.Session"),
        (
            [aioboto3.Session(), aiobotocore.session.get_session()],
            "give .* async methods use its credentials",
        ),
        ([botocore.session.Session()], r"give a boto3.Session\(botocore_session="),
        (["default", {}, Plain(), partial(boto3_client)], "give a boto3.Session"),
    ],
    "client": [
        ([Plain], "the class .*Plain; give boto3.client"),
        ([partial(boto3_client, "s3")], r"a botocore.client.S3; give boto3.client\(\"dynamodb\"\)"),
        ([partial(boto3_client, "dynamodbstreams"), "dynamodb", boto3, Plain()], "give boto3.client"),
        ([partial(boto3.resource, "dynamodb", **REGION), partial(_boto3_table)], "give its meta.client"),
    ],
    "client_config": [
        ([{"connect_timeout": 1}, {}, Config, "standard", Plain()], "give a botocore.config.Config")
    ],
    "retry_seconds": [
        ([-1, "5", True, None, float("inf"), float("nan")], "give a number of seconds, 0 or more")
    ],
    "serde": [(["msgpack", {}, Plain(), JsonPlusSerializer], "give an object with dumps_typed")],
    "allow_unencrypted": _FLAG,
    "bound_to": [(["", 1, b"table"], "give the table's name")],
    "on_event": [
        ([1, "print", [print], Events(cast("Any", 1))], "give a function"),
        (
            [
                _receive,
                _receive_one_by_one,
                _yields,
                partial(partial, _receive),
                Waits(),
                Waits().receive,
                partial(partial, Waits()),
                asyncio.Queue[Event]().put,
                Events(_receive),
                Events(print, tenant_of=cast("Any", _receive)),
            ],
            "give a plain function",
        ),
        (
            [Collected, partial(partial, Collected), Events(cast("Any", Collected))],
            r"the class .* Collected\(\)",
        ),
    ],
    "ttl_seconds": [
        (
            [0, -1, 1.5, True, "60", float("inf"), float("nan"), TTL_SECONDS_MAX + 1, 10**400],
            "give a whole number of seconds from 1 to 31,622,400,000, or None",
        )
    ],
    "share_equal_pieces": _FLAG,
    "checkpoint_bytes_max": [*_WHOLE, ([0], "1 or more")],
    "cache_bytes": _WHOLE,
    "owner_from": [(["", 1, b"user_id"], "give the name of a key")],
    "owner_key": [([PRIVATE, b"a" * 15, b"a" * 65], "give 16 to 64 secret bytes")],
    "index": [
        ([3, {"embed": embed}, {"dims": 2}], "give"),
        ([_INDEX | {"dims": 0}], "dims=0; give the number"),
        ([_INDEX | {"embed": None}], 'no "embed"; give'),
        ([_INDEX | {"text_fields": []}], "no option 'text_fields'; use one of"),
        ([_INDEX | {"distance_type": "hamming"}], "distance_type='hamming'; give one of"),
        ([_INDEX | {"search": "approximate"}], "search='approximate'; give"),
        ([_INDEX | {"fields": each} for each in ("text", [1])], "fields=.*; give a list of paths"),
    ],
    "ttl": [
        ([60, "60"], "give a dict"),
        ([{"ttl": 1}], "no option 'ttl'; use one of"),
        ([{"refresh_on_read": "no"}], "give True or False"),
        ([{"default_ttl": each} for each in (-1, 1e9, float("inf"))], "minutes"),
    ],
    "consistent_read": _FLAG,
    "search_bytes_max": [*_WHOLE, ([0], "1 or more")],
    "prefix": [(["acme", ("",), (1,), None], "give a tuple of labels")],
    "url": [
        (
            [
                *(None, "gateway.example", "ftp://gateway.example", "https://", f"{URL}:port"),
                *("https://gateway..example", f"https://{'a' * 64}.example"),
            ],
            "not the address of a gateway; begin it",
        ),
        ([f"{URL}\n", f" {URL}", f"{URL}/\tpath"], "spaces around it or characters that .* strip it"),
        (
            [
                *(f"{URL}/?", f"{URL}/#", f"https://me:{PRIVATE}@gateway.example"),
                *(f"{URL}/?key={PRIVATE}", f"{URL}/#{PRIVATE}"),
            ],
            "remove them, and pass credentials as auth=",
        ),
    ],
    "auth": [
        (["", f"{PRIVATE}\n", f"{PRIVATE} ä"], "cannot be sent.* strip it"),
        ([7, httpx.BasicAuth], "is a (int|type); give a token"),
    ],
    "timeout": [([0, "5", True, None], "give a number of seconds, 0.001 or more")],
    "allow_http": _FLAG,
    "client_options": [
        ([{"auth": PRIVATE}], "no option 'auth'; use one of headers, http2"),
        ([{"headers": {"X-Key": f"{PRIVATE}\n"}}], "a header 'X-Key' with characters that are not"),
        (
            [
                {"proxy": each}
                for each in (
                    *(
                        f"user:{PRIVATE}@proxy.example:8080",
                        f"{PRIVATE}@proxy.example",
                        f"http://me:{PRIVATE}@",
                    ),
                    *(f"ftp://me:{PRIVATE}@proxy.example", f"http://me:{PRIVATE}@proxy.example:port"),
                    *(f"http://me:{PRIVATE}@proxy.example:99999", f"http://me:{PRIVATE}\n@proxy.example"),
                    *(f"http://me:12/{PRIVATE}@proxy.example", f"http://me:12#{PRIVATE}@proxy.example"),
                    *(httpx.URL(f"//me:{PRIVATE}@proxy.example"), 7),
                )
            ],
            "is not the address of a proxy; give one such as",
        ),
    ],
    "thread_prefix": [([7, None, b"acme/"], "give text such as")],
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
