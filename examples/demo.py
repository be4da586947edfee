"""What the saver does for an agent, in seven acts and without an AWS account: `make demo`.

Every act that runs the agent does so in a process of its own (`examples/demo_agent.py`); this program starts them,
kills one, and looks at the table between the acts. It ends with status 1 if an act went differently than told.

The table goes with the demo. With `--view` it stays until Ctrl-C, and the page of the thread is served out of it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3

from benchmarks.stored import scan
from examples import demo_agent
from examples.demo_report import history_table, stored_table, usage_table
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tools.engine import DYNAMODB_LOCAL, MOTO, find, find_best
from tools.server import ServerUnavailableError, end_process, interrupted_later, until_interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langgraph.checkpoint.base import CheckpointTuple

    from tools.engine import Engine

THREAD = "lisbon"
OTHER_THREAD = "next-journey"
SLOW_TOOL = demo_agent.SEARCHES[-1]
WAIT_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
COMMAND = Path(sys.executable).with_name("langgraph-dynamodb")


class DemoError(Exception):
    """Something did not happen as the demo says it does."""


def expect(happened: bool, what: str) -> None:
    """Stop the demo if something did not happen."""
    if not happened:
        raise DemoError(what)


@dataclass(frozen=True)
class Stage:
    """What all acts share: the engine, the table, and where the processes note their requests."""

    engine: Engine
    session: boto3.Session
    table_name: str
    usage: Path
    checkpoints: dict[str, int]

    @contextmanager
    def saver(self) -> Iterator[DynamoDBSaver]:
        """Open a saver of this process, which remembers nothing of what others wrote."""
        with DynamoDBSaver(
            self.table_name, session=self.session, endpoint_url=self.engine.endpoint_url
        ) as saver:
            yield saver

    def history(self, thread_id: str = THREAD) -> list[CheckpointTuple]:
        """Return all checkpoints of a thread, newest first."""
        with self.saver() as saver:
            return list(saver.list(demo_agent.config_of(thread_id)))

    @contextmanager
    def process(
        self, action: str, thread_id: str = THREAD, **variables: str
    ) -> Iterator[subprocess.Popen[str]]:
        """Start a process for one action, and leave none behind."""
        before = len(self.history(thread_id))
        shared = {demo_agent.TABLE_VARIABLE: self.table_name, demo_agent.USAGE_VARIABLE: str(self.usage)}
        with ExitStack() as stack:
            with interrupted_later():
                process = subprocess.Popen(  # noqa: S603  # The program is this Python and the arguments are ours.
                    [sys.executable, "-m", "examples.demo_agent", action, thread_id],
                    env={**self.engine.environment(), **shared, **variables},
                    stdout=subprocess.PIPE,
                    text=True,
                    # Ctrl-C is for the demo, which ends it.
                    start_new_session=True,
                )
                stack.callback(process.communicate)
                stack.callback(process.kill)
            watchdog = Timer(WAIT_SECONDS_MAX, process.kill)
            stack.callback(watchdog.cancel)
            watchdog.start()
            yield process
        self.checkpoints[action] = len(self.history(thread_id)) - before

    def command(self) -> list[str]:
        """Return the command line that looks at the thread."""
        return [str(COMMAND), "view", THREAD, "--table", self.table_name]

    def run(self, action: str, thread_id: str = THREAD) -> list[str]:
        """Run an action to its end and return what it printed."""
        with self.process(action, thread_id) as process:
            lines = list(echo(process))
            expect(process.wait() == 0, f"the process of '{action}' failed with status {process.returncode}")
        return lines


def act(number: int, title: str) -> None:
    """Print the title of an act."""
    print(f"\n{number}. {title}\n")


def tell(text: str) -> None:
    """Print a line of narration."""
    print(f"   {text}")


def echo(process: subprocess.Popen[str]) -> Iterator[str]:
    """Print what a process prints, as it does, and yield it."""
    for line in process.stdout or ():
        print(f"     process {process.pid} | {line.rstrip()}")
        yield line.rstrip()


def begun(lines: Sequence[str]) -> list[str]:
    """Return the tools that began, in no order: those of one step run at the same time."""
    return sorted(line.split()[1] for line in lines if line.startswith("tool "))


def stop_in_the_middle(stage: Stage) -> None:
    """Run the agent and kill its process while one of three tools is at work."""
    act(1, "An agent runs, and its process is killed")
    tell("Its code is examples/demo_agent.py; all but two lines of it know nothing of DynamoDB.")
    tell(f"A human asks: {demo_agent.QUESTION}")
    tell("The model calls three tools at once; two return, the third is slow.")
    with stage.process("start", **{demo_agent.HANG_VARIABLE: SLOW_TOOL}) as process:
        lines: list[str] = []
        for line in echo(process):
            lines.append(line)
            if len(begun(lines)) == len(demo_agent.SEARCHES):
                break
        expect(begun(lines) == sorted(demo_agent.SEARCHES), "the three tools did not begin")
        finished = wait_for_finished_tools(stage)
        tell(f"Another process can already read from the table that {' and '.join(finished)} are done.")
        os.kill(process.pid, signal.SIGKILL)
        expect(process.wait() == -signal.SIGKILL, "the process ended before it was killed")
    tell(f"kill -9 {process.pid}: the process is gone while {SLOW_TOOL} was running.")


def wait_for_finished_tools(stage: Stage) -> list[str]:
    """Wait until the results of all tools but the slow one are stored, and return their names."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    with stage.saver() as saver:
        while time.monotonic() < deadline:
            found = saver.get_tuple(demo_agent.config_of(THREAD))
            writes = (found.pending_writes or []) if found else []
            names = sorted(
                message.name for _, channel, value in writes if channel == "messages" for message in value
            )
            if len(names) == len(demo_agent.SEARCHES) - 1:
                return names
            time.sleep(POLL_SECONDS)
    raise DemoError("the results of the finished tools were not stored")


