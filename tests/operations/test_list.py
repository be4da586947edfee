"""`list`: which checkpoints, in which order, and with few requests."""

from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb._operations import list as list_module
from langgraph.checkpoint.dynamodb._operations.list import Position, Selection, list_checkpoints
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream, collected
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness, Run, asks


@pytest.fixture
def harness() -> Harness:
    """A thread with three checkpoints, of which the second is of another kind."""
    harness = Harness()
    process = harness.process()
    for number in range(1, 4):
        parent = str(number - 1) if number > 1 else None
        source = "update" if number == 2 else "loop"
        harness.run(process.put(str(number), {"x": number}, parent, source=source))
    return harness


def _listing(harness: Harness, **options: Any) -> Run[list[str]]:
    """Begin to list the thread's checkpoints."""
    arguments = {"metadata_filter": None, "before": None, "limit": None, **options}
    stream = list_checkpoints(harness.process().storage, thread_config(THREAD), *arguments.values())
    return harness.begin(_ids(stream))


def _ids(stream: Stream[CheckpointTuple]) -> Op[list[str]]:
    return [each.config["configurable"]["checkpoint_id"] for each in (yield from collected(stream))]


def test_a_limit_of_nothing_asks_for_nothing(harness: Harness) -> None:
    assert _listing(harness, limit=0).trace() == []


def test_a_long_list_holds_the_segments_of_a_few_checkpoints(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_module, "_SEGMENT_BYTES_KEPT", 400_000)
    for number in range(4, 16):
        harness.run(harness.process().put(f"a{number:02}", {"x": noise(60_000, number)}))
    selection, most = Selection(storage=harness.process().storage), 0
    run = harness.begin(_ids(selection.of(thread_config(THREAD))))
    while not run.done:
        run.go_on()
        held = [data for each in selection.segments.values() for data in each.contents.values()]
        most = max(most, sum(map(len, held)))
    # At least one checkpoint is read at a time, whatever is held already.
    assert 60_000 < most < 400_000 + 60_000 + 1000


PLACES = [
    ("a", "", "1"),
    ("a", "", "3"),
    ("a", "child", "2"),
    ("a", "child", "3"),
    ("b", "", "1"),
    ("b", "", "4"),
]
OF_RUN = {"run_id": "run"}
WHOLE_THREAD: Any = {"configurable": {"thread_id": "a"}}


@pytest.fixture
def table() -> Harness:
    """A table with two threads of a run, and another one."""
    harness = Harness()
    for thread, namespace, checkpoint_id in PLACES:
        note: Any = {"note": checkpoint_id, "long": "x" * 9_000 if checkpoint_id == "2" else ""}
        harness.run(
            harness.process().put(checkpoint_id, {}, thread=thread, namespace=namespace, run_id="run", **note)
        )
    harness.run(harness.process().put("1", {}, thread="c", run_id="other"))
    return harness


def _places(harness: Harness, config: Any = None, **options: Any) -> list[str]:
    stream = Selection(storage=harness.process().storage, **options).of(config)
    found = [each.config["configurable"] for each in harness.run(collected(stream))]
    return [f"{each['thread_id']}{each['checkpoint_ns'][:1]}{each['checkpoint_id']}" for each in found]


