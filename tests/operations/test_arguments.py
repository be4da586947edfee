"""What a caller can get wrong: an error of its own for each, with the remedy, and nothing stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver
from tests.support.checkpoints import METADATA, all_items, checkpoint_of, store, thread_config
from tests.support.operations import WITH_CONFIG, Side, ask, both_sides

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# DynamoDB Local has AWS's limits for what just fits.
pytestmark = pytest.mark.engines("dynamodb-local")

Refused: TypeAlias = tuple[str, dict[str, Any], str]
"""A method, its arguments, and the words of its error."""


# Refused before anything is sent


def _with_config(configs: list[Any], message: str, methods: Any = WITH_CONFIG) -> list[Refused]:
    return [(each, WITH_CONFIG[each](config), message) for each in methods for config in configs]


def _with(method: str, name: str, values: list[Any], message: str, **others: Any) -> list[Refused]:
    return [(method, {**others, name: each}, message) for each in values]


def _pointing(**configurable: Any) -> Any:
    return {"configurable": {"thread_id": "thread-1", "checkpoint_id": "1", **configurable}}


# Of all things, `delete_thread(None)` is not to delete the thread "None".
NO_IDS: list[Any] = [None, "", [], ["thread-1"], {}, b"thread-1", True, 1.5]
NO_TEXTS: list[Any] = [1, [], b"", True, {}]
TOO_LONG = "t" * 2048
PUT = {"config": thread_config(), "metadata": METADATA, "new_versions": {}}
WRITES = {"config": thread_config(checkpoint_id="1"), "writes": [("channel", 1)]}
IS_TOO_LONG = r"thread_id.* 2049 bytes.*limit of 2048"

REFUSED: list[Refused] = [
    *_with_config([{"configurable": {}}, {"configurable": {"thread_id": None}}], r"thread_id.* is missing; give"),
    # A list takes an empty config for None.
    *_with_config([{}], r"thread_id.* is missing; give", sorted(WITH_CONFIG.keys() - {"list"})),
    *_with_config(["thread-1", ["thread-1"], {"configurable": "thread-1"}, 1], r"config is .*; give {\"configurable\""),
    *_with_config([_pointing(thread_id=each) for each in NO_IDS[1:]], "thread_id is .*; give text"),
    *_with_config([_pointing(checkpoint_ns=each) for each in NO_TEXTS], "checkpoint_ns is .*; give text"),
    *_with_config([_pointing(checkpoint_id=each) for each in NO_TEXTS], "checkpoint_id is .*; give text"),
    *_with_config([thread_config("t" * 1026, "n" * 1022, "1")], r"with checkpoint_ns .* 2049 bytes.*2048"),
    *_with("delete_thread", "thread_id", NO_IDS, "thread_id is .*; give text"),
    *_with("prune", "thread_ids", [["thread-1", each] for each in NO_IDS], "thread_ids is .*; give text"),
    *_with("delete_for_runs", "run_ids", [["run-1", each] for each in NO_IDS], "run_ids is .*; give text"),
    *_with("copy_thread", "source_thread_id", NO_IDS, "source_thread_id is .*; give text", target_thread_id="copy"),
    *_with("copy_thread", "target_thread_id", NO_IDS, "target_thread_id is .*; give text", source_thread_id="thread-1"),
    *_with("copy_thread", "target_thread_id", [TOO_LONG], IS_TOO_LONG, source_thread_id="thread-1"),
    *_with("copy_thread", "target_thread_id", ["t"], "both thread 't'; give another id", source_thread_id="t"),
    *_with("delete_thread", "thread_id", [TOO_LONG], IS_TOO_LONG),
    *_with("prune", "thread_ids", [[TOO_LONG]], IS_TOO_LONG),
    *_with("prune", "thread_ids", ["thread-1", b"thread-1"], "thread_ids is a single .*; give a list"),
    *_with("prune", "thread_ids", [None], "thread_ids is None; give a list"),
    *_with("prune", "strategy", ["keep_all"], "'keep_all' is unknown; use 'keep_latest', 'delete'", thread_ids=["t"]),
    *_with(
        "prune", "keep_last", [0, -1, None, True, 1.5, 2**53],
        "keep_last is .*; give .* from 1 to 9,007,199,254,740,991", thread_ids=["t"], strategy="keep_last",
    ),
    *_with("prune", "keep_last", [2], "goes with strategy='keep_last', not with 'keep_latest'", thread_ids=["t"]),
    *_with("prune", "keep_last", [2], "goes with .* not with 'delete'", thread_ids=["t"], strategy="delete"),
    *_with("delete_for_runs", "run_ids", ["run-1"], "run_ids is a single str; give a list"),
    *_with("get_delta_channel_history", "channels", ["log"], "single name 'log'; give a list", config=thread_config()),
    *_with(
        "put", "checkpoint", [{**checkpoint_of("1", {}), "id": each} for each in NO_IDS[:3]] + [{}],
        r'checkpoint\["id"\] is .*; give text', **PUT,
    ),
    *_with("put_writes", "task_id", [None, 1, []], "task_id is .*; give text", **WRITES),
    *_with("put_writes", "task_path", [None, 1, []], "task_path is .*; give text", task_id="task", **WRITES),
    *_with(
        "put_writes", "config", [thread_config()], r'"checkpoint_id"\] is missing; give the checkpoint',
        writes=[("channel", 1)], task_id="task",
    ),
    *_with("list", "limit", [-1, True, "5", 1.5, 2**53], "limit is .*; give a whole number", config=None),
    *_with("list", "filter", ["loop", [("a", 1)], 1], "filter is .*; give a dict", config=thread_config()),
    *_with(
        "list", "before", [{}, {"configurable": {}}, thread_config(checkpoint_id="")],
        'before is .*with its "checkpoint_id"', config=thread_config(checkpoint_id="1"),
    ),
    *_with("list", "before", ["1"], "before is '1'; give", config=None),
    *_with("list", "before", [_pointing(checkpoint_id=1)], "checkpoint_id is 1; give text", config=None),
]  # fmt: skip


@pytest.fixture(scope="module")
def offline() -> DynamoDBSaver:
    """Give a saver that reaches no table: a request would end with another error."""
    return DynamoDBSaver("table", region_name="us-east-1", endpoint_url="http://127.0.0.1:1")


@both_sides
@pytest.mark.parametrize(("method", "arguments", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(
    offline: DynamoDBSaver, method: str, arguments: dict[str, Any], message: str, side: Side
) -> None:
    with pytest.raises(CheckpointerInputError, match=message):
        ask(side, offline, method, **arguments)


@pytest.mark.parametrize("side", ["list", "alist"])
def test_a_list_is_refused_at_once(offline: DynamoDBSaver, side: str) -> None:
    for config, options in (({"configurable": {}}, {}), (None, {"limit": -1})):
        with pytest.raises(CheckpointerInputError):
            getattr(offline, side)(config, **options)


# Ids


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
# Characters, and how many bytes each takes. One that stays as it is, one that is quoted and one of many bytes are no
# search.
UNITS = [
    ("a", 1),
    ("#", 3),
    ("🙂", 4),
    *(pytest.param(*each, marks=pytest.mark.search) for each in [("é", 2), ("%", 3), ("\0", 3), ("€", 3)]),
]


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


def test_a_thread_id_and_a_namespace_that_just_fit_together_are_read(saver: DynamoDBSaver) -> None:
    assert saver.get_tuple(thread_config("t" * 1026, "n" * 1021)) is None


@pytest.mark.parametrize("value", [7, UUID(int=7)], ids=repr)
def test_whole_numbers_and_uuids_are_thread_ids_as_for_langgraph(saver: DynamoDBSaver, value: Any) -> None:
    store(saver, {"configurable": {"thread_id": value}}, "1", {"a": 1})
    found = saver.get_tuple(thread_config(str(value)))
    assert found is not None
    saver.copy_thread(value, f"copy of {value}")
    saver.prune([value])
    saver.delete_thread(value)
    assert saver.get_tuple(thread_config(str(value))) is None


@pytest.mark.parametrize("limit", [None, 1])
async def test_an_empty_config_lists_what_none_lists(saver: DynamoDBSaver, limit: int | None) -> None:
    for thread_id in ("one", "two"):
        store(saver, thread_config(thread_id), "1", {"good": 1})
    listed = list(saver.list(None, limit=limit))
    assert len(listed) == (limit or 2)
    assert list(saver.list({}, limit=limit)) == listed
    assert [each async for each in saver.alist({}, limit=limit)] == listed
