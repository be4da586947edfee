"""LangGraph's Agent Server keeps threads and memories in the table, by two lines of its configuration.

The real server runs, in an environment of its own that `make test-all` makes, and its client drives it.
"""

import itertools
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import InternalServerError

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK
from langgraph.checkpoint.dynamodb._operations.listed_partitions import listed
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import lacks
from tests.support.checkpoints import thread_config
from tests.support.programs import ran
from tools.engine import Engine
from tools.server import Server

pytestmark = [pytest.mark.search, pytest.mark.engines("dynamodb-local")]

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / ".venv-aiobotocore" / "bin" / "langgraph"
PREFIXES = ("LANGGRAPH_CHECKPOINTER_", "LANGGRAPH_STORE_", "LANGGRAPH_CACHE_")
AGENT = "agent"
JOURNAL = "journal"
DIARY = "diary"
WEATHER = "weather"
POLL_SECONDS = 0.2
CLEANED_SECONDS_MAX = 20


def _server() -> Server:
    options = ("--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", "{port}")
    return Server("Agent Server", (str(PROGRAM), "dev", *options))


def _with_agent(folder: Path) -> Path:
    """A folder that has the agent and `langgraph.json`; the server keeps its own records there."""
    for name in ("agent.py", "langgraph.json"):
        shutil.copy(HERE / name, folder)
    return folder


@pytest.fixture(scope="module")
def table_name() -> str:
    """Give the name of a table that the server is to make."""
    return f"agent-server-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def _configured(engine: Engine, table_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Configure the server by its environment."""
    if not PROGRAM.exists():
        says = f"the Agent Server is not installed: `make {PROGRAM.parents[1].name}/.installed`, with Python 3.11"
        lacks(says, is_required=sys.version_info >= (3, 11))
    with pytest.MonkeyPatch.context() as environment:
        environment.chdir(_with_agent(tmp_path_factory.mktemp("agent")))
        for prefix in PREFIXES:
            environment.setenv(f"{prefix}TYPE", "dynamodb")
            for name, value in {
                "TABLE_NAME": table_name,
                "ENDPOINT_URL": engine.endpoint_url,
                "REGION_NAME": engine.region_name,
                # The cache opens when the agent is imported, which must not block the server's loop.
                "SETUP": str(prefix != "LANGGRAPH_CACHE_").lower(),
            }.items():
                environment.setenv(f"{prefix}CONFIG__{name}", value)
        # A variable of the server's own, beside those of the store.
        environment.setenv("LANGGRAPH_STORE_BACKEND", "python")
        yield


@pytest.fixture(scope="module")
def address(_configured: None) -> Iterator[str]:
    """Give the address of a server that runs."""
    with _server().run() as address:
        yield address


@pytest.fixture
def server(address: str) -> Iterator[SyncLangGraphClient]:
    """Give a client of the server."""
    with get_sync_client(url=address) as client:
        yield client


