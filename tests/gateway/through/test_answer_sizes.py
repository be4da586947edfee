"""How large answers are: what is behind an entrance that loses larger ones still reads everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._runtime.steps import Call, collected
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.http.documents import packed
from langgraph.checkpoint.dynamodb.http.operations import RemoteOperations
from tests.gateway.through import remote
from tests.gateway.through.remote import gateway_of
from tests.gateway.through.test_requests import METADATA, SERDE, Pair
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import THREAD

BODY_BYTES_MAX = 700_000


class Entrance(Pair):
    """A client and a service behind an entrance that loses what is too large."""

    def __post_init__(self) -> None:
        """Begin with nothing measured."""
        super().__post_init__()
        self.sizes: list[int] = []
        self.change = self.measured

    def measured(self, _call: Call, answer: Any) -> Any:
        """Measure an answer."""
        self.sizes.append(len(packed(answer)))
        return answer

    def another(self) -> RemoteOperations:
        """Return the operations of a client that has read nothing yet."""
        return RemoteOperations(gateway_of(self.harness.process()), SERDE)

    def got(self) -> list[CheckpointTuple]:
        """Return the newest checkpoint as another client reads it, if there is one."""
        found = self.run(self.another().get_tuple(thread_config(THREAD)))
        return [] if found is None else [found]

    def listed_tuples(self) -> list[CheckpointTuple]:
        """Return the checkpoints as another client lists them."""
        thread: Any = {"configurable": {"thread_id": THREAD}}
        return self.run(collected(self.another().list(thread, None, None, None)))

    def write(self, checkpoint_id: str, task_id: str, value: Any) -> None:
        """Store a task's write."""
        at = thread_config(THREAD, "", checkpoint_id)
        self.run(self.operations.put_writes(at, [("x", value)], task_id, ""))


