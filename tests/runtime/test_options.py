"""The constructor refuses what it could only fail on later, or would take for something else, and says what to give."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any, cast

import aioboto3
import aiobotocore.session
import boto3
import botocore.session
import langgraph_checkpoint_aws
import pytest
from aiobotocore.config import AioConfig
from botocore.config import Config
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import (
    CheckpointerConfig,
    CheckpointerConfigurationError,
    CheckpointerInputError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._runtime.connection import connect
from langgraph.checkpoint.dynamodb._runtime.options import _METHODS, OTHER_NAMES
from langgraph.store.dynamodb import DynamoDBStore
from tools.options import parameters

REGION: dict[str, Any] = {"region_name": "us-east-1"}


class Plain:
    """A class that has nothing to do with AWS."""


def _boto3_client(service: str = "dynamodb") -> Any:
    return boto3.Session().client(cast("Any", service), **REGION)


def _boto3_table() -> Any:
    return boto3.resource("dynamodb", **REGION).Table("the-table")


# For each option values that it cannot have, and what is said of them. Partials make the value when the test runs.
WRONG: list[tuple[str, list[Any], str]] = [
    (
        "table_name",
        ["", None, 1, ["the-table"], b"the-table", str],
        "give the table's name, of 3 to 255 .* or its ARN",
    ),
    (
        "table_name",
        ["mm", "a" * 256, "the table", "tables/one", "arn:"],
        "give the table's name, of 3 to 255",
    ),
    ("region_name", ["", 1, ["eu-west-1"]], "give the name of a region"),
    (
        "endpoint_url",
        ["", "localhost:8000", "http://", 8000, b"http://localhost"],
        'begin it with http:// or https://, such as "http',
    ),
    ("session", [boto3.Session], "the class boto3.session.Session; give a boto3.Session"),
    (
        "session",
        [aioboto3.Session(), aiobotocore.session.get_session()],
        "give .* async methods use its credentials",
    ),
    ("session", [botocore.session.Session()], r"give a boto3.Session\(botocore_session="),
    ("session", ["default", {}, Plain(), partial(_boto3_client)], "give a boto3.Session"),
    ("client", [Plain], "the class .*Plain; give boto3.client"),
    ("client", [partial(_boto3_client, "s3")], r"a botocore.client.S3; give boto3.client\(\"dynamodb\"\)"),
    ("client", [partial(_boto3_client, "dynamodbstreams"), "dynamodb", boto3, Plain()], "give boto3.client"),
    (
        "client",
        [partial(boto3.resource, "dynamodb", **REGION), partial(_boto3_table)],
        "give its meta.client",
    ),
    (
        "client_config",
        [{"connect_timeout": 1}, {}, Config, "standard", Plain()],
        "give a botocore.config.Config",
    ),
    (
        "retry_seconds",
        [-1, "5", True, None, float("inf"), float("nan")],
        "give a number of seconds, 0 or more",
    ),
    ("serde", ["msgpack", {}, Plain(), JsonPlusSerializer], "give an object with dumps_typed"),
    (
        "ttl_seconds",
        [0, -1, 1.5, True, "60", float("inf"), float("nan"), TTL_SECONDS_MAX + 1, 10**400],
        "give a whole number of seconds from 1 to 31,622,400,000, or None",
    ),
    ("cache_bytes", [-1, 1.5, True, "1", None], "give a whole number of bytes"),
    ("share_equal_pieces", ["false", 1, 0, ""], "give True or False"),
    ("allow_unencrypted", ["false", 1, None], "give True or False"),
    ("bound_to", ["", 1, b"table"], "give the table's name"),
    ("checkpoint_bytes_max", [0, -1, True, "1", 1.5, None], "give a whole number of bytes, 1 or more"),
]
EACH_WRONG = [(name, value, said) for name, values, said in WRONG for value in values]


def test_each_option_is_tried_with_a_wrong_value() -> None:
    # tests/runtime/test_events.py and tests/operations/test_directory.py try the others.
    elsewhere = {"on_event", "owner_from", "owner_key"}
    assert {name for name, _, _ in WRONG} == parameters(DynamoDBSaver).keys() - elsewhere


@pytest.mark.parametrize(("name", "value", "said"), EACH_WRONG, ids=map(str, range(len(EACH_WRONG))))
def test_an_option_of_the_wrong_kind_is_named_with_what_to_give(name: str, value: Any, said: str) -> None:
    made = value() if isinstance(value, partial) else value
    with pytest.raises(CheckpointerInputError, match=rf"^{name} is .*{said}"):
        DynamoDBSaver(**{"table_name": "the-table", name: made})


@pytest.mark.parametrize(
    "address", ["http://ada:hunter2@127.0.0.1:1", "ada:hunter2@127.0.0.1:1", "http://[hunter2@"]
)
def test_an_endpoint_with_a_password_is_refused_without_showing_it(address: str) -> None:
    with pytest.raises(
        CheckpointerInputError, match=r"^endpoint_url has a user or a password in it; remove"
    ) as caught:
        DynamoDBSaver("the-table", endpoint_url=address)
    assert "hunter2" not in str(caught.value)


async def test_an_asyncio_client_is_refused() -> None:
    async with aioboto3.Session().client("dynamodb", **REGION) as client:
        with pytest.raises(
            CheckpointerInputError, match=r"client is .*or a boto3.Session as session=, which serves asyncio"
        ):
            DynamoDBSaver("the-table", client=client)


@pytest.mark.parametrize(
    "options", [REGION, {"endpoint_url": "http://localhost:8000"}, {"client_config": Config()}], ids=",".join
)
def test_what_would_have_no_effect_beside_a_client_is_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(CheckpointerInputError, match=rf"{name} has no effect on client="):
        DynamoDBSaver("the-table", client=_boto3_client(), **options)


def test_the_region_of_an_arn_is_compared_without_a_request() -> None:
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/the-table"
    DynamoDBSaver(arn, region_name="eu-west-1")
    with pytest.raises(
        CheckpointerInputError, match=r"region_name is 'us-east-1', but the ARN .* 'eu-west-1'"
    ):
        DynamoDBSaver(arn, region_name="us-east-1")


def test_a_session_beside_a_client_is_refused() -> None:
    with pytest.raises(CheckpointerInputError, match="session has no effect on client="):
        DynamoDBSaver("the-table", client=_boto3_client(), session=boto3.Session())


class SessionOfMine:
    """A session in the place of boto3's, as applications and tests have them."""

    def client(self, service: str, **_: Any) -> Any:
        """Make a client."""
        raise NotImplementedError(service)


