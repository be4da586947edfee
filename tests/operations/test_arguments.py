"""What a caller can get wrong: an error of its own for each, with the remedy, and nothing stored."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

from langgraph.checkpoint.dynamodb import CheckpointerInputError, CheckpointSerializationError, DynamoDBSaver
from tests.support.checkpoints import METADATA, all_items, checkpoint_of, store, thread_config
from tests.support.operations import WITH_CONFIG, Side, ask, both_sides
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# All of this is refused before an engine is asked, and DynamoDB Local has AWS's limits for what just fits.
pytestmark = pytest.mark.engines("dynamodb-local")


# Ids


NO_THREADS: list[Any] = [{}, {"configurable": {}}, {"configurable": {"thread_id": None}}]


@both_sides
@pytest.mark.parametrize(
    ("method", "config"),
    # A list takes an empty config for None.
    [(method, config) for method in WITH_CONFIG for config in NO_THREADS if config or method != "list"],
)
def test_a_missing_thread_id_is_named_before_anything_is_sent(
    saver: DynamoDBSaver, traffic: Traffic, method: str, config: RunnableConfig, side: Side
) -> None:
    with pytest.raises(
        CheckpointerInputError, match=r'config\["configurable"\]\["thread_id"\] is missing; give'
    ):
        ask(side, saver, method, **WITH_CONFIG[method](config))
    assert traffic.requests == []


@both_sides
def test_writes_without_a_checkpoint_id_are_refused(
    saver: DynamoDBSaver, traffic: Traffic, side: Side
) -> None:
    with pytest.raises(CheckpointerInputError, match=r'"checkpoint_id"\] is missing; give the checkpoint'):
        ask(side, saver, "put_writes", thread_config(), [("channel", 1)], "task")
    assert traffic.requests == []


def _text_of(size: int, unit: str, stored_bytes: int) -> str:
    """Text that takes up exactly so many bytes in a key, as many of them as possible by one character."""
    return unit * (size // stored_bytes) + "a" * (size % stored_bytes)


# What is added to an id in a key: `#` behind a thread, `N#` before a namespace, `C#` and `#` around a checkpoint,
# and `#W#` between the checkpoint and the task.
LARGEST = {
    "thread_id": 2048 - 1,
    "namespace": 1024 - 2,
    "checkpoint_id": 1024 - 3,
    "task_id": 1024 - len("C#1##W#") + 1,
}
UNITS = [("a", 1), ("é", 2), ("#", 3), ("%", 3), ("\0", 3), ("€", 3), ("🙂", 4)]


def _use(saver: DynamoDBSaver, name: str, value: str) -> RunnableConfig:
    """Store a checkpoint and a write, with a value in the place of one of the ids."""
    if name == "task_id":
        config = store(saver, thread_config(), "1", {"a": 1})
        saver.put_writes(config, [("channel", 1)], value)
        return config
    place = {name: value} if name in ("thread_id", "namespace") else {}
    return store(saver, thread_config(**place), value if name == "checkpoint_id" else "1", {"a": 1})


@pytest.mark.parametrize(("unit", "stored_bytes"), UNITS)
@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_id_that_fits_into_a_key_works_and_a_longer_one_is_refused(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, name: str, unit: str, stored_bytes: int
) -> None:
    largest = _text_of(LARGEST[name], unit, stored_bytes)
    config = _use(saver, name, largest)
    found = saver.get_tuple(config)
    assert found is not None
    assert found.config == config
    assert [write[0] for write in found.pending_writes or ()] == ([largest] if name == "task_id" else [])
    before = all_items(client, table_name)
    limit = 2048 if name == "thread_id" else 1024
    named = "checkpoint_ns" if name == "namespace" else name
    with pytest.raises(
        CheckpointerInputError, match=rf"{named}.* {limit + 1} bytes.*limit of {limit}.*shorter"
    ):
        _use(saver, name, largest + "a")
    assert all_items(client, table_name) == before
    saver.delete_thread(config["configurable"]["thread_id"])
    assert all_items(client, table_name) == []


def test_a_thread_id_and_a_namespace_that_fit_alone_are_measured_together(
    saver: DynamoDBSaver, traffic: Traffic
) -> None:
    saver.get_tuple(thread_config("t" * 1026, "n" * 1021))
    traffic.clear()
    with pytest.raises(CheckpointerInputError, match=r"thread_id with checkpoint_ns .* 2049 bytes.*2048"):
        saver.get_tuple(thread_config("t" * 1026, "n" * 1022))
    assert traffic.requests == []


@pytest.mark.parametrize("method", ["delete_thread", "prune", "copy_thread"])
def test_an_operation_on_a_thread_whose_id_is_too_long_sends_nothing(
    saver: DynamoDBSaver, traffic: Traffic, method: str
) -> None:
    long = "t" * 2048
    arguments = {"delete_thread": (long,), "prune": ([long],), "copy_thread": ("thread-1", long)}[method]
    with pytest.raises(CheckpointerInputError, match=r"thread_id.* 2049 bytes.*limit of 2048"):
        getattr(saver, method)(*arguments)
    assert traffic.requests == []


@pytest.mark.parametrize("name", LARGEST)
def test_an_id_that_is_not_valid_unicode_is_named(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, name: str
) -> None:
    store(saver, thread_config(), "1", {"a": 1})
    before = all_items(client, table_name)
    named = "checkpoint_ns" if name == "namespace" else name
    with pytest.raises(CheckpointerInputError, match=rf"{named} .*surrogate.*valid Unicode"):
        _use(saver, name, "bad \ud800")
    assert all_items(client, table_name) == before


NO_IDS: list[Any] = [None, "", [], ["thread-1"], {}, b"thread-1", True, 1.5]
WITH_ID: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "delete_thread": lambda thread_id: (thread_id,),
    "prune": lambda thread_id: (["thread-1", thread_id],),
    "delete_for_runs": lambda run_id: (["run-1", run_id],),
    "copy_thread": lambda thread_id: (thread_id, "copy"),
}


@both_sides
@pytest.mark.parametrize("value", NO_IDS, ids=repr)
@pytest.mark.parametrize("method", WITH_ID)
def test_what_is_no_id_is_refused_before_anything_is_sent(
    saver: DynamoDBSaver, traffic: Traffic, method: str, value: Any, side: Side
) -> None:
    """Of all things, `delete_thread(None)` is not to delete the thread "None"."""
    with pytest.raises(CheckpointerInputError, match=r"(thread|run)_ids? is .*; give text"):
        ask(side, saver, method, *WITH_ID[method](value))
    assert traffic.requests == []


@pytest.mark.parametrize("value", NO_IDS, ids=repr)
def test_a_thread_is_not_copied_to_what_is_no_id(saver: DynamoDBSaver, traffic: Traffic, value: Any) -> None:
    with pytest.raises(CheckpointerInputError, match=r"target_thread_id is .*; give text"):
        saver.copy_thread("thread-1", value)
    assert traffic.requests == []


@both_sides
@pytest.mark.parametrize("value", NO_IDS[1:], ids=repr)
@pytest.mark.parametrize("method", WITH_CONFIG)
def test_a_config_with_a_thread_id_of_the_wrong_kind_is_refused(
    saver: DynamoDBSaver, traffic: Traffic, method: str, value: Any, side: Side
) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": value, "checkpoint_id": "1"}}
    with pytest.raises(CheckpointerInputError, match=r"thread_id is .*; give text"):
        ask(side, saver, method, **WITH_CONFIG[method](config))
    assert traffic.requests == []


@pytest.mark.parametrize("value", [7, UUID(int=7)], ids=repr)
def test_whole_numbers_and_uuids_are_thread_ids_as_for_langgraph(saver: DynamoDBSaver, value: Any) -> None:
    store(saver, {"configurable": {"thread_id": value}}, "1", {"a": 1})
    found = saver.get_tuple(thread_config(str(value)))
    assert found is not None
    saver.copy_thread(value, f"copy of {value}")
    saver.prune([value])
    saver.delete_thread(value)
    assert saver.get_tuple(thread_config(str(value))) is None


@both_sides
@pytest.mark.parametrize("config", ["thread-1", ["thread-1"], {"configurable": "thread-1"}, 1], ids=repr)
@pytest.mark.parametrize("method", WITH_CONFIG)
def test_what_is_no_config_is_refused(
    saver: DynamoDBSaver, traffic: Traffic, method: str, config: Any, side: Side
) -> None:
    with pytest.raises(CheckpointerInputError, match=r'config is .*; give {"configurable": {"thread_id"'):
        ask(side, saver, method, **WITH_CONFIG[method](config))
    assert traffic.requests == []


@both_sides
@pytest.mark.parametrize("value", [1, [], b"", True, {}], ids=repr)
@pytest.mark.parametrize("name", ["checkpoint_ns", "checkpoint_id"])
@pytest.mark.parametrize("method", WITH_CONFIG)
def test_a_namespace_or_checkpoint_id_that_is_no_text_is_refused(
    saver: DynamoDBSaver, traffic: Traffic, method: str, name: str, value: Any, side: Side
) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "thread-1", "checkpoint_id": "1", name: value}}
    with pytest.raises(CheckpointerInputError, match=rf"{name} is .*; give text"):
        ask(side, saver, method, **WITH_CONFIG[method](config))
    assert traffic.requests == []


@both_sides
@pytest.mark.parametrize("value", [None, "", 1, [], "missing"], ids=repr)
def test_a_checkpoint_without_an_id_is_refused(
    saver: DynamoDBSaver, traffic: Traffic, value: Any, side: Side
) -> None:
    checkpoint: Any = {**checkpoint_of("1", {"a": 1}), "id": value}
    if value == "missing":
        del checkpoint["id"]
    with pytest.raises(CheckpointerInputError, match=r'checkpoint\["id"\] is .*; give text'):
        ask(side, saver, "put", thread_config(), checkpoint, METADATA, {})
    assert traffic.requests == []


@both_sides
@pytest.mark.parametrize("value", [None, 1, []], ids=repr)
@pytest.mark.parametrize("name", ["task_id", "task_path"])
def test_a_task_that_is_no_text_is_refused(
    saver: DynamoDBSaver, traffic: Traffic, name: str, value: Any, side: Side
) -> None:
    task = {"task_id": "task", "task_path": "", name: value}
    with pytest.raises(CheckpointerInputError, match=rf"{name} is .*; give text"):
        ask(side, saver, "put_writes", thread_config(checkpoint_id="1"), [("channel", 1)], **task)
    assert traffic.requests == []


# What is listed

NO_LISTS: list[tuple[str, list[Any], str]] = [
    ("limit", [-1, True, "5", 1.5, 2**53], "limit is .*; give a whole number"),
    ("filter", ["loop", [("a", 1)], 1], "filter is .*; give a dict"),
    (
        "before",
        [{}, {"configurable": {}}, thread_config(checkpoint_id="")],
        'before is .*with its "checkpoint_id"',
    ),
    ("before", ["1"], "before is '1'; give"),
    ("before", [{"configurable": {"checkpoint_id": 1}}], "checkpoint_id is 1; give text"),
]
EACH_NO_LIST = [(name, value, said) for name, values, said in NO_LISTS for value in values]


@both_sides
@pytest.mark.parametrize(("name", "value", "said"), EACH_NO_LIST, ids=repr)
@pytest.mark.parametrize("config", [None, thread_config(), thread_config(checkpoint_id="1")], ids=repr)
def test_a_list_that_cannot_be_meant_is_refused_at_once(
    saver: DynamoDBSaver,
    traffic: Traffic,
    config: RunnableConfig | None,
    name: str,
    value: Any,
    said: str,
    side: Side,
) -> None:
    listing = saver.list if side == "sync" else saver.alist
    with pytest.raises(CheckpointerInputError, match=said):
        listing(config, **{name: value})
    assert traffic.requests == []


@both_sides
def test_a_list_of_no_thread_is_refused_at_once(saver: DynamoDBSaver, side: Side) -> None:
    listing = saver.list if side == "sync" else saver.alist
    with pytest.raises(CheckpointerInputError, match="thread_id"):
        listing({"configurable": {}})


@pytest.mark.parametrize("limit", [None, 1])
async def test_an_empty_config_lists_what_none_lists(saver: DynamoDBSaver, limit: int | None) -> None:
    for thread_id in ("one", "two"):
        store(saver, thread_config(thread_id), "1", {"good": 1})
    listed = list(saver.list(None, limit=limit))
    assert len(listed) == (limit or 2)
    assert list(saver.list({}, limit=limit)) == listed
    assert [each async for each in saver.alist({}, limit=limit)] == listed


@both_sides
def test_the_delta_channel_history_refuses_a_single_name(saver: DynamoDBSaver, side: Side) -> None:
    with pytest.raises(CheckpointerInputError, match="channels is the single name 'log'; give a list"):
        ask(side, saver, "get_delta_channel_history", config=thread_config(), channels="log")


# Values


UNWRITABLE = {"a lock": threading.Lock(), "within": [{"key": threading.Lock()}]}
PATHS = {"a lock": "broken", "within": r"broken\[0\]\['key'\]"}


@both_sides
@pytest.mark.parametrize("kind", UNWRITABLE)
@pytest.mark.parametrize("fresh", [True, False], ids=["first of its thread", "with a parent"])
def test_a_value_that_cannot_be_serialized_is_named_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str, side: Side, *, fresh: bool
) -> None:
    config = thread_config() if fresh else store(saver, thread_config(), "1", {"good": "x" * 50_000})
    before = all_items(client, table_name)
    checkpoint = checkpoint_of("2", {"good": "y" * 50_000, "broken": UNWRITABLE[kind]})
    with pytest.raises(
        CheckpointSerializationError,
        match=rf"channel 'broken' cannot be serialized: {PATHS[kind]} is a .*it was not stored.*serde",
    ):
        ask(side, saver, "put", config, checkpoint, METADATA, checkpoint["channel_versions"])
    assert all_items(client, table_name) == before


@both_sides
@pytest.mark.parametrize("kind", UNWRITABLE)
def test_a_write_that_cannot_be_serialized_is_named_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str, side: Side
) -> None:
    config = store(saver, thread_config(), "1", {})
    before = all_items(client, table_name)
    writes = [("good", "x" * 100_000), ("broken", UNWRITABLE[kind])]
    with pytest.raises(
        CheckpointSerializationError,
        match=rf"channel 'broken' cannot be serialized: {PATHS[kind]} is a .*it was not stored",
    ):
        ask(side, saver, "put_writes", config, writes, "task")
    assert all_items(client, table_name) == before


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_metadata_that_cannot_be_serialized_are_named_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str
) -> None:
    config = store(saver, thread_config(), "1", {})
    before = all_items(client, table_name)
    metadata = cast("CheckpointMetadata", {**METADATA, "broken": UNWRITABLE[kind]})
    with pytest.raises(
        CheckpointSerializationError,
        match=r"metadata cannot be serialized: metadata\['broken'\].*it was not stored",
    ):
        saver.put(config, checkpoint_of("2", {"good": "x" * 50_000}), metadata, {"good": 1})
    assert all_items(client, table_name) == before


def test_a_channel_name_that_is_not_valid_unicode_is_an_error_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    config = store(saver, thread_config(), "1", {})
    before = all_items(client, table_name)
    with pytest.raises(CheckpointSerializationError, match=r"surrogates|Unicode"):
        store(saver, config, "2", {"bad \ud800": 1})
    with pytest.raises(CheckpointSerializationError, match=r"surrogates|Unicode"):
        saver.put_writes(config, [("bad \ud800", 1)], "task")
    assert all_items(client, table_name) == before


# Options


@both_sides
@pytest.mark.parametrize(
    ("thread_ids", "options", "message"),
    [
        ("thread-1", {}, "thread_ids is a single str; give a list"),
        (None, {}, "thread_ids is None; give a list"),
        (b"thread-1", {}, "thread_ids is a single bytes; give a list"),
        (
            ["thread-1"],
            {"strategy": "keep_all"},
            "strategy 'keep_all' is unknown; use 'keep_latest', 'delete'",
        ),
        *[
            (
                ["thread-1"],
                {"strategy": "keep_last", "keep_last": count},
                f"keep_last is {count}; give .* from 1 to 9,007,199,254,740,991",
            )
            for count in (0, -1, None, True, 1.5, 2**53)
        ],
        (
            ["thread-1"],
            {"keep_last": 2},
            "keep_last=2 goes with strategy='keep_last', not with 'keep_latest'",
        ),
        (["thread-1"], {"strategy": "delete", "keep_last": 2}, "keep_last=2 goes with .* not with 'delete'"),
    ],
)
def test_prune_refuses_what_it_cannot_mean(
    saver: DynamoDBSaver, traffic: Traffic, thread_ids: Any, options: dict[str, Any], message: str, side: Side
) -> None:
    with pytest.raises(CheckpointerInputError, match=message):
        ask(side, saver, "prune", thread_ids, **options)
    assert traffic.requests == []


def test_delete_for_runs_refuses_a_single_id(saver: DynamoDBSaver, traffic: Traffic) -> None:
    with pytest.raises(CheckpointerInputError, match="run_ids is a single str; give a list"):
        saver.delete_for_runs("run-1")
    assert traffic.requests == []


def test_a_thread_cannot_be_copied_onto_itself(saver: DynamoDBSaver, traffic: Traffic) -> None:
    with pytest.raises(CheckpointerInputError, match="both thread 'thread-1'; give another id"):
        saver.copy_thread("thread-1", "thread-1")
    assert traffic.requests == []
