"""DynamoDB Local, hurt from a seed, and graphs whose processes are killed: nothing that was acknowledged is lost.

`LANGGRAPH_DYNAMODB_CHAOS_OPERATIONS=10000` makes a soak of it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.chaos.faults import Fault
from tests.chaos.graph_agent import build, check_state
from tests.chaos.operation_log import ACKNOWLEDGED, ASKED, FAILED, OperationLog, Turns
from tests.chaos.process import ATTEMPTS_MAX
from tests.chaos.run import ChaosRun
from tests.conftest import MakeSaver
from tests.support.checkpoints import all_items, thread_config
from tests.support.examples import percent
from tests.support.seeds import VARIABLE, first_seed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

OPERATIONS_VARIABLE = "LANGGRAPH_DYNAMODB_CHAOS_OPERATIONS"
# One in which a storm comes early.


@pytest.mark.engines("dynamodb-local")
def test_nothing_acknowledged_is_lost_on_a_hurt_engine(
    engine: Engine,
    table_name: str,
    client: DynamoDBClient,
    make_saver: MakeSaver,
    tmp_path: Path,
    tell: Callable[[str], None],
) -> None:
    seed = first_seed()
    run = ChaosRun(engine, table_name, seed, int(os.environ.get(OPERATIONS_VARIABLE, percent(300))), tmp_path)
    tell(f"A run from {VARIABLE}={seed}")
    run.run()
    tell(figures(run))
    check_chaos(run)
    check_errors(run)
    check_retries(run)
    check_stored(run, make_saver())
    check_emptied(run, make_saver())
    assert all_items(client, table_name) == []


# What must hold after a run, on the engine itself; and what happened, for a person to read


ALLOWED = {"BotoCoreError", "ClientError", "CheckpointerError"}
FORBIDDEN = {"CheckpointCorruptionError", "CheckpointFormatError", "CheckpointNotFoundError"}
REQUESTS_PER_OPERATION_MAX = 12


def check_stored(run: ChaosRun, saver: DynamoDBSaver) -> None:
    """Check that nothing acknowledged is lost or torn."""
    for path in run.operation_logs():
        for thread, turns in OperationLog(path).turns.items():
            _check_graph(saver, thread, turns)


def _check_graph(saver: DynamoDBSaver, thread: str, turns: Turns) -> None:
    """Check a graph's conversation, and that its next turn can be taken."""
    graph, config = build(saver), thread_config(thread)
    state = graph.get_state(config)
    whole = check_state(state.values, turns.acknowledged, turns.asked)
    if state.tasks:
        values = graph.invoke(None, config)
        assert check_state(values, turns.asked, turns.asked) == turns.asked
    else:
        values = graph.invoke({"turn": whole}, config)
        assert check_state(values, whole + 1, whole + 1) == whole + 1
    for each in graph.get_state_history(config):
        check_state(each.values, 0, whole + 1)


def check_errors(run: ChaosRun) -> None:
    """Check that every error that reached a caller says what happened."""
    for line in run.lines(FAILED):
        kinds = set(line["kinds"])
        assert kinds & ALLOWED, line
        assert not kinds & FORBIDDEN, line
        assert len(line["message"]) > 10, line


def check_chaos(run: ChaosRun) -> None:
    """Check that every fault befell a request, and that processes were killed: otherwise nothing was tried."""
    assert run.kills
    assert all(run.proxy.counts[fault] for fault in Fault)


def check_retries(run: ChaosRun) -> None:
    """Check that no call was tried more often than the client is set to, and that no request was made without need."""
    attempts = run.proxy.attempts
    assert max(attempts.values()) <= ATTEMPTS_MAX
    assert attempts.total() <= REQUESTS_PER_OPERATION_MAX * len(run.lines(ASKED))


def check_emptied(run: ChaosRun, saver: DynamoDBSaver) -> None:
    """Delete all threads, so that nothing of them is left, whatever was interrupted."""
    for thread in sorted({line["thread"] for line in run.lines(ASKED)}):
        saver.delete_thread(thread)


def figures(run: ChaosRun) -> str:
    """Say what happened."""
    asked, failed = run.lines(ASKED), run.lines(FAILED)
    ended = [*run.lines(ACKNOWLEDGED), *failed]
    requests, calls = run.proxy.attempts.total(), len(run.proxy.attempts)
    most = max(run.proxy.attempts.values())
    faults = {fault.value: count for fault, count in run.proxy.counts.items()}
    return "\n".join(
        [
            f"{len(ended)} operations ended, {len(asked) - len(ended)} were cut off by {run.kills} kills and the end",
            f"  operations: {_counts(Counter(line['kind'] for line in ended))}",
            f"  faults: {run.proxy.counts.total()} ({_counts(faults)})",
            f"  errors that reached callers: {len(failed)} ({_counts(Counter(line['kinds'][0] for line in failed))})",
            f"  {requests} requests of {calls} calls, {requests / len(asked):.1f} for an operation;"
            f" a call was tried {most} times at most",
        ]
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda each: -each[1]))