class FirstSerializer:
    """A serializer as LangGraph's first releases had them, which LangGraph still takes."""

    def dumps(self, obj: Any) -> bytes:
        """Write a value."""
        return repr(obj).encode()

    def loads(self, data: bytes) -> Any:
        """Read a value."""
        return data


ClientOfMine = type("ClientOfMine", (), dict.fromkeys(_METHODS, print))


@pytest.mark.parametrize(
    "options",
    [
        {"region_name": "eu-west-1", "endpoint_url": "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com"},
        {"session": boto3.Session()},
        {"session": SessionOfMine()},
        {"client": ClientOfMine()},
        {"client_config": Config()},
        {"client_config": AioConfig()},
        {"serde": FirstSerializer()},
        {"ttl_seconds": 1, "cache_bytes": 0, "share_equal_pieces": False},
    ],
    ids=map(str, range(8)),
)
def test_what_can_be_used_is_taken(options: dict[str, Any]) -> None:
    DynamoDBSaver("the-table", **options)


# Options that there are not


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("boto_config", "it is client_config here"),
        ("enable_checkpoint_compression", "leave it out: everything is compressed"),
        ("s3_offload_config", "leave it out: the table takes a checkpoint of any size"),
        ("ttl", "it is ttl_seconds here"),
        ("ttl_second", r"did you mean ttl_seconds\?"),
        ("xyz", "use one of region_name, endpoint_url, "),
    ],
)
def test_an_unknown_option_is_answered_by_the_one_to_use(name: str, says: str) -> None:
    with pytest.raises(TypeError, match=f"DynamoDBSaver has no option {name}; {says}"):
        cast("Any", DynamoDBSaver)("threads", **{name: None})


@pytest.mark.parametrize("kind", [DynamoDBSaver, DynamoDBStore, DynamoDBCache])
@pytest.mark.parametrize(
    "name", sorted(inspect.signature(connect).parameters.keys() - {"table_name", "retry_seconds"})
)
def test_what_constructors_pass_on_is_no_option(kind: type, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{kind.__name__} has no option {name}; "):
        kind("threads", **{name: 1})


def test_every_option_of_the_other_saver_of_this_name_is_one_of_ours_or_answered() -> None:
    theirs = inspect.signature(langgraph_checkpoint_aws.DynamoDBSaver).parameters
    assert theirs.keys() - parameters(DynamoDBSaver).keys() <= OTHER_NAMES.keys()
    documented = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
    for name in theirs:
        assert f"\n| `{name}` | " in documented


def test_a_configuration_answers_them_too() -> None:
    with pytest.raises(
        CheckpointerConfigurationError, match=r"boto_config: is unknown here; it is client_config here"
    ):
        CheckpointerConfig(type="dynamodb", config={"table_name": "t", "boto_config": {}})
