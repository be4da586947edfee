"""A fault of the saver's own is told before something is written that relies on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._operations import put, renew
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import BrokenRuleError
from tests.simulation.mutants import Mutation, writes_reuse_across_epochs
from tests.support.checkpoints import noise
from tests.support.harness import TTL_SECONDS, Harness, Process

BIG = noise(60_000)


def a_put_takes_any_epoch_for_its_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(put, "is_reusable", lambda *_: True)


def a_copy_leaves_segments_out(patch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Op[set[bytes]]:
        yield from ()
        return set()

    patch.setattr("langgraph.checkpoint.dynamodb._operations.copy._Copy._copy_segments", nothing)


def a_renewal_leaves_segments_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(renew, "reach", lambda *_: set())


def a_renewal_keeps_for_less(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protocol, "KEPT_PERCENT", 100)


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
    process, other = harness.process(TTL_SECONDS), harness.process(TTL_SECONDS)
    harness.run(process.put("1", {"big": BIG}))
    if fault in (a_put_takes_any_epoch_for_its_own, writes_reuse_across_epochs):
        # The process remembers segments that have gone, and the epoch that is the thread's.
        harness.run(other.delete_thread())
        harness.run(other.put("1", {"big": BIG}))
        harness.run(process.put_writes("1", [("x", BIG)], "first"))
    if fault in (a_renewal_leaves_segments_out, a_renewal_keeps_for_less):
        harness.now += TTL_SECONDS - 1
    before = [each for each in harness.model.items() if each["SK"]["S"].startswith("C#")]
    fault(monkeypatch)
    with pytest.raises(BrokenRuleError, match=told):
        harness.run(call(process))
    assert [each for each in harness.model.items() if each["SK"]["S"].startswith("C#")] == before
