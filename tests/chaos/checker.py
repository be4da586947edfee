"""What must hold after a run, on the engine itself; and what happened, for a person to read."""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Mapping

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from tests.chaos.graph_agent import build, check_state
from tests.chaos.operation_log import OperationLog, Turns
from tests.chaos.run import ChaosRun
from tests.simulation.history import History, Moment
from tests.support.change import change_storage
from tests.support.checkpoints import thread_config

ALLOWED = {"BotoCoreError", "ClientError", "CheckpointerError"}
FORBIDDEN = {"CheckpointCorruptionError", "CheckpointFormatError", "CheckpointNotFoundError"}
# The agent checks that there may have been nothing to copy.
EMPTY = ("copy_thread", "CheckpointNotFoundError")
# Without faults the longest operations are those that take a whole thread out, or a graph's turn: some twenty calls.
# The saver begins anew up to `ATTEMPTS_MAX` times, and what is left of a batch is one more call each time.
CALLS_MAX = ATTEMPTS_MAX * 20
REQUESTS_PER_OPERATION_MAX = 12


def check_stored(run: ChaosRun, saver: DynamoDBSaver) -> None:
    """Check that nothing acknowledged is lost, torn, mixed or back again."""
    for path in run.operation_logs():
        operation_log = OperationLog(path)
        # The proxy has ended: nothing is under way any more.
        operation_log.settle()
        now = Moment(operation_log.moment.move + 1, 0.0)
        for history in operation_log.histories.values():
            _check_ledger(saver, history, now)
        for thread, turns in operation_log.turns.items():
            _check_graph(saver, thread, turns)
        operation_log.close()


def _check_ledger(saver: DynamoDBSaver, history: History, now: Moment) -> None:
    for place in {put.place for put in history.puts.values()}:
        history.check_latest(place, saver.get_tuple(thread_config(*place)), now)
    for thread in {put.thread for put in history.puts.values()} | history.copies.keys():
        listed = list(saver.list({"configurable": {"thread_id": thread}}))
        history.check_list(thread, listed, now)
    for put in list(history.puts.values()):
        history.check_one(put, saver.get_tuple(thread_config(*put.place, put.checkpoint_id)), now)


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
    asked = _kinds_asked(run)
    for line in run.lines():
        if "failed" in line:
            kinds = set(line["kinds"])
            assert kinds & ALLOWED, line
            assert not kinds & FORBIDDEN or (asked[line["failed"]], line["kinds"][0]) == EMPTY, line
            assert len(line["message"]) > 10, line


def check_chaos(run: ChaosRun) -> None:
    """Check that every fault befell a request, and that processes were killed: otherwise nothing was tried."""
    assert run.kills
    assert all(run.report["faults"].values())


def check_retries(run: ChaosRun, attempts_max: int) -> None:
    """Check that no call was tried more often than the client is set to, and no operation made calls without end."""
    calls = run.report["attempts"]
    # LangGraph stores some writes of a turn outside of the context that names the operation.
    named = [len(calls[operation]) for operation in calls if operation]
    assert max(_attempts(run)) <= attempts_max
    assert max(named) <= CALLS_MAX
    assert sum(_attempts(run)) <= REQUESTS_PER_OPERATION_MAX * len(named)


def check_emptied(run: ChaosRun, saver: DynamoDBSaver) -> None:
    """Delete all threads; nothing of them may be left, whatever was interrupted."""
    # As if the claims of deletions that were killed had run out.
    change_storage(saver, clock=lambda: time.time() + 1_000)
    threads = {name for line in run.lines() for name in (line.get("thread"), line.get("target")) if name}
    for thread in sorted(threads):
        saver.delete_thread(thread)


def _kinds_asked(run: ChaosRun) -> dict[str, str]:
    """Return the kind of each operation."""
    return {line["asked"]: line["kind"] for line in run.lines() if "asked" in line}


def figures(run: ChaosRun) -> str:
    """Say what happened."""
    lines = list(run.lines())
    asked = _kinds_asked(run)
    ended = [
        line.get("acknowledged") or line["failed"]
        for line in lines
        if "acknowledged" in line or "failed" in line
    ]
    errors = Counter(line["kinds"][0] for line in lines if "failed" in line)
    attempts = _attempts(run)
    return "\n".join(
        [
            f"{len(ended)} operations ended, {len(asked) - len(ended)} were cut off by {run.kills} kills and the end",
            f"  operations: {_counts(Counter(asked[each] for each in ended))}",
            f"  faults: {_counts(run.report['faults'])}",
            f"  errors that reached callers: {sum(errors.values())} ({_counts(errors)})",
            f"  {sum(attempts)} requests of {len(attempts)} calls, {sum(attempts) / len(asked):.1f} for an operation;"
            f" a call was tried {max(attempts)} times at most",
            f"  calls of an operation (mean, most): {_calls(run.report['attempts'], asked)}",
        ]
    )


def _attempts(run: ChaosRun) -> list[int]:
    return [count for calls in run.report["attempts"].values() for count in calls]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda each: -each[1]))


def _calls(attempts: Mapping[str, list[int]], asked: Mapping[str, str]) -> str:
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for operation, calls in attempts.items():
        by_kind[asked.get(operation, "(not named)")].append(len(calls))
    return ", ".join(
        f"{kind} {statistics.mean(counts):.1f} {max(counts)}" for kind, counts in sorted(by_kind.items())
    )
