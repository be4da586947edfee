"""What a caller or an account can get wrong: an error of its own for each, with the remedy, and nothing stored."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    CheckpointerInputError,
    CheckpointSerializationError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._schema import TTL_ATTRIBUTE, table_schema
from tests.support.samples import METADATA, checkpoint_of, config_of, everything_in, store, values_of
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

either_side = pytest.mark.parametrize("side", ["sync", "async"])


def _ask(side: str, saver: DynamoDBSaver, method: str, *args: Any, **options: Any) -> Any:
    """Call a method of the saver, or its async one on an event loop of its own, and read a list to its end."""
    if side == "sync":
        answer = getattr(saver, method)(*args, **options)
        return list(answer) if method == "list" else answer

    async def ask() -> Any:
        answer = getattr(saver, f"a{method}")(*args, **options)
        return [each async for each in answer] if method == "list" else await answer

    return asyncio.run(ask())


def _put_arguments(config: RunnableConfig) -> tuple[Any, ...]:
    return config, checkpoint_of("1", {"big": "x" * 100_000}), METADATA, {"big": 1}


# Each operation that takes a config, with the rest of its arguments.
WITH_CONFIG: dict[str, Callable[[RunnableConfig], tuple[Any, ...]]] = {
    "get_tuple": lambda config: (config,),
    "list": lambda config: (config,),
    "put": _put_arguments,
    "put_writes": lambda config: (config, [("channel", 1)], "task"),
}
# Every operation that makes a request, with all of its arguments.
OPERATIONS: dict[str, tuple[Any, ...]] = {
    **{name: arguments(config_of(checkpoint_id="0")) for name, arguments in WITH_CONFIG.items()},
    "delete_thread": ("thread-1",),
    "delete_for_runs": (["run-1"],),
    "prune": (["thread-1"],),
    "copy_thread": ("thread-1", "copy"),
}


@pytest.fixture
def own_client(engine: Engine) -> Iterator[DynamoDBClient]:
    """Give a client that is the saver's alone."""
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as dynamodb:
        yield dynamodb


@pytest.fixture
def traffic(own_client: DynamoDBClient) -> Traffic:
    """Give what the saver of the test sends."""
    return Traffic(own_client.meta.events)


@pytest.fixture
def saver(own_client: DynamoDBClient, table_name: str, traffic: Traffic) -> Iterator[DynamoDBSaver]:
    """Give a saver whose every request is recorded."""
    del traffic
    with DynamoDBSaver(table_name, client=own_client) as saver:
        yield saver


# Ids


@either_side
@pytest.mark.parametrize("config", [{}, {"configurable": {}}, {"configurable": {"thread_id": None}}])
@pytest.mark.parametrize("method", WITH_CONFIG)
def test_a_missing_thread_id_is_named_before_anything_is_sent(
    saver: DynamoDBSaver, traffic: Traffic, method: str, config: RunnableConfig, side: str
) -> None:
    with pytest.raises(
        CheckpointerInputError, match=r'config\["configurable"\]\["thread_id"\] is missing; give'
    ):
        _ask(side, saver, method, *WITH_CONFIG[method](config))
    assert traffic.requests == []


@either_side
@pytest.mark.parametrize("config", [{}, {"configurable": {}}])
def test_a_missing_thread_id_is_named_by_the_delta_channel_history(
    saver: DynamoDBSaver, config: RunnableConfig, side: str
) -> None:
    with pytest.raises(CheckpointerInputError, match="thread_id"):
        _ask(side, saver, "get_delta_channel_history", config=config, channels=["channel"])


@either_side
def test_writes_without_a_checkpoint_id_are_refused(
    saver: DynamoDBSaver, traffic: Traffic, side: str
) -> None:
    with pytest.raises(CheckpointerInputError, match=r'"checkpoint_id"\] is missing; give the checkpoint'):
        _ask(side, saver, "put_writes", config_of(), [("channel", 1)], "task")
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
        config = store(saver, config_of(), "1", {"a": 1})
        saver.put_writes(config, [("channel", 1)], value)
        return config
    place = {name: value} if name in ("thread_id", "namespace") else {}
    return store(saver, config_of(**place), value if name == "checkpoint_id" else "1", {"a": 1})


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
    before = everything_in(client, table_name)
    limit = 2048 if name == "thread_id" else 1024
    named = "checkpoint_ns" if name == "namespace" else name
    with pytest.raises(
        CheckpointerInputError, match=rf"{named}.* {limit + 1} bytes.*limit of {limit}.*shorter"
    ):
        _use(saver, name, largest + "a")
    assert everything_in(client, table_name) == before
    saver.delete_thread(config["configurable"]["thread_id"])
    assert everything_in(client, table_name) == []


