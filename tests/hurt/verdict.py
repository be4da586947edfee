"""What must hold after a siege, on the engine itself; and what happened, for a person to read."""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from tests.hurt.graph_agent import build, check_state
from tests.hurt.journal import Journal, Turns
from tests.hurt.siege import Siege
from tests.simulation.ledger import Ledger, Moment
from tests.support.checkpoints import thread_config

ALLOWED = {"BotoCoreError", "ClientError", "CheckpointerError"}
FORBIDDEN = {"CheckpointCorruptionError", "CheckpointFormatError", "CheckpointNotFoundError"}
# In fair weather the longest operations are those that take a whole thread out, or a graph's turn: some twenty calls.
# The saver begins anew up to `ATTEMPTS_MAX` times, and what is left of a batch is one more call each time.
CALLS_MAX = ATTEMPTS_MAX * 20
REQUESTS_PER_OPERATION_MAX = 12


def check_stored(siege: Siege, saver: DynamoDBSaver) -> None:
    """Check that nothing acknowledged is lost, torn, mixed or back again."""
    for path in siege.journals():
        journal = Journal(path)
        # The proxy has ended: nothing is under way any more.
        journal.settle()
        now = Moment(journal.moment.move + 1, 0.0)
        for ledger in journal.ledgers.values():
            _check_ledger(saver, ledger, now)
        for thread, turns in journal.turns.items():
            _check_graph(saver, thread, turns)
        journal.close()


def _check_ledger(saver: DynamoDBSaver, ledger: Ledger, now: Moment) -> None:
    for place in {put.place for put in ledger.puts.values()}:
        ledger.check_latest(place, saver.get_tuple(thread_config(*place)), now)
    for thread in {put.thread for put in ledger.puts.values()} | ledger.copies.keys():
        listed = list(saver.list({"configurable": {"thread_id": thread}}))
        ledger.check_list(thread, listed, now)
    for put in list(ledger.puts.values()):
        ledger.check_one(put, saver.get_tuple(thread_config(*put.place, put.checkpoint_id)), now)


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


def check_errors(siege: Siege) -> None:
    """Check that every error that reached a caller says what happened."""
    for line in siege.lines():
        if "failed" in line:
            kinds = set(line["kinds"])
            assert kinds & ALLOWED, line
            assert not kinds & FORBIDDEN, line
            assert len(line["message"]) > 10, line


def check_hurt(siege: Siege) -> None:
    """Check that every fault befell a request, and that processes were killed: otherwise nothing was tried."""
    assert siege.kills
    assert all(siege.report["faults"].values())


def check_retries(siege: Siege, attempts_max: int) -> None:
    """Check that no call was tried more often than the client is set to, and no operation made calls without end."""
    calls = siege.report["attempts"]
    # LangGraph stores some writes of a turn outside of the context that names the operation.
    named = [len(calls[operation]) for operation in calls if operation]
    assert max(_attempts(siege)) <= attempts_max
    assert max(named) <= CALLS_MAX
    assert sum(_attempts(siege)) <= REQUESTS_PER_OPERATION_MAX * len(named)


def check_emptied(siege: Siege, saver: DynamoDBSaver) -> None:
    """Delete all threads; nothing of them may be left, whatever was interrupted."""
    # As if the claims of deletions that were killed had run out.
    saver._table = replace(saver._table, clock=lambda: time.time() + 1_000)
    threads = {name for line in siege.lines() for name in (line.get("thread"), line.get("target")) if name}
    for thread in sorted(threads):
        saver.delete_thread(thread)


def figures(siege: Siege) -> str:
    """Say what happened."""
    lines = list(siege.lines())
    asked = {line["asked"]: line["kind"] for line in lines if "asked" in line}
    ended = [
        line.get("acknowledged") or line["failed"]
        for line in lines
        if "acknowledged" in line or "failed" in line
    ]
    errors = Counter(line["kinds"][0] for line in lines if "failed" in line)
    attempts = _attempts(siege)
    return "\n".join(
        [
            f"{len(ended)} operations ended, {len(asked) - len(ended)} were cut off by {siege.kills} kills and the end",
            f"  operations: {_counts(Counter(asked[each] for each in ended))}",
            f"  faults: {_counts(siege.report['faults'])}",
            f"  errors that reached callers: {sum(errors.values())} ({_counts(errors)})",
            f"  {sum(attempts)} requests of {len(attempts)} calls, {sum(attempts) / len(asked):.1f} for an operation;"
            f" a call was tried {max(attempts)} times at most",
            f"  calls of an operation (mean, most): {_calls(siege.report['attempts'], asked)}",
        ]
    )


def _attempts(siege: Siege) -> list[int]:
    return [count for calls in siege.report["attempts"].values() for count in calls]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda each: -each[1]))


def _calls(attempts: Mapping[str, list[int]], asked: Mapping[str, str]) -> str:
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for operation, calls in attempts.items():
        by_kind[asked.get(operation, "(not named)")].append(len(calls))
    return ", ".join(
        f"{kind} {statistics.mean(counts):.1f} {max(counts)}" for kind, counts in sorted(by_kind.items())
    )
