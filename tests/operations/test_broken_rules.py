"""A fault of the saver's own is told before something is written that relies on it."""

from collections.abc import Callable, Collection
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations import collect, compose, put, renew
from langgraph.checkpoint.dynamodb._operations.collect import Inventory
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import BrokenRuleError
from tests.simulation.mutants import Mutation, replace_for, writes_reuse_across_epochs
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import noise
from tests.support.harness import TTL_SECONDS, Harness, Process

BIG = noise(4_000)


def nothing(*_: Any) -> Op[set[bytes]]:
    yield from ()
    return set()


def a_put_takes_any_epoch_for_its_own(patch: pytest.MonkeyPatch) -> None:
    composed = compose.composed

    def of_any_epoch(storage: Any, new: Any, parent: Any, _epoch: Any) -> Any:
        return composed(storage, new, parent, parent.epoch)

    patch.setattr(put, "composed", of_any_epoch)
    replace_for(patch, put, protocol, "is_reusable", lambda *_: True)


def a_copy_leaves_segments_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("langgraph.checkpoint.dynamodb._operations.copy._Copy._copy_segments", nothing)


def a_renewal_leaves_segments_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(renew, "reach", lambda *_: set())


def a_renewal_keeps_for_less(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protocol, "KEPT_PERCENT", 100)


def a_deletion_forgets_what_is_left(patch: pytest.MonkeyPatch) -> None:
    named = Inventory.named

    def named_by_some(inventory: Inventory, ids: Collection[str]) -> set[bytes]:
        return set() if set(ids) == inventory.checkpoint_ids else named(inventory, ids)

    patch.setattr(Inventory, "named", named_by_some)


def a_deletion_reads_no_indexes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(collect, "read_indexes", nothing)


@pytest.mark.parametrize(
    ("fault", "call", "told"),
    [
        (
            a_put_takes_any_epoch_for_its_own,
            lambda it: it.put("2", {"big": BIG}, "1", ()),
            "C#2#.* known to be safe",
        ),
        (
            writes_reuse_across_epochs,
            lambda it: it.put_writes("1", [("big", BIG)]),
            "C#1#W#task.* known to be safe",
        ),
        (a_copy_leaves_segments_out, lambda it: it.copy_thread("copy"), "a copy .* stored"),
        (a_deletion_forgets_what_is_left, lambda it: it.prune(), "once the epoch has ended"),
        (a_deletion_reads_no_indexes, lambda it: it.prune(), "once the epoch has ended"),
        (a_renewal_leaves_segments_out, lambda it: it.put("2", {"x": 1}, "1"), "kept as long"),
        (a_renewal_keeps_for_less, lambda it: it.put("2", {"x": 1}, "1"), "kept for longer"),
    ],
)
def test_a_fault_is_told_before_anything_relies_on_it(
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    fault: Mutation,
    call: Callable[[Process], Op[Any]],
    told: str,
) -> None:
    use_small_limits(monkeypatch)
    process, other = harness.process(TTL_SECONDS), harness.process(TTL_SECONDS)
    harness.run(process.put("0", {"big": BIG}))
    harness.run(process.put("1", {"big": BIG}, "0", ()))
    if fault in (a_put_takes_any_epoch_for_its_own, writes_reuse_across_epochs):
        # The process remembers segments that have gone, and the epoch that is the thread's.
        harness.run(other.delete_thread())
        harness.run(other.put("1", {"big": BIG}))
        harness.run(process.put_writes("1", [("x", BIG)], "first"))
    if fault in (a_renewal_leaves_segments_out, a_renewal_keeps_for_less):
        harness.now += TTL_SECONDS - 1
    before = harness.items("C#")
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(BrokenRuleError, match=told):
            harness.run(call(process))
    after = harness.items("C#")
    # Writes may be there under an epoch that has ended, where they count for nothing.
    after.pop("C#1#W#task", None)
    for key, item in after.items():
        assert items.expires_at(item) == items.expires_at(before[key])
    assert {task for task, *_ in harness.process().pending("1")} <= {"first"}
    assert not harness.items("C#", "copy")
    assert harness.process().values("1") == {"big": BIG}
