"""What an account or a constructor's caller can get wrong: an error of its own for each, with the remedy."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE, table_schema
from tests.support.checkpoints import all_items, store, stored_values, thread_config
from tests.support.operations import OPERATIONS, Side, ask, both_sides

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine


# Tables


@both_sides
@pytest.mark.parametrize("method", OPERATIONS)
def test_a_missing_table_is_named_with_what_makes_it(engine: Engine, method: str, side: Side) -> None:
    saver = DynamoDBSaver("no-such-table", endpoint_url=engine.endpoint_url, region_name=engine.region_name)
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"(?s)table no-such-table .*does not exist.*dynamodb template`.*setup\(\).*region_name",
    ):
        ask(side, saver, method, **OPERATIONS[method])
    saver.close()


def _schema(table_name: str, keys: Sequence[tuple[str, str]], **options: Any) -> dict[str, Any]:
    kinds = ("HASH", "RANGE")[: len(keys)]
    return {
        "TableName": table_name,
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind} for name, kind in keys],
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind} for (name, _), kind in zip(keys, kinds, strict=True)
        ],
        "BillingMode": "PAY_PER_REQUEST",
        **options,
    }


OTHER_NAMES = {
    "other names": [("id", "S"), ("sort", "S")],
    "names in lower case": [("pk", "S"), ("sk", "S")],
    "another sort key": [("PK", "S"), ("sort", "S")],
    "no sort key": [("PK", "S")],
}
OTHER_TYPES = {
    "numbers": [("PK", "N"), ("SK", "N")],
    "a number as sort key": [("PK", "S"), ("SK", "N")],
}


@pytest.fixture
def other_table(client: DynamoDBClient) -> Iterator[Callable[..., str]]:
    """Give what makes a table from `create_table`'s arguments; it is deleted after the test."""
    names: list[str] = []

    def make(**schema: Any) -> str:
        client.create_table(**schema)
        names.append(schema["TableName"])
        return names[-1]

    yield make
    for name in names:
        client.delete_table(TableName=name)


def _new_name() -> str:
    return f"other-{uuid.uuid4().hex}"


def _assert_that_the_schema_is_named(client: DynamoDBClient, table_name: str, method: str) -> None:
    saver = DynamoDBSaver(table_name, client=client)
    with pytest.raises(
        CheckpointerConfigurationError, match=rf"(?s)table {table_name} .*dynamodb template`.*setup\(\)"
    ):
        ask("sync", saver, method, **OPERATIONS[method])
    assert all_items(client, table_name) == []


@pytest.mark.parametrize("keys", OTHER_NAMES)
@pytest.mark.parametrize("method", [each for each in OPERATIONS if each != "put_with_writes"])
def test_a_table_with_other_keys_is_named_with_what_makes_the_right_one(
    client: DynamoDBClient, other_table: Callable[..., str], method: str, keys: str
) -> None:
    name = other_table(**_schema(_new_name(), OTHER_NAMES[keys]))
    _assert_that_the_schema_is_named(client, name, method)


# moto's server refuses a BatchGetItem for such a table without saying why, and a flush begins with one.
@pytest.mark.engines("external", "dynamodb-local")
@pytest.mark.parametrize("keys", OTHER_NAMES)
def test_a_flush_names_a_table_with_other_keys_too(
    client: DynamoDBClient, other_table: Callable[..., str], keys: str
) -> None:
    name = other_table(**_schema(_new_name(), OTHER_NAMES[keys]))
    _assert_that_the_schema_is_named(client, name, "put_with_writes")


# moto's server answers a query by text in a table whose keys are numbers with no items; AWS refuses it.
@pytest.mark.engines("external", "dynamodb-local")
@pytest.mark.parametrize("keys", OTHER_TYPES)
@pytest.mark.parametrize("method", OPERATIONS)
def test_a_table_with_keys_of_another_type_is_named_with_what_makes_the_right_one(
    client: DynamoDBClient, other_table: Callable[..., str], method: str, keys: str
) -> None:
    name = other_table(**_schema(_new_name(), OTHER_TYPES[keys]))
    _assert_that_the_schema_is_named(client, name, method)


def _with_index(name: str, keys: Sequence[str]) -> dict[str, Any]:
    schema = table_schema(name)
    kinds = [
        {"AttributeName": each, "KeyType": kind} for each, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]
    schema["GlobalSecondaryIndexes"][0]["KeySchema"] = kinds
    return schema


