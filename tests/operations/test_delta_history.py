"""The history of delta channels: the nearest stored value, the writes since, and how they are read."""

from collections.abc import Sequence
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointNotFoundError, protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import PAGE_ITEMS_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.delta_history import (
    Ancestors,
    HistoryPage,
    _steps_since,
    find_history,
    get_delta_channel_history,
)
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, TTL_SECONDS, Harness, Process, Run, updates

COUNTERS = "counters_since_delta_snapshot"
SNAPSHOT = {"log": ["stored"], "other": ["first"]}


def _chain(harness: Harness, *, large: bool = False, counter: Any = None) -> None:
    """Six checkpoints with a write each: "log" is stored at the third, "other" at the first."""
    for step in range(6):
        stored = {name: SNAPSHOT[name] for name, at in (("log", 2), ("other", 0)) if step == at}
        values = {"big": noise(60_000, step), **stored} if large else stored
        versions = {"log": step + 1, "other": step + 1}
        metadata: Any = {"step": step, COUNTERS: dict.fromkeys(versions, counter or (step, step))}
        put = harness.process().put(
            str(step), values, str(step - 1) if step else None, versions=versions, **metadata
        )
        harness.run(put)
        for name in ("log", "other"):
            harness.run(harness.process().put_writes(str(step), [(name, f"{name} {step}")], name))


def _writes(page: HistoryPage, name: str) -> list[Any]:
    return [value for _, _, value in page.channels[name]["writes"]] if name in page.channels else []


@pytest.mark.parametrize("large", [False, True])
def test_a_history_has_the_writes_since_the_nearest_stored_value(harness: Harness, *, large: bool) -> None:
    _chain(harness, large=large)
    at = thread_config(THREAD, "", "5")
    page = harness.run(find_history(harness.process().storage, at, ["log", "other", "none"]))
    assert page.after is None
    assert {name: each.get("seed") for name, each in page.channels.items()} == {**SNAPSHOT, "none": None}
    assert _writes(page, "log") == ["log 2", "log 3", "log 4"]
    assert _writes(page, "other") == [f"other {step}" for step in range(5)]
    assert page.checkpoint_ids == {"log": ["2", "3", "4"], "other": list("01234"), "none": []}
    newest = harness.run(get_delta_channel_history(harness.process().storage, thread_config(THREAD), ["log"]))
    assert newest == {"log": page.channels["log"]}
    assert harness.run(find_history(harness.process().storage, at, [])) == HistoryPage()
    missing = harness.run(find_history(harness.process().storage, thread_config(THREAD, "", "9"), ["log"]))
    assert missing.channels == {"log": {"writes": []}}


def test_pages_are_the_whole_history(harness: Harness) -> None:
    _chain(harness)
    at, after, names, steps = thread_config(THREAD, "", "5"), None, ["log", "other"], list[Any]()
    writes: dict[str, list[Any]] = {name: [] for name in names}
    while names:
        page = harness.run(
            find_history(harness.process().storage, at, names, after=after, is_full=lambda size: size > 0)
        )
        for name in names:
            writes[name] = _writes(page, name) + writes[name]
        steps.append(page.after)
        names = [name for name in names if "seed" not in page.channels[name]] if page.after else []
        after = page.after
    assert steps == ["4", "3", "2", "1", None]
    assert writes == {"log": ["log 2", "log 3", "log 4"], "other": [f"other {step}" for step in range(5)]}
    for each in ("C#1#", "C#1#W#log", "C#1#W#other"):
        harness.remove(harness.items("C#")[each])
    with pytest.raises(CheckpointNotFoundError, match=r"^checkpoint '1' of thread 't' was deleted while"):
        harness.run(find_history(harness.process().storage, at, ["other"], after="1"))
    with pytest.raises(
        CheckpointNotFoundError, match=r"^delta channels \['other'\] cannot be rebuilt: checkpoint '1'"
    ):
        harness.run(find_history(harness.process().storage, at, ["log", "other"]))


@pytest.mark.parametrize(
    ("counters", "steps"),
    [
        ({"log": (1, 7)}, 7),
        ({"log": (1, 7), "other": (1, 9)}, 9),
        ({"none": (1, 8)}, 0),
        ({"log": (1, "7")}, 0),
        ({"log": 7}, 0),
        (None, 0),
    ],
)
def test_the_metadata_tell_how_far_back_values_lie(counters: Any, steps: int) -> None:
    metadata: Any = {COUNTERS: counters}
    assert _steps_since(metadata, {"log", "other"}) == steps


@pytest.mark.parametrize("counter", [5, [5], ["5", "5"], [1, 10**18], [1, -300], [0, 0]])
def test_counters_that_an_application_made_up_do_no_harm(harness: Harness, counter: Any) -> None:
    _chain(harness, counter=counter)
    reading = get_delta_channel_history(harness.process().storage, thread_config(THREAD, "", "5"), ["other"])
    run = harness.begin(reading)
    limits = [call.params.get("Limit", 1) for call in run.trace() if call.method == "query"]
    assert len(limits) <= 4
    assert 1 <= min(limits) <= max(limits) <= PAGE_ITEMS_MAX
    assert len(run.finish()["other"]["writes"]) == 5


