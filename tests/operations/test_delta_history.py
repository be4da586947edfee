"""The history of delta channels: the nearest stored value, the writes since, and how they are read."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import PAGE_ITEMS_MAX
from langgraph.checkpoint.dynamodb._operations.delta_history import (
    Ancestors,
    HistoryPage,
    _steps_since,
    find_history,
    get_delta_channel_history,
)
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness

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
