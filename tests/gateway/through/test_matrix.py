"""The matrix: saver, store and cache, on the table or through the gateway, opened in every way, by every method.

The methods are found in the classes. So a method that is added tomorrow has to be in the table of calls, and is called
in every cell. `MISSING` names the cells that do not exist, each with its reason.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import Item

from langgraph.checkpoint.dynamodb import (
    create_cache,
    create_checkpointer,
    create_store,
    open_cache,
    open_checkpointer,
    open_store,
    server,
)
from langgraph.checkpoint.dynamodb.http import operations
from tests.gateway.through.conftest import Serve
from tests.simulation.savers import OPERATIONS
from tests.support.calls import CALLS, CLASSES, ONLY_BLOCKING, called, method_of, public_methods
from tests.support.checkpoints import table_of_its_own

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

TYPES = ("dynamodb", "http")
CREATE: Any = {"checkpointer": create_checkpointer, "store": create_store, "cache": create_cache}
OPEN: Any = {"checkpointer": open_checkpointer, "store": open_store, "cache": open_cache}
SERVER: Any = {"checkpointer": server.checkpointer, "store": server.store}
# What each call returns, by class and call.
Results: TypeAlias = Mapping[str, Mapping[str, Any]]
# Of what a method returns: times, and random names.
VARYING = {"created_at", "updated_at", "last_active", "revision", "started_at", "ended_at"}
WAYS = ("constructor", "dict", "async dict", "module level", "file", "environment", "agent server")
# By component, type and way: the methods that a cell does not have. `*` stands for any, or for all methods.
MISSING: Mapping[tuple[str, str, str], tuple[set[str], str]] = {
    ("cache", "*", "agent server"): ({"*"}, "langgraph.json has no line for a node cache"),
    ("*", "http", "*"): ({"setup"}, "whoever runs the service creates the table; agents have no right to"),
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


def calls_of(kind: str, type_: str, way: str) -> list[tuple[str, bool]]:
    """Return the calls of a cell, the blocking ones first, each with whether it is async."""
    absent = missing(kind, type_, way)
    blocking = [(name, False) for name in CALLS[kind] if method_of(name) not in absent]
    return blocking + [(name, True) for name, _ in blocking if name not in ONLY_BLOCKING]


def test_the_page_names_the_methods_that_clients_of_the_gateway_lack() -> None:
    page = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text(encoding="utf-8")
    lacked = set[str]().union(*(missing(kind, "http", "constructor") for kind in CLASSES))
    assert set(re.findall(r"^\| `(\w+)` \| no: ", page, re.MULTILINE)) == lacked


@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_of_a_class_is_called_in_its_cells(kind: str) -> None:
    for type_, cls in zip(TYPES, CLASSES[kind], strict=True):
        calls = calls_of(kind, type_, "constructor")
        assert {"a" * is_async + method_of(name) for name, is_async in calls} == public_methods(cls), cls


@pytest.mark.parametrize("kind", CLASSES)
def test_each_method_takes_what_the_one_on_the_table_takes(kind: str) -> None:
    near, far = CLASSES[kind]
    for name in public_methods(far):
        assert inspect.signature(getattr(far, name)) == inspect.signature(getattr(near, name)), name


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_of_the_client_takes_and_returns_what_the_one_on_the_table_does(name: str) -> None:
    assert hasattr(operations, name), f"http/operations.py has no {name}"
    near = inspect.signature(OPERATIONS[name], eval_str=True)
    far = inspect.signature(getattr(operations, name), eval_str=True)
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


def plain(name: str, found: Any) -> Any:
    """Return what a method returned, as values to compare: without times, and what is random."""
    if name in ("get_next_version", "put_if") or isinstance(found, (datetime, Future, BaseCheckpointSaver)):
        return type(found).__name__.removeprefix("Http").removeprefix("DynamoDB").removeprefix("Checkpoint")
    if is_dataclass(found) and not isinstance(found, type):
        found = {each.name: getattr(found, each.name) for each in fields(found)}
    elif isinstance(found, Item):
        found = {**found.dict(), "score": getattr(found, "score", None)}
    if isinstance(found, dict):
        return {key: plain(name, each) for key, each in found.items() if key not in VARYING}
    if isinstance(found, (list, tuple)):
        # Threads of the same second come in any order.
        values = [plain(name, each) for each in found]
        return sorted(values, key=repr) if method_of(name) == "threads" else values
    return found


@pytest.fixture(scope="module")
def first(engine: Engine, client: DynamoDBClient) -> Results:
    """Give what each method returns in the first cell of its class: on the table, made by the constructor."""
    found: dict[str, dict[str, Any]] = {}
    with table_of_its_own(client, "first") as table_name:
        for kind, (near, _) in CLASSES.items():
            with near(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as made:
                found[kind] = {
                    name: plain(name, asyncio.run(called(made, kind, name))) for name in CALLS[kind]
                }
    return found


@pytest.mark.parametrize("kind", CLASSES)
def test_no_result_is_empty(kind: str, first: Results) -> None:
    """Nothing could be told from what is."""
    for name, found in first[kind].items():
        method = inspect.signature(getattr(CLASSES[kind][0], method_of(name)), eval_str=True)
        assert (found not in (None, [], {})) == (method.return_annotation is not None), name


@pytest.mark.parametrize("cell", CELLS, ids=", ".join)
def test_every_method_works_in_every_cell(
    cell: tuple[str, str, str],
    first: Results,
    serve: Serve,
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
            for name, is_async in calls_of(*cell):
                try:
                    found = plain(name, await called(made, kind, name, is_async=is_async))
                except Exception as error:
                    raise AssertionError(f"{name} does not work") from error
                assert found == first[kind][name], f"{name} returns something else than on the table"
            await made.aclose()

    asyncio.run(main())