def go_on(stage: Stage) -> None:
    """Resume in a new process: only the tool that was interrupted runs, then the agent asks."""
    act(2, "A new process goes on where the killed one was")
    lines = stage.run("resume")
    expect(begun(lines) == [SLOW_TOOL], "a tool other than the one that was killed ran again")
    expect(any(line.startswith("agent asks:") for line in lines), "the agent did not ask")
    tell(f"Only {SLOW_TOOL} ran again: what the other two had found was in the table.")
    tell("The agent needs a human now. Its process has ended; the question waits in the table.")


def be_answered(stage: Stage) -> None:
    """Answer the question of a process that is gone, in a third one."""
    act(3, "A human says yes, minutes or weeks later, to a third process")
    lines = stage.run("answer")
    expect(begun(lines) == ["book"], "the answer did not lead to one booking and nothing else")
    tell("Nothing but the booking ran: the answer reached the very tool that had asked.")


def show_history(stage: Stage) -> None:
    """Print every checkpoint of the thread."""
    act(4, "Every step can be read again")
    print(history_table(stage.history()))


def fork(stage: Stage) -> None:
    """Change what was said at an earlier checkpoint, and go on from there."""
    act(5, "The human goes back to an earlier checkpoint and says something else")
    before = stage.history()
    lines = stage.run("fork")
    expect(begun(lines) == [], "the fork ran a tool again")
    tell("The searches were not repeated: the fork shares everything up to the point it left from.")
    with stage.saver() as saver:
        still = saver.get_tuple(before[0].config)
    expect(still == before[0], "the original branch changed")
    tell("The branch with the booking is still there, unchanged. The new one begins at an older parent:")
    print(f"\n{history_table(stage.history(), skip=len(before))}")