def test_a_page_is_as_large_as_what_is_probably_needed(harness: Harness) -> None:
    """Two items a step, or as many as the checkpoints read so far have, and a quarter more."""
    _chain(harness)
    run = harness.begin(
        find_history(harness.process().storage, thread_config(THREAD, "", "5"), ["log", "other"])
    )
    limits = [call.params.get("Limit") for call in run.trace() if call.method == "query"]
    # The start has three items: the ancestors of five steps are estimated to have as many each.
    assert limits[:2] == [None, 2 + 5 * 2 * 5 // 4]
    ancestors = Ancestors(harness.process().storage, items.partition_of(THREAD), below="5")
    [checkpoint, *_] = harness.run(ancestors._history.page(3))  # noqa: SLF001
    ancestors.read["4"] = checkpoint
    head = harness.items("C#5#")["C#5#"]
    assert ancestors._items_back(head, {"log"}) == 2 + 5 * 3 * 5 // 4  # noqa: SLF001


# How long they live: what a delta channel is rebuilt from, as long as the checkpoint


BIG = noise(40_000)


def _put(process: Process, step: int, *, values: Sequence[str] = ("big",), log: Any = None) -> Run[Any]:
    """Begin to put one more checkpoint, of a delta channel and one that no step changes, as its parent's child."""
    given = {**dict.fromkeys(values, BIG), **({} if log is None else {"log": log})}
    counters: Any = {"counters_since_delta_snapshot": {"log": (step, step)}}
    parent, new = (f"{step - 1:04}", ()) if step else (None, values)
    put = process.put(f"{step:04}", given, parent, new, versions={"log": step + 1}, step=step, **counters)
    return process.harness.begin(put)


def _step(process: Process, step: int, *, large: bool = False, **options: Any) -> list[Call]:
    """Store one more checkpoint with a write to the channel; return the requests of the put."""
    requests = _put(process, step, **options).trace()
    process.harness.run(process.put_writes(f"{step:04}", [("log", _write(step, large=large))]))
    return requests


def _conversation(harness: Harness, times: Sequence[float], *, stored_at: int | None = None) -> None:
    """Store a checkpoint at each time, in ttls, by a process that remembers nothing of the others."""
    begun = harness.now
    for step, time in enumerate(times):
        harness.now = begun + time * TTL_SECONDS
        _step(harness.process(TTL_SECONDS), step, log=["stored"] if step == stored_at else None, large=True)


def _write(step: int, *, large: bool) -> Any:
    return noise(70_000, step) if large else f"write {step}"


def _history(harness: Harness, step: int) -> list[Any]:
    """What is written to the channel before a checkpoint, as a process reads it that remembers nothing."""
    at = thread_config(THREAD, "", f"{step:04}")
    history = harness.run(get_delta_channel_history(harness.process().storage, at, ["log"]))
    return [value for _, _, value in history["log"]["writes"]]


def _renewed(requests: Sequence[Call]) -> list[str]:
    """The heads that requests let live longer."""
    keys = [each.params["Key"]["SK"]["S"] for each in requests if each.method == "update_item"]
    return [key.split("#")[1] for key in keys if key.startswith("C#") and "#W#" not in key]


def _assert_nothing_outlives_its_segments(harness: Harness) -> None:
    storage, segments = harness.process().storage, harness.items("S#")
    for item in harness.items("C#").values():
        loaded, named = LoadedSegments(items.partition_key(item)), items.named_ids([item])
        harness.run(loaded.read_indexes(storage, named))
        needed = [segments[items.segment_sk(each)] for each in reach(named, loaded.contents)]
        assert all(_expiry(item) <= _expiry(each) for each in needed), items.sort_key(item)


def _expiry(item: Any) -> float:
    return items.number(item, TTL_ATTRIBUTE) or float("inf")


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("steps", [1, 3], ids="a process for {}".format)
@pytest.mark.parametrize("pause", [0.3, 0.97])
def test_a_delta_channel_can_be_rebuilt_until_its_checkpoint_expires(
    harness: Harness, pause: float, steps: int, *, large: bool
) -> None:
    """A conversation that goes on before its ttl runs out can always be rebuilt from its first write."""
    process = harness.process(TTL_SECONDS)
    for step in range(8):
        if step % steps == 0:
            process = harness.process(TTL_SECONDS)
        _step(process, step, large=large)
        _assert_nothing_outlives_its_segments(harness)
        put_at = harness.now
        # Looked at last, and from that moment the next step comes.
        for moment in (0.0, TTL_SECONDS - 1, TTL_SECONDS * pause):
            harness.now = put_at + moment
            everything = harness.items("")
            harness.model.expire()
            assert harness.process().values() == {"big": BIG}
            assert _history(harness, step) == [_write(each, large=large) for each in range(step)]
            for key in everything.keys() - harness.items("").keys():
                harness.change(everything[key])
        harness.model.expire()
        # What is kept for it is not kept for ever.
        kept_until = items.number(harness.items("T")["T"], items.KEPT_UNTIL) or 0
        assert all(_expiry(each) <= kept_until for sk, each in harness.items("").items() if sk != "T")
        assert kept_until <= protocol.kept_from(TTL_SECONDS, put_at)


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_ancestors_are_renewed_once_in_a_ttl(harness: Harness, *, cold: bool) -> None:
    process = harness.process(TTL_SECONDS)
    renewed_at: dict[str, float] = {}
    for step in range(50):
        if cold:
            process = harness.process(TTL_SECONDS)
        for renewed in _renewed(_step(process, step, values=())):
            assert harness.now - renewed_at.get(renewed, 0) >= TTL_SECONDS
            renewed_at[renewed] = harness.now
        harness.now += TTL_SECONDS / 10
    assert {f"{step:04}" for step in range(30)} <= renewed_at.keys()


def test_what_comes_before_a_stored_value_is_not_kept_for_it(harness: Harness) -> None:
    _conversation(harness, [0, 0, 0.6], stored_at=1)
    harness.now += 0.6 * TTL_SECONDS
    assert _renewed(_step(harness.process(TTL_SECONDS), 3)) == ["0001", "0002"]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_checkpoint_without_its_ancestors_keeps_none_of_the_others(harness: Harness, gone: int) -> None:
    """Who reads its delta channel is told; nothing is kept for what cannot be rebuilt."""
    _conversation(harness, [0, 0, 0, 0.6], stored_at=0)
    harness.remove(harness.items(f"C#{gone:04}#")[f"C#{gone:04}#"])
    harness.now += 0.6 * TTL_SECONDS
    assert _renewed(_step(harness.process(TTL_SECONDS), 4)) == ["0003"]
    assert harness.process().values() == {"big": BIG}
    with pytest.raises(CheckpointNotFoundError, match=f"{gone:04}"):
        _history(harness, 4)


def test_ancestors_are_kept_with_what_index_segments_of_theirs_lead_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_small_limits(monkeypatch)
    harness = Harness()
    large = noise(4_000)
    for step in range(8):
        process = harness.process(TTL_SECONDS)
        _put(process, step, values=()).finish()
        harness.run(process.put_writes(f"{step:04}", [("log", large)]))
        _assert_nothing_outlives_its_segments(harness)
        harness.now += 0.6 * TTL_SECONDS
        harness.model.expire()
        assert _history(harness, step) == [large] * step


def test_an_ancestor_that_lost_a_segment_meanwhile_does_not_outlive_it(harness: Harness) -> None:
    """A process stands still before it renews what it has read, and DynamoDB removes a part of that meanwhile."""
    _conversation(harness, [0, 0, 0.6])
    before = harness.items("C#")
    harness.now += 0.6 * TTL_SECONDS
    run = _put(harness.process(TTL_SECONDS), 3).until(updates("S#"))
    torn = next(key for key in before if key.startswith("C#0001#W#"))
    harness.remove(harness.items("S#")[items.segment_sk(min(items.named_ids([before[torn]])))])
    run.finish()
    after = harness.items("C#")
    assert [key for key in before if after[key] == before[key]] == [torn]


def test_a_checkpoint_is_not_rebuilt_from_ancestors_that_have_expired(harness: Harness) -> None:
    """They are still in the table, and DynamoDB may remove any of them at any moment."""
    _conversation(harness, [0, 0, 3.1])
    with pytest.raises(CheckpointNotFoundError, match="0001"):
        _history(harness, 2)


def test_a_checkpoint_that_is_kept_for_later_ones_has_no_history_of_its_own(harness: Harness) -> None:
    """Not longer than it was kept for readers; and a history is paged behind it."""
    _conversation(harness, [0, 0, 0, 0.97, 1.94])
    assert harness.process().values("0001") == {"big": BIG}
    _step(harness.process(TTL_SECONDS), 5, large=True)
    harness.now += 0.3 * TTL_SECONDS
    harness.model.expire()
    assert harness.process().values("0001") is None
    assert _history(harness, 1) == []
    storage, at = harness.process().storage, thread_config(THREAD, "", "0005")
    found, after = list[Any](), None
    for _ in range(5):
        page = harness.run(find_history(storage, at, ["log"], after=after, is_full=lambda _: True))
        found = [*(value for *_, value in page.channels["log"]["writes"]), *found]
        after = page.after
    assert found == _history(harness, 5) == [_write(step, large=True) for step in range(5)]


def test_a_prune_that_dies_leaves_each_checkpoint_with_what_it_is_rebuilt_from(harness: Harness) -> None:
    _conversation(harness, [0.0] * 40, stored_at=36)
    # The one that is stored whole is rebuilt from nothing.
    before = {step: _history(harness, step) for step in range(40) if step != 36}
    deletion = harness.begin(harness.process().prune(2))
    while not deletion.done:
        deletion.go_on()
        left = [step for step in before if f"C#{step:04}#" in harness.items("C#")]
        assert {step: _history(harness, step) for step in left} == {step: before[step] for step in left}
    assert left == [37, 38, 39]
