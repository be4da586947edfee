"""The matrix: saver, store and cache, on the table or through the gateway, opened in every way, by every method.

The methods are found in the classes. So a method that is added tomorrow has to be called here, in every cell. `MISSING`
names the cells that do not exist, each with its reason.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.base import GetOp

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import (
    DynamoDBSaver,
    create_cache,
    create_checkpointer,
    create_store,
    open_cache,
    open_checkpointer,
    open_store,
    server,
)
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore, operations
from langgraph.store.dynamodb import DynamoDBStore
from tests.simulation.savers import OPERATIONS
from tests.support.checkpoints import checkpoint_of, thread_config

if TYPE_CHECKING:
    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

CLASSES: Mapping[str, tuple[Any, Any]] = {
    "checkpointer": (DynamoDBSaver, HttpCheckpointSaver),
    "store": (DynamoDBStore, HttpStore),
    "cache": (DynamoDBCache, HttpCache),
}
# Public inside the package only.
INSIDE = {"storage_with"}
TYPES = ("dynamodb", "http")
CREATE: Any = {"checkpointer": create_checkpointer, "store": create_store, "cache": create_cache}
OPEN: Any = {"checkpointer": open_checkpointer, "store": open_store, "cache": open_cache}
SERVER: Any = {"checkpointer": server.checkpointer, "store": server.store}
WAYS = ("constructor", "dict", "async dict", "module level", "file", "environment", "agent server")
# By component, type and way: the methods that a cell does not have. `*` stands for any, or for all methods.
MISSING: Mapping[tuple[str, str, str], tuple[set[str], str]] = {
    ("cache", "*", "agent server"): ({"*"}, "langgraph.json has no line for a node cache"),
    ("*", "http", "*"): (
        {"setup", "asetup"},
        "whoever runs the service creates the table; agents have no right to",
    ),
}


def missing(kind: str, type_: str, way: str) -> set[str]:
    """Return the methods that a cell does not have."""
    found = set[str]()
    for cell, (names, reason) in MISSING.items():
        assert reason
        if all(each in ("*", own) for each, own in zip(cell, (kind, type_, way), strict=True)):
            found |= names
    return found


CELLS = [
    (kind, type_, way)
    for kind in CLASSES
    for type_ in TYPES
    for way in WAYS
    if "*" not in missing(kind, type_, way)
]

PLACE = ("acme", "u1")
NODE = (("acme", "n"), "k")
THREAD = thread_config("t")
AT = thread_config("t", checkpoint_id="1")
NOW = "2026-01-01T00:00:00+00:00"
RECORD = {"namespace": PLACE, "key": "k", "value": {}, "created_at": NOW, "updated_at": NOW}


def call(*args: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call."""
    return args, options


