"""The matrix: saver, store and cache, on the table or through the gateway, opened in every way, by every method.

The methods are found in the classes. So a method that is added tomorrow has to be called here, in every cell. `MISSING`
names the cells that do not exist, each with its reason.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
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
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS, LABEL_ENDPOINTS
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.checkpoints import checkpoint_of, thread_config
from tests.support.documents import read

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
PUT: Any = (THREAD, checkpoint_of("1", {"n": 1}), {}, {"n": 1})
AT = thread_config("t", checkpoint_id="1")
WRITES: Any = (AT, [("n", 2)], "task")


def methods(cls: Any) -> set[str]:
    """Return the names of the public methods of a class."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


async def _locked(saver: Any) -> None:
    async with saver.athread_lock("t") as lock:
        await lock.check()


def _locked_blocking(saver: Any) -> None:
    with saver.thread_lock("t") as lock:
        lock.check()


async def _all(found: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in found]


CALLS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "checkpointer": {
        "setup": lambda it: it.setup(),
        "asetup": lambda it: it.asetup(),
        "put": lambda it: it.put(*PUT),
        "aput": lambda it: it.aput(*PUT),
        "put_writes": lambda it: it.put_writes(*WRITES),
        "aput_writes": lambda it: it.aput_writes(*WRITES),
        "get": lambda it: it.get(THREAD),
        "aget": lambda it: it.aget(THREAD),
        "get_tuple": lambda it: it.get_tuple(THREAD),
        "aget_tuple": lambda it: it.aget_tuple(THREAD),
        "list": lambda it: list(it.list(THREAD)),
        "alist": lambda it: _all(it.alist(THREAD)),
        "get_delta_channel_history": lambda it: it.get_delta_channel_history(config=AT, channels=["n"]),
        "aget_delta_channel_history": lambda it: it.aget_delta_channel_history(config=AT, channels=["n"]),
        "copy_thread": lambda it: it.copy_thread("t", "copy"),
        "acopy_thread": lambda it: it.acopy_thread("t", "another copy"),
        "prune": lambda it: it.prune(["t"]),
        "aprune": lambda it: it.aprune(["t"]),
        "set_thread": lambda it: it.set_thread("t", title="T"),
        "aset_thread": lambda it: it.aset_thread("t", title="T"),
        "threads": lambda it: it.threads(),
        "athreads": lambda it: it.athreads(),
        "runs": lambda it: it.runs("t"),
        "aruns": lambda it: it.aruns("t"),
        "thread_lock": _locked_blocking,
        "athread_lock": _locked,
        "get_next_version": lambda it: it.get_next_version(None, None),
        "with_allowlist": lambda it: it.with_allowlist([]),
        "delete_for_runs": lambda it: it.delete_for_runs(["r"]),
        "adelete_for_runs": lambda it: it.adelete_for_runs(["r"]),
        "delete_thread": lambda it: it.delete_thread("copy"),
        "adelete_thread": lambda it: it.adelete_thread("t"),
        "warm_up": lambda it: it.warm_up(),
        "awarm_up": lambda it: it.awarm_up(),
        "close": lambda it: it.close(),
        "aclose": lambda it: it.aclose(),
    },
    "store": {
        "setup": lambda it: it.setup(),
        "asetup": lambda it: it.asetup(),
        "put": lambda it: it.put(PLACE, "k", {}),
        "aput": lambda it: it.aput(PLACE, "k", {}),
        "put_if": lambda it: it.put_if(PLACE, "new", {}, revision=None),
        "aput_if": lambda it: it.aput_if(PLACE, "newer", {}, revision=None),
        "get": lambda it: it.get(PLACE, "k"),
        "aget": lambda it: it.aget(PLACE, "k"),
        "search": lambda it: it.search(PLACE, order="key"),
        "asearch": lambda it: it.asearch(PLACE, order="key"),
        "list_namespaces": lambda it: it.list_namespaces(),
        "alist_namespaces": lambda it: it.alist_namespaces(),
        "batch": lambda it: it.batch([GetOp(PLACE, "k")]),
        "abatch": lambda it: it.abatch([GetOp(PLACE, "k")]),
        "export_items": lambda it: list(it.export_items()),
        "aexport_items": lambda it: _all(it.aexport_items()),
        "import_items": lambda it: it.import_items(list(it.export_items())),
        "aimport_items": lambda it: it.aimport_items(list(it.export_items())),
        "sweep_ttl": lambda it: it.sweep_ttl(),
        "asweep_ttl": lambda it: it.asweep_ttl(),
        "start_ttl_sweeper": lambda it: it.start_ttl_sweeper(),
        "stop_ttl_sweeper": lambda it: it.stop_ttl_sweeper(),
        "delete": lambda it: it.delete(PLACE, "k"),
        "adelete": lambda it: it.adelete(PLACE, "k"),
        "delete_namespace": lambda it: it.delete_namespace(PLACE),
        "adelete_namespace": lambda it: it.adelete_namespace(PLACE),
        "warm_up": lambda it: it.warm_up(),
        "awarm_up": lambda it: it.awarm_up(),
        "close": lambda it: it.close(),
        "aclose": lambda it: it.aclose(),
    },
    "cache": {
        "setup": lambda it: it.setup(),
        "asetup": lambda it: it.asetup(),
        "set": lambda it: it.set({NODE: (1, None)}),
        "aset": lambda it: it.aset({NODE: (1, None)}),
        "get": lambda it: it.get([NODE]),
        "aget": lambda it: it.aget([NODE]),
        "clear": lambda it: it.clear(),
        "aclear": lambda it: it.aclear(),
        "warm_up": lambda it: it.warm_up(),
        "awarm_up": lambda it: it.awarm_up(),
        "close": lambda it: it.close(),
        "aclose": lambda it: it.aclose(),
    },
}


@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_of_a_class_is_called_in_its_cells(kind: str) -> None:
    for type_, cls in zip(TYPES, CLASSES[kind], strict=True):
        named = methods(cls) - INSIDE
        assert CALLS[kind].keys() - missing(kind, type_, "constructor") == named, cls


@pytest.mark.parametrize("kind", CLASSES)
def test_each_method_takes_what_the_one_on_the_table_takes(kind: str) -> None:
    near, far = CLASSES[kind]
    for name in CALLS[kind].keys() - missing(kind, "http", "constructor"):
        assert inspect.signature(getattr(far, name)) == inspect.signature(getattr(near, name)), name


def test_the_page_of_the_wire_has_a_row_for_each_endpoint() -> None:
    rows = re.findall(r"^\| (`.*?) \|", read("docs/wire.md"), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert {each.name.rpartition("/")[2] for each in (*ENDPOINTS, *LABEL_ENDPOINTS)} - documented == set()


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
    kind, type_, way = cell
    table = {"table_name": table_name, "endpoint_url": engine.endpoint_url, "region_name": engine.region_name}

    async def main() -> None:
        # The cache would give up after seconds, and the machine may be busy.
        patient = {"timeout": 60, "retry_seconds": 60}
        config = {"url": serve(), **patient} if type_ == "http" else table
        async with opened(cell, config, tmp_path, monkeypatch) as made:
            assert type(made) is CLASSES[kind][TYPES.index(type_)]
            for name, call in CALLS[kind].items():
                if name in missing(kind, type_, way):
                    continue
                result = call(made)
                if inspect.isawaitable(result):
                    result = await result
                assert (name, result) != ("get", None)
            await made.aclose()

    asyncio.run(main())
