"""What an agent behind the gateway makes of bytes that others stored: harmless types, and those that were allowed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import create_checkpointer
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import MakeSaver
from tests.gateway.through.conftest import MakeRemote, Serve
from tests.support.calls import CLASSES
from tests.support.checkpoints import store, thread_config
from tests.support.objects import ALLOWED, FIELDS, PERSON, PLACE, Place, PlantingSerializer, fill, read
from tests.support.operations import Side, both_sides
from tools.engine import Engine

# An engine knows nothing of types.
pytestmark = pytest.mark.engines("dynamodb-local")


@both_sides
def test_by_default_no_type_is_made_that_was_not_allowed(
    make_saver: MakeSaver, make_remote: MakeRemote, side: Side
) -> None:
    fill(make_saver())
    remote = make_remote()
    assert read(side, remote) == [FIELDS] * 14
    generous = remote.with_allowlist(ALLOWED)
    assert read(side, generous) == [[PLACE, FIELDS[1]]] * 14
    # Neither has changed the other.
    assert read(side, remote) == [FIELDS] * 14


@pytest.mark.parametrize(
    ("serde", "expected"),
    [
        ({"serde": {}}, FIELDS),
        ({"serde": {"allowed_msgpack_modules": [f"{Place.__module__}:Place"]}}, [PLACE, FIELDS[1]]),
        ({"serde": f"{__name__}:permissive"}, [PLACE, PERSON]),
    ],
)
def test_a_configured_client_is_as_strict(
    make_saver: MakeSaver, serve: Serve, serde: dict[str, Any], expected: list[Any]
) -> None:
    fill(make_saver())
    with create_checkpointer({"type": "http", "config": {"url": serve(), **serde}}) as remote:
        assert remote is not None
        assert read("sync", remote) == [expected] * 14


def permissive() -> JsonPlusSerializer:
    """Make a serializer that makes every type."""
    return JsonPlusSerializer(allowed_msgpack_modules=True)


# LangGraph's own savers and caches make every type unless a variable is set before they are imported.
PERMISSIVE = [("checkpointer", "dynamodb"), ("cache", "dynamodb")]
ENTRY = (("node",), "key")


@pytest.fixture
def planted(engine: Engine, table_name: str, make_saver: MakeSaver, tmp_path: Path) -> Path:
    """Plant a command in the table as a value, a memory and a cached value; return the file that it creates."""
    ran = tmp_path / "ran"
    serde = PlantingSerializer(ran)
    store(make_saver(serde=serde), thread_config(), "1", {"value": 1})
    with DynamoDBStore(table_name, endpoint_url=engine.endpoint_url, serde=serde) as memories:
        memories.put(("users",), "key", {"a": 1})
    with DynamoDBCache[Any](table_name, endpoint_url=engine.endpoint_url, serde=serde) as cache:
        cache.set({ENTRY: (1, None)})
    return ran


def look(kind: str, opened: Any) -> Any:
    """Read what was planted, as an agent does."""
    if kind == "checkpointer":
        return opened.get_tuple(thread_config()).checkpoint["channel_values"]["value"]["said"]
    if kind == "store":
        return opened.get(("users",), "key").value["said"]
    return opened.get([ENTRY])[ENTRY]["said"]


@pytest.mark.parametrize("place", ["dynamodb", "http"])
@pytest.mark.parametrize("kind", CLASSES)
def test_a_planted_command_runs_only_where_langgraph_would_run_it(
    engine: Engine, table_name: str, serve: Serve, planted: Path, kind: str, place: str
) -> None:
    """`test_matrix` has all ways to these classes."""
    table = {"table_name": table_name, "endpoint_url": engine.endpoint_url}
    options = table if place == "dynamodb" else {"url": serve()}
    with CLASSES[kind][place == "http"](**options) as opened:
        if (kind, place) == ("store", "http"):
            with pytest.raises(CheckpointCorruptionError, match="no JSON data"):
                look(kind, opened)
        else:
            assert look(kind, opened) == (0 if (kind, place) in PERMISSIVE else f"touch {planted}")
    assert planted.exists() == ((kind, place) in PERMISSIVE)


def test_langgraphs_variable_makes_saver_and_cache_strict(
    engine: Engine, table_name: str, planted: Path
) -> None:
    script = f"""
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.cache.dynamodb import DynamoDBCache
from tests.gateway.through.test_types import look
options = {{"table_name": {table_name!r}, "endpoint_url": {engine.endpoint_url!r}}}
print(look("checkpointer", DynamoDBSaver(**options)), look("cache", DynamoDBCache(**options)))
"""
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"}
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == f"touch {planted} touch {planted}"
    assert not planted.exists()