# In an order in which each can be made. The async method of the same meaning gets the same arguments.
CALLS: Mapping[str, Mapping[str, tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "checkpointer": {
        "setup": call(),
        "put": call(THREAD, checkpoint_of("1", {"n": 1}), {}, {"n": 1}),
        "put_writes": call(AT, [("n", 2)], "task"),
        "get": call(THREAD),
        "get_tuple": call(THREAD),
        "list": call(THREAD),
        "get_delta_channel_history": call(config=AT, channels=["n"]),
        "copy_thread": call("t", "copy"),
        "prune": call(["t"], strategy="delete_all"),
        "set_thread": call("t", title="T"),
        "threads": call(),
        "runs": call("t"),
        "thread_lock": call("t"),
        "get_next_version": call(None, None),
        "with_allowlist": call([]),
        "delete_for_runs": call(["r"]),
        "delete_thread": call("copy"),
        "warm_up": call(),
        "close": call(),
    },
    "store": {
        "setup": call(),
        "put": call(PLACE, "k", {}),
        "put_if": call(PLACE, "new", {}, revision=None),
        "get": call(PLACE, "k"),
        "search": call(PLACE, order="key"),
        "list_namespaces": call(),
        "batch": call([GetOp(PLACE, "k")]),
        "export_items": call(),
        "import_items": call([RECORD]),
        "sweep_ttl": call(),
        "start_ttl_sweeper": call(),
        "stop_ttl_sweeper": call(),
        "delete": call(PLACE, "k"),
        "delete_namespace": call(PLACE),
        "warm_up": call(),
        "close": call(),
    },
    "cache": {
        "setup": call(),
        "set": call({NODE: (1, None)}),
        "get": call([NODE]),
        "clear": call(),
        "warm_up": call(),
        "close": call(),
    },
}
ONLY_BLOCKING = {"get_next_version", "with_allowlist", "start_ttl_sweeper", "stop_ttl_sweeper"}


def methods(cls: Any) -> set[str]:
    """Return the names of the public methods of a class."""
    named = {name for name, _ in inspect.getmembers(cls, inspect.isfunction)} - INSIDE
    return {name for name in named if not name.startswith("_")}


def called(kind: str, type_: str, way: str) -> list[str]:
    """Return the names of the methods of a cell, the blocking ones first."""
    either = [f"{prefix}{name}" for prefix in ("", "a") for name in CALLS[kind]]
    absent = missing(kind, type_, way) | {f"a{name}" for name in ONLY_BLOCKING}
    return [name for name in either if name not in absent]


def made_call(made: Any, kind: str, name: str) -> Any:
    """Call a method, by the arguments of its name or of the blocking one's."""
    args, options = CALLS[kind].get(name) or CALLS[kind][name[1:]]
    return getattr(made, name)(*args, **options)


async def outcome(name: str, result: Any) -> Any:
    """Return what comes of a call: all of a list, and of a lock that it was held."""
    if name == "thread_lock":
        with result as lock:
            return lock.check()
    if name == "athread_lock":
        async with result as lock:
            return await lock.check()
    if isinstance(result, AsyncIterator):
        return [each async for each in result]
    if isinstance(result, Iterator):
        return list(result)
    return await result if inspect.isawaitable(result) else result


@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_of_a_class_is_called_in_its_cells(kind: str) -> None:
    for type_, cls in zip(TYPES, CLASSES[kind], strict=True):
        assert {*called(kind, type_, "constructor")} == methods(cls), cls


@pytest.mark.parametrize("kind", CLASSES)
def test_each_method_takes_what_the_one_on_the_table_takes(kind: str) -> None:
    near, far = CLASSES[kind]
    for name in called(kind, "http", "constructor"):
        assert inspect.signature(getattr(far, name)) == inspect.signature(getattr(near, name)), name


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_of_the_client_takes_and_returns_what_the_one_on_the_table_does(name: str) -> None:
    assert hasattr(operations, name), f"http/operations.py has no {name}"
    near, far = inspect.signature(OPERATIONS[name]), inspect.signature(getattr(operations, name))
    (_, *mine), (_, *its) = far.parameters.values(), near.parameters.values()
    # What more the one on the table takes, no saver gives.
    assert mine == its[: len(mine)]
    assert far.return_annotation == near.return_annotation


@asynccontextmanager
async def opened(
    cell: tuple[str, str, str], config: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    """Open an object of a cell."""
    kind, type_, way = cell
    section = {"type": type_, "config": config}
    (tmp_path / "agent.yaml").write_text(json.dumps({kind: section}))
    if way in ("environment", "agent server"):
        monkeypatch.setenv(f"LANGGRAPH_{kind.upper()}_TYPE", type_)
        for name, value in config.items():
            monkeypatch.setenv(f"LANGGRAPH_{kind.upper()}_CONFIG__{name.upper()}", str(value))
    if way == "constructor":
        yield CLASSES[kind][TYPES.index(type_)](**config)
    elif way == "module level":
        yield OPEN[kind](section)
    elif way == "async dict":
        async with CREATE[kind](section) as made:
            yield made
    elif way == "agent server":
        async with SERVER[kind]() as made:
            yield made
    else:
        source = {"dict": section, "file": tmp_path / "agent.yaml", "environment": None}[way]
        with CREATE[kind](source) as made:
            yield made


@pytest.mark.parametrize("cell", CELLS, ids=", ".join)
def test_every_method_works_in_every_cell(
    cell: tuple[str, str, str],
    serve: Callable[..., str],
    engine: Engine,
    table_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, type_, _ = cell
    table = {"table_name": table_name, "endpoint_url": engine.endpoint_url, "region_name": engine.region_name}

    async def main() -> None:
        # The cache would give up after seconds, and the machine may be busy.
        patient = {"timeout": 60, "retry_seconds": 60}
        config = {"url": serve(), **patient} if type_ == "http" else table
        async with opened(cell, config, tmp_path, monkeypatch) as made:
            assert type(made) is CLASSES[kind][TYPES.index(type_)]
            for name in called(*cell):
                assert (name, await outcome(name, made_call(made, kind, name))) != ("get", None)
            await made.aclose()

    asyncio.run(main())