@pytest.fixture
def entrance(monkeypatch: pytest.MonkeyPatch) -> Iterator[Entrance]:
    """Give a client and a service; no answer of a test is too large, and some are large."""
    monkeypatch.setitem(remote.ABOUT, "limits", {"body_bytes_max": BODY_BYTES_MAX, "items_max": 10_000})
    monkeypatch.setattr(remote, "ANSWER_BYTES", BODY_BYTES_MAX // 2)
    made = Entrance()
    yield made
    assert BODY_BYTES_MAX / 4 < max(made.sizes) <= BODY_BYTES_MAX


def test_a_large_value_comes_in_parts(entrance: Entrance) -> None:
    value = noise(6_000_000)
    entrance.put("1", {"x": value})
    [found] = entrance.got()
    assert found.checkpoint["channel_values"] == {"x": value}


def _with_writes(entrance: Entrance, checkpoint_id: str, seed: int = 0) -> list[tuple[str, str, Any]]:
    """Store the writes of so many tasks that they do not fit into an answer, inline as they are."""
    expected = []
    for position in range(30):
        value = noise(40_000, seed + position)
        entrance.write(checkpoint_id, f"task {position:02}", value)
        expected.append((f"task {position:02}", "x", value))
    return expected


def test_the_writes_of_many_tasks_come_in_parts(entrance: Entrance) -> None:
    entrance.put("1", {"x": noise(100_000)})
    expected = _with_writes(entrance, "1")
    [found] = entrance.got()
    assert found.pending_writes == expected
    assert entrance.listed_tuples() == [found]


def test_a_task_that_stores_large_writes_again_is_told_in_parts(entrance: Entrance) -> None:
    value = noise(3_000_000)
    entrance.put("1", {"x": "a"})
    entrance.write("1", "task", value)
    entrance.operations = entrance.another()
    entrance.write("1", "task", value)
    assert entrance.pending("1") == [("task", "x", value)]


def test_the_ancestors_of_a_delta_channel_come_in_parts(entrance: Entrance) -> None:
    entrance.put("0", {"x": _DeltaSnapshot(["a"])})
    expected = []
    for step in range(3):
        expected += _with_writes(entrance, str(step))
        at, checkpoint = thread_config(THREAD, "", str(step)), checkpoint_of(str(step + 1), {})
        checkpoint["channel_versions"] = {"x": step + 1}
        entrance.run(entrance.operations.put(at, checkpoint, METADATA, {"x": step + 1}))
    at = thread_config(THREAD, "", "3")
    found = entrance.run(entrance.another().get_delta_channel_history(at, ["x"]))
    assert found["x"]["writes"] == expected


def _once(entrance: Entrance, endpoint: str, meanwhile: Callable[[], None]) -> None:
    """Let something happen after the first answer of an endpoint."""
    happened = list[Call]()

    def change(call: Call, answer: Any) -> Any:
        if call.method == endpoint and not happened:
            happened.append(call)
            meanwhile()
        return entrance.measured(call, answer)

    entrance.change = change


@pytest.mark.parametrize(
    ("endpoint", "read"), [("get-tuple", Entrance.got), ("list", Entrance.listed_tuples)]
)
@pytest.mark.parametrize("stored_anew", [False, True])
def test_writes_of_two_lives_of_a_checkpoint_are_not_mixed(
    entrance: Entrance, endpoint: str, read: Callable[[Entrance], list[CheckpointTuple]], *, stored_anew: bool
) -> None:
    """The thread is deleted between two answers, and perhaps stored again under the same ids."""
    expected = list[Any]()

    def store(seed: int) -> None:
        entrance.operations = entrance.another()
        entrance.put("1", {"x": "a"})
        expected[:] = [_with_writes(entrance, "1", seed)]

    def meanwhile() -> None:
        entrance.run(entrance.operations.delete_thread(THREAD))
        expected.clear()
        if stored_anew:
            store(100)

    store(0)
    _once(entrance, endpoint, meanwhile)
    assert [each.pending_writes for each in read(entrance)] == expected


def test_a_task_whose_writes_go_between_two_answers_does_not_just_lack(entrance: Entrance) -> None:
    entrance.put("1", {"x": "a"})
    expected = _with_writes(entrance, "1")
    left = entrance.harness.items(items.writes_sk("1", expected[0][0]))
    _once(entrance, "get-tuple", lambda: entrance.harness.remove(*left.values()))
    [found] = entrance.got()
    assert found.pending_writes == expected[1:]
    from_the_start = [each for each in entrance.asked if each.params.get("held", 0) is None]
    assert len(from_the_start) == 2


def test_ancestors_that_go_between_two_answers_are_an_error(entrance: Entrance) -> None:
    entrance.put("0", {"x": _DeltaSnapshot(["a"])})
    _with_writes(entrance, "0")
    entrance.put("1", {}, "0")
    _once(
        entrance,
        "delta-channel-history",
        lambda: entrance.run(entrance.operations.delete_thread(THREAD)),
    )
    with pytest.raises(CheckpointNotFoundError, match=r"'0'.*deleted while it was read"):
        entrance.run(entrance.another().get_delta_channel_history(thread_config(THREAD, "", "1"), ["x"]))


def test_stored_writes_that_go_between_two_answers_are_replaced(entrance: Entrance) -> None:
    value = noise(3_000_000)
    entrance.put("1", {"x": "a"})
    entrance.write("1", "task", value)
    entrance.operations = entrance.another()

    def meanwhile() -> None:
        entrance.harness.run(entrance.harness.process().delete_thread())
        entrance.put("1", {"x": "a"})

    _once(entrance, "put-writes", meanwhile)
    entrance.write("1", "task", value)
    assert entrance.pending("1") == [("task", "x", value)]


def test_a_page_of_the_directory_is_cut_where_it_is_full(entrance: Entrance) -> None:
    about = noise(350).hex()
    for position in range(900):
        entrance.run(entrance.operations.set_thread(f"{position:03}" * 100, "ada", None, {"about": about}))
    page = entrance.run(
        entrance.operations.list_threads("ada", None, None, 900, None, with_status=True, since=None)
    )
    assert [each.thread_id[:3] for each in page.threads] == [f"{each:03}" for each in reversed(range(900))]