def remember(stage: Stage) -> None:
    """Ask in a thread of its own for what the first one has booked."""
    act(6, "Another thread remembers the journey")
    tell(f"A human asks, in a new thread: {demo_agent.RECALL}")
    lines = stage.run("recall", OTHER_THREAD)
    expect(lines == [f"agent: At the {demo_agent.HOTEL}."], "the agent did not remember the hotel")
    tell("The booking is a memory of its user, in the same table: LangGraph's store keeps it.")


def show_stored(stage: Stage) -> None:
    """Print what is in the table, and what the engine charged for it."""
    act(7, "What was stored, and what it cost")
    client = stage.session.client("dynamodb", endpoint_url=stage.engine.endpoint_url)
    print(stored_table(list(scan(client, stage.table_name))))
    # moto answers with a capacity, but it is not computed from what was stored.
    reports_capacity = stage.engine.kind != MOTO
    print(f"\n{usage_table(stage.usage, stage.checkpoints, reports_capacity=reports_capacity)}")
    print()
    if reports_capacity:
        tell("The dollars are what AWS asks for the units on demand in us-east-1, without storage.")
    else:
        tell("Capacity and price need DynamoDB Local, which needs Java 17 or Docker; moto computes neither.")


def serve_the_page(stage: Stage) -> None:
    """Serve the page until Ctrl-C, by which the command ends too."""
    print(f"\nlanggraph-dynamodb view {THREAD} --table {stage.table_name}")
    with ExitStack() as stack:
        with interrupted_later():
            process = subprocess.Popen(stage.command(), env=stage.engine.environment())  # noqa: S603
            stack.callback(end_process, process)
        expect(process.wait() == 0, f"the viewer ended with status {process.returncode}")


def perform(stage: Stage) -> None:
    """Play all acts."""
    stop_in_the_middle(stage)
    go_on(stage)
    be_answered(stage)
    show_history(stage)
    fork(stage)
    remember(stage)
    show_stored(stage)
    print("\nEvery step of the thread is on a page: `make view-demo` plays the demo again, and serves it.")
    print(f"\nThis ran on {stage.engine.name}. On AWS, `make deploy` makes the table, and an agent needs:\n")
    print("    from langgraph.checkpoint.dynamodb import DynamoDBSaver")
    print("    from langgraph.store.dynamodb import DynamoDBStore")
    print('    saver = DynamoDBSaver("langgraph-checkpoints", region_name="eu-west-1")')
    print('    store = DynamoDBStore("langgraph-checkpoints", region_name="eu-west-1")')
    print("    agent = graph.compile(checkpointer=saver, store=store)")


def say_why_not_dynamodb_local() -> None:
    """Say what is missing for the better engine, and that the demo goes on without it."""
    try:
        find(DYNAMODB_LOCAL)
    except ServerUnavailableError as reason:
        print(f"{reason}\nThe demo goes on with moto's server, which answers the same requests.")


def main() -> int:
    """Find an engine, play, and return the exit status."""
    parser = argparse.ArgumentParser(description="What the saver does for an agent, in seven acts.")
    parser.add_argument("--view", action="store_true", help="serve the page of the thread until Ctrl-C")
    is_to_serve = parser.parse_args().view
    try:
        recipe = find_best()
        if recipe.kind == MOTO:
            say_why_not_dynamodb_local()
        with recipe.run() as engine, tempfile.TemporaryDirectory() as scratch:
            session = boto3.Session(engine.access_key_id, engine.secret_access_key, None, engine.region_name)
            stage = Stage(engine, session, f"demo-{uuid4().hex}", Path(scratch, "usage"), {})
            with stage.saver() as saver:
                saver.setup()
            try:
                perform(stage)
                if is_to_serve:
                    serve_the_page(stage)
            finally:
                # An engine of the demo's own forgets everything anyway; somebody else's does not.
                client = session.client("dynamodb", endpoint_url=engine.endpoint_url)
                client.delete_table(TableName=stage.table_name)
    except (DemoError, ServerUnavailableError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
