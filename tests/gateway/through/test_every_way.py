"""Every class of the gateway's client has every method of the one on the table, whichever way it was opened.

The methods are found in the classes. So a method that is added tomorrow has to be tried here, in every way.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import (
    DynamoDBSaver,
    acreate_cache,
    acreate_checkpointer,
    acreate_store,
    create_cache,
    create_checkpointer,
    create_store,
    open_cache,
    open_checkpointer,
    open_store,
    server,
)
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.checkpoints import checkpoint_of, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")

CLASSES: Mapping[str, tuple[Any, Any]] = {
    "checkpointer": (DynamoDBSaver, HttpCheckpointSaver),
    "store": (DynamoDBStore, HttpStore),
    "cache": (DynamoDBCache, HttpCache),
}
# They are about the table, or public inside the package only.
OF_THE_TABLE = {"setup", "asetup", "with_storage", "storage_with"}
CREATE: Any = {"checkpointer": create_checkpointer, "store": create_store, "cache": create_cache}
ACREATE: Any = {"checkpointer": acreate_checkpointer, "store": acreate_store, "cache": acreate_cache}
OPEN: Any = {"checkpointer": open_checkpointer, "store": open_store, "cache": open_cache}
SERVER: Any = {"checkpointer": server.checkpointer, "store": server.store}
WAYS = ("constructor", "dict", "async dict", "module level", "file", "environment", "agent server")
# The Agent Server takes no cache.
CELLS = [(kind, way) for kind in CLASSES for way in WAYS if way != "agent server" or kind in SERVER]

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
def test_no_method_of_the_class_on_the_table_is_missing(kind: str) -> None:
    near, far = map(methods, CLASSES[kind])
    assert near - far - OF_THE_TABLE == set()
    assert CALLS[kind].keys() == near - OF_THE_TABLE


@pytest.mark.parametrize("kind", CLASSES)
def test_each_method_takes_what_the_one_on_the_table_takes(kind: str) -> None:
    near, far = CLASSES[kind]
    for name in CALLS[kind]:
        assert inspect.signature(getattr(far, name)) == inspect.signature(getattr(near, name)), name


@asynccontextmanager
async def opened(
    kind: str, way: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    """Open an object in a way."""
    section = {"type": "http", "config": {"url": url}}
    (tmp_path / "agent.yaml").write_text(f"{kind}: {{type: http, config: {{url: '{url}'}}}}\n")
    if way in ("environment", "agent server"):
        monkeypatch.setenv(f"LANGGRAPH_{kind.upper()}_TYPE", "http")
        monkeypatch.setenv(f"LANGGRAPH_{kind.upper()}_CONFIG__URL", url)
    if way == "constructor":
        yield CLASSES[kind][1](url)
    elif way == "module level":
        yield OPEN[kind](section)
    elif way == "async dict":
        async with ACREATE[kind](section) as made:
            yield made
    elif way == "agent server":
        async with SERVER[kind]() as made:
            yield made
    else:
        source = {"dict": section, "file": tmp_path / "agent.yaml", "environment": None}[way]
        with CREATE[kind](source) as made:
            yield made


@pytest.mark.parametrize(("kind", "way"), CELLS, ids=[f"{kind}, {way}" for kind, way in CELLS])
def test_every_method_works_in_every_way(
    kind: str, way: str, serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(kind, way, serve(), tmp_path, monkeypatch) as made:
            assert type(made) is CLASSES[kind][1]
            for name, call in CALLS[kind].items():
                result = call(made)
                if inspect.isawaitable(result):
                    result = await result
                assert (name, result) != ("get", None)
            await made.aclose()

    asyncio.run(main())
