"""Defects found in other DynamoDB savers, none of which the public conformance suite catches: wrong answers.

One test for each, by the number it has in all three files. Each docstring says what went wrong there and what has
to hold here.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import writes_sort_key
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import NO_SECOND_OPINION
from tests.support.checkpoints import all_items, checkpoint_of, noise, store, stored_values, thread_config
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = NO_SECOND_OPINION


def test_defect_02_writes_come_back_in_the_order_in_which_a_run_applies_them(saver: DynamoDBSaver) -> None:
    """A peer sorted writes as text (0, 1, 10, 11, 2), by task id, and did not look at the task path.

    The order is LangGraph's `writes_sort_key`: the task path first, then the task, then the number.
    """
    config = store(saver, thread_config(), "1", {"a": 1})
    paths = {"task-a": "~__pregel_pull, z", "task-c": "~__pregel_pull, b", "task-b": "~__pregel_pull, b"}
    for task_id, task_path in paths.items():
        saver.put_writes(config, [("channel", number) for number in range(12)], task_id, task_path)
    found = saver.get_tuple(config)
    assert found is not None
    expected = sorted(
        ((task_id, "channel", number) for task_id in paths for number in range(12)),
        key=lambda write: writes_sort_key(paths[write[0]], write[0], write[2]),
    )
    assert found.pending_writes == expected
    assert [write[0] for write in expected[::12]] == ["task-b", "task-c", "task-a"]


@pytest.mark.parametrize("separator", ["#", "%", "%23", "|", ":", " ", "\0", "$", "/"])
def test_defect_04_no_id_reaches_into_another_namespace_or_thread(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, separator: str
) -> None:
    """A peer joined ids by `#` as they were, so that reading namespace `x` gave the checkpoint of `x#y`.

    Ids are data: neither a read, a list nor a deletion takes one for a part or a prefix of another.
    """
    joined = f"x{separator}y"
    places = [("t", joined), (joined, ""), (f"t{separator}x", "y"), ("t", f"{joined}{separator}")]
    for thread_id, namespace in places:
        store(saver, thread_config(thread_id, namespace), joined, {"at": [thread_id, namespace]})
    for config in (thread_config("t", "x"), thread_config("x"), thread_config("t"), thread_config("t", "y")):
        assert saver.get_tuple(config) is None
        assert list(saver.list(config)) == []
    assert saver.get_tuple(thread_config("t", joined, "x")) is None
    for thread_id in ("x", f"t{separator}", f"x{separator}"):
        saver.delete_thread(thread_id)
    for thread_id, namespace in places:
        assert stored_values(saver, thread_config(thread_id, namespace)) == {"at": [thread_id, namespace]}
        assert stored_values(saver, thread_config(thread_id, namespace, joined)) == {
            "at": [thread_id, namespace]
        }
    for thread_id, _ in places:
        saver.delete_thread(thread_id)
    assert all_items(client, table_name) == []


@dataclass
class Place:
    """A type of an application's state, which LangGraph's serializer revives only where it is allowed."""

    name: str


ALLOWED_PLACE = (Place.__module__, Place.__name__)


def test_defect_05_a_clone_reads_with_its_own_allowlist(saver: DynamoDBSaver) -> None:
    """A peer kept the serializer it was made with, so that a clone ignored the allowlist that it was given.

    A clone reads as its own serializer says, the stricter one as well as the more generous one.
    """
    config = store(saver, thread_config(), "1", {"place": Place("here")})
    assert stored_values(saver, config) == {"place": Place("here")}

    # This is how LangGraph makes its clones: `with_allowlist` copies the saver and replaces `serde`.
    strict = copy.copy(saver)
    strict.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert stored_values(strict, config) == {"place": {"name": "here"}}

    generous = strict.with_allowlist([ALLOWED_PLACE])
    assert isinstance(generous, DynamoDBSaver)
    assert stored_values(generous, config) == {"place": Place("here")}
    assert stored_values(strict, config) == {"place": {"name": "here"}}


def test_defect_06_the_caller_s_metadata_is_added_and_replaces_nothing(saver: DynamoDBSaver) -> None:
    """A peer let `config["metadata"]` replace `source` and `step`, and left the configurable keys out.

    What LangGraph says of a checkpoint stays; what the caller says is added to it.
    """
    config: RunnableConfig = {
        "configurable": {"thread_id": "thread-1", "checkpoint_ns": "", "tenant": "acme", "step": -7},
        "metadata": {"source": "forged", "step": 99, "user": "ann"},
    }
    stored = saver.put(config, checkpoint_of("1", {}), {"source": "loop", "step": 3, "parents": {}}, {})
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata == {"source": "loop", "step": 3, "parents": {}, "tenant": "acme", "user": "ann"}
    assert [each.metadata for each in saver.list(thread_config(), filter={"step": 3, "tenant": "acme"})] == [
        found.metadata
    ]


def test_defect_07_a_list_of_all_namespaces_is_newest_first(saver: DynamoDBSaver) -> None:
    """A peer listed one namespace after the other, so that the first result was not the newest checkpoint.

    Without a namespace in the config, checkpoints of all of them come in the order of their ids.
    """
    namespaces = ("b", "", "a", "a|b")
    ids = [f"{number:02}" for number in range(20)]
    for number, checkpoint_id in enumerate(ids):
        store(saver, thread_config(namespace=namespaces[number % 4]), checkpoint_id, {})
    everywhere: RunnableConfig = {"configurable": {"thread_id": "thread-1"}}
    listed = [each.config["configurable"] for each in saver.list(everywhere)]
    assert [each["checkpoint_id"] for each in listed] == ids[::-1]
    assert [each["checkpoint_ns"] for each in listed] == [namespaces[int(each) % 4] for each in ids[::-1]]
    newest = saver.list(everywhere, limit=5)
    assert [each.config["configurable"]["checkpoint_id"] for each in newest] == ids[:-6:-1]


def test_defect_08_the_limit_counts_what_the_filter_lets_through(saver: DynamoDBSaver) -> None:
    """Peers gave the limit to DynamoDB, before their filter: one result was asked for, and none came.

    The limit counts checkpoints that match, however far back they are.
    """
    for number in range(40):
        store(saver, thread_config(), f"{number:02}", {}, kind="rare" if number in (0, 2) else "common")

    def ids(limit: int) -> list[str]:
        found = saver.list(thread_config(), filter={"kind": "rare"}, limit=limit)
        return [each.config["configurable"]["checkpoint_id"] for each in found]

    assert ids(1) == ["02"]
    assert ids(2) == ["02", "00"]
    assert ids(5) == ["02", "00"]


def test_defect_09_what_does_not_fit_into_a_page_is_read_too(
    saver: DynamoDBSaver, traffic: Traffic, client: DynamoDBClient, table_name: str
) -> None:
    """A peer read the first megabyte of a query only: of six large checkpoints three came back.

    Every page is read: by a list, by the copy and by the deletion of a thread.
    """
    # Values of up to 512 bytes stay in the head, and a head holds up to 32 KiB of them.
    values = {f"channel-{number}": noise(480, number) for number in range(60)}
    ids = [f"{number:02}" for number in range(60)]
    for checkpoint_id in ids:
        # Another first byte makes every value of this checkpoint new.
        store(
            saver,
            thread_config(),
            checkpoint_id,
            {name: checkpoint_id.encode() + v for name, v in values.items()},
        )
    assert sum(len(item["body"]["B"]) for item in all_items(client, table_name) if "body" in item) > 2**20

    traffic.clear()
    listed = list(saver.list(thread_config()))
    assert [each.config["configurable"]["checkpoint_id"] for each in listed] == ids[::-1]
    assert all(
        each.checkpoint["channel_values"]["channel-7"]
        == each.config["configurable"]["checkpoint_id"].encode() + values["channel-7"]
        for each in listed
    )
    assert traffic.operations.count("Query") > 1

    saver.copy_thread("thread-1", "copy")
    assert len(list(saver.list(thread_config("copy")))) == len(ids)
    saver.delete_thread("thread-1")
    saver.delete_thread("copy")
    assert all_items(client, table_name) == []


@pytest.mark.parametrize("special", [ERROR, INTERRUPT, RESUME])
def test_defect_10_a_special_write_takes_no_regular_write_s_place(saver: DynamoDBSaver, special: str) -> None:
    """A peer numbered every write by its position, so that an interrupt replaced the first write of its task.

    Special writes have places of their own, where the last one stays; of regular ones the first stays.
    """
    config = store(saver, thread_config(), "1", {})
    saver.put_writes(config, [("channel", "first"), ("channel", "second")], "task")
    saver.put_writes(config, [(special, "earlier")], "task")
    saver.put_writes(config, [(special, "later")], "task")
    saver.put_writes(config, [("channel", "repeated"), ("channel", "repeated"), ("channel", "third")], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [
        ("task", special, "later"),
        ("task", "channel", "first"),
        ("task", "channel", "second"),
        ("task", "channel", "third"),
    ]
