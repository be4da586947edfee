"""A call that renews a thread dies at each of its requests: all of the state lives on, or nothing of it does."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.limits import FINDABLE_SECONDS
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.protocol import Thread
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import TTL_SECONDS, Harness, Process, single_effects

BIG, OTHER = noise(6_000), noise(5_000, 1)
TASK = [("channel", "value")]
NEW = {"x": BIG, "y": "new"}


def _put_log(process: Process, checkpoint_id: str, parent_id: str | None) -> None:
    """Put a checkpoint of a subgraph of which only the additions to a log are stored, and add to it."""
    counters: Any = {"counters_since_delta_snapshot": {"log": (1, 1)}}
    versions = {"log": int(checkpoint_id)}
    process.harness.run(
        process.put(checkpoint_id, {}, parent_id, namespace="log", versions=versions, **counters)
    )
    process.harness.run(process.put_writes(checkpoint_id, [("log", OTHER)], namespace="log"))


def _stored() -> Harness:
    """A thread whose root, and whose subgraphs, have more than one checkpoint that a run needs."""
    harness = Harness()
    process = harness.process(TTL_SECONDS)
    harness.run(process.put("10", {"x": BIG}))
    harness.run(process.put("15", {"z": OTHER}, namespace="sub"))
    harness.run(process.put("20", {"x": BIG, "y": 2}, "10", ["y"]))
    harness.run(process.put("25", {"z": OTHER, "w": 1}, "15", ["w"], namespace="sub"))
    _put_log(process, "26", None)
    _put_log(process, "27", "26")
    harness.run(process.put("30", {"x": BIG, "y": 3}, "20", ["y"]))
    harness.run(process.put_writes("30", [("channel", OTHER)], "other"))
    harness.run(process.put("35", {"v": OTHER}, namespace="call:1"))
    return harness


def _state(harness: Harness) -> list[Any]:
    """What a run from the root's newest checkpoint needs, if it is there."""
    process = harness.process()
    found = process.get("30")
    log = process.get("27", namespace="log")
    at = thread_config("t", "log", "27")
    return [
        found and found.checkpoint["channel_values"],
        sorted(each for each in (found and found.pending_writes) or () if each[0] == "other"),
        process.values("25", namespace="sub"),
        process.values("35", namespace="call:1"),
        log and log.pending_writes,
        log and harness.run(get_delta_channel_history(process.storage, at, ["log"])),
    ]


WHOLE = _state(_stored())
NOTHING: list[Any] = [None, [], None, None, None, None]
IN_CALL = thread_config("t", "call:1", "35")
IN_CALL["configurable"]["checkpoint_map"] = {"": "30"}
USES: dict[str, Callable[[Process], Op[Any]]] = {
    "put": lambda process: process.put("40", NEW, "30", ["y"]),
    "writes": lambda process: process.put_writes("30", [("channel", OTHER)]),
    "writes of a subgraph": lambda process: put_writes(process.storage, IN_CALL, TASK, "task", ""),
}


def _effects(harness: Harness, operation: Op[Any], most: int) -> bool:
    """Carry out so many effects of an operation, and tell whether it has ended; otherwise it dies."""
    run = harness.begin(operation)
    while not run.done:
        calls = list(single_effects(run.calls)) or run.calls
        effects = [each for each in calls if each.method not in {"get_item", "query", "batch_get_item"}]
        if len(effects) > most:
            for each in effects[:most]:
                harness.answer(each)
            run.drop()
            return False
        most -= len(effects)
        run.go_on()
    return True


def _deaths(stored: Harness, age: float, use: str) -> Iterator[Harness]:
    """Yield what is left of each call that dies, and at last of the one that does not."""
    is_done, effects = False, 0
    while not is_done:
        left = stored.copy(age * TTL_SECONDS)
        is_done = _effects(left, USES[use](left.process(TTL_SECONDS)), effects)
        yield left
        effects += 1
    assert effects > 10


def _thread(harness: Harness) -> Thread | None:
    found = harness.items("T").values()
    return next(map(Thread.parse, found), None)


def _assert_whole_or_gone(harness: Harness) -> None:
    """Readers see all of the state while the thread item says so, and nothing otherwise."""
    thread, newest = _thread(harness), harness.process().values()
    is_alive = thread is not None and thread.is_alive(harness.now)
    assert _state(harness) == (WHOLE if is_alive else NOTHING)
    assert newest in ([WHOLE[0], NEW] if is_alive else [None])


def _rests(left: Harness, *, removes: Callable[[list[Any]], list[Any]]) -> Iterator[Harness]:
    """Yield a table after rests of each length that matters, when DynamoDB has removed some of what has expired."""
    thread = _thread(left)
    assert thread is not None
    times = {thread.life.alive_until, thread.life.kept_until, thread.kept_before}
    for time in sorted(int(each) for each in times if each is not None):
        for rest in (time - 1, time, time + TTL_SECONDS // 2):
            if rest > left.now:
                rested = left.copy(rest - left.now)
                rested.model.expire(removes(rested.model.expired()))
                yield rested


REMOVALS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "nothing": lambda _: [],
    "everything": lambda expired: expired,
}


@pytest.mark.parametrize("removes", REMOVALS)
@pytest.mark.parametrize("age", [0.97, 1.5], ids=["alive", "dead"])
@pytest.mark.parametrize("use", USES)
def test_a_renewal_that_dies_leaves_all_of_the_state_or_nothing(use: str, age: float, removes: str) -> None:
    """Afterwards the thread is used, at once or after a rest, or is left alone, or is erased."""
    for left in _deaths(_stored(), age, use):
        _assert_whole_or_gone(left)
        for rested in (left, *_rests(left, removes=REMOVALS[removes])):
            _assert_whole_or_gone(rested)
            _assert_goes_on_or_begins_anew(rested)
            _assert_begins_anew_if_it_is_dead(rested)
        harness = left.copy()
        harness.run(harness.process().delete_thread())
        assert harness.model.items() == []
        left.now += 4 * TTL_SECONDS + FINDABLE_SECONDS
        left.model.expire()
        assert left.model.items() == []


def _assert_goes_on_or_begins_anew(rested: Harness) -> None:
    """A run that names its checkpoint brings all back, for as long as it is there; and it stays, used or not."""
    harness, thread = rested.copy(), _thread(rested)
    goes_on = thread is not None and thread.may_live_on(harness.now) and "C#30#" in harness.items("C#30#")
    harness.run(harness.process(TTL_SECONDS).put_writes("30", TASK, "late"))
    assert _state(harness) == (WHOLE if goes_on else NOTHING)
    if goes_on:
        assert ("late", "channel", "value") in harness.process().pending("30")
        harness.now += 0.97 * TTL_SECONDS
        harness.model.expire()
        _assert_whole_or_gone(harness)
        harness.run(harness.process(TTL_SECONDS).put_writes("30", TASK, "late"))
        assert _state(harness) == WHOLE


def _assert_begins_anew_if_it_is_dead(rested: Harness) -> None:
    harness, thread = rested.copy(), _thread(rested)
    is_alive = thread is not None and thread.is_alive(harness.now)
    harness.run(harness.process(TTL_SECONDS).put("50", {"x": 5}))
    assert harness.process().values() == {"x": 5}
    assert _state(harness) == (WHOLE if is_alive else NOTHING)
    for namespace in ("sub", "log", "call:1"):
        assert (harness.process().get(namespace=namespace) is not None) == is_alive