def _without_index(name: str) -> dict[str, Any]:
    schema = table_schema(name)
    del schema["GlobalSecondaryIndexes"]
    schema["AttributeDefinitions"] = schema["AttributeDefinitions"][:2]
    return schema


OTHER_SCHEMAS: dict[str, tuple[Callable[[str], dict[str, Any]], str]] = {
    **{
        name: (partial(_schema, keys=keys), "key schema|types")
        for name, keys in (OTHER_NAMES | OTHER_TYPES).items()
    },
    "no index": (_without_index, "run_id-index.* absent"),
    "another index": (
        lambda name: _with_index(name, ["run_id", "PK"]),
        "run_id-index.*run_id HASH, PK RANGE",
    ),
}


@both_sides
@pytest.mark.parametrize("kind", OTHER_SCHEMAS)
def test_setup_says_how_a_table_that_exists_differs_and_changes_nothing(
    engine: Engine, client: DynamoDBClient, other_table: Callable[..., str], kind: str, side: Side
) -> None:
    schema, difference = OTHER_SCHEMAS[kind]
    name = other_table(**schema(_new_name()))
    before = client.describe_table(TableName=name)["Table"]
    with (
        DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver,
        pytest.raises(
            CheckpointerConfigurationError,
            match=rf"table {name} exists with another schema:.*({difference}).*another table_name",
        ),
    ):
        ask(side, saver, "setup")
    assert client.describe_table(TableName=name)["Table"] == before
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert expiry["TimeToLiveStatus"] == "DISABLED"


def test_setup_says_that_the_time_to_live_is_on_another_attribute(
    engine: Engine, client: DynamoDBClient, other_table: Callable[..., str]
) -> None:
    name = other_table(**table_schema(_new_name()))
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "deadline"}
    )
    with (
        DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver,
        pytest.raises(
            CheckpointerConfigurationError, match=f"'deadline'.*needs it on '{TTL_ATTRIBUTE}': change"
        ),
    ):
        saver.setup()


@both_sides
def test_setup_makes_the_table_and_may_be_called_again(
    engine: Engine, client: DynamoDBClient, side: Side
) -> None:
    name = _new_name()
    with DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver:
        ask(side, saver, "setup")
        store(saver, thread_config(), "1", {"a": 1})
        ask(side, saver, "setup")
        assert stored_values(saver, thread_config()) == {"a": 1}
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", TTL_ATTRIBUTE)
    client.delete_table(TableName=name)


NEEDS_INDEX: dict[str, Callable[[DynamoDBSaver], Any]] = {
    "delete_for_runs": lambda saver: saver.delete_for_runs(["run-1"]),
    "list": lambda saver: list(saver.list(None, filter={"run_id": "run-1"})),
}


@pytest.mark.parametrize("method", NEEDS_INDEX)
def test_a_table_without_the_index_is_named_by_what_needs_the_index(
    engine: Engine, other_table: Callable[..., str], method: str
) -> None:
    name = other_table(**_without_index(_new_name()))
    with (
        DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver,
        pytest.raises(
            CheckpointerConfigurationError, match=rf"(?s)table {name} .*dynamodb template`.*setup\(\)"
        ),
    ):
        NEEDS_INDEX[method](saver)


# The account, of which no engine is asked


@pytest.mark.engines("dynamodb-local")
@both_sides
@pytest.mark.parametrize(
    "missing", [["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], ["AWS_SECRET_ACCESS_KEY"]]
)
@pytest.mark.parametrize("method", ["get_tuple", "put", "setup"])
def test_missing_credentials_are_named_with_how_to_give_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, missing: list[str], side: Side
) -> None:
    for variable in missing:
        monkeypatch.delenv(variable)
    saver = DynamoDBSaver("the-table", endpoint_url=engine.endpoint_url, region_name=engine.region_name)
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"no usable AWS credentials for table the-table.*role.*`aws configure`.*session=",
    ):
        ask(side, saver, method, **OPERATIONS.get(method, {}))
    saver.close()


@pytest.mark.engines("dynamodb-local")
@both_sides
@pytest.mark.parametrize("with_endpoint", [True, False])
@pytest.mark.parametrize("method", ["get_tuple", "put", "setup"])
def test_a_missing_region_is_named_with_how_to_give_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, side: Side, *, with_endpoint: bool
) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable)
    saver = DynamoDBSaver("the-table", endpoint_url=engine.endpoint_url if with_endpoint else None)
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"no AWS region for table the-table; pass region_name=.*AWS_DEFAULT_REGION",
    ):
        ask(side, saver, method, **OPERATIONS.get(method, {}))
    saver.close()
