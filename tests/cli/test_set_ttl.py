"""`set-ttl`: asked about, tried dry, for several threads, and gone on with."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate import TableEndpoint, stored_thread
from tests.cli.conftest import Run
from tests.support.checkpoints import Conversation, stored_values, thread_config

if TYPE_CHECKING:
    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")
DAY = 86_400


def ttl_of(saver: DynamoDBSaver, thread: str) -> int | None:
    found = TableEndpoint(saver).thread(thread)
    assert found is not None
    return found.ttl_seconds


def test_it_says_what_it_costs_and_asks(run: Run, shared: str, saver: DynamoDBSaver, thread: str) -> None:
    command = ("set-ttl", thread, "--ttl-seconds", f"{DAY}", "--table", shared)
    dry = run(*command, "--dry-run", "--json")
    assert (dry.code, dry.json) == (
        0,
        {
            "would_change": [thread],
            "skipped": 0,
            "absent": [],
            "failed": {},
            "unchanged": 0,
            "checkpoints": 2,
            "write_units": 8,
        },
    )
    question = f"Give 1 thread of table {shared} a ttl of 86,400 seconds, by about 8 write units, $0.000005 on demand?"
    refused = run(*command)
    assert refused.code == 7
    assert question in refused.err
    assert ttl_of(saver, thread) is None
    assert run(*command, "--yes").code == 0
    assert ttl_of(saver, thread) == DAY
    assert stored_values(saver, thread_config(thread)) == {"said": ["one", "two"]}
    again = run(*command)
    assert (again.code, again.out) == (0, "changed: 0 threads, 1 unchanged\n")


def test_a_ttl_is_taken_away(run: Run, shared: str, saver: DynamoDBSaver, thread: str) -> None:
    command = ("set-ttl", thread, "--table", shared, "--yes")
    assert run(*command, "--ttl-seconds", "1000").out == "changed: 1 thread, 0 unchanged\n"
    assert run(*command, "--never").out == "changed: 1 thread, 0 unchanged\n"
    assert ttl_of(saver, thread) is None


def test_the_configured_ttl_is_the_one_that_is_set(
    run: Run, engine: Engine, shared: str, saver: DynamoDBSaver, thread: str, tmp_path: Path
) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(
        f"checkpointer:\n  type: dynamodb\n  config:\n    table_name: {shared}\n    ttl_seconds: 5000\n"
        f"    endpoint_url: {engine.endpoint_url}\n"
    )
    assert run("set-ttl", thread, "--config", str(file), "--yes").code == 0
    assert ttl_of(saver, thread) == 5000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "no ttl is configured; give --ttl-seconds, or --never"),
        (("--never", "--ttl-seconds", "5"), "not both"),
        (("--ttl-seconds", "0"), "--ttl-seconds"),
        (
            ("--ttl-seconds", "99999999999999999"),
            "--ttl-seconds': Input should be less than or equal to 31622400000",
        ),
    ],
)
def test_which_ttl_has_to_be_said(run: Run, shared: str, options: tuple[str, ...], says: str) -> None:
    ended = run("set-ttl", "t", *options, "--table", shared)
    assert ended.code == 2
    assert says in " ".join(ended.err.split())


def test_one_that_cannot_be_served_does_not_keep_the_others_from_it(
    run: Run, shared: str, saver: DynamoDBSaver, thread: str, tmp_path: Path
) -> None:
    other, taken = f"{uuid.uuid4()}", f"{uuid.uuid4()}"
    for each in (other, taken, f"{taken}.set-ttl"):
        Conversation(saver, each).put(said=each)
    file = tmp_path / "threads"
    file.write_text(f"{other}\n{taken}\nnot there\n")
    command = (
        "set-ttl",
        thread,
        "--from-file",
        str(file),
        "--ttl-seconds",
        "1000",
        "--table",
        shared,
        "--yes",
    )
    ended = run(*command)
    assert ended.code == 8
    assert "changed: 2 threads, 0 unchanged" in ended.out
    assert f"{taken}.set-ttl' of table {shared} is another conversation" in " ".join(ended.out.split())
    assert [ttl_of(saver, each) for each in (thread, other, taken)] == [1000, 1000, None]
    saver.delete_thread(f"{taken}.set-ttl")
    ended = run(*command, "--json")
    assert ended.code == 3
    assert ended.json == {
        "changed": [taken],
        "skipped": 0,
        "absent": ["not there"],
        "failed": {},
        "unchanged": 2,
    }


def test_a_thread_that_is_busy_is_told(
    run: Run, shared: str, saver: DynamoDBSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_thread, "LOCK_WAIT_SECONDS", 0.0)
    with saver.thread_lock(thread):
        ended = run("set-ttl", thread, "--ttl-seconds", "1000", "--table", shared, "--yes")
    assert ended.code == 8
    assert "is held by another runner" in ended.out


# Ends its own process when the thread has been deleted.
KILLED = """
import os, signal
from langgraph.checkpoint.dynamodb.cli import main
from langgraph.checkpoint.dynamodb.migrate import stored_thread

stored_thread.LOCK_TTL_SECONDS = 1.0
delete = stored_thread.StoredThread.delete

def delete_and_die(thread):
    delete(thread)
    os.kill(os.getpid(), signal.SIGKILL)

stored_thread.StoredThread.delete = delete_and_die
main()
"""


@pytest.mark.search
def test_a_process_that_is_killed_leaves_a_copy_that_the_same_command_goes_on_with(
    run: Run,
    engine: Engine,
    shared: str,
    thread: str,
    open_saver: Callable[..., DynamoDBSaver],
) -> None:
    words = ("set-ttl", thread, "--ttl-seconds", f"{DAY}", "--table", shared, "--yes")
    process = subprocess.run(  # noqa: S603
        [sys.executable, "-c", KILLED, *words, "--endpoint-url", engine.endpoint_url],
        env=engine.environment(),
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    saver = open_saver(shared)
    assert stored_values(saver, thread_config(f"{thread}.set-ttl")) == {"said": ["one", "two"]}
    ended = run(*words)
    assert (ended.code, ended.out) == (0, "changed: 1 thread, 0 unchanged\n")
    assert len(list(saver.list(thread_config(thread)))) == 2
    assert saver.get_tuple(thread_config(f"{thread}.set-ttl")) is None
    assert ttl_of(saver, thread) == DAY
