"""The thread item: claims that keep deletions apart, and renewals that make nothing."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError
from langgraph.checkpoint.dynamodb._format.limits import CLAIM_SECONDS
from tests.support.checkpoints import noise
from tests.support.stage import Stage, changes_thread, looks

TTL_SECONDS = 1000
BIG = noise(40_000)


@pytest.mark.parametrize("deletion", ["prune", "delete_thread"])
@pytest.mark.parametrize("stands_still_before", ["#idle", "#claim = :claim"])
def test_a_deletion_that_lost_its_claim_does_not_release_another_ones(
    deletion: str, stands_still_before: str
) -> None:
    """The first stands still past its claim, before the epoch ends or at its end; the second takes over."""
    stage = Stage()
    process = stage.process()
    for checkpoint_id in ("1", "2"):
        stage.run(process.put(checkpoint_id, {"big": BIG}))
    first = stage.begin(getattr(stage.process(), deletion)())
    first.until(changes_thread("SET #epoch = :new"))
    if stands_still_before != "#idle":
        first.go_on()
        first.until(changes_thread("REMOVE #claim" if deletion == "prune" else "attribute_exists"))
    stage.now += CLAIM_SECONDS + 1
    second = stage.begin(stage.process().prune())
    second.until(lambda call: call.method == "query")
    if stands_still_before == "#idle":
        with pytest.raises(ThreadBusyError, match="another deletion took over"):
            first.finish()
    else:
        first.finish()
    with pytest.raises(ThreadBusyError, match="is being deleted or pruned by another call"):
        stage.run(stage.process().delete_thread())
    second.finish()


def test_a_look_does_not_make_a_thread_item_that_has_gone() -> None:
    """A process looks at a thread that expires soon, and the thread is deleted before it renews it."""
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put("1", {}))
    stage.now += 1.5 * TTL_SECONDS
    put = stage.begin(process.put("2", {}, "1"))
    put.until(looks)
    put.go_on()
    stage.run(stage.process().delete_thread())
    put.finish()
    assert stage.items("T") == {}
    stage.run(stage.process(TTL_SECONDS).put("3", {}))
