"""What an account or a constructor's caller can get wrong: an error of its own for each, with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.checkpoints import all_items
from tests.support.operations import OPERATIONS, Side, ask, both_sides
from tests.support.other_tables import OTHER_NAMES, OTHER_TYPES, new_table_name, schema_of, without_indexes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine


# Tables


@both_sides
def test_a_missing_table_is_named_with_what_makes_it(engine: Engine, side: Side) -> None:
    saver = DynamoDBSaver("no-such-table", endpoint_url=engine.endpoint_url, region_name=engine.region_name)
    for method, arguments in OPERATIONS.items():
        with pytest.raises(
            CheckpointerConfigurationError,
            match=r"(?s)table no-such-table in \S+.*does not exist.*dynamodb template`.*setup\(\).*region_name",
        ):
            ask(side, saver, method, **arguments)
    saver.close()


def _assert_that_the_schema_is_named(client: DynamoDBClient, table_name: str) -> None:
    saver = DynamoDBSaver(table_name, client=client)
    for method, arguments in OPERATIONS.items():
        with pytest.raises(
            CheckpointerConfigurationError, match=rf"(?s)table {table_name} .*dynamodb template`.*setup\(\)"
        ):
            ask("sync", saver, method, **arguments)
    assert all_items(client, table_name) == []


@pytest.mark.parametrize("keys", OTHER_NAMES)
def test_a_table_with_other_keys_is_named_with_what_makes_the_right_one(
    client: DynamoDBClient, other_table: Callable[..., str], keys: str
) -> None:
    _assert_that_the_schema_is_named(client, other_table(**schema_of(new_table_name(), OTHER_NAMES[keys])))


# moto's server answers a query by text in a table whose keys are numbers with no items; AWS refuses it.
@pytest.mark.engines("external", "dynamodb-local")
@pytest.mark.parametrize("keys", OTHER_TYPES)
def test_a_table_with_keys_of_another_type_is_named_with_what_makes_the_right_one(
    client: DynamoDBClient, other_table: Callable[..., str], keys: str
) -> None:
    _assert_that_the_schema_is_named(client, other_table(**schema_of(new_table_name(), OTHER_TYPES[keys])))


# The index that a call needs, and the call.
NEEDS_INDEX: dict[str, tuple[str, Callable[[DynamoDBSaver], Any]]] = {
    "delete_for_runs": ("run_id-index", lambda saver: saver.delete_for_runs(["run-1"])),
    "list": ("run_id-index", lambda saver: list(saver.list(None, filter={"run_id": "run-1"}))),
    "threads": ("day-index", lambda saver: saver.threads()),
    "threads of an owner": ("owner-index", lambda saver: saver.threads(owner="ada")),
}


def _assert_that_the_index_is_named(engine: Engine, name: str, method: str) -> None:
    index, call = NEEDS_INDEX[method]
    named = rf"^table {name} in \S+ has no index {index} that can.* doctor` .*add it as the template that"
    with (
        DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver,
        pytest.raises(CheckpointerConfigurationError, match=named),
    ):
        call(saver)


@pytest.mark.parametrize("method", NEEDS_INDEX)
def test_an_index_that_a_table_lacks_is_named(
    engine: Engine, other_table: Callable[..., str], method: str
) -> None:
    name = other_table(**without_indexes(new_table_name()))
    _assert_that_the_index_is_named(engine, name, method)


# moto's server answers such a query with no items.
@pytest.mark.engines("external", "dynamodb-local")
@pytest.mark.parametrize("method", NEEDS_INDEX)
def test_an_index_with_other_keys_is_named(
    engine: Engine, other_table: Callable[..., str], method: str
) -> None:
    schema = table_schema(new_table_name())
    for each in schema["GlobalSecondaryIndexes"]:
        each["KeySchema"] = [{"AttributeName": "SK", "KeyType": "HASH"}]
    schema["AttributeDefinitions"] = schema["AttributeDefinitions"][:2]
    _assert_that_the_index_is_named(engine, other_table(**schema), method)


# The account, of which no engine is asked
