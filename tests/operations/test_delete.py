"""A deletion that is interrupted at any request lets go of its thread: it can be repeated at once.

`tests/runtime/test_interruptions.py` shows how the drivers interrupt an operation, and run the rest of it.
"""

from itertools import count

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes, read_units, write_units
from langgraph.checkpoint.dynamodb._operations.delete import foresee_prune, prune_thread
from langgraph.checkpoint.dynamodb._runtime.steps import Op, interrupted
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, TTL_SECONDS, Harness, Process, deletes_item, single_effects


def _fill(process: Process) -> None:
    for namespace in ("", "inner"):
        for number, parent in (("1", None), ("2", "1")):
            values = {"big": noise(20_000, int(number))}
            process.harness.run(process.put(number, values, parent, namespace=namespace, run_id=number))
        process.harness.run(process.put_writes("1", [("channel", 1)], namespace=namespace))


def _interrupt(harness: Harness, deletion: Op[None], rounds: int, *, is_sent: bool) -> bool:
    """Interrupt a deletion after so many rounds, and run what it does then; say whether it had one more."""
    outcomes = None
    for _ in range(rounds):
        round_ = next(deletion) if outcomes is None else deletion.send(outcomes)
        outcomes = [harness.perform(step) for step in round_]
    try:
        round_ = next(deletion) if outcomes is None else deletion.send(outcomes)
    except StopIteration:
        return False
    if is_sent:
        for step in round_:
            harness.perform(step)
    rest = interrupted(deletion, KeyboardInterrupt())
    if rest is not None:
        harness.run(rest)
    return True


@pytest.mark.parametrize("is_sent", [False, True], ids=["before a round", "while a round is under way"])
@pytest.mark.parametrize("method", ["delete_thread", "prune"])
def test_an_interrupted_deletion_lets_go_of_its_thread_at_any_request(
    harness: Harness, method: str, *, is_sent: bool
) -> None:
    for rounds in count():
        _fill(harness.process())
        begun = harness.now
        deletion = getattr(harness.process(), method)()
        was_interrupted = _interrupt(harness, deletion, rounds, is_sent=is_sent)
        assert items.CLAIM not in harness.items("T").get("T", {}), f"the claim was kept in round {rounds}"
        harness.run(harness.process().delete_thread())
        assert harness.model.items() == [], f"after {rounds} rounds"
        # It has waited for nobody.
        assert harness.now < begun + 1
        if not was_interrupted:
            break
    assert rounds > 5


@pytest.mark.parametrize("age", ["any", "one"])
def test_a_prune_deletes_as_many_checkpoints_as_were_counted(age: str) -> None:
    def is_old(checkpoint_id: str) -> bool:
        return age == "any" or checkpoint_id == "1"

    def heads() -> int:
        own = [each for each in harness.model.items() if items.sort_key(each).startswith(items.CHECKPOINTS)]
        return sum(map(items.is_head, own))

    harness = Harness()
    process = harness.process()
    _fill(process)
    harness.run(process.put("3", {"big": 1}, "2"))
    before, stored = heads(), {str(items.key_of(each)): each for each in harness.model.items()}
    forecast = harness.run(foresee_prune(process.storage, THREAD, 1, is_old))
    assert heads() == before
    harness.run(prune_thread(process.storage, THREAD, 1, is_old))
    assert forecast.checkpoints == before - heads() > 0
    left = {str(items.key_of(each)): each for each in harness.model.items()}
    changed = [each for key, each in stored.items() if left.get(key) != each and items.sort_key(each) != "T"]
    # The index of runs costs too. The forecast is of about what it costs: the thread item has a few units.
    indexed = sum("run_id" in each for key, each in stored.items() if key not in left)
    assert 5 <= forecast.write_units - indexed - sum(write_units(item_bytes(each)) for each in changed) <= 7
    # Both looks read all, the second one without the checkpoints that are gone.
    gone = [each for key, each in stored.items() if key not in left and items.sort_key(each)[0] == "C"]
    reads = 0.0
    for pk in ("t#", "t#inner"):
        sizes = [
            item_bytes(each)
            for each in stored.values()
            if each["PK"]["S"] == pk and each["SK"]["S"][0] in "CS"
        ]
        less = sum(item_bytes(each) for each in gone if each["PK"]["S"] == pk)
        reads += read_units(sum(sizes), consistent=True) + read_units(sum(sizes) - less, consistent=True)
    assert forecast.read_units == reads + 2


@pytest.mark.parametrize("begins", ["C#1#", "C#1#W#"], ids=["head", "writes"])
def test_a_prune_of_a_dead_thread_deletes_nothing_of_its_next_life(
    harness: Harness, expiring: Process, begins: str
) -> None:
    """Not even under an id that was used before."""
    harness.run(expiring.put("1", {"x": 1}))
    harness.run(expiring.put_writes("1", [("x", 1)]))
    harness.run(expiring.put("2", {"x": 2}, "1"))
    harness.now += TTL_SECONDS
    prune = harness.begin(harness.process().prune()).until(deletes_item(begins))
    harness.run(expiring.put("1", {"x": "new"}))
    harness.run(expiring.put_writes("1", [("x", 1), ("y", 2)]))
    prune.finish()
    assert harness.process().values() == {"x": "new"}
    assert harness.process().pending("1") == [("task", "x", 1), ("task", "y", 2)]


def test_a_deletion_takes_what_has_changed_since_it_was_read(harness: Harness, expiring: Process) -> None:
    """Unless it changes again and again."""
    for changes in (1, 8):
        harness.run(expiring.put("1", {"x": 1}))
        harness.run(expiring.put_writes("1", [("x", 1)]))
        deletion = harness.begin(harness.process().delete_thread())
        for number in range(changes):
            deletion.until(deletes_item("C#1#W#"))
            harness.change(harness.items("C#1#W#")["C#1#W#task"], created_at={"N": str(number)})
            if number < 7:
                deletion.go_on()
        if changes == 1:
            deletion.finish()
            assert harness.model.items() == []
        else:
            with pytest.raises(ThreadBusyError, match="was stored 8 times while it was being deleted"):
                deletion.finish()


def test_a_prune_counts_what_readers_see(harness: Harness, process: Process) -> None:
    """DynamoDB is late to remove what has expired; an older checkpoint, from which a run began, lives longer."""
    for number in ("1", "2", "3"):
        harness.run(process.put(number, {"x": number}))
    harness.change(harness.items("C#2#")["C#2#"], expires_at={"N": str(int(harness.now))})
    harness.run(process.prune(2))
    assert harness.process().ids() == ["3", "1"]


def test_a_deletion_that_dies_shows_no_older_state_though_a_newer_one_has_expired(
    harness: Harness, process: Process
) -> None:
    for number in ("1", "2", "3"):
        harness.run(process.put(number, {"x": number}))
    harness.change(harness.items("C#3#")["C#3#"], expires_at={"N": str(int(harness.now))})
    deletion = harness.begin(process.delete_thread())
    while not deletion.done:
        for call in reversed([*single_effects(deletion.calls)]):
            assert harness.process().ids()[:1] in (["2"], [])
            harness.perform(call)
        deletion.go_on()
