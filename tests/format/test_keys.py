"""Ids are data: any text round-trips, and no id reaches what belongs to another."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.checkpoints import Conversation, stored_values, thread_config
from tests.support.examples import percent
from tools.engine import Engine

AWKWARD = [
    "",
    "#",
    "%",
    "%23",
    "|",
    ":",
    " ",
    "\0",
    "\U0001f600",
    "C#",
    "1",
    "10",
    "1#",
    "a#b",
    "a",
    "T",
    "N#",
]
IDS = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.fixture(scope="module")
def shared_saver(engine: Engine) -> Iterator[DynamoDBSaver]:
    """A saver on one table for all examples, each of which has threads of its own."""
    name = f"keys-{uuid.uuid4().hex}"
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as client:
        client.create_table(**table_schema(name))
        with DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver:
            yield saver
        client.delete_table(TableName=name)


@pytest.mark.engines("dynamodb-local")
@settings(max_examples=percent(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(IDS.filter(bool), IDS, IDS.filter(bool)), min_size=2, max_size=4, unique=True),
    st.lists(IDS, min_size=1, max_size=3, unique=True),
)
def test_any_ids_round_trip_and_stay_apart(
    shared_saver: DynamoDBSaver, places: list[tuple[str, str, str]], tasks: list[str]
) -> None:
    threads = {thread for thread, _, _ in places}
    for thread in threads:
        shared_saver.delete_thread(thread)
    for number, (thread, namespace, checkpoint_id) in enumerate(places):
        conversation = Conversation(shared_saver, thread, namespace)
        config, checkpoint, metadata, versions = conversation.change(number=number)
        checkpoint["id"] = checkpoint_id
        stored = shared_saver.put(config, checkpoint, metadata, versions)
        for task in tasks:
            # An empty checkpoint id means the newest checkpoint, and writes have to name theirs.
            refused = contextlib.nullcontext() if checkpoint_id else pytest.raises(CheckpointerInputError)
            with refused:
                shared_saver.put_writes(stored, [("number", (number, task))], task)
    for number, (thread, namespace, checkpoint_id) in enumerate(places):
        config = thread_config(thread, namespace, checkpoint_id)
        found = shared_saver.get_tuple(config)
        if checkpoint_id:
            assert found is not None
            assert found.config == config
            assert found.checkpoint["channel_values"] == {"number": number}
            assert sorted(write[0] for write in found.pending_writes or ()) == sorted(tasks)
    for thread in threads:
        listed = [
            (each.config["configurable"]["checkpoint_ns"], each.config["configurable"]["checkpoint_id"])
            for each in shared_saver.list({"configurable": {"thread_id": thread}})
        ]
        assert sorted(listed) == sorted(
            (ns, checkpoint) for owner, ns, checkpoint in places if owner == thread
        )
    gone = places[0][0]
    shared_saver.delete_thread(gone)
    assert list(shared_saver.list({"configurable": {"thread_id": gone}})) == []
    for number, (thread, namespace, checkpoint_id) in enumerate(places):
        if thread != gone and checkpoint_id:
            values = stored_values(shared_saver, thread_config(thread, namespace, checkpoint_id))
            assert values == {"number": number}


def test_thread_ids_may_be_numbers(shared_saver: DynamoDBSaver) -> None:
    Conversation(shared_saver, "0").put(number=1)
    assert stored_values(shared_saver, {"configurable": {"thread_id": 0}}) == {"number": 1}
