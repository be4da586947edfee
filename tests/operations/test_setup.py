"""`setup` makes the table, waits for it, and refuses one with another schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import INDEXES, TTL_ATTRIBUTE, table_schema
from langgraph.checkpoint.dynamodb._operations.setup import differences, setup
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.checkpoints import store, stored_values, thread_config
from tests.support.harness import Run, Stage
from tests.support.operations import Side, ask, both_sides
from tests.support.other_tables import OTHER_NAMES, OTHER_TYPES, new_table_name, schema_of, without_indexes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

NAME = "checkpoints"
SCHEMA = table_schema(NAME)
Answers = Mapping[str, Sequence[Any]]


def _error(code: str, message: str = "as scripted") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "an operation")


def _table(status: str) -> dict[str, Any]:
    return {"Table": {**SCHEMA, "TableStatus": status}}


def _expiry(status: str, **more: str) -> dict[str, Any]:
    return {"TimeToLiveDescription": {"TimeToLiveStatus": status, **more}}


MISSING = _error("ResourceNotFoundException")
ACTIVE = _table("ACTIVE")
ENABLED = _expiry("ENABLED", AttributeName=TTL_ATTRIBUTE)


class _Scripted(Stage):
    """Answers by method; the last of a method's answers stays."""

    now = 0.0

    def __init__(self, answers: Answers) -> None:
        self._left = {method: list(some) for method, some in answers.items()}

    def answer(self, call: Call) -> Any:
        several = self._left[call.method]
        return several.pop(0) if len(several) > 1 else several[0]


def _set_up(answers: Answers) -> list[Call]:
    """Run it on answers; return its requests."""
    return Run(_Scripted(answers), setup(Table(NAME))).trace()


def _methods(calls: Sequence[Call]) -> list[str]:
    return [each.method for each in calls]


def test_a_table_that_is_ready_is_not_changed() -> None:
    calls = _set_up({"describe_table": [ACTIVE], "describe_time_to_live": [ENABLED]})
    assert _methods(calls) == ["describe_table", "describe_time_to_live"]


@pytest.mark.parametrize(
    "made",
    [{}, _error("ResourceInUseException")],
    ids=["by this process", "by another process in the meantime"],
)
def test_a_missing_table_is_made_and_waited_for(made: Any) -> None:
    calls = _set_up(
        {
            "describe_table": [MISSING, MISSING, _table("CREATING"), ACTIVE],
            "create_table": [made],
            "describe_time_to_live": [_expiry("DISABLED")],
            "update_time_to_live": [{}],
        }
    )
    assert _methods(calls) == [
        "describe_table",
        "create_table",
        *["describe_table"] * 3,
        "describe_time_to_live",
        "update_time_to_live",
    ]
    assert calls[1].params == SCHEMA
    # It does not ask all the time.
    assert all(call.delay_seconds > 0 for call in calls[3:5])
    specification = calls[-1].params["TimeToLiveSpecification"]
    assert specification == {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}


def test_a_table_that_never_becomes_active_is_given_up() -> None:
    with pytest.raises(
        CheckpointerConfigurationError, match=r"checkpoints did not become active.*call setup"
    ):
        _set_up({"describe_table": [_table("CREATING")]})


@pytest.mark.parametrize("status", ["DISABLED", "DISABLING"])
def test_another_process_may_have_enabled_the_expiry(status: str) -> None:
    already = _error("ValidationException", "TimeToLive is already enabled")
    answers: Answers = {
        "describe_table": [ACTIVE],
        "describe_time_to_live": [_expiry(status)],
        "update_time_to_live": [already],
    }
    assert _methods(_set_up(answers))[-1] == "update_time_to_live"


def test_a_time_to_live_on_another_attribute_is_an_error() -> None:
    answers = {"describe_table": [ACTIVE], "describe_time_to_live": [_expiry("ENABLED", AttributeName="end")]}
    with pytest.raises(CheckpointerConfigurationError, match=f"'end'.*needs it on '{TTL_ATTRIBUTE}': change"):
        _set_up(answers)


DENIED = _error("AccessDeniedException", "not authorized to do so")


@pytest.mark.parametrize(
    "answers",
    [
        {"describe_table": [MISSING], "create_table": [DENIED]},
        {
            "describe_table": [ACTIVE],
            "describe_time_to_live": [_expiry("DISABLED")],
            "update_time_to_live": [DENIED],
        },
    ],
    ids=["table", "expiry"],
)
def test_what_cannot_be_made_or_enabled_is_an_error(answers: Answers) -> None:
    with pytest.raises(CheckpointerConfigurationError, match="not authorized"):
        _set_up(answers)


def test_differences_have_a_text_for_each_part_that_is_not_as_wanted() -> None:
    parts = {"key schema", "key types", *INDEXES}
    assert differences(SCHEMA, SCHEMA) == dict.fromkeys(parts, "")
    lacking = differences(without_indexes(NAME), SCHEMA)
    assert {part for part, text in lacking.items() if text} == {*INDEXES}
    other = differences(schema_of(NAME, [("PK", "S"), ("SK", "N")]), SCHEMA)
    assert other["key types"] == "key types: PK S, SK N, not PK S, SK S"
    assert other["key schema"] == ""


def test_an_index_that_shows_other_attributes_differs() -> None:
    changed = table_schema(NAME)
    index = next(
        each for each in changed["GlobalSecondaryIndexes"] if "NonKeyAttributes" in each["Projection"]
    )
    lost = index["Projection"]["NonKeyAttributes"].pop()
    found = {part: text for part, text in differences(changed, SCHEMA).items() if text}
    assert found.keys() == {index["IndexName"]}
    has, _, wanted = found[index["IndexName"]].partition(", not ")
    assert lost in wanted
    assert lost not in has


def _with_index(name: str, keys: Sequence[str]) -> dict[str, Any]:
    schema = table_schema(name)
    kinds = [
        {"AttributeName": each, "KeyType": kind} for each, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]
    schema["GlobalSecondaryIndexes"][0]["KeySchema"] = kinds
    return schema


OTHER_SCHEMAS: dict[str, tuple[Callable[[str], dict[str, Any]], str]] = {
    **{
        name: (partial(schema_of, keys=keys), "key schema|types")
        for name, keys in (OTHER_NAMES | OTHER_TYPES).items()
    },
    "another index": (
        lambda name: _with_index(name, ["run_id", "PK"]),
        "run_id-index.*run_id HASH, PK RANGE",
    ),
    "no index": (without_indexes, "owner-index: absent, not on owner HASH, last_active RANGE with about"),
}


@pytest.mark.parametrize("kind", OTHER_SCHEMAS)
def test_setup_says_how_a_table_that_exists_differs_and_changes_nothing(kind: str) -> None:
    schema, difference = OTHER_SCHEMAS[kind]
    # No other request has an answer.
    answers = {"describe_table": [{"Table": {**schema(NAME), "TableStatus": "ACTIVE"}}]}
    with pytest.raises(
        CheckpointerConfigurationError,
        match=rf"table {NAME} exists with another schema:.*({difference}).*another table_name.*add it as",
    ):
        _set_up(answers)


# On an engine


@both_sides
def test_setup_makes_the_table_and_may_be_called_again(
    engine: Engine, client: DynamoDBClient, side: Side
) -> None:
    name = new_table_name()
    with DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver:
        ask(side, saver, "setup")
        store(saver, thread_config(), "1", {"a": 1})
        ask(side, saver, "setup")
        assert stored_values(saver, thread_config()) == {"a": 1}
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", TTL_ATTRIBUTE)
    client.delete_table(TableName=name)
