"""A table that another saver uses: its threads never begin anew in silence, and looking costs next to nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.checkpoints import all_items, store, stored_values, thread_config
from tests.support.operations import OPERATIONS, Side, ask, both_sides

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


pytestmark = pytest.mark.engines("dynamodb-local")

CHECKPOINT_ID = "1f1e6347-28d2-60b2-bffe-aa96229c3901"
# The keys of what the other savers stored for a checkpoint, as their releases 1.2.6 and 0.1.3 do.
OTHERS: dict[str, Callable[[str, str], list[tuple[str, str]]]] = {
    "langgraph-checkpoint-aws": lambda thread, namespace: [
        (f"CHECKPOINT_{thread}", f"{namespace}#{CHECKPOINT_ID}"),
        (f"CHUNK_{thread}#{namespace}#{CHECKPOINT_ID}", "CHUNK"),
        (f"WRITES_{thread}#{namespace}#{CHECKPOINT_ID}", "task#0"),
    ],
    "langgraph-checkpoint-amazon-dynamodb": lambda thread, namespace: [
        (thread, f"{namespace}#checkpoint#{CHECKPOINT_ID}"),
        (thread, f"{namespace}#write#{CHECKPOINT_ID}#task#0000000000"),
    ],
}
each_other = pytest.mark.parametrize("other", OTHERS)


@pytest.fixture
def foreign_table(client: DynamoDBClient) -> Iterator[str]:
    """Give a table as the other savers' own tools make it: without the index."""
    name = f"foreign-{uuid.uuid4().hex}"
    schema = table_schema(name)
    del schema["GlobalSecondaryIndexes"]
    schema["AttributeDefinitions"] = schema["AttributeDefinitions"][:2]
    client.create_table(**schema)
    yield name
    client.delete_table(TableName=name)


def _store_by(
    other: str, client: DynamoDBClient, table_name: str, thread_id: str = "thread-1", namespace: str = ""
) -> None:
    for pk, sk in OTHERS[other](thread_id, namespace):
        client.put_item(TableName=table_name, Item={"PK": {"S": pk}, "SK": {"S": sk}, "payload": {"B": b"1"}})


@each_other
def test_a_thread_of_another_saver_does_not_begin_anew(
    client: DynamoDBClient, own_client: DynamoDBClient, foreign_table: str, other: str
) -> None:
    _store_by(other, client, foreign_table)
    for method in OPERATIONS.keys() - {"delete_for_runs"}:
        saver = DynamoDBSaver(foreign_table, client=own_client)
        for _ in range(2):
            with pytest.raises(
                CheckpointerConfigurationError,
                match=rf"table {foreign_table} holds checkpoints of {other} \(item PK='.*thread-1'.*"
                r"a separate table.*python -m langgraph.checkpoint.dynamodb template",
            ):
                ask("sync", saver, method, **OPERATIONS[method])
    heads = [item for item in all_items(client, foreign_table, begins="C#") if "body" in item]
    assert heads == []


@each_other
@pytest.mark.parametrize("namespace", ["", "sub:1"])
def test_it_shows_in_a_table_of_ours_too(
    client: DynamoDBClient, saver: DynamoDBSaver, table_name: str, namespace: str, other: str
) -> None:
    _store_by(other, client, table_name, namespace=namespace)
    with pytest.raises(CheckpointerConfigurationError, match=f"holds checkpoints of {other}"):
        saver.get_tuple(thread_config(namespace=namespace))
    # Now that one is known, others are looked for.
    _store_by(other, client, table_name, "thread-2")
    with pytest.raises(CheckpointerConfigurationError, match=f"holds checkpoints of {other}"):
        store(saver, thread_config("thread-2"), "1", {"a": 1})


@both_sides
@each_other
def test_every_thread_is_looked_for_in_a_table_without_the_index_and_new_ones_work(
    client: DynamoDBClient, own_client: DynamoDBClient, foreign_table: str, other: str, side: Side
) -> None:
    saver = DynamoDBSaver(foreign_table, client=own_client)
    assert ask(side, saver, "get_tuple", thread_config("new")) is None
    store(saver, thread_config("new"), "1", {"a": 1})
    assert stored_values(saver, thread_config("new")) == {"a": 1}
    _store_by(other, client, foreign_table, "old")
    with pytest.raises(CheckpointerConfigurationError, match=f"holds checkpoints of {other}"):
        ask(side, saver, "get_tuple", thread_config("old"))


def test_a_policy_that_denies_the_look_does_no_harm(saver: DynamoDBSaver, own_client: DynamoDBClient) -> None:
    """The policy of a tenant allows neither the index nor the other savers' keys."""

    def deny(params: dict[str, Any], **_: Any) -> None:
        value = params["ExpressionAttributeValues"][":pk"]["S"]
        if "IndexName" in params or "#" not in value:
            raise ClientError(
                {"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, "Query"
            )

    own_client.meta.events.register("provide-client-params.dynamodb.Query", deny)
    assert saver.get_tuple(thread_config()) is None
    store(saver, thread_config(), "1", {"a": 1})
    assert stored_values(saver, thread_config()) == {"a": 1}


@pytest.mark.parametrize("thread_id", ["a#b", "x" * 2047, "CHECKPOINT_t", "é" * 1023])
@pytest.mark.parametrize("namespace", ["", "n" * 1000, "sub#checkpoint#"])
def test_ids_that_no_other_saver_could_have_are_no_obstacle(
    saver: DynamoDBSaver, thread_id: str, namespace: str
) -> None:
    if len(thread_id.encode()) + len(namespace) > 2040:
        namespace = ""
    config: RunnableConfig = thread_config(thread_id, namespace)
    store(saver, thread_config("a"), "checkpoint", {"a": 1})
    saver.storage.cache.facts.is_shared = True
    assert saver.get_tuple(config) is None
    store(saver, config, "1", {"a": 1})
    assert stored_values(saver, config) == {"a": 1}