@pytest.fixture
def saver(engine: Engine, table_name: str) -> Iterator[DynamoDBSaver]:
    """Give a saver on the server's table, to look behind its back."""
    with DynamoDBSaver(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as saver:
        yield saver


@pytest.fixture
def store(engine: Engine, table_name: str) -> Iterator[DynamoDBStore]:
    """Give a store on the server's table, to look behind its back."""
    with DynamoDBStore(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name) as store:
        yield store


def _say(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def _run(server: SyncLangGraphClient, thread_id: str, text: str) -> Any:
    return server.runs.wait(thread_id, AGENT, input=_say(text))


def _last(values: Any) -> str:
    return str(values["messages"][-1]["content"])


def _thread_ids(server: SyncLangGraphClient) -> set[str]:
    return {each["thread_id"] for each in server.threads.search(limit=1000)}


def test_a_run_is_interrupted_and_goes_on_with_the_answer(
    server: SyncLangGraphClient, saver: DynamoDBSaver
) -> None:
    thread_id = server.threads.create()["thread_id"]
    assert _last(_run(server, thread_id, "Hello.")) == "Hello."
    _run(server, thread_id, "Who am I?")
    state = server.threads.get_state(thread_id)
    assert (state["next"], state["interrupts"][0]["value"]) == (["answer"], "What is your name?")
    found: Any = saver.get_tuple(thread_config(thread_id))
    assert found.config["configurable"]["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
    values = server.runs.wait(thread_id, AGENT, command={"resume": "Ada."})
    assert _last(values) == "Hello. Who am I? Ada."
    assert not server.threads.get_state(thread_id)["next"]


def test_history_has_every_step_and_a_thread_goes_on_from_any_of_them(server: SyncLangGraphClient) -> None:
    thread_id = server.threads.create()["thread_id"]
    for text in ("One.", "Two."):
        _run(server, thread_id, text)
    history = server.threads.get_history(thread_id, limit=100)
    # Each run stores what was said, what is about to run, and what it has answered.
    assert len(history) == 6
    for newer, older in itertools.pairwise(history):
        assert newer["parent_checkpoint"] is not None
        assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
    after_one = next(each for each in history if not each["next"] and each is not history[0])
    server.threads.update_state(
        thread_id,
        _say("Another two."),
        as_node="__start__",
        checkpoint_id=str(after_one["checkpoint"]["checkpoint_id"]),
    )
    assert _last(server.runs.wait(thread_id, AGENT, input=None)) == "One. Another two."
    assert len(server.threads.get_history(thread_id, limit=100)) == 8


def test_a_copy_lives_by_itself_and_what_is_deleted_is_gone(
    server: SyncLangGraphClient, saver: DynamoDBSaver
) -> None:
    thread_id = server.threads.create()["thread_id"]
    _run(server, thread_id, "One.")
    known = _thread_ids(server)
    server.threads.copy(thread_id)
    (copy_id,) = _thread_ids(server) - known
    assert _last(_run(server, copy_id, "Two.")) == "One. Two."
    assert _last(server.threads.get_state(thread_id)["values"]) == "One."
    server.threads.delete(thread_id)
    assert saver.get_tuple(thread_config(thread_id)) is None
    assert _last(_run(server, copy_id, "Three.")) == "One. Two. Three."


def test_a_run_that_is_rolled_back_leaves_nothing(server: SyncLangGraphClient) -> None:
    thread_id = server.threads.create()["thread_id"]
    _run(server, thread_id, "One.")
    before = server.threads.get_history(thread_id, limit=100)
    run_id = server.runs.create(thread_id, AGENT, input=_say("Wait."))["run_id"]
    while server.threads.get_state(thread_id)["next"] != ["answer"]:
        time.sleep(POLL_SECONDS)
    server.runs.cancel(thread_id, run_id, wait=True, action="rollback")
    # The server answers before it asks the checkpointer to delete what the run has stored.
    deadline = time.monotonic() + CLEANED_SECONDS_MAX
    while server.threads.get_history(thread_id, limit=100) != before and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    assert server.threads.get_history(thread_id, limit=100) == before
    assert _last(_run(server, thread_id, "Two.")) == "One. Two."


def test_a_delta_channel_is_whole_and_its_reading_is_the_savers(
    server: SyncLangGraphClient, saver: DynamoDBSaver
) -> None:
    thread_id = server.threads.create()["thread_id"]
    log: list[str] = []
    for number in range(10):
        said: dict[str, Any] = {"log": [f"entry {number}"]}
        server.runs.wait(thread_id, JOURNAL, input=said)
        log += [f"entry {number}", f"after {len(log) + 1}"]
    state: Any = server.threads.get_state(thread_id)
    assert state["values"]["log"] == log
    # What is in the middle of the way back goes, behind everybody's back.
    history = [*saver.list(thread_config(thread_id))]
    middle = history[len(history) // 2].checkpoint["id"]
    at = items.partition_of(thread_id)
    key = items.key(at.pk, items.checkpoint_prefix(middle))
    saver.runner.run(saver.storage.table.send("delete_item", Key=key))
    with pytest.raises(InternalServerError):
        server.threads.get_state(thread_id)


def test_memories_are_put_found_and_deleted_by_the_servers_api(
    server: SyncLangGraphClient, store: DynamoDBStore
) -> None:
    bob, tastes = ("users", "bob"), ("users", "bob", "tastes")
    server.store.put_item(bob, key="name", value={"is": "Bob"})
    server.store.put_item(tastes, key="food", value={"likes": "pizza"}, ttl=60)
    server.store.put_item(tastes, key="drink", value={"likes": "tea"})
    assert server.store.get_item(tastes, key="food")["value"] == {"likes": "pizza"}
    found = server.store.search_items(bob, filter={"likes": {"$ne": "tea"}})["items"]
    assert {each["key"] for each in found} == {"name", "food"}
    assert [each["key"] for each in server.store.search_items(bob, limit=1, offset=1)["items"]] == ["food"]
    listed = server.store.list_namespaces(prefix=list(bob))["namespaces"]
    assert sorted(listed) == [[*bob], [*tastes]]
    # All of this is in the table.
    in_table = store.search(bob)
    assert {(each.namespace, each.key): each.value for each in in_table} == {
        (bob, "name"): {"is": "Bob"},
        (tastes, "food"): {"likes": "pizza"},
        (tastes, "drink"): {"likes": "tea"},
    }
    (food,) = [each for each in store.export_items(tastes) if each["key"] == "food"]
    assert food["ttl_minutes"] == 60
    server.store.delete_item(tastes, key="food")
    assert store.get(tastes, "food") is None
    store.put(tastes, "drink", {"likes": "wine"})
    assert server.store.get_item(tastes, key="drink")["value"] == {"likes": "wine"}


def _note(server: SyncLangGraphClient, text: str) -> str:
    """Let a new thread keep a text in the store; return what the store had before."""
    return _last(server.runs.wait(server.threads.create()["thread_id"], DIARY, input=_say(text)))


def test_what_a_node_cached_another_thread_gets(server: SyncLangGraphClient, store: DynamoDBStore) -> None:
    def weather(place: str) -> str:
        thread_id = server.threads.create()["thread_id"]
        state: Any = server.runs.wait(thread_id, WEATHER, input={"place": place})
        return str(state["weather"])

    assert [weather(place) for place in ("Rome", "Oslo", "Rome")] == [
        "Rome is number 1",
        "Oslo is number 2",
        "Rome is number 1",
    ]
    cached = store.runner.run(listed(store.storage.table, CACHE_MARK, items.partition_key))
    assert cached


IN_THE_SERVER = """
import asyncio, sys, typing
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph_api._checkpointer import _adapter
from langgraph_grpc_common.conversion.checkpoint import prune_strategy_from_proto

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._operations.delete import checked_count
from langgraph.checkpoint.dynamodb.server import checkpointer

async def main():
    async with checkpointer():
        adapter = _adapter._CustomCheckpointerAdapter
        for name, inherited in vars(BaseCheckpointSaver).items():
            ours = getattr(DynamoDBSaver, name)
            if asyncio.iscoroutinefunction(inherited) and ours is not inherited:
                if getattr(adapter, name) is inherited:
                    print("not handed on:", name)

asyncio.run(main())
strategies = typing.get_args(typing.get_type_hints(prune_strategy_from_proto)["return"])
for each in strategies:
    checked_count(each, None)
print(len(strategies), "strategies")
"""


@pytest.mark.usefixtures("_configured")
def test_the_server_hands_on_every_method_and_every_strategy_is_known() -> None:
    environment = {**os.environ, "DATABASE_URI": ":memory:", "REDIS_URI": "redis://none"}
    done = ran(PROGRAM.with_name("python"), "-c", IN_THE_SERVER, env=environment)
    assert done.stdout == "2 strategies\n"


@pytest.mark.usefixtures("_configured")
def test_a_server_that_was_restarted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: DynamoDBStore
) -> None:
    monkeypatch.chdir(_with_agent(tmp_path))
    with _server().run() as address, get_sync_client(url=address) as before:
        thread_id = before.threads.create()["thread_id"]
        _run(before, thread_id, "Hello.")
        _run(before, thread_id, "Who am I?")
        store.delete_namespace(("users", "ada"))
        _note(before, "One.")
    # Now each worker has an event loop of its own, and a checkpointer and a store of its own.
    monkeypatch.setenv("BG_JOB_ISOLATED_LOOPS", "true")
    with _server().run() as address, get_sync_client(url=address) as after:
        # The thread's own record is the server's, and none of the checkpointer's.
        after.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert after.threads.get_state(thread_id)["next"] == ["answer"]
        values = after.runs.wait(thread_id, AGENT, command={"resume": "Ada."})
        assert _last(values) == "Hello. Who am I? Ada."
        assert _last(_run(after, thread_id, "And now?")) == "Hello. Who am I? And now?"
        assert _note(after, "Two.") == "One."
        assert len(after.store.search_items(("users", "ada"))["items"]) == 2
