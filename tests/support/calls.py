"""Every method of saver, store and cache, with arguments to call it with: the table of tests about all methods."""

import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langgraph.store.base import GetOp

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.checkpoints import METADATA, checkpoint_of, noise, thread_config

# On the table, and through the gateway.
CLASSES: Mapping[str, tuple[Any, Any]] = {
    "checkpointer": (DynamoDBSaver, HttpCheckpointSaver),
    "store": (DynamoDBStore, HttpStore),
    "cache": (DynamoDBCache, HttpCache),
}
# Public inside the package only.
INSIDE = {"storage_with"}
ONLY_BLOCKING = {"get_next_version", "with_allowlist", "start_ttl_sweeper", "stop_ttl_sweeper"}

# All names begin with the tenant's, so that what is a tenant's own can be told by the same calls.
TENANT = "acme"
THREAD, COPY, OWNER, RUN = f"{TENANT}/thread", f"{TENANT}/copy", f"{TENANT}/ada", "run-1"
MEMORIES, NODE = (TENANT, "ada"), ((TENANT, "node"), "key")
# A checkpoint keeps its value in segments, and the store this memory.
_VALUE, _LARGE = noise(30_000).hex(), {"text": noise(150_000).hex()}
_CONFIG, _AT = thread_config(THREAD), thread_config(THREAD, checkpoint_id="1")
_NEWEST = thread_config(THREAD, checkpoint_id="2")
_CHILD, _OTHER = thread_config(THREAD, "child:1"), thread_config(f"{TENANT}/other")
_FIRST = checkpoint_of("1", {"n": _VALUE})
# Its channel is rebuilt from the writes of the first one.
_DELTA: Any = {**checkpoint_of("2", {}), "channel_versions": {"n": 2}}
_COUNTED: Any = {**METADATA, "run_id": RUN, "counters_since_delta_snapshot": {"n": [1, 1]}}
_TIMES = dict.fromkeys(("created_at", "updated_at"), "2026-01-01T00:00:00+00:00")
_RECORD = {"namespace": MEMORIES, "key": "imported", "value": {}, **_TIMES}

Kind: TypeAlias = Literal[
    "read",
    "write",
    "delete",
    # In all threads, by the index of runs.
    "read a run",
    "delete runs",
    "read an owner's",
    "read all threads",
    "scan",
    "read all memories",
    # Any answer will do, so a tenant may be refused, whose table has no partition that every tenant may read.
    "warm up",
    # It sends nothing itself, or, as `setup`, is for development: no policy is about it.
    "none",
]
# What a tenant may do with its own.
OF_TENANTS: frozenset[Kind] = frozenset(("read", "write", "delete", "read an owner's"))


@dataclass(frozen=True)
class MethodCall:
    """The arguments of a call, and the kind of calls by which policies allow it."""

    kind: Kind
    args: tuple[Any, ...]
    options: Mapping[str, Any]


def call(kind: Kind, *args: Any, **options: Any) -> MethodCall:
    """Return a row of the table."""
    return MethodCall(kind, args, options)


# By the method, and what tells two calls of it apart, in an order in which each can be made. The async method of the
# same meaning gets the same arguments.
CALLS: Mapping[str, Mapping[str, MethodCall]] = {
    "checkpointer": {
        "setup": call("none"),
        "put": call("write", _CONFIG, _FIRST, {"run_id": RUN}, {"n": 1}),
        "put_writes": call("write", _AT, [("n", _VALUE)], "task"),
        "put of a delta": call("write", _AT, _DELTA, _COUNTED, {"n": 2}),
        "put_writes of it": call("write", _NEWEST, [("n", 1), ("__interrupt__", "why")], "task"),
        "put of a subgraph": call("write", _CHILD, _FIRST, {"run_id": RUN, "parents": {"": "2"}}, {"n": 1}),
        "put of another": call("write", _OTHER, _FIRST, {"run_id": "run-2"}, {"n": 1}),
        "get": call("read", _CONFIG),
        "get_tuple": call("read", _CONFIG),
        "list": call("read", _CONFIG),
        "list of a run": call("read a run", None, filter={"run_id": RUN}),
        "list of all": call("scan", None),
        "get_delta_channel_history": call("read", config=_NEWEST, channels=["n"]),
        "copy_thread": call("write", THREAD, COPY),
        "set_thread": call("write", THREAD, owner=OWNER, title="Trains"),
        "set_thread of another": call("write", f"{TENANT}/other", owner=f"{TENANT}/bob", metadata={"n": 1}),
        "threads of an owner": call("read an owner's", owner=OWNER),
        "threads of all": call("read all threads"),
        "runs": call("read", THREAD),
        "thread_lock": call("write", THREAD),
        "get_next_version": call("none", None, None),
        "with_allowlist": call("none", []),
        "delete_for_runs": call("delete runs", ["run-2"]),
        "prune": call("delete", [THREAD]),
        "delete_thread": call("delete", COPY),
        "delete_owner": call("delete", OWNER),
        "warm_up": call("warm up"),
        "close": call("none"),
    },
    "store": {
        "setup": call("none"),
        "put": call("write", MEMORIES, "large", _LARGE),
        "put_if": call("write", MEMORIES, "new", {}, revision=None),
        "get": call("read", MEMORIES, "large"),
        "search": call("read", MEMORIES, order="key"),
        "search everywhere": call("read all memories", ()),
        "list_namespaces": call("read", prefix=MEMORIES),
        "list_namespaces of all": call("read all memories"),
        "batch": call("read", [GetOp(MEMORIES, "large")]),
        "export_items": call("read", MEMORIES),
        "import_items": call("write", [_RECORD]),
        "sweep_ttl": call("delete", (TENANT,)),
        "start_ttl_sweeper": call("none"),
        "stop_ttl_sweeper": call("none"),
        "delete": call("write", MEMORIES, "large"),
        "delete_namespace": call("delete", MEMORIES),
        "warm_up": call("warm up"),
        "close": call("none"),
    },
    "cache": {
        "setup": call("none"),
        "set": call("write", {NODE: (1, None)}),
        "get": call("read", [NODE]),
        "clear": call("delete", [NODE[0]]),
        "warm_up": call("warm up"),
        "close": call("none"),
    },
}


def method_of(name: str) -> str:
    """Return the method of a row."""
    return name.split(" ")[0]


def public_methods(cls: Any) -> set[str]:
    """Return the names of the public methods of a class."""
    named = {name for name, _ in inspect.getmembers(cls, inspect.isfunction)} - INSIDE
    return {name for name in named if not name.startswith("_")}


async def called(made: Any, component: str, name: str, *, is_async: bool = False) -> Any:
    """Make a call of the table, or its async one; return all of a list, and of a lock that it was held."""
    row, method = CALLS[component][name], method_of(name)
    result = getattr(made, f"a{method}" if is_async else method)(*row.args, **row.options)
    if method == "thread_lock" and is_async:
        async with result as lock:
            return await lock.check() is None
    if method == "thread_lock":
        with result as lock:
            return lock.check() is None
    if isinstance(result, AsyncIterator):
        return [each async for each in result]
    if isinstance(result, Iterator):
        return list(result)
    return await result if inspect.isawaitable(result) else result