@pytest.mark.parametrize(
    ("config", "options", "places"),
    [
        (WHOLE_THREAD, {}, ["a3", "ac3", "ac2", "a1"]),
        (WHOLE_THREAD, {"left": 3}, ["a3", "ac3", "ac2"]),
        (WHOLE_THREAD, {"left": 0}, []),
        (WHOLE_THREAD, {"before": "3"}, ["ac2", "a1"]),
        (WHOLE_THREAD, {"after": Position("a", "", "3")}, ["ac3", "ac2", "a1"]),
        (WHOLE_THREAD, {"after": Position("a", "child", "3")}, ["ac2", "a1"]),
        (WHOLE_THREAD, {"metadata_filter": {"note": "2"}}, ["ac2"]),
        (WHOLE_THREAD, {"metadata_filter": {"note": "3"}, "left": 1}, ["a3"]),
        (thread_config("a", "child"), {}, ["ac3", "ac2"]),
        ({"configurable": {"thread_id": "a", "checkpoint_id": "3"}}, {}, ["a3", "ac3"]),
        ({"configurable": {"thread_id": "a", "checkpoint_id": "3"}}, {"before": "3"}, []),
        ({"configurable": {"thread_id": "a", "checkpoint_id": "3"}}, {"before": "4"}, ["a3", "ac3"]),
        (
            {"configurable": {"thread_id": "a", "checkpoint_id": "3"}},
            {"after": Position("a", "", "3")},
            ["ac3"],
        ),
        (thread_config("a", "", "9"), {}, []),
        (None, {}, ["a3", "a1", "ac3", "ac2", "b4", "b1", "c1"]),
        (None, {"prefix": "b"}, ["b4", "b1"]),
        (None, {"left": 3}, ["a3", "a1", "ac3"]),
        (None, {"before": "3"}, ["a1", "ac2", "b1", "c1"]),
        (None, {"metadata_filter": OF_RUN}, ["a3", "a1", "ac3", "ac2", "b4", "b1"]),
        (None, {"metadata_filter": OF_RUN, "left": 5}, ["a3", "a1", "ac3", "ac2", "b4"]),
        (None, {"metadata_filter": OF_RUN, "prefix": "b"}, ["b4", "b1"]),
        (None, {"metadata_filter": OF_RUN, "before": "3"}, ["a1", "ac2", "b1"]),
        (
            None,
            {"metadata_filter": OF_RUN, "after": Position("a", "", "3")},
            ["a1", "ac3", "ac2", "b4", "b1"],
        ),
        (None, {"metadata_filter": OF_RUN, "after": Position("a", "child", "3")}, ["ac2", "b4", "b1"]),
        (None, {"metadata_filter": {"note": "4"}}, ["b4"]),
    ],
)
def test_a_list_has_what_is_asked_for_the_newest_of_a_thread_first(
    table: Harness, config: Any, options: dict[str, Any], places: list[str]
) -> None:
    assert sorted(_places(table, config, **options)) == sorted(places)
    if config is not None or OF_RUN in options.values():
        assert _places(table, config, **options) == places


def test_a_list_of_the_table_continues_behind_its_last_place(table: Harness) -> None:
    selection = Selection(storage=table.process().storage, after=Position("a", "child", "3"))
    run = table.begin(_ids(selection.of(None))).until(asks("scan"))
    assert run.calls[0].params["ExclusiveStartKey"] == {"PK": {"S": "a#child"}, "SK": {"S": "C$"}}
    run.go_on([{"Items": [], "ScannedCount": 0}])
    assert run.finish() == ["2"]


def test_a_list_may_end_behind_what_cannot_be_read(table: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_module, "_CHECKPOINTS_AT_ONCE", 1)
    table.change(table.items("C#1#", "a")["C#1#"], body={"S": "x"})
    found = list[str]()

    def note(each: CheckpointTuple) -> bool:
        found.append(each.config["configurable"]["checkpoint_id"])
        return False

    storage = table.process().storage
    selection = Selection(storage=storage, ends_behind=lambda place: place == ("a", "", "\x01"))
    with pytest.raises(CheckpointCorruptionError, match=r"^item PK='a#' SK='C#1#' is damaged"):
        table.run(collected(selection.of_table(), note))
    assert found[-1] == "3"
    assert len(found) < 6


def test_a_checkpoint_that_changes_while_it_is_listed_is_read_again_or_left_out(harness: Harness) -> None:
    for values in ({"x": noise(60_000, 1)}, None):
        harness.run(harness.process().put("4", {"x": noise(60_000)}, "3"))
        listing = _listing(harness, metadata_filter={"source": "loop"}, limit=1)
        listing.go_on()
        harness.run(harness.process().delete_thread())
        if values is not None:
            harness.run(harness.process().put("4", values))
        assert listing.finish() == ([] if values is None else ["4"])


@pytest.mark.parametrize(
    ("thread", "sk"), [("CHECKPOINT_a", "#x"), ("a", "#checkpoint#1")], ids=["aws", "amazon-dynamodb"]
)
@pytest.mark.parametrize("config", [thread_config("a", ""), thread_config("a", "", "1")])
def test_a_thread_that_only_another_saver_has_is_not_empty(
    harness: Harness, thread: str, sk: str, config: Any
) -> None:
    assert _places(harness, config) == []
    harness.change({"PK": {"S": thread}, "SK": {"S": sk}})
    with pytest.raises(
        CheckpointerConfigurationError, match=rf"^table checkpoints holds .* \(item PK='{thread}'"
    ):
        _places(harness, config)
