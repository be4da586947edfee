"""Constructors hand on what they get, and refuse what they could only fail on later, or take for something else."""

import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any, cast

import aioboto3
import boto3
import langgraph_checkpoint_aws
import pytest
from botocore.config import Config

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.options import OTHER_NAMES
from tests.support.options import EACH_OPTION, PRIVATE, REGION, URL, WRONG, boto3_client, right
from tools.options import parameters

# What an error names instead of the option: a part of it.
PARTS = {
    "auth": "the token of auth",
    "client_options": "proxy",
    "on_event": "tenant_of",
    "ttl": "refresh_on_read",
}
EACH = pytest.mark.parametrize(
    ("kind", "name"), EACH_OPTION, ids=lambda each: getattr(each, "__name__", each)
)


def _state(made: Any) -> Any:
    """Return what an object and those of this package in it hold: plain values, and the types of all others."""
    if isinstance(made, (str, bytes, int, float, type(None))):
        return made
    if isinstance(made, (list, tuple)):
        return [_state(each) for each in made]
    if isinstance(made, dict):
        return {str(name): _state(each) for name, each in made.items()}
    kind = f"{type(made).__module__}.{type(made).__qualname__}"
    return [kind, _state(vars(made))] if hasattr(made, "__dict__") and kind.startswith("langgraph.") else kind


def _made(kind: Any, name: str, **given: Any) -> Any:
    """Return the state of an object with options, or the error of its constructor."""
    where = {"table_name": "threads"} if "table_name" in parameters(kind) else {"url": URL}
    if name == "allow_http":
        where = {"url": "http://gateway.internal", "auth": PRIVATE}
    try:
        return _state(kind(**where | given))
    except CheckpointerInputError as error:
        return str(error)


@EACH
def test_an_option_that_is_given_is_handed_on(kind: type, name: str) -> None:
    value = right(kind, name)[1]
    assert _made(kind, name, **{name: value}) != _made(kind, name), f"{kind.__name__} drops the option {name}"


@EACH
def test_an_option_of_the_wrong_kind_is_named_with_what_to_give(kind: type, name: str) -> None:
    assert name in WRONG, f"{kind.__name__} has the option {name}, which has no row in WRONG"
    for said, values in WRONG[name].items():
        for value in values:
            error = _made(kind, "", **{name: value() if isinstance(value, partial) else value})
            assert re.match(rf"({name}|{PARTS.get(name, name)})\b.*{said}", str(error)), (value, error)
            assert PRIVATE not in str(error)


async def test_an_asyncio_client_is_refused() -> None:
    async with aioboto3.Session().client("dynamodb", **REGION) as client:
        with pytest.raises(
            CheckpointerInputError, match=r"client is .*or a boto3.Session as session=, which serves asyncio"
        ):
            DynamoDBSaver("the-table", client=client)


@pytest.mark.parametrize(
    "options",
    [
        REGION,
        {"endpoint_url": "http://localhost:8000"},
        {"client_config": Config()},
        {"session": boto3.Session()},
    ],
    ids=",".join,
)
def test_what_would_have_no_effect_beside_a_client_is_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(CheckpointerInputError, match=rf"{name} has no effect on client="):
        DynamoDBSaver("the-table", client=boto3_client(), **options)


def test_the_region_of_an_arn_is_compared_without_a_request() -> None:
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/the-table"
    DynamoDBSaver(arn, region_name="eu-west-1")
    with pytest.raises(
        CheckpointerInputError, match=r"region_name is 'us-east-1', but the ARN .* 'eu-west-1'"
    ):
        DynamoDBSaver(arn, region_name="us-east-1")


def test_an_endpoint_of_aws_may_stand_beside_its_region() -> None:
    url = "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com"
    DynamoDBSaver("the-table", region_name="eu-west-1", endpoint_url=url)


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


def test_every_option_of_the_other_saver_of_this_name_is_one_of_ours_or_answered() -> None:
    theirs = inspect.signature(langgraph_checkpoint_aws.DynamoDBSaver).parameters
    assert theirs.keys() - parameters(DynamoDBSaver).keys() <= OTHER_NAMES.keys()
    documented = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
    for name in theirs:
        assert f"\n| `{name}` | " in documented
