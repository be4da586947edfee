"""`restore`: one thread out of a restored table, asked about, tried dry, killed and run again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate import stored_thread
from tests.cli.conftest import Run, config
from tests.migrate.threads import WAITING, answer
from tests.support import graphs
from tests.support.checkpoints import Conversation, all_items, noise, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def restored(client: DynamoDBClient, shared: str, thread: str, make_table: Callable[[], str]) -> str:
    """Give a table that has the thread as it is now."""
    table = make_table()
    _copy(client, shared, table, thread)
    return table


def _copy(client: DynamoDBClient, table: str, restored: str, thread: str) -> None:
    """Restore a thread's items to a point in time, as DynamoDB does with those of a whole table."""
    for item in all_items(client, table):
        if item["PK"]["S"].startswith(thread):
            client.put_item(TableName=restored, Item=item)


def test_a_thread_is_restored_and_what_was_there_is_kept(
    run: Run, shared: str, saver: DynamoDBSaver, thread: str, restored: str
) -> None:
    saver.put(thread_config(thread), Conversation(saver, thread).change(said=["bad"])[1], {}, {})
    command = ("restore", thread, "--from", restored, "--table", shared)
    kept = f"{thread}.before-{restored}"
    would = (
        f"Restore 2 checkpoints from table {restored} to thread '{thread}' of table {shared}, and keep the 3 that it"
        f" has as '{kept}'"
    )
    dry = run(*command, "--dry-run")
    assert dry.out == f"would do: {would}\n"
    refused = run(*command)
    assert refused.code == 7
    assert f"{would}?" in refused.err
    assert len(list(saver.list(thread_config(thread)))) == 3
    ended = run(*command, "--yes")
    assert (ended.code, ended.out) == (
        0,
        f"{thread}: 2 checkpoints restored; the previous thread is kept as {kept}\n",
    )
    assert stored_values(saver, thread_config(thread)) == {"said": ["one", "two"]}
    assert len(list(saver.list(thread_config(kept)))) == 3
    assert run(*command).out == f"{thread}: already the same as in table {restored}\n"


def test_a_thread_is_restored_beside_the_one_in_use(
    run: Run, shared: str, saver: DynamoDBSaver, thread: str, restored: str
) -> None:
    Conversation(saver, thread).put(said=["bad"])
    command = ("restore", thread, "--from", restored, "--as", f"{thread} at nine", "--table", shared)
    assert run(*command, "--dry-run", "--json").json == {
        "thread_id": f"{thread} at nine",
        "restored": False,
        "checkpoints": 2,
        "present": 0,
        "is_restored": False,
        "kept_as": None,
    }
    ended = run(*command, "--yes")
    assert ended.out == f"{thread} at nine: 2 checkpoints restored\n"
    assert stored_values(saver, thread_config(thread)) == {"said": ["bad"]}
    assert stored_values(saver, thread_config(f"{thread} at nine")) == {"said": ["one", "two"]}


def test_what_is_wrong_ends_with_its_code(
    run: Run, shared: str, saver: DynamoDBSaver, thread: str, restored: str
) -> None:
    def code(*arguments: str) -> int:
        return run("restore", *arguments, "--table", shared, "--yes").code

    assert code("nobody", "--from", restored) == 3
    assert code(thread, "--from", shared) == 2
    assert code(thread, "--from", "no-such-table") == 4
    assert code(thread, "--from", "") == 2
    ended = run("restore", thread, "--from", "no table", "--table", shared)
    assert (ended.code, "--from 'no table' cannot be the name of a table" in ended.err) == (2, True)
    with saver.thread_lock(thread), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_thread, "LOCK_WAIT_SECONDS", 0.0)
        Conversation(saver, thread).put(said=["bad"])
        assert code(thread, "--from", restored) == 6


# Ends its own process as it is about to write the restored thread's heads, when their segments and writes are there.
KILLED = """
import os, signal, sys
from langgraph.checkpoint.dynamodb._operations.copy import _Copy
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb.cli import main
from langgraph.checkpoint.dynamodb.migrate import stored_thread

stored_thread.LOCK_TTL_SECONDS = 1.0
writing, run, namespaces = Table.batch_write, _Copy.run, []

def note(copy, *arguments):
    if copy._read.table.name != copy._storage.table.name:
        namespaces.append(copy._target.namespace)
    return run(copy, *arguments)

def write(table, puts=(), deletes=()):
    puts = list(puts)
    # The root is the last namespace: the first batch that has a head of it is the newest one's.
    if namespaces and namespaces[-1] == "" and any(item["SK"]["S"].endswith("#") for item in puts):
        yield from writing(table, puts)
        os.kill(os.getpid(), signal.SIGKILL)
    yield from writing(table, puts, deletes)

_Copy.run, Table.batch_write = note, write
main()
"""


@pytest.mark.search
def test_a_process_that_is_killed_half_way_shows_no_half_thread_and_the_command_ends_well(
    run: Run,
    engine: Engine,
    shared: str,
    saver: DynamoDBSaver,
    open_saver: Callable[..., DynamoDBSaver],
    make_table: Callable[[], str],
    client: DynamoDBClient,
) -> None:
    thread = "subgraphs"
    build, start = WAITING[thread]
    build(saver).invoke(start | {"log": ["begun", noise(60_000).hex()]}, config(thread))
    checkpoints = [each.checkpoint["id"] for each in saver.list(config(thread))]
    restored = make_table()
    _copy(client, shared, restored, thread)
    after = answer(saver, thread)
    was = stored_values(saver, config(thread))
    words = ("restore", thread, "--from", restored, "--table", shared, "--yes")
    process = subprocess.run(  # noqa: S603
        [sys.executable, "-c", KILLED, *words, "--endpoint-url", engine.endpoint_url],
        env=engine.environment(),
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    # A copy hides a namespace until all of it is there, the root's last; what was there is under the other id.
    namespaces = {
        each.config["configurable"]["checkpoint_ns"] for each in open_saver(shared).list(config(thread))
    }
    assert namespaces
    assert "" not in namespaces
    kept = f"{thread}.before-{restored}"
    assert stored_values(open_saver(shared), config(kept)) == was
    hidden = graphs.subgraphs(None)(open_saver(shared)).get_state(config(thread), subgraphs=True)
    assert (hidden.values, hidden.next) == ({}, ())
    ended = run(*words)
    assert (ended.code, ended.out) == (
        0,
        f"{thread}: {len(checkpoints)} checkpoints restored; the previous thread is kept as {kept}\n",
    )
    assert [each.checkpoint["id"] for each in open_saver(shared).list(config(thread))] == checkpoints
    assert answer(open_saver(shared), thread) == after