def test_a_thread_id_and_a_namespace_that_fit_alone_are_measured_together(
    saver: DynamoDBSaver, traffic: Traffic
) -> None:
    saver.get_tuple(config_of("t" * 1026, "n" * 1021))
    traffic.clear()
    with pytest.raises(CheckpointerInputError, match=r"thread_id with checkpoint_ns .* 2049 bytes.*2048"):
        saver.get_tuple(config_of("t" * 1026, "n" * 1022))
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
    store(saver, config_of(), "1", {"a": 1})
    before = everything_in(client, table_name)
    named = "checkpoint_ns" if name == "namespace" else name
    with pytest.raises(CheckpointerInputError, match=rf"{named} .*surrogate.*valid Unicode"):
        _use(saver, name, "bad \ud800")
    assert everything_in(client, table_name) == before


# Values


UNWRITABLE = {"a lock": threading.Lock(), "within": [{"key": threading.Lock()}]}


@either_side
@pytest.mark.parametrize("kind", UNWRITABLE)
@pytest.mark.parametrize("fresh", [True, False], ids=["first of its thread", "with a parent"])
def test_a_value_that_cannot_be_serialized_is_named_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str, side: str, *, fresh: bool
) -> None:
    config = config_of() if fresh else store(saver, config_of(), "1", {"good": "x" * 50_000})
    before = everything_in(client, table_name)
    checkpoint = checkpoint_of("2", {"good": "y" * 50_000, "broken": UNWRITABLE[kind]})
    with pytest.raises(
        CheckpointSerializationError,
        match=r"channel 'broken' cannot be serialized.*nothing was stored.*serde",
    ):
        _ask(side, saver, "put", config, checkpoint, METADATA, checkpoint["channel_versions"])
    assert everything_in(client, table_name) == before


@either_side
@pytest.mark.parametrize("kind", UNWRITABLE)
def test_a_write_that_cannot_be_serialized_is_named_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str, side: str
) -> None:
    config = store(saver, config_of(), "1", {})
    before = everything_in(client, table_name)
    writes = [("good", "x" * 100_000), ("broken", UNWRITABLE[kind])]
    with pytest.raises(CheckpointSerializationError, match=r"channel 'broken' cannot be serialized.*nothing"):
        _ask(side, saver, "put_writes", config, writes, "task")
    assert everything_in(client, table_name) == before


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_metadata_that_cannot_be_serialized_are_named_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str
) -> None:
    config = store(saver, config_of(), "1", {})
    before = everything_in(client, table_name)
    metadata = cast("CheckpointMetadata", {**METADATA, "broken": UNWRITABLE[kind]})
    with pytest.raises(CheckpointSerializationError, match=r"the metadata cannot be serialized.*nothing"):
        saver.put(config, checkpoint_of("2", {"good": "x" * 50_000}), metadata, {"good": 1})
    assert everything_in(client, table_name) == before


def test_a_channel_name_that_is_not_valid_unicode_is_an_error_and_nothing_is_stored(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    config = store(saver, config_of(), "1", {})
    before = everything_in(client, table_name)
    with pytest.raises(CheckpointSerializationError, match=r"surrogates|Unicode"):
        store(saver, config, "2", {"bad \ud800": 1})
    with pytest.raises(CheckpointSerializationError, match=r"surrogates|Unicode"):
        saver.put_writes(config, [("bad \ud800", 1)], "task")
    assert everything_in(client, table_name) == before


# Tables


@either_side
@pytest.mark.parametrize("method", OPERATIONS)
def test_a_missing_table_is_named_with_what_makes_it(engine: Engine, method: str, side: str) -> None:
    saver = DynamoDBSaver("no-such-table", endpoint_url=engine.endpoint_url, region_name=engine.region_name)
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"(?s)table no-such-table .*does not exist.*infra/table\.yaml.*setup\(\).*region_name",
    ):
        _ask(side, saver, method, *OPERATIONS[method])
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


