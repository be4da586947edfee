"""Calls over several threads: one that is damaged or busy does not keep the others from being served."""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import CheckpointerError, CheckpointFormatError, ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError
from langgraph.checkpoint.dynamodb._operations import thread_item
from langgraph.checkpoint.dynamodb._operations.delete import prune
from langgraph.checkpoint.dynamodb._operations.error_collector import ErrorCollector
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._runtime.steps import Op, collected
from tests.support.checkpoints import thread_config
from tests.support.harness import Harness, Process

THREADS = ["a", "b", "c", "d"]
DELETIONS: dict[str, Callable[[Process], Op[None]]] = {
    "delete_for_runs": lambda process: process.delete_for_runs("run"),
    "prune": lambda process: prune(process.storage, THREADS, "keep_latest", None),
}
each_deletion = pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS)


@pytest.fixture
def process(process: Process) -> Process:
    """Store two checkpoints of each thread."""
    for thread_id in THREADS:
        for number, run_id in (("1", "run"), ("2", "run" if thread_id == "a" else "other")):
            process.harness.run(process.put(number, {"x": number}, thread=thread_id, run_id=run_id))
    return process


def _damage(harness: Harness, thread_id: str, **attributes: Any) -> None:
    """Damage the newest head of a thread."""
    harness.change(harness.items("C#2#", thread_id)["C#2#"], **attributes)


def _untouched(harness: Harness) -> list[str]:
    """The threads whose first checkpoint is still there."""
    return [each for each in THREADS if harness.items("C#1#", each)]


@each_deletion
def test_of_several_damaged_threads_the_error_names_all_and_others_are_deleted_from(
    harness: Harness, process: Process, delete: Callable[[Process], Op[None]]
) -> None:
    _damage(harness, "b", v={"N": "99"})
    _damage(harness, "d", body={"B": b"\0"})
    with pytest.raises(CheckpointFormatError, match=r"2 .* thread 'b', thread 'd'; .*PK='b#'") as caught:
        harness.run(delete(process))
    assert isinstance(caught.value.__cause__, CheckpointFormatError)
    assert _untouched(harness) == ["b", "d"]


@each_deletion
def test_a_thread_that_is_being_deleted_does_not_keep_others_from_it(
    harness: Harness, process: Process, delete: Callable[[Process], Op[None]]
) -> None:
    harness.run(
        thread_item.acquire_claim(process.storage, items.partition_of("b"), b"somebody", resets=False)
    )
    with pytest.raises(ThreadBusyError, match=r"[Tt]hread 'b'"):
        harness.run(delete(process))
    assert _untouched(harness) == ["b"]


def test_an_error_that_is_of_no_thread_ends_a_deletion_at_once(harness: Harness, process: Process) -> None:
    run = harness.begin(DELETIONS["prune"](process)).until(lambda call: "b#" in str(call.params))
    error = ConnectionError("of the network")
    # It lets go of the thread, of which it may have the claim.
    run.go_on([error])
    with pytest.raises(ConnectionError, match="of the network"):
        run.go_on([error])
    assert _untouched(harness) == ["b", "c", "d"]


class OwnSerializer(JsonPlusSerializer):
    """Another agent's serializer, whose type no other one knows."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value."""
        return "own", super().dumps_typed(obj)[1]


def _unreadable(harness: Harness, thread_id: str) -> None:
    """Store the newest checkpoint of a thread by another serializer."""
    other = harness.process(codec=Codec(OwnSerializer()))
    harness.run(other.put("2", {"x": 2}, thread=thread_id, run_id="other"))


def _listed(process: Process, error: type[Exception], match: str, config: Any, metadata: Any) -> list[str]:
    """The threads of a list, which ends with an error."""
    listed: list[str] = []

    def note(found: CheckpointTuple) -> bool:
        listed.append(found.config["configurable"]["thread_id"])
        return False

    with pytest.raises(error, match=match):
        process.harness.run(collected(list_checkpoints(process.storage, config, metadata, None, None), note))
    return sorted(listed)


@pytest.mark.parametrize("metadata", [None, {"run_id": "other"}], ids=["scan", "index"])
def test_a_list_of_everything_goes_on_behind_what_cannot_be_read(
    harness: Harness, process: Process, metadata: dict[str, str] | None
) -> None:
    _damage(harness, "b", body={"B": b"\0"})
    _unreadable(harness, "c")
    named = r"PK='b#', PK='c#'|PK='c#', PK='b#'"
    # Nor is the older checkpoint of a thread shown as its newest.
    expected = ["a", "a", "d", "d"] if metadata is None else ["d"]
    assert _listed(process, CheckpointerError, named, None, metadata) == expected
    # The list of a thread ends where it cannot be read.
    assert _listed(process, UnreadableError, "serde cannot read", thread_config("c"), metadata) == []


def test_an_error_names_only_the_first_of_many() -> None:
    errors = ErrorCollector()
    for number in range(1000):
        errors.add(f"thread {number}", ThreadBusyError("busy"))
    with pytest.raises(
        ThreadBusyError, match=r"^1000 failed, .* thread 19 and 980 more; the first error: busy$"
    ):
        errors.raise_first()