def _assert_that_the_schema_is_named(
    engine: Engine, client: DynamoDBClient, table_name: str, method: str
) -> None:
    with (
        DynamoDBSaver(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver,
        pytest.raises(
            CheckpointerConfigurationError, match=rf"(?s)table {table_name} .*infra/table\.yaml.*setup\(\)"
        ),
    ):
        _ask("sync", saver, method, *OPERATIONS[method])
    assert everything_in(client, table_name) == []


@pytest.mark.parametrize("keys", OTHER_NAMES)
@pytest.mark.parametrize("method", OPERATIONS)
def test_a_table_with_other_keys_is_named_with_what_makes_the_right_one(
    engine: Engine, client: DynamoDBClient, other_table: Callable[..., str], method: str, keys: str
) -> None:
    name = other_table(**_schema(_new_name(), OTHER_NAMES[keys]))
    _assert_that_the_schema_is_named(engine, client, name, method)


# moto's server answers a query by text in a table whose keys are numbers with no items; AWS refuses it.
@pytest.mark.engines("external", "dynamodb-local")
@pytest.mark.parametrize("keys", OTHER_TYPES)
@pytest.mark.parametrize("method", OPERATIONS)
def test_a_table_with_keys_of_another_type_is_named_with_what_makes_the_right_one(
    engine: Engine, client: DynamoDBClient, other_table: Callable[..., str], method: str, keys: str
) -> None:
    name = other_table(**_schema(_new_name(), OTHER_TYPES[keys]))
    _assert_that_the_schema_is_named(engine, client, name, method)


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


@either_side
@pytest.mark.parametrize("kind", OTHER_SCHEMAS)
def test_setup_says_how_a_table_that_exists_differs_and_changes_nothing(
    engine: Engine, client: DynamoDBClient, other_table: Callable[..., str], kind: str, side: str
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
        _ask(side, saver, "setup")
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


@either_side
def test_setup_makes_the_table_and_may_be_called_again(
    engine: Engine, client: DynamoDBClient, side: str
) -> None:
    name = _new_name()
    with DynamoDBSaver(name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver:
        _ask(side, saver, "setup")
        store(saver, config_of(), "1", {"a": 1})
        _ask(side, saver, "setup")
        assert values_of(saver, config_of()) == {"a": 1}
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
            CheckpointerConfigurationError, match=rf"(?s)table {name} .*infra/table\.yaml.*setup\(\)"
        ),
    ):
        NEEDS_INDEX[method](saver)


# The account


@either_side
@pytest.mark.parametrize(
    "missing", [["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], ["AWS_SECRET_ACCESS_KEY"]]
)
@pytest.mark.parametrize("method", ["get_tuple", "put", "setup"])
def test_missing_credentials_are_named_with_how_to_give_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, missing: list[str], side: str
) -> None:
    for variable in missing:
        monkeypatch.delenv(variable)
    saver = DynamoDBSaver("the-table", endpoint_url=engine.endpoint_url, region_name=engine.region_name)
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"no usable AWS credentials for table the-table.*role.*`aws configure`.*session=",
    ):
        _ask(side, saver, method, *OPERATIONS.get(method, ()))
    saver.close()


@either_side
@pytest.mark.parametrize("with_endpoint", [True, False])
@pytest.mark.parametrize("method", ["get_tuple", "put", "setup"])
def test_a_missing_region_is_named_with_how_to_give_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, side: str, *, with_endpoint: bool
) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable)
    saver = DynamoDBSaver("the-table", endpoint_url=engine.endpoint_url if with_endpoint else None)
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"no AWS region for table the-table; pass region_name=.*AWS_DEFAULT_REGION",
    ):
        _ask(side, saver, method, *OPERATIONS.get(method, ()))
    saver.close()


# Options


@either_side
@pytest.mark.parametrize(
    ("thread_ids", "options", "message"),
    [
        ("thread-1", {}, "thread_ids is a single str; give a list"),
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
                f"keep_last is {count}; give .* 1 or more",
            )
            for count in (0, -1, None, True, 1.5)
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
    saver: DynamoDBSaver, traffic: Traffic, thread_ids: Any, options: dict[str, Any], message: str, side: str
) -> None:
    with pytest.raises(CheckpointerInputError, match=message):
        _ask(side, saver, "prune", thread_ids, **options)
    assert traffic.requests == []


def test_delete_for_runs_refuses_a_single_id(saver: DynamoDBSaver, traffic: Traffic) -> None:
    with pytest.raises(CheckpointerInputError, match="run_ids is a single str; give a list"):
        saver.delete_for_runs("run-1")
    assert traffic.requests == []


def test_a_thread_cannot_be_copied_onto_itself(saver: DynamoDBSaver, traffic: Traffic) -> None:
    with pytest.raises(CheckpointerInputError, match="both thread 'thread-1'; give another id"):
        saver.copy_thread("thread-1", "thread-1")
    assert traffic.requests == []


@pytest.mark.parametrize("ttl_seconds", [0, -1, 1.5, True, "60"])
def test_a_time_to_live_that_is_no_number_of_seconds_is_refused(ttl_seconds: Any) -> None:
    with pytest.raises(CheckpointerInputError, match=rf"ttl_seconds is {ttl_seconds!r}; give a whole number"):
        DynamoDBSaver("the-table", ttl_seconds=ttl_seconds)


@pytest.mark.parametrize("table_name", ["", None])
def test_a_table_name_that_is_empty_is_refused(table_name: Any) -> None:
    with pytest.raises(CheckpointerInputError, match=rf"table_name is {table_name!r}; give the name or ARN"):
        DynamoDBSaver(table_name)
